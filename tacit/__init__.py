"""Tacit: private federated learning that can be trusted.

A problem is solved by an algorithm, run by a runtime, which leaves a trace, from which
a report is made.
"""

from tacit import problem
from tacit.algorithm import FedAvg, FedGD, FedProx, FedSGD, ServerGD
from tacit.check import TacitError
from tacit.problem import Problem, from_arrays
from tacit.problem.oracle import Full, Minibatch
from tacit.runtime import debug, simulate, sweep
from tacit.trace import Run, load_run

__version__ = "0.1.0"

__all__ = [
    "FedAvg",
    "FedGD",
    "FedProx",
    "FedSGD",
    "Full",
    "Minibatch",
    "Problem",
    "Run",
    "ServerGD",
    "TacitError",
    "debug",
    "from_arrays",
    "load_run",
    "problem",
    "simulate",
    "sweep",
]

"""Tacit: private federated learning that can be trusted.

A problem is solved by an algorithm, run by a runtime, which leaves a trace, from which
a report is made.
"""

from tacit import problem
from tacit.algorithm import (
    LED,
    TAMUNA,
    FedAvg,
    FedGD,
    FedLin,
    FedPD,
    FedPLT,
    FedProx,
    FedSGD,
    FedSplit,
    FiveGCS,
    ProxSkip,
    ServerGD,
    solvers,
)
from tacit.check import TacitError
from tacit.problem import Problem, from_arrays
from tacit.problem.oracle import Full, Minibatch
from tacit.runtime import debug, simulate, sweep
from tacit.trace import Run, load_run

__version__ = "0.1.0"

__all__ = [
    "FedAvg",
    "FedGD",
    "FedLin",
    "FedPD",
    "FedPLT",
    "FedProx",
    "FedSGD",
    "FedSplit",
    "FiveGCS",
    "Full",
    "LED",
    "Minibatch",
    "Problem",
    "ProxSkip",
    "Run",
    "ServerGD",
    "TAMUNA",
    "TacitError",
    "debug",
    "from_arrays",
    "load_run",
    "problem",
    "simulate",
    "solvers",
    "sweep",
]

"""Tacita: private federated learning that can be trusted.

A problem is solved by an algorithm, run by a runtime, which leaves a trace, from which
a report is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tacita import aggregation, algorithm, problem
from tacita.algorithm import *  # noqa: F403
from tacita.check import TacitaError
from tacita.privacy.clipped import Clipped
from tacita.privacy.noisy import Noisy
from tacita.problem import GTVMin, Problem, from_arrays
from tacita.problem.oracles import Full, Minibatch
from tacita.runtime import Asynchronous, debug, simulate, sweep
from tacita.trace import Run, load_run
from tacita.tuning import NodeErrors, tune, validate
from tacita.variants import (
    ModelAgnosticFedRelax,
    VerticalNewton,
    simulate_estimators,
    train_vertical,
)

if TYPE_CHECKING:
    from tacita import data, privacy, report
    from tacita.audits import audit
    from tacita.privacy import private

__version__ = "0.1.0"

__all__ = [
    "Asynchronous",
    "Clipped",
    "Full",
    "GTVMin",
    "Minibatch",
    "ModelAgnosticFedRelax",
    "NodeErrors",
    "Noisy",
    "Problem",
    "Run",
    "TacitaError",
    "VerticalNewton",
    "aggregation",
    "audit",
    "data",
    "debug",
    "from_arrays",
    "load_run",
    "privacy",
    "private",
    "problem",
    "report",
    "simulate",
    "simulate_estimators",
    "sweep",
    "train_vertical",
    "tune",
    "validate",
]
__all__.extend(algorithm.__all__)

#: Rooms that load slowly (pandas, scikit-learn, matplotlib): loaded when first used.
_LAZY = ("audits", "data", "federation", "privacy", "report")
#: Names that live in such a room.
_HOMES = {"audit": "audits", "private": "privacy"}


def __getattr__(name: str) -> Any:
    """Load a room on first use."""
    if name in _LAZY:
        return importlib.import_module(f"tacita.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"tacita.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'tacita' has no attribute {name!r}")

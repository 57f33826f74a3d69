"""Tacit: private federated learning that can be trusted.

A problem is solved by an algorithm, run by a runtime, which leaves a trace, from which
a report is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tacit import problem
from tacit.algorithm import (
    DPADMM,
    DPSGD,
    LED,
    TAMUNA,
    ClientDPFedAvg,
    DPFedAvg,
    DPNorm,
    FedAvg,
    FedGD,
    FedLin,
    FedPD,
    FedPLT,
    FedProx,
    FedRelax,
    FedSGD,
    FedSPD,
    FedSplit,
    FiveGCS,
    GossipSGD,
    GradientTracking,
    GraphADMM,
    ModelAgnosticFedRelax,
    PrimalDual,
    ProxSkip,
    ServerGD,
    VerticalNewton,
    solvers,
)
from tacit.check import TacitError
from tacit.problem import GTVMin, Problem, from_arrays
from tacit.problem.oracle import Full, Minibatch
from tacit.runtime import (
    Asynchronous,
    NodeErrors,
    debug,
    simulate,
    simulate_estimators,
    sweep,
    train_vertical,
    tune,
    validate,
)
from tacit.trace import Run, load_run

if TYPE_CHECKING:
    from tacit import data, privacy, report
    from tacit.privacy import audit, private

__version__ = "0.1.0"

__all__ = [
    "DPADMM",
    "DPSGD",
    "LED",
    "TAMUNA",
    "Asynchronous",
    "ClientDPFedAvg",
    "DPFedAvg",
    "DPNorm",
    "FedAvg",
    "FedGD",
    "FedLin",
    "FedPD",
    "FedPLT",
    "FedProx",
    "FedRelax",
    "FedSGD",
    "FedSPD",
    "FedSplit",
    "FiveGCS",
    "Full",
    "GTVMin",
    "GossipSGD",
    "GradientTracking",
    "GraphADMM",
    "Minibatch",
    "ModelAgnosticFedRelax",
    "NodeErrors",
    "PrimalDual",
    "Problem",
    "ProxSkip",
    "Run",
    "ServerGD",
    "TacitError",
    "VerticalNewton",
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
    "solvers",
    "sweep",
    "train_vertical",
    "tune",
    "validate",
]

#: Rooms that load slowly (pandas, scikit-learn, matplotlib): loaded when first used.
_LAZY = ("data", "privacy", "report")


def __getattr__(name: str) -> Any:
    """Load a room on first use."""
    if name in _LAZY:
        return importlib.import_module(f"tacit.{name}")
    if name in ("audit", "private"):
        return getattr(importlib.import_module("tacit.privacy"), name)
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")

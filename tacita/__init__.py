"""Tacita: private federated learning that can be trusted.

A problem is solved by an algorithm, run by a runtime, which leaves a trace, from which
a report is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacita import (
        algorithm,
        check,
        data,
        federation,
        job,
        privacy,
        problem,
        report,
        runtime,
    )
    from tacita.algorithm import (
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
        PrimalDual,
        ProxSkip,
        ServerGD,
        solvers,
    )
    from tacita.audits import audit
    from tacita.check import TacitaError
    from tacita.privacy import private
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

__version__ = "0.1.0"

__all__ = [
    "DPADMM",
    "DPSGD",
    "LED",
    "TAMUNA",
    "Asynchronous",
    "ClientDPFedAvg",
    "Clipped",
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
    "Noisy",
    "PrimalDual",
    "Problem",
    "ProxSkip",
    "Run",
    "ServerGD",
    "TacitaError",
    "VerticalNewton",
    "algorithm",
    "audit",
    "check",
    "data",
    "debug",
    "federation",
    "from_arrays",
    "job",
    "load_run",
    "privacy",
    "private",
    "problem",
    "report",
    "runtime",
    "simulate",
    "simulate_estimators",
    "solvers",
    "sweep",
    "train_vertical",
    "tune",
    "validate",
]

#: Rooms, loaded when first used: JAX and what stands on it take their time.
_ROOMS = (
    "algorithm problem runtime trace privacy tuning variants audits check data "
    "federation job keys participation report sampling theory trees"
).split()


def __getattr__(name: str) -> Any:
    """Load a room, or a public name out of the first room that has it."""
    if name in _ROOMS:
        return importlib.import_module(f"tacita.{name}")
    if name in __all__:
        for room in _ROOMS:
            known = vars(importlib.import_module(f"tacita.{room}"))
            if name in known:
                return known[name]
    raise AttributeError(f"module 'tacita' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

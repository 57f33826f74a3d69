"""Tacita: private federated learning that can be trusted.

A problem is solved by an algorithm, whose letters an aggregation joins, run by a
runtime or a federation, which leaves a trace, from which a report is made.

Nothing is loaded before it is used: JAX and what stands on it take their time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacita import (
        aggregation,
        algorithm,
        check,
        data,
        federation,
        job,
        privacy,
        problem,
        report,
        robust,
        runtime,
        schedule,
        trust,
    )
    from tacita.aggregation import SecureSum
    from tacita.algorithm import *  # noqa: F403
    from tacita.audits import audit
    from tacita.check import TacitaError
    from tacita.estimators import (
        FederatedClassifier,
        FederatedRegressor,
        NetworkClassifier,
        NetworkRegressor,
    )
    from tacita.mesh import Mesh, use_cores, use_processes
    from tacita.privacy import Clipped, NoiseSchedule, Noisy, private
    from tacita.problem import (
        Full,
        GTVMin,
        Minibatch,
        Problem,
        Quantised,
        Stream,
        from_arrays,
    )
    from tacita.runtime import Arrivals, Asynchronous, Pace, debug, simulate, sweep
    from tacita.trace import Run, load_run
    from tacita.trained import TrainedModel, load_model
    from tacita.tuning import NodeErrors, Tradeoff, tradeoff, tune, validate
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
    "SCAFFOLD",
    "TAMUNA",
    "AgnosticFedAvg",
    "Arrivals",
    "Asynchronous",
    "ClientDPFedAvg",
    "Clipped",
    "DPFedAvg",
    "DPNorm",
    "FedAdagrad",
    "FedAdam",
    "FedAsync",
    "FedAvg",
    "FedAvgM",
    "FedBuff",
    "FedGD",
    "FedLin",
    "FedOpt",
    "FedPD",
    "FedPLT",
    "FedProx",
    "FedRelax",
    "FedSGD",
    "FedSPD",
    "FedSplit",
    "FedYogi",
    "FederatedClassifier",
    "FederatedRegressor",
    "FiveGCS",
    "Full",
    "GTVMin",
    "GossipSGD",
    "GradientTracking",
    "GraphADMM",
    "GraphLED",
    "Mesh",
    "Minibatch",
    "ModelAgnosticFedRelax",
    "NetworkClassifier",
    "NetworkRegressor",
    "NodeErrors",
    "NoiseSchedule",
    "Noisy",
    "Pace",
    "PrimalDual",
    "Problem",
    "ProxSkip",
    "QFedAvg",
    "Quantised",
    "Run",
    "SecureSum",
    "ServerGD",
    "Stream",
    "TacitaError",
    "Tradeoff",
    "TrainedModel",
    "VerticalNewton",
    "aggregation",
    "algorithm",
    "audit",
    "check",
    "data",
    "debug",
    "federation",
    "from_arrays",
    "job",
    "load_model",
    "load_run",
    "privacy",
    "private",
    "problem",
    "report",
    "robust",
    "runtime",
    "schedule",
    "simulate",
    "simulate_estimators",
    "solvers",
    "sweep",
    "tradeoff",
    "train_vertical",
    "trust",
    "tune",
    "use_cores",
    "use_processes",
    "validate",
]

#: Rooms, those first that hold many public names.
_ROOMS = (
    *("algorithm", "problem", "runtime", "trace", "trained", "privacy", "tuning"),
    *("variants",),
    *("check", "estimators", "audits", "aggregation", "data", "federation", "job"),
    *("keys", "mesh"),
    *(
        "participation",
        "report",
        "robust",
        "sampling",
        "schedule",
        "theory",
        "trees",
        "trust",
    ),
)


def __getattr__(name: str) -> Any:
    """Load a room, or a public name out of the room that has it."""
    if name in _ROOMS:
        return importlib.import_module(f"tacita.{name}")
    for home in _ROOMS if name in __all__ else ():
        room = importlib.import_module(f"tacita.{home}")
        if name in vars(room):
            return getattr(room, name)
    raise AttributeError(f"module 'tacita' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

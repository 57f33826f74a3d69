"""Where algorithms run: simulation, debugging, and what they share."""

from tacit.runtime.debug import debug
from tacit.runtime.estimators import EstimatorRun, simulate_estimators
from tacit.runtime.simulate import simulate, sweep
from tacit.runtime.transit import Asynchronous
from tacit.runtime.tune import tune
from tacit.runtime.validate import NodeErrors, validate
from tacit.runtime.vertical import VerticalRun, train_vertical

__all__ = [
    "Asynchronous",
    "EstimatorRun",
    "NodeErrors",
    "VerticalRun",
    "debug",
    "simulate",
    "simulate_estimators",
    "sweep",
    "train_vertical",
    "tune",
    "validate",
]

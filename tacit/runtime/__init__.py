"""Where algorithms run: simulation, debugging, and what they share."""

from tacit.runtime.debug import debug
from tacit.runtime.estimators import EstimatorRun, simulate_estimators
from tacit.runtime.simulate import simulate, sweep
from tacit.runtime.tune import tune

__all__ = [
    "EstimatorRun",
    "debug",
    "simulate",
    "simulate_estimators",
    "sweep",
    "tune",
]

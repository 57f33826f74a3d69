"""Where algorithms run: simulation, debugging, and what they share."""

from tacit.runtime.debug import debug
from tacit.runtime.simulate import simulate, sweep
from tacit.runtime.transit import Asynchronous
from tacit.runtime.tune import tune

__all__ = ["Asynchronous", "debug", "simulate", "sweep", "tune"]

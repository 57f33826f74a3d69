"""Where algorithms run: simulation, debugging, and what they share."""

from tacita.runtime.arrivals import Arrivals, Pace
from tacita.runtime.debug import debug
from tacita.runtime.simulate import simulate, sweep
from tacita.runtime.transit import Asynchronous

__all__ = ["Arrivals", "Asynchronous", "Pace", "debug", "simulate", "sweep"]

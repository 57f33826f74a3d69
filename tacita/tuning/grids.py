"""What `tune` tries for each algorithm: candidates around the values of theory.

A grid is a function (problem, local_steps) -> algorithms that differ in numbers only.
Ranges are in units of the problem's own curvature, so that one grid serves all
problems, and every algorithm gets a grid of comparable size and reach.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tacita.algorithm.fed_avg import FedAvg
from tacita.algorithm.fed_lin import FedLin
from tacita.algorithm.fed_pd import FedPD
from tacita.algorithm.fed_plt import FedPLT
from tacita.algorithm.fed_prox import FedProx
from tacita.algorithm.fed_split import FedSplit
from tacita.algorithm.five_gcs import FiveGCS
from tacita.algorithm.led import LED
from tacita.algorithm.prox_skip import ProxSkip
from tacita.algorithm.server_gd import ServerGD
from tacita.algorithm.solvers import GradientDescent
from tacita.algorithm.tamuna import TAMUNA
from tacita.problem.problem import Problem

Grid = Callable[[Problem, int], list]

#: Multiples of 1/L for plain gradient steps.
STEPS = np.geomspace(0.1, 1.9, 12)
#: The same where the step is the only number to choose.
FINE_STEPS = np.geomspace(0.05, 1.95, 48)
#: Multiples of the best penalty of a splitting method.
PENALTIES = np.geomspace(0.2, 5.0, 12)
#: Multiples of the best step of a regularised local problem.
FRACTIONS = (0.5, 0.75, 1.0, 1.2)
#: Steps of control variates.
CONTROLS = (0.05, 0.2, 0.5, 0.9)


class Units(NamedTuple):
    """What a problem measures its candidates by."""

    agents: int
    smoothness: float  # L
    strong_convexity: float  # mu, of a twentieth of L at least
    total: float  # mu + L
    steps: int  # local steps in a round

    @property
    def rho(self) -> float:
        """1/sqrt(mu L), the best penalty."""
        return 1 / np.sqrt(self.strong_convexity * self.smoothness)

    def training(self, step: float) -> dict[str, Any]:
        """Local steps of a multiple of 1/L."""
        return {"step_size": step / self.smoothness, "local_steps": self.steps}

    def proximal(self, rho: float, fraction: float) -> dict[str, Any]:
        """Local steps of a multiple of the best one towards a penalty."""
        step_size = fraction * 2 / (self.total + 2 / rho)
        return {"step_size": step_size, "local_steps": self.steps}


def _units(problem: Problem, steps: int) -> Units:
    low, high = max(problem.moduli.smallest, 0.0), problem.moduli.largest
    return Units(problem.n_agents, high, max(low, 0.05 * high), low + high, steps)


def _splitting(u: Units, r: float, f: float) -> dict[str, Any]:
    rho = u.rho * r
    return {"rho": rho, "solver": GradientDescent(**u.proximal(rho, f))}


def _fed_pd(u: Units, r: float, f: float) -> dict[str, Any]:
    return {"eta": u.rho * r, **u.proximal(u.rho * r, f)}


def _fed_prox(u: Units, r: float, f: float) -> dict[str, Any]:
    return {"eta": 2 * u.rho * r, **u.proximal(u.rho * r, f)}


def _five_gcs(u: Units, r: float, t: float) -> dict[str, Any]:
    return {
        "gamma": u.rho * r,
        "tau": t / (u.rho * r * u.agents),
        "strong_convexity": u.strong_convexity,
        "solver": GradientDescent(local_steps=u.steps),
    }


def _prox_skip(u: Units, s: float, exchanges: float) -> dict[str, Any]:
    probability = min(exchanges / u.steps, 1.0)
    return {"step_size": s / u.smoothness, "probability": probability}


def _server_gd(u: Units, s: float) -> dict[str, Any]:
    return {"step_size": s / u.smoothness}


def _led(u: Units, s: float, b: float) -> dict[str, Any]:
    return {"beta": b, **u.training(s)}


def _tamuna(u: Units, s: float, e: float) -> dict[str, Any]:
    return {"eta": e, **u.training(s)}


def _grid(kind: type, numbers: Callable[..., dict[str, Any]], *ranges: Any) -> Grid:
    """All combinations of the ranges, each made into an algorithm's numbers."""

    def candidates(problem: Problem, steps: int) -> list:
        units = _units(problem, steps)
        return [kind(**numbers(units, *point)) for point in product(*ranges)]

    return candidates


GRIDS: dict[type, Grid] = {
    kind: _grid(kind, numbers, *ranges)
    for kind, numbers, *ranges in (
        (FedPLT, _splitting, PENALTIES, FRACTIONS),
        (FedPD, _fed_pd, PENALTIES, FRACTIONS),
        (FedLin, Units.training, FINE_STEPS),
        (TAMUNA, _tamuna, STEPS, CONTROLS),
        (LED, _led, STEPS, CONTROLS),
        (FiveGCS, _five_gcs, PENALTIES, (0.5, 1.0, 1.5, 2.0)),
        (FedSplit, _splitting, PENALTIES, FRACTIONS),
        (ProxSkip, _prox_skip, STEPS, (0.5, 1.0, 2.0, 4.0)),
        (FedAvg, Units.training, np.geomspace(0.01, 1.9, 48)),
        (FedProx, _fed_prox, PENALTIES, FRACTIONS),
        (ServerGD, _server_gd, FINE_STEPS),
    )
}

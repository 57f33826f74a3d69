"""What `tune` tries for each algorithm: candidates around the values of theory.

A grid is a function (problem, local_steps) -> algorithms that differ in numbers only.
Ranges are in units of the problem's own curvature, so that one grid serves all
problems, and every algorithm gets a grid of comparable size and reach.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

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
#: Multiples of the best penalty of a splitting method.
PENALTIES = np.geomspace(0.2, 5.0, 12)
#: Multiples of the best step of a regularised local problem.
FRACTIONS = (0.5, 0.75, 1.0, 1.2)


def _curvature(problem: Problem) -> tuple[float, float, float]:
    """Smoothness L, the local problems' (mu + L), and the best penalty 1/sqrt(mu L)."""
    low, high = max(problem.moduli.smallest, 0.0), problem.moduli.largest
    return high, low + high, 1 / np.sqrt(max(low, 0.05 * high) * high)


def _fed_plt(problem: Problem, steps: int) -> list:
    _, total, best = _curvature(problem)
    return [
        FedPLT(
            rho=best * r,
            solver=GradientDescent(
                step_size=f * 2 / (total + 2 / (best * r)), local_steps=steps
            ),
        )
        for r, f in product(PENALTIES, FRACTIONS)
    ]


def _fed_split(problem: Problem, steps: int) -> list:
    return [
        FedSplit(rho=a.rho, solver=a.solver, oracle=a.oracle)
        for a in _fed_plt(problem, steps)
    ]


def _fed_pd(problem: Problem, steps: int) -> list:
    _, total, best = _curvature(problem)
    return [
        FedPD(
            eta=best * r,
            step_size=f * 2 / (total + 2 / (best * r)),
            local_steps=steps,
        )
        for r, f in product(PENALTIES, FRACTIONS)
    ]


def _fed_lin(problem: Problem, steps: int) -> list:
    smoothness, _, _ = _curvature(problem)
    fine = np.geomspace(0.05, 1.95, 48)
    return [FedLin(step_size=s / smoothness, local_steps=steps) for s in fine]


def _led(problem: Problem, steps: int) -> list:
    smoothness, _, _ = _curvature(problem)
    return [
        LED(step_size=s / smoothness, beta=b, local_steps=steps)
        for s, b in product(STEPS, (0.05, 0.2, 0.5, 0.9))
    ]


def _tamuna(problem: Problem, steps: int) -> list:
    smoothness, _, _ = _curvature(problem)
    return [
        TAMUNA(step_size=s / smoothness, eta=e, local_steps=float(steps))
        for s, e in product(STEPS, (0.05, 0.2, 0.5, 0.9))
    ]


def _five_gcs(problem: Problem, steps: int) -> list:
    _, _, best = _curvature(problem)
    n = problem.n_agents
    mu = max(problem.moduli.smallest, 0.05 * problem.moduli.largest)
    return [
        FiveGCS(
            gamma=best * r,
            tau=t / (best * r * n),
            strong_convexity=mu,
            solver=GradientDescent(local_steps=steps),
        )
        for r, t in product(PENALTIES, (0.5, 1.0, 1.5, 2.0))
    ]


def _prox_skip(problem: Problem, steps: int) -> list:
    smoothness, _, _ = _curvature(problem)
    chances = np.array([0.5, 1.0, 2.0, 4.0]) / steps
    return [
        ProxSkip(step_size=s / smoothness, probability=float(min(p, 1.0)))
        for s, p in product(STEPS, chances)
    ]


def _fed_avg(problem: Problem, steps: int) -> list:
    smoothness, _, _ = _curvature(problem)
    fine = np.geomspace(0.01, 1.9, 48)
    return [FedAvg(step_size=s / smoothness, local_steps=steps) for s in fine]


def _server_gd(problem: Problem, steps: int) -> list:
    smoothness, _, _ = _curvature(problem)
    fine = np.geomspace(0.05, 1.95, 48)
    return [ServerGD(step_size=s / smoothness) for s in fine]


def _fed_prox(problem: Problem, steps: int) -> list:
    _, total, best = _curvature(problem)
    return [
        FedProx(
            eta=2 * best * r,
            step_size=f * 2 / (total + 2 / (best * r)),
            local_steps=steps,
        )
        for r, f in product(PENALTIES, FRACTIONS)
    ]


GRIDS: dict[type, Grid] = {
    FedPLT: _fed_plt,
    FedPD: _fed_pd,
    FedLin: _fed_lin,
    TAMUNA: _tamuna,
    LED: _led,
    FiveGCS: _five_gcs,
    FedSplit: _fed_split,
    ProxSkip: _prox_skip,
    FedAvg: _fed_avg,
    FedProx: _fed_prox,
    ServerGD: _server_gd,
}

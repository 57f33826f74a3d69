"""What a round costs (Table II), and the settings that cost least."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacita.check import between, count, not_negative, one_of, refuse
from tacita.theory.fed_plt.mean_square import mean_square_rate
from tacita.theory.fed_plt.one_round import (
    best_rho,
    best_step_size,
    fewest_local_steps,
    is_stable,
    rate,
    transition_matrix,
)
from tacita.theory.fed_plt.quadratics import quadratic_rate
from tacita.theory.fed_plt.settings import Reals, moduli_of, reals, whole_steps

THEOREMS = ("quadratic", "contraction")


def round_cost(
    local_steps: Reals,
    t_grad: Reals,
    t_comm: Reals,
    agents: Reals = 1,
    *,
    exchanges: int = 1,
) -> Reals:
    """The time of one round, (Ne t_G + t_C) N (Table II).

    Args:
        local_steps: Ne, gradients per agent and round.
        t_grad: Time of one local gradient.
        t_comm: Time of one exchange with the coordinator.
        agents: Agents active in a round, or their mean number.
        exchanges: 2 for FedLin, which also takes a gradient before the second
            exchange: ((Ne + 1) t_G + 2 t_C) N.

    >>> float(round_cost(5, 1, 10, 100)), float(round_cost(5, 1, 10, 100, exchanges=2))
    (1500.0, 2600.0)
    """
    gradients = whole_steps(local_steps) + count(exchanges=exchanges) - 1
    t_grad = reals(not_negative, t_grad=t_grad)
    t_comm = reals(not_negative, t_comm=t_comm)
    return (gradients * t_grad + exchanges * t_comm) * reals(agents=agents)


def expected_rounds(contraction: Reals, accuracy: Reals) -> Reals:
    """Rounds until the distance is `accuracy` times the first: log(acc)/log(rate).

    A real number, to be rounded up to run; infinite where `contraction` is >= 1.

    >>> float(expected_rounds(0.1, 1e-6))
    6.0
    """
    accuracy = between(0.0, 1.0)(accuracy=reals(accuracy=accuracy))
    contraction = reals(not_negative, contraction=contraction)
    # A rate of 0 counts as the smallest number above it: less than one round.
    shrink = -np.log(np.clip(contraction, np.finfo(float).tiny, 1))
    with np.errstate(divide="ignore"):
        return np.where(shrink > 0, -np.log(accuracy) / shrink, np.inf)[()]


class Plan(NamedTuple):
    """Settings for Fed-PLT and what the theory predicts of them.

    Attributes:
        rho: Penalty of the proximal term.
        step_size: Step of the local solver.
        local_steps: Local steps a round.
        rate: Predicted contraction a round, mean-square if participation < 1.
        rounds: Predicted rounds to the accuracy asked for.
        cost: Predicted time, rounds times `round_cost`.
        guaranteed: Whether S is stable: convergence from any start is proven, not
            for quadratics only.
    """

    rho: float
    step_size: float
    local_steps: int
    rate: float
    rounds: int
    cost: float
    guaranteed: bool


def plan(
    strong_convexity: Reals,
    smoothness: Reals,
    t_grad: float,
    t_comm: float,
    *,
    agents: int = 1,
    accuracy: float = 1e-6,
    participation: float = 1.0,
    solver: str = "gradient",
    theorem: str = "quadratic",
) -> Plan:
    """The rho, step size and local steps that reach `accuracy` at the least cost.

    Minimises log(accuracy)/log(rate) * round_cost on a grid around `best_rho`, then
    on finer ones. The step size is `best_step_size`, the best for every bound on S.

    Args:
        strong_convexity: Smallest curvature, one number or one per agent.
        smoothness: Largest curvature, one number or one per agent.
        t_grad: Time of one local gradient.
        t_comm: Time of one exchange with the coordinator.
        agents: How many agents there are; scales the cost only.
        accuracy: Distance at the end over that at the start, in the weighted norm.
        participation: Probability that an agent is active in a round.
        solver: "gradient" or "accelerated".
        theorem: "quadratic" predicts with `quadratic_rate`, which is close to what
            is seen; "contraction" with S, which holds for every cost of the class
            but asks for more local steps.

    >>> plan(0.5, 2.0, t_grad=1, t_comm=10).local_steps
    4
    """
    one_of(THEOREMS, theorem=theorem)
    low, high, _ = moduli_of(strong_convexity, smoothness, 1.0)
    # In units in which the largest curvature is 1, so that the plan is the same in all.
    unit = high.max()
    low, high = low.min() / unit, 1.0
    if t_grad == 0 and t_comm == 0:
        refuse("expected t_grad > 0 or t_comm > 0, got both 0; there is no cost to cut")
    active = agents * participation

    def predict(rho: Reals, steps: Reals, points: int = 9) -> tuple[Reals, Reals]:
        if theorem == "contraction":
            full = rate(transition_matrix(low, high, rho, steps, solver=solver))
        else:
            setting = low, high, rho, steps
            full = quadratic_rate(*setting, solver=solver, points=points)
        sigma = mean_square_rate(full, participation)
        rounds = expected_rounds(sigma, accuracy)
        return sigma, rounds * round_cost(steps, t_grad, t_comm, active)

    rho, steps = _cheapest(lambda *at: predict(*at)[1], low, high, solver)
    sigma, _ = predict(rho, steps, points=129)
    rounds = int(np.ceil(expected_rounds(sigma, accuracy)))
    own_step = 1 / (high + 1 / rho)
    step = own_step if solver == "accelerated" else best_step_size(low, high, rho)
    cost = rounds * round_cost(steps, t_grad, t_comm, active)
    stable = is_stable(transition_matrix(low, high, rho, steps, solver=solver))
    lengths = float(rho / unit), float(step / unit)
    return Plan(*lengths, steps, float(sigma), rounds, float(cost), bool(stable))


def _cheapest(cost: Any, low: Reals, high: Reals, solver: str) -> tuple[float, int]:
    """Minimise cost(rho, local_steps): a coarse grid, then finer ones around the best.

    Past a few times the steps that make S stable more of them gain nothing.
    """
    centre = float(best_rho(low, high))
    most = 4 * fewest_local_steps(low, high, centre, solver=solver) + 8
    best = centre, most
    rhos = centre * np.geomspace(0.01, 100, 33)
    steps = np.unique(np.geomspace(1, most, 24).astype(int))
    for _ in range(5):
        costs = cost(rhos[:, None], steps)
        row, column = np.unravel_index(np.argmin(costs), costs.shape)
        best = float(rhos[row]), int(steps[column])
        near = rhos[max(row - 1, 0) : row + 2]
        around = steps[max(column - 1, 0) : column + 2]
        rhos = np.unique(np.append(np.geomspace(near[0], near[-1], 9), near))
        between = np.linspace(around[0], around[-1], 9).astype(int)
        steps = np.unique(np.append(between, around))
    return best

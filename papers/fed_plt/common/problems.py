"""The test problems of both versions of the paper, from a seed.

Neither version says how its data were drawn. These generators are the ones that agree
with most printed numbers; `papers/fed_plt/README.md` says which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import tacita
from tacita.problem.model.regulariser import NonConvex

#: Weight of the regulariser in the revised version.
EPSILON = 0.5
#: Rows of an agent in the first version, which sums losses where Tacita averages them.
ROWS = 20
#: Added to a repetition's number, so that the starting point is drawn apart from data.
_START_SEEDS = 10_000
#: Repetitions are numbered 1, 2, ...; the instances for tuning are none of them.
TUNING_SEEDS = (1001, 1002, 1003, 1004)


class Instance(NamedTuple):
    """A problem and where the agents start, (d,) or (N, d)."""

    problem: tacita.Problem
    start: np.ndarray


Make = Callable[[int], Instance]


def gaussian_start(seed: int, shape: int | tuple[int, ...]) -> np.ndarray:
    """x0 ~ N(0, I), from NumPy's legacy generator."""
    return np.random.RandomState(seed).standard_normal(shape)


def revised(
    seed: int,
    *,
    features: int = 5,
    convex: bool = True,
    heterogeneous: bool = False,
    start_seed: int | None = None,
) -> Instance:
    """Revised version: N = 100 agents, 250 rows each, mean logistic loss + 0.5 r(x).

    All rows are one draw of scikit-learn's `make_classification` dealt out in order;
    with `heterogeneous` every agent has a draw of its own. r is ||x||^2/2, or the
    non-convex sum_j x_j^2/(1 + x_j^2). All agents start at the same x0 ~ N(0, I).
    """
    problem = tacita.problem.synthetic.logistic(
        agents=100,
        features=features,
        samples=250,
        l2=EPSILON,
        regulariser=None if convex else NonConvex(weight=EPSILON),
        seed=seed,
        heterogeneous=heterogeneous,
    )
    number = _START_SEEDS + seed if start_seed is None else start_seed
    return Instance(problem, gaussian_start(number, features))


def first(seed: int) -> Instance:
    """First version: N = 10 agents, 20 rows, 15 features and an intercept.

    The rates that the paper prints need the *sum* of the 20 losses and weight 0.5:

        f_i(x) = sum_h log(1 + exp(-b_h a_h x)) + (0.5/2) ||x||^2 = 20 F_i(x),

    where F_i has the mean loss and weight 0.5/20. Tacita minimises F_i. Every method
    here sees its cost through step * gradient and rho * cost only, so (rho, gamma) for
    f_i are (20 rho, 20 gamma) for F_i: the iterates are the same. A noise of
    sqrt(2 gamma) tau for f_i is sqrt(2 20 gamma) tau/sqrt(20) for F_i.

    a ~ N(0, I), b = sign(a x_true + N(0, 1)) with one x_true ~ N(0, I) for all, and
    every agent starts at a point of its own, x0_i ~ N(0, I).
    """
    agents, features = 10, 15
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((agents * ROWS, features))
    truth = rng.standard_normal(features + 1)
    noise = rng.standard_normal(agents * ROWS)
    labels = np.sign(rows @ truth[:-1] + truth[-1] + noise)
    problem = tacita.from_arrays(
        rows,
        labels,
        np.repeat(np.arange(agents), ROWS),
        model="logistic",
        l2=EPSILON / ROWS,
        intercept=True,
        name=f"Fed-PLT, first version, seed {seed}",
    )
    return Instance(problem, rng.standard_normal((agents, features + 1)))

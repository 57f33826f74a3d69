"""Synthetic problems, made from a seed: the same arguments give the same problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita import check
from tacita.problem.arrays import from_arrays
from tacita.problem.gaussian_clusters import LARGEST_SEED, two_clusters
from tacita.problem.model.regulariser import Regulariser
from tacita.problem.problem import Problem


def logistic(
    agents: int = 100,
    features: int = 5,
    samples: int = 250,
    l2: float = 0.5,
    seed: int = 0,
    *,
    heterogeneous: bool = False,
    regulariser: Regulariser | None = None,
    h: Any = None,
    graph: Any = None,
    dtype: Any = None,
    bound: float | None = None,
) -> Problem:
    """Logistic regression on Gaussian clusters, `samples` rows at each agent.

    The rows are those of scikit-learn's `make_classification` with one cluster per
    class: one draw dealt out in order (all agents alike), or, with `heterogeneous`,
    one draw per agent (every agent with clusters of its own).

    >>> problem = logistic(agents=3, features=4, samples=10)
    >>> problem.n_agents, problem.dim, problem.counts.tolist()
    (3, 4, [10, 10, 10])
    """
    check.count(agents=agents)
    check.count(features=features)
    check.count(at_least=2, samples=samples)
    check.seed(LARGEST_SEED, seed=seed)
    if heterogeneous:
        seeds = np.random.SeedSequence(seed).generate_state(agents)
        parts = [two_clusters(samples, features, int(s)) for s in seeds]
        x = np.concatenate([p[0] for p in parts])
        y = np.concatenate([p[1] for p in parts])
    else:
        x, y = two_clusters(agents * samples, features, seed)
    agent = np.repeat(np.arange(agents), samples)
    return from_arrays(
        x,
        2 * y - 1,
        agent,
        model="logistic",
        l2=l2,
        h=h,
        graph=graph,
        regulariser=regulariser,
        dtype=dtype,
        bound=bound,
        name=f"synthetic logistic, seed {seed}",
    )


def linear(
    agents: int = 20,
    features: int = 5,
    samples: int = 50,
    noise: float = 0.1,
    l2: float = 0.0,
    seed: int = 0,
    *,
    spread: float = 0.0,
    graph: Any = None,
    h: Any = None,
    dtype: Any = None,
    bound: float | None = None,
) -> Problem:
    """Linear regression y = X w_i + noise with w_i = w + spread * N(0, I).

    With `spread = 0` all agents share one true model; the larger it is, the more they
    differ.
    """
    check.count(agents=agents)
    check.count(features=features)
    check.count(samples=samples)
    check.seed(seed=seed)
    check.not_negative(noise=noise)
    check.not_negative(spread=spread)
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=features) + spread * rng.normal(size=(agents, features))
    x = rng.normal(size=(agents, samples, features))
    y = np.einsum("nmd,nd->nm", x, truth) + noise * rng.normal(size=(agents, samples))
    return from_arrays(
        x.reshape(-1, features),
        y.ravel(),
        np.repeat(np.arange(agents), samples),
        model="linear",
        l2=l2,
        h=h,
        graph=graph,
        dtype=dtype,
        bound=bound,
        name=f"synthetic linear, seed {seed}",
    )

"""The weighted mean of the letters that are heard."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tacita.aggregation.rule import Heard
from tacita.mesh.places import Places
from tacita.trees import frozen


@frozen
class Mean:
    """sum_i weight_i letter_i / sum_i weight_i, over the agents that are heard.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=4, features=3, samples=20)
    >>> run = tacita.simulate(problem, tacita.FedAvg(), rounds=2, aggregation=Mean())
    """

    @property
    def additive(self) -> bool:
        """Yes: it is the mean itself."""
        return True

    @property
    def least(self) -> int:
        """One letter is a mean."""
        return 1

    @property
    def bound(self) -> float | None:
        """A letter counts as far as it lies: its writer has to clip it."""
        return math.inf

    def bears(self, agents: int) -> int:
        """None: a single liar takes it anywhere."""
        return 0

    def kappa(self, agents: int, liars: int) -> float:
        """Infinite with a liar."""
        return math.inf if liars else 0.0

    def check(self, agents: int) -> None:
        """Serves any number."""

    def __call__(self, heard: Heard) -> Any:
        """The mean; zero where nobody is heard."""
        if heard.active is None:
            return mean_of(heard.weights, heard.letters, heard.places)
        weights = jnp.where(heard.active, heard.weights, 0)
        silent = jax.tree.map(jnp.zeros_like, heard.letters)
        letters = keep_silent(heard.active, heard.letters, silent)
        return mean_of(weights, letters, heard.places)


def keep_silent(active: Array, new: Any, old: Any) -> Any:
    """The new entries of active agents and the old ones of the silent."""

    def choose(a: Array, b: Array) -> Array:
        wide = active.reshape(active.shape + (1,) * (a.ndim - 1))
        return jnp.where(wide, a, b)

    return jax.tree.map(choose, new, old)


def mean_of(weights: Array, letters: Any, places: Places | None = None) -> Any:
    """The weighted mean over the first axis; zero where all weights are zero."""
    where = Places.of(len(weights)) if places is None else places
    return shared_out(where.sum(letters, weights), where.sum(weights))


def shared_out(sums: Any, total: Array) -> Any:
    """Sums of weighted letters, by the sum of the weights."""
    least = jnp.where(total > 0, total, 1)
    return jax.tree.map(lambda s: s / least.astype(s.dtype), sums)

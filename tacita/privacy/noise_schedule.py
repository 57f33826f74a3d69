"""Noise that differs between rounds: a schedule known before the run.

With every record in every round, independent noise is the best there is, up to how it
is spread over the rounds (docs/explanation-noise-schedule.md). Where models are a
linear function A of the noisy gradients, with columns a_t, the least error at a given
mu has

    std_t = std sqrt( mean_s |a_s| / |a_t| ),      mu_t^2 = mu^2 |a_t| / sum_s |a_s|

so that K rounds together cost what K rounds of constant noise `std` cost.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.privacy import inputs
from tacita.trees import frozen, ruled


def _column(**given: Any) -> Any:
    """Numbers, one for every round, as a column: not to be taken for one per agent."""
    ((name, weights),) = given.items()
    if isinstance(weights, list | tuple | np.ndarray):
        weights = np.asarray(weights, dtype=float).reshape(-1, 1)
        if not weights.size:
            check.refuse(f"expected {name} for at least one round, got none")
    return check.positive(**{name: weights})


@frozen
class NoiseSchedule:
    """What a round is worth: the heavier its weight, the less noise it gets.

    Attributes:
        weights: |a_t|, one for every round; the last one holds for all later rounds.
            Public numbers only: rounds, step sizes, momentum.

    >>> NoiseSchedule(weights=[4, 1]).multiples().round(4).tolist()
    [0.7906, 1.5811]
    """

    weights: Any = ruled(dataclasses.MISSING, _column, words="> 0, one per round")

    @classmethod
    def prefix(
        cls, rounds: int, *, momentum: float = 0.0, average: float = 0.0
    ) -> NoiseSchedule:
        """For small errors of all models of a run, on average.

        Args:
            rounds: K, of the whole run.
            momentum: How much of the last step is kept: v <- momentum v + g.
            average: The published model is m <- average m + (1 - average) w.

        >>> NoiseSchedule.prefix(4).multiples().round(4).tolist()
        [0.8765, 0.9419, 1.0424, 1.2396]
        """
        from scipy.signal import lfilter  # loads slowly, and is needed here only

        rounds = inputs.whole(rounds=rounds)
        # What a gradient adds to the model, by its age; then the norm of a column is
        # over the ages that it reaches by the end.
        moved = np.cumsum(float(momentum) ** np.arange(rounds))
        by_age = np.asarray(lfilter([1 - average], [1.0, -average], moved))
        return cls(weights=np.sqrt(np.cumsum(by_age**2))[::-1])

    @property
    def rounds(self) -> int:
        """How many rounds it was made for."""
        return np.shape(self.weights)[0]

    def multiple(self, number: Array | int) -> Array:
        """The noise of round `number` (the first is 1), in multiples of the usual."""
        weights = jnp.asarray(self.weights)[:, 0]
        here = weights[jnp.clip(number - 1, 0, self.rounds - 1)]
        return jnp.sqrt(weights.mean() / here)

    def multiples(self, rounds: int | None = None) -> np.ndarray:
        """The noise of every round, in multiples of the usual."""
        return self.of_rounds(np.arange(1, (rounds or self.rounds) + 1))

    def of_rounds(self, numbers: Any) -> np.ndarray:
        """The noise of these rounds, in multiples of the usual; the first is 1."""
        weights = np.asarray(self.weights)[:, 0]
        here = weights[np.minimum(numbers, self.rounds) - 1]
        return np.sqrt(weights.mean() / here)

    def least(self, turns: int, rounds: int) -> np.ndarray:
        """A lower bound on the noise of any `turns` rounds of a run of `rounds`."""
        return np.sort(self.multiples(max(rounds, self.rounds)))[:turns]

    @property
    def early(self) -> float:
        """The part of the budget (in mu^2) that the first half of the rounds spends."""
        weights = np.asarray(self.weights)[:, 0]
        return float(weights[: self.rounds // 2].sum() / weights.sum())

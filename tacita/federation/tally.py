"""The letters of an exchange as they come: added up for a mean, kept for other rules.

Where the coordinator joins everybody's last letter, agents send what changed in it,
and `kept` is what stays valid between rounds: the running mean, or all letters.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita.aggregation import Aggregation, Heard
from tacita.federation.exact_sum import ExactSum
from tacita.federation.shapes import Form, to_list
from tacita.federation.wire import require_bounded
from tacita.runtime.rounds import rule_key


class SumTally:
    """A mean: a letter is added to a sum the moment it comes and then forgotten."""

    def __init__(self, weights: np.ndarray) -> None:
        self._weights = weights
        self.kept: list[np.ndarray] = []
        self.least = 1

    def open(self, form: Form, centre: object) -> None:
        """Nothing was added yet."""
        self._total, self._weight = ExactSum(form.zeros()), 0.0

    def add(self, agent: int, letter: Sequence[np.ndarray]) -> None:
        """Add the letter times its weight; the order does not matter."""
        self._total.add(letter, self._weights[agent])
        self._weight += float(self._weights[agent])

    def close(self, keep: bool, key: Array) -> list[np.ndarray]:
        """The mean, or the running mean after these changes."""
        sums = self._total.values()
        if not keep:
            return [s / max(self._weight, 1e-300) for s in sums]
        whole, before = self._weights.sum(), self.kept or [0.0] * len(sums)
        self.kept = [m + s / whole for m, s in zip(before, sums, strict=True)]
        return self.kept


class LetterTally:
    """Any rule: all letters of an exchange are held until it closes."""

    def __init__(self, rule: Aggregation, weights: np.ndarray) -> None:
        self._rule, self._weights = rule, weights
        self.kept: list[np.ndarray] = []
        self.least = rule.least

    def open(self, form: Form, centre: object) -> None:
        """Nobody was heard yet; honest letters will lie around the centre."""
        self._form, self._centre = form, centre
        self._came: dict[int, Sequence[np.ndarray]] = {}

    def add(self, agent: int, letter: Sequence[np.ndarray]) -> None:
        """Hold the letter; a rule is not asked about what is not finite."""
        require_bounded(letter)
        self._came[agent] = letter

    def close(self, keep: bool, key: Array) -> list[np.ndarray]:
        """The rule's letter, agents in their order, whoever wrote first."""
        n = len(self._weights)
        active = np.isin(np.arange(n), list(self._came))
        stacked = [np.zeros((n, *part.shape)) for part in self._form.zeros()]
        if keep and self.kept:
            stacked = [part.copy() for part in self.kept]
        for agent, letter in self._came.items():
            for whole, part in zip(stacked, letter, strict=True):
                whole[agent] += part
        if keep:
            self.kept = stacked
        letters, weights = self._form.in_types(stacked), jnp.asarray(self._weights)
        heard = None if keep or active.all() else jnp.asarray(active)
        joint = _join(self._rule, Heard(letters, weights, heard, key, self._centre))
        return to_list(joint)


@jax.jit
def _join(rule: Aggregation, heard: Heard) -> object:
    # As in a simulation: a key of the rule's own, out of the coordinator's.
    return rule(heard._replace(key=rule_key(heard.key)))


def tally_for(rule: Aggregation, weights: np.ndarray) -> SumTally | LetterTally:
    """Sums where they are enough, letters one by one elsewhere."""
    return SumTally(weights) if rule.additive else LetterTally(rule, weights)

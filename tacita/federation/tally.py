"""The letters of an exchange as they come: added up for a mean, kept for other rules.

Where the coordinator joins everybody's last letter, agents send what changed in it,
and `kept` is what stays valid between rounds: the running mean, or all letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from tacita.aggregation import Aggregation, Heard
from tacita.aggregation.robust_rule import RobustRule
from tacita.federation.exact_sum import ExactSum
from tacita.federation.shapes import Form, to_list
from tacita.federation.wire import require_bounded
from tacita.robust.detection import SIGNS, look
from tacita.runtime.world import rule_key


class Seen(NamedTuple):
    """How letters lay among each other: for people to look at, never acted upon.

    Post-processing of letters that the coordinator has seen, for its own house.

    Attributes:
        last: Of the last exchange, (signs, agents); not a number for who was silent.
        heard: In how many exchanges every agent was heard since the program began.
        used: Of how many letters of every agent, in all, the rule made use.
    """

    last: np.ndarray
    heard: np.ndarray
    used: np.ndarray

    def after(self, table: np.ndarray) -> Seen:
        """With one more exchange."""
        used = table[SIGNS.index("used")]
        heard = self.heard + np.isfinite(used)
        return Seen(table, heard, self.used + np.nan_to_num(used))

    def told(self, agents: Sequence[str]) -> dict[str, dict[str, float]]:
        """By agent, of those that were heard: what its letters looked like."""
        return {
            name: {
                **dict(zip(SIGNS, self.last[:, i].tolist(), strict=True)),
                "letters": int(self.heard[i]),
                "times_used": float(self.used[i]),
            }
            for i, name in enumerate(agents)
            if np.all(np.isfinite(self.last[:, i]))
        }


class SumTally:
    """A mean: a letter is added to a sum the moment it comes and then forgotten."""

    def __init__(self, weights: np.ndarray) -> None:
        self._weights = weights
        self.kept: list[np.ndarray] = []
        self.least, self.seen = 1, None
        #: What the letters count for that came, by agent.
        self._came: dict[int, float] = {}

    def open(self, form: Form, centre: object) -> None:
        """Nothing was added yet."""
        self._total, self._came = ExactSum(form.zeros()), {}

    def add(
        self, agent: int, letter: Sequence[np.ndarray], freshness: float = 1.0
    ) -> None:
        """Add the letter times its weight; the order does not matter."""
        self._total.add(letter, self._weights[agent] * freshness)
        self._came[agent] = freshness

    @property
    def _weight(self) -> float:
        # Added up in the order of the agents, whoever came first.
        came = sorted(self._came)
        return sum(self._weights[agent] * self._came[agent] for agent in came)

    @property
    def fresh(self) -> float:
        """What letters count for on average; 1 if none is late."""
        whole = self._weights[sorted(self._came)].sum()
        return float(self._weight / whole) if whole else 1.0

    def close(self, keep: bool, key: Array, watch: bool = True) -> list[np.ndarray]:
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
        self.least, n = rule.least, len(weights)
        self.seen = Seen(np.full((len(SIGNS), n), np.nan), np.zeros(n), np.zeros(n))

    def open(self, form: Form, centre: object) -> None:
        """Nobody was heard yet; honest letters will lie around the centre."""
        self._form, self._centre = form, centre
        self._came: dict[int, Sequence[np.ndarray]] = {}

    #: Rules other than the mean join letters that are in step.
    fresh = 1.0

    def add(
        self, agent: int, letter: Sequence[np.ndarray], freshness: float = 1.0
    ) -> None:
        """Hold the letter; a rule is not asked about what is not finite."""
        require_bounded(letter)
        self._came[agent] = letter

    def close(self, keep: bool, key: Array, watch: bool = True) -> list[np.ndarray]:
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
        given = Heard(letters, weights, heard, key, self._centre)
        joint = _join(self._rule, given)
        if watch and self._came:
            self.seen = self.seen.after(np.asarray(_look(self._rule, given, joint)))
        self._came = {}
        return to_list(joint)


@jax.jit
def _join(rule: Aggregation, heard: Heard) -> object:
    # As in a simulation: a key of the rule's own, out of the coordinator's.
    return rule(heard._replace(key=rule_key(heard.key)))


@jax.jit
def _look(rule: Aggregation, heard: Heard, joint: object) -> Array:
    return look(RobustRule().vectors(heard), ravel_pytree(joint)[0], rule)


def tally_for(rule: Aggregation, weights: np.ndarray) -> SumTally | LetterTally:
    """Sums where they are enough, letters one by one elsewhere."""
    return SumTally(weights) if rule.additive else LetterTally(rule, weights)

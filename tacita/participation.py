"""Who is active in a round: everyone, each with its own chance, or K of N."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.sampling import cohort
from tacita.trees import frozen, static


@frozen
class Schedule:
    """Participation, as a traced record.

    Attributes:
        chance: Probability that an agent is active, one number or one per agent.
        kind: "all", "bernoulli" (independent draws) or "cohort" (exactly `size`).
        size: Number of active agents of a cohort.
        block: How many active agents are computed together when few are expected:
            0 computes everyone and keeps the silent ones' old state.
    """

    chance: Any = 1.0
    kind: str = static(default="all")
    size: int = static(default=0)
    block: int = static(default=0)

    def cohort(self, key: Array, n: int) -> Array:
        """The active agents' numbers, sorted, of a cohort schedule."""
        return cohort(key, n, self.size)

    def mask(self, key: Array, n: int) -> Array:
        """Who is active, as booleans, of a Bernoulli schedule."""
        return jax.random.uniform(key, (n,)) < self.chance

    def active(self, key: Array, n: int) -> Array:
        """Who is active, as booleans, whatever the kind."""
        if self.kind == "all":
            return jnp.ones(n, bool)
        if self.kind == "cohort":
            return jnp.zeros(n, bool).at[self.cohort(key, n)].set(True)
        return self.mask(key, n)

    def chance_of(self, agent: int) -> float:
        """One agent's chance of a Bernoulli schedule."""
        chance = np.asarray(self.chance)
        return float(chance[agent] if chance.ndim else chance)

    def expected(self, n: int) -> float:
        """The expected number of active agents in a round."""
        if self.kind == "cohort":
            return float(self.size)
        return float(np.sum(np.broadcast_to(np.asarray(self.chance), (n,))))


def schedule_for(participation: Any, n: int, lanes: bool = False) -> Schedule:
    """Read what the user gave: float p, int K of N, or an array of p_i.

    >>> schedule_for(1.0, 10).kind, schedule_for(3, 10).size
    ('all', 3)
    >>> schedule_for(0, 10)
    Traceback (most recent call last):
    tacita.check.TacitaError: expected participation of 1 to 10 agents, got participation=0
    """  # noqa: E501
    if isinstance(participation, bool) or participation is None:
        check.refuse(f"expected participation a number, got {participation!r}")
    if isinstance(participation, int | np.integer):
        k = int(participation)
        if not 1 <= k <= n:
            check.refuse(
                f"expected participation of 1 to {n} agents, got participation={k}"
            )
        return Schedule() if k == n else Schedule(kind="cohort", size=k)
    try:
        chance = np.asarray(participation, dtype=float)
    except (TypeError, ValueError):
        check.refuse(
            "expected participation a probability in (0, 1], a whole number of agents "
            f"or an array of probabilities, got participation={participation!r}"
        )
    if chance.ndim > 0:
        check.shape((n,), participation=chance)
    inside = np.isfinite(chance) & (chance > 0) & (chance <= 1)
    if not np.all(inside):
        shown = chance if chance.ndim == 0 else chance[~inside][0]
        check.refuse(
            "expected participation a probability in (0, 1], a whole number of agents "
            f"or an array of probabilities, got participation={shown}"
        )
    if np.all(chance == 1):
        return Schedule()
    value = float(chance) if chance.ndim == 0 else chance
    return Schedule(chance=value, kind="bernoulli", block=_block(chance, n, lanes))


def _block(chance: np.ndarray, n: int, lanes: bool) -> int:
    """Room for the number of active agents that two standard deviations allow.

    Half of all agents, or a quarter, an eighth, ...: another probability then mostly
    runs in the same compiled program.
    """
    each = np.broadcast_to(chance, (n,))
    likely = each.sum() + 2 * math.sqrt(float(np.sum(each * (1 - each))))
    # Several seeds run in lockstep, where a loop over blocks would not save work.
    if lanes or likely > n / 2:
        return 0
    return math.ceil(n / 2 ** math.floor(math.log2(n / likely)))

"""Who draws which randomness. Every key is derived, none is global.

In simulation all keys come from one seed. In a real federation each party's come from
a secret of its own, and only who is active on a graph from the run description: noise
that others can compute is no noise.

Each derivation is one hash, since compiling hashes is what makes compilation slow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
from jax import Array

#: Most exchanges that one round may have.
MOST_PHASES = 4


class Keys(NamedTuple):
    """The roots of a simulation's randomness."""

    agents: Array
    schedule: Array
    coordinator: Array


def from_seed(seed: Any) -> Keys:
    """The roots that all keys of a simulation derive from."""
    agents, schedule, coordinator = jax.random.split(jax.random.key(seed), 3)
    return Keys(agents, schedule, coordinator)


def agent_secret(keys: Keys, agent: Any) -> Array:
    """Agent i's secret in a simulation."""
    return jax.random.fold_in(keys.agents, agent)


def agent_key(secret: Array, round_number: Any, phase: int) -> Array:
    """An agent's key in one exchange of one round."""
    return jax.random.fold_in(secret, MOST_PHASES * round_number + phase)


def schedule_key(keys: Keys, round_number: Any) -> Array:
    """The key that decides who is active in a round."""
    return jax.random.fold_in(keys.schedule, round_number)


def coordinator_key(keys: Keys, round_number: Any, phase: int) -> Array:
    """The coordinator's key in one exchange of one round."""
    return jax.random.fold_in(keys.coordinator, MOST_PHASES * round_number + phase)

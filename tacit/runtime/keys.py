"""Who draws which randomness. Every key is derived, none is global.

In simulation all keys come from one seed. In a real federation the coordinator's and
the schedule's key come from the run description, and each agent's secret from its own
operating system: noise whose seed the coordinator knows is no noise.
"""

from __future__ import annotations

from typing import Any

import jax
from jax import Array

_AGENTS, _SCHEDULE, _COORDINATOR = 1, 2, 3


def from_seed(seed: Any) -> Array:
    """The key that all keys of a simulation derive from."""
    return jax.random.key(seed)


def agent_secret(base: Array, agent: Any) -> Array:
    """Agent i's secret in a simulation."""
    return jax.random.fold_in(jax.random.fold_in(base, _AGENTS), agent)


def agent_key(secret: Array, round_number: Any, phase: int) -> Array:
    """An agent's key in one exchange of one round."""
    return jax.random.fold_in(jax.random.fold_in(secret, round_number), phase)


def schedule_key(base: Array, round_number: Any) -> Array:
    """The key that decides who is active in a round."""
    return jax.random.fold_in(jax.random.fold_in(base, _SCHEDULE), round_number)


def coordinator_key(base: Array, round_number: Any, phase: int) -> Array:
    """The coordinator's key in one exchange of one round."""
    own = jax.random.fold_in(jax.random.fold_in(base, _COORDINATOR), round_number)
    return jax.random.fold_in(own, phase)

"""Gradient steps of one agent in a round, as many algorithms take them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Number, Tree
from tacita.problem.oracles import AgentOracle


def gradient_steps(
    key: Array, oracle: AgentOracle, w: Array, step_size: Number, steps: int
) -> Array:
    """`steps` gradient steps from w: w <- w - step_size * g(w)."""
    return descend(key, oracle, w, steps, lambda v, g: v - step_size * g)


def descend(
    key: Array,
    oracle: AgentOracle,
    w: Array,
    steps: int,
    update: Callable[[Array, Array], Array],
    own: Number = None,
) -> Array:
    """`steps` times w <- update(w, g) with g the oracle's gradient at w.

    An agent with an `own` number of steps stops after those.
    """

    def body(v: Array, now: tuple[Tree, Array]) -> tuple[Array, None]:
        draw, number = now
        after = update(v, oracle(draw, v))
        return (after if own is None else jnp.where(number < own, after, v)), None

    numbers = jnp.arange(steps)
    return jax.lax.scan(body, w, (oracle.draws(key, steps), numbers), length=steps)[0]


def check_own_steps(own: Number, steps: int) -> None:
    """Refuse an agent with more steps of its own than there are in a round."""
    if own is not None and np.max(own) > steps:
        check.refuse(
            f"expected own_steps at most local_steps={steps}, got "
            f"{int(np.max(own))}; raise local_steps"
        )

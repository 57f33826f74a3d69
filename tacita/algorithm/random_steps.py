"""Local training with a number of steps that is drawn, not fixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tacita.problem.oracles import AgentOracle
from tacita.trees import tree_rows

#: Draws that an oracle is asked for at a time, for the number of steps has no bound. A
#: sampling that spans the steps, as a permutation of the rows, starts anew after them.
DRAWS_AT_ONCE = 16

#: Why such training has no account by composition.
UNBOUNDED = "its number of local steps is a geometric draw without a bound"


#: A draw of more than so many times its mean has a chance below 1e-27.
_MOST_MEANS = 64


def geometric(key: Array, probability: Any) -> Array:
    """How many steps until an event of this probability: 1, 2, ..., mean 1/p."""
    drawn = jax.random.geometric(key, probability, dtype=jnp.int32)
    return as_drawn(drawn, probability)


def as_drawn(steps: Array, probability: Any) -> Array:
    """A number of steps that somebody told: no more than can have been drawn.

    A coordinator may tell agents anything, and would have them train for ever.
    """
    most = jnp.minimum(_MOST_MEANS / jnp.asarray(probability), 2.0**30)
    return jnp.minimum(steps, most.astype(steps.dtype))


def blocks(steps: int) -> tuple[int, ...]:
    """The calls of `draws` that so many steps make, and the gradients of each.

    >>> blocks(40)
    (16, 16, 8)
    """
    whole, rest = divmod(steps, DRAWS_AT_ONCE)
    return (DRAWS_AT_ONCE,) * whole + (rest,) * (rest > 0)


def descend(
    key: Array,
    oracle: AgentOracle,
    w: Array,
    steps: Array,
    update: Callable[[Array, Array], Array],
) -> Array:
    """`steps` times w <- update(w, g); steps is traced, not static as elsewhere."""

    def block(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        done, v = carry
        draws = oracle.draws(jax.random.fold_in(key, done), DRAWS_AT_ONCE)

        def step(j: Array, x: Array) -> Array:
            return update(x, oracle(tree_rows(draws, j), x))

        todo = jnp.minimum(steps - done, DRAWS_AT_ONCE)
        return done + DRAWS_AT_ONCE, jax.lax.fori_loop(0, todo, step, v)

    first = (jnp.zeros((), steps.dtype), w)
    return jax.lax.while_loop(lambda carry: carry[0] < steps, block, first)[1]

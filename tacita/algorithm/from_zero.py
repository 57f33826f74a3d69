"""Local steps parted into what rows add and what everybody can compute without them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tacita.algorithm.base import ModelState, Number, Round
from tacita.problem.oracles import AgentOracle


class StepsFromZero:
    """Letters of local steps as a secure sum takes them: what rows add to the model."""

    step_size: Number
    local_steps: int

    def increment(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """How far rows move the model in the local steps.

        The agent keeps what it was told: its own model has no noise, for the sum has.
        """
        steps = (self.step_size, self.local_steps)
        return ModelState(inbox), steps_from_zero(key, oracle, inbox, *steps)

    def joined(self, kept: tuple, told: Array, mean: Array, now: Round) -> Array:
        """The model told, moved by the regulariser and by rows."""
        steps = (self.step_size, self.local_steps)
        return told + steps_without_rows(now.regulariser, told, *steps) + mean


def steps_from_zero(
    key: Array, oracle: AgentOracle, w: Array, step_size: Number, steps: int
) -> Array:
    """What rows add to a model in `steps` gradient steps from w.

    The regulariser's gradient is linear, so that a step parts into what everybody can
    compute, c (`steps_without_rows`), and what rows add to it, v:

        v <- v - eta (g(w + c + v) + r(v)),   c <- c - eta r(w + c)
    """
    data, penalty = oracle.of_data, oracle.local.regulariser

    def body(pair: tuple[Array, Array], draw: Any) -> tuple[tuple[Array, Array], None]:
        c, v = pair
        g = data(draw, w + c + v)
        v = v - step_size * (g + penalty.grad(v))
        return (c - step_size * penalty.grad(w + c), v), None

    start = (jnp.zeros_like(w), jnp.zeros_like(w))
    return jax.lax.scan(body, start, oracle.draws(key, steps), length=steps)[0][1]


def steps_without_rows(
    regulariser: Any, w: Array, step_size: Number, steps: int
) -> Array:
    """By how much `steps` steps along a regulariser alone move w."""

    def body(_: Any, c: Array) -> Array:
        return c - step_size * regulariser.grad(w + c)

    return jax.lax.fori_loop(0, steps, body, jnp.zeros_like(w))

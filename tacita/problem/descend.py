"""Gradient descent that watches itself: learning rate, projection, stopping.

A. Jung, "Federated Learning: From Theory to Practice", Algorithm 2 with section 4.3:
the learning rate is lowered where the objective does not fall by enough, and the steps
end where it hardly changes. With a projection it is projected gradient descent, (91).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.trees import in_double_precision

#: A step that was accepted is followed by a slightly bolder one.
_BOLDER = 1.25


class Descent(NamedTuple):
    """Where descent ended.

    Attributes:
        w: The point.
        value: The objective there.
        steps: Gradients that were computed, those of refused steps included.
        step_size: The learning rate of the last step.
        converged: Whether the objective had stopped changing.
    """

    w: np.ndarray
    value: float
    steps: int
    step_size: float
    converged: bool


@in_double_precision
def descend(
    objective: Callable[[Array], Array],
    start: Any,
    *,
    step_size: float = 1.0,
    project: Callable[[Array], Array] = lambda w: w,
    least_change: float = 1e-14,
    most_steps: int = 10_000,
) -> Descent:
    """Minimise a differentiable function of one vector.

    A step w' = P(w - eta g) is taken if f(w') <= f(w) + g.(w' - w) + ||w' - w||^2 /
    (2 eta), which holds for eta <= 1/smoothness; otherwise eta is halved.

    Args:
        objective: What is minimised, written with `jax.numpy`.
        start: Where to begin.
        step_size: The first learning rate; too large a one is lowered.
        project: Onto the constraint set, (90); by default there is none.
        least_change: Ends the steps: where the objective changes by less, relative to
            its size, to which that at the start is added, up to 1.
        most_steps: Ends them as well.

    >>> found = descend(lambda w: jnp.sum((w - 3.0) ** 2), jnp.zeros(2), step_size=9.0)
    >>> found.converged, found.w.round(6).tolist()
    (True, [3.0, 3.0])
    """
    check.positive(step_size=step_size)
    check.not_negative(least_change=least_change)
    check.count(most_steps=most_steps)
    w = project(jnp.asarray(np.asarray(check.finite(start=start), float)))
    value = jnp.asarray(objective(w))
    if value.shape != ():
        check.refuse(f"expected objective of one number, got shape {value.shape}")
    if not bool(jnp.isfinite(value)):
        check.refuse(f"the objective is {float(value)} at start; begin elsewhere")
    ended = _descend(objective, project, w, step_size, least_change, most_steps)
    w, value, _, eta, steps, _, converged = ended
    return Descent(np.asarray(w), float(value), int(steps), float(eta), bool(converged))


@partial(jax.jit, static_argnums=(0, 1))
def _descend(objective, project, w, step_size, least_change, most_steps):
    slope = jax.value_and_grad(objective)

    def unfinished(state):
        return (state[4] < most_steps) & ~state[6]

    def step(state):
        w, value, gradient, eta, steps, refused, _ = state
        new = project(w - eta * gradient)
        moved = new - w
        new_value, new_gradient = slope(new)
        size = floor + jnp.abs(value)
        rounding = 4 * jnp.finfo(w.dtype).eps * size
        allowed = value + gradient @ moved + moved @ moved / (2 * eta) + rounding
        taken = (new_value <= allowed) & jnp.isfinite(new_value)
        # A change may be small because the step is: only once a longer one was refused
        # does it tell of the objective. Who does not move at all has arrived.
        still = refused | jnp.all(moved == 0)
        change = jnp.abs(value - new_value)
        done = taken & still & (change <= least_change * size)
        kept = (w, value, gradient, eta / 2)
        bolder = (new, new_value, new_gradient, _BOLDER * eta)
        chosen = jax.tree.map(lambda a, b: jnp.where(taken, a, b), bolder, kept)
        return (*chosen, steps + 1, refused | ~taken, done)

    value, gradient = slope(w)
    # An objective that falls to zero has no size of its own there.
    floor = jnp.minimum(1, jnp.abs(value))
    eta = jnp.asarray(step_size, w.dtype)
    never = jnp.array(False)
    return jax.lax.while_loop(
        unfinished, step, (w, value, gradient, eta, 0, never, never)
    )

"""Damped Newton steps to the root of a residual, and the exact proximal point by them.

Progress is measured by the length of the residual: unlike values of the loss, which
round off at a distance of 1e-8 from the answer, it can be followed to rounding. But a
residual may be short far away from the answer, where a loss is nearly straight, as
Huber's is: where steps end too early, values of the loss lead on (`finished`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tacita.problem import units
from tacita.problem.model.linear import Huber, Logistic, Softmax
from tacita.problem.model.per_agent import PerAgent

#: Newton steps after which `root` gives up; it stops by itself long before.
_MOST_STEPS = 50

#: Steps after which `finished` gives up.
_MOST_MORE = 2000

#: So many roundings are taken for zero.
_ROUNDINGS = 100

#: Lengths of a Newton step that are tried, in this order.
_SIZES = (1.0, 0.5, 0.25, 0.0625)
#: Where none of them helps and the residual is still far from zero, so much shorter
#: ones, down to the shortest.
_SHORTER, _SHORTEST, _FAR = 2.0**-8, 2.0**-24, 1e-10


def residual_of(local: Any, v: Array, rho: Any) -> Callable[[Array], Array]:
    """The slope grad f_i(w) + (w - v)/rho, which is zero at prox_{rho f_i}(v)."""
    return lambda w: local.grad(w) + (w - v) / rho


def shortest(matrix: Array, right: Array) -> Array:
    """The shortest x with matrix x = right, for matrices without full rank.

    What is curved by rounding only counts as flat, and does not move x.
    """
    return jnp.linalg.lstsq(matrix, right, rcond=1e-12)[0]


def newton_step(
    residual: Any,
    w: Array,
    safe: Any = None,
    solve: Any = jnp.linalg.solve,
    scale: Any = 1.0,
    least: Any = jnp.inf,
) -> tuple[Array, Array, Array]:
    """One damped Newton step, the square of the residual there, and whether it fell.

    Where no length of it helps, a step of size `safe` along the residual: below one
    over the largest curvature that always helps, if there is any left to help. `solve`
    finds the step; `shortest` does so where some directions are flat. All its lengths
    are multiplied by `scale`. Below `least` counts as fallen, and below what it is at
    w: many at once round differently from one, so that whoever compares with numbers
    of other steps hands the smallest on.
    """
    r = residual(w)
    least = jnp.minimum(least, jnp.sum(r**2))
    step = solve(jax.jacfwd(residual)(w), r)
    trials = w - jnp.asarray(_SIZES, w.dtype)[:, None] * (scale * step)
    if safe is not None:
        trials = jnp.concatenate([trials, (w - safe * r)[None]])
    norms = jax.vmap(lambda t: jnp.sum(residual(t) ** 2))(trials)
    good = norms < least
    # The first size that shortens the residual; where none does, w stays.
    better, place = jnp.any(good), jnp.argmax(good)
    left = jnp.where(better, norms[place], least)
    return jnp.where(better, trials[place], w), left, better


def root(
    residual: Callable[[Array], Array],
    w: Array,
    safe: Any = None,
    solve: Any = jnp.linalg.solve,
    patient: bool = False,
) -> Array:
    """Where the residual vanishes; steps from w until it stops falling, at rounding.

    With `safe` as in `newton_step` also where curvature jumps, in more steps; with
    `solve` as there also where some directions are flat. `patient`: a smooth residual
    is shortened by any step that is short enough, and such steps are looked for.
    """
    most = _MOST_STEPS if safe is None and not patient else 40 * _MOST_STEPS
    far = jnp.square(_FAR) * jnp.sum(residual(w) ** 2)

    def go_on(carry: tuple) -> Array:
        count, _, _, going, _ = carry
        return going & (count < most)

    def body(carry: tuple) -> tuple:
        count, before, least, _, scale = carry
        after, left, better = newton_step(residual, before, safe, solve, scale, least)
        if not patient:
            return count + 1, after, left, better, scale
        shorter = _SHORTER * scale
        going = better | ((left > far) & (shorter >= _SHORTEST))
        return count + 1, after, left, going, jnp.where(better, 1.0, shorter)

    infinite = jnp.asarray(jnp.inf, w.dtype)
    begin = (0, w, infinite, jnp.asarray(True), jnp.ones((), w.dtype))
    return jax.lax.while_loop(go_on, body, begin)[1]


def exact_prox(local: Any, w: Array, v: Array, rho: Any) -> Array:
    """prox_{rho f_i}(v) by damped Newton steps from w, exact for quadratics in one.

    >>> import jax.numpy as jnp
    >>> class Half:
    ...     grad = staticmethod(lambda w: w)
    >>> exact_prox(Half, jnp.zeros(1), jnp.ones(1), 1.0).tolist()
    [0.5]
    """
    residual, model = residual_of(local, v, rho), getattr(local, "model", None)
    if isinstance(model, Huber):
        return finished(local, w, root(residual, w), v, 1 / rho)
    return root(residual, w, patient=isinstance(model, Logistic | Softmax))


def steepest(local: Any) -> Array:
    """A number that no curvature of f_i exceeds: rows' lengths squared, added up."""
    lengths = jnp.sum(local.x**2, axis=-1)
    rows = local.weighed(jnp.sum(local.mean_weights() * lengths))
    highest = local.regulariser.curvature_bounds[1]
    return local.model.curvature_bounds[1] * rows + highest


def finished(local: Any, w: Array, found: Array, v: Array, pull: Any) -> Array:
    """The minimiser of f_i(u) + (1/2) sum_k pull_k (u_k - v_k)^2 for a convex f_i.

    Args:
        local: One agent with a Huber model, whose curvature jumps.
        w: Where the search began.
        found: Where it ended; that is all if the slope is zero there.
        v: Where the agent is pulled to.
        pull: How strongly: one number, or one per coordinate.
    """
    curvature = steepest(local) + jnp.max(pull)

    def slope(u: Array) -> Array:
        return local.grad(u) + pull * (u - v)

    def value(u: Array) -> Array:
        return local.loss(u) + jnp.sum(pull * (u - v) ** 2) / 2

    def body(carry: tuple) -> tuple:
        u, r = carry[1], slope(carry[1])
        step = jnp.linalg.solve(jax.jacfwd(slope)(u), r)
        tried = [step / 4.0**halvings for halvings in range(12)]
        held = above(local, u) + pull * jnp.eye(u.shape[0], dtype=u.dtype)
        tried += [jnp.linalg.solve(held, r), r / curvature]
        return carry[0] + 1, *best(value, slope, u, u - jnp.stack(tried))

    def go_on(carry: tuple) -> Array:
        return carry[2] & (carry[0] < _MOST_MORE)

    size = units.of_models(local) + jnp.max(jnp.abs(found)) + jnp.max(jnp.abs(v))
    zero = _ROUNDINGS * jnp.finfo(w.dtype).eps * curvature * size
    open_ = ~(jnp.max(jnp.abs(slope(found))) <= zero)
    begin = jnp.where(value(found) <= value(w), found, w)
    return jax.lax.while_loop(go_on, body, (0, jnp.where(open_, begin, found), open_))[
        1
    ]


def best(
    value: Any, slope: Any, u: Array, trials: Array, *, each: Any = None
) -> tuple[Array, Array]:
    """The trial of the smallest value, and whether it is better than u.

    Where values differ by rounding only, the one with the shortest slope. `each` maps a
    function over the trials, at once if it is left out.
    """
    each = each or (lambda f, many: jax.vmap(f)(many))
    now, values = value(u), each(value, trials)
    values = jnp.where(jnp.isfinite(values), values, jnp.inf)
    slopes = each(lambda t: jnp.sum(slope(t) ** 2), trials)
    rounding = _ROUNDINGS * jnp.finfo(u.dtype).eps * jnp.abs(now)
    lower = jnp.min(values) < now - rounding
    slopes = jnp.where(values <= now + rounding, slopes, jnp.inf)
    better = lower | (jnp.min(slopes) < jnp.sum(slope(u) ** 2))
    place = jnp.where(lower, jnp.argmin(values), jnp.argmin(slopes))
    return jnp.where(better, trials[place], u), better


def above(local: Any, u: Array) -> Array:
    """The curvature of a parabola that touches f_i at u and lies above it, (d, d)."""
    if isinstance(local.model, PerAgent):
        kinds = range(len(local.model.models))
        branches = [lambda k=k: above(local.as_kind(k), u) for k in kinds]
        return jax.lax.switch(local.rows.kind, branches)
    model, x = local.model, local.x
    eye = jnp.eye(u.shape[0], dtype=u.dtype)
    if isinstance(model, Softmax):
        return steepest(local) * eye
    highest = jnp.asarray(model.curvature_bounds[1], x.dtype)
    if isinstance(model, Huber):
        # A long residual counts as if it were delta long, as in `reweighted`.
        away = jnp.abs(model.scores(u, x) - local.rows.y)
        highest = highest * (model.delta / jnp.maximum(away, model.delta))
    weights = local.weighed(local.mean_weights() * highest)
    weights = jnp.broadcast_to(weights, local.rows.y.shape)
    return (x.T * weights) @ x + local.regulariser.curvature_bounds[1] * eye

"""Damped Newton steps to the root of a residual, and the exact proximal point by them.

Progress is measured by the length of the residual: unlike values of the loss, which
round off at a distance of 1e-8 from the answer, it can be followed to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

#: Newton steps after which `root` gives up; it stops by itself long before.
_MOST_STEPS = 50

#: Lengths of a Newton step that are tried, in this order.
_SIZES = (1.0, 0.5, 0.25, 0.0625)


def residual_of(local: Any, v: Array, rho: Any) -> Callable[[Array], Array]:
    """The slope grad f_i(w) + (w - v)/rho, which is zero at prox_{rho f_i}(v)."""
    return lambda w: local.grad(w) + (w - v) / rho


def shortest(matrix: Array, right: Array) -> Array:
    """The shortest x with matrix x = right, for matrices without full rank.

    What is curved by rounding only counts as flat, and does not move x.
    """
    return jnp.linalg.lstsq(matrix, right, rcond=1e-12)[0]


def newton_step(
    residual: Any, w: Array, safe: Any = None, solve: Any = jnp.linalg.solve
) -> tuple[Array, Array]:
    """One damped Newton step, and whether the residual became smaller.

    Where no length of it helps, a step of size `safe` along the residual: below one
    over the largest curvature that always helps, if there is any left to help. `solve`
    finds the step; `shortest` does so where some directions are flat.
    """
    r = residual(w)
    step = solve(jax.jacfwd(residual)(w), r)
    trials = w - jnp.asarray(_SIZES, w.dtype)[:, None] * step
    if safe is not None:
        trials = jnp.concatenate([trials, (w - safe * r)[None]])
    norms = jax.vmap(lambda t: jnp.sum(residual(t) ** 2))(trials)
    good = norms < jnp.sum(r**2)
    # The first size that shortens the residual; where none does, w stays.
    better = jnp.any(good)
    return jnp.where(better, trials[jnp.argmax(good)], w), better


def root(
    residual: Callable[[Array], Array],
    w: Array,
    safe: Any = None,
    solve: Any = jnp.linalg.solve,
) -> Array:
    """Where the residual vanishes; steps from w until it stops falling, at rounding.

    With `safe` as in `newton_step` also where curvature jumps, in more steps; with
    `solve` as there also where some directions are flat.
    """
    most = _MOST_STEPS if safe is None else 40 * _MOST_STEPS

    def go_on(carry: tuple) -> Array:
        count, _, better = carry
        return better & (count < most)

    def body(carry: tuple) -> tuple:
        return carry[0] + 1, *newton_step(residual, carry[1], safe, solve)

    return jax.lax.while_loop(go_on, body, (0, w, jnp.asarray(True)))[1]


def exact_prox(local: Any, w: Array, v: Array, rho: Any) -> Array:
    """prox_{rho f_i}(v) by damped Newton steps from w, exact for quadratics in one.

    >>> import jax.numpy as jnp
    >>> class Half:
    ...     grad = staticmethod(lambda w: w)
    >>> exact_prox(Half, jnp.zeros(1), jnp.ones(1), 1.0).tolist()
    [0.5]
    """
    return root(residual_of(local, v, rho), w)

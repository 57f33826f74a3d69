"""Solving one agent's proximal problem argmin_v f_i(v) + ||v - z||^2 / (2 rho)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tacit.problem.local import Local

#: Newton on a strongly convex GLM converges quadratically from a warm start.
_NEWTON_STEPS = 12


def exact_prox(local: Local, w: Array, z: Array, rho: Any) -> Array:
    """prox_{rho f_i}(z) by damped Newton steps from w, exact for quadratics in one.

    The residual of the optimality condition grad f_i(v) + (v - z)/rho = 0 must not
    grow: a step that would make it grow is halved.
    """

    def residual(v: Array) -> Array:
        return local.grad(v) + (v - z) / rho

    def newton(v: Array, _: None) -> tuple[Array, None]:
        r = residual(v)
        matrix = jax.jacfwd(residual)(v)
        step = jnp.linalg.solve(matrix, r)
        sizes = jnp.asarray([1.0, 0.5, 0.25, 0.0625], v.dtype)
        trials = v - sizes[:, None] * step
        norms = jax.vmap(lambda t: jnp.sum(residual(t) ** 2))(trials)
        # The first size that does not increase the residual, else the smallest.
        good = norms <= jnp.sum(r**2)
        first = jnp.where(jnp.any(good), jnp.argmax(good), len(sizes) - 1)
        better = jnp.any(good) | (jnp.min(norms) < jnp.sum(r**2))
        return jnp.where(better, trials[first], v), None

    return jax.lax.scan(newton, w, None, length=_NEWTON_STEPS)[0]

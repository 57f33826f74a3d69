"""Penalties of one's own: any symmetric convex function of a difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem import prox
from tacita.problem.newton import root
from tacita.trees import double_precision, frozen, static


@frozen
class ByNewton:
    """A smooth convex function without a `prox`: Newton's method finds its points.

    Attributes:
        phi: Function of one difference, a vector, that JAX can differentiate twice.

    >>> round(float(ByNewton(phi=lambda u: jnp.sum(u**2)).prox(jnp.ones(1), 1.0)[0]), 6)
    0.333333
    """

    phi: Callable[[Array], Array] = static()

    def __call__(self, u: Array) -> Array:
        """phi(u)."""
        return self.phi(u)

    def prox(self, v: Array, t: Any) -> Array:
        """Where t grad phi(u) + u - v vanishes."""
        v = jnp.asarray(v)
        t = jnp.asarray(t, v.dtype)
        return root(lambda u: t * jax.grad(self.phi)(u) + u - v, v)

    def require_smooth(self, dim: int) -> None:
        """Refuse a function with kinks, of which Newton's method finds no points."""
        with double_precision():
            probe = jnp.asarray(np.random.default_rng(1).normal(size=dim))
            for t in (0.1, 1.0, 10.0):
                u = self.prox(probe, t)
                left = t * jax.grad(self.phi)(u) + u - probe
                if not float(jnp.max(jnp.abs(left))) < 1e-9:
                    check.refuse(
                        "expected a smooth convex penalty, got "
                        f"{getattr(self.phi, '__name__', 'phi')}, which Newton's "
                        "method does not bring down; give it a prox, as those of "
                        "tacita.problem.prox have"
                    )


@frozen
class OwnPenalty:
    """A penalty of one's own: a function phi with a proximal operator.

    A smooth convex function without one is given as it is, or as `ByNewton(phi=...)`.

    Attributes:
        phi: As in `tacita.problem.prox`: phi(u) is its value, phi.prox(v, t) its
            proximal point, and phi(-u) = phi(u), since edges have no direction.

    >>> from tacita.problem.prox import L1
    >>> float(OwnPenalty(phi=L1(2.0))(jnp.array([1.0, -3.0])))
    8.0
    """

    phi: Any

    smooth: ClassVar[bool] = False
    masked: ClassVar[bool] = False

    def mask(self, dim: int) -> Any:
        """All coordinates may be coupled, (dim,)."""
        return np.ones(dim)

    def __call__(self, u: Array) -> Array:
        """phi(u)."""
        return self.phi(u)

    def grad(self, u: Array) -> Array:
        """By differentiation; at a kink whatever that gives."""
        return jax.grad(self.phi)(u)

    def prox(self, v: Array, t: Any) -> Array:
        """argmin_u t phi(u) + ||u - v||^2 / 2."""
        return self.phi.prox(v, t)

    def check(self, dim: int) -> None:
        """Refuse what is no proximable function, or not symmetric."""
        prox.proximable(self.phi, dim)
        if isinstance(self.phi, ByNewton):
            self.phi.require_smooth(dim)
        probe = jnp.asarray(np.random.default_rng(0).normal(size=dim), jnp.float32)
        turned = -self.phi.prox(-probe, 1.0)
        if not np.allclose(self.phi.prox(probe, 1.0), turned, rtol=1e-4, atol=1e-6):
            check.refuse(
                "expected a penalty with phi(-u) = phi(u), got "
                f"{type(self.phi).__name__}, which is not symmetric"
            )

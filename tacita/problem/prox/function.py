"""What a proximable function can do, and what all of them start with."""

from __future__ import annotations

from typing import Protocol

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from tacita.check import not_negative


class Proximable(Protocol):
    """A function with a cheap proximal operator.

    One of your own is a record, so that JAX knows its numbers:

    >>> from tacita.trees import frozen
    >>> @frozen
    ... class Ridge:
    ...     weight: float
    ...
    ...     def __call__(self, w):
    ...         return 0.5 * self.weight * jnp.sum(w**2)
    ...
    ...     def prox(self, v, t):
    ...         return v / (1 + t * self.weight)
    >>> Ridge(weight=1.0).prox(jnp.array([2.0]), 1.0).tolist()
    [1.0]
    """

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return the value at `w`, infinite outside a constraint set."""
        ...

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Return `argmin_x h(x) + ||x - v||^2 / (2 t)`."""
        ...


def arguments(v: ArrayLike, t: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """Bring the point to JAX and the step `t` to the dtype of the point."""
    v = jnp.asarray(v)
    return v, jnp.asarray(not_negative(t=t), v.dtype)


def sqrt(squares: jax.Array) -> jax.Array:
    """Square root whose derivative at zero is zero, not infinite."""
    above = squares > 0
    return jnp.where(above, jnp.sqrt(jnp.where(above, squares, 1)), 0)

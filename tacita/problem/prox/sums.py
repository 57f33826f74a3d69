"""Sums of functions, and what is refused as an `h`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from tacita.check import refuse
from tacita.problem.prox.function import Proximable, arguments
from tacita.trees import count, frozen


@frozen
class Sum:
    """h_1 + h_2 + ..., such as a sparse model within bounds.

    Together they have no formula; their proximal point is approached in `steps` rounds
    of the proximal points of each (Dykstra's algorithm: H. Bauschke and P. Combettes,
    "A Dykstra-like algorithm for two monotone operators", 2008; coordinate ascent on
    the dual). Whoever uses it bears a small error, as Fed-PLT does. Put a constraint
    last: that one is kept to the last digit.

    Args:
        parts: The functions.
        steps: Rounds through all parts.

    Example:
        >>> from tacita.problem.prox import L1, Box
        >>> Sum(parts=(L1(0.5), Box(0.0, 1.0))).prox([2.0, -0.5, 0.75], 1.0).tolist()
        [1.0, 0.0, 0.25]
    """

    parts: Sequence[Proximable] = dataclasses.field(kw_only=True)
    steps: int = count(50)

    def __post_init__(self) -> None:
        parts = self.parts if isinstance(self.parts, list | tuple) else ()
        known = [hasattr(one, "prox") and not isinstance(one, type) for one in parts]
        if not parts or not all(known):
            refuse(
                "expected parts a list of functions such as [prox.L1(0.1), "
                f"prox.Box(0, 1)], got parts={self.parts!r}"
            )
        object.__setattr__(self, "parts", tuple(parts))

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return the sum of the values."""
        w = jnp.asarray(w)
        return sum((part(w) for part in self.parts), jnp.zeros((), w.dtype))

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Let every part in turn move the point, less what it moved it before."""
        v, t = arguments(v, t)

        def once(state: tuple, _: None) -> tuple[tuple, None]:
            x, moved = state
            after = []
            for part, own in zip(self.parts, moved, strict=True):
                before = x + own
                x = part.prox(before, t)
                after.append(before - x)
            return (x, tuple(after)), None

        still = tuple(jnp.zeros_like(v) for _ in self.parts)
        return jax.lax.scan(once, (v, still), length=self.steps)[0][0]


def _parts_of(h: Any) -> list[Any]:
    """All functions of which it is the sum, or itself."""
    if not isinstance(h, Sum):
        return [h]
    return [one for part in h.parts for one in _parts_of(part)]


def proximable(h: Any, dim: int) -> Any:
    """Refuse an `h` that is no proximable function of `dim` parameters."""
    if h is None:
        return None
    prox = getattr(h, "prox", None)
    if isinstance(h, type) or not callable(h) or prox is None:
        refuse(
            "expected h a proximable function such as tacita.problem.prox.L1(0.1), got "
            f"h={h!r}"
        )
    for one in _parts_of(h):
        if jax.tree_util.all_leaves([one]):
            refuse(
                f"h={type(one).__name__} is of a class that JAX does not know; put "
                "@tacita.trees.frozen above the class and write its numbers as fields"
            )
    w = jax.ShapeDtypeStruct((dim,), jnp.float32)
    try:
        # Shapes only: nothing is computed or compiled.
        made = jax.eval_shape(lambda v: prox(v, 1.0), w).shape, jax.eval_shape(h, w)
    except (TypeError, ValueError) as error:
        first = str(error).strip().split("\n")[0]
        refuse(f"h={type(h).__name__} does not fit {dim} parameters: {first}")
    if made[0] != (dim,) or made[1].shape != ():
        refuse(
            f"h={type(h).__name__} does not fit {dim} parameters: its proximal point "
            f"has shape {made[0]}; give one number, or one per parameter"
        )
    return h

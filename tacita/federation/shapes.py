"""Trees of arrays as the flat lists that letters carry, checked on their way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita.federation.wire import LetterRefused


def to_list(tree: Any) -> list[np.ndarray]:
    """The leaves, whole numbers as int64."""
    return [_for_wire(np.asarray(leaf)) for leaf in jax.tree.leaves(tree)]


def _for_wire(leaf: np.ndarray) -> np.ndarray:
    if leaf.dtype.kind in "iub":
        return leaf.astype(np.int64)
    return leaf


def by_round(
    rounds: Sequence[int], arrays: list[np.ndarray]
) -> dict[int, list[np.ndarray]]:
    """The letters of several rounds, equally many arrays each, out of one list."""
    each = len(arrays) // max(len(rounds), 1)
    return {r: arrays[i * each : (i + 1) * each] for i, r in enumerate(rounds)}


class Form:
    """The structure, shapes and types that a tree must have."""

    def __init__(self, like: Any) -> None:
        self.leaves, self._tree = jax.tree.flatten(like)

    @property
    def bytes(self) -> int:
        """Bytes of the arrays on the wire."""
        return sum(8 * int(np.prod(leaf.shape)) for leaf in self.leaves)

    def zeros(self) -> list[np.ndarray]:
        """Arrays of these shapes."""
        return [np.zeros(leaf.shape) for leaf in self.leaves]

    def check(self, arrays: Sequence[np.ndarray]) -> None:
        """Refuse arrays of another number, shape or type."""
        if len(arrays) != len(self.leaves):
            raise LetterRefused(
                f"expected {len(self.leaves)} arrays, the letter has {len(arrays)}"
            )
        for array, leaf in zip(arrays, self.leaves, strict=True):
            kind = np.dtype(leaf.dtype)
            wanted = np.dtype(np.int64) if kind.kind in "iub" else kind
            if array.shape != leaf.shape or array.dtype != wanted:
                raise LetterRefused(
                    f"expected an array of {wanted}{list(leaf.shape)}, the letter has "
                    f"{array.dtype}{list(array.shape)}"
                )

    def to_tree(self, arrays: Sequence[np.ndarray]) -> Any:
        """The tree, every leaf in the type that it has in the program."""
        self.check(arrays)
        return self.in_types(arrays)

    def for_compiled(self, arrays: Sequence[np.ndarray]) -> Any:
        """The same of NumPy's arrays, which cost a compiled function less."""
        self.check(arrays)
        pairs = zip(arrays, self.leaves, strict=True)
        leaves = [np.asarray(array, leaf.dtype) for array, leaf in pairs]
        return jax.tree.unflatten(self._tree, leaves)

    def in_types(self, arrays: Sequence[np.ndarray]) -> Any:
        """The tree out of our own sums, brought to the types that it has."""
        pairs = zip(arrays, self.leaves, strict=True)
        leaves = [jnp.asarray(array, leaf.dtype) for array, leaf in pairs]
        return jax.tree.unflatten(self._tree, leaves)

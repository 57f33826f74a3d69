"""Calls out of a compiled program whose numbers keep all their 64 bits.

XLA may make a call in a thread of its own, where JAX has been told nothing of double
precision and halves whatever has 64 bits. So 64 bits travel as two words of 32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array

_WORD = np.dtype(np.uint32)


def host_call(
    function: Callable[..., np.ndarray],
    shape: tuple[int, ...],
    kind: Any,
    *told: Array,
    vmap_method: str,
) -> Array:
    """The array of this shape and kind that `function` makes of NumPy arrays.

    Args:
        function: What is called; it always gives the same for the same numbers.
        shape: Of what it gives.
        kind: Of what it gives.
        told: What it is given.
        vmap_method: As in `jax.pure_callback`.
    """
    kind, kinds = np.dtype(kind), [np.dtype(one.dtype) for one in told]

    def called(*words: Any) -> np.ndarray:
        given = (_of_words(w, k) for w, k in zip(words, kinds, strict=True))
        return _as_words(np.asarray(function(*given), kind))

    pair = () if kind.itemsize <= _WORD.itemsize else (2,)
    answer = jax.ShapeDtypeStruct((*shape, *pair), _WORD if pair else kind)
    words = (_to_words(one) for one in told)
    made = jax.pure_callback(called, answer, *words, vmap_method=vmap_method)
    return jax.lax.bitcast_convert_type(made, kind) if pair else made


def _to_words(array: Array) -> Array:
    wide = np.dtype(array.dtype).itemsize > _WORD.itemsize
    return jax.lax.bitcast_convert_type(array, _WORD) if wide else array


def _of_words(words: Any, kind: np.dtype) -> np.ndarray:
    array = np.asarray(words)
    if kind.itemsize <= _WORD.itemsize:
        return array
    return np.ascontiguousarray(array).view(kind)[..., 0]


def _as_words(array: np.ndarray) -> np.ndarray:
    if array.dtype.itemsize <= _WORD.itemsize:
        return array
    return np.ascontiguousarray(array)[..., None].view(_WORD)

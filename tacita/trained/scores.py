"""What a model says of rows: scores, values, probabilities.

Linear models and perceptrons are computed by NumPy: nothing is compiled for a table of
a new length. Other networks run through JAX, in blocks of one size.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
from scipy.special import expit, softmax

from tacita.check import refuse
from tacita.problem.model.differentiable import Differentiable
from tacita.problem.model.layers import Layers, Perceptron
from tacita.problem.model.linear import (
    Absolute,
    Hinge,
    Huber,
    Linear,
    Logistic,
    Model,
    Signed,
    Softmax,
)
from tacita.problem.model.moments import Moments
from tacita.trained.kinds import Absent
from tacita.trees import in_double_precision

#: Rows that a network is given at once.
_BLOCK = 256


def scores(model: Model, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Values of a regression, (rows,); else one score per row and class.

    A model of two classes has one score per row, of its second class.
    """
    if isinstance(model, Perceptron):
        return _perceived(model, w, x)
    if isinstance(model, Softmax):
        return x @ w.reshape(model.n_classes, model.features).T
    if isinstance(model, Differentiable | Moments):
        return _in_blocks(model, w, x)
    if isinstance(model, Linear | Huber | Absolute | Signed):
        return x @ w
    return _other(model, w, x)


def _other(model: Model, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Of a model that is nobody's we know: its values, for classes need scores."""
    if isinstance(model, Absent) or model.classes is None:
        return np.asarray(model.predict(w, x))  # pyright: ignore[reportArgumentType]
    refuse(
        f"{type(model).__name__} gives classes but no scores; make it a "
        "tacita.problem.Differentiable, whose apply gives one score per class"
    )


def codes(model: Model, found: np.ndarray) -> np.ndarray:
    """The likeliest class of every row, by its number."""
    if isinstance(model, Signed):
        return (found > 0).astype(int)
    return np.argmax(found, axis=1)


def of_second_class(found: np.ndarray) -> np.ndarray:
    """Scores as they rank rows: of two classes one number, above 0 for the second."""
    two = found.ndim == 2 and found.shape[1] == 2
    return found[:, 1] - found[:, 0] if two else found


def has_probabilities(model: Model) -> bool:
    """Whether its scores stand for probabilities of classes."""
    return model.classes is not None and not isinstance(model, Hinge)


def probabilities(model: Model, found: np.ndarray) -> np.ndarray:
    """One probability per row and class, from scores."""
    if not has_probabilities(model):
        refuse("the hinge loss gives classes but no probabilities; use logistic")
    if isinstance(model, Logistic):
        return np.stack([expit(-found), expit(found)], axis=1)
    return softmax(found, axis=1)


def _perceived(model: Perceptron, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    parts: Any = Layers(model.shapes).unpack(w)  # pyright: ignore[reportArgumentType]
    x = x.reshape(len(x), -1)
    for k, (matrix, bias) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        x = (np.maximum(x, 0) if k else x) @ matrix + bias
    return x[:, 0] if model.classes is None else x


@in_double_precision
def _in_blocks(
    model: Differentiable | Moments, w: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """Every block has the same shape, so that one program does for all tables."""
    apply = model.predict if isinstance(model, Moments) else model.apply
    found = []
    for first in range(0, len(x), _BLOCK):
        block = x[first : first + _BLOCK]
        padded = np.zeros((_BLOCK, *x.shape[1:]), x.dtype)
        padded[: len(block)] = block
        found.append(np.asarray(_compiled(apply, w, padded))[: len(block)])
    return np.concatenate(found)


@functools.partial(jax.jit, static_argnums=0)
def _compiled(apply: Any, w: Any, x: Any) -> Any:
    return apply(w, x)

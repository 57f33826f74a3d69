"""Models of one's own: Flax NNX, Equinox, or plain functions of any parameters.

Whatever holds the parameters, they become the one flat vector that algorithms step on,
and scores become what the loss takes. A model must be a function of its parameters and
of each row by itself: layers that draw, or that mix rows, are refused.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.model.differentiable import Differentiable
from tacita.problem.model.layers import Layers

LOSSES = ("squared", "softmax", "logistic")
Loss = str | Callable[[Array, Array], Array] | None

_NO_STATISTICS = (
    "which mixes rows, so that no gradient is that of one record; use group or layer "
    "normalisation"
)
_NO_DRAWS = "which draws in every call; leave it out"


def from_function(
    apply: Callable[[Any, Array], Array],
    parameters: Any,
    *,
    classes: int | None = None,
    loss: Loss = None,
    row: Sequence[int] | None = None,
    whole: bool = False,
    one_row: bool = False,
    name: str | None = None,
) -> Differentiable:
    """Make a model of a function and its parameters, for `from_arrays(model=...)`.

    Args:
        apply: Function (parameters, x) -> scores of a stack of rows: shape
            (rows, classes) for "softmax", otherwise (rows,) or (rows, 1).
        parameters: Any tree of arrays of real numbers: the starting point.
        classes: Number of classes, or None for regression.
        loss: "squared" (regression), "softmax" or, with one score of every row,
            "logistic" (two classes); or a function (scores, y) -> the loss of every
            row, y being the codes of classes where there are any. Left out it is
            "softmax" with classes and "squared" without.
        row: The shape in which the function takes a row; left out, as it is stored.
        whole: Whether rows are whole numbers, such as codes of characters, which the
            function takes as int32.
        one_row: Whether the function takes one row rather than a stack of them.
        name: Shown in reports; default the function's own.

    >>> import numpy as np
    >>> model = from_function(
    ...     lambda p, x: x @ p["slope"] + p["level"],
    ...     {"slope": np.zeros(3), "level": np.zeros(())},
    ... )
    >>> model.dim, model.start().tolist()
    (4, [0.0, 0.0, 0.0, 0.0])
    """
    if not callable(apply):
        check.refuse(f"expected apply a function (parameters, x), got apply={apply!r}")
    leaves, tree = jax.tree.flatten(parameters)
    told = name or str(getattr(apply, "__name__", type(apply).__name__))
    arrays = [_numbers(told, leaf) for leaf in leaves]
    if not arrays:
        check.refuse(f"model={told} has no parameters to learn")
    layers = Layers(tuple(array.shape for array in arrays))
    shape = None if row is None else tuple(check.count(row=n) for n in row)
    classes, loss = _chosen(classes, loss)
    function = jax.vmap(apply, (None, 0)) if check.flag(one_row=one_row) else apply
    check.flag(whole=whole)

    def scores(w: Array, x: Array) -> Array:
        x = x if shape is None else x.reshape(len(x), *shape)
        x = x.astype(jnp.int32) if whole else x
        return _scores(loss, function(jax.tree.unflatten(tree, layers.unpack(w)), x))

    def initial() -> np.ndarray:
        return np.concatenate([array.ravel() for array in arrays])

    own = loss if callable(loss) else None
    return Differentiable(layers.dim, scores, initial, classes, told, loss=own)


def from_flax(model: Any, **options: Any) -> Differentiable:
    """Make a model of a Flax NNX module that takes a stack of rows.

    Args:
        model: The module; what its parameters are now is the starting point.
        **options: As of `from_function`: classes, loss, row, whole, one_row, name.
    """
    nnx = _library("flax.nnx", "flax")
    if not isinstance(model, nnx.Module):
        check.refuse(f"expected model a flax.nnx.Module, got a {type(model).__name__}")
    name = options.pop("name", None) or type(model).__name__
    kinds = (nnx.Param, nnx.BatchStat, nnx.RngState, ...)
    structure, parameters, statistics, draws, others = nnx.split(model, *kinds)
    _refuse_if(jax.tree.leaves(statistics), name, f"batch statistics, {_NO_STATISTICS}")
    _refuse_if(jax.tree.leaves(draws), name, f"random numbers (dropout), {_NO_DRAWS}")
    kept = jax.tree.leaves(others, is_leaf=lambda v: isinstance(v, nnx.Variable))
    left = [type(v).__name__ for v in kept]
    _refuse_if(left, name, f"a state ({', '.join(left[:1])}) besides its parameters")

    def apply(values: Any, x: Array) -> Array:
        return nnx.merge(structure, values)(x)

    return from_function(apply, parameters, name=name, **options)


def from_equinox(
    module: Any, *, one_row: bool = True, **options: Any
) -> Differentiable:
    """Make a model of an Equinox module, whose arrays of real numbers are learnt.

    Args:
        module: The module; what its arrays are now is the starting point.
        one_row: Whether it takes one row, as Equinox's layers do, or a stack of them.
        **options: As of `from_function`: classes, loss, row, whole, name.
    """
    equinox = _library("equinox", "equinox")
    if not isinstance(module, equinox.Module):
        check.refuse(
            f"expected module an equinox.Module, got a {type(module).__name__}"
        )
    name = options.pop("name", None) or type(module).__name__
    stateful, dropout = equinox.nn.StatefulLayer, equinox.nn.Dropout

    def keeps(layer: Any) -> bool:
        # A sequence is of that class too, whatever it holds.
        return isinstance(layer, stateful) and layer.is_stateful()

    def draws(layer: Any) -> bool:
        return isinstance(layer, dropout) and not layer.inference and layer.p != 0

    layers = jax.tree.leaves(module, is_leaf=lambda n: keeps(n) or draws(n))
    _refuse_if(
        any(map(keeps, layers)),
        name,
        f"a layer with a state such as BatchNorm, {_NO_STATISTICS}",
    )
    _refuse_if(any(map(draws, layers)), name, f"Dropout, {_NO_DRAWS}")
    parameters, rest = equinox.partition(module, equinox.is_inexact_array)

    def apply(values: Any, x: Array) -> Array:
        return equinox.combine(values, rest)(x)

    return from_function(apply, parameters, one_row=one_row, name=name, **options)


def _library(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        check.refuse(f"{module} is not installed; pip install -e '.[{extra}]'")


def _refuse_if(found: Any, name: str, what: str) -> None:
    if found:
        check.refuse(f"model={name} has {what}")


def _numbers(name: str, leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    if not np.issubdtype(array.dtype, np.floating):
        check.refuse(
            f"a parameter of model={name} is of {array.dtype}; parameters are real "
            "numbers, and what is not learnt belongs into the function"
        )
    return array


def _chosen(classes: int | None, loss: Loss) -> tuple[int | None, Loss]:
    """The number of classes and the loss, each by the other where it is left out."""
    if callable(loss):
        counted = None if classes is None else check.count(2, classes=classes)
        return counted, loss
    usual = "squared" if classes is None else "softmax"
    loss = check.one_of(LOSSES, loss=usual if loss is None else loss)
    if loss == "squared":
        if classes is not None:
            check.refuse(f"loss='squared' predicts a number, got classes={classes!r}")
        return None, loss
    counted = 2 if loss == "logistic" and classes is None else classes
    counted = check.count(2, classes=check.given(classes=counted))
    if loss == "logistic" and counted != 2:
        check.refuse(f"loss='logistic' has two classes, got classes={classes}")
    return counted, loss


def _scores(loss: Loss, said: Array) -> Array:
    """What a function said of rows, as the model's loss takes it."""
    if loss not in ("squared", "logistic"):
        return said
    one = said[:, 0] if said.ndim == 2 and said.shape[1] == 1 else said
    # A score s against zero: the softmax of both is the logistic function of s.
    return one if loss == "squared" else jnp.stack([jnp.zeros_like(one), one], axis=-1)

"""Gradients of single examples: their norms, and their clipped sum.

A linear model's gradient of one record is residual * x, so its norm is
|residual| ||x|| (softmax: ||residual|| ||x||) and no per-example gradient is ever
built. Nor is it for dense layers, which have gradients of the same kind (I. Goodfellow,
"Efficient per-example gradient computations", 2015). Other gradients of single records
are made by `vmap`, a microbatch at a time.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
from jax import Array

from tacita.problem.model import products
from tacita.problem.model.layers import Layered, Perceptron, RowGradients
from tacita.problem.model.linear import (
    GeneralisedLinear,
    Linear,
    Logistic,
    Model,
    Softmax,
)
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.model.pieces import in_pieces

#: Rows shorter than this count as this long. Their squares may vanish in float32, and
#: a length taken for zero would let a huge residual through.
_SHORTEST = 1e-15


class Batch(NamedTuple):
    """Records and their weights in a gradient."""

    x: Array
    y: Array
    weights: Array
    lengths: Array | None = None  # of the rows, if they were computed before

    def row_lengths(self) -> Array:
        """The l2 norm of every row's features."""
        return lengths_along(self.x, -1) if self.lengths is None else self.lengths


def clipped_sum(model: Model, w: Array, batch: Batch, norm: Any, micro: int) -> Array:
    """The weighted sum of the rows' gradients, each clipped to `norm`."""
    x, y, weights, _ = batch
    if isinstance(model, Linear | Logistic):
        # min(1, C/(|r| ||x||)) r  is  r clipped to [-C/||x||, C/||x||].
        limit = norm / jnp.maximum(batch.row_lengths(), _SHORTEST)
        residual = model.residual(model.scores(w, x), y)
        # Written as comparisons, which not-a-number fails: it is clipped as well.
        above = jnp.where(residual > -limit, residual, -limit)
        clipped = jnp.where(residual < limit, above, limit)
        return products.combine(weights * clipped, x)
    if isinstance(model, Softmax):
        residual = _numbers(model.residual(model.scores(w, x), y))
        # Squares of short residuals may vanish beside long rows.
        sizes = jnp.maximum(_lengths(residual), _SHORTEST)
        factor = weights * _shrink(sizes * batch.row_lengths(), norm)
        return (jnp.reshape(factor, (-1, 1)) * residual).T.dot(x).reshape(-1)
    if _is_perceptron(model):
        grads, norms = _rows_and_norms(model, w, x, y)
        return grads.added_up(weights * _shrink(norms, norm))

    def one_batch(total: Array, rows: tuple) -> tuple[Array, None]:
        part_x, part_y, part_weights = rows
        grads, norms = _rows_and_norms(model, w, part_x, part_y)
        return total + grads.added_up(part_weights * _shrink(norms, norm)), None

    weights = jnp.broadcast_to(weights, y.shape[:1])
    parts = in_pieces((x, y, weights), micro)
    return jax.lax.scan(one_batch, jnp.zeros_like(w), parts)[0]


def example_norms(model: Model, w: Array, batch: Batch, micro: int) -> Array:
    """The norm of every row's gradient, regulariser left out."""
    x, y = batch.x, batch.y
    if isinstance(model, Linear | Logistic | Softmax):
        residual = _numbers(model.residual(model.scores(w, x), y))
        sizes = _lengths(residual) if isinstance(model, Softmax) else jnp.abs(residual)
        # Infinite times zero is no number, and no longer than any norm.
        return _numbers(sizes * batch.row_lengths())
    if _is_perceptron(model):
        return _rows_and_norms(model, w, x, y)[1]
    norms = jax.lax.map(
        lambda rows: _rows_and_norms(model, w, *rows)[1], in_pieces((x, y), micro)
    )
    return norms.reshape(-1)[: y.shape[0]]


def rows_apart(model: Model) -> bool:
    """Whether no row's loss can depend on other rows, by what the model is.

    Of a loss, or a network, of a user's own nobody knows: it may normalise a batch.
    """
    known = all(isinstance(one, GeneralisedLinear) for one in kinds_of(model))
    return known or _by_layers(model)


def _by_layers(model: Model) -> TypeGuard[Layered]:
    """Whether gradients come in layers; not those of a loss of a user's own."""
    return isinstance(model, Layered) and model.loss is None


def _is_perceptron(model: Model) -> bool:
    """Whether no number of any row's gradient is kept, so that all fit at once."""
    return _by_layers(model) and isinstance(model, Perceptron)


def _rows_and_norms(
    model: Model, w: Array, x: Array, y: Array
) -> tuple[RowGradients, Array]:
    """All rows' gradients, dense layers in factors, and their norms.

    A row whose gradient is no number, or too long for one, has zeros.
    """
    if not _by_layers(model):
        grads = example_grads(model, w, x, y)
        return RowGradients(grads, []), _lengths(grads)
    before, layers = model.row_gradients(w, x, y)
    # ||a b'||^2 + ||b||^2 = (||a||^2 + 1) ||b||^2, of the layers' matrices and biases.
    # Squares of short b may vanish beside long a.
    lengths = [
        jnp.hypot(_lengths(a), 1) * jnp.maximum(_lengths(b), _SHORTEST)
        for a, b in layers
    ]
    norms = _lengths(jnp.stack([_lengths(before), *lengths], axis=-1))
    whole = jnp.isfinite(norms)
    kept = jax.tree.map(
        lambda part: jnp.where(whole[:, None], part, 0), RowGradients(before, layers)
    )
    return kept, _numbers(norms)


def example_grads(model: Model, w: Array, x: Array, y: Array) -> Array:
    """The gradient of every row, (rows, dim); not-a-number counts as zero."""

    def one(row: Array, label: Array) -> Array:
        weight = jnp.ones(1, w.dtype)
        return model.grad(w, row[None], label[None], weight)

    grads = jax.vmap(one)(x, y)
    whole = jnp.all(jnp.isfinite(grads), axis=-1, keepdims=True)
    return jnp.where(whole, grads, 0)


def _lengths(rows: Array) -> Array:
    """l2 norms along the last axis."""
    return jnp.sqrt(jnp.sum(rows * rows, axis=-1))


@functools.partial(jax.jit, static_argnums=1)
def lengths_along(rows: Array, axis: int) -> Array:
    """l2 norms along an axis; compiled, so that no square of all rows is kept.

    Scaled by the largest entry: squares of long rows would not be finite. Infinite are
    rows alone that are longer than the largest number: clipped, they add nothing. Any
    number in place of their length would be too short, and let more than C through.
    """
    limits = jnp.finfo(rows.dtype)
    largest = jnp.max(jnp.abs(rows), axis=axis, keepdims=True)
    # Compiled, a division is a product with the inverse: that of the largest numbers
    # there are counts as zero, and so would the longest rows.
    unit = jnp.clip(largest, limits.tiny, limits.max / 8)
    scaled = rows / unit
    return jnp.squeeze(unit, axis) * jnp.sqrt(jnp.sum(scaled * scaled, axis=axis))


def _shrink(norms: Array, norm: Any) -> Array:
    """min(1, C / norm of the gradient)."""
    return jnp.minimum(1, norm / jnp.maximum(norms, _SHORTEST))


def _numbers(values: Array) -> Array:
    """Zero for not-a-number: a record must not show by breaking a letter."""
    return jnp.where(jnp.isnan(values), 0, values)

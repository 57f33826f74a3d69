"""Per-example clipping: an oracle around an oracle, with its sensitivity.

Every record's gradient is scaled down to l2 norm at most C before it is weighted and
added up; the regulariser, which does not depend on the data, is added outside. M.
Abadi et al., "Deep Learning with Differential Privacy", CCS 2016.

A linear model's gradient of one record is residual * x, so its norm is
|residual| ||x|| (softmax: ||residual|| ||x||) and no per-example gradient is ever
built. Nor is it for perceptrons, whose layers have gradients of the same kind (I.
Goodfellow, "Efficient per-example gradient computations", 2015). For other models
gradients of single records are made by `vmap`, a microbatch at a time.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.noisy import Noisy
from tacita.privacy.scope import Relation, Scope, Unit, word
from tacita.problem.model import products
from tacita.problem.model.layers import LayerGradient, Perceptron
from tacita.problem.model.linear import Linear, Logistic, Model, Softmax
from tacita.problem.oracles import Full, Minibatch, Oracle
from tacita.problem.population import Local, Population
from tacita.trees import count, frozen, needed, replace, static

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

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
        return _row_lengths(self.x, -1) if self.lengths is None else self.lengths


@frozen
class Promise:
    """The budget that `tacita.private` set the noise for; the run's report repeats it.

    Attributes:
        epsilon: The budget.
        delta: The probability of exceeding it.
        scope: Against whom, of what, between which neighbours.
    """

    epsilon: float
    delta: float
    scope: Scope = static()

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a report."""
        budget = {"epsilon": float(self.epsilon), "delta": float(self.delta)}
        return budget | self.scope.words


@frozen
class Clipped:
    """Gradients in which every record has l2 norm at most `norm`.

    The guarantee is that of `sensitivity`, whatever the model. A gradient that is not
    a number is bounded too: a record must not show by breaking a letter.

    Attributes:
        norm: C, the largest norm of one record's gradient; choose it without looking
            at private data.
        oracle: Which records are used: `Full` or `Minibatch`.
        microbatch: Records whose gradients are held at once, for models that are
            neither linear nor perceptrons.
        promise: Set by `tacita.private`.

    | relation      | what changes                    | Full      | Minibatch |
    | ------------- | ------------------------------- | --------- | --------- |
    | `replace_one` | one record becomes any other    | 2 C / m   | 2 C / b   |
    | `add_remove`  | one record becomes an empty row | C / m     | C / b     |

    with m the agent's number of records, which is taken to be public, and b the batch.

    >>> Clipped(norm=1.0).sensitivity("replace_one", samples=50)
    0.04
    """

    norm: float = needed(check.positive)
    oracle: Oracle = Full()
    microbatch: int = count(16)
    promise: Promise | None = None

    def __post_init__(self) -> None:
        if isinstance(self.oracle, Clipped):
            check.refuse("the oracle is clipped already; change its norm instead")

    def check(self, problem: Problem) -> None:
        """Refuse what the inner oracle refuses, and oracles that are not known."""
        if not isinstance(self.oracle, Full | Minibatch):
            check.refuse(
                f"clipping wraps Full or Minibatch, got {type(self.oracle).__name__}"
            )
        self.oracle.check(problem)

    def draws(self, local: Local, key: Array, steps: int) -> Any:
        """The inner oracle's draws: clipping is not random."""
        return self.oracle.draws(local, key, steps)

    def grad(self, local: Local, draw: Any, w: Array) -> Array:
        """sum_k weight_k min(1, C/||g_k||) g_k, plus the regulariser's gradient."""
        batch = self._batch(local, draw)
        data = clipped_sum(local.model, w, batch, self.norm, self.microbatch)
        return data + local.regulariser.grad(w)

    @property
    def random(self) -> bool:
        """Clipping is not random, the inner oracle may be."""
        return self.oracle.random

    @property
    def std(self) -> Any:
        """None that counts: noise inside the clipping is clipped with the record."""
        return 0.0

    def prepare(self, population: Population) -> Population:
        """Note the lengths of all rows, which never change, where they are needed."""
        if not isinstance(population.model, Linear | Logistic | Softmax):
            return population
        axis = -2 if population.by_feature else -1
        lengths = _row_lengths(population.rows.x, axis)
        return replace(population, rows=population.rows._replace(lengths=lengths))

    def share_below(self, local: Local, w: Array) -> Array:
        """Share of the agent's records whose gradient at w is not longer than `norm`.

        Replacing a record, or emptying it, changes it by at most 1/m.
        """
        batch = self._all(local)
        norms = example_norms(local.model, w, batch, self.microbatch)
        below = (norms <= self.norm).astype(w.dtype)
        return jnp.sum(local.mean_weights() * below)

    def _all(self, local: Local) -> Batch:
        rows = local.rows
        return Batch(local.x, rows.y, local.mean_weights(), rows.lengths)

    def _batch(self, local: Local, draw: Any) -> Batch:
        """The records in use."""
        whole = self._all(local)
        if isinstance(self.oracle, Full):
            return whole
        assert isinstance(self.oracle, Minibatch)
        if self.oracle.sampling == "poisson":
            return whole._replace(weights=draw)
        x, y = local.take(draw)
        lengths = None if whole.lengths is None else whole.lengths[draw]
        return Batch(x, y, local.batch_weight(self.oracle.size), lengths)

    def drawn(self, samples: int) -> tuple[int, str]:
        """Rows in one gradient of an agent, and their sampling; "all" for all rows."""
        if isinstance(self.oracle, Full):
            return samples, "all"
        assert isinstance(self.oracle, Minibatch)
        return self.oracle.size, self.oracle.sampling

    def sensitivity(
        self,
        relation: str,
        samples: int,
        *,
        unit: str = Unit.RECORD,
        model: Model | None = None,
    ) -> float:
        """The largest l2 change of one gradient between neighbours.

        For batches: given that the record is in the batch, once.

        Args:
            relation: `replace_one` or `add_remove`.
            samples: m, records of the agent.
            unit: One `record`, or all records of the `client` at once.
            model: Whose gradients. An empty row has none in a linear model, as the
                table says; the biases of a network learn from it, so there emptying a
                record is no less than replacing it.
        """
        relation, unit = word(Relation, relation), word(Unit, unit)
        samples = inputs.whole(samples=samples)
        bound = inputs.positive(norm=self.norm)
        used, sampling = self.drawn(samples)
        if unit == Unit.CLIENT:
            if sampling == "poisson":
                check.refuse(
                    "Poisson batches have no largest size, so a whole client has no "
                    "finite sensitivity; use sampling='without_replacement'"
                )
            used = 1
        silent = model is None or isinstance(model, Linear | Logistic | Softmax)
        once = relation == Relation.ADD_REMOVE and silent
        return (1 if once else 2) * bound / used

    def rows_used(self, rows: int) -> int:
        """As many as the inner oracle."""
        return self.oracle.rows_used(rows)


def without_noise(oracle: Oracle) -> Oracle:
    """What noise, if there is any, was put around."""
    return oracle.oracle if isinstance(oracle, Noisy) else oracle


def clipping_of(oracle: Oracle) -> Clipped | None:
    """The clipping of an oracle, under noise or not; None where there is none."""
    inner = without_noise(oracle)
    return inner if isinstance(inner, Clipped) else None


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
        factor = weights * _shrink(_lengths(residual) * batch.row_lengths(), norm)
        return (jnp.reshape(factor, (-1, 1)) * residual).T.dot(x).reshape(-1)
    if isinstance(model, Perceptron):
        layers, norms = _layers_and_norms(model, w, batch)
        return model.added_up(layers, weights * _shrink(norms, norm))

    def one_batch(total: Array, rows: tuple) -> tuple[Array, None]:
        part_x, part_y, part_weights = rows
        grads = example_grads(model, w, part_x, part_y)
        factor = part_weights * _shrink(_lengths(grads), norm)
        return total + factor @ grads, None

    weights = jnp.broadcast_to(weights, y.shape)
    parts = _in_microbatches((x, y, weights), micro)
    return jax.lax.scan(one_batch, jnp.zeros_like(w), parts)[0]


def example_norms(model: Model, w: Array, batch: Batch, micro: int) -> Array:
    """The norm of every row's gradient, regulariser left out."""
    x, y = batch.x, batch.y
    if isinstance(model, Linear | Logistic):
        residual = _numbers(model.residual(model.scores(w, x), y))
        return jnp.abs(residual) * batch.row_lengths()
    if isinstance(model, Softmax):
        residual = _numbers(model.residual(model.scores(w, x), y))
        return _lengths(residual) * batch.row_lengths()
    if isinstance(model, Perceptron):
        return _layers_and_norms(model, w, batch)[1]
    norms = jax.lax.map(
        lambda rows: _lengths(example_grads(model, w, *rows)),
        _in_microbatches((x, y), micro),
    )
    return norms.reshape(-1)[: y.shape[0]]


def _layers_and_norms(
    model: Perceptron, w: Array, batch: Batch
) -> tuple[list[LayerGradient], Array]:
    """The factors of all rows' gradients, and the gradients' norms.

    A row whose gradient is no number, or too long for one, has factors of zeros.
    """
    layers = model.layer_gradients(w, batch.x, batch.y)
    # ||a b'||^2 + ||b||^2 = (||a||^2 + 1) ||b||^2, of the layers' matrices and biases.
    # Squares of short b may vanish beside long a.
    lengths = [
        jnp.hypot(_lengths(a), 1) * jnp.maximum(_lengths(b), _SHORTEST)
        for a, b in layers
    ]
    norms = _lengths(jnp.stack(lengths, axis=-1))
    whole = jnp.isfinite(norms)
    kept = jax.tree.map(lambda part: jnp.where(whole[:, None], part, 0), layers)
    return kept, _numbers(norms)


def example_grads(model: Model, w: Array, x: Array, y: Array) -> Array:
    """The gradient of every row, (rows, dim); not-a-number counts as zero."""

    def one(row: Array, label: Array) -> Array:
        weight = jnp.ones(1, w.dtype)
        return model.grad(w, row[None], label[None], weight)

    grads = jax.vmap(one)(x, y)
    whole = jnp.all(jnp.isfinite(grads), axis=-1, keepdims=True)
    return jnp.where(whole, grads, 0)


def _in_microbatches(rows: tuple[Array, ...], size: int) -> tuple[Array, ...]:
    """Rows as (microbatches, size, ...); the last one is filled up with zeros."""
    count = rows[0].shape[0]
    size = min(size, count)
    parts = math.ceil(count / size)

    def cut(leaf: Array) -> Array:
        spare = [(0, parts * size - count)] + [(0, 0)] * (leaf.ndim - 1)
        return jnp.pad(leaf, spare).reshape(parts, size, *leaf.shape[1:])

    return tuple(cut(leaf) for leaf in rows)


def _lengths(rows: Array) -> Array:
    """l2 norms along the last axis."""
    return jnp.sqrt(jnp.sum(rows * rows, axis=-1))


@functools.partial(jax.jit, static_argnums=1)
def _row_lengths(rows: Array, axis: int) -> Array:
    """l2 norms along an axis; compiled, so that no square of all rows is kept.

    Scaled by the largest entry: squares of long rows would not be finite, and a length
    that is not would break the letter or not, as the label has it.
    """
    largest = jnp.max(jnp.abs(rows), axis=axis, keepdims=True)
    scaled = rows / jnp.where(largest > 0, largest, 1)
    length = jnp.sqrt(jnp.sum(scaled * scaled, axis=axis))
    return jnp.squeeze(largest, axis) * length


def _shrink(norms: Array, norm: Any) -> Array:
    """min(1, C / norm of the gradient)."""
    return jnp.minimum(1, norm / jnp.maximum(norms, _SHORTEST))


def _numbers(values: Array) -> Array:
    """Zero for not-a-number: a record must not show by breaking a letter."""
    return jnp.where(jnp.isnan(values), 0, values)

"""One agent's local problem, and the stack of all of them.

`Local` is what an algorithm sees of the world: one agent's rows and loss. `Population`
holds the same for all agents, stacked along a first axis, and is what the runtime maps
over. Rows beyond an agent's own count are padding and carry weight zero; when all
agents have equally many rows there is no padding and no mask at all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita.mesh.places import Places
from tacita.problem.model.linear import Model
from tacita.problem.model.per_agent import PerAgent
from tacita.problem.model.regulariser import Regulariser
from tacita.trees import frozen, replace, static

#: Up to this many features, rows are stored feature by feature: on a CPU the products
#: with such narrow matrices then run 2-5 times faster (bench/simulator.py, workload A).
NARROW = 32


class Rows(NamedTuple):
    """Rows of one agent; stacked, of all agents. `filled` is None without padding.

    x is (rows, features...), or (features, rows) where the problem is narrow.
    """

    x: Any
    y: Any
    filled: Any  # number of real rows
    lengths: Any = None  # l2 norms of the rows, where an oracle asked for them
    weight: Any = None  # rho_i, what the agent's rows weigh; None where all weigh 1
    kind: Any = None  # which of several models is the agent's; None where all have one


@frozen
class Local:
    """f_i(w) = rho_i mean over the agent's rows of the model's loss + the regulariser.

    The weight rho_i of (73) is 1 unless the problem has others.

    `h` is the problem's shared non-smooth part, of which each of the `n_agents` may
    need its share; it is not added to f_i.
    """

    rows: Rows
    regulariser: Regulariser
    h: Any
    n_agents: float
    model: Model = static()
    by_feature: bool = static(default=False)

    @property
    def x(self) -> Array:
        """The features, (rows, features...), however they are stored."""
        return self.rows.x.T if self.by_feature else self.rows.x

    def take(self, index: Array) -> tuple[Array, Array]:
        """Features and labels of the rows `index`."""
        x = self.rows.x
        chosen = x[:, index].T if self.by_feature else x[index]
        return chosen, self.rows.y[index]

    @property
    def own(self) -> Any:
        """The agent's own model: the problem's, or its own one of several."""
        if self.rows.kind is None:
            return self.model
        assert isinstance(self.model, PerAgent)
        return self.model.of(self.rows.kind)

    def as_kind(self, number: int) -> Local:
        """The same rows under one of several models."""
        assert isinstance(self.model, PerAgent)
        rows = self.rows._replace(kind=None)
        return replace(self, model=self.model.models[number], rows=rows)

    @property
    def padded_rows(self) -> int:
        """Number of rows including padding: a static number."""
        return self.rows.y.shape[0]

    @property
    def count(self) -> Any:
        """Number of real rows: a static number when nobody is padded."""
        return self.padded_rows if self.rows.filled is None else self.rows.filled

    def mean_weights(self) -> Array:
        """Weights of the plain mean over real rows; a scalar when nobody is padded."""
        if self.rows.filled is None:
            return jnp.asarray(1 / self.padded_rows, self.rows.x.dtype)
        real = jnp.arange(self.padded_rows) < self.rows.filled
        # A node without rows (it still gets a model from its neighbours) has loss 0.
        count = jnp.maximum(self.rows.filled, 1).astype(self.rows.x.dtype)
        return real.astype(self.rows.x.dtype) / count

    def batch_weight(self, size: int) -> Array:
        """Weight of a row in the mean over a batch; 0 for a node without rows."""
        weight = jnp.asarray(1 / size, self.rows.x.dtype)
        if self.rows.filled is None:
            return weight
        # Its batches are padding, which a model with biases would learn from.
        return jnp.where(self.rows.filled > 0, weight, 0)

    def batch_weights(self, index: Array) -> Array:
        """Weights of the rows `index` in their mean; of places below 0, which are void.

        A scalar when nobody is padded: then no place is void.
        """
        if self.rows.filled is None:
            return self.batch_weight(index.shape[0])
        real = (index >= 0).astype(self.rows.x.dtype)
        return real / jnp.maximum(jnp.sum(real), 1)

    def loss(self, w: Array) -> Array:
        """f_i(w)."""
        losses = self.own.losses(w, self.x, self.rows.y)
        return self.weighed(jnp.sum(self.mean_weights() * losses)) + self.regulariser(w)

    def grad(self, w: Array) -> Array:
        """The gradient of f_i at w, over all rows."""
        return self.weighted_grad(w, self.mean_weights())

    def weighed(self, of_rows: Array) -> Array:
        """rho_i times what was computed from the rows."""
        return of_rows if self.rows.weight is None else self.rows.weight * of_rows

    def weighted_grad(self, w: Array, weights: Array) -> Array:
        """Gradient with the given share of every row, regulariser included."""
        data = self.own.grad(w, self.x, self.rows.y, weights)
        return self.weighed(data) + self.regulariser.grad(w)

    def batch_grad(self, w: Array, index: Array) -> Array:
        """Gradient of the mean loss over the rows `index`, regulariser included."""
        x, y = self.take(index)
        data = self.own.grad(w, x, y, self.batch_weights(index))
        return self.weighed(data) + self.regulariser.grad(w)

    def bounded_loss(
        self, w: Array, x: Array, y: Array, weights: Array, bound: Any
    ) -> Array:
        """The weighted sum of rows' losses, each within [0, bound], + the regulariser.

        A loss that is not a number counts as the bound: a row must not show by it.
        """
        losses = self.own.losses(w, x, y)
        if bound is not None:
            limit = jnp.asarray(bound, losses.dtype)
            losses = jnp.where(losses < limit, jnp.maximum(losses, 0), limit)
        return self.weighed(jnp.sum(weights * losses)) + self.regulariser(w)

    def hits(self, w: Array) -> Array:
        """Number of real rows whose label the model predicts rightly."""
        right = self.own.predict(w, self.x) == self.rows.y
        if self.rows.filled is not None:
            right &= jnp.arange(self.padded_rows) < self.rows.filled
        return jnp.sum(right)


@frozen
class Population:
    """All agents' local problems, as one pytree that a compiled program takes."""

    rows: Rows
    regulariser: Regulariser
    h: Any
    test: Rows | None
    model: Model = static()
    by_feature: bool = static(default=False)
    spread: Places | None = static(default=None)  # None: all agents are here

    @property
    def here(self) -> int:
        """Number of agents whose rows are here: all but on one device of a mesh."""
        return self.rows.y.shape[0]

    @property
    def places(self) -> Places:
        """Where agents are."""
        return Places.of(self.here) if self.spread is None else self.spread

    @property
    def n_agents(self) -> int:
        """Number of agents, a static number."""
        return self.here if self.spread is None else self.spread.agents

    @property
    def counts(self) -> Array:
        """Real rows of every agent here."""
        if self.rows.filled is None:
            return jnp.full(self.here, self.rows.y.shape[1])
        return self.rows.filled

    def local(self, rows: Rows) -> Local:
        """The local problem of the one agent that holds `rows`."""
        return Local(
            rows=rows,
            regulariser=self.regulariser,
            h=self.h,
            n_agents=self.n_agents,
            model=self.model,
            by_feature=self.by_feature,
        )

    def mean(self, each: Array) -> Array:
        """The plain mean over agents."""
        return self.places.sum(each) / self.n_agents

    def _sum(self, method: str, w: Array) -> Array:
        """Sum over agents of a method of `Local`, at one w or at everyone's own."""

        def one(rows: Rows, v: Array) -> Array:
            return getattr(self.local(rows), method)(v)

        axis = 0 if w.ndim == 2 else None
        return self.places.sum(jax.vmap(one, (0, axis))(self.rows, w))

    def smooth_loss(self, w: Array) -> Array:
        """sum_i f_i(w), or sum_i f_i(w_i) for w of shape (N, d)."""
        return self._sum("loss", w)

    def loss(self, w: Array) -> Array:
        """sum_i f_i(w) + h(w)."""
        shared = self.mean(w) if w.ndim == 2 else w
        return self.smooth_loss(w) + (0.0 if self.h is None else self.h(shared))

    def grad(self, w: Array) -> Array:
        """sum_i grad f_i(w); for w of shape (N, d) everyone's own gradient."""
        if w.ndim == 2:
            return jax.vmap(lambda r, v: self.local(r).grad(v))(self.rows, w)
        return self._sum("grad", w)

    def accuracy(self, w: Array) -> Array:
        """Share of all rows whose label is predicted rightly."""
        return self._sum("hits", w) / self.places.sum(self.counts)

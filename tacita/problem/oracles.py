"""Gradients of one agent: over all its rows, or over a random batch.

An oracle makes its random draws for all local steps of a round at once (`draws`), so
that a sampling may span the steps, as a permutation of the rows does; then it answers
one gradient per draw. Inside an algorithm:

    draws = oracle.draws(key, steps)          # scanned over, one entry per local step
    g = oracle(draw, w)                       # the gradient of f_i at w
    f = oracle.loss(draw, w, bound)           # f_i(w), rows' losses within [0, bound]

Clipping, noise and rounding are oracles around oracles (`tacita.Clipped`,
`tacita.Noisy`, `tacita.Quantised`): an algorithm that asks for gradients does not know
that they are clipped, noised or rounded. `tacita.Stream` uses every row once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.population import Local, Population
from tacita.random_numbers import uniform
from tacita.sampling import below, without_replacement
from tacita.trees import frozen, one_of, replace, static

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


@runtime_checkable
class Oracle(Protocol):
    """How an agent answers for its gradient: a record, so that it can be traced."""

    @property
    def random(self) -> bool:
        """Whether it draws anything."""
        ...

    @property
    def norm(self) -> Any:
        """The largest norm of one row's gradient; None where nothing bounds it."""
        ...

    @property
    def std(self) -> Any:
        """Of the noise in every entry of a gradient; 0 where there is none."""
        ...

    def in_round(self, number: Array | int) -> Oracle:
        """The oracle that answers in this round; the first is 1."""
        ...

    def draws(self, local: Local, key: Array, steps: int) -> Any:
        """The randomness of `steps` gradients: a pytree with a first axis of steps."""
        ...

    def grad(self, local: Local, draw: Any, w: Array) -> Array:
        """The gradient of f_i at w, or an estimate of it, for one draw."""
        ...

    def loss(self, local: Local, draw: Any, w: Array, bound: Any) -> Array:
        """f_i(w), or an estimate of it, with every row's loss within [0, bound].

        A bound of None cuts nothing.
        """
        ...

    def check(self, problem: Problem) -> None:
        """Refuse a problem that this oracle cannot serve."""
        ...

    def prepare(self, population: Population) -> Population:
        """Note, once per run, what it needs to know of all rows in every round."""
        ...

    def rows_used(self, rows: int) -> int:
        """How many rows one gradient costs, out of an agent's `rows`."""
        ...

    def shares(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How steep its gradients are, of agents with so many `rows` each.

        The L with E|g(w) - g(w*)|^2 <= 2 L (f(w) - f(w*)) is the first share of the
        smoothness of the mean loss, and the second of that of the steepest row.
        """
        ...


class Bare:
    """Neither clipped nor noised."""

    def in_round(self, number: Array | int) -> Self:
        """The same in all rounds."""
        return self

    @property
    def norm(self) -> None:
        """No bound."""
        return None

    @property
    def std(self) -> float:
        """No noise."""
        return 0.0

    def shares(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As of as many rows as a gradient costs, drawn without replacement."""
        used = [self.rows_used(count) for count in rows.tolist()]
        return _without_replacement(rows, np.array(used))

    def rows_used(self, rows: int) -> int:
        """All of them."""
        return rows


def _without_replacement(
    rows: np.ndarray, used: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """R. M. Gower et al., "SGD: General Analysis and Improved Rates", Prop. 3.8."""
    used = np.maximum(used, 1)
    left = np.maximum(rows - used, 0)  # none of one row, or of none
    steepest = left / (used * np.maximum(rows - 1, 1))
    return 1 - steepest, steepest


@frozen
class Full(Bare):
    """The exact gradient over all rows."""

    @property
    def random(self) -> bool:
        """No."""
        return False

    def draws(self, local: Local, key: Array, steps: int) -> None:
        """Nothing is random."""
        return None

    def grad(self, local: Local, draw: Any, w: Array) -> Array:
        """Grad f_i(w)."""
        return local.grad(w)

    def loss(self, local: Local, draw: Any, w: Array, bound: Any) -> Array:
        """f_i(w)."""
        weights = local.mean_weights()
        return local.bounded_loss(w, local.x, local.rows.y, weights, bound)

    def check(self, problem: Problem) -> None:
        """Serves every problem."""

    def prepare(self, population: Population) -> Population:
        """Nothing to note."""
        return population

    def shares(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As steep as the mean loss."""
        return np.ones(len(rows)), np.zeros(len(rows))


#: What parts draws of losses from those of gradients. Large: a fold by a small number
#: is a word that a long draw with the same key uses up.
_FOR_LOSSES = 0x6C6F7373
SAMPLINGS = ("without_replacement", "with_replacement", "poisson", "permutation")


@frozen
class Minibatch(Bare):
    """The mean gradient over a random batch of an agent's rows.

    An agent with fewer rows than a batch takes all of them, unless it draws with
    replacement. In private runs that is refused: no theorem is about such batches.

    Attributes:
        size: Rows in a batch (their expected number under Poisson sampling).
        sampling: "without_replacement": a fresh set of rows each step.
            "with_replacement": independent draws. "poisson": every row joins with
            probability size/count, the sum is divided by `size`. "permutation": the
            rows are shuffled in every epoch and batches taken in turn, so that the
            batches of one epoch are disjoint.
    """

    size: int = static()
    sampling: str = one_of(*SAMPLINGS)

    @property
    def random(self) -> bool:
        """Which rows are used."""
        return True

    def __post_init__(self) -> None:
        check.count(batch=self.size)

    def draws(self, local: Local, key: Array, steps: int) -> Array:
        """Row numbers, (steps, size); under Poisson row weights, (steps, rows).

        A number below 0 is a void place, of an agent with fewer rows than a batch.
        """
        if self.sampling == "with_replacement":
            return below(key, local.count, (steps, self.size))
        if self.sampling == "without_replacement":
            size = min(self.size, local.padded_rows)
            return without_replacement(key, local.count, size, steps)
        if self.sampling == "poisson":
            return self._poisson(local, key, steps)
        return jax.vmap(lambda s: self._permuted(local, key, s))(jnp.arange(steps))

    def grad(self, local: Local, draw: Array, w: Array) -> Array:
        """The batch gradient, regulariser included."""
        if self.sampling == "poisson":
            return local.weighted_grad(w, draw)
        return local.batch_grad(w, draw)

    def loss(self, local: Local, draw: Array, w: Array, bound: Any) -> Array:
        """The mean loss of a batch, regulariser included."""
        if self.sampling == "poisson":
            return local.bounded_loss(w, local.x, local.rows.y, draw, bound)
        weights = local.batch_weights(draw)
        return local.bounded_loss(w, *local.take(draw), weights, bound)

    def check(self, problem: Problem) -> None:
        """Serves every problem."""

    def require_rows(self, problem: Problem) -> None:
        """Refuse agents with fewer rows than a batch."""
        counts = problem.counts
        if self.sampling != "with_replacement" and self.size > counts.min():
            agent = problem.ids[int(np.argmin(counts))]
            check.refuse(
                f"batch={self.size} exceeds the {counts.min()} rows of agent "
                f"{agent!r}, and the account of a private run is of whole batches; use "
                f"batch={max(1, counts.min())} or sampling='with_replacement'"
            )

    def prepare(self, population: Population) -> Population:
        """Nothing to note."""
        return population

    def rows_used(self, rows: int) -> int:
        """A batch; a Poisson batch is computed as all rows, most with weight zero."""
        return rows if self.sampling == "poisson" else min(rows, self.size)

    def shares(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smaller the batch, the more of the steepest row."""
        if self.sampling == "with_replacement":
            steepest = np.where(rows > 1, 1 / self.size, 0.0)  # one row is the mean
            return 1 - steepest, steepest
        used = np.clip(rows, 1, self.size)
        if self.sampling == "poisson":
            # Rows that join by themselves: nothing is taken off the mean's share.
            return np.ones(len(rows)), (1 - used / np.maximum(rows, 1)) / used
        return _without_replacement(rows, used)

    def _poisson(self, local: Local, key: Array, steps: int) -> Array:
        rows = local.padded_rows
        chance = self.size / local.count
        joins = uniform(key, (steps, rows)) < chance
        joins &= jnp.arange(rows) < local.count
        # A node without rows has no row that joins.
        size = jnp.clip(local.count, 1, self.size)
        return joins.astype(local.rows.x.dtype) / size.astype(local.rows.x.dtype)

    def _permuted(self, local: Local, key: Array, step: Array) -> Array:
        per_epoch = jnp.maximum(local.count // self.size, 1)
        epoch, turn = step // per_epoch, step % per_epoch
        order = uniform(jax.random.fold_in(key, epoch), (local.padded_rows,))
        order = jnp.where(jnp.arange(local.padded_rows) < local.count, order, 2.0)
        shuffled = jnp.argsort(order)
        size = min(self.size, local.padded_rows)
        batch = jax.lax.dynamic_slice(shuffled, (turn * size,), (size,))
        # Padding is behind all real rows: only an agent with too few comes to it.
        return jnp.where(batch < local.count, batch, -1)


class AgentOracle:
    """An oracle bound to one agent: what an algorithm's `local` is handed."""

    def __init__(self, oracle: Oracle, local: Local) -> None:
        self.oracle = oracle
        self.local = local

    @property
    def of_data(self) -> AgentOracle:
        """The same without the regulariser: gradients of the rows alone."""
        none = SquaredL2(weight=0.0)
        return AgentOracle(self.oracle, replace(self.local, regulariser=none))

    def draws(self, key: Array, steps: int) -> Any:
        """The randomness of `steps` gradients."""
        return self.oracle.draws(self.local, key, steps)

    def __call__(self, draw: Any, w: Array) -> Array:
        """The gradient of f_i at w for one draw."""
        return self.oracle.grad(self.local, draw, w)

    def loss(self, draw: Any, w: Array, bound: Any) -> Array:
        """f_i(w) for one draw, every row's loss within [0, bound]."""
        return self.oracle.loss(self.local, draw, w, bound)

    def once(self, key: Array, w: Array) -> Array:
        """One draw and its gradient."""
        return self(self._one(key), w)

    def loss_once(self, key: Array, w: Array, bound: Any) -> Array:
        """One draw and its loss; gradients may be drawn with the same key."""
        return self.loss(self._one(jax.random.fold_in(key, _FOR_LOSSES)), w, bound)

    def _one(self, key: Array) -> Any:
        return jax.tree.map(lambda leaf: leaf[0], self.draws(key, 1))

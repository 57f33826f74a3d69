"""Per-example clipping: an oracle around an oracle, with its sensitivity.

Every record's gradient is scaled down to l2 norm at most C before it is weighted and
added up; the regulariser, which does not depend on the data, is added outside. M.
Abadi et al., "Deep Learning with Differential Privacy", CCS 2016.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.example_gradients import (
    Batch,
    clipped_sum,
    example_norms,
    lengths_along,
    rows_apart,
)
from tacita.privacy.noise_schedule import NoiseSchedule
from tacita.privacy.noisy import Noisy
from tacita.privacy.scope import Relation, Scope, Unit, word
from tacita.problem.model.linear import (
    GeneralisedLinear,
    Linear,
    Logistic,
    Model,
    Softmax,
)
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.model.wrapped import OneByOne
from tacita.problem.oracles import Full, Minibatch, Oracle
from tacita.problem.population import Local, Population
from tacita.problem.quantised import inside, unquantised
from tacita.problem.stream import Stream
from tacita.trees import count, flag, frozen, needed, replace, static

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


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
        oracle: Which records are used: `Full`, `Minibatch` or `Stream`.
        microbatch: Records whose gradients are held at once, for models that are
            neither linear nor perceptrons.
        promise: Set by `tacita.private`.
        looked: Whether theory set numbers of the algorithm by looking at private rows,
            which `tacita.private` notes here for reports.

    | relation      | what changes                    | Full      | batches   |
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
    looked: bool = flag(False)

    def __post_init__(self) -> None:
        if isinstance(self.oracle, Clipped):
            check.refuse("the oracle is clipped already; change its norm instead")

    def check(self, problem: Problem) -> None:
        """Refuse what the inner oracle refuses, and oracles that are not known."""
        if not isinstance(self.oracle, Full | Minibatch | Stream):
            check.refuse(
                "clipping wraps Full, Minibatch or Stream, got "
                f"{type(self.oracle).__name__}"
            )
        if problem.weighted:
            check.refuse(
                "clipped gradients of agents with weights have no theorem; leave the "
                "problem's weights out, and let FedAvg(weights='samples') weigh letters"
            )
        self.oracle.check(problem)
        if isinstance(self.oracle, Minibatch):
            self.oracle.require_rows(problem)

    def in_round(self, number: Array | int) -> Clipped:
        """With the rows of this round."""
        inner = self.oracle.in_round(number)
        return self if inner is self.oracle else replace(self, oracle=inner)

    def draws(self, local: Local, key: Array, steps: int) -> Any:
        """The inner oracle's draws: clipping is not random."""
        return self.oracle.draws(local, key, steps)

    def grad(self, local: Local, draw: Any, w: Array) -> Array:
        """sum_k weight_k min(1, C/||g_k||) g_k, plus the regulariser's gradient."""
        batch = self._batch(local, draw)
        data = clipped_sum(local.own, w, batch, self.norm, self.microbatch)
        return data + local.regulariser.grad(w)

    def loss(self, local: Local, draw: Any, w: Array, bound: Any) -> Array:
        """The inner oracle's: losses are within the bound of whoever asks.

        One record moves it by at most bound/C times what it moves a gradient, whatever
        the relation and the unit: noise in that ratio makes a loss no dearer. As for
        gradients, a network of a user's sees every row alone: what it does to a whole
        batch, such as a normalisation, would let one record move the losses of all.
        """
        if not rows_apart(local.model):
            local = replace(local, model=OneByOne(local.model))
        return self.oracle.loss(local, draw, w, bound)

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
        lengths = lengths_along(population.rows.x, axis)
        return replace(population, rows=population.rows._replace(lengths=lengths))

    def share_below(self, local: Local, w: Array) -> Array:
        """Share of the agent's records whose gradient at w is not longer than `norm`.

        Replacing a record, or emptying it, changes it by at most 1/m.
        """
        batch = self._all(local)
        norms = example_norms(local.own, w, batch, self.microbatch)
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
        assert isinstance(self.oracle, Minibatch | Stream)
        if isinstance(self.oracle, Minibatch) and self.oracle.sampling == "poisson":
            return whole._replace(weights=draw)
        x, y = local.take(draw)
        lengths = None if whole.lengths is None else whole.lengths[draw]
        if isinstance(self.oracle, Stream):
            return Batch(x, y, self.oracle.weights(local, draw), lengths)
        return Batch(x, y, local.batch_weight(self.oracle.size), lengths)

    def drawn(self, samples: int) -> tuple[int, str]:
        """Rows in one gradient of an agent, and their sampling; "all" for all rows."""
        if isinstance(self.oracle, Full):
            return samples, "all"
        if isinstance(self.oracle, Stream):
            return self.oracle.size, "stream"
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
                record is no less than replacing it (`learns_from_empty`).
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
        silent = model is None or not learns_from_empty(model)
        once = relation == Relation.ADD_REMOVE and silent
        return (1 if once else 2) * bound / used

    def rows_used(self, rows: int) -> int:
        """As many as the inner oracle."""
        return self.oracle.rows_used(rows)

    def shares(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of the inner oracle."""
        return self.oracle.shares(rows)


def learns_from_empty(model: Model) -> bool:
    """Whether a row of zeros may have a gradient, as in networks with biases.

    >>> learns_from_empty(Linear(3))
    False
    """
    return not all(isinstance(one, GeneralisedLinear) for one in kinds_of(model))


def without_noise(oracle: Oracle) -> Oracle:
    """What noise, if there is any, was put around; what rounds is left out too."""
    inner = unquantised(oracle)
    return inner.oracle if isinstance(inner, Noisy) else inner


def schedule_of(oracle: Oracle) -> NoiseSchedule | None:
    """How the noise of an oracle differs between rounds; None where it does not."""
    inner = unquantised(oracle)
    return inner.schedule if isinstance(inner, Noisy) else None


def with_std(oracle: Oracle, std: Any) -> Oracle:
    """The oracle with this noise, below what rounds."""

    def change(inner: Any) -> Noisy:
        noisy = inner if isinstance(inner, Noisy) else Noisy(std=std, oracle=inner)
        return replace(noisy, std=std)

    return inside(oracle, change)


def with_regulariser_last(oracle: Oracle) -> Oracle:
    """The oracle with its noise, if there is any, before the regulariser."""

    def change(inner: Any) -> Any:
        return (
            replace(inner, regulariser_last=True) if isinstance(inner, Noisy) else inner
        )

    return inside(oracle, change)


def clipping_of(oracle: Oracle) -> Clipped | None:
    """The clipping of an oracle, under noise or not; None where there is none."""
    inner = without_noise(oracle)
    return inner if isinstance(inner, Clipped) else None


def promise_of(oracle: Oracle) -> Promise | None:
    """The budget that noise was set for, or that runs are held to, if there is one."""
    clipped = clipping_of(oracle)
    return None if clipped is None else clipped.promise

"""Online gradients: every row is used once, in the order in which rows came.

A. Jung, "Federated Learning: From Theory to Practice", exercise 4.3: after each new
row a step along its gradient. Round k uses an agent's k-th block of rows, also if the
agent was silent before: a stream waits for nobody.

No record is in more than one gradient of a run. A run of noisy gradients then costs one
record what one gradient costs, however many rounds there are (parallel composition).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.oracles import Bare
from tacita.problem.population import Local, Population
from tacita.trees import count, flag, frozen, number, replace

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


def stream_of(oracle: Any) -> Stream | None:
    """The stream inside an oracle, if rows are used so."""
    while not isinstance(oracle, Stream):
        oracle = getattr(oracle, "oracle", None)  # of one around another
        if oracle is None:
            return None
    return oracle


@frozen
class Stream(Bare):
    """The mean gradient over the next rows of an agent.

    Attributes:
        size: Rows in one gradient.
        wrap: Begin again with the first row where all were used; without it, more
            rounds than rows are refused.
        round: Set by the runtime; leave it out.
    """

    size: int = count(1)
    wrap: bool = flag(False)
    round: Any = number(check.not_negative)

    @property
    def random(self) -> bool:
        """No: the order is that of the rows."""
        return False

    def in_round(self, number: Array | int) -> Stream:
        """With the rows of this round."""
        return replace(self, round=number)

    def draws(self, local: Local, key: Array, steps: int) -> Array:
        """Row numbers, (steps, size); below 0 where the stream has ended."""
        if self.round is None:
            check.refuse("a stream needs to know the round; use in_round(number)")
        before = (jnp.asarray(self.round).astype(int) - 1) * (steps * self.size)
        places = before + jnp.arange(steps * self.size)
        if self.wrap:
            # Whole batches only: a record stays in one place of an epoch.
            places = places % jnp.maximum(local.count // self.size * self.size, 1)
        real = (places >= 0) & (places < local.count)
        return jnp.where(real, places, -1).reshape(steps, self.size)

    def weights(self, local: Local, draw: Array) -> Array:
        """Of the rows drawn, in their mean; void places weigh nothing."""
        real = (draw >= 0).astype(local.rows.x.dtype)
        return real / self.size

    def grad(self, local: Local, draw: Array, w: Array) -> Array:
        """The gradient of the rows drawn, regulariser included."""
        x, y = local.take(draw)
        data = local.own.grad(w, x, y, self.weights(local, draw))
        return local.weighed(data) + local.regulariser.grad(w)

    def loss(self, local: Local, draw: Array, w: Array, bound: Any) -> Array:
        """The mean loss of the rows drawn, regulariser included."""
        x, y = local.take(draw)
        return local.bounded_loss(w, x, y, self.weights(local, draw), bound)

    def check(self, problem: Problem) -> None:
        """Refuse agents with less than one batch."""
        self.require_rounds(problem, 1, 1)

    def require_rounds(self, problem: Any, rounds: int, steps: int) -> None:
        """Refuse a run that is longer than the shortest stream."""
        rows = int(np.min(problem.counts))
        needed = self.size if self.wrap else rounds * steps * self.size
        if needed <= rows:
            return
        agent = problem.ids[int(np.argmin(problem.counts))]
        if self.size > rows:
            check.refuse(
                f"a gradient of size={self.size} takes more rows than the {rows} of "
                f"agent {agent!r}; use size={max(rows, 1)} or less"
            )
        check.refuse(
            f"{rounds} rounds with {steps} gradients of size={self.size} take {needed} "
            f"rows, and agent {agent!r} has {rows}; run at most "
            f"{rows // (steps * self.size)} rounds, or use wrap=True"
        )

    def uses(self, rows: int, gradients: int) -> int:
        """In how many of so many gradients in turn one record may be."""
        return -(-gradients // (rows // self.size)) if self.wrap else min(gradients, 1)

    def prepare(self, population: Population) -> Population:
        """Nothing to note."""
        return population

    def rows_used(self, rows: int) -> int:
        """A batch."""
        return min(rows, self.size)

"""Local solvers that take the variance out of batch gradients: SVRG and SAGA.

A batch gradient g_B(x) is compared with what the same rows said at an earlier point,
of which the gradient over all rows is known:

    SVRG    g_B(x) - g_B(a) + grad f_i(a)        a: where the round began
    SAGA    g_B(x) - mean_B table + mean table   table: each row's last gradient

Both estimates are unbiased, and their variance goes to zero with the distance from the
answer: unlike with plain batches, Fed-PLT then reaches the exact optimum.

R. Johnson and T. Zhang, "Accelerating stochastic gradient descent using predictive
variance reduction", NeurIPS 2013; A. Defazio, F. Bach, S. Lacoste-Julien, "SAGA: a fast
incremental gradient method", NeurIPS 2014.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, Number
from tacita.algorithm.second_order import LocalSolver
from tacita.problem.oracles import AgentOracle, Minibatch, Oracle
from tacita.schedule import rate
from tacita.trees import count, frozen

if TYPE_CHECKING:
    from tacita.problem.population import Local
    from tacita.problem.problem import Problem


def _row_step_size(problem: Problem, rho: Any, shift: float) -> np.ndarray:
    """1 / (3 L) of every agent, L that of its steepest row and of the proximal term.

    That of Theorem 1 of the SAGA paper for single rows: batches are no steeper.
    """
    return 1 / (3 * (problem.steepest - shift + 1 / rho))


class _VarianceReduced(LocalSolver):
    """What both share: batches, and nobody in between who changes their gradients."""

    def check(self, problem: Problem, oracle: Oracle) -> None:
        """Refuse all but plain batches."""
        if not isinstance(oracle, Minibatch):
            check.refuse(
                f"{type(self).__name__} compares gradients of the same rows at two "
                f"points, got oracle={type(oracle).__name__}; use "
                "oracle=Minibatch(size=...), or GradientDescent"
            )

    def gradients(self) -> Gradients:
        """They compare with the gradient over all rows."""
        return f"{type(self).__name__} looks at all rows in every round"


@frozen
class SVRG(_VarianceReduced):
    """Batch steps, corrected by the full gradient where the round began.

    Costs a gradient over all rows a round, and two batches a step.

    Attributes:
        step_size: gamma, one number or one per agent; None lets theory choose, for
            every agent, 1 / (3 L) with L the smoothness of its steepest row and of the
            proximal term.
        local_steps: Ne, steps in a round.
    """

    step_size: Number = rate(theory=_row_step_size)
    local_steps: int = count(10)

    def solve(
        self, key: Array, oracle: AgentOracle, w: Array, v: Array, rho: Any
    ) -> Array:
        """Ne times x <- x - gamma (g_B(x) - g_B(w) + grad f_i(w) + (x - v)/rho)."""
        anchor = oracle.local.grad(w)

        def body(x: Array, draw: Any) -> tuple[Array, None]:
            g = oracle(draw, x) - oracle(draw, w) + anchor
            return x - self.step_size * (g + (x - v) / rho), None

        return jax.lax.scan(body, w, oracle.draws(key, self.local_steps))[0]


@frozen
class SAGA(_VarianceReduced):
    """Batch steps, corrected by every row's last gradient.

    The table is made anew in every round, at its cost of one gradient over all rows;
    after that a step costs one batch. It holds a gradient for every row.

    Attributes:
        step_size: gamma, one number or one per agent; None lets theory choose, for
            every agent, 1 / (3 L) with L the smoothness of its steepest row and of the
            proximal term.
        local_steps: Ne, steps in a round.
    """

    step_size: Number = rate(theory=_row_step_size)
    local_steps: int = count(10)

    def check(self, problem: Problem, oracle: Oracle) -> None:
        """Also refuses Poisson batches, which are weights of rows, not rows."""
        super().check(problem, oracle)
        if isinstance(oracle, Minibatch) and oracle.sampling == "poisson":
            check.refuse(
                "SAGA needs to know which rows are in a batch, got sampling='poisson';"
                " use sampling='without_replacement', or SVRG"
            )

    def solve(
        self, key: Array, oracle: AgentOracle, w: Array, v: Array, rho: Any
    ) -> Array:
        """Ne times x <- x - gamma (mean_B (g_j(x) - t_j) + mean t + ...), t_B <- g."""
        local = oracle.local
        table = _row_gradients(local, w, jnp.arange(local.padded_rows))
        share = jnp.broadcast_to(local.mean_weights(), local.padded_rows)

        def body(carry: tuple, index: Array) -> tuple[tuple, None]:
            x, table, mean = carry
            new = _row_gradients(local, x, index)
            change = new - table[index]
            in_batch = jnp.broadcast_to(local.batch_weights(index), index.shape)
            g = local.weighed(in_batch @ change + mean) + local.regulariser.grad(x)
            # A row that was drawn twice changes the table once; void places never.
            times = jnp.sum(index[:, None] == index, axis=1)
            counts = jnp.where(index < 0, 0, share[index] / times)
            table = table.at[jnp.where(index < 0, len(table), index)].set(new)
            step = self.step_size * (g + (x - v) / rho)
            return (x - step, table, mean + counts @ change), None

        first = (w, table, share @ table)
        return jax.lax.scan(body, first, oracle.draws(key, self.local_steps))[0][0]


def _row_gradients(local: Local, w: Array, index: Array) -> Array:
    """The gradient of each row's loss alone, (rows, d)."""
    one = jnp.ones((), w.dtype)

    def of_row(x: Array, y: Array) -> Array:
        return local.own.grad(w, x[None], y[None], one)

    return jax.vmap(of_row)(*local.take(index))

"""Local solvers that use curvature: Newton, a quasi-Newton method, the exact answer.

All of them bring the residual r(w) = grad f_i(w) + (w - v)/rho of the proximal problem

    argmin_w  f_i(w) + ||w - v||^2 / (2 rho)

to zero, and measure progress by its length: unlike values of the loss, which round off
at a distance of 1e-8 from the answer, it can be followed to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, Number
from tacita.algorithm.defaults import proximal_step_size
from tacita.problem import proximal
from tacita.problem.newton import newton_step, residual_of
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.trees import count, filled, frozen

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class LocalSolver:
    """What solvers share: every oracle will do, and theory sets their numbers."""

    local_steps: int

    def check(self, problem: Problem, oracle: Oracle) -> None:
        """Nothing to refuse."""

    def gradients(self) -> Gradients:
        """One a step."""
        return (self.local_steps,)

    def resolve(self, problem: Problem, rho: Any, shift: float = 0.0) -> Self:
        """The same solver with every number that was left out set by theory."""
        return filled(self, problem, rho, shift)


class _ExactGradients(LocalSolver):
    """What the solvers of this file share: they need the gradient over all rows."""

    def check(self, problem: Problem, oracle: Oracle) -> None:
        """Refuse gradients over batches, and clipped ones: curvature needs them all."""
        if not isinstance(oracle, Full):
            check.refuse(
                f"{type(self).__name__} needs exact gradients, got oracle="
                f"{type(oracle).__name__}; use oracle=Full() or GradientDescent"
            )

    def gradients(self) -> Gradients:
        """They look at curvature, or at more gradients than they are asked for."""
        return f"{type(self).__name__} looks at the rows themselves"


@frozen
class Newton(_ExactGradients):
    """Damped Newton steps on the proximal problem.

    Attributes:
        local_steps: Newton steps in a round.
    """

    local_steps: int = count(2)

    def solve(
        self, key: Array, oracle: AgentOracle, w: Array, v: Array, rho: Any
    ) -> Array:
        """W <- w - (H + I/rho)^-1 r(w), the step halved while r would grow."""
        residual = residual_of(oracle.local, v, rho)

        def body(x: Array, _: None) -> tuple[Array, None]:
            return newton_step(residual, x)[0], None

        return jax.lax.scan(body, w, None, length=self.local_steps)[0]


@frozen
class ExactProx(_ExactGradients):
    """The exact proximal point: Fed-PLT is then Peaceman-Rachford splitting."""

    def check(self, problem: Problem, oracle: Oracle) -> None:
        """Not every model has a proximal point that can be computed."""
        remedy = "take another solver, such as GradientDescent"
        proximal.require_exact(problem, oracle, "ExactProx", remedy)

    def solve(
        self, key: Array, oracle: AgentOracle, w: Array, v: Array, rho: Any
    ) -> Array:
        """prox_{rho f_i}(v)."""
        return proximal.toward(oracle.local, w, v, 1 / rho)


class _Memory(NamedTuple):
    """The last steps and what they changed in the residual, the newest last."""

    steps: Array  # s_j, (memory, d)
    changes: Array  # y_j, (memory, d)


@frozen
class QuasiNewton(_ExactGradients):
    """L-BFGS steps, each checked against a gradient step (2 gradients a step).

    J. Nocedal and S. Wright, "Numerical Optimization", Algorithm 7.4. Of the L-BFGS
    step and the gradient step the one that leaves the shorter residual is taken, so
    that a round is never worse than gradient descent with the same number of steps.

    Attributes:
        step_size: Of the gradient step; None lets theory choose, for every agent,
            2 / (L_i + mu_i + 2/rho).
        local_steps: Steps in a round.
        memory: Pairs that the approximation of the Hessian is made from.
    """

    step_size: Number = rate(theory=proximal_step_size)
    local_steps: int = count(5)
    memory: int = count(4)

    def solve(
        self, key: Array, oracle: AgentOracle, w: Array, v: Array, rho: Any
    ) -> Array:
        """W <- w - H r(w) or w - step r(w), whichever leaves less of r."""
        residual = residual_of(oracle.local, v, rho)

        def body(carry: tuple, _: None) -> tuple[tuple, None]:
            x, r, memory = carry
            trials = jnp.stack([x - self.step_size * r, x - _apply(memory, r)])
            after = jax.vmap(residual)(trials)
            best = jnp.argmin(jnp.sum(after**2, axis=1))
            pair = trials[best] - x, after[best] - r
            memory = jax.tree.map(
                lambda old, new: jnp.concatenate([old[1:], new[None]]),
                memory,
                _Memory(*pair),
            )
            return (trials[best], after[best], memory), None

        # Pairs beyond the steps of a round would never be filled.
        pairs = min(self.memory, self.local_steps)
        empty = jnp.zeros((pairs, *w.shape), w.dtype)
        first = (w, residual(w), _Memory(empty, empty))
        return jax.lax.scan(body, first, None, length=self.local_steps)[0][0]


def _apply(memory: _Memory, r: Array) -> Array:
    """H r, where H approximates the inverse Hessian: the two-loop recursion."""
    curvature = jnp.sum(memory.steps * memory.changes, axis=1)
    # A pair that was not filled yet, or has no curvature, is left out.
    weight = jnp.where(curvature > 0, 1 / jnp.where(curvature > 0, curvature, 1), 0)

    def backward(q: Array, pair: tuple) -> tuple[Array, Array]:
        s, y, p = pair
        a = p * jnp.dot(s, q)
        return q - a * y, a

    def forward(q: Array, pair: tuple) -> tuple[Array, None]:
        s, y, p, a = pair
        return q + (a - p * jnp.dot(y, q)) * s, None

    pairs = (memory.steps, memory.changes, weight)
    q, a = jax.lax.scan(backward, r, pairs, reverse=True)
    newest = jnp.sum(memory.changes[-1] ** 2)
    # H_0 = (s.y / y.y) I of the newest pair.
    scale = jnp.where(newest > 0, curvature[-1] / jnp.where(newest > 0, newest, 1), 1)
    return jax.lax.scan(forward, scale * q, (*pairs, a))[0]

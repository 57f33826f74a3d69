"""5GCS: an accelerated primal-dual method in which a cohort of agents trains.

M. Grudzien, G. Malinovsky, P. Richtarik, "Can 5th Generation Local Training Methods
Support Client Sampling? Yes!", AISTATS 2023, Algorithm 1. With the strong convexity mu
taken out, F_i(y) = (f_i(y) - (mu/2)||y||^2) / N,

    coordinator   xh = (x - gamma v) / (1 + gamma mu)
    agent i in S  y ~ argmin F_i(y) + (tau/2) ||y - (xh + u_i/tau)||^2,  from xh
                  u_i <- grad F_i(y)
    coordinator   v+ = sum_i u_i;  x = xh - gamma (N/|S|) (v+ - v);  v = v+
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import (
    Averages,
    Gradients,
    Number,
    Round,
    ServerAlgorithm,
)
from tacita.algorithm.joining import NOISE_WEARS_OFF, Joining
from tacita.algorithm.solvers import SAGA, SVRG, GradientDescent, Mixed, steady
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.theory import descent
from tacita.trees import frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One agent's memory."""

    y: Array  # y, the model after its last local training
    u: Array  # N u_i, which is also its letter


class Duals(NamedTuple):
    """The coordinator's memory."""

    x_hat: Array
    v: Array


class _FlatLocal:
    """An agent's loss and rows with the strong convexity taken out."""

    def __init__(self, local: Any, mu: Any) -> None:
        self._local, self._mu = local, mu

    def __getattr__(self, name: str) -> Any:
        return getattr(self._local, name)

    @property
    def regulariser(self) -> Any:
        """What solvers add to gradients of single rows."""
        return _FlatLocal(self._local.regulariser, self._mu)

    def grad(self, w: Array) -> Array:
        """Grad f_i(w) - mu w, over all rows; of the regulariser likewise."""
        return self._local.grad(w) - self._mu * w


class _Flattened:
    """An agent's oracle with the strong convexity taken out: N grad F_i."""

    def __init__(self, oracle: AgentOracle, mu: Any) -> None:
        self._oracle, self._mu = oracle, mu
        self.draws = oracle.draws
        self.local = _FlatLocal(oracle.local, mu)

    def __call__(self, draw: Any, w: Array) -> Array:
        """g_i(w) - mu w for one draw."""
        return self._oracle(draw, w) - self._mu * w

    def once(self, key: Array, w: Array) -> Array:
        """One draw and its gradient."""
        return self._oracle.once(key, w) - self._mu * w


#: gamma L over local steps, at most. On quadratics, whose rounds are linear maps, those
#: of gradient steps that do not swing contract up to some 2.5.
_REACH = 2.0


def _gamma(problem: Problem, algorithm: Any) -> Any:
    """1/sqrt(mu L), or as much as the local steps bear."""
    largest, solver = descent.smoothness(problem, algorithm), algorithm.solver
    gamma = 1 / np.sqrt(algorithm.strong_convexity * largest)
    return min(gamma, _REACH * _steps(problem, solver, largest))


def _steps(problem: Problem, solver: Any, largest: float) -> float:
    """How far a solver's gradient steps go together; infinitely if there are none."""
    if isinstance(solver, Mixed):
        return min(_steps(problem, one, largest) for one in solver.solvers)
    if not hasattr(solver, "local_steps"):
        return np.inf
    own = getattr(solver, "own_steps", None)
    steps = solver.local_steps if own is None else np.min(own)
    if isinstance(solver, SVRG | SAGA):  # whose steps are a third of the steepest row's
        largest = 3 * float(np.max(problem.steepest))
    return float(steps) / largest


def _tau(problem: Problem, algorithm: Any) -> Any:
    """1/(2 gamma N)."""
    return 1 / (2 * algorithm.gamma * problem.n_agents)


@frozen
class FiveGCS(ServerAlgorithm):
    """Local training on duals, with client sampling.

    Attributes:
        strong_convexity: mu of every f_i; None takes the problem's.
        gamma: Primal step; None chooses 1/sqrt(mu L), the paper's order without the
            small constant that its proof needs, or 2 K/L where K local steps are too
            few for that; of `SVRG` and `SAGA` L is three times the steepest row's.
        tau: Dual step, of the order 1/N; None lets theory choose 1/(2 gamma N).
        solver: How agents train, from `tacita.algorithm.solvers`; the proof admits
            each that shrinks the local error enough. Gradient steps that are left out
            are 1/(L_i - mu + N tau): longer ones swing, and the duals with them.
        oracle: How agents compute gradients.
    """

    strong_convexity: Number = number(
        check.positive, theory=descent.strong_convexity, common=True
    )
    gamma: Number = number(check.positive, theory=_gamma, common=True)
    tau: Number = number(check.positive, theory=_tau, common=True)
    solver: Any = GradientDescent()
    oracle: Oracle = Full()

    averages: ClassVar[Averages] = Averages.ALL
    joining: ClassVar[Joining] = Joining(no_sum=NOISE_WEARS_OFF)
    purpose: ClassVar[str] = "the exact optimum with few agents active in a round"
    source: ClassVar[str] = "M. Grudzien et al., 5GCS, AISTATS 2023, Algorithm 1"

    def refuse_problem(self, problem: Problem) -> None:
        """Needs strong convexity."""
        super().refuse_problem(problem)
        if self.strong_convexity is None and problem.moduli.smallest <= 0:
            check.refuse(
                "FiveGCS needs strongly convex losses; add l2 > 0 or give "
                "strong_convexity="
            )

    def proximal(self, problem: Problem) -> tuple[Any, ...]:
        """1/(N tau), with the strong convexity taken out."""
        return 1 / (self.tau * problem.n_agents), self.strong_convexity

    def solver_at(self, problem: Problem, rho: Any, shift: float = 0.0) -> Any:
        """With gradient steps that do not swing."""
        return steady(self.solver, problem, rho, shift)

    def gradients(self) -> Gradients:
        """The solver's, and one for the dual."""
        trained = self.solver.gradients()
        return trained if isinstance(trained, str) else (*trained, 1)

    def init(self, w: Array) -> tuple[State, Array]:
        """u_i = 0."""
        return State(w, jnp.zeros_like(w)), jnp.zeros_like(w)

    def init_coordinator(self, w: Array) -> Duals:
        """X = w, v = 0."""
        return Duals(w, jnp.zeros_like(w))

    def combine(
        self, key: Array, kept: Duals, mean: Array, now: Round
    ) -> tuple[Duals, Array]:
        """The primal step."""
        v = mean  # letters carry N u_i, so the mean is sum_i u_i
        # x = xh - gamma (N/|S|) (v+ - v); where nobody came, v+ = v.
        share = now.n_agents / jnp.maximum(now.active, 1).astype(v.dtype)
        x = kept.x_hat - self.gamma * share * (v - kept.v)
        # xh = (x - gamma v) / (1 + gamma mu)
        x_hat = (x - self.gamma * v) / (1 + self.gamma * self.strong_convexity)
        return Duals(x_hat, v), x_hat

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """Local training from xh, then the dual."""
        n = oracle.local.n_agents
        flat: Any = _Flattened(oracle, self.strong_convexity)
        for_training, for_dual = (jax.random.fold_in(key, k) for k in range(2))
        # Times N: (f_i - (mu/2)||.||^2)(y) + (N tau/2) ||y - (xh + u_i/tau)||^2
        rho = 1 / (n * self.tau)
        v = inbox + rho * state.u
        y = self.solver.solve(for_training, flat, inbox, v, rho)
        # u_i = grad F_i(y); solvers that look at all rows do not leave it to a batch.
        exact = isinstance(self.solver.gradients(), str)
        u = flat.local.grad(y) if exact else flat.once(for_dual, y)
        return State(y, u), u

"""Accelerated local steps for methods that were not made for them.

Table II of the first version also runs FedPD, FedLin, LED and TAMUNA with Nesterov's
steps, "a straightforward modification" that it does not write out. Here each of their
local steps w <- w - gamma G(w) becomes

    u+ = w - gamma G(w),    w = u+ + beta (u+ - u),    from u = w,

which is (12), with beta = (1 - sqrt(gamma mu))/(1 + sqrt(gamma mu)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax.numpy as jnp
from jax import Array

import tacita
from papers.fed_plt.common.tuning import penalty_range
from tacita.algorithm import (
    fed_lin,
    fed_pd,
    gradient_steps,
    led,
    random_steps,
    tamuna,
)
from tacita.algorithm.base import Phase, ServerAlgorithm
from tacita.algorithm.solvers import Accelerated
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.trees import frozen, replace
from tacita.tuning.grids import GRIDS


class _AtFirst:
    """An agent's oracle for a pair (w, u): the gradient at w."""

    def __init__(self, oracle: AgentOracle) -> None:
        self._oracle = oracle
        self.draws = oracle.draws

    def __call__(self, draw: Any, pair: Array) -> Array:
        return self._oracle(draw, pair[0])


def descend(
    plain: Callable[..., Array],
    key: Array,
    oracle: AgentOracle,
    w: Array,
    steps: Any,
    update: Callable[[Array, Array], Array],
    momentum: Any,
) -> Array:
    """`steps` accelerated steps, by the loop `plain` over pairs (w, u)."""

    def both(pair: Array, g: Array) -> Array:
        after = update(pair[0], g)
        return jnp.stack([after + momentum * (after - pair[1]), after])

    pair = jnp.stack([w, w])
    return plain(key, _AtFirst(oracle), pair, steps, both)[0]


@frozen
class AcceleratedFedPD(ServerAlgorithm):
    """FedPD, whose local problem is a proximal one: centre c - eta lambda_i."""

    eta: Any
    solver: Accelerated
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False

    def resolve(self, problem: tacita.Problem) -> Self:
        """The problem's moduli for the solver."""
        return replace(self, solver=self.solver.resolve(problem, self.eta))

    def init(self, w: Array) -> tuple[fed_pd.State, Array]:
        """x_i = w, lambda_i = 0."""
        return fed_pd.State(w, jnp.zeros_like(w)), w

    def local(
        self, key: Array, oracle: AgentOracle, state: fed_pd.State, inbox: Array
    ) -> tuple[fed_pd.State, Array]:
        """Accelerated training from x_i, then the multiplier."""
        centre = inbox - self.eta * state.lam
        x = self.solver.solve(key, oracle, state.x, centre, self.eta)
        lam = state.lam + (x - inbox) / self.eta
        return fed_pd.State(x, lam), x + self.eta * lam

    def model(self, state: fed_pd.State) -> Array:
        """x_i."""
        return state.x


@frozen
class AcceleratedFedLin(ServerAlgorithm):
    """FedLin; both exchanges as they are, the local steps accelerated."""

    inner: tacita.FedLin
    momentum: Any
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False
    exchanges: ClassVar[int] = 2

    def init(self, w: Array) -> Any:
        """As FedLin."""
        return self.inner.init(w)

    def init_coordinator(self, w: Array) -> Any:
        """As FedLin."""
        return self.inner.init_coordinator(w)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """As FedLin's, trained here."""
        inner = self.inner
        return (
            Phase(inner.gradient, inner.average_gradient),
            Phase(self.train, inner.average_model),
        )

    def train(self, key: Array, oracle: AgentOracle, state: Any, inbox: Any) -> Any:
        """Accelerated corrected steps from x."""

        def update(w: Array, g: Array) -> Array:
            return w - self.inner.step_size * (g - state.g + inbox.g)

        steps = self.inner.local_steps
        w = descend(
            gradient_steps.descend, key, oracle, inbox.x, steps, update, self.momentum
        )
        return fed_lin.State(w, state.g, state.e), w

    def model(self, state: Any) -> Array:
        """As FedLin."""
        return self.inner.model(state)

    def shared(self, broadcast: Any) -> Array:
        """As FedLin."""
        return self.inner.shared(broadcast)


@frozen
class AcceleratedLED(ServerAlgorithm):
    """LED with accelerated local steps."""

    inner: tacita.LED
    momentum: Any
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False

    def init(self, w: Array) -> Any:
        """As LED."""
        return self.inner.init(w)

    def local(self, key: Array, oracle: AgentOracle, state: Any, inbox: Array) -> Any:
        """The correction of the last round, then accelerated steps from x."""
        y = state.y + state.trained * (state.f - inbox)

        def update(f: Array, g: Array) -> Array:
            return f - self.inner.step_size * g - self.inner.beta * y

        steps = self.inner.local_steps
        f = descend(
            gradient_steps.descend, key, oracle, inbox, steps, update, self.momentum
        )
        return led.State(f, y, jnp.ones_like(state.trained)), f

    def model(self, state: Any) -> Array:
        """As LED."""
        return self.inner.model(state)


@frozen
class AcceleratedTAMUNA(ServerAlgorithm):
    """TAMUNA without compression, its random number of steps accelerated."""

    inner: tacita.TAMUNA
    momentum: Any
    oracle: Oracle = Full()

    @property
    def phases(self) -> tuple[Phase, ...]:
        """As TAMUNA's, trained here."""
        inner = self.inner
        return (
            Phase(self.train, inner.average),
            Phase(inner.control, inner.announce),
        )

    def init(self, w: Array) -> Any:
        """As TAMUNA."""
        return self.inner.init(w)

    def init_coordinator(self, w: Array) -> Any:
        """As TAMUNA."""
        return self.inner.init_coordinator(w)

    def train(self, key: Array, oracle: AgentOracle, state: Any, inbox: Any) -> Any:
        """L accelerated steps from x."""

        def update(w: Array, g: Array) -> Array:
            return w - self.inner.step_size * (g - state.h)

        plain, steps = random_steps.descend, inbox.steps
        w = descend(plain, key, oracle, inbox.x, steps, update, self.momentum)
        return tamuna.State(w, state.h), w

    def model(self, state: Any) -> Array:
        """As TAMUNA."""
        return self.inner.model(state)

    def shared(self, broadcast: Any) -> Array:
        """As TAMUNA."""
        return self.inner.shared(broadcast)


def _momentum(problem: tacita.Problem, step_size: float) -> float:
    root = math.sqrt(step_size * problem.moduli.smallest)
    return (1 - root) / (1 + root)


def fed_pd_grid(problem: tacita.Problem, local_steps: int) -> list:
    """FedPD with accelerated local steps and 48 eta around 1/sqrt(mu L)."""
    solver = Accelerated(local_steps=local_steps)
    return [
        AcceleratedFedPD(eta=float(eta), solver=solver).resolve(problem)
        for eta in penalty_range(problem)
    ]


def _wrapped(kind: Any, plain: Any) -> Any:
    def grid(problem: tacita.Problem, local_steps: int) -> list:
        return [
            kind(inner=one, momentum=_momentum(problem, one.step_size))
            for one in GRIDS[plain](problem, local_steps)
        ]

    return grid


fed_lin_grid = _wrapped(AcceleratedFedLin, tacita.FedLin)
led_grid = _wrapped(AcceleratedLED, tacita.LED)
tamuna_grid = _wrapped(AcceleratedTAMUNA, tacita.TAMUNA)

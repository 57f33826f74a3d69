"""Planted faults that an audit has to refute, and sound mechanisms that it must not."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import tacita
from tacita.algorithm.solvers import GradientDescent
from tacita.privacy import Clipped, Noisy, Poisson, account
from tacita.problem.oracles import Minibatch
from tacita.trees import frozen, replace

ROUNDS, DELTA = 3, 1e-5


class Case(NamedTuple):
    """What is audited, against whom."""

    problem: Any
    algorithm: Any
    observer: str = "coordinator"
    participation: Any = 1.0
    agent: int = 0
    claim: Any = None

    def audit(self, **more: Any) -> Any:
        """The audit at its defaults, or with other numbers."""
        return tacita.audit(
            self.problem,
            self.algorithm,
            observer=self.observer,
            participation=self.participation,
            agent=self.agent,
            claim=self.claim,
            **{"rounds": ROUNDS, "delta": DELTA, **more},
        )


def rows(agents: int = 2, each: int = 4, label: float = 0.0, **more: Any) -> Any:
    """Empty rows, or, with a label, rows whose gradients all point along one axis."""
    x = np.zeros((agents * each, 2))
    if label:
        x[:, 0] = 1.0
    y, owner = np.full(len(x), label), np.repeat(np.arange(agents), each)
    return tacita.from_arrays(x, y, owner, **{"model": "linear", "l2": 0.1, **more})


def honest(problem: Any, epsilon: float = 1.0, **more: Any) -> Any:
    """ServerGD with the noise for a budget."""
    return tacita.private(
        problem,
        tacita.ServerGD(step_size=0.3),
        epsilon=epsilon,
        delta=DELTA,
        observer="coordinator",
        rounds=ROUNDS,
        **more,
    )


@frozen
class HalvedNoise(Noisy):
    """Adds half the noise that it says it adds."""

    def grad(self, local, draw, w):
        return super().grad(local, (draw[0], draw[1] / 2), w)


@frozen
class BareCoordinate(Noisy):
    """Forgets the last number."""

    def grad(self, local, draw, w):
        return super().grad(local, (draw[0], draw[1].at[-1].set(0.0)), w)


@frozen
class UniformNoise(Noisy):
    """Noise of the right variance and the wrong shape."""

    def grad(self, local, draw, w):
        spread = jax.scipy.special.ndtr(draw[1]) - 0.5
        return super().grad(local, (draw[0], math.sqrt(12) * spread), w)


@frozen
class NoiseOfRows(Noisy):
    """Sets its noise by the agent's longest row."""

    def grad(self, local, draw, w):
        longest = jnp.sqrt(jnp.max(jnp.sum(local.x**2, axis=-1)))
        return super().grad(local, (draw[0], draw[1] * (0.1 + longest / 4)), w)


@frozen
class LastRowNotClipped(Clipped):
    """Clips all rows but the last."""

    def grad(self, local, draw, w):
        x, y = local.x[-1], local.rows.y[-1]
        own = 2 * x * (x @ w - y)
        length = jnp.sqrt(jnp.sum(own**2))
        lost = own * (1 - jnp.minimum(1, self.norm / jnp.maximum(length, 1e-30)))
        return super().grad(local, draw, w) + lost / local.count


@frozen
class FixedBatches(Minibatch):
    """Draws batches of a fixed size and calls them Poisson."""

    def draws(self, local, key, steps):
        fixed = Minibatch(size=self.size, sampling="without_replacement")
        numbers = fixed.draws(local, key, steps)
        weights = jnp.zeros((steps, local.padded_rows))
        return weights.at[jnp.arange(steps)[:, None], numbers].set(1 / self.size)


class Memory(NamedTuple):
    """What the agent that saves on randomness keeps."""

    w: Any
    first: Any
    rounds: Any


@frozen
class ReusedNoise(tacita.ServerGD):
    """Draws its noise in its first round and adds it again in every other."""

    def init(self, w):
        nothing = jax.random.key_data(jax.random.key(0))
        return Memory(w, nothing, jnp.zeros((), jnp.int32)), 0 * w

    def local(self, key, oracle, state, inbox):
        fresh = jax.random.key_data(key)
        first = jnp.where(state.rounds == 0, fresh, state.first)
        letter = oracle.once(jax.random.wrap_key_data(first), inbox)
        return Memory(inbox, first, state.rounds + 1), letter


def with_oracle(kind: Any, epsilon: float) -> Case:
    """An honest plan with another oracle of the same numbers."""
    safe = honest(rows(), epsilon)
    oracle = kind(std=safe.oracle.std, oracle=safe.oracle.oracle)
    return Case(rows(), replace(safe, oracle=oracle))


def reused(epsilon: float) -> Case:
    """The same noise in every round."""
    safe = honest(rows(), epsilon)
    return Case(rows(), ReusedNoise(step_size=0.3, oracle=safe.oracle))


def one_row_not_clipped(epsilon: float) -> Case:
    """Not the first."""
    safe = honest(rows(), epsilon)
    clipped = LastRowNotClipped(norm=1.0)
    return Case(
        rows(), replace(safe, oracle=Noisy(std=safe.oracle.std, oracle=clipped))
    )


def fixed_batches(epsilon: float) -> Case:
    """Rows that displace each other: all gradients but the record's are alike."""
    std = {1.0: 1.35, 4.0: 0.5}[epsilon]  # what Poisson batches of 2 in 4 need
    batch = FixedBatches(size=2, sampling="poisson")
    oracle = Noisy(std=std, oracle=Clipped(norm=1.0, oracle=batch))
    # The curve of Poisson batches themselves: Renyi bounds lie far above it.
    claim = account(
        observer="coordinator",
        unit="record",
        relation="add_remove",
        noise_std=std,
        sensitivity=0.5,
        rounds=ROUNDS,
        sampling=Poisson(0.5),
        method="pld",
    )
    method = tacita.ServerGD(step_size=0.3, oracle=oracle)
    return Case(rows(label=1e9), method, claim=claim)


def uneven_steps(epsilon: float) -> Case:
    """Others' noise counts less in the mean than the agent's own."""
    std = {1.0: 2.0, 4.0: 0.8}[epsilon]
    steps = np.array([0.4, 0.05, 0.05])
    noisy = Noisy(std=std, oracle=Clipped(norm=1.0))
    method = tacita.FedAvg(step_size=steps, oracle=noisy)
    return Case(rows(agents=3), method, "final_model")


#: By name: the case for a claim of about this epsilon. `uneven_steps` is sound unless
#: the accountant forgets step sizes, as it did.
FAULTS: dict[str, Any] = {
    "noise halved": lambda e: with_oracle(HalvedNoise, e),
    "a row other than the first not clipped": one_row_not_clipped,
    "noise reused in every round": reused,
    "no noise in one coordinate": lambda e: with_oracle(BareCoordinate, e),
    "uniform noise of the same variance": lambda e: with_oracle(UniformNoise, e),
    "fixed batches accounted as Poisson": fixed_batches,
    "others' noise without their step sizes": uneven_steps,
    "noise that depends on a row": lambda e: with_oracle(NoiseOfRows, e),
}


def forgetful_noise_of_a_mean(
    algorithm: Any, problem: Any, question: Any, **how: Any
) -> float | None:
    """What the accountant once computed: others' noise without their step sizes."""
    if question.scope.observer not in ("final_model", "neighbour"):
        return None
    spread = np.broadcast_to(algorithm.oracle.std, (problem.n_agents,)).astype(float)
    known = 1 if question.scope.observer == "neighbour" else 0
    others = np.delete(spread, question.agent)[: question.active - 1 - known]
    return math.hypot(spread[question.agent], *others)


def _noised(oracle: Any = None) -> Noisy:
    inner = Clipped(norm=1.0) if oracle is None else Clipped(norm=1.0, oracle=oracle)
    return Noisy(std=1.5, oracle=inner)


def on_ring(algorithm: Any, observer: str = "neighbour", **more: Any) -> Case:
    """Three nodes."""
    ring = tacita.problem.graph.ring(3)
    return Case(rows(agents=3, graph=ring, **more), algorithm, observer)


SOUND: dict[str, Any] = {
    "ServerGD": lambda: Case(rows(), honest(rows())),
    "ServerGD, logistic": lambda: Case(
        rows(model="logistic", label=1.0), honest(rows(model="logistic", label=1.0))
    ),
    "DPSGD, momentum": lambda: Case(
        rows(), tacita.DPSGD(step_size=0.3, momentum=0.5, oracle=_noised())
    ),
    "FedAvg, final model": lambda: uneven_steps(1.0),
    "FedAvg, local steps": lambda: Case(
        rows(), tacita.FedAvg(step_size=0.3, local_steps=2, oracle=_noised())
    ),
    "FedPLT, one of two": lambda: Case(
        rows(),
        tacita.FedPLT(
            rho=1.0,
            solver=GradientDescent(step_size=0.3, local_steps=2),
            oracle=_noised(),
        ),
        participation=1,
    ),
    "Poisson batches": lambda: Case(
        rows(label=1e9),
        tacita.ServerGD(
            step_size=0.3, oracle=_noised(Minibatch(size=2, sampling="poisson"))
        ),
    ),
    "fixed batches": lambda: Case(
        rows(label=1e9),
        tacita.FedAvg(step_size=0.3, oracle=_noised(Minibatch(size=2))),
    ),
    "DPFedAvg": lambda: Case(
        rows(),
        tacita.DPFedAvg(
            step_size=0.3, local_steps=2, noise_std=2.0, oracle=Clipped(norm=1.0)
        ),
    ),
    "FedSPD": lambda: Case(
        rows(),
        tacita.FedSPD(
            rho=1.0, gamma=5.0, local_steps=2, noise_std=2.0, oracle=Clipped(norm=1.0)
        ),
    ),
    "GossipSGD": lambda: on_ring(tacita.GossipSGD(step_size=0.3, oracle=_noised())),
    "GossipSGD, last models": lambda: on_ring(
        tacita.GossipSGD(step_size=0.3, oracle=_noised()), "final_model", bound=1.0
    ),
    "DPNorm": lambda: on_ring(
        tacita.DPNorm(
            step_size=0.2, local_steps=2, noise_std=0.3, oracle=Clipped(norm=1.0)
        )
    ),
}

"""Audit of one client with one telling record: the real algorithm in one dimension.

The record's gradient is +G in the data and -G in the neighbour, all others are 0: a
linear loss, the worst that Lemma 2 allows. `FedSPD.local` itself is run, many times
over; the batches have the law of Q disjoint draws of b out of m. Losses are linear, so
an observer who knows the broadcasts can take their part out of every letter; what is
left is the record's trace with noise, scored against the trace it leaves on average.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import tacita
from tacita.algorithm.fed_spd import State, Told
from tacita.audits.statistics import AuditResult, epsilon_lower_bound
from tacita.problem.oracles import AgentOracle
from tacita.trees import frozen, replace, static

#: Runs that are computed at once.
LANES = 50_000


class Place(NamedTuple):
    """What local steps ask of an agent besides gradients."""

    h: None
    n_agents: int


@frozen
class Telling:
    """Gradients of a client with one telling record, of sign `side`.

    Attributes:
        side: +G or -G; 0 for a client without the record.
        batch: b.
        samples: m.
        expected: Answer with the expected gradient instead of drawing batches.
    """

    side: float
    batch: int = static()
    samples: int = static()
    expected: bool = static(default=False)

    def draws(self, local: Any, key: Array, steps: int) -> Array:
        """How often the record is in each of `steps` disjoint batches: 0 or 1."""
        if self.expected:
            return jnp.full((steps,), self.batch / self.samples)
        place = jnp.floor(jax.random.uniform(key) * self.samples)
        return (place // self.batch == jnp.arange(steps)).astype(jnp.float32)

    def grad(self, local: Any, draw: Array, w: Array) -> Array:
        """Its share of the batch's mean gradient."""
        return jnp.ones_like(w) * (self.side * draw / self.batch)

    def check(self, problem: Any) -> None:
        """Serves no problem: it is asked directly."""


def scores(
    algorithm: tacita.FedSPD,
    *,
    side: float,
    runs: int,
    rounds: int,
    chance: float,
    samples: int,
    clients: int = 100,
    seed: int = 0,
) -> np.ndarray:
    """One score per run: how much the letters look like those of a positive record."""
    inner: Any = algorithm.oracle.oracle  # pyright: ignore
    telling = Telling(side=side, batch=inner.size, samples=samples)
    lanes = min(runs, LANES)
    keys = jax.random.split(jax.random.key(seed), -(-runs // lanes))
    made = replace(algorithm, oracle=telling)
    found = [
        np.asarray(_scores(rounds, clients, lanes, made, key, jnp.float32(chance)))
        for key in keys
    ]
    return np.concatenate(found)[:runs]


@partial(jax.jit, static_argnums=(0, 1, 2))
def _scores(
    rounds: int, clients: int, lanes: int, algorithm: Any, key: Array, chance: Array
) -> Array:
    telling = algorithm.oracle
    place = Place(None, clients)
    real = AgentOracle(telling, place)  # pyright: ignore
    without = AgentOracle(replace(telling, side=0.0, expected=True), place)  # pyright: ignore
    shown = AgentOracle(replace(telling, side=1.0, expected=True), place)  # pyright: ignore

    def one_run(key: Array) -> Array:
        def one_round(carry: Any, number: Array) -> tuple[Any, None]:
            state, base, trace, letter, score = carry
            for_local, for_part = jax.random.split(jax.random.fold_in(key, number))
            now = algorithm.in_round(number)
            quiet = replace(now, noise_std=None)
            active = jax.random.uniform(for_part) < chance
            told = Told(letter / clients)
            after, sent = now.local(for_local, real, state, told)
            # What the same client would send without the record and without noise.
            plain, expected = quiet.local(for_local, without, base, told)
            silent = Told(jnp.zeros_like(letter))
            left, signal = quiet.local(for_local, shown, trace, silent)
            if algorithm.state == "public":
                # The state is public: both start each round from the released one.
                plain, left = after, State(*(jnp.zeros_like(v) for v in trace))
            weight = (now.rho + now.gamma) ** 2
            gain = jnp.sum(weight * signal * (sent - expected))
            new = (after, plain, left, sent, score + gain)
            old = (state, base, trace, letter, score)
            keep = partial(jnp.where, active)
            return jax.tree.map(lambda n, o: keep(n, o), new, old), None

        zero = jnp.zeros(1, jnp.float32)
        start = State(zero, zero)
        carry = (start, start, start, zero, jnp.zeros((), jnp.float32))
        carry, _ = jax.lax.scan(one_round, carry, jnp.arange(1, rounds + 1))
        return carry[-1]

    return jax.vmap(one_run)(jax.random.split(key, lanes))


def audit(
    algorithm: tacita.FedSPD,
    *,
    runs: int,
    rounds: int,
    chance: float,
    samples: int,
    delta: float,
    confidence: float = 0.95,
    seed: int = 0,
) -> AuditResult:
    """A lower bound on epsilon against the coordinator, one record, replace-one."""
    bound = float(algorithm.oracle.norm)  # pyright: ignore
    told = [
        scores(
            algorithm,
            side=side,
            runs=runs,
            rounds=rounds,
            chance=chance,
            samples=samples,
            seed=2 * seed + k,
        )
        for k, side in enumerate((-bound, bound))
    ]
    # A gradient of -G moves the letters up: these are the data.
    return epsilon_lower_bound(
        -told[0],
        -told[1],
        delta=delta,
        key=jax.random.key(seed),
        confidence=confidence,
    )

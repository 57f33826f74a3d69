"""Many configurations of one algorithm at once, on the same batches and noise.

`tacita.sweep` draws batches for every configuration. Here all configurations share the
draws, so that a batch is gathered once and scored for all in one matrix product: eight
configurations then cost about as much as two.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import keys
from tacita.algorithm import DPNorm, GossipSGD, GraphADMM
from tacita.algorithm.gossip import mixed
from tacita.problem.problem import Problem
from tacita.runtime.delivery import deliver
from tacita.runtime.ready import make_world, prepare
from tacita.runtime.rounds import one_round
from tacita.runtime.world import Carry, Stage, World, first_carry
from tacita.trees import in_double_precision


class Moment(NamedTuple):
    """What can be measured after a round, of one configuration."""

    world: World
    algorithm: Any
    inbox: Array  # what the nodes received before the round
    carry: Carry  # what the round left


Measure = Callable[[Moment], Array]


@in_double_precision
def curves(
    problem: Problem,
    algorithms: Sequence[Any],
    rounds: int,
    every: int,
    measures: dict[str, Measure],
    seed: int = 0,
    told: Callable[[int], None] = lambda done: None,
    kept: Path | None = None,
) -> dict[str, np.ndarray]:
    """Measures after every `every` rounds, each (configurations, records).

    With a file to keep it in, what was reached is there after every record, and a run
    of the same things goes on from it.
    """
    ready = [prepare(problem, one) for one in algorithms]
    stacked = jax.tree.map(
        lambda *v: jnp.stack([jnp.asarray(x, problem.dtype) for x in v]), *ready
    )
    world = make_world(problem, ready[0], 1.0, lanes=True)
    base = keys.from_seed(seed)
    start = jnp.asarray(problem.start)
    carry = jax.vmap(lambda a: first_carry(world, a, base, start))(stacked)
    names = tuple(measures)
    pages: list[np.ndarray] = []
    # What a kept file must be of, to be gone on from.
    what = repr((problem.name, problem.counts.tolist(), ready, rounds, every, seed))
    if kept is not None and kept.exists():
        carry, pages = _read(kept, what, carry)
    for done in range(every * len(pages), rounds, every):
        carry, page = _advance(
            tuple(measures[name] for name in names),
            every,
            world,
            base,
            stacked,
            carry,
            done,
        )
        pages.append(np.asarray(page))
        if kept is not None:
            _keep(kept, what, carry, pages)
        told(done + every)
    book = np.stack(pages, axis=-1)
    return {name: book[:, k] for k, name in enumerate(names)} | {
        "round": np.arange(every, rounds + 1, every)
    }


def _keep(path: Path, what: str, carry: Any, pages: list[np.ndarray]) -> None:
    leaves: dict[str, Any] = {
        f"leaf_{k}": np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(carry))
    }
    whole = path.with_suffix(".tmp.npz")
    np.savez(whole, what=np.asarray(what), pages=np.stack(pages), **leaves)
    whole.replace(path)


def _read(path: Path, what: str, fresh: Any) -> tuple[Any, list[np.ndarray]]:
    """What `_keep` wrote, if it is of the same run; else the beginning."""
    with np.load(path) as file:
        if str(file["what"]) != what:
            return fresh, []
        leaves = [
            jnp.asarray(file[f"leaf_{k}"]) for k in range(len(jax.tree.leaves(fresh)))
        ]
        return jax.tree.unflatten(jax.tree.structure(fresh), leaves), [*file["pages"]]


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=5)
def _advance(
    measures: tuple[Measure, ...],
    every: int,
    world: World,
    base: keys.Keys,
    algorithms: Any,
    carries: Any,
    done: Any,
) -> tuple[Any, Array]:
    def lane(algorithm: Any, carry: Carry) -> tuple[Carry, Array]:
        def step(number: Any, before: Carry) -> Carry:
            return one_round(Stage(world, algorithm, base, number, False), before)

        before = jax.lax.fori_loop(done + 1, done + every, step, carry)
        after = step(done + every, before)
        assert world.links is not None
        inbox = deliver(world.links, before.mail.letters)
        moment = Moment(world, algorithm, inbox, after)
        return after, jnp.stack([jnp.asarray(m(moment), jnp.float64) for m in measures])

    return jax.vmap(lane)(algorithms, carries)


def _accuracy(moment: Moment, models: Array) -> Array:
    """Share of test rows predicted rightly, averaged over the nodes' models."""
    population = moment.world.population
    test = population.test
    assert test is not None

    def one(w: Array) -> Array:
        right = population.model.predict(w, test.x) == test.y
        return jnp.mean(right, dtype=jnp.float32)

    return jnp.mean(jax.lax.map(one, models))


def own_accuracy(moment: Moment) -> Array:
    """Of the nodes' own models w_i, as the paper measures it; gossip after mixing."""
    w, links = moment.carry.states.w, moment.world.links
    if isinstance(moment.algorithm, GossipSGD):
        assert links is not None
        w = jax.vmap(mixed)(links.edges, w, deliver(links, moment.carry.mail.letters))
    return _accuracy(moment, w)


def released_accuracy(moment: Moment) -> Array:
    """Of what the nodes may publish: for DP-Norm w_i + n_i."""
    states = moment.carry.states
    return _accuracy(moment, getattr(states, "released", states.w))


def model_norm(moment: Moment) -> Array:
    """Mean over nodes of ||w_i||."""
    return jnp.mean(jnp.linalg.norm(moment.carry.states.w, axis=-1))


def dual_norm(moment: Moment) -> Array:
    """Mean over nodes of ||lambda||: of each edge for DP-Norm, of the sum for ADMM."""
    algorithm, carry = moment.algorithm, moment.carry
    if isinstance(algorithm, GraphADMM):
        return jnp.mean(jnp.linalg.norm(carry.states.lam, axis=-1))
    if not isinstance(algorithm, DPNorm):
        return jnp.asarray(jnp.nan)
    assert moment.world.links is not None
    edges = moment.world.links.edges
    # y = (2/eta) lambda - z, so lambda = (eta/2) (y + z) with one eta per edge.
    larger = jnp.maximum(edges.neighbour_count[:, None], edges.neighbour_counts)
    eta = 1 / (algorithm.step_size * algorithm.local_steps * larger)
    duals = eta[..., None] / 2 * (carry.mail.letters + moment.inbox)
    norms = jnp.linalg.norm(duals, axis=-1)
    return jnp.sum(norms * edges.mask) / jnp.sum(edges.mask)

"""Algorithm 1 with the asynchronous exchange as printed: letters swap within a round.

Lines 7 to 19: in every inner step a node moves w, computes lambda and y, and at a
random step of the round replaces z_{i|j} by the y_{j|i} that its neighbour has at that
moment; the steps that follow use the new z. All letters of a round carry one noise n_i.

    w <- (w - mu g + mu sum_j (eta/gamma) s z) / (1 + mu sum_j eta/gamma)
    y_{i|j} = ((2 - gamma) z_{i|j} - 2 s (w + n)) / gamma,   z_{i|j} <- y_{j|i}

As printed every direction of an edge has a step of its own; with `swap` both ends of an
edge exchange at the same step, which leaves no letter out and none in twice.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import tacita
from tacita import keys
from tacita.problem.oracles import AgentOracle
from tacita.runtime.delivery import deliver
from tacita.runtime.ready import make_world, prepare
from tacita.runtime.world import World
from tacita.trees import in_double_precision


class Network(NamedTuple):
    """What all nodes hold after a round."""

    w: Array  # (nodes, d)
    z: Array  # letters received last, (nodes, slots, d)
    dual: Array  # mean over edges of ||lambda|| after the last inner step


@in_double_precision
def curves(
    problem: tacita.Problem,
    algorithms: Sequence[tacita.DPNorm],
    rounds: int,
    every: int,
    swap: bool,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Accuracy and norms, (configurations, records): on the same batches and noise."""
    ready: list[Any] = [prepare(problem, one) for one in algorithms]
    stacked = jax.tree.map(
        lambda *v: jnp.stack([jnp.asarray(x, problem.dtype) for x in v]), *ready
    )
    world, base = make_world(problem, ready[0], 1.0, lanes=True), keys.from_seed(seed)
    assert world.links is not None
    shape = (*world.links.edges.mask.shape, problem.dim)
    start = jnp.broadcast_to(jnp.asarray(problem.start), (shape[0], shape[2]))
    one = Network(start, jnp.zeros(shape, start.dtype), jnp.zeros((), start.dtype))
    network = jax.tree.map(lambda v: jnp.broadcast_to(v, (len(ready), *v.shape)), one)
    pages = []
    for done in range(0, rounds, every):
        network = _advance(every, swap, world, base, stacked, network, done)
        pages.append(np.asarray(_measure(world, network)))
    names = ("accuracy", "norm of w", "norm of dual")
    book = np.stack(pages, axis=-1)
    return {name: book[k] for k, name in enumerate(names)} | {
        "round": np.arange(every, rounds + 1, every)
    }


@functools.partial(jax.jit, static_argnums=(0, 1))
def _advance(
    every: int,
    swap: bool,
    world: World,
    base: keys.Keys,
    algorithms: Any,
    networks: Network,
    done: Any,
) -> Network:
    def lane(algorithm: Any, network: Network) -> Network:
        def step(number: Any, before: Network) -> Network:
            return one_round(world, algorithm, base, number, before, swap)

        return jax.lax.fori_loop(done + 1, done + every + 1, step, network)

    return jax.vmap(lane)(algorithms, networks)


def one_round(
    world: World, algorithm: Any, base: keys.Keys, number: Any, now: Network, swap: bool
) -> Network:
    """K inner steps of all nodes at once."""
    links = world.links
    assert links is not None
    edges, nodes = links.edges, now.w.shape[0]
    agents = jnp.arange(nodes)
    secret = jax.vmap(lambda a: keys.agent_key(keys.agent_secret(base, a), number, 0))
    for_rows, for_noise, for_times = jnp.moveaxis(
        jax.vmap(lambda key: jax.random.split(key, 3))(secret(agents)), 1, 0
    )
    rows, local_of = world.population.rows, world.population.local
    here = jax.vmap(lambda e: algorithm.edge_numbers(e, now.w.dtype))(edges)
    noise = algorithm.noise_std * jax.vmap(
        lambda key: jax.random.normal(key, now.w.shape[1:], now.w.dtype)
    )(for_noise)
    times = jax.vmap(
        lambda key, m: jax.random.randint(key, m.shape, 0, algorithm.local_steps)
    )(for_times, edges.mask)
    if swap:
        # One of the two ends of an edge says when.
        theirs = deliver(links, times[..., None].astype(now.w.dtype))[..., 0]
        times = jnp.where(edges.sign > 0, times, theirs.astype(times.dtype))
    gamma, sign = here.gamma[..., None], edges.sign[..., None]

    def gradient(own: Any, draw: Any, w: Array) -> Array:
        return AgentOracle(algorithm.oracle, local_of(own))(draw, w)

    def body(carry: tuple[Array, Array], given: tuple[Any, Array]) -> Any:
        (w, z), (draw, k) = carry, given
        towards = jnp.einsum("ns,nsd->nd", here.pull * edges.sign, z)
        share = 1 / (1 + jnp.sum(here.pull, axis=-1, keepdims=True))
        g = jax.vmap(gradient)(rows, draw, w)
        w = share * (w - algorithm.step_size * g + towards)
        shown = sign * (w + noise)[:, None]
        letters = ((2 - gamma) * z - 2 * shown) / gamma
        arrives = ((times == k) & edges.mask)[..., None]
        # lambda = (eta/gamma) (z - s (w + n)), before z is replaced
        dual = (here.pull / algorithm.step_size)[..., None] * (z - shown)
        return (w, jnp.where(arrives, deliver(links, letters), z)), _mean(dual, edges)

    draws = jax.vmap(
        lambda own, key: AgentOracle(algorithm.oracle, local_of(own)).draws(
            key, algorithm.local_steps
        )
    )(rows, for_rows)
    by_step = jax.tree.map(lambda v: jnp.moveaxis(v, 1, 0), draws)
    steps = (by_step, jnp.arange(algorithm.local_steps))
    (w, z), duals = jax.lax.scan(body, (now.w, now.z), steps)
    return Network(w, z, duals[-1])


def _mean(dual: Array, edges: Any) -> Array:
    norms = jnp.linalg.norm(dual, axis=-1)
    return jnp.sum(norms * edges.mask) / jnp.sum(edges.mask)


@jax.jit
def _measure(world: World, networks: Network) -> Array:
    population = world.population
    test = population.test

    def one(w: Array) -> Array:
        if test is None:
            return jnp.zeros(())
        return jnp.mean(population.model.predict(w, test.x) == test.y)

    accuracy = jax.lax.map(lambda nodes: jnp.mean(jax.lax.map(one, nodes)), networks.w)
    norms = jnp.mean(jnp.linalg.norm(networks.w, axis=-1), axis=-1)
    return jnp.stack([accuracy, norms, networks.dual])

"""Shadow runs: the same run on many draws of an agent's rows, all at once."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita.aggregation import Aggregation
from tacita.audits.reading import with_few_rows
from tacita.audits.scores import by_run
from tacita.audits.transcript import watched_run, world_of
from tacita.problem.problem import Problem
from tacita.runtime.ready import prepare
from tacita.runtime.world import World
from tacita.trees import in_double_precision, replace

#: Numbers that one batch of runs may hold at once.
_AT_ONCE = 2**24


class Shadows(NamedTuple):
    """What is seen of every run."""

    letters: np.ndarray  # of the agent, (runs, rounds, numbers)
    models: np.ndarray  # the final ones, (runs, d)


@in_double_precision
def shadow_runs(
    problem: Problem,
    algorithm: Any,
    rounds: int,
    agent: int,
    held: np.ndarray,
    seed: int = 0,
    participation: Any = 1.0,
    aggregation: Aggregation | None = None,
) -> Shadows:
    """Run once for every line of `held`, the numbers of the rows that the agent has.

    Args:
        problem: All agents' rows.
        algorithm: As it would run on a problem whose agent has so many rows.
        rounds: Of each run.
        agent: Its number.
        held: (runs, rows).
        seed: Of all runs, which have different noise.
        participation: As in `tacita.simulate`.
        aggregation: As in `tacita.simulate`.
    """
    runs, rows = held.shape
    few, _, _ = with_few_rows(problem, agent, rows)
    ready = prepare(few, algorithm)
    world = world_of(few, ready, participation, aggregation=aggregation)
    x, y, _ = problem.stacked()
    own = jnp.asarray(x[agent]), jnp.asarray(y[agent])
    seeds = np.random.default_rng(seed).integers(0, 2**62, runs, dtype=np.uint64)
    one = 4 * rounds * problem.dim + problem.population.rows.x.size
    batch = max(1, min(runs, _AT_ONCE // one))
    # Every batch has the same size, so that one program serves them all.
    order = np.resize(np.arange(runs), -(-runs // batch) * batch)
    parts = []
    for first in range(0, len(order), batch):
        now = order[first : first + batch]
        lanes = jnp.asarray(held[now]), jnp.asarray(seeds[now])
        found = _shadows(rounds, agent, world, ready, own, *lanes, few.start)
        parts.append(jax.tree.map(np.asarray, found))
    letters, models = (np.concatenate(one)[:runs] for one in zip(*parts, strict=True))
    return Shadows(by_run(letters), models)


@functools.partial(jax.jit, static_argnums=0)
def _shadows(
    rounds: int,
    agent: Any,
    world: World,
    algorithm: Any,
    own: tuple[Array, Array],
    held: Array,
    seeds: Array,
    start: Any,
) -> tuple[Any, Array]:
    population = world.population
    rows = population.rows

    def one(chosen: Array, seed: Array) -> tuple[Any, Array]:
        x, y = own[0][chosen], own[1][chosen]
        if population.by_feature:
            place = (agent, slice(None), slice(len(chosen)))
            x = x.T
        else:
            place = (agent, slice(len(chosen)))
        made = rows._replace(
            x=rows.x.at[place].set(x), y=rows.y.at[agent, : len(chosen)].set(y)
        )
        drawn = algorithm.oracle.prepare(replace(population, rows=made))
        lane = world._replace(population=drawn)
        seen, model = watched_run(rounds, agent, lane, algorithm, seed, start)
        return seen.letter, model

    return jax.vmap(one)(held, seeds)

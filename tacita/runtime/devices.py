"""Whether a run is spread over devices, and over which.

Results do not depend on it. Rounds of a fraction of a millisecond lose more by waiting
for each other than they gain, so that the engine decides unless the user does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from tacita import check
from tacita.algorithm.base import Delivery, GraphAlgorithm
from tacita.mesh.devices import BLOCKS, Mesh, found
from tacita.mesh.places import AGENTS, Places
from tacita.problem.graph import letters_across
from tacita.problem.problem import Problem
from tacita.runtime.engine import RunPlan
from tacita.runtime.over_agents import OverAgents
from tacita.runtime.spread import LANES, OverLanes, Spread
from tacita.runtime.world import World

#: Multiply-adds of a round from which on devices are worth their waiting for each
#: other: about a millisecond of one core (`bench/mesh.py`).
PAYS = 4_000_000
#: Multiply-adds that must stand against every number that crosses between devices.
PER_NUMBER = 100


def in_blocks(world: World, mesh: Mesh) -> World:
    """The world with the blocks of a mesh, where they are not the usual ones."""
    if mesh.blocks == BLOCKS or world.population.spread is not None:
        return world
    places = Places.of(world.population.n_agents, mesh.blocks)
    return world._replace(population=replace(world.population, spread=places))


def spread_of(
    mesh: Mesh,
    problem: Problem,
    algorithm: Any,
    world: World,
    plan: RunPlan,
    lanes: int,
) -> Spread | None:
    """How a run is spread over devices; None where one is enough.

    Args:
        mesh: What the user said.
        problem: What is solved.
        algorithm: How; of a sweep, its first configuration.
        world: Rows, rule, and who is active.
        plan: The static part of the run.
        lanes: How many seeds or configurations; 0 for one run.
    """
    devices = found(mesh)
    # Several processes are only started by somebody who wants them to share the work.
    asked = mesh.devices is not None or jax.process_count() > 1
    if len(devices) == 1:
        return None
    done = work(problem, algorithm, world) * max(lanes, 1)
    if not asked and done < PAYS:
        return None
    if lanes == 1 and not asked:
        return None
    if lanes:
        return OverLanes(jax.sharding.Mesh(np.array(devices), (LANES,)), lanes)
    why = _why_not(algorithm, world, plan)
    places = world.population.places
    few = places.blocks < len(devices)
    if asked and why:
        check.refuse(f"{why}; use one device and one process, or several seeds=")
    if asked and few:
        check.refuse(
            f"{len(devices)} devices cannot have a part each: of agents there are "
            f"{places.agents}, in blocks {places.blocks}; use fewer devices, or a mesh "
            "with more blocks"
        )
    if why or places.blocks == 1:
        return None
    devices = devices[: places.blocks]
    places = places._replace(devices=len(devices))
    if not asked and done < PER_NUMBER * _numbers_across(problem, algorithm, places):
        return None
    there = jax.sharding.Mesh(np.array(devices), (AGENTS,))
    return OverAgents(there, places, plan.keeps)


def work(problem: Problem, algorithm: Any, world: World) -> float:
    """Multiply-adds of one round, about."""
    asked = algorithm.gradients()
    gradients = 1 if isinstance(asked, str) else max(1, sum(asked))
    rows = algorithm.oracle.rows_used(problem.population.rows.y.shape[1])
    active = world.schedule.expected(problem.n_agents)
    return float(active) * gradients * rows * problem.dim


def _numbers_across(problem: Problem, algorithm: Any, places: Places) -> float:
    """Numbers of letters on a graph that cross in a round, about."""
    if not isinstance(algorithm, GraphAlgorithm):
        return 0.0
    assert problem.graph is not None
    per_edge = algorithm.delivery == Delivery.SLOTS
    mesh = Mesh(devices=places.devices, blocks=places.blocks)
    return float(letters_across(problem.graph, mesh, per_edge)) * problem.dim


def _why_not(algorithm: Any, world: World, plan: RunPlan) -> str:
    """Why agents cannot be spread; empty if they can."""
    if world.asynchronous is not None:
        return "letters that come late are not spread over devices yet"
    # On a graph rules join letters where they are received, by whomever they are sent.
    single = not isinstance(algorithm, GraphAlgorithm) and (
        not world.aggregation.additive or plan.watch
    )
    single |= world.attack is not None
    if single and world.schedule.kind == "cohort":
        return "letters that are needed one by one are not spread for K of N agents"
    return ""

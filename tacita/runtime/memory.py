"""Whether a run keeps every agent's state.

What an agent of FedAvg sends depends on the broadcast and its rows alone, so that its
state, its last model, is only there to be looked at as `run.agents`. Where all those
models are large, nothing is kept of agents between rounds, and a million agents with a
network need no more memory than those that are active.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import partial_eval

from tacita import check, keys
from tacita.algorithm.base import Averages, GraphAlgorithm
from tacita.problem.problem import Problem
from tacita.runtime.measure import DEFAULT_RECORD
from tacita.runtime.world import World, first_carry
from tacita.trees import tree_rows

#: Bytes of all agents' models up to which they are kept for those who look at them.
KEPT_BYTES = 2**28
#: Metrics that are functions of every agent's model.
_OF_AGENTS = ("disagreement", "mean_grad_norm_sq")


def is_small(problem: Problem) -> bool:
    """Whether every agent's model is kept, whoever needs it."""
    size = problem.n_agents * problem.dim * np.dtype(problem.dtype).itemsize
    return size <= KEPT_BYTES


def recorded(problem: Problem, record: Any) -> Any:
    """What is recorded; by default nothing for which large models would be kept."""
    if record is not DEFAULT_RECORD or is_small(problem):
        return record
    return tuple(metric for metric in record if metric not in _OF_AGENTS)


def keeps(
    problem: Problem,
    algorithm: Any,
    world: World,
    record: tuple[Any, ...],
    start: Any,
    reference: Any,
    asked: bool | None = None,
) -> bool:
    """Whether agents' states are kept: as asked, if needed, or where they are small."""
    asked = asked if asked is None else check.flag(keep_agents=asked)
    needed = (
        isinstance(algorithm, GraphAlgorithm)
        or algorithm.averages == Averages.ALL
        or world.asynchronous is not None
        or np.ndim(start) == 2
        or np.ndim(reference) == 2
        or any(_looks_at_agents(metric, problem) for metric in record)
    )
    if asked or (asked is None and is_small(problem)):
        return True
    if not needed and not _remembers(algorithm, world, problem):
        return False
    if asked is False:
        check.refuse(
            f"keep_agents=False, but {type(algorithm).__name__}, the start or a metric "
            "needs every agent's model; leave keep_agents out"
        )
    return True


def _remembers(algorithm: Any, world: World, problem: Problem) -> bool:
    """Whether letters depend on what agents kept, or differ before the first round."""
    start = jnp.zeros(problem.dim, problem.dtype)
    base, key = jax.eval_shape(lambda: (keys.from_seed(0), jax.random.key(0)))
    carry = jax.eval_shape(
        lambda b, w: first_carry(world, algorithm, b, w, keeps=False), base, start
    )
    seats = world.seats(algorithm)

    def letters(states: Any, numbers: Any, key: Any, memory: Any, told: Any) -> Any:
        own, found = tree_rows(seats.stacked, 0), []
        first = seats.at(own._replace(numbers=numbers)).begin(start)
        for number, phase in enumerate(algorithm.in_round(1).phases):
            _, letter = seats.at(own).answer(1, number, key, states[number], told)
            memory, told = phase.combine(key, memory, letter, world.round(1, 1))
            found.append(letter)
        return first[1], found

    own = tree_rows(seats.stacked, 0).numbers
    states = [carry.states] * len(algorithm.phases)
    given = (states, own, key, carry.memory, carry.broadcast)
    return _uses(letters, given, 0) or _uses(letters, given, 1)


def _looks_at_agents(metric: Any, problem: Problem) -> bool:
    """Whether a metric, or a function of (shared model, agents' models), needs them."""
    if isinstance(metric, str):
        return metric in _OF_AGENTS
    shared = jax.ShapeDtypeStruct((problem.dim,), problem.dtype)
    agents = jax.ShapeDtypeStruct((problem.n_agents, problem.dim), problem.dtype)
    return _uses(metric, (shared, agents), 1)


def _uses(function: Callable[..., Any], given: tuple[Any, ...], place: int) -> bool:
    """Whether what a function returns depends on one of its arguments."""
    traced = jax.make_jaxpr(function)(*given).jaxpr
    _, used = partial_eval.dce_jaxpr(traced, [True] * len(traced.outvars))
    sizes = [len(jax.tree.leaves(part)) for part in given]
    first = sum(sizes[:place])
    return any(used[first : first + sizes[place]])

"""The debug runtime: one agent at a time, nothing compiled, errors that name the agent.

It takes the same algorithm objects, keys and schedules as `simulate` and must give the
same numbers to the last digits; it is what `simulate` is tested against, and where a
new algorithm is first tried. Python loops make it slow on purpose: breakpoints and
prints work everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check, keys
from tacita.algorithm.base import GraphAlgorithm
from tacita.problem.oracles import AgentOracle
from tacita.problem.problem import Problem
from tacita.runtime import choices, delivery, measure, transit
from tacita.runtime.finish import describe, versions
from tacita.runtime.mail import Mail, mean_of
from tacita.runtime.rounds import (
    Carry,
    Stage,
    World,
    event_of,
    first_carry,
    mean_weights,
    split_numbers,
)
from tacita.runtime.simulate import DEFAULT_RECORD, prepare
from tacita.runtime.transit import Asynchronous
from tacita.trace.run import Run
from tacita.trees import in_double_precision, tree_rows


class AgentError(RuntimeError):
    """An agent failed; the message names it and the round."""


@in_double_precision
def debug(
    problem: Problem,
    algorithm: Any,
    rounds: int,
    seed: int = 0,
    participation: Any = 1.0,
    start: Any = None,
    record: Sequence[Any] = DEFAULT_RECORD,
    *,
    reference: Any = None,
    asynchronous: Asynchronous | None = None,
) -> Run:
    """As `simulate`, one agent at a time. A failing agent is named, as is a NaN."""
    choices.problem_of(problem)
    ready = prepare(problem, algorithm)
    who = choices.schedule_of(problem, ready, participation)
    network = None
    if isinstance(ready, GraphAlgorithm):
        assert problem.graph is not None
        network = delivery.of(
            problem.graph, ready, problem.dtype, asynchronous is not None
        )
    transit.require(asynchronous, ready)
    world = World(problem.population, network, who, asynchronous)
    base = keys.from_seed(check.seed(seed=seed))
    chosen = measure.choose(record, problem, reference)
    point = choices.start_of(problem, start)
    reference = choices.reference_of(problem, reference)
    check.count(rounds=check.given(rounds=rounds))
    with jax.disable_jit():
        carry = first_carry(world, ready, base, point)
        pages = []
        for number in range(1, rounds + 1):
            carry = _round(problem, Stage(world, ready, base, number), carry)
            shared, agents = _models(ready, carry)
            own = isinstance(ready, GraphAlgorithm)
            pages.append(
                measure.measure(
                    chosen, problem.population, shared, agents, own, reference
                )
                if chosen
                else np.zeros(0)
            )
        shared, agents = _models(ready, carry)
    book = np.array([np.asarray(page) for page in pages]).T
    metrics = {measure.name_of(m): book[k] for k, m in enumerate(chosen)}
    metrics["round"] = np.arange(1, rounds + 1)
    config = {
        "problem": problem.describe(),
        "algorithm": describe(ready),
        "run": {"rounds": rounds, "seed": seed, "runtime": "debug"},
    }
    info = {"rounds": rounds, "seed": seed, "versions": versions()}
    return Run(np.asarray(shared), np.asarray(agents), metrics, config, info)


def _models(algorithm: Any, carry: Carry) -> tuple[Array, Array]:
    states = carry.states
    n = len(jax.tree.leaves(states)[0])
    agents = jnp.stack([algorithm.model(tree_rows(states, i)) for i in range(n)])
    if isinstance(algorithm, GraphAlgorithm):
        return agents.mean(axis=0), agents
    return algorithm.shared(carry.broadcast), agents


def _active(world: World, key: Array) -> list[int]:
    n, who = world.population.n_agents, world.schedule
    if who.kind == "all":
        return list(range(n))
    if who.kind == "cohort":
        return np.asarray(who.cohort(key, n)).tolist()
    return np.flatnonzero(np.asarray(who.mask(key, n))).tolist()


def _round(problem: Problem, stage: Stage, carry: Carry) -> Carry:
    under_way = ()
    inbox: Any = None
    if stage.world.asynchronous is not None:
        mask, inbox, under_way = event_of(stage, carry)
        active = np.flatnonzero(np.asarray(mask)).tolist()
    else:
        active = _active(stage.world, keys.schedule_key(stage.keys, stage.number))
    turns = carry.turns.at[jnp.asarray(active, int)].add(1)
    if isinstance(stage.algorithm, GraphAlgorithm):
        assert stage.world.links is not None
        if inbox is None:
            inbox = delivery.deliver(stage.world.links, carry.mail.letters)
        states, letters = carry.states, carry.mail.letters
        for i in active:
            state, letter = _ask(problem, stage, 0, i, carry.states, inbox[i])
            states, letters = _put(states, i, state), _put(letters, i, letter)
        return carry._replace(
            states=states, mail=Mail((), letters), turns=turns, transit=under_way
        )
    for phase in range(len(stage.algorithm.phases)):
        if active or stage.algorithm.averages == "all":
            carry = _server_exchange(problem, stage, phase, active, carry)
    return carry._replace(turns=turns)


def _server_exchange(
    problem: Problem, stage: Stage, phase: int, active: list[int], carry: Carry
) -> Carry:
    states, answers = carry.states, {}
    for i in active:
        state, answers[i] = _ask(problem, stage, phase, i, states, carry.broadcast)
        states = _put(states, i, state)
    weights = mean_weights(stage.algorithm, stage.world.population)
    kept = carry.mail
    if stage.keeps_letters(phase):
        letters = carry.mail.letters
        for i, letter in answers.items():
            letters = _put(letters, i, letter)
        mean = mean_of(weights, letters)
        kept = Mail(mean, letters)
    else:
        stacked = jax.tree.map(lambda *v: jnp.stack(v), *answers.values())
        mean = mean_of(weights[jnp.asarray(active)], stacked)
    key = keys.coordinator_key(stage.keys, stage.number, phase)
    combine = getattr(stage.algorithm, stage.algorithm.phases[phase].combine)
    hub, broadcast = combine(key, carry.hub, mean, stage.coordinator)
    return Carry(hub, broadcast, states, kept, carry.turns)


def _ask(
    problem: Problem, stage: Stage, phase: int, agent: int, states: Any, inbox: Any
) -> tuple[Any, Any]:
    """One agent's answer; an error or a NaN names the agent and the round."""
    algorithm, population = stage.algorithm, stage.world.population
    numbers, for_agent = split_numbers(algorithm, problem.n_agents)
    mine = for_agent([k[agent] for k in numbers])
    key = keys.agent_key(keys.agent_secret(stage.keys, agent), stage.number, phase)
    oracle = AgentOracle(
        mine.oracle, population.local(tree_rows(population.rows, agent))
    )
    state = tree_rows(states, agent)
    where = f"agent {problem.ids[agent]!r} in round {stage.number}"
    try:
        if isinstance(algorithm, GraphAlgorithm):
            assert stage.world.links is not None
            edges = tree_rows(stage.world.links.edges, agent)
            state, letter = mine.local(key, oracle, edges, state, inbox)
        else:
            answer = getattr(mine, algorithm.phases[phase].local)
            state, letter = answer(key, oracle, state, inbox)
    except Exception as error:
        raise AgentError(f"{where}: {error}") from error
    for leaf in jax.tree.leaves(letter):
        if not np.all(np.isfinite(np.asarray(leaf))):
            raise AgentError(
                f"{where} wrote a letter with NaN or infinite entries; try a smaller "
                "step size"
            )
    return state, letter


def _put(stacked: Any, i: int, one: Any) -> Any:
    return jax.tree.map(lambda a, b: a.at[i].set(b), stacked, one)

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
from tacita.aggregation import Choice, Heard
from tacita.aggregation.secure.rule import ModularSum
from tacita.algorithm.base import GraphAlgorithm
from tacita.privacy.letters import is_private
from tacita.problem.problem import Problem
from tacita.robust import Attack
from tacita.runtime import choices, measure, memory, recording
from tacita.runtime.arrivals import Arrivals, Pace, require_rounds
from tacita.runtime.finish import describe, versions
from tacita.runtime.gather import Mail, finite_rows
from tacita.runtime.measure import DEFAULT_RECORD
from tacita.runtime.ready import make_world, prepare
from tacita.runtime.rounds import (
    asked_anew,
    event_of,
    late_letters,
    lied,
    received,
)
from tacita.runtime.seat import combine
from tacita.runtime.secret_noise import context_of, secret_bytes
from tacita.runtime.seeds import seeds_of
from tacita.runtime.transit import Asynchronous
from tacita.runtime.world import (
    Carry,
    Stage,
    World,
    first_carry,
    mean_weights,
    rule_key,
)
from tacita.trace import Run
from tacita.trained import card_of
from tacita.trees import in_double_precision, tree_rows


class AgentError(RuntimeError):
    """An agent failed; the message names it and the round."""


@in_double_precision
def debug(
    problem: Problem,
    algorithm: Any,
    rounds: int,
    seed: int | None = None,
    participation: Any = 1.0,
    start: Any = None,
    record: Sequence[Any] = DEFAULT_RECORD,
    record_every: int | None = None,
    *,
    reference: Any = None,
    asynchronous: Asynchronous | Pace | Arrivals | None = None,
    aggregation: Choice = None,
    attack: Attack | None = None,
) -> Run:
    """As `simulate`, one agent at a time. A failing agent is named, as is a NaN."""
    choices.problem_of(problem)
    algorithm = choices.summed_by(problem, algorithm, participation, aggregation)
    ready = prepare(problem, algorithm)
    liars = choices.attack_of(problem, ready, attack)
    problem = problem if liars is None else liars.poison(problem)
    world = make_world(
        problem, ready, participation, asynchronous, aggregation, attack=liars
    )
    drawn = seeds_of(is_private(ready), seed)
    base = drawn.roots()
    chosen = measure.choose(memory.recorded(problem, record), problem, reference)
    every = recording.of(problem, ready, world, chosen, record_every)
    point = choices.start_of(problem, start)
    reference = choices.reference_of(problem, reference)
    check.count(rounds=check.given(rounds=rounds))
    require_rounds(asynchronous, rounds)
    choices.require_rows(problem, ready, rounds)
    with jax.disable_jit():
        carry = first_carry(world, ready, base, point)
        pages, recorded = [], []
        for number in range(1, rounds + 1):
            carry = _round(problem, Stage(world, ready, base, number), carry)
            if number % every.rounds and number < rounds:
                continue
            recorded.append(number)
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
    metrics["round"] = np.array(recorded)
    config = {
        "problem": problem.describe(),
        "algorithm": describe(ready),
        "run": {
            "rounds": rounds,
            **every.told,
            "participation": participation,
            "asynchronous": describe(asynchronous),
            "aggregation": describe(aggregation),
            "attack": describe(attack),
            **drawn.settings,
            "runtime": "debug",
        },
    }
    info = {"rounds": rounds, "seed": drawn.told, "versions": versions()}
    card = card_of(problem, personal=isinstance(ready, GraphAlgorithm))
    models = np.asarray(shared), np.asarray(agents)
    return Run(*models, metrics, config, info, card=card)


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
    if isinstance(stage.world.asynchronous, Pace | Arrivals):
        return _late_round(problem, stage, carry)
    if stage.world.asynchronous is not None:
        mask, inbox, under_way = event_of(stage, carry)
        active = np.flatnonzero(np.asarray(mask)).tolist()
    else:
        active = _active(stage.world, keys.schedule_key(stage.keys, stage.number))
    turns = carry.turns.at[jnp.asarray(active, int)].add(1)
    if isinstance(stage.algorithm, GraphAlgorithm):
        assert stage.world.links is not None
        if inbox is None:
            inbox = received(stage, carry)
        states, answers = _ask_all(
            problem, stage, 0, carry.states, {i: inbox[i] for i in active}
        )
        answers = _lied(stage, 0, carry, answers)
        post = Mail((), _filed(carry.mail.letters, answers))
        return carry._replace(states=states, mail=post, turns=turns, transit=under_way)
    for phase in range(len(stage.algorithm.phases)):
        least = stage.algorithm.joining.least(stage.world.aggregation)
        if active or stage.algorithm.averages == "all" or least == 0:
            carry = _server_exchange(problem, stage, phase, active, carry)
    return carry._replace(turns=turns)


def _late_round(problem: Problem, stage: Stage, carry: Carry) -> Carry:
    """A round that waits for nobody: every letter answers a question of its own."""
    late, states, letters = late_letters(stage, carry), carry.states, []
    for agent in late.heard.tolist():
        number, told = tree_rows((carry.transit.asked, carry.transit.told), agent)
        then = stage._replace(number=int(number))
        own, letter = _ask(problem, then, 0, agent, tree_rows(states, agent), told)
        states = _put(states, agent, own)
        letters.append(letter)
    stacked = jax.tree.map(lambda *v: jnp.stack(v), *letters)
    world, key = stage.world, stage.coordinator_key(0)
    centre = stage.algorithm.joining.centre(carry.broadcast)
    given = Heard(stacked, late.weights[late.heard], None, rule_key(key), centre)
    now = world.round(stage.number, len(letters), late.fresh)
    joint = world.aggregation(given)
    memory, broadcast = combine(0, stage.algorithm, now, key, carry.memory, joint)
    told = {"memory": memory, "broadcast": broadcast, "states": states}
    return asked_anew(stage, carry._replace(**told), late.heard)


def _server_exchange(
    problem: Problem, stage: Stage, phase: int, active: list[int], carry: Carry
) -> Carry:
    told = dict.fromkeys(active, carry.broadcast)
    states, answers = _ask_all(problem, stage, phase, carry.states, told)
    answers = _lied(stage, phase, carry, answers)
    active = [*answers]
    world, key = stage.world, stage.coordinator_key(phase)
    weights, kept = mean_weights(stage.algorithm, world.population), carry.mail
    before, heard = () if world.attack is None else carry.broadcast, None
    if stage.keeps_letters(phase):
        letters = _filed(carry.mail.letters, answers)
    elif len(active) < stage.algorithm.joining.least(world.aggregation):
        return carry._replace(states=states, before=before)
    elif not active:
        letters, heard = _nobodys(stage, carry), jnp.zeros(len(weights), bool)
    else:
        letters = jax.tree.map(lambda *v: jnp.stack(v), *answers.values())
        weights = weights[jnp.asarray(active)]
    centre = stage.algorithm.joining.centre(carry.broadcast)
    given = Heard(letters, weights, heard, rule_key(key), centre)
    joint = _joined(stage, phase, given, active, carry.broadcast)
    if stage.keeps_letters(phase):
        kept = Mail(joint, letters)
    now = world.round(stage.number, len(active))
    memory, broadcast = combine(phase, stage.algorithm, now, key, carry.memory, joint)
    return Carry(memory, broadcast, states, kept, carry.turns, before=before)


def _nobodys(stage: Stage, carry: Carry) -> Any:
    """The letters of a round in which nobody is heard: zeros, for their form."""
    agent, key = stage.world.seats(stage.algorithm)[0], stage.agent_key(0, 0)
    state = tree_rows(carry.states, 0)
    one = jax.eval_shape(
        lambda: agent.answer(stage.number, 0, key, state, carry.broadcast)[1]
    )
    n = stage.world.population.n_agents
    return jax.tree.map(lambda leaf: jnp.zeros((n, *leaf.shape), leaf.dtype), one)


def _lied(
    stage: Stage, phase: int, carry: Carry, answers: dict[int, Any]
) -> dict[int, Any]:
    """The letters after liars had their way; those that are not finite are silence."""
    lies = lied(stage, phase, carry)
    if lies is None or not answers:
        return answers
    numbers, active = jnp.asarray([*answers]), None
    stacked = jax.tree.map(lambda *v: jnp.stack(v), *answers.values())
    if stage.world.schedule.kind != "cohort":
        # As in a simulation: everybody has a place, the silent too.
        n = stage.world.population.n_agents
        active = jnp.zeros(n, bool).at[numbers].set(True)
        stacked = jax.tree.map(
            lambda a: jnp.zeros((n, *a.shape[1:]), a.dtype).at[numbers].set(a), stacked
        )
    told = lies(stacked, None if active is not None else numbers, active)
    places = [*answers] if active is not None else range(len(answers))
    sound = finite_rows(told)
    rows = zip(answers, places, strict=True)
    return {i: tree_rows(told, k) for i, k in rows if sound[k]}


def _joined(
    stage: Stage, phase: int, heard: Heard, active: list[int], told: Any
) -> Any:
    """One letter out of many; in a secure sum with every agent's own noise."""
    rule, algorithm = stage.world.aggregation, stage.algorithm
    if not isinstance(rule, ModularSum):
        return rule(heard)
    letters, weights = np.asarray(heard.letters), np.asarray(heard.weights)
    if not rule.noisy and np.any(np.abs(letters * weights[:, None]) > rule.largest):
        return rule(heard)  # no number: it stands for nothing
    agreed, context = algorithm.aggregation, context_of(stage.number, phase, told)
    each = [
        agreed.letter(letter, weight, secret_bytes(stage.keys, agent), context)
        for letter, weight, agent in zip(letters, weights, active, strict=True)
    ]
    total = np.sum(each, axis=0, dtype=each[0].dtype)
    return jnp.asarray(agreed.opened(total, weights.sum()))


def _ask_all(
    problem: Problem, stage: Stage, phase: int, states: Any, told: dict[int, Any]
) -> tuple[Any, dict[int, Any]]:
    """All states, and the letters of the agents that were told something."""
    after, answers = states, {}
    for i, words in told.items():
        own = tree_rows(states, i)
        state, answers[i] = _ask(problem, stage, phase, i, own, words)
        after = _put(after, i, state)
    return after, answers


def _ask(
    problem: Problem, stage: Stage, phase: int, agent: int, state: Any, told: Any
) -> tuple[Any, Any]:
    """One agent's answer; an error or a NaN names the agent and the round."""
    seat = stage.world.seats(stage.algorithm)[agent]
    where = f"agent {problem.ids[agent]!r} in round {stage.number}"
    try:
        state, letter = seat.answer(
            stage.number, phase, stage.agent_key(agent, phase), state, told
        )
    except Exception as error:
        raise AgentError(f"{where}: {error}") from error
    for leaf in jax.tree.leaves(letter):
        if not np.all(np.isfinite(np.asarray(leaf))):
            raise AgentError(
                f"{where} wrote a letter with NaN or infinite entries; try a smaller "
                "step size"
            )
    return state, letter


def _filed(letters: Any, answers: dict[int, Any]) -> Any:
    for i, letter in answers.items():
        letters = _put(letters, i, letter)
    return letters


def _put(stacked: Any, i: int, one: Any) -> Any:
    return jax.tree.map(lambda a, b: a.at[i].set(b), stacked, one)

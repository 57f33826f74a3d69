"""One round, for any algorithm and any schedule: the only place where agents meet.

A round is a list of exchanges. In an exchange the active agents answer what they
received, the mail is brought up to date, and, if there is a coordinator, it combines
the mean letter into the next broadcast.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita import keys
from tacita.aggregation import Mean
from tacita.aggregation.secure.rule import ModularSum
from tacita.algorithm.base import GraphAlgorithm
from tacita.problem.graph import Slots
from tacita.runtime import arrivals, transit
from tacita.runtime.arrivals import Arrivals, Pace
from tacita.runtime.delivery import deliver, deliver_by_rule
from tacita.runtime.gather import Gathering, Mail, Slice
from tacita.runtime.transit import Asynchronous
from tacita.runtime.world import Carry, Stage, World, mean_weights, rule_key


def one_round(stage: Stage, carry: Carry) -> Carry:
    """All exchanges of one round."""
    world = stage.world
    if isinstance(world.asynchronous, Asynchronous):
        return _event(stage, carry)
    if world.asynchronous is not None:
        return _late_round(stage, carry)
    active = _who(world, keys.schedule_key(stage.keys, stage.number))
    carry = carry._replace(turns=_count_turns(world, carry.turns, active))
    if isinstance(stage.algorithm, GraphAlgorithm):
        assert world.links is not None
        inbox = received(stage, carry)
        states, post, _ = _exchange(stage, 0, carry, active, inbox)
        return carry._replace(states=states, mail=post)
    for phase in range(len(stage.algorithm.phases)):
        carry = _server_exchange(stage, phase, carry, active)
    return carry


def received(stage: Stage, carry: Carry) -> Any:
    """What every node of a graph receives, by the rule where one was chosen."""
    world = stage.world
    assert world.links is not None
    plain = world.links.slots is None or isinstance(world.aggregation, Mean)
    if plain and (world.attack is None or not world.attack.on_edges):
        return deliver(world.links, carry.mail.letters)
    # No algorithm on a graph has a second exchange: that key serves the rule.
    nodes = world.population.places.numbers()
    return deliver_by_rule(
        world.links,
        world.aggregation,
        world.attack,
        jax.vmap(lambda node: stage.agent_key(node, 1))(nodes),
        carry.mail.letters,
        stage.number,
        world.population.n_agents,
    )


def lied(stage: Stage, phase: int, carry: Carry) -> Any:
    """What liars make of letters; None where nobody lies. See `Gathering.lies`."""
    attack = stage.world.attack
    if attack is None or attack.on_edges:
        return None
    everybody = jnp.asarray(attack.honest(stage.world.population.n_agents))

    def lies(letters: Any, numbers: Array | None, active: Array | None) -> Any:
        honest = everybody if numbers is None else everybody[numbers]
        honest = honest if active is None else honest & active
        said = attack.lie(
            jax.random.fold_in(stage.coordinator_key(phase), 2),
            letters,
            honest,
            stage.algorithm.joining.centre(carry.broadcast),
            stage.number,
            stage.algorithm.joining.centre(carry.before),
            numbers,
            active,
        )
        if not isinstance(stage.world.aggregation, ModularSum):
            return said
        weights = mean_weights(stage.algorithm, stage.world.population)
        own = weights if numbers is None else weights[numbers]
        within = stage.world.aggregation.sayable(said, own)
        return jnp.where(honest[:, None], said, within)

    return lies


def event_of(stage: Stage, carry: Carry) -> tuple[Array, Array, Any]:
    """Who is active at one event of an asynchronous run, what is received, the post."""
    world = stage.world
    assert isinstance(world.asynchronous, Asynchronous) and world.links is not None
    assert isinstance(world.links.slots, Slots)
    return transit.event(
        world.asynchronous,
        world.links.slots,
        world.schedule,
        stage.algorithm.delivery,
        keys.schedule_key(stage.keys, stage.number),
        carry.transit,
        carry.mail.letters,
    )


def _event(stage: Stage, carry: Carry) -> Carry:
    """One event of an asynchronous run."""
    active, inbox, under_way = event_of(stage, carry)
    states, post, _ = _exchange(stage, 0, carry, active, inbox)
    turns = carry.turns + active
    return carry._replace(states=states, mail=post, turns=turns, transit=under_way)


class Late(NamedTuple):
    """The letters of a round that nobody is waited for in.

    Attributes:
        heard: The agents whose letters came, in their order.
        weights: Of everybody's letters, (N,); of those that came by their age too.
        fresh: What those of this round count for on average.
    """

    heard: Array
    weights: Array
    fresh: Array


def late_letters(stage: Stage, carry: Carry) -> Late:
    """Who is heard in a round that waits for nobody, and what for."""
    world, waiting = stage.world, carry.transit
    assert isinstance(world.asynchronous, Pace | Arrivals)
    heard = world.asynchronous.heard(stage.number, world.schedule.size, waiting)
    each = mean_weights(stage.algorithm, world.population)
    fresh = stage.algorithm.freshness(stage.number - waiting.asked[heard])
    weights = each.at[heard].multiply(fresh.astype(each.dtype))
    return Late(heard, weights, jnp.sum(weights[heard]) / jnp.sum(each[heard]))


def asked_anew(stage: Stage, carry: Carry, heard: Array) -> Carry:
    """After a round that waited for nobody: everybody's question, and their number."""
    rule = stage.world.asynchronous
    assert isinstance(rule, Pace | Arrivals)
    # A question counts once its round has come: whoever has it may have answered.
    turns = carry.turns + (carry.transit.asked == stage.number)
    key, told = keys.schedule_key(stage.keys, stage.number), carry.broadcast
    asked = arrivals.move_on(rule, key, carry.transit, heard, stage.number, told)
    return carry._replace(turns=turns, transit=asked)


def _late_round(stage: Stage, carry: Carry) -> Carry:
    """The first letters that come are joined, whichever broadcast they answer."""
    late = late_letters(stage, carry)
    states, post, count = _exchange(stage, 0, carry, late.heard, (), late.weights)
    memory, broadcast = stage.algorithm.in_round(stage.number).combine(
        stage.coordinator_key(0),
        carry.memory,
        post.joint,
        stage.world.round(stage.number, count, late.fresh),
    )
    told = {"memory": memory, "broadcast": broadcast, "states": states}
    return asked_anew(stage, carry._replace(**told, seen=post.seen), late.heard)


def _server_exchange(
    stage: Stage, phase: int, carry: Carry, active: Array | None
) -> Carry:
    """The agents answer the broadcast, the coordinator makes the next one."""
    states, post, count = _exchange(stage, phase, carry, active, ())
    states = states if stage.keeps else carry.states
    told = (
        stage.algorithm.in_round(stage.number)
        .phases[phase]
        .combine(
            stage.coordinator_key(phase),
            carry.memory,
            post.joint,
            stage.world.round(stage.number, count),
        )
    )
    if isinstance(count, Array) and stage.algorithm.averages == "active":
        # Too few answered: the coordinator has nothing new to say.
        least = stage.algorithm.joining.least(stage.world.aggregation)
        told = jax.tree.map(
            lambda new, old: jnp.where(count >= least, new, old),
            told,
            (carry.memory, carry.broadcast),
        )
    memory, broadcast = told
    kept = post if stage.keeps_letters(phase) else carry.mail
    before = () if stage.world.attack is None else carry.broadcast
    return carry._replace(
        memory=memory,
        broadcast=broadcast,
        states=states,
        mail=kept._replace(seen=()),
        seen=post.seen,
        before=before,
    )


def _who(world: World, key: Array) -> Array | None:
    """None for everyone, agents' numbers for a cohort, booleans for Bernoulli."""
    schedule, n = world.schedule, world.population.n_agents
    if schedule.kind == "all":
        return None
    return (
        schedule.cohort(key, n) if schedule.kind == "cohort" else schedule.mask(key, n)
    )


def _count_turns(world: World, turns: Array, active: Array | None) -> Array:
    places = world.population.places
    if active is None:
        return turns + 1
    if world.schedule.kind == "cohort":
        local = places.local(active)
        return turns.at[local].add(1, mode="drop", unique_indices=True)
    return turns + places.own(active)


def _exchange(
    stage: Stage,
    phase: int,
    carry: Carry,
    active: Array | None,
    inbox: Any,
    weights: Array | None = None,
) -> tuple[Any, Mail, Any]:
    """States and mail after the active agents answered; and how many did.

    With `weights` of their letters they answer the questions that they are at work on.
    """
    world, seats = stage.world, stage.world.seats(stage.algorithm)
    graph, late = isinstance(stage.algorithm, GraphAlgorithm), weights is not None
    if late:
        inbox = carry.transit.asked, carry.transit.told

    def one(key: Array, mine: Slice) -> tuple[Any, Any]:
        number, told = mine.inbox if late else (stage.number, carry.broadcast)
        told = mine.inbox if graph else told
        before = mine.state if stage.keeps else carry.states
        seat = seats.at(mine.own)
        state, letter = seat.answer(number, phase, key, before, told)
        return state if stage.keeps else (), letter

    def key_of(agent: Array) -> Array:
        number = carry.transit.asked[agent] if late else stage.number
        return stage._replace(number=number).agent_key(agent, phase)

    gathering = Gathering(
        one,
        # Hashed for all agents at once, outside the loop over agents.
        jax.vmap(key_of),
        Slice(seats.stacked, carry.states if stage.keeps else (), inbox),
        carry.mail,
        mean_weights(stage.algorithm, world.population) if weights is None else weights,
        None if graph else world.aggregation,
        rule_key(stage.coordinator_key(phase)),
        stage.algorithm.joining.centre(carry.broadcast),
        lied(stage, phase, carry),
        stage.keeps_letters(phase),
        stage.together,
        world.population.places,
        stage.watch and not graph,
    )
    if active is None:
        return gathering.everyone()
    if late or (world.asynchronous is None and world.schedule.kind == "cohort"):
        if world.population.places.devices == 1:
            return gathering.cohort(active)
        return gathering.own_cohort(active)
    # A rule that needs the letters one by one takes none in blocks.
    few = world.asynchronous is None and (graph or world.aggregation.additive)
    few = few and world.attack is None and not stage.watch
    if few and world.schedule.block:
        return gathering.few(active, world.schedule.block)
    return gathering.mask(active)

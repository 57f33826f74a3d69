"""One round, for any algorithm and any schedule: the only place where agents meet.

A round is a list of exchanges. In an exchange the active agents answer what they
received, the mail is brought up to date, and, if there is a coordinator, it combines
the mean letter into the next broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita import keys
from tacita.algorithm.base import Coordinator, GraphAlgorithm
from tacita.participation import Schedule
from tacita.problem.oracles import AgentOracle
from tacita.problem.population import Population
from tacita.runtime import mail, transit
from tacita.runtime.collect import Collector, Own
from tacita.runtime.delivery import Links, deliver
from tacita.runtime.mail import Mail
from tacita.runtime.transit import Asynchronous

#: A mail of which nothing needs to be kept.
NOTHING = Mail((), ())


class World(NamedTuple):
    """All that stays the same over the rounds of a run."""

    population: Population
    links: Links | None
    schedule: Schedule
    asynchronous: Asynchronous | None = None


class Carry(NamedTuple):
    """All that one round hands to the next."""

    hub: Any  # the coordinator's own state
    broadcast: Any  # what all agents are told next
    states: Any  # every agent's state, stacked
    mail: Mail  # what stays valid of the letters of the round's last exchange
    turns: Array  # in how many rounds every agent was active
    transit: Any = ()  # letters under way, of an asynchronous run


def split_numbers(algorithm: Any, n: int) -> tuple[list[Array], Callable[..., Any]]:
    """Part the algorithm's per-agent numbers, shape (n,), from its common ones.

    Returns the stacked per-agent numbers, and a function that puts one agent's
    numbers back into an algorithm for that agent.
    """
    leaves, treedef = jax.tree.flatten(algorithm)
    varies = [jnp.ndim(leaf) == 1 and jnp.shape(leaf)[0] == n for leaf in leaves]
    stacked = [jnp.asarray(x) for x, v in zip(leaves, varies, strict=True) if v]

    def for_agent(numbers: list[Array]) -> Any:
        mine = iter(numbers)
        chosen = [next(mine) if v else x for x, v in zip(leaves, varies, strict=True)]
        return jax.tree.unflatten(treedef, chosen)

    return stacked, for_agent


def mean_weights(algorithm: Any, population: Population) -> Array:
    """The weight of every agent's letter in the coordinator's mean."""
    dtype = population.rows.x.dtype
    if getattr(algorithm, "weights", "uniform") == "samples":
        return population.counts.astype(dtype)
    return jnp.ones(population.n_agents, dtype)


def first_carry(world: World, algorithm: Any, base: keys.Keys, start: Array) -> Carry:
    """Everything before the first round; `start` is (d,) or (N, d)."""
    n = world.population.n_agents
    numbers, for_agent = split_numbers(algorithm, n)
    everyone = jnp.broadcast_to(start, (n, start.shape[-1]))
    turns = jnp.zeros(n, jnp.int32)
    if isinstance(algorithm, GraphAlgorithm):
        assert world.links is not None
        states, letters = jax.vmap(lambda k, w, e: for_agent(k).init(w, e))(
            numbers, everyone, world.links.edges
        )
        under_way = ()
        if world.asynchronous is not None:
            assert world.links.slots is not None
            under_way = transit.first(world.links.slots, letters)
        return Carry((), (), states, Mail((), letters), turns, under_way)
    states, letters = jax.vmap(lambda k, w: for_agent(k).init(w))(numbers, everyone)
    mean = mail.mean_of(mean_weights(algorithm, world.population), letters)
    key = keys.coordinator_key(base, 0, 0)
    combine = getattr(algorithm, algorithm.phases[-1].combine)
    hub, broadcast = combine(
        key, algorithm.hub(everyone.mean(axis=0)), mean, coordinator(world.population)
    )
    kept = Mail(mean, letters) if algorithm.averages == "all" else NOTHING
    return Carry(hub, broadcast, states, kept, turns)


def coordinator(population: Population) -> Coordinator:
    """What the coordinator knows besides the letters."""
    return Coordinator(population.n_agents, population.h)


class Stage(NamedTuple):
    """One round of one run: what it is about, and where its keys come from."""

    world: World
    algorithm: Any
    keys: keys.Keys
    number: Any  # of the round; the first is 1
    together: bool = True  # whether agents are computed vmapped

    @property
    def coordinator(self) -> Coordinator:
        """What the coordinator knows besides the letters."""
        return coordinator(self.world.population)

    def keeps_letters(self, phase: int) -> bool:
        """Whether letters of this exchange stay valid while their writer is silent."""
        if isinstance(self.algorithm, GraphAlgorithm):
            return True
        last = len(self.algorithm.phases) - 1
        return self.algorithm.averages == "all" and phase == last


def one_round(stage: Stage, carry: Carry) -> Carry:
    """All exchanges of one round."""
    world = stage.world
    if world.asynchronous is not None:
        return _event(stage, carry)
    active = _who(world, keys.schedule_key(stage.keys, stage.number))
    carry = carry._replace(turns=_count_turns(world.schedule, carry.turns, active))
    if isinstance(stage.algorithm, GraphAlgorithm):
        assert world.links is not None
        inbox = deliver(world.links, carry.mail.letters)
        states, post, _ = _exchange(stage, 0, carry, active, inbox)
        return carry._replace(states=states, mail=post)
    for phase in range(len(stage.algorithm.phases)):
        carry = _server_exchange(stage, phase, carry, active)
    return carry


def event_of(stage: Stage, carry: Carry) -> tuple[Array, Array, Any]:
    """Who is active at one event of an asynchronous run, what is received, the post."""
    world = stage.world
    assert world.asynchronous is not None and world.links is not None
    assert world.links.slots is not None
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


def _server_exchange(
    stage: Stage, phase: int, carry: Carry, active: Array | None
) -> Carry:
    """The agents answer the broadcast, the coordinator makes the next one."""
    states, post, anybody = _exchange(stage, phase, carry, active, ())
    combine = getattr(stage.algorithm, stage.algorithm.phases[phase].combine)
    key = keys.coordinator_key(stage.keys, stage.number, phase)
    told = combine(key, carry.hub, post.mean, stage.coordinator)
    if anybody is not None and stage.algorithm.averages == "active":
        # Nobody answered: the coordinator has nothing new to say.
        told = jax.tree.map(
            lambda new, old: jnp.where(anybody, new, old),
            told,
            (carry.hub, carry.broadcast),
        )
    hub, broadcast = told
    kept = post if stage.keeps_letters(phase) else carry.mail
    return Carry(hub, broadcast, states, kept, carry.turns)


def _who(world: World, key: Array) -> Array | None:
    """None for everyone, agents' numbers for a cohort, booleans for Bernoulli."""
    schedule, n = world.schedule, world.population.n_agents
    if schedule.kind == "all":
        return None
    return (
        schedule.cohort(key, n) if schedule.kind == "cohort" else schedule.mask(key, n)
    )


def _count_turns(schedule: Schedule, turns: Array, active: Array | None) -> Array:
    if active is None:
        return turns + 1
    if schedule.kind == "cohort":
        return turns.at[active].add(1, unique_indices=True)
    return turns + active


def _exchange(
    stage: Stage, phase: int, carry: Carry, active: Array | None, inbox: Any
) -> tuple[Any, Mail, Array | None]:
    """States and mail after the active agents answered; and whether anybody did."""
    world, algorithm = stage.world, stage.algorithm
    population = world.population
    numbers, for_agent = split_numbers(algorithm, population.n_agents)
    graph = isinstance(algorithm, GraphAlgorithm)

    def keys_of(agents: Array) -> Array:
        # Hashed for all agents at once, outside the loop over agents.
        secrets = jax.vmap(lambda i: keys.agent_secret(stage.keys, i))(agents)
        return jax.vmap(lambda s: keys.agent_key(s, stage.number, phase))(secrets)

    def one(key: Array, mine: Own) -> tuple[Any, Any]:
        here = for_agent(mine.numbers)
        oracle = AgentOracle(here.oracle, population.local(mine.rows))
        if graph:
            return here.local(key, oracle, mine.edges, mine.state, mine.inbox)
        answer = getattr(here, algorithm.phases[phase].local)
        return answer(key, oracle, mine.state, carry.broadcast)

    edges = () if world.links is None else world.links.edges
    collect = Collector(
        one,
        keys_of,
        Own(population.rows, carry.states, numbers, edges, inbox),
        carry.mail,
        mean_weights(algorithm, population),
        stage.keeps_letters(phase),
        graph,
        stage.together,
    )
    if active is None:
        return collect.everyone()
    if world.asynchronous is not None:
        return collect.mask(active)
    if world.schedule.kind == "cohort":
        return collect.cohort(active)
    if world.schedule.block:
        return collect.blocks(active, world.schedule.block)
    return collect.mask(active)

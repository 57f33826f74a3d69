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
from tacita.aggregation import Aggregation, Heard, Mean
from tacita.aggregation.secure.rule import ModularSum
from tacita.algorithm.base import GraphAlgorithm, Round
from tacita.participation import Schedule
from tacita.problem.population import Population
from tacita.robust import Attack
from tacita.runtime import transit
from tacita.runtime.delivery import Links, deliver, deliver_by_rule
from tacita.runtime.gather import NOTHING, Gathering, Mail, Slice, join
from tacita.runtime.seat import Seats
from tacita.runtime.transit import Asynchronous
from tacita.trees import tree_rows


class World(NamedTuple):
    """All that stays the same over the rounds of a run."""

    population: Population
    links: Links | None
    schedule: Schedule
    asynchronous: Asynchronous | None = None
    aggregation: Aggregation = Mean()
    attack: Attack | None = None

    def seats(self, algorithm: Any) -> Seats:
        """All agents' places."""
        edges = () if self.links is None else self.links.edges
        return Seats(algorithm, self.population, edges)

    def round(self, number: Any, active: Any) -> Round:
        """What the coordinator knows of a round besides the letters."""
        public = self.population
        return Round(public.n_agents, public.h, number, active, public.regulariser)


class Carry(NamedTuple):
    """All that one round hands to the next."""

    memory: Any  # the coordinator's own state
    broadcast: Any  # what all agents are told next
    states: Any  # every agent's state, stacked; where none is kept, one for its form
    mail: Mail  # what stays valid of the letters of the round's last exchange
    turns: Array  # in how many rounds every agent was active
    transit: Any = ()  # letters under way, of an asynchronous run
    seen: Any = ()  # how the last letters lay among each other, where somebody watches
    before: Any = ()  # the broadcast before the last, which liars may remember


def mean_weights(algorithm: Any, population: Population) -> Array:
    """The weight of every agent's letter in the coordinator's mean."""
    dtype = population.rows.x.dtype
    if algorithm.weights == "samples":
        return population.counts.astype(dtype)
    return jnp.ones(population.here, dtype)


def first_carry(
    world: World, algorithm: Any, base: keys.Keys, start: Array, keeps: bool = True
) -> Carry:
    """Everything before the first round; `start` is (d,) or (N, d).

    Where no states are kept all agents begin alike, so that one stands for them.
    """
    places, seats = world.population.places, world.seats(algorithm)
    own, weights = seats.stacked, mean_weights(algorithm, world.population)
    if not keeps:
        few = _answering(world)
        own, weights = tree_rows(own, jnp.zeros(few, int)), weights[jnp.zeros(few, int)]
    everyone = jnp.broadcast_to(start, (len(weights), start.shape[-1]))
    turns = jnp.zeros(places.here, jnp.int32)
    states, letters = jax.vmap(lambda mine, w: seats.at(mine).begin(w))(own, everyone)
    states = states if keeps else tree_rows(states, 0)
    if isinstance(algorithm, GraphAlgorithm):
        under_way = ()
        if world.asynchronous is not None:
            assert world.links is not None and world.links.slots is not None
            under_way = transit.first(world.links.slots, letters)
        return Carry((), (), states, Mail((), letters), turns, under_way)
    key = keys.coordinator_key(base, 0, 0)
    # These letters depend on no rows, and nobody lies yet.
    first = Heard(letters, weights, None, rule_key(key), tree_rows(letters, 0))
    if keeps:
        centre, middle = places.of_first(letters), world.population.mean(everyone)
        joint = join(world.aggregation, first._replace(centre=centre), places)
    else:
        joint, middle = world.aggregation(first), everyone.mean(axis=0)
    memory, broadcast = algorithm.phases[-1].combine(
        key,
        algorithm.init_coordinator(middle),
        joint,
        world.round(0, places.agents),
    )
    kept = Mail(joint, letters) if algorithm.averages == "all" else NOTHING
    before = () if world.attack is None else broadcast
    return Carry(memory, broadcast, states, kept, turns, before=before)


def _answering(world: World) -> int:
    """Letters that a rule joins in a round; of a mean one that all are like."""
    if isinstance(world.aggregation, Mean):
        return 1
    return world.schedule.size or world.population.n_agents


def rule_key(key: Array) -> Array:
    """A key for the rule, out of the coordinator's."""
    return jax.random.fold_in(key, 1)


class Stage(NamedTuple):
    """One round of one run: what it is about, and where its keys come from."""

    world: World
    algorithm: Any
    keys: keys.Keys
    number: Any  # of the round; the first is 1
    together: bool = True  # whether agents are computed vmapped
    watch: bool = False  # whether it is seen how letters lay among each other
    keeps: bool = True  # whether every agent's state is kept

    def agent_key(self, agent: Any, phase: int) -> Array:
        """The key of one agent's exchange."""
        return keys.agent_key(keys.agent_secret(self.keys, agent), self.number, phase)

    def coordinator_key(self, phase: int) -> Array:
        """The key of the coordinator's step."""
        return keys.coordinator_key(self.keys, self.number, phase)

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
    nodes = jnp.arange(world.population.n_agents)
    return deliver_by_rule(
        world.links,
        world.aggregation,
        world.attack,
        jax.vmap(lambda node: stage.agent_key(node, 1))(nodes),
        carry.mail.letters,
        stage.number,
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
    states, post, count = _exchange(stage, phase, carry, active, ())
    states = states if stage.keeps else carry.states
    told = stage.algorithm.phases[phase].combine(
        stage.coordinator_key(phase),
        carry.memory,
        post.joint,
        stage.world.round(stage.number, count),
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
    stage: Stage, phase: int, carry: Carry, active: Array | None, inbox: Any
) -> tuple[Any, Mail, Any]:
    """States and mail after the active agents answered; and how many did."""
    world, seats = stage.world, stage.world.seats(stage.algorithm)
    graph = isinstance(stage.algorithm, GraphAlgorithm)

    def one(key: Array, mine: Slice) -> tuple[Any, Any]:
        told = mine.inbox if graph else carry.broadcast
        before = mine.state if stage.keeps else carry.states
        seat = seats.at(mine.own)
        state, letter = seat.answer(stage.number, phase, key, before, told)
        return state if stage.keeps else (), letter

    gathering = Gathering(
        one,
        # Hashed for all agents at once, outside the loop over agents.
        jax.vmap(lambda agent: stage.agent_key(agent, phase)),
        Slice(seats.stacked, carry.states if stage.keeps else (), inbox),
        carry.mail,
        mean_weights(stage.algorithm, world.population),
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
    if world.asynchronous is None and world.schedule.kind == "cohort":
        if world.population.places.devices == 1:
            return gathering.cohort(active)
        return gathering.own_cohort(active)
    # A rule that needs the letters one by one takes none in blocks.
    few = world.asynchronous is None and (graph or world.aggregation.additive)
    few = few and world.attack is None and not stage.watch
    if few and world.schedule.block:
        return gathering.few(active, world.schedule.block)
    return gathering.mask(active)

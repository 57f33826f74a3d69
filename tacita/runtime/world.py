"""A run between two rounds: what stays the same, and what one hands to the next."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita import keys
from tacita.aggregation import Aggregation, Heard, Mean
from tacita.algorithm.base import GraphAlgorithm, Round
from tacita.participation import Schedule
from tacita.problem.graph import Slots
from tacita.problem.population import Population
from tacita.robust import Attack
from tacita.runtime import arrivals, transit
from tacita.runtime.arrivals import Arrivals, Pace
from tacita.runtime.delivery import Links
from tacita.runtime.gather import NOTHING, Mail, join
from tacita.runtime.seat import Seats
from tacita.runtime.transit import Asynchronous
from tacita.trees import tree_rows


class World(NamedTuple):
    """All that stays the same over the rounds of a run."""

    population: Population
    links: Links | None
    schedule: Schedule
    asynchronous: Asynchronous | Pace | Arrivals | None = None
    aggregation: Aggregation = Mean()
    attack: Attack | None = None

    def seats(self, algorithm: Any) -> Seats:
        """All agents' places."""
        edges = () if self.links is None else self.links.edges
        return Seats(algorithm, self.population, edges)

    def round(self, number: Any, active: Any, fresh: Any = 1.0) -> Round:
        """What the coordinator knows of a round besides the letters."""
        n, h, known = self.population.n_agents, self.population.h, (number, active)
        return Round(n, h, *known, self.population.regulariser, fresh)


class Carry(NamedTuple):
    """All that one round hands to the next."""

    memory: Any  # the coordinator's own state
    broadcast: Any  # what all agents are told next
    states: Any  # every agent's state, stacked; where none is kept, one for its form
    mail: Mail  # what stays valid of the letters of the round's last exchange
    turns: Array  # in how many rounds every agent was active
    transit: Any = ()  # letters under way, or at work on, of an asynchronous run
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
            assert world.links is not None
            assert isinstance(world.links.slots, Slots)
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
    memory, broadcast = (
        algorithm.in_round(0)
        .phases[-1]
        .combine(
            key,
            algorithm.init_coordinator(middle),
            joint,
            world.round(0, places.agents),
        )
    )
    kept = Mail(joint, letters) if algorithm.averages == "all" else NOTHING
    before = () if world.attack is None else broadcast
    asked = ()
    if world.asynchronous is not None:
        assert isinstance(world.asynchronous, Pace | Arrivals)
        drawn = keys.schedule_key(base, 0)
        asked = arrivals.first(world.asynchronous, drawn, broadcast, places.agents)
    return Carry(memory, broadcast, states, kept, turns, asked, before=before)


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

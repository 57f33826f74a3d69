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

from tacit.algorithm.base import Coordinator, GraphAlgorithm, ServerAlgorithm
from tacit.problem.local import Population, Rows
from tacit.problem.oracle import AgentOracle
from tacit.runtime import crew, keys, mail
from tacit.runtime.links import Links, deliver
from tacit.runtime.mail import Mail
from tacit.runtime.schedule import Schedule
from tacit.trees import tree_rows

#: A mail of which nothing needs to be kept.
NOTHING = Mail((), ())


class World(NamedTuple):
    """All that stays the same over the rounds of a run."""

    population: Population
    links: Links | None
    schedule: Schedule


class Carry(NamedTuple):
    """All that one round hands to the next."""

    hub: Any  # the coordinator's own state
    broadcast: Any  # what all agents are told next
    states: Any  # every agent's state, stacked
    mail: Mail  # what stays valid of the letters of the round's last exchange
    turns: Array  # in how many rounds every agent was active


class Own(NamedTuple):
    """One agent's slice of everything that is stacked over agents."""

    rows: Rows
    state: Any
    numbers: list[Array]  # the algorithm's numbers that differ between agents
    edges: Any
    inbox: Any


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
        return Carry((), (), states, Mail((), letters), turns)
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


def one_round(
    world: World,
    algorithm: Any,
    base: keys.Keys,
    number: Array,
    carry: Carry,
    plan: Any,
) -> Carry:
    """Round `number` (the first is 1)."""
    active = _who(world, keys.schedule_key(base, number))
    carry = carry._replace(turns=_count_turns(world.schedule, carry.turns, active))
    if isinstance(algorithm, GraphAlgorithm):
        inbox = deliver(world.links, carry.mail.letters)  # pyright: ignore
        states, post, _ = _exchange(
            world, algorithm, base, number, 0, carry, active, inbox, plan.together
        )
        return carry._replace(states=states, mail=post)
    return _server_round(world, algorithm, base, number, carry, active, plan.together)


def _server_round(
    world: World,
    algorithm: ServerAlgorithm,
    base: keys.Keys,
    number: Array,
    carry: Carry,
    active: Array | None,
    together: bool,
) -> Carry:
    last = len(algorithm.phases) - 1
    for phase, (_, combine) in enumerate(algorithm.phases):
        states, post, anybody = _exchange(
            world, algorithm, base, number, phase, carry, active, None, together
        )
        key = keys.coordinator_key(base, number, phase)
        told = getattr(algorithm, combine)(
            key, carry.hub, post.mean, coordinator(world.population)
        )
        if anybody is not None and algorithm.averages == "active":
            heard = anybody
            # Nobody answered: the coordinator has nothing new to say.
            told = jax.tree.map(
                lambda new, old: jnp.where(heard, new, old),  # noqa: B023
                told,
                (carry.hub, carry.broadcast),
            )
        kept = algorithm.averages == "all" and phase == last
        hub, broadcast = told
        carry = Carry(hub, broadcast, states, post if kept else carry.mail, carry.turns)
    return carry


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
    world: World,
    algorithm: Any,
    base: keys.Keys,
    number: Array,
    phase: int,
    carry: Carry,
    active: Array | None,
    inbox: Any,
    together: bool,
) -> tuple[Any, Mail, Array | None]:
    """States and mail after the active agents answered; and whether anybody did."""
    population = world.population
    numbers, for_agent = split_numbers(algorithm, population.n_agents)
    graph = isinstance(algorithm, GraphAlgorithm)
    keep = graph or (algorithm.averages == "all" and phase == len(algorithm.phases) - 1)
    edges = world.links.edges if graph and world.links is not None else ()
    own = Own(population.rows, carry.states, numbers, edges, inbox if graph else ())

    def keys_of(agents: Array) -> Array:
        # Hashed for all agents at once, outside the loop over agents.
        secrets = jax.vmap(lambda i: keys.agent_secret(base, i))(agents)
        return jax.vmap(lambda s: keys.agent_key(s, number, phase))(secrets)

    def one(key: Array, mine: Own) -> tuple[Any, Any]:
        algorithm_here = for_agent(mine.numbers)
        oracle = AgentOracle(algorithm_here.oracle, population.local(mine.rows))
        if graph:
            return algorithm_here.local(key, oracle, mine.edges, mine.state, mine.inbox)
        local = getattr(algorithm_here, algorithm.phases[phase].local)
        return local(key, oracle, mine.state, carry.broadcast)

    weights = mean_weights(algorithm, population)
    collect = _Collector(
        one, keys_of, own, carry.mail, carry.states, weights, keep, graph, together
    )
    if active is None:
        return collect.everyone()
    if world.schedule.kind == "cohort":
        return collect.cohort(active)
    if world.schedule.block:
        return collect.blocks(active, world.schedule.block)
    return collect.mask(active)


class _Collector(NamedTuple):
    """Asks the active agents and files their letters; one method per kind of set."""

    one: Any
    keys_of: Any
    own: Own
    post: Mail
    states: Any
    weights: Array
    keep: bool  # every agent's last letter stays valid
    graph: bool  # nobody takes a mean
    together: bool

    def _ask_everyone(self) -> tuple[Any, Any]:
        keys = self.keys_of(jnp.arange(len(self.weights)))
        return crew.ask_everyone(self.one, keys, self.own, self.together)

    def _ask(self, own: Own, numbers: Array) -> tuple[Any, Any]:
        keys = self.keys_of(numbers)
        return crew.ask_some(self.one, keys, own, numbers, self.together)

    def everyone(self) -> tuple[Any, Mail, None]:
        states, letters = self._ask_everyone()
        mean = () if self.graph else mail.mean_of(self.weights, letters)
        return states, Mail(mean, letters if self.keep else ()), None

    def cohort(self, numbers: Array) -> tuple[Any, Mail, None]:
        fresh, letters = self._ask(self.own, numbers)
        states = crew.write(self.states, numbers, fresh)
        weights = self.weights[numbers]
        if not self.keep:
            return states, Mail(mail.mean_of(weights, letters), ()), None
        mean = () if self.graph else self._shift(self.post, numbers, weights, letters)
        return states, Mail(mean, crew.write(self.post.letters, numbers, letters)), None

    def mask(self, active: Array) -> tuple[Any, Mail, Array]:
        fresh, letters = self._ask_everyone()
        states = crew.keep_silent(active, fresh, self.states)
        if self.keep:
            letters = crew.keep_silent(active, letters, self.post.letters)
            mean = () if self.graph else mail.mean_of(self.weights, letters)
            return states, Mail(mean, letters), jnp.any(active)
        silent = jax.tree.map(jnp.zeros_like, letters)
        heard = crew.keep_silent(active, letters, silent)
        mean = mail.mean_of(jnp.where(active, self.weights, 0), heard)
        return states, Mail(mean, ()), jnp.any(active)

    def blocks(self, active: Array, block: int) -> tuple[Any, Mail, Array]:
        def step(carry: tuple, numbers: Array, real: Array) -> tuple:
            states, post, total = carry
            fresh, letters = self._ask(self.own._replace(state=states), numbers)
            letters = crew.keep_silent(
                real, letters, jax.tree.map(jnp.zeros_like, letters)
            )
            weights = jnp.where(real, self.weights[numbers], 0)
            states = crew.write(states, numbers, fresh)
            if not self.keep:
                got = mail.weighted_sum(weights, letters)
                mean = jax.tree.map(jnp.add, post.mean, got)
                return states, Mail(mean, ()), total + jnp.sum(weights)
            mean = () if self.graph else self._shift(post, numbers, weights, letters)
            kept = crew.write(post.letters, numbers, letters)
            return states, Mail(mean, kept), total

        post = self.post
        if not self.keep:
            post = Mail(self._no_letters(block), ())
        zero = jnp.zeros((), self.weights.dtype)
        states, post, total = crew.in_blocks(
            step, (self.states, post, zero), active, block
        )
        if not self.keep:
            total = jnp.where(total > 0, total, 1)
            mean = jax.tree.map(lambda s: s / total.astype(s.dtype), post.mean)
            post = Mail(mean, ())
        return states, post, jnp.any(active)

    def _shift(self, post: Mail, numbers: Array, weights: Array, letters: Any) -> Any:
        """The running mean over all agents after some letters were replaced."""
        change = mail.difference(letters, tree_rows(post.letters, numbers))
        # Blocks are filled up with agents of weight zero.
        shift = mail.weighted_sum(weights, change)
        return mail.add(post.mean, shift, jnp.sum(self.weights))

    def _no_letters(self, block: int) -> Any:
        """A sum of letters before any was added."""
        sample = jax.eval_shape(
            lambda: self._ask(self.own, jnp.zeros(block, jnp.int32))[1]
        )
        return jax.tree.map(lambda s: jnp.zeros(s.shape[1:], s.dtype), sample)

"""The compiled loop: rounds, then a record, again and again, for one or many lanes.

A lane is one seed, or one configuration of a sweep. The number of rounds, of records
and of rounds per record are arguments of the compiled program, so that none of them
compiles anew, and a run cut into chunks anywhere gives the same bits.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita.algorithm.base import GraphAlgorithm
from tacita.compiled import kept
from tacita.keys import Keys
from tacita.mesh.places import Places
from tacita.participation import Schedule
from tacita.processor import abilities
from tacita.robust.detection import SIGNS
from tacita.runtime.measure import measure
from tacita.runtime.rounds import one_round
from tacita.runtime.spread import Spread
from tacita.runtime.world import Carry, Stage, World, first_carry

#: Records that one call of the compiled program can hold.
CAPACITY = 512


@dataclass(frozen=True)
class RunPlan:
    """The static part of a run: what the compiled program is specialised for.

    Attributes:
        record: Metrics, by name or as functions.
        together: Compute agents vmapped rather than one by one.
        lanes: Whether there is a first axis of lanes everywhere.
        sweep: Whether the algorithm's numbers differ between lanes.
        stop: Position of the metric that stops the run, or None.
        rising: Whether it stops the run by being large, as an accuracy does.
        watch: Whether it is recorded how letters lay among each other.
        keeps: Whether every agent's state is kept; see `runtime.memory`.
        spread: How lanes or agents lie on several devices; None for one device.
    """

    record: tuple[Any, ...]
    together: bool
    lanes: bool = False
    sweep: bool = False
    stop: int | None = None
    rising: bool = False
    watch: bool = False
    keeps: bool = True
    spread: Spread | None = None

    def enough(self, values: Any, tolerance: Any) -> Any:
        """Whether values of the stopping metric are good enough to stop."""
        return values >= tolerance if self.rising else values <= tolerance


def _per_lane(plan: RunPlan, function: Any, arguments: int) -> Any:
    """Map over lanes a function (algorithm, key, ...); the rest has a lane axis."""
    if not plan.lanes:
        return function
    axes = (0 if plan.sweep else None, *([0] * (arguments - 1)))
    return jax.vmap(function, axes)


def models(
    algorithm: Any, carry: Carry, keeps: bool = True, places: Places | None = None
) -> tuple[Array, Array]:
    """The shared model (d,) and every agent's model (N, d), of one lane.

    Where no states are kept, the agents' models are none, (0, d). On a mesh they are
    those of one device, and `places` says where the others are.
    """
    if not keeps:
        shared = algorithm.shared(carry.broadcast)
        return shared, jnp.zeros((0, *shared.shape), shared.dtype)
    agents = jax.vmap(algorithm.model)(carry.states)
    if isinstance(algorithm, GraphAlgorithm):
        places = places or Places.of(len(agents))
        return places.sum(agents) / places.agents, agents
    return algorithm.shared(carry.broadcast), agents


def begin(
    plan: RunPlan, world: World, algorithm: Any, bases: Keys, start: Array
) -> Any:
    """The carry before the first round, of every lane.

    One program, which is made sooner than one for each of its few operations.
    """
    if plan.spread is not None:
        start = plan.spread.put(start, plan.spread.spec_of_start(start))
        return _begin_spread(plan, world, algorithm, bases, start)
    # What decides nothing before the first round makes no other program either.
    who = Schedule(size=world.schedule.size)
    shape = RunPlan(
        (), True, plan.lanes, plan.sweep, watch=plan.watch, keeps=plan.keeps
    )
    with kept(shape, world, algorithm):
        return _begin(shape, world._replace(schedule=who), algorithm, bases, start)


def _first(
    plan: RunPlan, world: World, algorithm: Any, bases: Keys, start: Array
) -> Any:
    """The program of `begin`: on a mesh, that of one device."""

    def first(a: Any, base: Keys) -> Carry:
        return first_carry(world, a, base, start, plan.keeps)

    carry = _per_lane(plan, first, 2)(algorithm, bases)
    if plan.watch:
        nothing = jnp.full((len(SIGNS), world.population.n_agents), jnp.nan)
        carry = carry._replace(seen=nothing)
    return carry


_begin = jax.jit(_first, static_argnums=0)


@functools.partial(jax.jit, static_argnums=0)
def _begin_spread(
    plan: RunPlan, world: World, algorithm: Any, bases: Keys, start: Array
) -> Any:
    assert plan.spread is not None
    program = functools.partial(_first, plan)
    return plan.spread.begin(program, plan.sweep, world, algorithm, bases, start)


def finish(
    plan: RunPlan, algorithm: Any, carry: Any, places: Places
) -> tuple[Array, Array]:
    """The shared and the agents' models at the end, of every lane."""

    def one(a: Any, c: Carry) -> tuple[Array, Array]:
        return models(a, c, plan.keeps, places)

    return _per_lane(plan, one, 2)(algorithm, carry)


class Advance:
    """`_several_rounds` compiled, with vectors as wide as suits what is computed.

    Noise is long chains of the same arithmetic on long vectors: with the widest ones
    of a processor they take a fifth less. The rest of a step takes as long, or longer.
    """

    def __init__(self) -> None:
        options: Any = {"static_argnums": 0, "donate_argnums": (5, 6)}
        wide = {"xla_cpu_prefer_vector_width": 512}
        self._usual: Any = jax.jit(_several_rounds, **options)
        self._wide: Any = jax.jit(_several_rounds, compiler_options=wide, **options)

    def of(self, world: World, algorithm: Any) -> Any:
        """The program that such a run uses."""
        oracle = getattr(algorithm, "oracle", None)
        single = world.population.rows.x.dtype == np.float32
        wide = single and getattr(oracle, "long_noise", False)
        return self._wide if wide and _has_wide_vectors() else self._usual

    def __call__(
        self, plan: RunPlan, world: World, algorithm: Any, *rest: Any
    ) -> tuple[Any, Array, Array]:
        """See `_several_rounds`."""
        return self.of(world, algorithm)(plan, world, algorithm, *rest)

    @property
    def programs(self) -> int:
        """How many have been compiled."""
        return sum(made._cache_size() for made in (self._usual, self._wide))


def _has_wide_vectors() -> bool:
    return "avx512f" in abilities().split()


def _several_rounds(
    plan: RunPlan,
    world: World,
    algorithm: Any,
    bases: Keys,
    done: Any,
    carry: Any,
    book: Array,
    records: Any,
    every: Any,
    tolerance: Any,
    reference: Any,
) -> tuple[Any, Array, Array]:
    """Run `records` times `every` rounds and measure after each.

    Args:
        plan: The static part.
        world: Population, graph and schedule.
        algorithm: Its numbers are leaves.
        bases: The lanes' keys.
        done: Rounds done before this call.
        carry: What the last round left.
        book: Where metrics are written, (metrics, CAPACITY) or (lanes, metrics, ...).
        records: How many records, at most CAPACITY.
        every: Rounds per record.
        tolerance: The run stops when the stopping metric of every lane has reached it.
        reference: For the metric "error".

    Returns:
        The carry, the book, and the number of records made.
    """
    rest = (done, carry, book, records, every, tolerance, reference)
    if plan.spread is None:
        return _advance(plan, world, algorithm, bases, *rest)
    program = functools.partial(_advance, plan)
    return plan.spread.run(program, plan.sweep, world, algorithm, bases, *rest)


advance = Advance()


def _advance(
    plan: RunPlan,
    world: World,
    algorithm: Any,
    bases: Keys,
    done: Any,
    carry: Any,
    book: Array,
    records: Any,
    every: Any,
    tolerance: Any,
    reference: Any,
) -> tuple[Any, Array, Array]:
    """The program of `_several_rounds`: on a mesh, that of one device."""

    def rounds_then_measure(a: Any, base: Keys, state: Any, first: Array) -> Any:
        state = jax.lax.fori_loop(
            0,
            every,
            lambda j, c: one_round(
                Stage(
                    *(world, a, base, first + j + 1),
                    *(plan.together, plan.watch, plan.keeps),
                ),
                c,
            ),
            state,
        )
        seen = jnp.ravel(state.seen) if plan.watch else jnp.zeros(0, jnp.float64)
        if not plan.record:
            return state, seen
        shared, agents = models(a, state, plan.keeps, world.population.places)
        own = isinstance(a, GraphAlgorithm)
        values = measure(plan.record, world.population, shared, agents, own, reference)
        return state, jnp.concatenate([values, seen])

    def body(loop: tuple) -> tuple:
        k, state, pages, _ = loop
        first = done + k * every
        state, values = _per_lane(
            plan, lambda a, b, c: rounds_then_measure(a, b, c, first), 3
        )(algorithm, bases, state)
        pages = pages.at[..., k].set(values)
        reached = jnp.asarray(False)
        if plan.stop is not None:
            reached = jnp.all(plan.enough(values[..., plan.stop], tolerance))
            if plan.spread is not None:
                reached = plan.spread.all(reached)
        return k + 1, state, pages, reached

    def go_on(loop: tuple) -> Array:
        return (loop[0] < records) & ~loop[3]

    first = (jnp.asarray(0), carry, book, jnp.asarray(False))
    k, carry, book, _ = jax.lax.while_loop(go_on, body, first)
    return carry, book, k

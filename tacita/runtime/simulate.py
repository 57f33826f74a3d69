"""Run an algorithm on a problem, all agents simulated, as fast as JAX goes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.aggregation import Choice, Summed
from tacita.aggregation.secure.rule import ModularSum
from tacita.algorithm.base import Algorithm
from tacita.mesh.devices import Mesh, mesh_of
from tacita.mesh.processes import guarded
from tacita.privacy.blind import looks_at_rows
from tacita.privacy.letters import is_private
from tacita.privacy.meter import Meter
from tacita.privacy.statement import attach
from tacita.problem.problem import Problem
from tacita.robust import Attack
from tacita.runtime import choices, memory, recording
from tacita.runtime.arrivals import Arrivals, Pace, require_rounds
from tacita.runtime.chunks import Chunks, OnRecord
from tacita.runtime.devices import in_blocks, spread_of
from tacita.runtime.engine import RunPlan, begin, finish
from tacita.runtime.finish import (
    algorithm_of_first_lane,
    by_configuration,
    describe,
    to_run,
)
from tacita.runtime.measure import DEFAULT_RECORD
from tacita.runtime.ready import make_plan, make_world, prepare
from tacita.runtime.recording import Every
from tacita.runtime.seeds import Seeds, seeds_of
from tacita.runtime.spread import WHOLE
from tacita.runtime.transit import Asynchronous
from tacita.runtime.world import World
from tacita.trace import SEED_ASKED_FOR, Run
from tacita.trees import in_double_precision


@in_double_precision
def simulate(
    problem: Problem,
    algorithm: Algorithm,
    rounds: int,
    seed: int | None = None,
    participation: float | int | Sequence[float] | np.ndarray = 1.0,
    start: Any = None,
    record: Sequence[str | Callable[..., Any]] = DEFAULT_RECORD,
    record_every: int | None = None,
    *,
    seeds: int | Sequence[int] | None = None,
    stop: Mapping[str, float] | None = None,
    reference: Any = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    mapping: str = "auto",
    asynchronous: Asynchronous | Pace | Arrivals | None = None,
    aggregation: Choice = None,
    attack: Attack | None = None,
    watch: bool = False,
    on_record: OnRecord | None = None,
    keep_agents: bool | None = None,
    mesh: Mesh | int | None = None,
) -> Run:
    """Simulate a federation and return the run.

    Args:
        problem: What is solved.
        algorithm: How; numbers that were left out are set by theory.
        rounds: Number of rounds.
        seed: Of all randomness: same seed, same bits. Left out it is 0, but for a
            private run a fresh secret, which is shown nowhere.
        participation: Float p (each agent independently), int K (of N, without
            replacement), or an array with one probability per agent. Mind that 1.0 is
            everybody and 1 is one agent.
        start: Starting point, (d,) or (N, d); default the problem's own.
        record: Metrics: names, or functions of (shared model, agents' models).
        record_every: Rounds between records; the last round is always recorded. Left
            out, as many as keep what records cost below 0.3 of what rounds do, by an
            estimate from shapes; small problems, and runs with `stop`, are recorded
            after every round.
        seeds: Run several seeds at once: a number (seed, seed+1, ...) or a list. All
            arrays of the run then have a first axis over seeds.
        stop: Stop early, e.g. {"grad_norm_sq": 1e-10}, at the first record at which
            the metric (of every seed) is that small; an accuracy, that large.
        reference: Point that the metric "error" measures the distance to.
        progress: Show a progress bar; None shows it on a terminal.
        checkpoint: Folder in which a checkpoint is kept after every chunk of rounds.
        resume: Go on from the checkpoint there, if there is one, to `rounds` in all; a
            run resumed gives the same bits.
        mapping: Compute agents "together", "one_by_one", or let the engine choose.
        asynchronous: On a graph the delays, lost letters and bounds of an asynchronous
            run, `tacita.Asynchronous`; a round is then an event. With a coordinator how
            fast agents answer, `tacita.Pace`, or who was heard when in another run,
            `tacita.Arrivals`; a round then takes the first `participation` letters.
        aggregation: How the coordinator joins letters; default their mean, "secure"
            for a `tacita.SecureSum` over everybody.
        attack: Who lies, and how, such as `tacita.robust.SignFlip(agents=(8, 9))`.
        watch: Record how every agent's letter lay among the others, as
            `run.info["letters"]`, for people to look at; nobody is left out by it.
        on_record: Called with every record, {"round": 10, "loss": 0.3}, of several
            seeds with arrays, a few times a second, between rounds; see
            docs/how-to-follow-a-run.md. It sees what is measured on rows without noise.
        keep_agents: Whether `run.agents` holds every agent's model. Left out, they are
            kept if the algorithm or a metric needs them, or if they take no more than
            256 MiB in all.
        mesh: How many devices share the work, or a `tacita.Mesh`; None lets the engine
            choose among those that JAX has, see `tacita.use_cores`. The result is the
            same to rounding, and mostly to the bit, on one device or on eight.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=4, features=3, samples=20)
    >>> run = simulate(problem, tacita.FedAvg(step_size=0.5, local_steps=3), rounds=20)
    >>> bool(run.metrics["loss"][-1] < run.metrics["loss"][0])
    True
    """
    choices.problem_of(problem)
    algorithm = choices.summed_by(problem, algorithm, participation, aggregation)
    ready = prepare(problem, algorithm)
    liars = choices.attack_of(problem, ready, attack)
    problem = problem if liars is None else liars.poison(problem)
    many = seeds is not None
    record = memory.recorded(problem, record)
    plan = make_plan(problem, ready, record, reference, stop, mapping, many)
    world = make_world(
        problem, ready, participation, asynchronous, aggregation, many, liars
    )
    require_rounds(asynchronous, rounds)
    choices.hook_of(on_record)
    if choices.watch_of(ready, watch, many):
        plan = dataclasses.replace(plan, watch=True)
    kept = memory.keeps(
        problem, ready, world, plan.record, start, reference, keep_agents
    )
    plan = dataclasses.replace(plan, keeps=kept)
    every = recording.of(problem, ready, world, plan.record, record_every, bool(stop))
    folder = choices.folder_of(checkpoint, resume)
    drawn = seeds_of(is_private(ready), seed, seeds, folder if resume else None)
    return _run(
        problem,
        ready,
        plan,
        world,
        drawn,
        {
            "participation": participation,
            **every.told,
            "stop": dict(stop) if stop else None,
            "asynchronous": describe(asynchronous),
            "aggregation": describe(rule_of(ready, aggregation)),
            "attack": describe(attack),
        },
        rounds=rounds,
        every=every,
        start=start,
        stop=stop,
        reference=reference,
        progress=progress,
        folder=folder,
        resume=resume,
        looked=drawn.private and looks_at_rows(algorithm, problem),
        on_record=on_record,
        mesh=mesh,
    )


@in_double_precision
def sweep(
    problem: Problem,
    algorithms: Sequence[Algorithm],
    rounds: int,
    seed: int | None = None,
    participation: Any = 1.0,
    start: Any = None,
    record: Sequence[str | Callable[..., Any]] = DEFAULT_RECORD,
    record_every: int | None = None,
    *,
    seeds: int | Sequence[int] | None = None,
    stop: Mapping[str, float] | None = None,
    reference: Any = None,
    progress: bool | None = None,
    mesh: Mesh | int | None = None,
) -> Run:
    """Run many configurations of one algorithm at once, vmapped over their numbers.

    The algorithms must differ in numbers only, not in counts (those are compiled). All
    arrays of the run have a first axis over configurations, and a second one over seeds
    if there are `seeds`, as in `tacita.simulate`. All configurations use the same
    seeds, but private ones of which none is asked for fresh secrets each.
    """
    choices.problem_of(problem)
    if not np.iterable(algorithms):
        check.refuse(
            "expected algorithms a list such as [tacita.FedAvg(step_size=s) for s in "
            f"(0.1, 1.0)], got algorithms={algorithms!r}"
        )
    ready = [prepare(problem, a) for a in algorithms]
    if not ready:
        check.refuse("sweep needs at least one algorithm")
    if any(isinstance(one, Summed) for one in ready):
        check.refuse(
            "a sweep has one rule for all its letters, and every secure sum has a grid "
            "of its own; simulate them one by one"
        )
    kinds = {(jax.tree.structure(a), *map(np.shape, jax.tree.leaves(a))) for a in ready}
    if len(kinds) > 1:
        check.refuse(
            "a sweep varies numbers only; these algorithms differ in class, in counts "
            "or in which numbers are per agent: run one sweep for each"
        )
    stacked = jax.tree.map(lambda *v: jnp.stack([jnp.asarray(x) for x in v]), *ready)
    private = any(map(is_private, ready))
    drawn = [seeds_of(private, seed, 1 if seeds is None else seeds) for _ in ready]
    each = [one.lanes or [] for one in drawn]
    lanes = dataclasses.replace(drawn[0], lanes=[one for some in each for one in some])
    record = memory.recorded(problem, record)
    plan = make_plan(problem, ready[0], record, reference, stop, lanes=True)
    world = make_world(problem, ready[0], participation, lanes=True)
    kept = memory.keeps(problem, ready[0], world, plan.record, start, reference)
    plan = dataclasses.replace(plan, sweep=True, keeps=kept)
    every = recording.of(
        problem, ready[0], world, plan.record, record_every, bool(stop)
    )
    # Lanes are configurations here, so no list of seeds is told.
    told = {"seeds": None, "configs": len(ready), "participation": participation}
    told |= every.told
    run = _run(
        problem,
        jax.tree.map(lambda leaf: jnp.repeat(leaf, len(each[0]), axis=0), stacked),
        plan,
        world,
        lanes,
        told,
        rounds=rounds,
        every=every,
        start=start,
        stop=stop,
        reference=reference,
        progress=progress,
        mesh=mesh,
    )
    return run if seeds is None else by_configuration(run, stacked, len(ready))


def _run(
    problem: Problem,
    algorithm: Any,
    plan: RunPlan,
    world: World,
    seeds: Seeds,
    told: dict[str, Any],
    *,
    rounds: int,
    every: Every,
    start: Any,
    stop: Mapping[str, float] | None,
    reference: Any,
    progress: bool | None,
    folder: Path | None = None,
    resume: bool = False,
    looked: bool = False,
    on_record: OnRecord | None = None,
    mesh: Mesh | int | None = None,
) -> Run:
    """Check what is left of the user's choices, run, and put the run together."""
    rounds = check.count(rounds=check.given(rounds=rounds))
    choices.require_rows(problem, algorithm, rounds)
    usual = choices.start_of(problem, None)
    if start is None:
        start = usual
    else:
        start, told = choices.start_of(problem, start), {**told, "start": "given"}
    if seeds.private and stop:
        check.refuse(
            "stop reads metrics of private rows without noise, so when a private run "
            "ends would tell of them; leave stop out, or clip and noise nothing"
        )
    tolerance = choices.tolerance_of(stop)
    told_reference = reference = choices.reference_of(problem, reference)
    bases = seeds.roots()
    chosen = mesh_of(mesh)
    world = in_blocks(world, chosen)
    first_lane = algorithm_of_first_lane(plan, algorithm)
    lanes = len(seeds.lanes or ())
    spread = spread_of(chosen, problem, first_lane, world, plan, lanes)
    plan = dataclasses.replace(plan, spread=spread)
    laid = (world, algorithm, bases)
    if spread is not None:
        laid = spread.lay(*laid, plan.sweep)
        reference = spread.put(reference, WHOLE)
    carry = begin(plan, *laid, start)
    told_of = seeds.private and not plan.sweep  # a sweep has no one report of privacy
    chunks = Chunks(plan, *laid, tolerance, reference, told_of, on_record)
    if folder is not None:
        seeds.keep_in(folder)
        parts = (
            problem.population,
            algorithm,
            (world.schedule, world.asynchronous, world.aggregation, world.attack),
            jax.tree.map(jax.random.key_data, bases),
            start,
            told_reference,
        )
        meter = None
        if told_of:
            known = {"looked": looked, "seeded": seeds.told == SEED_ASKED_FOR}
            meter = Meter(problem, algorithm, told, world.aggregation, **known)
        chunks.keep_in(folder, parts, every.rounds, meter)
    with guarded():
        carry = chunks.run(carry, rounds, every, progress, resume)
        carry = chunks.ended(carry, problem.whole)
    models = finish(plan, algorithm, carry, world.population.places)

    def at_start() -> np.ndarray:
        # A start near the optimum is no measure of what is far from it.
        points = (start,) if start is usual else (start, usual)
        firsts = [begin(plan, *laid, point) for point in points]
        return np.max([chunks.first("loss", first) for first in firsts], axis=0)

    if not problem.whole:
        alone = dataclasses.replace(world.population, spread=None)
        world = world._replace(population=alone)
    run = to_run(
        problem, algorithm, world, plan, chunks, carry, models, seeds, told, at_start
    )
    rule = world.aggregation
    finite = bool(np.all(np.isfinite(run.params)))
    if isinstance(rule, ModularSum) and not rule.noisy and not finite:
        check.refuse(
            f"an entry of a weighted letter was beyond largest={rule.largest:g}, where "
            "the sum says nothing; give SecureSum a larger largest, or the algorithm a "
            "smaller step size"
        )
    if not told_of:
        return run
    history = np.array(chunks.turn_rounds), np.array(chunks.turns)
    return attach(problem, algorithm, run, world.aggregation, history, looked)


def rule_of(algorithm: Any, aggregation: Choice) -> Any:
    """What a run says of how its letters were joined."""
    return algorithm.aggregation if isinstance(algorithm, Summed) else aggregation

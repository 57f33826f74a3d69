"""Runs on one, two and four devices, compared: a program of its own, see test_mesh.

JAX must be told of its devices before it starts, so that a test cannot do it.

    python -m tests.mesh.on_devices quick|every
    python -m tests.mesh.graphs_on_devices
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from typing import Any

import numpy as np

import tacita
from tacita import robust
from tacita.aggregation import Median
from tacita.mesh.places import Places
from tacita.runtime import engine
from tacita.runtime.devices import spread_of
from tacita.runtime.ready import make_plan, make_world, prepare

ROUNDS = 4


def unequal(agents: int = 10, dtype: Any = np.float64) -> tacita.Problem:
    """Agents with one to three times as many rows as the first."""
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(agents), 6 + rng.integers(0, 12, agents))
    x = rng.standard_normal((len(owner), 3))
    y = np.sign(x @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(len(owner)))
    return tacita.from_arrays(x, y, owner, model="logistic", l2=0.1, dtype=dtype)


def alike(one: tacita.Run, two: tacita.Run, rounded: bool = False) -> bool:
    """The same bits of all models, or all but the last; metrics to rounding."""
    bits = all(
        a.dtype == b.dtype
        and (np.allclose(a, b, 1e-12, 1e-14) if rounded else np.array_equal(a, b))
        for a, b in ((one.params, two.params), (one.agents, two.agents))
    )
    turns = np.array_equal(one.info["turns"], two.info["turns"])
    close = all(
        np.allclose(one.metrics[name], two.metrics[name], rtol=1e-6, atol=1e-7)
        if one.params.dtype == np.float32
        else np.allclose(one.metrics[name], two.metrics[name], rtol=1e-12, atol=1e-14)
        for name in one.metrics
    )
    return bits and turns and close


def on(
    devices: tuple[int, ...],
    problem: Any,
    algorithm: Any,
    rounded: bool = False,
    **options: Any,
) -> bool:
    """Whether a run is the same on so many devices as on one."""
    options = {"seed": 3, "record": ("loss", "disagreement"), **options}
    first = tacita.simulate(problem, algorithm, ROUNDS, mesh=1, **options)
    return all(
        alike(
            first,
            tacita.simulate(problem, algorithm, ROUNDS, mesh=n, **options),
            rounded,
        )
        for n in devices
    )


def refused(words: str, *given: Any, **options: Any) -> bool:
    """Whether a run is refused with these words."""
    try:
        tacita.simulate(*given, **options)
    except tacita.TacitaError as error:
        return words in str(error)
    return False


def resumed(problem: Any, algorithm: Any) -> bool:
    """A run begun on four devices and gone on with on one, and on one only."""
    told = {"seed": 3, "record": ("loss", "disagreement")}
    with tempfile.TemporaryDirectory() as folder:
        tacita.simulate(problem, algorithm, 2, mesh=4, checkpoint=folder, **told)
        two = tacita.simulate(
            problem, algorithm, ROUNDS, mesh=1, checkpoint=folder, resume=True, **told
        )
    return alike(tacita.simulate(problem, algorithm, ROUNDS, mesh=1, **told), two)


def compiles_once(problem: Any, average: Any) -> bool:
    """Another step size on four devices compiles nothing."""
    first: Any = engine._begin_spread
    known = engine.advance.programs, first._cache_size()
    for step in (0.3, 0.2):
        algorithm = replace(average, step_size=step)
        record = ("loss", "disagreement")
        tacita.simulate(problem, algorithm, 3, mesh=4, record=record, seed=5)
    return known == (engine.advance.programs, first._cache_size())


def spread(problem: Any, algorithm: Any, lanes: int = 0) -> str:
    """What the engine chooses where nobody says."""
    ready = prepare(problem, algorithm)
    plan = make_plan(problem, ready, (), None, None, lanes=lanes > 0)
    world = make_world(problem, ready, 1.0)
    found = spread_of(tacita.Mesh(), problem, ready, world, plan, lanes)
    return type(found).__name__


def quick() -> dict[str, bool]:
    """What `make test` looks at."""
    problem = unequal()
    batches = tacita.Minibatch(size=4)
    average = tacita.FedAvg(
        step_size=0.3, local_steps=2, weights="samples", oracle=batches
    )
    noisy = tacita.Noisy(std=0.1, oracle=tacita.Clipped(norm=1.0))
    liars = {"attack": robust.SignFlip(agents=(1,)), "aggregation": Median()}
    heavy = tacita.FedAvg(step_size=0.1, local_steps=20_000)
    return {
        "everybody": on((4,), problem, average),
        "a cohort whose letters are kept": on(
            (4,), problem, tacita.FedPLT(rho=0.8, oracle=noisy), participation=3
        ),
        "seeds of single precision": on(
            (4,), unequal(dtype=np.float32), average, seeds=6
        ),
        "no second compilation": compiles_once(problem, average),
        "resumed on fewer devices": resumed(problem, average),
        "too many devices": refused("use_cores(8)", problem, average, ROUNDS, mesh=8),
        "more devices than blocks": refused(
            "in blocks 1;", unequal(1), average, ROUNDS, mesh=2
        ),
        "single letters of a cohort": refused(
            "one by one", problem, average, ROUNDS, mesh=2, participation=3, **liars
        ),
        "small runs stay on one device": spread(problem, average) == "NoneType",
        "large ones do not": spread(problem, heavy) == "OverAgents",
        "many seeds of large ones": spread(problem, heavy, 8) == "OverLanes",
        "blocks are chosen by agents only": Places.of(100).blocks == 8,
    }


def every() -> dict[str, bool]:
    """All algorithms, with everybody and with few."""
    from tests.cases import CASES

    found = {}
    for number, case in enumerate(CASES):
        problem, algorithm = case.problem(), case.algorithm
        name = f"{number} {case.name}"
        found[name] = on((2,), problem, algorithm, True)
        if algorithm.partial:
            k = max(algorithm.least_active, 2)
            found[f"{name}, K of N"] = on(
                (2,), problem, algorithm, True, participation=k
            )
            found[f"{name}, p"] = on((2,), problem, algorithm, True, participation=0.5)
    liars = {"attack": robust.SignFlip(agents=(1,)), "aggregation": Median()}
    found["single letters, and a liar"] = on(
        (2, 4), unequal(), tacita.FedAvg(step_size=0.3), **liars
    )
    single, steps = unequal(dtype=np.float32), (0.1, 0.2, 0.3)
    found["single precision"] = on((2, 4), single, tacita.FedAvg(step_size=0.3))
    sweeps = [
        tacita.sweep(single, [tacita.FedAvg(step_size=s) for s in steps], 4, mesh=n)
        for n in (1, 2)
    ]
    found["a sweep"] = alike(*sweeps)
    found["few of many"] = on(
        (4,), unequal(200), CASES[1].algorithm, participation=0.02
    )
    return found


if __name__ == "__main__":
    tacita.use_cores(4)
    print(json.dumps({"quick": quick, "every": every}[sys.argv[1]]()))

"""One device against two, and one process against two: speed, bits and memory.

    python -m bench.mesh                      # works A x 100 seeds, B and C, in turns
    python -m bench.mesh --processes 2        # the same over processes instead
    python -m bench.mesh --many 10000000 --processes 4

A x 100: 100 seeds of logistic regression, 100 agents of 250 samples, 5 features, 5
local steps. B: softmax regression 784 x 10, 1,000 agents of 50 samples, 100 active,
batches of 10, 5 local steps. C: CNN (32, 64) on 28 x 28, 2 agents, 10 steps of batch
20. Seconds of a round by the wall clock, so the machine must be quiet; and of the
processor, which a busy one does not change. `--many` runs linear regression with so
many agents, of which each process makes its own rows, and prints its memory.
"""

from __future__ import annotations

import argparse
import resource
import socket
import statistics
import subprocess
import sys
import time
import zlib
from typing import Any

import numpy as np

import tacita
from tacita.problem import cnn

FEATURES, SAMPLES, ACTIVE = 10, 10, 1000


def work_a() -> tuple[Any, Any, dict[str, Any], int]:
    problem = tacita.problem.synthetic.logistic(
        agents=100, features=5, samples=250, l2=0.5, dtype=np.float32
    )
    return problem, tacita.FedAvg(step_size=0.1, local_steps=5), {"seeds": 100}, 50


def work_b() -> tuple[Any, Any, dict[str, Any], int]:
    rng = np.random.default_rng(0)
    x = rng.random((50_000, 784), dtype=np.float32)
    y, owner = rng.integers(0, 10, 50_000), np.repeat(np.arange(1000), 50)
    problem = tacita.from_arrays(x, y, owner, model="softmax", dtype=np.float32)
    batches = tacita.Minibatch(size=10)
    algorithm = tacita.FedAvg(step_size=0.1, local_steps=5, oracle=batches)
    return problem, algorithm, {"participation": 100}, 50


def work_c() -> tuple[Any, Any, dict[str, Any], int]:
    rng = np.random.default_rng(0)
    x, y = rng.random((80, 784), np.float32), rng.integers(0, 10, 80)
    model = cnn((28, 28, 1), 10, (32, 64))
    problem = tacita.from_arrays(x, y, np.arange(80) % 2, model=model)
    oracle = tacita.Minibatch(size=20, sampling="with_replacement")
    algorithm = tacita.FedAvg(step_size=0.05, local_steps=10, oracle=oracle)
    return problem, algorithm, {}, 5


WORKS = {"A x 100 seeds": work_a, "B": work_b, "C": work_c}


def measured(
    make: Any, meshes: tuple[int | None, ...], repeats: int
) -> dict[int | None, tuple[float, float, Any]]:
    """Median seconds of a round by the clock and by the processor, and the model.

    By mesh, all of them in turns; what it takes to begin and to end counts for the
    processor only.
    """
    problem, algorithm, options, rounds = make()
    told = {"seed": 1, "record": (), "progress": False, **options}
    clock: dict[Any, list[float]] = {mesh: [] for mesh in meshes}
    processor: dict[Any, list[float]] = {mesh: [] for mesh in meshes}
    models = {}
    for turn in range(repeats + 1):
        for mesh in meshes:
            spent = time.process_time()
            run = tacita.simulate(problem, algorithm, rounds, mesh=mesh, **told)
            models[mesh] = run.params
            if turn > 0:  # the first compiles
                clock[mesh].append(run.info["seconds"]["total"] / rounds)
                processor[mesh].append((time.process_time() - spent) / rounds)
    middle = statistics.median
    return {m: (middle(clock[m]), middle(processor[m]), models[m]) for m in meshes}


def over_devices(devices: int, repeats: int, only: str) -> None:
    """Every work on one device and on several, and what the engine chooses."""
    tacita.use_cores(devices)
    for name, make in WORKS.items():
        if not name.startswith(only):
            continue
        found = measured(make, (1, devices, None), repeats)
        alone = found[1]
        print(f"{name}: a round")
        for n, (clock, processor, model) in found.items():
            same = "same bits" if np.array_equal(model, alone[2]) else "OTHER BITS"
            label = f"{n} device(s)" if n else "the engine's choice"
            print(
                f"  {label:<22}{clock * 1e3:9.3f} ms{processor * 1e3:10.3f} ms of "
                f"processors {alone[0] / clock:6.2f} x one device, {same}",
                flush=True,
            )


def one_process(number: int, of: int, port: int, repeats: int, only: str) -> None:
    """A process of those that `over_processes` starts."""
    tacita.use_cores(1)
    tacita.use_processes(f"127.0.0.1:{port}", number, of)
    for name, make in WORKS.items():
        if name.startswith(only):
            clock, processor, model = measured(make, (None,), repeats)[None]
            if number == 0:
                told = (
                    f"{clock * 1e3:9.3f} ms{processor * 1e3:10.3f} ms of its processor"
                )
                print(
                    f"{name:<16}{of} process(es) {told}, {_digest(model)}", flush=True
                )


def one_of_many(number: int, of: int, port: int, agents: int) -> None:
    """A process with the rows of its own agents, out of very many."""
    tacita.use_cores(1)
    tacita.use_processes(f"127.0.0.1:{port}", number, of)

    def load(numbers: range) -> tacita.Problem:
        rng = np.random.default_rng(numbers.start)
        n = len(numbers) * SAMPLES
        x = rng.standard_normal((n, FEATURES), np.float32)
        y = x @ np.ones(FEATURES, np.float32)
        owner = np.repeat(np.asarray(numbers), SAMPLES)
        return tacita.from_arrays(x, y, owner, model="linear", dtype=np.float32)

    problem = tacita.problem.from_own_agents(load, agents)
    algorithm = tacita.FedAvg(step_size=0.01, local_steps=5)
    run = tacita.simulate(
        problem, algorithm, 20, seed=1, participation=ACTIVE, record=(), progress=False
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    seconds = run.info["seconds"]["total"]
    print(
        f"process {number + 1} of {of}: {len(run.agents):,} of {agents:,} agents, "
        f"20 rounds in {seconds:.2f} s with compilation, peak memory {peak:.2f} GiB, "
        f"{_digest(run.params)}",
        flush=True,
    )


def _digest(model: np.ndarray) -> str:
    return f"model {zlib.crc32(model.tobytes()):08x}"


def over_processes(of: int, words: list[str]) -> None:
    """Start the processes of this file and wait for them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, "-m", "bench.mesh", *words, "--port", str(port)]
    begun = [
        subprocess.Popen([*program, "--processes", str(of), "--number", str(i)])
        for i in range(of)
    ]
    for one in begun:
        one.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--many", type=int, default=0, metavar="AGENTS")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="the first letter of a work")
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    words = ["--repeats", str(asked.repeats), "--many", str(asked.many)]
    words += ["--only", asked.only]
    if asked.number is not None:
        place = (asked.number, asked.processes, asked.port)
        if asked.many:
            one_of_many(*place, asked.many)
        else:
            one_process(*place, asked.repeats, asked.only)
    elif asked.processes:
        for of in sorted({1, asked.processes} if not asked.many else {asked.processes}):
            over_processes(of, words)
    else:
        over_devices(asked.devices, asked.repeats, asked.only)


if __name__ == "__main__":
    main()

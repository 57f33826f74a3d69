"""Beyond one core: speed, bits and memory on several devices and processes.

    python -m bench.mesh             # all works; writes bench/results/mesh.json
    python -m bench.mesh --only G    # works whose titles begin so, printed only
    python -m bench.mesh --many 10000000 --processes 4

Every work (`bench/mesh_works.py`) is run by a process on one core, by one device, which
may use threads on all cores inside large operations, by several devices, by several
processes, and as the engine chooses; in turns. Milliseconds of a round by the wall
clock, so the machine must be quiet; and of all processors, which a busy one changes
little. `--many` runs linear regression with so many agents, of which each process makes
its own rows, and prints its memory.
"""

from __future__ import annotations

import argparse
import resource
import socket
import subprocess
import sys
from typing import Any

import numpy as np

import tacita
from bench import turns
from bench.mesh_teams import Team, teams
from bench.mesh_works import FEATURES, WORKS, digest

SAMPLES, ACTIVE = 10, 1000


def measured(title: str, contestants: dict[str, Team], repeats: int) -> dict[str, Any]:
    """Every contestant's turns, taken in turns; the first of each compiles."""
    found: dict[str, Any] = {"about": WORKS[title][0]}
    for kind in ("milliseconds", "processor milliseconds"):
        found[kind] = {name: [] for name in contestants}
    models = {}
    for number in range(repeats + 1):
        for name, team in contestants.items():
            clock, processor, models[name] = team.turn(title)
            if number > 0:
                found["milliseconds"][name].append(float(f"{clock:.4g}"))
                found["processor milliseconds"][name].append(float(f"{processor:.4g}"))
    alone = models["one core"]
    found["same bits"] = {name: model == alone for name, model in models.items()}
    return found


def table(title: str, found: dict[str, Any]) -> str:
    """Medians, and how much faster than one core and than one device."""
    lines, clock = [f"{title}: {found['about']}"], _medians(found["milliseconds"])
    processor = _medians(found["processor milliseconds"])
    for name, value in clock.items():
        bits = "the same bits" if found["same bits"][name] else "other bits"
        lines.append(
            f"  {name:<20}{value:9.3f} ms{processor[name]:10.3f} ms of processors"
            f"{clock['one core'] / value:7.2f} x one core"
            f"{clock['one device'] / value:7.2f} x one device, {bits}"
        )
    return "\n".join(lines)


def _medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {name: float(np.median(found)) for name, found in times.items()}


def compare(parts: int, repeats: int, only: str) -> None:
    """All works, or some; raw results of all are kept."""
    kept: dict[str, Any] = {"machine": turns.machine(), "versions": turns.versions()}
    kept |= {"command": "python -m bench.mesh", "works": {}}
    contestants = teams(parts)
    for title in WORKS:
        if title.startswith(only):
            found = measured(title, contestants, repeats)
            print(table(title, found), flush=True)
            kept["works"][title] = found
    for team in contestants.values():
        team.close()
    if not only:
        turns.save("mesh", kept)


def one_of_many(number: int, of: int, port: int, agents: int) -> None:
    """A process with the rows of its own agents, out of very many."""
    tacita.use_cores(1)
    tacita.use_processes(f"127.0.0.1:{port}", number, of, here=of)

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
        f"model {digest(run.params)}",
        flush=True,
    )


def many(of: int, agents: int) -> None:
    """Start the processes of this file and wait for them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, "-m", "bench.mesh", "--many", str(agents)]
    program += ["--port", str(port), "--processes", str(of)]
    begun = [subprocess.Popen([*program, "--number", str(i)]) for i in range(of)]
    for one in begun:
        one.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=int, default=2, help="devices and processes")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="how the titles of works begin")
    parser.add_argument("--many", type=int, default=0, metavar="AGENTS")
    parser.add_argument("--processes", type=int, default=1, help="for --many")
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.number is not None:
        one_of_many(asked.number, asked.processes, asked.port, asked.many)
    elif asked.many:
        many(asked.processes, asked.many)
    else:
        compare(asked.parts, asked.repeats, asked.only)


if __name__ == "__main__":
    main()

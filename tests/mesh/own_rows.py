"""One process of several that load the rows of their own agents only, see test_mesh.

python -m tests.mesh.own_rows 0/2 PORT
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import tacita

AGENTS = 13


def load(numbers: range) -> tacita.Problem:
    """Agent i has 4 + i % 3 rows, which nobody else needs to draw."""
    x, y, owner = [], [], []
    for number in numbers:
        rng = np.random.default_rng(number)
        rows = 4 + number % 3
        x.append(rng.standard_normal((rows, 3)))
        y.append(x[-1] @ [1.0, -1.0, 2.0] + 0.1 * rng.standard_normal(rows))
        owner += [number] * rows
    rows, labels = np.concatenate(x), np.concatenate(y)
    return tacita.from_arrays(rows, labels, owner, model="linear")


def threads_of_xla() -> int:
    """Threads for the inside of large operations, by the name that XLA gives them."""
    names = [task.read_text() for task in Path("/proc/self/task").glob("*/comm")]
    return sum(name.startswith("tf_XLAEigen") for name in names)


def main() -> None:
    which, port = sys.argv[1:]
    number, of = map(int, which.split("/"))
    tacita.use_processes(f"127.0.0.1:{port}", number, of, here=of)
    problem = tacita.problem.from_own_agents(load, AGENTS)
    average = tacita.FedAvg(step_size=0.1, local_steps=2, weights="samples")
    run = tacita.simulate(problem, average, 5, participation=6, record=("loss",))
    np.savez(
        which.replace("/", "-"),
        params=run.params,
        agents=run.agents,
        loss=run.metrics["loss"],
        counts=problem.counts,
        threads=threads_of_xla(),
        bytes=run.info["communication"]["bytes"],
    )


if __name__ == "__main__":
    main()

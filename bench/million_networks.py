"""A million agents with a network, 100 active: memory follows the active ones.

    python -m bench.million_networks

FedAvg, a CNN with some 50,000 parameters on images of 8 x 8, 2 images at every agent,
2 local steps, 1,000,000 agents against 1,000. All agents' models would take 171 GiB;
none is kept, by default. Writes the peak memory, and the processor time of a round in
both, measured in turns, to bench/results/million_networks.json.
"""

from __future__ import annotations

import json
import resource
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import tacita
from tacita.problem import cnn

SIDE, IMAGES, ACTIVE, ROUNDS, REPEATS = 8, 2, 100, 3, 5
RESULT = Path(__file__).parent / "results" / "million_networks.json"


def problem(agents: int, model: Any) -> tacita.Problem:
    rng = np.random.default_rng(0)
    rows = agents * IMAGES
    x = rng.random((rows, SIDE * SIDE), np.float32)
    y = rng.integers(0, 10, rows)
    return tacita.from_arrays(x, y, np.repeat(np.arange(agents), IMAGES), model=model)


def main() -> None:
    model = cnn((SIDE, SIDE, 1), 10, (48, 96))
    algorithm = tacita.FedAvg(step_size=0.05, local_steps=2)
    problems = {n: problem(n, model) for n in (1_000, 1_000_000)}
    options = {"participation": ACTIVE, "record": ()}
    seconds: dict[int, list[float]] = {n: [] for n in problems}
    for turn in range(REPEATS + 1):
        for n, rows in problems.items():
            began = time.process_time()
            run = tacita.simulate(rows, algorithm, ROUNDS, **options)
            if turn > 0:  # the first one compiles
                seconds[n].append((time.process_time() - began) / ROUNDS)
            assert np.all(np.isfinite(run.params))
    medians = {n: statistics.median(values) for n, values in seconds.items()}
    told = {
        "parameters": model.dim,
        "active": ACTIVE,
        "milliseconds_a_round": {f"{n:,}": 1e3 * s for n, s in medians.items()},
        "peak_memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "all_models_would_take_gib": 1_000_000 * model.dim * 4 / 2**30,
    }
    RESULT.write_text(json.dumps(told, indent=1) + "\n")
    print(RESULT.read_text())


if __name__ == "__main__":
    main()

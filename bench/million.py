"""A round costs what its active agents cost: 1,000,000 agents against 1,000.

    python -m bench.million

FedAvg, linear regression with 10 features and 10 samples per agent, 100 active per
round. Prints the peak memory and the ratio of the round times, measured in one run in
turns; raw results are kept in bench/results/million.json.
"""

from __future__ import annotations

import resource

import numpy as np

import tacita
from bench import turns
from bench.simulator import tacita_rounds

FEATURES, SAMPLES, ACTIVE, ROUNDS = 10, 10, 100, 100


def problem(agents: int) -> tacita.Problem:
    rng = np.random.default_rng(0)
    rows = agents * SAMPLES
    x = rng.standard_normal((rows, FEATURES))
    y = x @ rng.standard_normal(FEATURES) + 0.1 * rng.standard_normal(rows)
    owner = np.repeat(np.arange(agents), SAMPLES)
    return tacita.from_arrays(x, y, owner, model="linear")


def contestants() -> dict[str, turns.Turn]:
    algorithm = tacita.FedAvg(step_size=0.01, local_steps=5)
    return {
        f"{n:,} agents": turns.own_turn(
            tacita_rounds(problem(n), algorithm, ACTIVE, ROUNDS), ROUNDS
        )
        for n in (1_000, 1_000_000)
    }


def main() -> None:
    about = "linear regression, 10 features, 10 samples an agent, 5 local steps"
    works = {f"{ACTIVE} active agents": (about, contestants, 15)}
    turns.compete("million", works, "1,000 agents")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()

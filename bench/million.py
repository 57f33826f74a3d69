"""A round costs what its active agents cost: 1,000,000 agents against 1,000.

    python -m bench.million

FedAvg, linear regression with 10 features and 10 samples per agent, 100 active per
round. Prints the peak memory and the ratio of the round times, measured in one run.
"""

from __future__ import annotations

import resource

import numpy as np

import tacita
from bench.simulator import tacita_rounds
from bench.timing import in_turns, table

FEATURES, SAMPLES, ACTIVE, ROUNDS = 10, 10, 100, 100


def problem(agents: int) -> tacita.Problem:
    rng = np.random.default_rng(0)
    rows = agents * SAMPLES
    x = rng.standard_normal((rows, FEATURES))
    y = x @ rng.standard_normal(FEATURES) + 0.1 * rng.standard_normal(rows)
    owner = np.repeat(np.arange(agents), SAMPLES)
    return tacita.from_arrays(x, y, owner, model="linear")


def main() -> None:
    algorithm = tacita.FedAvg(step_size=0.01, local_steps=5)
    work = {
        f"{n:,} agents": tacita_rounds(problem(n), algorithm, ACTIVE, ROUNDS)
        for n in (1_000, 1_000_000)
    }
    seconds = in_turns(work, repeats=9, per_call=ROUNDS)
    print(table(f"a round with {ACTIVE} active agents", seconds, "1,000 agents"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()

"""GTVMin from ten thousand nodes to a million: rounds, growth, memory, exact solution.

    python -m bench.gtv                       # to a million nodes, a few minutes
    python -m bench.gtv --nodes 100000

A connected random graph with 4 N edges (a random cycle through all nodes, the others
drawn uniformly), linear models with 10 features, 5 samples per node, float64. Prints
the seconds of one FedGD and one FedRelax round, with the ratio to scipy's sparse
product of the adjacency matrix with the models; the same with the processor's caches
emptied before every round, so that ten thousand nodes, which fit in them, start from
the same place as a million, which do not; the same per round of a run of ten, which
asks for memory once and factorises FedRelax's matrices once; then the growth exponents,
the time of conjugate gradients to a relative residual of 1e-6, and the peak memory.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import tacita
from bench.simulator import tacita_rounds
from tacita.problem.graph import Graph

FEATURES, SAMPLES, ALPHA = 10, 5, 0.5
RUN = 10  # rounds of a run
REPEATS = 15
CACHES = 2**29  # bytes: more than a processor's caches hold


def network(n: int, seed: int = 0) -> Graph:
    """A random cycle and 3 n further random edges."""
    rng = np.random.default_rng(seed)
    cycle = rng.permutation(n)
    pairs = np.stack([cycle, np.roll(cycle, 1)], axis=1)
    codes = np.sort(pairs, axis=1) @ np.array([n, 1])
    while len(codes) < 4 * n:
        drawn = np.sort(rng.integers(n, size=(4 * n - len(codes), 2)), axis=1)
        drawn = drawn[drawn[:, 0] < drawn[:, 1]] @ np.array([n, 1])
        codes = np.unique(np.concatenate([codes, drawn]))
    return Graph.from_edges(n, np.stack([codes // n, codes % n], axis=1))


def problem(n: int) -> tacita.Problem:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n * SAMPLES, FEATURES))
    truth = rng.standard_normal(FEATURES)
    y = x @ truth + 0.5 * rng.standard_normal(len(x))
    owner = np.repeat(np.arange(n), SAMPLES)
    return tacita.from_arrays(x, y, owner, model="linear", graph=network(n))


class Cost(NamedTuple):
    """What one piece of work took: on the clock, and on all processors together."""

    wall: float
    cpu: float


def least(
    work: dict[str, Callable[[], None]],
    repeats: int,
    before: Callable[[], None] = lambda: None,
) -> dict[str, Cost]:
    """Least cost of each piece of work, in turns, after two warm-ups.

    `before` is called before each piece, and its time not counted.

    Growth is fitted over sizes measured one after the other, on a machine that may be
    busy in between: the least of several is steadier than their median, and processor
    seconds do not count the time that others had the machine.
    """
    seen: dict[str, list[Cost]] = {name: [] for name in work}
    for turn in range(repeats + 2):
        for name, call in work.items():
            before()
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            cost = Cost(time.perf_counter() - wall, time.process_time() - cpu)
            if turn >= 2:
                seen[name].append(cost)
    return {
        name: Cost(min(c.wall for c in costs), min(c.cpu for c in costs))
        for name, costs in seen.items()
    }


def rounds(made: tacita.Problem) -> dict[str, Cost]:
    """The cost of a round, and of scipy's product with the same edges."""
    assert made.graph is not None
    matrix = made.graph.adjacency()
    models = np.random.default_rng(2).standard_normal((made.n_agents, made.dim))

    def scipy_product() -> None:
        matrix @ models

    methods = {
        "FedGD": tacita.FedGD(alpha=ALPHA),
        "FedRelax": tacita.FedRelax(alpha=ALPHA),
    }
    alone = {k: tacita_rounds(made, one, 1.0, 1) for k, one in methods.items()}
    work = {"scipy": scipy_product, **alone}
    filler = np.zeros(CACHES // 8)

    def empty_caches() -> None:
        np.add(filler, 1, out=filler)

    seen = least(work, REPEATS)
    for name, cost in least(work, REPEATS, empty_caches).items():
        seen[f"{name}, caches empty"] = cost
    runs = {f"{k} in a run": tacita_rounds(made, methods[k], 1.0, RUN) for k in methods}
    for name, cost in least(runs, REPEATS).items():
        seen[name] = Cost(cost.wall / RUN, cost.cpu / RUN)
    return seen


def solve(made: tacita.Problem) -> None:
    """Time conjugate gradients; the residual is measured anew, by scipy."""
    gtv = tacita.GTVMin(made, ALPHA)
    began = time.perf_counter()
    models = gtv.solve(tolerance=1e-6, method="conjugate_gradients")
    took = time.perf_counter() - began
    zero = made.grad(np.zeros_like(models))
    left = made.grad(models) + 2 * ALPHA * (gtv.graph.laplacian() @ models)
    residual = np.linalg.norm(left) / np.linalg.norm(zero)
    print(
        f"  conjugate gradients: {took:.1f} s with compilation, relative residual "
        f"{residual:.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Time GTVMin on large graphs.")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    largest = parser.parse_args().nodes
    sizes = [n for n in (10_000, 100_000, 1_000_000) if n <= largest]
    seen: list[dict[str, Cost]] = []
    for n in sizes:
        began = time.perf_counter()
        made = problem(n)
        assert made.graph is not None and made.graph.connected
        print(f"{made.graph}, made in {time.perf_counter() - began:.1f} s")
        seen.append(rounds(made))
        for name, cost in seen[-1].items():
            emptied = name.endswith("empty")
            base = seen[-1]["scipy, caches empty" if emptied else "scipy"]
            print(
                f"  {name:<23}{cost.wall:>9.4f} s {cost.wall / base.wall:>6.2f} x scipy"
                f"  {cost.cpu:>9.4f} processor s {cost.cpu / base.cpu:>6.2f} x scipy",
                flush=True,
            )
        solve(made)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"  peak memory so far {peak:.2f} GiB", flush=True)
    for name in seen[0] if len(sizes) > 1 else ():
        costs = np.log([one[name] for one in seen])
        wall, cpu = np.polyfit(np.log(sizes), costs, 1)[0]
        print(f"growth exponent {name:<24}{wall:.3f}, of processor seconds {cpu:.3f}")


if __name__ == "__main__":
    main()

"""Delivery of letters on sparse graphs, measured beside scipy and the alternatives.

Prints, for random graphs with 4 N edges and letters of ten numbers, the seconds of
one `neighbour_sum` with the graph as an argument of a compiled function, the ratio to
scipy's sparse-times-dense product on the same edges in the same run, and the fitted
exponent of growth in N. Then graphs with hubs, and the layouts that were not chosen.

    python -m bench.graph_delivery            # to a million nodes, about two minutes
    python -m bench.graph_delivery --nodes 100000
"""

from __future__ import annotations

import argparse
import operator
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse as jax_sparse

from bench.timing import in_turns, table
from tacita.problem.graph import Graph, erdos_renyi, exchange, neighbour_sum, star

DIMENSION = 10
DTYPES = (np.float32, np.float64)


def seconds(repeats: int, **calls: Callable[[], Any]) -> dict[str, float]:
    """Median seconds of each call, all in turns."""
    work = {
        name: lambda call=call: jax.block_until_ready(call())
        for name, call in calls.items()
    }
    return in_turns(work, repeats)


def best_seconds(repeats: int, **calls: Callable[[], Any]) -> dict[str, float]:
    """Least seconds of each call, in turns: growth is fitted over separate runs."""
    rounds = [seconds(1, **calls) for _ in range(repeats)]
    return {name: min(one[name] for one in rounds) for name in calls}


def power_law(n: int, seed: int = 0) -> Graph:
    """About 4 n edges, one end drawn with a heavy tail: a few very large hubs."""
    rng = np.random.default_rng(seed)
    heavy = (n * rng.random(4 * n) ** 3).astype(np.int64)
    pairs = np.sort(np.stack([heavy, rng.integers(n, size=4 * n)], axis=1), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return Graph.from_edges(n, pairs)


def report(title: str, graph: Graph, dtype: Any) -> dict[str, float]:
    """One line: our delivery beside scipy's product, compilation, largest error."""
    letters = np.random.default_rng(1).standard_normal((graph.n_nodes, DIMENSION))
    letters = letters.astype(dtype)
    matrix = graph.adjacency().astype(dtype)
    with jax.enable_x64(dtype is np.float64):
        on_device, sent = jax.device_put(graph), jnp.asarray(letters)
        deliver = jax.jit(lambda graph, letters: neighbour_sum(graph, letters))
        began = time.perf_counter()
        received = np.asarray(deliver(on_device, sent))
        first = time.perf_counter() - began
        times = best_seconds(
            15, ours=lambda: deliver(on_device, sent), scipy=lambda: matrix @ letters
        )
    expected = matrix @ letters
    error = np.max(np.abs(received - expected)) / np.max(np.abs(expected))
    print(
        f"{title:16s} {np.dtype(dtype).name}  {times['ours']:9.5f} s"
        f"  scipy {times['scipy']:9.5f} s  ratio {times['ours'] / times['scipy']:5.2f}"
        f"  compile {first - times['ours']:4.2f} s  relative error {error:.0e}",
        flush=True,
    )
    return times


def growth(sizes: list[int]) -> None:
    """Measure growing random graphs and fit seconds = c N^exponent."""
    measured: dict[Any, list[dict[str, float]]] = {dtype: [] for dtype in DTYPES}
    for n in sizes:
        began = time.perf_counter()
        graph = erdos_renyi(n, edges=4 * n, connected=False)
        print(f"built {graph} in {time.perf_counter() - began:.2f} s")
        for dtype in DTYPES:
            measured[dtype].append(report(f"random {n:.0e}", graph, dtype))
    for dtype in DTYPES:
        for name in ("ours", "scipy"):
            times = [one[name] for one in measured[dtype]]
            exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
            kind = np.dtype(dtype).name
            print(f"growth exponent {kind} {name:5s} {exponent:.3f}")


def alternatives(graph: Graph) -> None:
    """The same product by other layouts, all jitted with the edges as arguments."""
    n = graph.n_nodes
    letters = np.random.default_rng(1).standard_normal((n, DIMENSION))
    slots = graph.slots
    matrix = graph.adjacency()
    receivers, senders = jnp.asarray(graph.receivers), jnp.asarray(graph.senders)

    def segments(x: Any, weights: Any) -> Any:
        return jax.ops.segment_sum(
            weights[:, None] * x[senders], receivers, n, indices_are_sorted=True
        )

    def gather(x: Any, neighbour: Any, weight: Any) -> Any:
        return jnp.einsum("ns,nsd->nd", weight, x[neighbour])

    def scan(x: Any, neighbour: Any, weight: Any) -> Any:
        def add(total: Any, slot: Any) -> Any:
            return total + slot[1][:, None] * x[slot[0]], None

        return jax.lax.scan(add, jnp.zeros_like(x), (neighbour.T, weight.T))[0]

    for dtype in DTYPES:
        with jax.enable_x64(dtype is np.float64):
            x, edges = jnp.asarray(letters, dtype), jnp.asarray(graph.weights, dtype)
            padded = (jnp.asarray(slots.neighbour), jnp.asarray(slots.weight, dtype))
            bcsr = jax_sparse.BCSR.from_scipy_sparse(matrix.astype(dtype))
            on_device = jax.device_put(graph)
            times = seconds(
                5,
                scipy=partial(operator.matmul, matrix.astype(dtype), np.asarray(x)),
                chosen=partial(jax.jit(neighbour_sum), on_device, x),
                segment_sum=partial(jax.jit(segments), x, edges),
                padded_gather=partial(jax.jit(gather), x, *padded),
                scan_over_slots=partial(jax.jit(scan), x, *padded),
                jax_bcsr=partial(jax.jit(lambda x, m: m @ x), x, bcsr),
            )
        print(table(f"{np.dtype(dtype).name}, {graph}", times, "scipy"))


def seeds_and_slots(graph: Graph) -> None:
    """Several seeds at once, and one letter per edge."""
    letters = np.random.default_rng(2).standard_normal((4, graph.n_nodes, DIMENSION))
    sent = jnp.asarray(letters, np.float32)
    outbox = jnp.zeros((*graph.slots.mask.shape, DIMENSION), np.float32)
    on_device, slots = jax.device_put(graph), jax.device_put(graph.slots)
    times = seconds(
        5,
        one_seed=partial(jax.jit(neighbour_sum), on_device, sent[0]),
        four_seeds=partial(
            jax.jit(jax.vmap(neighbour_sum, (None, 0))), on_device, sent
        ),
        letters_per_edge=partial(jax.jit(exchange), slots, outbox),
    )
    title = f"float32, four seeds by vmap, and {graph.slots.mask.size} slots"
    print(table(title, times, "one_seed"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the delivery of letters.")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    largest = parser.parse_args().nodes
    sizes = [n for n in (10_000, 30_000, 100_000, 300_000, 1_000_000) if n <= largest]
    growth(sizes)
    for dtype in DTYPES:
        report(f"star {largest:.0e}", star(largest), dtype)
        report(f"power law {largest:.0e}", power_law(largest), dtype)
    graph = erdos_renyi(largest, edges=4 * largest, connected=False)
    alternatives(graph)
    seeds_and_slots(graph)


if __name__ == "__main__":
    main()

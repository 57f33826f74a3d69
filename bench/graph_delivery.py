"""Delivery of letters on sparse graphs, measured beside scipy and the alternatives.

Prints, for random graphs with 4 N edges and letters of ten numbers, the seconds of
one `neighbour_sum` with the graph as an argument of a compiled function, the ratio to
scipy's sparse-times-dense product on the same edges in the same run, and the fitted
exponent of growth in N. Then graphs with hubs, and the layouts that were not chosen.

    python bench/graph_delivery.py            # up to a million nodes, about 2 minutes
    python bench/graph_delivery.py --nodes 100000
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse as jax_sparse

from tacit.problem.graph import Graph, erdos_renyi, exchange, neighbour_sum, star

DIMENSION = 10
DTYPES = (np.float32, np.float64)


def seconds(*calls: Callable[[], Any], repeats: int = 15) -> list[float]:
    """The best time of each call; calls take turns, so that load hits all alike."""
    best = [np.inf] * len(calls)
    for turn in range(repeats + 1):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            jax.block_until_ready(call())
            if turn:  # the first turn compiles
                best[k] = min(best[k], time.perf_counter() - start)
    return best


def power_law(n: int, seed: int = 0) -> Graph:
    """About 4 n edges, one end drawn with a heavy tail: a few very large hubs."""
    rng = np.random.default_rng(seed)
    heavy = (n * rng.random(4 * n) ** 3).astype(np.int64)
    pairs = np.sort(np.stack([heavy, rng.integers(n, size=4 * n)], axis=1), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return Graph.from_edges(n, pairs)


def measure(graph: Graph, dtype: Any) -> tuple[float, float, float, float]:
    """Seconds of our delivery, of scipy, of compiling ours; and the largest error."""
    letters = np.random.default_rng(1).standard_normal((graph.n_nodes, DIMENSION))
    letters = letters.astype(dtype)
    matrix = graph.adjacency().astype(dtype)
    on_device, sent = jax.device_put(graph), jnp.asarray(letters)
    deliver = jax.jit(neighbour_sum)
    start = time.perf_counter()
    received = np.asarray(deliver(on_device, sent))
    first = time.perf_counter() - start
    error = float(np.max(np.abs(received - matrix @ letters)))
    ours, scipy_s = seconds(lambda: deliver(on_device, sent), lambda: matrix @ letters)
    return ours, scipy_s, first - ours, error


def report(title: str, graph: Graph, dtype: Any) -> float:
    with jax.enable_x64(dtype is np.float64):
        ours, scipy_s, compiling, error = measure(graph, dtype)
    print(
        f"{title:22s} {np.dtype(dtype).name}  {ours:9.5f} s  scipy {scipy_s:9.5f} s  "
        f"ratio {ours / scipy_s:5.2f}  compile {compiling:4.2f} s  error {error:.0e}",
        flush=True,
    )
    return ours


def growth(sizes: list[int]) -> None:
    times: dict[Any, list[float]] = {dtype: [] for dtype in DTYPES}
    for n in sizes:
        start = time.perf_counter()
        graph = erdos_renyi(n, edges=4 * n, connected=False)
        print(f"built {graph} in {time.perf_counter() - start:.2f} s")
        for dtype in DTYPES:
            times[dtype].append(report(f"random {n:.0e}", graph, dtype))
    for dtype in DTYPES:
        exponent = np.polyfit(np.log(sizes), np.log(times[dtype]), 1)[0]
        print(f"growth exponent {np.dtype(dtype).name}: {exponent:.3f}")


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
            candidates = {
                "scipy": (
                    lambda x, m: m @ x,
                    (letters.astype(dtype), matrix.astype(dtype)),
                ),
                "chosen": (jax.jit(lambda x, g: neighbour_sum(g, x)), (x, on_device)),
                "segment_sum": (jax.jit(segments), (x, edges)),
                "padded gather": (jax.jit(gather), (x, *padded)),
                "scan over slots": (jax.jit(scan), (x, *padded)),
                "jax BCSR": (jax.jit(lambda x, m: m @ x), (x, bcsr)),
            }
            calls = [lambda f=f, a=a: f(*a) for f, a in candidates.values()]
            times = seconds(*calls, repeats=5)
            for name, one in zip(candidates, times, strict=True):
                kind = np.dtype(dtype).name
                print(f"  {name:16s} {kind} {one:9.5f} s  ratio {one / times[0]:5.2f}")


def seeds_and_slots(graph: Graph) -> None:
    letters = np.random.default_rng(2).standard_normal((4, graph.n_nodes, DIMENSION))
    outbox = np.zeros((*graph.slots.mask.shape, DIMENSION), np.float32)
    graph_on, slots = jax.device_put(graph), jax.device_put(graph.slots)
    sent, box = jnp.asarray(letters, np.float32), jnp.asarray(outbox)
    one, four, swap = seconds(
        lambda: jax.jit(neighbour_sum)(graph_on, sent[0]),
        lambda: jax.jit(jax.vmap(neighbour_sum, (None, 0)))(graph_on, sent),
        lambda: jax.jit(exchange)(slots, box),
        repeats=5,
    )
    print(f"  four seeds by vmap {four:.5f} s, {four / one:.2f} times one seed")
    print(f"  exchange over {graph.slots.mask.size} slots {swap:.5f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    largest = parser.parse_args().nodes
    sizes = [n for n in (10_000, 30_000, 100_000, 300_000, 1_000_000) if n <= largest]
    growth(sizes)
    for dtype in DTYPES:
        report(f"star {largest:.0e}", star(largest), dtype)
        report(f"power law {largest:.0e}", power_law(largest), dtype)
    graph = erdos_renyi(largest, edges=4 * largest, connected=False)
    print(f"other layouts, {graph}")
    alternatives(graph)
    seeds_and_slots(graph)


if __name__ == "__main__":
    main()

"""How large a graph can be learnt: seconds and memory.

The nearest graph of 100 000 nodes with 20 numbers each, exactly, by scikit-learn's
blocked products; the regular graph (160) of 400 nodes by HiGHS; the log-degree graph of
400. Wall seconds on a busy machine say little, so processor seconds stand beside them.
`python -m bench.learned_scale` writes results/learned_scale.json.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tacita.problem.graph import Graph, from_vectors

OUT = Path(__file__).parent / "results" / "learned_scale.json"


def timed(work: Callable[[], Graph]) -> dict[str, float]:
    """Seconds of the wall and of the processors, and the peak of memory so far."""
    wall, processors = time.perf_counter(), time.process_time()
    made = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "nodes": made.n_nodes,
        "edges": made.n_edges,
        "seconds": round(time.perf_counter() - wall, 2),
        "processor_seconds": round(time.process_time() - processors, 2),
        "peak_gigabytes": round(peak, 2),
    }


def main() -> None:
    """Measure, print, write."""
    rng = np.random.default_rng(0)
    many, few = rng.normal(size=(100_000, 20)), rng.normal(size=(400, 20))
    told: dict[str, object] = {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
    for name, work in (
        ("regular (160), 400 nodes", lambda: from_vectors(few, "regular", k=6)),
        ("log-degree, 400 nodes", lambda: from_vectors(few, "log_degree", k=6)),
        ("nearest, 100 000 nodes", lambda: from_vectors(many, "nearest", k=10)),
    ):
        told[name] = timed(work)
        print(name, told[name], flush=True)
    OUT.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Steering by mixing: how tight its bound is, and how much noise it saves.

    python -m bench.mixing

Writes the tables of docs/proof-steering.md to bench/results/mixing.md.
"""

from __future__ import annotations

import numpy as np

import tacita
from bench.truth import RESULTS
from tacita.privacy.letters.mixing import mixing_matrix, steps_that_count
from tacita.problem.graph import Graph, ring
from tests.privacy.test_privacy_mixing import exact_steps, star

#: Factors of steps, from and to, and by how much noise differs between nodes.
KINDS = {
    "e = 0.9, equal noise": (0.9, 0.9, 1.0),
    "e = 1, equal noise": (1.0, 1.0, 1.0),
    "e from 0.8 to 1, noise up to 4 times": (0.8, 1.0, 4.0),
    "e = 1, noise up to 4 times": (1.0, 1.0, 4.0),
    "e from 1 to 1.1, noise up to 4 times": (1.0, 1.1, 4.0),
}
#: Rounds, and local steps in each.
LENGTHS = ((10, 1), (50, 1), (10, 3))
#: Nodes, rounds and local steps of plans for a budget.
PLANS = ((3, 31, 1), (20, 50, 1), (50, 200, 1), (100, 1000, 3))
DRAWS = 5


def graphs() -> list[Graph]:
    """A ring, a path, a star and a complete graph."""
    path = [(i, i + 1) for i in range(7)]
    pairs = [(i, k) for k in range(8) for i in range(k)]
    return [
        ring(12),
        star(8),
        *(Graph.from_edges(8, np.array(e)) for e in (path, pairs)),
    ]


def tightness(
    rng: np.random.Generator, low: float, high: float, apart: float
) -> tuple[np.ndarray, np.ndarray]:
    """By mixing, and by composition: mu over that of linear steps like these."""
    found, composed = [], []
    for graph in graphs():
        mixed, n = mixing_matrix(graph), graph.n_nodes
        for rounds, steps in LENGTHS * DRAWS:
            factors, spread = rng.uniform(low, high, n), apart ** rng.uniform(0, 1, n)
            own = np.diag(factors)
            moves = ([own @ mixed] + [own] * (steps - 1)) * rounds
            exact = exact_steps(moves, spread)
            bound = steps_that_count(mixed, factors, spread, steps=steps, rounds=rounds)
            found.append(np.sqrt(bound / exact))
            composed.append(np.sqrt(steps * rounds / exact))
    return np.concatenate(found), np.concatenate(composed)


def noise(nodes: int, rounds: int, steps: int, in_step: bool) -> float:
    """In a gradient, for epsilon 2 at delta 1e-5 against who sees the last models."""
    problem = tacita.from_arrays(
        np.ones((4 * nodes, 2)),
        np.tile([0, 1], 2 * nodes),
        np.repeat(np.arange(nodes), 4),
        model="logistic",
        bound=1.0,
        l2=0.0,
        graph=ring(nodes),
    )
    safe = tacita.private(
        problem,
        tacita.GossipSGD(step_size=0.5, local_steps=steps),
        epsilon=2.0,
        delta=1e-5,
        observer="final_model",
        rounds=rounds,
        in_step=in_step,
    )
    return float(np.max(safe.oracle.std))  # pyright: ignore[reportAttributeAccessIssue]


def main() -> None:
    """Compare, print, write."""
    rng = np.random.default_rng(0)
    lines = ["# Steering by mixing", ""]
    lines.append("| steps | smallest | median | nine of ten | largest | composition |")
    lines.append("|" + " --- |" * 6)
    for name, kind in KINDS.items():
        found, composed = tightness(rng, *kind)
        ends = found.min(), np.median(found), np.quantile(found, 0.9), found.max()
        told = [
            f"{ends[0]:.6f}",
            *(f"{x:.3f}" for x in (*ends[1:], np.median(composed))),
        ]
        lines.append(f"| {name} | {' | '.join(told)} |")
    lines += ["", "| plan | noise by composition | by mixing |", "| --- | --- | --- |"]
    for plan in PLANS:
        both = (noise(*plan, in_step=known) for known in (False, True))
        words = "ring of {}, {} rounds, {} local steps".format(*plan)
        lines.append(f"| {words} | {' | '.join(f'{x:.3g}' for x in both)} |")
    print("\n".join(lines))
    (RESULTS / "mixing.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

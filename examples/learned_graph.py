"""A graph learnt from rows, in the open and from private letters.

python examples/learned_graph.py [PICTURE]

Thirty nodes of three kinds, whose map says nothing about their kinds. Learnt graphs
find them; letters with noise find them as far as their budget goes.
"""

import sys
from pathlib import Path

import numpy as np

import tacita
from tacita.problem import graph
from tacita.trees import replace
from tacita.variants import private_graph

picture = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/learned-graph.png")
rng = np.random.default_rng(0)
nodes, rows = 30, 40
truths = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
kind = np.arange(nodes) % 3
x = rng.normal(size=(nodes, rows, 3))
y = np.einsum("nmd,nd->nm", x, truths[kind]) + rng.normal(size=(nodes, rows))
problem = tacita.from_arrays(
    x.reshape(-1, 3), y.ravel(), np.repeat(np.arange(nodes), rows), model="linear"
)
places = np.stack([60 + 5 * rng.random(nodes), 20 + 8 * rng.random(nodes)], axis=1)


def tell(name: str, made: graph.Graph) -> None:
    """How many edges join one kind, and what training on it gives."""
    i, j, _ = made.pairs()
    inside = np.mean(kind[i] == kind[j])
    models = tacita.GTVMin(replace(problem, graph=made), alpha=1.0).solve()
    error = np.mean(np.sum((models - truths[kind]) ** 2, axis=1))
    print(f"{name:28}{made.n_edges:>6} edges {inside:8.0%} inside {error:8.3f} error")


near = graph.nearest_neighbours(graph.kilometres(places), k=4)
tell("nearest on the map", near)
for discrepancy in ("moments", "gradient", "parameters", "wald"):
    tell(discrepancy, graph.learned(problem, discrepancy, k=4))
tell("wald, regular", graph.learned(problem, "wald", "regular", k=4))
for epsilon in (1.0, 4.0, 16.0):
    found = private_graph(problem, k=4, epsilon=epsilon, delta=1e-5, norm=3.0, seed=0)
    row = found.privacy
    tell(f"letters, epsilon {row.epsilon:g} a {row.unit}", found.graph)
    told = f"delta {row.delta:g}, {row.relation}, against the {row.observer} and"
    print(f"  ({told} whoever sees the graph: {row.theorem})")

tuned = tacita.tune(problem, discrepancy="wald")
print(tuned)
print(graph.resilience(tuned.graph))
print("picture:", tacita.report.draw_graph(tuned.graph, picture, places))

"""Clustered learning: three ways to find which nodes are alike.

python examples/variant_clustered.py [PICTURE]

Thirty nodes of three kinds with few rows each. k-means and a Gaussian mixture group the
nodes' own estimates; the network lasso finds the groups while it trains.
"""

import sys
from pathlib import Path

import numpy as np

import tacita
from tacita.problem import cluster_nodes, graph, representations, solve_clusters
from tacita.problem.gtv.clusters import in_order
from tacita.theme import LIGHT, dress, new_figure, png

picture = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/clustered.png")
rng = np.random.default_rng(0)
nodes, features, rows = 30, 3, 6
truths = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 1.0], [0.0, 0.0, -2.0]])
kind = in_order(rng.permutation(np.arange(nodes) % 3))
x = rng.normal(size=(nodes, rows, features))
y = np.einsum("nmd,nd->nm", x, truths[kind]) + 0.5 * rng.normal(size=(nodes, rows))
same = kind[:, None] == kind[None]
drawn = rng.random((nodes, nodes)) < np.where(same, 0.6, 0.05)
network = graph.Graph.from_edges(nodes, np.argwhere(np.triu(drawn, 1)))
problem = tacita.from_arrays(
    x.reshape(-1, features),
    y.ravel(),
    np.repeat(np.arange(nodes), rows),
    model="linear",
    graph=network,
)


def error(models):
    """Root mean squared distance from the true models."""
    return np.sqrt(np.mean(np.sum((models - truths[kind]) ** 2, axis=1)))


own = representations(problem)
lasso = tacita.GTVMin(problem, alpha=0.5, penalty="l2")
by_lasso = lasso.solve()
found = {
    "k-means": cluster_nodes(own, 3),
    "Gaussian mixture": cluster_nodes(own, 3, "gaussian mixture"),
    "network lasso": in_order(lasso.clusters(by_lasso)),
}
print(f"{'':18}{'nodes placed right':>20}{'error':>9}")
print(f"{'every node alone':18}{'':>20}{error(own):9.3f}")
for name, labels in found.items():
    right = int(np.sum(labels == kind))
    trained = error(solve_clusters(problem, labels))
    print(f"{name:18}{right:>14} of {nodes}{trained:9.3f}")
pooled = solve_clusters(problem, kind)
print(f"{'kinds known':18}{'':>20}{error(pooled):9.3f}")

figure = new_figure(LIGHT, 8.4, 3.6)
panels = zip(
    figure.subplots(1, 3, sharex=True, sharey=True),
    (("every node alone", own), ("network lasso", by_lasso), ("kinds known", pooled)),
    strict=True,
)
for axes, (title, models) in panels:
    dress(axes, LIGHT)
    axes.scatter(*truths[:, :2].T, marker="+", s=160, color=LIGHT.soft, label="truth")
    colours = [LIGHT.series[k] for k in kind]
    axes.scatter(models[:, 0], models[:, 1], s=22, color=colours, lw=0, alpha=0.8)
    axes.set_title(title, fontsize=10, color=LIGHT.ink)
    axes.set_xlabel("first coefficient")
picture.parent.mkdir(parents=True, exist_ok=True)
picture.write_bytes(png(figure))
print("picture:", picture)

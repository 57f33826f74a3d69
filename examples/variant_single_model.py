"""One model for all, without a server: GTVMin with a growing alpha.

python examples/variant_single_model.py [PICTURE]

Ten agents on a ring hold unequal parts of one table. As alpha grows, everybody's model
becomes the one that pooled rows give; the picture shows how fast, for two graphs.
"""

import sys
from pathlib import Path

import numpy as np

import tacita
from tacita import data
from tacita.problem import graph
from tacita.theme import LIGHT, dress, new_figure, png

picture = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/single-model.png")
table = data.load("diabetes", scale="standard")
agent = data.split_iid(len(table), 10, seed=0)
alphas = np.logspace(-2, 5, 15)

figure = new_figure(LIGHT, 6.2, 3.7)
axes = figure.subplots()
dress(axes, LIGHT)
for colour, name, network in (
    (LIGHT.series[0], "ring", graph.ring(10)),
    (LIGHT.series[1], "star", graph.star(10)),
):
    problem = tacita.from_arrays(
        table.x, table.y, agent, model="ridge", l2=0.1, intercept=True, graph=network
    )
    pooled = problem.solve()  # centralised: all agents' losses, one w
    gaps = [
        np.abs(tacita.GTVMin(problem, alpha).solve() - pooled).max() for alpha in alphas
    ]
    axes.loglog(alphas, gaps, "o-", ms=4, color=colour, label=name)
    print(
        f"{name}: largest difference from the pooled model at alpha 1e5 {gaps[-1]:.1e}"
    )
axes.set_xlabel("alpha")
axes.set_ylabel("largest difference from the pooled model")
axes.legend(frameon=False, labelcolor=LIGHT.ink)
picture.parent.mkdir(parents=True, exist_ok=True)
picture.write_bytes(png(figure))
print("picture:", picture)

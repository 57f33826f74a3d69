"""Nodes without labels: they take their model from their neighbours.

python examples/variant_semi_supervised.py [PICTURE]

A 6 x 10 grid of nodes whose true model changes slowly over the grid; only every third
node has labelled rows. GTVMin gives all of them a model.
"""

import sys
from pathlib import Path

import numpy as np

import tacita
from tacita.problem import graph
from tacita.theme import LIGHT, dress, new_figure, png

picture = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/semi-supervised.png")
rng = np.random.default_rng(1)
high, wide, rows = 6, 10, 4
nodes = high * wide
place = np.stack(np.divmod(np.arange(nodes), wide), axis=1)
truth = np.stack([np.sin(place[:, 1] / 3), np.cos(place[:, 0] / 3)], axis=1)
labelled = np.flatnonzero(rng.random(nodes) < 1 / 3)
unlabelled = np.setdiff1d(np.arange(nodes), labelled)
owner = np.repeat(labelled, rows)
x = rng.normal(size=(len(owner), 2))
y = np.sum(x * truth[owner], axis=1) + 0.8 * rng.normal(size=len(owner))
problem = tacita.from_arrays(
    x,
    y,
    owner,
    model="linear",
    graph=graph.grid(high, wide),
    unlabelled=unlabelled.tolist(),
)

alphas = np.logspace(-3, 3, 13)
models = [tacita.GTVMin(problem, alpha).solve() for alpha in alphas]
errors = np.array([np.linalg.norm(m - truth, axis=1) for m in models])
pooled = np.linalg.norm(np.linalg.lstsq(x, y, rcond=None)[0] - truth, axis=1)
best = int(np.argmin(errors[:, unlabelled].mean(axis=1)))
print(f"{len(labelled)} of {nodes} nodes have labels; best alpha {alphas[best]:.2g}")
print(f"error of unlabelled nodes: {errors[best, unlabelled].mean():.3f}")
print(f"error of one model for all: {pooled.mean():.3f}")

figure = new_figure(LIGHT, 8.6, 3.4)
left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1, 1.25]})
dress(left, LIGHT)
for part, name, colour in (
    (labelled, "labelled nodes", LIGHT.series[0]),
    (unlabelled, "unlabelled nodes", LIGHT.series[1]),
):
    left.plot(
        alphas, errors[:, part].mean(axis=1), "o-", ms=4, color=colour, label=name
    )
left.axhline(pooled.mean(), ls="--", color=LIGHT.soft, lw=1, label="one model for all")
left.set_xscale("log")
left.set_xlabel("alpha")
left.set_ylabel("mean distance from the true model")
left.legend(frameon=False, fontsize=8, labelcolor=LIGHT.ink)
shades = right.imshow(
    models[best][:, 0].reshape(high, wide), cmap="RdBu", vmin=-1.2, vmax=1.2
)
right.scatter(labelled % wide, labelled // wide, s=26, color=LIGHT.ink, lw=0)
right.set_title("first coefficient; dots have labels", fontsize=9.5, color=LIGHT.ink)
right.set_xticks([])
right.set_yticks([])
figure.colorbar(shades, ax=right, shrink=0.7)
picture.parent.mkdir(parents=True, exist_ok=True)
picture.write_bytes(png(figure))
print("picture:", picture)

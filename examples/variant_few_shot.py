"""Few-shot learning: a node per category, related categories coupled.

python examples/variant_few_shot.py [PICTURE]

Detectors of ten articles of clothing. Three of them have seen three examples only;
edges between related articles (what everybody knows of clothes) let them borrow.
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

import tacita
from tacita import data
from tacita.problem.graph import Graph
from tacita.theme import LIGHT, dress, new_figure, png

if not os.environ.get("TACITA_DATA"):
    print("skipped: TACITA_DATA names no folder with the data sets")
    sys.exit()
picture = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/few-shot.png")
fashion = data.load("fashion-mnist")
names = fashion.classes
many, few = 60, 3
rare = {2: "pullover", 6: "shirt", 7: "sneaker"}
families = ([0, 2, 3, 4, 6], [5, 7, 9], [1], [8])  # tops, shoes, trousers, bags


def small(x):
    """Seven by seven means of the 28 x 28 pixels, and a one."""
    blocks = x.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(len(x), 49)
    return np.c_[blocks, np.ones(len(x))].astype(float)


def examples(rng):
    """Rows of every category: its own, and as many of all the others."""
    rows, labels, owner = [], [], []
    for category in range(10):
        n = few if category in rare else many
        own = rng.choice(np.flatnonzero(fashion.y == category), n, replace=False)
        rest = rng.choice(np.flatnonzero(fashion.y != category), n, replace=False)
        rows += [own, rest]
        labels += [1.0] * n + [-1.0] * n
        owner += [category] * (2 * n)
    return small(fashion.x[np.concatenate(rows)]), np.array(labels), np.array(owner)


pairs = [(i, j) for f in families for i in f for j in f if i < j]
# A weak edge holds what has no relatives in the network too.
pairs, weights = pairs + [(1, 0), (8, 0), (5, 0)], [1.0] * len(pairs) + [0.01] * 3
relatives = Graph.from_edges(10, pairs, weights)
alphas = np.array([0.0, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 10.0])
some = slice(0, 3000)
test_x, test_y = small(fashion.test_x[some]), fashion.test_y[some]
areas = np.zeros((8, len(alphas), 10))
for draw in range(len(areas)):
    x, y, owner = examples(np.random.default_rng(draw))
    problem = tacita.from_arrays(x, y, owner, model="ridge", l2=0.01, graph=relatives)
    for a, alpha in enumerate(alphas):
        scores = test_x @ tacita.GTVMin(problem, alpha).solve().T
        areas[draw, a] = [roc_auc_score(test_y == c, scores[:, c]) for c in range(10)]
mean = areas.mean(axis=0)
best = int(np.argmax(mean[:, list(rare)].mean(axis=1)))
print(f"area under the ROC curve, mean of {len(areas)} draws")
print(f"best of these alphas on the test rows: {alphas[best]:g}")
print(f"{'':14}{'alone':>8}{'coupled':>9}")
for c in range(10):
    told = f"  ({few} examples)" if c in rare else ""
    print(f"{names[c]:14}{mean[0, c]:8.3f}{mean[best, c]:9.3f}{told}")

figure = new_figure(LIGHT, 6.2, 3.8)
axes = figure.subplots()
dress(axes, LIGHT)
places = np.arange(len(alphas))
for colour, c in zip(LIGHT.series, rare, strict=False):
    axes.plot(places, mean[:, c], "o-", ms=4, color=colour, label=names[c])
others = [c for c in range(10) if c not in rare]
axes.plot(
    places, mean[:, others].mean(axis=1), "--", color=LIGHT.soft, label="the others"
)
axes.set_xticks(places, [f"{a:g}" for a in alphas])
axes.set_xlabel("alpha")
axes.set_ylabel("area under the ROC curve")
axes.legend(frameon=False, labelcolor=LIGHT.ink, fontsize=9)
picture.parent.mkdir(parents=True, exist_ok=True)
picture.write_bytes(png(figure))
print("picture:", picture)

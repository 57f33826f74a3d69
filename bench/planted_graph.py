"""Graphs learnt among nodes of three kinds: who is joined, and what training gains.

Three kinds of ten nodes, linear models in four features, label noise 1, 20 seeds, k = 4
neighbours or 60 edges. Own models are fitted with l2 (Wald and Chow without). Each
graph is judged by the share of its edge weight inside kinds, and by the squared
distance of GTVMin's models from the true ones at the best of seven strengths: chosen by
the truth, so this is what a graph can give, not what a user gets. "Shift": each feature
of each node is scaled by exp(0.7 N(0, 1)).

`python -m bench.planted_graph` writes results/planted_graph.csv and .md; beside its own
means stand those of an earlier, independent study of the same set-up in NumPy. That
study leaves three things open, which were settled here by looking at its figures: see
`OPEN`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import tacita
from tacita.problem.graph import Graph, complete, learned
from tacita.trees import replace

RESULTS = Path(__file__).parent / "results"
KINDS, EACH, FEATURES, SEEDS = 3, 10, 4, 20
ALPHAS = np.geomspace(1e-3, 10, 7)
OWN_L2 = 0.2
TRUTHS = np.array([[0.0, 0, 0, 0], [2, 0, 0, 0], [0, 2, 0, 0]])
SETTINGS = {"8 rows": (8, 0.0), "20 rows": (20, 0.0), "20 rows, shift": (20, 0.7)}
#: Share inside kinds and error, in each setting, of the earlier study.
EARLIER = {
    "parameters, nearest": ((0.920, 0.226), (0.999, 0.026), (0.927, 0.174)),
    "gradient at 0, nearest": ((0.749, 0.424), (0.929, 0.124), (0.655, 0.331)),
    "gradient at the mean": ((0.834, 0.337), (0.967, 0.079), (0.680, 0.299)),
    "moments, nearest": ((0.548, 0.570), (0.637, 0.229), (0.442, 0.359)),
    "cross loss, nearest": ((0.928, 0.219), (0.998, 0.029), (0.888, 0.217)),
    "Wald, nearest": ((0.928, 0.209), (1.00, 0.025), (0.949, 0.101)),
    "Chow test, 5 %": ((0.398, 0.568), (0.986, 0.041), (0.758, 0.232)),
    "regular (160)": ((0.921, 0.235), (0.997, 0.031), (0.922, 0.170)),
    "budget (161)": ((0.938, 0.584), (1.00, 0.068), (0.953, 0.227)),
    "budget, tree first": ((0.927, 0.284), (0.967, 0.112), (0.932, 0.202)),
    "log-degree": ((0.948, 0.262), (1.00, 0.042), (0.955, 0.164)),
    "Wald, regular": ((0.927, 0.214), (0.999, 0.028), (0.959, 0.087)),
    "Wald, log-degree": ((0.954, 0.244), (1.00, 0.042), (0.967, 0.099)),
    "alone": ((np.nan, 1.32), (np.nan, 0.267), (np.nan, 0.578)),
    "complete graph": ((np.nan, 0.566), (np.nan, 0.227), (np.nan, 0.328)),
    "planted graph": ((1.0, 0.056), (1.0, 0.022), (1.0, 0.013)),
}

#: What makes the agreement weaker evidence than it looks.
OPEN = (
    "The earlier study does not say which seven strengths it tried, whether a shift "
    "scales a node or each of its features, nor which convention its l2 follows. "
    "These were chosen here after comparing with its figures: four grids of strengths "
    "(1e-3 to 1e3, 3e-3 to 30, 3e-3 to 3, 1e-3 to 10: the last is used), shift by node "
    "and by feature (the latter), l2 = 0.4 and 0.2 (the latter). The grid moves errors "
    "only (log-degree at 20 rows: 0.027 with strengths up to 30, 0.075 up to 3), the "
    "shift shares too (gradient at the mean: 0.83 by node, 0.70 by feature)."
)

Problem = tacita.Problem
Learner = Callable[[Problem, Problem], Graph]
#: Every graph from the problem with l2 and from that without.
METHODS: dict[str, Learner] = {
    "parameters, nearest": lambda own, bare: learned(own, "parameters", k=4),
    "gradient at 0, nearest": lambda own, bare: learned(
        bare, "gradient", k=4, at=np.zeros(FEATURES)
    ),
    "gradient at the mean": lambda own, bare: learned(
        bare, "gradient", k=4, at=tacita.problem.representations(own).mean(axis=0)
    ),
    "moments, nearest": lambda own, bare: learned(bare, "moments", k=4),
    "cross loss, nearest": lambda own, bare: learned(own, "cross_loss", k=4),
    "Wald, nearest": lambda own, bare: learned(bare, "wald", k=4),
    "Chow test, 5 %": lambda own, bare: learned(bare, "chow", "test"),
    "regular (160)": lambda own, bare: learned(own, "parameters", "regular", k=4),
    "budget (161)": lambda own, bare: learned(own, "parameters", "budget", edges=60),
    "budget, tree first": lambda own, bare: learned(
        own, "parameters", "budget", edges=60, connected=True
    ),
    "log-degree": lambda own, bare: learned(own, "parameters", "log_degree", k=4),
    "Wald, regular": lambda own, bare: learned(bare, "wald", "regular", k=4),
    "Wald, log-degree": lambda own, bare: learned(bare, "wald", "log_degree", k=4),
    "alone": lambda own, bare: Graph.from_edges(bare.n_agents, np.zeros((0, 2), int)),
    "complete graph": lambda own, bare: complete(bare.n_agents),
    "planted graph": lambda own, bare: planted(),
}


def planted() -> Graph:
    """All pairs of one kind."""
    i, j = np.triu_indices(KINDS * EACH, 1)
    same = i // EACH == j // EACH
    return Graph.from_edges(KINDS * EACH, np.stack([i[same], j[same]], axis=1))


def nodes(rows: int, shift: float, seed: int) -> tuple[Problem, Problem]:
    """The same rows with l2, for own models, and without."""
    rng = np.random.default_rng(seed)
    n = KINDS * EACH
    kind = np.repeat(np.arange(KINDS), EACH)
    scale = np.exp(shift * rng.normal(size=(n, 1, FEATURES)))
    x = scale * rng.normal(size=(n, rows, FEATURES))
    y = np.einsum("nmd,nd->nm", x, TRUTHS[kind]) + rng.normal(size=(n, rows))
    parts = x.reshape(-1, FEATURES), y.ravel(), np.repeat(np.arange(n), rows)
    own = tacita.from_arrays(*parts, model="ridge", l2=OWN_L2)
    return own, tacita.from_arrays(*parts, model="linear")


def inside(made: Graph) -> float:
    """The share of edge weight between nodes of one kind."""
    i, j, weights = made.pairs()
    if not len(i):
        return np.nan
    return float(weights[i // EACH == j // EACH].sum() / weights.sum())


def error(problem: Problem, made: Graph) -> float:
    """Mean squared distance from the true models at the best strength."""
    truth = np.repeat(TRUTHS, EACH, axis=0)
    on_graph = replace(problem, graph=made)
    found = [tacita.GTVMin(on_graph, float(alpha)).solve() for alpha in ALPHAS]
    return min(float(np.mean(np.sum((w - truth) ** 2, axis=1))) for w in found)


def measure(seeds: int = SEEDS) -> pd.DataFrame:
    """Every method in every setting: means over seeds, and their standard errors."""
    rows = []
    for place, (setting, (count, shift)) in enumerate(SETTINGS.items()):
        drawn = [nodes(count, shift, seed) for seed in range(seeds)]
        for name, learner in METHODS.items():
            graphs = [learner(*pair) for pair in drawn]
            shares = [inside(one) for one in graphs]
            pairs = zip(drawn, graphs, strict=True)
            errors = [error(bare, one) for (_, bare), one in pairs]
            rows.append(
                {
                    "setting": setting,
                    "method": name,
                    "inside": np.mean(shares),
                    "inside_se": np.std(shares) / np.sqrt(seeds - 1),
                    "error": np.mean(errors),
                    "error_se": np.std(errors) / np.sqrt(seeds - 1),
                    "earlier_inside": EARLIER[name][place][0],
                    "earlier_error": EARLIER[name][place][1],
                }
            )
    return pd.DataFrame(rows)


def page(table: pd.DataFrame) -> str:
    """The table in words."""
    lines = [
        "# Planted graph: share of edge weight inside kinds, and error of GTVMin",
        "",
        f"{SEEDS} seeds; standard errors of the mean behind +-; in brackets an earlier,"
        " independent study of the same set-up. Written by"
        " `python -m bench.planted_graph`; the set-up stands there.",
    ]
    for setting in SETTINGS:
        lines += ["", f"## {setting}", "", "| method | inside kinds | error |"]
        lines += ["| --- | --- | --- |"]
        for row in table[table.setting == setting].to_dict("records"):
            share = _cell(row, "inside") if row["inside"] >= 0 else ""
            lines.append(f"| {row['method']} | {share} | {_cell(row, 'error')} |")
    far = table[[_far(row) for row in table.to_dict("records")]]
    told = "none" if far.empty else "; ".join(far.setting + ": " + far.method)
    lines += ["", f"Further than 3 standard errors of a difference apart: {told}."]
    lines += ["", OPEN]
    return "\n".join(lines) + "\n"


def _cell(row: dict, what: str) -> str:
    told = f"{row[what]:.3f} +- {row[f'{what}_se']:.3f}"
    earlier = row[f"earlier_{what}"]
    return told if np.isnan(earlier) else f"{told} ({earlier:.3f})"


def _far(row: dict) -> bool:
    """Both studies have 20 seeds, and a mean cannot be surer than one edge in all."""
    return any(
        abs(row[what] - row[f"earlier_{what}"])
        > 3 * np.sqrt(2) * max(row[f"{what}_se"], 0.001)
        for what in ("inside", "error")
    )


if __name__ == "__main__":
    found = measure()
    found.to_csv(RESULTS / "planted_graph.csv", index=False, float_format="%.6g")
    (RESULTS / "planted_graph.md").write_text(page(found))
    print(page(found))

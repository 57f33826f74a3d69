"""Figure 4: norms of primal and dual variables over the rounds, convex."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from papers.dp_norm.common import convex
from papers.dp_norm.common.pages import RESULTS, draw, grid, script, write_page
from papers.dp_norm.figure_2 import METHODS, curves_of

COLUMNS = ("norm of w", "norm of dual")
AT = (50, 500, 2000)


def main(out: Path = RESULTS) -> Path:
    """From the runs of Figure 2, split 0, the noise of the paper."""
    lines = [line for line in curves_of(0, out) if line["noise"] == "paper"]
    panels: dict[str, dict[str, tuple[Any, Any]]] = {}
    rows = []
    for column in COLUMNS:
        panel = panels.setdefault(column, {})
        for method in METHODS[1:]:
            for epsilon in ("inf", "1", "0.5"):
                mine = [
                    line
                    for line in lines
                    if (line["method"], line["epsilon"]) == (method, epsilon)
                ]
                if not mine or (column, method) == ("norm of dual", "DP-SGD gossip"):
                    continue
                x = [int(line["round"]) for line in mine]
                y = [float(line[column]) for line in mine]
                panel[f"{method}, epsilon {epsilon}"] = (x, y)
                shown = [y[x.index(r)] for r in AT if r in x]
                rows.append([column, method, epsilon, *shown])
    draw(out / "figure_4.png", panels, "round", "mean over nodes")
    kept = [{k: line[k] for k in convex.FIELDS} for line in lines]
    convex.write(out / "figure_4.csv", kept)
    heads = ["norm", "method", "epsilon", *(f"round {r}" for r in AT)]
    return write_page(
        out,
        "figure_4",
        [
            "# Figure 4: norms of primal and dual variables",
            "The runs of [figure_2.md](figure_2.md), split 0, noise of the paper, "
            "synchronous rounds. For DP-ADMM the dual is the sum over a node's edges.",
            grid(heads, rows),
            "**The paper's reading.** Primal and dual norms explode with noise, except "
            "for DP-Norm with alpha > 0. **Ours.** ||w|| grows in every noisy run, "
            "alpha or not, for alpha does not damp the network's mean. The dual norm "
            "of synchronous DP-Norm stays bounded with alpha = 0 too, at about twice "
            "the level.",
        ],
    )


if __name__ == "__main__":
    script(main)

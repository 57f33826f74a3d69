"""Figure 4: norms of primal and dual variables over the rounds, convex."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from papers.dp_norm.common import convex
from papers.dp_norm.common.pages import RESULTS, draw, grid, script, write_page
from papers.dp_norm.figure_2 import METHODS, curves_of

PRIMAL, DUAL, NORMALISED = "norm of w", "norm of dual", "normalised dual"
AT, EPSILONS, SPLITS = (50, 500, 2000), ("inf", "1", "0.5"), (0, 1)

#: Rounds and values by norm, method and epsilon.
Curves = dict[tuple[str, str, str], tuple[list[int], list[float]]]


def curves(lines: Sequence[dict[str, Any]]) -> Curves:
    """All norms of one split; the lower row of the figure is the dual, normalised.

    By what the dual of the same method has after the last round without noise.
    """
    found: Curves = {}
    for column in (PRIMAL, DUAL):
        for method in METHODS[1:]:
            if (column, method) == (DUAL, "DP-SGD gossip"):
                continue
            for epsilon in EPSILONS:
                key = (method, "paper", epsilon)
                mine = [
                    line
                    for line in lines
                    if (line["method"], line["noise"], line["epsilon"]) == key
                ]
                if mine:
                    x = [int(line["round"]) for line in mine]
                    y = [float(line[column]) for line in mine]
                    found[column, method, epsilon] = (x, y)
    for (column, method, epsilon), (x, y) in list(found.items()):
        plain = found.get((DUAL, method, "inf"))
        if column == DUAL and plain is not None:
            share = plain[1][-1]
            found[NORMALISED, method, epsilon] = (x, [v / share for v in y])
    return found


def main(out: Path = RESULTS) -> Path:
    """From the runs of Figure 2, the noise of the paper."""
    found = {split: curves(curves_of(split, out)) for split in SPLITS}
    panels: dict[str, dict[str, tuple[Any, Any]]] = {}
    rows, kept = [], []
    for (column, method, epsilon), (x, y) in found[0].items():
        panel = panels.setdefault(column, {})
        panel[f"{method}, epsilon {epsilon}"] = (x, y)
        other = found[1].get((column, method, epsilon))
        shown = [y[x.index(r)] for r in AT if r in x]
        end = other[1][-1] if other else float("nan")
        rows.append([column, method, epsilon, *shown, end])
    for split, of_split in found.items():
        for (column, method, epsilon), (x, y) in of_split.items():
            told = {"split": split, "norm": column, "method": method}
            told["epsilon"] = epsilon
            kept += [
                told | {"round": r, "value": f"{v:.6g}"}
                for r, v in zip(x, y, strict=True)
            ]
    draw(out / "figure_4.png", panels, "round", "mean over nodes")
    fields = ("split", "norm", "method", "epsilon", "round", "value")
    convex.write(out / "figure_4.csv", kept, fields)
    heads = ["norm", "method", "epsilon", *(f"round {r}" for r in AT)]
    heads.append(f"round {AT[-1]}, split 1")
    ends = {key: y[-1] for key, (_, y) in found[0].items()}
    return write_page(
        out,
        "figure_4",
        [
            "# Figure 4: norms of primal and dual variables",
            "The runs of [figure_2.md](figure_2.md), split 0 and, after the last "
            "round, split 1; noise of the paper, synchronous rounds, one seed. For "
            "DP-ADMM the dual is the sum over a node's edges. *Normalised*: by the "
            "dual norm of the same method after the last round without noise, as the "
            "lower row of the figure has it.",
            grid(heads, rows),
            READING.format(
                damped=_worst(ends, "DP-Norm alpha=0.2"),
                plain=_worst(ends, "DP-Norm alpha=0"),
                admm=_worst(ends, "DP-ADMM"),
            ),
        ],
    )


def _worst(ends: dict[tuple[str, str, str], float], method: str) -> str:
    return f"{ends[NORMALISED, method, '0.5']:,.0f}"


READING = (
    "**The paper's reading.** Primal and dual norms explode with noise, except for "
    "DP-Norm with alpha > 0, whose normalised dual is the smallest of all methods. "
    "**Ours.** ||w|| grows in every noisy run, alpha or not, for alpha does not damp "
    "the network's mean. The dual norm of synchronous DP-Norm stays bounded with alpha "
    "= 0 too, at about twice the level. Normalised, alpha = 0.2 has {damped} at "
    "epsilon 0.5, alpha = 0 has {plain}, and DP-ADMM {admm}, the smallest, though the "
    "only one that still grows. The duals that wander without bound are those of "
    "asynchronous letters: [asynchronous.md](asynchronous.md)."
)


if __name__ == "__main__":
    script(main)

"""Figures that vary a number: short runs, with noise set for their own length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from papers.dp_norm.common import convex
from papers.dp_norm.common.pages import draw, grid, write_page

#: Of the paper's 2,000. Noise is set for this many rounds, so epsilon is what it says.
ROUNDS = 100
SCALE = (
    f"{ROUNDS} rounds instead of 2,000, with noise set for {ROUNDS}: less noise, and "
    "less progress, than in the paper. Split 0, l2 = 1e-3, one seed. *paper*: noise of "
    "Table II, which for DP-SGD and DP-ADMM is no guarantee of the epsilon it names. "
    "*sound*: noise for that epsilon against a neighbour, one record, replace-one, "
    "delta = 1e-3, G = sqrt(2), by one accountant."
)


def at_the_end(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last record of every configuration."""
    final = max(int(line["round"]) for line in lines)
    return [line for line in lines if int(line["round"]) == final]


def sweep_page(
    out: Path,
    name: str,
    title: str,
    varied: str,
    lines: Sequence[dict[str, Any]],
    remarks: Sequence[str],
    columns: Sequence[str] = ("accuracy", "norm of dual"),
) -> Path:
    """A page, a CSV and a picture of what is reached over the varied number.

    `lines` are those of `convex.play` with one more field, `varied`.
    """
    last = at_the_end(lines)
    convex.write(out / f"{name}.csv", last, (varied, *convex.FIELDS))
    labels = list(dict.fromkeys(_label(line) for line in last))
    panels: dict[str, dict[str, tuple[Any, Any]]] = {}
    for column in columns:
        panels[column] = {}
        for label in labels:
            mine = [line for line in last if _label(line) == label]
            order = np.argsort([float(line[varied]) for line in mine])
            x = [float(mine[k][varied]) for k in order]
            y = [float(mine[k][column]) for k in order]
            panels[column][label] = (x, y)
    draw(out / f"{name}.png", panels, varied, "after the last round", log_x=True)
    heads = [varied, "method", "noise", "epsilon", "noise_std", *columns]
    rows = [
        [line[h] if h not in columns else float(line[h]) for h in heads]
        for line in last
    ]
    return write_page(out, name, [f"# {title}", SCALE, grid(heads, rows), *remarks])


def curve_page(
    out: Path,
    name: str,
    title: str,
    panels: dict[str, Sequence[dict[str, Any]]],
    remarks: Sequence[str],
    scale: str = SCALE,
) -> Path:
    """Learning curves side by side, and the accuracies they end with."""
    rows, drawn, kept = [], {}, []
    for panel, lines in panels.items():
        drawn[panel] = {}
        for label in dict.fromkeys(_curve(line) for line in lines):
            mine = [line for line in lines if _curve(line) == label]
            x = [int(line["round"]) for line in mine]
            y = [float(line["accuracy"]) for line in mine]
            drawn[panel][label] = (x, y)
            one = mine[-1]
            rows.append([panel, one["method"], one["noise"], one["epsilon"], y[-1]])
        kept += [{"panel": panel, **line} for line in lines]
    convex.write(out / f"{name}.csv", kept, ("panel", *convex.FIELDS))
    draw(out / f"{name}.png", drawn, "round", "test accuracy, mean over nodes")
    heads = ["panel", "method", "noise", "epsilon", "accuracy at the end"]
    parts = [f"# {title}", scale, grid(heads, rows), *remarks]
    return write_page(out, name, parts)


def _curve(line: dict[str, Any]) -> str:
    """What a curve is called; its panel, or its page, tells the epsilon."""
    method = line["method"]
    return method if method == "single node" else f"{method}, {line['noise']} noise"


def _label(line: dict[str, Any]) -> str:
    return f"{_curve(line)}, epsilon {line['epsilon']}"

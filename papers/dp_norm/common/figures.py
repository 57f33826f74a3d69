"""Figures that vary a number, or compare curves: drawn from the raw lines of parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex
from papers.dp_norm.common.pages import draw, grid, write_page
from papers.dp_norm.common.parts import Part, Scale, lines_of
from tacita import check

NOISES = (
    "*paper*: noise of Table II, which for DP-SGD and DP-ADMM is no guarantee of the "
    "epsilon it names. *sound*: noise for that epsilon against a neighbour, one "
    "record, replace-one, delta = 1e-3, G = sqrt(2), by one accountant."
)


def chosen(rounds: int, splits: int, seeds: int) -> Scale:
    """The scale that was asked for; there are as many splits as l2 weights."""
    if check.count(splits=splits) > len(b.L2):
        check.refuse(f"expected at most {len(b.L2)} splits, got splits={splits}")
    return Scale(rounds, tuple(b.L2)[:splits], seeds)


def played(
    parts: Sequence[Part], scale: Scale, out: Path, resume: bool
) -> list[dict[str, Any]]:
    """The lines of all parts, on all splits with all seeds."""
    copies = [copy for part in parts for copy in part.copies(scale)]
    return lines_of(copies, out / "raw", resume)


def means(
    lines: Sequence[dict[str, Any]], by: Sequence[str], columns: Sequence[str]
) -> list[dict[str, Any]]:
    """Lines that agree in `by` as one, with the means and the spread of columns."""
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault(tuple(line.get(key, "") for key in by), []).append(line)
    found = []
    for group in groups.values():
        one = dict(group[0])
        for column in columns:
            values = [float(line[column]) for line in group if line.get(column)]
            one[column] = float(np.mean(values)) if values else np.nan
            one[f"{column} spread"] = float(np.std(values)) if values else np.nan
        found.append(one)
    return found


_SAME = ("split", "method", "noise", "epsilon", "round")


def sweep_page(
    out: Path,
    name: str,
    title: str,
    varied: str,
    lines: Sequence[dict[str, Any]],
    scale: Scale,
    remarks: Sequence[str],
    columns: Sequence[str] = ("accuracy", "norm of dual"),
    about: str = "",
) -> Path:
    """A page, a CSV and a picture of what is reached over the varied number."""
    last = [line for line in lines if int(line["round"]) == scale.rounds]
    convex.write(out / f"{name}.csv", last, (varied, "split", "seed", *convex.FIELDS))
    shown = means(last, (varied, *_SAME), columns)
    panels: dict[str, dict[str, tuple[Any, ...]]] = {}
    for column in columns:
        panels[column] = {}
        for label in dict.fromkeys(_label(line, scale) for line in shown):
            mine = [line for line in shown if _label(line, scale) == label]
            order = np.argsort([float(line[varied]) for line in mine])
            x = [float(mine[k][varied]) for k in order]
            ordered = [mine[k] for k in order]
            panels[column][label] = (x, *_drawn(ordered, column, scale))
    draw(out / f"{name}.png", panels, varied, "after the last round", log_x=True)
    heads = [varied, *_where(scale), "method", "noise", "epsilon", "noise_std"]
    rows = [
        [*(line[h] for h in heads), *(_told(line, c, scale) for c in columns)]
        for line in shown
    ]
    table = grid([*heads, *columns], rows)
    about = about or f"{scale} {NOISES}"
    return write_page(out, name, [f"# {title}", about, table, *remarks])


def curve_page(
    out: Path,
    name: str,
    title: str,
    panels: Mapping[str, Sequence[dict[str, Any]]],
    scale: Scale,
    remarks: Sequence[str],
    about: str = "",
) -> Path:
    """Learning curves side by side, and the accuracies they end with."""
    rows, drawn, kept = [], {}, []
    for panel, lines in panels.items():
        shown = means(lines, _SAME, ("accuracy",))
        for split in scale.splits:
            here = [
                line for line in shown if str(line.get("split", split)) == f"{split}"
            ]
            title_of = panel if len(scale.splits) == 1 else f"{panel}, split {split}"
            drawn[title_of] = {}
            for label in dict.fromkeys(_curve(line) for line in here):
                mine = [line for line in here if _curve(line) == label]
                x = [int(line["round"]) for line in mine]
                drawn[title_of][label] = (x, *_drawn(mine, "accuracy", scale))
                one = mine[-1]
                told = [one["method"], one["noise"], one["epsilon"]]
                rows.append([title_of, *told, _told(one, "accuracy", scale)])
        kept += [{"panel": panel, **line} for line in lines]
    convex.write(out / f"{name}.csv", kept, ("panel", "split", "seed", *convex.FIELDS))
    draw(out / f"{name}.png", drawn, "round", "test accuracy, mean over nodes")
    heads = ["panel", "method", "noise", "epsilon", "accuracy at the end"]
    parts = [f"# {title}", about or f"{scale} {NOISES}", grid(heads, rows), *remarks]
    return write_page(out, name, parts)


def _where(scale: Scale) -> list[str]:
    return ["split"] if len(scale.splits) > 1 else []


def _drawn(
    lines: Sequence[dict[str, Any]], column: str, scale: Scale
) -> list[list[float]]:
    """What is drawn of a column: means, and their spread where there are seeds."""
    columns = (column, f"{column} spread")[: 1 if scale.seeds == 1 else 2]
    return [[line[one] for line in lines] for one in columns]


def _told(line: dict[str, Any], column: str, scale: Scale) -> Any:
    """A mean, with its spread over seeds where there are several."""
    if scale.seeds == 1:
        return line[column]
    return f"{line[column]:.3f} +- {line[f'{column} spread']:.3f}"


def _curve(line: dict[str, Any]) -> str:
    """What a curve is called; its panel, or its page, tells the epsilon."""
    method = line["method"]
    return method if method == "single node" else f"{method}, {line['noise']} noise"


def _label(line: dict[str, Any], scale: Scale) -> str:
    where = "".join(f", split {line[key]}" for key in _where(scale))
    return f"{_curve(line)}, epsilon {line['epsilon']}{where}"

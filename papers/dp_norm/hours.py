"""What the figures would take at the paper's scale, from measured seconds.

A convex figure is run in parts (`common/parts.py`); a part is the faster a curve the
more curves it has, for they share their batches. Curves that stand in `raw/`, or that a
figure above has, are not run again and not counted.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import jax
import jax.numpy as jnp

from papers.dp_norm import (
    convex_curves,
    figure_3,
    figure_5,
    figure_6,
    figure_7,
    figure_8,
    figure_9,
)
from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex, resnet
from papers.dp_norm.common.pages import RESULTS, grid, script, write_page
from papers.dp_norm.common.parts import Part, Scale, curves_in, kept
from tacita.problem import resnet10

CONVEX = (figure_3, figure_5, figure_6, figure_7, figure_8, figure_9)
NETWORKS = (
    *("figure_2_resnet", "figure_3_resnet", "figure_3_resnet_batches"),
    *("figure_7_resnet", "figure_8_resnet", "figure_9_resnet"),
)
NODES, PAPER = 6, resnet.SIZES["paper"]
#: Both splits and three seeds, as the figures are asked for.
WHOLE = Scale(b.ROUNDS, tuple(b.L2), 3)
#: Curves of a part for which seconds are measured.
WIDTHS = (1, 2, 4, 8, 16)
MEASURED_IMAGES = 8


def processor_seconds(run: Callable[[], object]) -> float:
    """Of the second call: the first one compiles."""
    run()
    began = time.process_time()
    run()
    return time.process_time() - began


def of_a_round(width: int, rounds: int = 8) -> float:
    """One curve of a part of so many, for a round on six nodes with B = 2,000."""
    problem, some = b.problem(), convex.dp_norm_entries(b.ROUNDS, (1.0, 0.5))
    entries = (some * width)[:width]

    def seconds(count: int) -> float:
        return processor_seconds(lambda: convex.play(problem, entries, count, count))

    # What a run takes once, measures at its end among it, is not the rounds'.
    return (seconds(2 * rounds) - seconds(rounds)) / (rounds * width)


def of_an_image() -> float:
    """The gradient of the paper's ResNet-10 at one image."""
    side = PAPER.side
    model = resnet10((side, side, 1), 10, width=PAPER.width, groups=PAPER.groups)
    w = jnp.asarray(model.initial(), jnp.float32)
    x = jax.random.normal(jax.random.key(1), (MEASURED_IMAGES, side * side))
    y = jnp.zeros(MEASURED_IMAGES, int)
    slope = jax.jit(jax.grad(lambda v: jnp.mean(model.losses(v, x, y))))
    return processor_seconds(lambda: slope(w).block_until_ready()) / MEASURED_IMAGES


def hours_of(part: Part, there: Collection[str], each: Mapping[int, float]) -> float:
    """Processor hours of what is not there of a part.

    >>> half = convex.dp_norm(0.2, 0.0)
    >>> one = convex.Entry("DP-Norm", "paper", None, half)
    >>> part = Part("one", (one,), 1800, {"nodes": 3})
    >>> hours_of(part, (), {1: 4.0}), hours_of(part, [part.curve(one)], {1: 4.0})
    (1.0, 0.0)
    """
    left = [entry for entry in part.entries if part.curve(entry) not in there]
    if not left:
        return 0.0
    width = max(w for w in each if w <= len(left))
    size = left[0].algorithm.oracle
    rows = getattr(size, "oracle", size).size / b.BATCH
    nodes = part.ring.get("nodes", NODES) / NODES
    return len(left) * each[width] * part.rounds * rows * nodes / 3600


def by_page(
    scale: Scale, there: Collection[str], each: Mapping[int, float]
) -> dict[str, float]:
    """Processor hours of every convex page, without what is there or on one above."""
    known, found = {*there}, {}
    for page, parts in pages().items():
        copies = [copy for part in parts for copy in part.copies(scale)]
        found[page] = 0.0
        for copy in copies:
            found[page] += hours_of(copy, known, each)
            known.update(map(copy.curve, copy.entries))
    return found


def pages() -> dict[str, list[Part]]:
    """All convex pages, with the paper's rounds."""
    return {
        page: parts
        for figure in CONVEX
        for page, parts in figure.parts(b.ROUNDS).items()
    }


def of_figure_2() -> set[str]:
    """Its curves, which were run first: split 0, one seed."""
    once = Scale(b.ROUNDS)
    copies = [copy for part in convex_curves.methods() for copy in part.copies(once)]
    return {copy.curve(entry) for copy in copies for entry in copy.entries}


def configurations(name: str, out: Path) -> int:
    """Curves of a figure's file; one that several panels show counts once."""
    with open(out / f"{name}.csv", newline="", encoding="utf-8") as file:
        lines = [{**line, "panel": ""} for line in csv.DictReader(file)]
    end = max(int(line["round"]) for line in lines)
    return len({tuple(line.values()) for line in lines if int(line["round"]) == end})


def measured_seconds(out: Path, resume: bool) -> tuple[dict[int, float], float]:
    """Of a round by the width of its part, and of an image; measured, or as kept."""

    def measured() -> list[dict[str, str]]:
        found = {f"width {width}": of_a_round(width) for width in WIDTHS}
        found["image"] = of_an_image()
        return [{"of": of, "seconds": f"{s:.3g}"} for of, s in found.items()]

    lines = kept("hours_seconds", out / "raw", resume, measured)
    found = {line["of"]: float(line["seconds"]) for line in lines}
    return {width: found[f"width {width}"] for width in WIDTHS}, found["image"]


def main(out: Path = RESULTS, resume: bool = False) -> Path:
    """Processor hours of every figure at the paper's scale, and what is left.

    To resume is to go by the seconds that were measured before.
    """
    each, image = measured_seconds(out, resume)
    once = by_page(Scale(b.ROUNDS), of_figure_2(), each)
    left = by_page(WHOLE, curves_in(RESULTS / "raw"), each)
    rows = [
        [
            page,
            sum(len(part.entries) for part in parts),
            b.ROUNDS,
            once[page],
            left[page],
        ]
        for page, parts in pages().items()
    ]
    network = image * PAPER.batch * b.STEPS * NODES * PAPER.rounds / 3600
    for name in NETWORKS:
        curves = configurations(name, RESULTS)
        rows.append([name, curves, PAPER.rounds, curves * network, curves * network])
    shown = [[*row[:3], *(f"{hours:.2g}" for hours in row[3:])] for row in rows]
    heads = ("figure", "curves", "rounds", "processor hours", "left")
    with open(out / "hours.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([heads, *shown])
    widths = ", ".join(
        f"{seconds:.3g} in a part of {width}" for width, seconds in each.items()
    )
    return write_page(
        out,
        "hours",
        [
            "# Hours that the paper's scale takes",
            "Measured: processor seconds for a round of one curve of the convex "
            f"benchmark, six nodes, B = {b.BATCH:,}: {widths}; {1e3 * image:.3g} ms "
            f"for the gradient of one image by the paper's ResNet-10 ({PAPER.side} x "
            f"{PAPER.side}, width {PAPER.width}). *Processor hours*: the curves of a "
            "page, with the paper's rounds, one split and one seed, without those of "
            "Figure 2 and of figures above. *Left*: for both splits and three seeds "
            "(of ResNet-10 one), without what stands in `raw/`.",
            grid(heads, shown),
        ],
    )


if __name__ == "__main__":
    script(main)

"""What the figures would take with the paper's rounds, from measured seconds."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp

from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex, resnet
from papers.dp_norm.common.pages import RESULTS, grid, script, write_page
from tacita.problem import resnet10

#: Drawn with fewer rounds than the paper's, convex and not.
SHORT = (
    *("figure_3", "figure_3_batches", "figure_5", "figure_6", "figure_6_steps"),
    *("figure_7", "figure_8", "figure_9"),
)
NETWORKS = (
    *("figure_2_resnet", "figure_3_resnet", "figure_3_resnet_batches"),
    *("figure_7_resnet", "figure_8_resnet", "figure_9_resnet"),
)
NODES, PAPER = 6, resnet.SIZES["paper"]
MEASURED_IMAGES = 8


def processor_seconds(run: Callable[[], object]) -> float:
    """Of the second call: the first one compiles."""
    run()
    began = time.process_time()
    run()
    return time.process_time() - began


def of_a_round(rounds: int = 4) -> float:
    """One configuration of the convex benchmark for one round."""
    problem, entries = b.problem(), convex.gossip_entries(rounds, (1.0, 0.5))
    run = lambda: convex.play(problem, entries, rounds, rounds)  # noqa: E731
    return processor_seconds(run) / (rounds * len(entries))


def of_an_image() -> float:
    """The gradient of the paper's ResNet-10 at one image."""
    side = PAPER.side
    model = resnet10((side, side, 1), 10, width=PAPER.width, groups=PAPER.groups)
    w = jnp.asarray(model.initial(), jnp.float32)
    x = jax.random.normal(jax.random.key(1), (MEASURED_IMAGES, side * side))
    y = jnp.zeros(MEASURED_IMAGES, int)
    slope = jax.jit(jax.grad(lambda v: jnp.mean(model.losses(v, x, y))))
    return processor_seconds(lambda: slope(w).block_until_ready()) / MEASURED_IMAGES


def configurations(name: str, out: Path) -> int:
    """Curves of a figure's file; one that several panels show counts once."""
    with open(out / f"{name}.csv", newline="", encoding="utf-8") as file:
        lines = [{**line, "panel": ""} for line in csv.DictReader(file)]
    end = max(int(line["round"]) for line in lines)
    return len({tuple(line.values()) for line in lines if int(line["round"]) == end})


def main(out: Path = RESULTS) -> Path:
    """Processor hours of every figure at the paper's rounds, one split, one seed."""
    each, image = of_a_round(), of_an_image()
    rows = [
        [name, n, b.ROUNDS, f"{n * b.ROUNDS * each / 3600:.2g}"]
        for name in SHORT
        for n in [configurations(name, RESULTS)]
    ]
    network = image * PAPER.batch * b.STEPS * NODES * PAPER.rounds / 3600
    rows += [
        [name, n, PAPER.rounds, f"{n * network:.2g}"]
        for name in NETWORKS
        for n in [configurations(name, RESULTS)]
    ]
    heads = ("figure", "curves", "rounds", "processor hours")
    with open(out / "hours.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([heads, *rows])
    return write_page(
        out,
        "hours",
        [
            "# Hours that the paper's scale would take",
            f"Measured: {each:.3g} processor seconds for a round of one curve of the "
            f"convex benchmark, {1e3 * image:.3g} ms for the gradient of one image by "
            f"the paper's ResNet-10 ({PAPER.side} x {PAPER.side}, width "
            f"{PAPER.width}). Below: all "
            "curves that a page shows, with the paper's rounds, one split and one "
            "seed; both splits with three seeds take six times that.",
            grid(heads, rows),
        ],
    )


if __name__ == "__main__":
    script(main)

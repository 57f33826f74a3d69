"""What the figures would take with the paper's rounds, from measured seconds."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp

from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex
from papers.dp_norm.common.pages import RESULTS, grid, script, write_page
from tacita.problem import resnet10

#: Drawn with fewer rounds than the paper's, convex and not.
SHORT = (
    *("figure_3", "figure_3_batches", "figure_5", "figure_6", "figure_6_steps"),
    *("figure_7", "figure_8", "figure_9"),
)
#: The paper's ResNet-10: images a step, steps a round, nodes, rounds, width, side.
BATCH, STEPS, NODES, ROUNDS, WIDTH, SIDE = 500, 10, 6, 1000, 64, 28
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
    model = resnet10((SIDE, SIDE, 1), 10, width=WIDTH)
    w = jnp.asarray(model.initial(), jnp.float32)
    x = jax.random.normal(jax.random.key(1), (MEASURED_IMAGES, SIDE * SIDE))
    y = jnp.zeros(MEASURED_IMAGES, int)
    slope = jax.jit(jax.grad(lambda v: jnp.mean(model.losses(v, x, y))))
    return processor_seconds(lambda: slope(w).block_until_ready()) / MEASURED_IMAGES


def configurations(name: str, out: Path) -> int:
    """Lines of a figure's file that are of its last round."""
    with open(out / f"{name}.csv", newline="", encoding="utf-8") as file:
        rounds = [int(line["round"]) for line in csv.DictReader(file)]
    return rounds.count(max(rounds))


def main(out: Path = RESULTS) -> Path:
    """Processor hours of every figure at the paper's rounds, one split, one seed."""
    each, image = of_a_round(), of_an_image()
    rows = [
        [name, n, b.ROUNDS, f"{n * b.ROUNDS * each / 3600:.2g}"]
        for name in SHORT
        for n in [configurations(name, RESULTS)]
    ]
    network = image * BATCH * STEPS * NODES * ROUNDS / 3600
    curves = configurations("figure_2_resnet", RESULTS)
    rows.append(["figure_2_resnet", curves, ROUNDS, f"{curves * network:.2g}"])
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
            f"the paper's ResNet-10 ({SIDE} x {SIDE}, width {WIDTH}). Below: all "
            "curves that a page shows, with the paper's rounds, one split and one "
            "seed; both splits with three seeds take six times that.",
            grid(heads, rows),
        ],
    )


if __name__ == "__main__":
    script(main)

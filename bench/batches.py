"""Large batches: gradients in pieces that fit the cache, against all rows at once.

    python -m bench.batches

Milliseconds of processor time for a step, in turns. "All rows at once" is the same
network with no pieces, as one writes it by hand. Raw results are kept in
bench/results/batches.json; `python -m bench.page` makes docs/benchmarks.md of it.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from bench import turns
from bench.networks import COLOURS, IMAGES, STEP, Rows
from tacita.problem import Differentiable, cnn, resnet10

AT_ONCE, REPEATS = "all rows at once", 7


def steps_of(model: Differentiable, rows: Rows, batch: int) -> dict[str, turns.Turn]:
    """A step by the gradient of a batch, in pieces and not."""
    width, classes = rows
    draw = np.random.default_rng(0)
    x = jnp.asarray(draw.normal(size=(batch, width)), jnp.float32)
    y = jnp.asarray(draw.integers(0, classes, batch))
    weights = jnp.full(batch, 1 / batch, jnp.float32)
    start = jnp.asarray(model.start())
    # Of a network that it did not build Tacita does not know whether it may be cut.
    contestants = {"tacita": model, AT_ONCE: replace(model, recipe=None)}

    def turn(one: Differentiable) -> turns.Turn:
        @jax.jit
        def step(w: jax.Array) -> jax.Array:
            def moved(_: int, v: jax.Array) -> jax.Array:
                return v - STEP * one.grad(v, x, y, weights)

            # A loop of one: derivatives run as they do inside rounds.
            return jax.lax.fori_loop(0, 1, moved, w)

        return turns.own_turn(lambda: step(start).block_until_ready(), 1)

    return {name: turn(one) for name, one in contestants.items()}


WORKS = {
    "Small CNN, 500 rows": (
        "3 x 3 convolutions (16, 32) on 28 x 28",
        lambda: steps_of(cnn((28, 28, 1), 10), IMAGES, 500),
        REPEATS,
    ),
    "CNN of FedAvg, 500 rows": (
        "5 x 5 convolutions (32, 64), 512 dense, on 28 x 28",
        lambda: steps_of(
            cnn((28, 28, 1), 10, (32, 64), kernel=5, hidden=(512,)), IMAGES, 500
        ),
        REPEATS,
    ),
    "ResNet-10 of width 16, 500 rows": (
        "a quarter of the channels, on 28 x 28",
        lambda: steps_of(resnet10((28, 28, 1), 10, width=16, groups=8), IMAGES, 500),
        REPEATS,
    ),
    "ResNet-10, 100 rows": (
        "width 64 on 32 x 32 x 3",
        lambda: steps_of(resnet10((32, 32, 3), 10), COLOURS, 100),
        REPEATS,
    ),
}


def main() -> None:
    turns.compete("batches", WORKS, AT_ONCE)


if __name__ == "__main__":
    main()

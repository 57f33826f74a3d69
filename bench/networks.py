"""Networks: steps of Tacita against the same arithmetic in bare JAX, and its peers.

    python -m bench.networks                                  # all works
    python -m bench.networks --only C --peers /path/to/venv/bin/python

Milliseconds of processor time for a step of batch 20, all contestants in turns. Bare
JAX calls one compiled step after the other, parameters in a tree, gradients as JAX
makes them, as one writes it by hand. PyTorch, pfl, Opacus and jax-privacy take part
where they are installed: `pip install '.[bench]'` into a virtual environment of its
own, which is named by `--peers`. A run of all works is kept in
bench/results/networks.json; `python -m bench.page` makes docs/benchmarks.md of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tacita
from bench import turns
from bench.own_networks import (
    CHARACTERS,
    LENGTH,
    equinox_cnn,
    flax_cnn,
    lstm,
    transformer,
)
from bench.simulator import tacita_rounds
from tacita.problem import cnn, mlp, resnet10
from tacita.problem.model.layers import Layers
from tacita.problem.model.linear import Softmax

STEP, STEPS, BATCH, NORM, NOISE = 0.05, 10, 20, 1.0, 0.1
IMAGES, COLOURS, TEXT = (784, 10), (3072, 10), (LENGTH, CHARACTERS)
Rows = tuple[int, int]  # numbers in a row, classes


def rounds_of(
    model: Any,
    rows: Rows,
    agents: int = 2,
    private: bool = False,
    steps: int = STEPS,
    rounds: int = 1,
) -> turns.Turn:
    """Rounds of FedAvg: every agent takes its steps."""
    x, y = _rows(rows, agents * 2 * BATCH)
    problem = tacita.from_arrays(
        x, y, np.arange(len(x)) % agents, model=model, dtype=np.float32
    )
    oracle: Any = tacita.Minibatch(size=BATCH, sampling="with_replacement")
    if private:
        clipped = tacita.Clipped(norm=NORM, oracle=oracle)
        oracle = tacita.Noisy(std=NOISE, oracle=clipped)
    algorithm = tacita.FedAvg(step_size=STEP, local_steps=steps, oracle=oracle)
    work = tacita_rounds(problem, algorithm, 1.0, rounds)
    return turns.own_turn(work, agents * steps * rounds)


def bare_steps(
    apply: Any,
    start: np.ndarray,
    shapes: Any,
    rows: Rows,
    private: bool = False,
    steps: int = STEPS,
    in_a_loop: bool = False,
) -> turns.Turn:
    """Compiled steps on a tree of arrays, called one after the other or in a loop."""
    layers = Layers(shapes)
    x, y = map(jnp.asarray, _rows(rows, BATCH))
    first = layers.unpack(jnp.asarray(start, jnp.float32)), jax.random.key(0)

    def loss(parts: Any, x: Any, y: Any) -> Any:
        scores = apply(layers.pack(parts), x)
        chosen = jnp.take_along_axis(scores, y[:, None], axis=1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(scores, axis=1) - chosen)

    def clipped(parts: Any, key: Any) -> Any:
        each = jax.vmap(lambda a, b: jax.grad(loss)(parts, a[None], b[None]))(x, y)
        squares = sum(jnp.sum(g.reshape(BATCH, -1) ** 2, axis=1) for g in each)
        factor = jnp.minimum(1, NORM / jnp.sqrt(squares)) / BATCH
        keys = jax.random.split(key, len(each))
        return [
            jnp.tensordot(factor, g, axes=1)
            + NOISE * jax.random.normal(k, g.shape[1:], g.dtype)
            for k, g in zip(keys, each, strict=True)
        ]

    def one(held: Any) -> Any:
        parts, key = held
        if private:
            key, now = jax.random.split(key)
            found = clipped(parts, now)
        else:
            found = jax.grad(loss)(parts, x, y)
        return [p - STEP * g for p, g in zip(parts, found, strict=True)], key

    step = jax.jit(one)
    looped = jax.jit(
        lambda held: jax.lax.fori_loop(0, steps, lambda _, h: one(h), held)
    )

    def work() -> None:
        held = first
        if in_a_loop:
            held = looped(held)
        else:
            for _ in range(steps):
                held = step(held)
        jax.block_until_ready(held[0])

    return turns.own_turn(work, steps)


def _rows(rows: Rows, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng, (features, classes) = np.random.default_rng(0), rows
    if rows == TEXT:
        x = rng.integers(0, classes, (count, features)).astype(np.float32)
    else:
        x = rng.random((count, features), np.float32)
    return x, rng.integers(0, classes, count)


def plain(model: Any, rows: Rows, shapes: Any = None, **options: Any) -> Any:
    """A network of any kind against bare JAX."""
    shapes = shapes or model.shapes
    steps = options.get("steps", STEPS)
    bare = bare_steps(model.apply, model.start(), shapes, rows, steps=steps)
    return {"tacita": rounds_of(model, rows, **options), "bare JAX": bare}


def text(made: tuple[Any, Any]) -> Any:
    model, shapes = made
    told = model.apply, model.start(), shapes, TEXT
    looped = bare_steps(*told, in_a_loop=True)
    return plain(model, TEXT, shapes) | {"bare JAX, in a loop": looped}


def private(model: Any, told: Any, rounds: int = 1) -> Any:
    """Clipped and noised steps, beside those that are not."""
    return {
        "tacita": rounds_of(model, IMAGES, private=True, rounds=rounds),
        "tacita, not private": rounds_of(model, IMAGES, rounds=rounds),
        "bare JAX": bare_steps(told.apply, told.start(), told.shapes, IMAGES, True),
    }


def images() -> Any:
    twins = {"tacita, Flax": flax_cnn(), "tacita, Equinox": equinox_cnn()}
    ours = plain(cnn((28, 28, 1), 10, (32, 64)), IMAGES)
    return ours | {name: rounds_of(one, IMAGES) for name, one in twins.items()}


class _LinearTwin:
    """Softmax regression as bare JAX takes it: a function and shapes."""

    def __init__(self) -> None:
        self.model = Softmax(784, 10)
        self.apply, self.start = self.model.scores, self.model.start
        self.shapes = ((10, 784),)


PERCEPTRON, CONVOLUTIONS = mlp(784, (200, 200), 10), cnn((28, 28, 1), 10, (32, 64))
#: By title: what it is, and its contestants in this process.
WORKS: dict[str, tuple[str, Callable[[], Any]]] = {
    "C: CNN": ("3 x 3 convolutions (32, 64) on 28 x 28, two agents", images),
    "D: perceptron": (
        "784-200-200-10, ten agents",
        lambda: plain(PERCEPTRON, IMAGES, agents=10),
    ),
    "E: private softmax": (
        "784 x 10, records clipped, noise in every step",
        # One round is over before caches are warm again.
        lambda: private("softmax", _LinearTwin(), rounds=20),
    ),
    "E: private perceptron": (
        "as D, records clipped, noise in every step",
        lambda: private(PERCEPTRON, PERCEPTRON),
    ),
    "E: private CNN": (
        "as C, records clipped, noise in every step",
        lambda: private(CONVOLUTIONS, CONVOLUTIONS),
    ),
    "F: LSTM": ("128 units over 20 characters", lambda: text(lstm())),
    "G: transformer": (
        "two layers of 64 over 20 characters",
        lambda: text(transformer()),
    ),
    "H: CNN of FedAvg": (
        "5 x 5 convolutions (32, 64), 512 dense, on 28 x 28: 1.7 million parameters",
        lambda: plain(cnn((28, 28, 1), 10, (32, 64), kernel=5, hidden=(512,)), IMAGES),
    ),
    "R: ResNet-10": (
        "width 64 on 32 x 32 x 3, group normalisation: 4.9 million parameters",
        lambda: plain(resnet10((32, 32, 3), 10), COLOURS, agents=1, steps=2),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the first letters of a work")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--peers", action="append", default=[], help="an interpreter")
    asked = parser.parse_args()
    works = {
        title: (
            about,
            make,
            min(asked.repeats, 5) if title[0] == "R" else asked.repeats,
        )
        for title, (about, make) in WORKS.items()
    }
    turns.compete("networks", works, "bare JAX", asked.peers, asked.only)


if __name__ == "__main__":
    main()

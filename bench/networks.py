"""Networks: steps of Tacita against the same arithmetic in bare JAX, and PyTorch.

    python -m bench.networks            # all works
    python -m bench.networks --only C

C: CNN (32, 64) on 28 x 28, 2 agents, 10 steps of batch 20 each. D: perceptron
784-200-200-10, 10 agents, 10 steps each. E: private steps of both, every record's
gradient clipped. F: an LSTM over 20 characters. Bare JAX calls one compiled step after
the other, parameters in a tree, gradients as JAX makes them, as one writes it by hand.
Milliseconds of processor time for a step, medians and quartiles, contestants in turns
in one process; PyTorch takes part where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tacita
from bench.simulator import tacita_rounds
from tacita.problem import cnn, from_function, mlp
from tacita.problem.model.layers import Layers

STEP, STEPS, BATCH = 0.05, 10, 20
Work = dict[str, tuple[Callable[[], Any], int]]  # by name: what to do, steps of it


def rounds_of(model: Any, agents: int, features: int, classes: int, private: bool):
    """A round of FedAvg: every agent takes its steps."""
    rng = np.random.default_rng(0)
    n = agents * 2 * BATCH
    x, y = rng.random((n, features), np.float32), rng.integers(0, classes, n)
    owner = np.arange(n) % agents
    problem = tacita.from_arrays(x, y, owner, model=model)
    oracle: Any = tacita.Minibatch(size=BATCH, sampling="with_replacement")
    if private:
        oracle = tacita.Noisy(std=0.1, oracle=tacita.Clipped(norm=1.0, oracle=oracle))
    algorithm = tacita.FedAvg(step_size=STEP, local_steps=STEPS, oracle=oracle)
    return tacita_rounds(problem, algorithm, 1.0, 1), agents * STEPS


def bare_steps(model: Any, shapes: Any, features: int, classes: int, private: bool):
    """Compiled steps on a tree of arrays, called one after the other."""
    layers, rng = Layers(shapes), np.random.default_rng(0)
    x = jnp.asarray(rng.random((BATCH, features), np.float32))
    y = jnp.asarray(rng.integers(0, classes, BATCH))
    start = layers.unpack(jnp.asarray(model.start()))

    def loss(parts, x, y):
        scores = model.apply(layers.pack(parts), x)
        chosen = jnp.take_along_axis(scores, y[:, None], axis=1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(scores, axis=1) - chosen)

    def clipped(parts, x, y):
        each = jax.vmap(lambda a, b: jax.grad(loss)(parts, a[None], b[None]))(x, y)
        squares = sum(jnp.sum(g.reshape(BATCH, -1) ** 2, axis=1) for g in each)
        factor = jnp.minimum(1, 1 / jnp.sqrt(squares)) / BATCH
        return [jnp.tensordot(factor, g, axes=1) for g in each]

    gradient = clipped if private else jax.grad(loss)

    @jax.jit
    def step(parts, x, y):
        return [p - STEP * g for p, g in zip(parts, gradient(parts, x, y), strict=True)]

    def work() -> None:
        parts = start
        for _ in range(STEPS):
            parts = step(parts, x, y)
        jax.block_until_ready(parts)

    return work, STEPS


def torch_steps(layers: Callable[[Any], Any], features: int, classes: int):
    """The same in PyTorch, on one thread."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    network = layers(torch.nn)
    x, y = torch.rand(BATCH, features), torch.randint(0, classes, (BATCH,))
    optimiser = torch.optim.SGD(network.parameters(), lr=STEP)

    def work() -> None:
        for _ in range(STEPS):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(x), y).backward()
            optimiser.step()

    return work, STEPS


def torch_cnn(nn: Any) -> Any:
    parts = [nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 32, 3, padding=1), nn.ReLU()]
    parts += [nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*parts, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 10))


def torch_mlp(nn: Any) -> Any:
    first, second = (nn.Linear(784, 200), nn.ReLU()), (nn.Linear(200, 200), nn.ReLU())
    return nn.Sequential(*first, *second, nn.Linear(200, 10))


def lstm(width: int = 128, characters: int = 60):
    """A user's own LSTM, which makes its own zeros."""
    rng = np.random.default_rng(0)
    parameters = {
        "letters": rng.normal(0, 0.1, (characters, 32)).astype(np.float32),
        "gates": rng.normal(0, 0.1, (32 + width, 4 * width)).astype(np.float32),
        "scores": rng.normal(0, 0.1, (width, characters)).astype(np.float32),
    }

    def apply(p: Any, codes: Any) -> Any:
        def cell(state: Any, x: Any) -> Any:
            h, c = state
            gates = jnp.concatenate([x, h], axis=-1) @ p["gates"]
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        letters = p["letters"][codes.astype(jnp.int32)].swapaxes(0, 1)
        start = jnp.zeros((codes.shape[0], width))
        return jax.lax.scan(cell, (start, start), letters)[0][0] @ p["scores"]

    shapes = tuple(v.shape for _, v in sorted(parameters.items()))
    return from_function(apply, parameters, classes=characters), shapes


def works() -> dict[str, Callable[[], Work]]:
    convolutions, perceptron = cnn((28, 28, 1), 10, (32, 64)), mlp(784, (200, 200), 10)
    recurrent, shapes = lstm()
    peers = importlib.util.find_spec("torch") is not None

    def images(model: Any, agents: int, private: bool, peer: Any = None) -> Work:
        found = {
            "tacita": rounds_of(model, agents, 784, 10, private),
            "bare JAX": bare_steps(model, model.shapes, 784, 10, private),
        }
        if peer is not None and peers:
            found["PyTorch"] = torch_steps(peer, 784, 10)
        return found

    def characters() -> Work:
        return {
            "tacita": rounds_of(recurrent, 2, 20, 60, False),
            "bare JAX": bare_steps(recurrent, shapes, 20, 60, False),
        }

    def private(model: Any) -> Work:
        return images(model, 2, True) | {
            "tacita, not private": rounds_of(model, 2, 784, 10, False)
        }

    return {
        "C: CNN": lambda: images(convolutions, 2, False, torch_cnn),
        "D: perceptron": lambda: images(perceptron, 10, False, torch_mlp),
        "E: private CNN": lambda: private(convolutions),
        "E: private perceptron": lambda: private(perceptron),
        "F: LSTM": characters,
    }


def measure(title: str, work: Work, repeats: int) -> str:
    """Processor time in turns: other programs on the machine do not count."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for do, _ in work.values():
        do()
    for _ in range(repeats):
        for name, (do, steps) in work.items():
            began = time.process_time()
            do()
            times[name].append((time.process_time() - began) / steps * 1e3)
    lines, against = [title], float(np.median(times["bare JAX"]))
    for name, found in times.items():
        low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
        told = f"{middle:9.2f} ms ({low:.2f} to {high:.2f})"
        lines.append(f"  {name:<22}{told:<32}{middle / against:6.2f} x bare JAX")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the first letter of a work")
    parser.add_argument("--repeats", type=int, default=9)
    asked = parser.parse_args()
    for title, make in works().items():
        if title.startswith(asked.only):
            print(measure(title, make(), asked.repeats), flush=True)


if __name__ == "__main__":
    main()

"""Other libraries at the works of `bench.networks`, in an interpreter of their own.

    /path/to/venv/bin/python bench/peers.py      # `bench.networks --peers` starts it

A line on its input, `["C: CNN", "PyTorch"]`, asks for one turn; the answer is the
processor time of a step in milliseconds. Its first line tells what it can do. Nothing
of Tacita is imported here, so that any interpreter will do.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
STEP, STEPS, BATCH, NORM, NOISE = 0.05, 10, 20, 1.0, 0.1
#: By work: its network, and how many agents take its steps.
CNN, MLP, SOFTMAX = "C: CNN", "D: perceptron", "E: private softmax"
PLAIN = {CNN: 2, MLP: 10, "H: CNN of FedAvg": 2, "R: ResNet-10": 1}
PRIVATE = {SOFTMAX: SOFTMAX, "E: private perceptron": MLP, "E: private CNN": CNN}


def torch_network(work: str) -> Any:
    """The networks in PyTorch; rows are flat."""
    from torch import nn

    if work == SOFTMAX:
        return nn.Linear(784, 10, bias=False)
    if work == MLP:
        layers = [nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(200, 10))
    if work == "R: ResNet-10":
        return residual_network()
    side, dense = (3, [nn.Linear(3136, 10)])
    if work == "H: CNN of FedAvg":
        side, dense = 5, [nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10)]
    layers: list[Any] = [nn.Unflatten(1, (1, 28, 28))]
    for a, b in ((1, 32), (32, 64)):
        convolution = nn.Conv2d(a, b, side, padding=side // 2)
        layers += [convolution, nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), *dense)


def residual_network() -> Any:
    """ResNet-10 with group normalisation, as `tacita.problem.resnet10`."""
    from torch import nn

    def convolution(a: int, b: int, side: int, stride: int = 1) -> Any:
        return nn.Conv2d(a, b, side, stride, padding=side // 2, bias=False)

    class Block(nn.Module):
        def __init__(self, a: int, b: int, stride: int) -> None:
            super().__init__()
            first = convolution(a, b, 3, stride), nn.GroupNorm(4, b), nn.ReLU()
            second = convolution(b, b, 3), nn.GroupNorm(4, b)
            self.body = nn.Sequential(*first, *second)
            self.skip = nn.Identity() if a == b else convolution(a, b, 1, stride)

        def forward(self, x: Any) -> Any:
            return (self.body(x) + self.skip(x)).relu()

    widths = [64, 64, 128, 256, 512]
    stem = nn.Unflatten(1, (3, 32, 32)), convolution(3, 64, 3), nn.GroupNorm(4, 64)
    sizes = zip(widths[:-1], widths[1:], (1, 2, 2, 2), strict=True)
    blocks = [Block(*size) for size in sizes]
    ending = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)
    return nn.Sequential(*stem, nn.ReLU(), *blocks, *ending)


def torch_batch(work: str) -> tuple[Any, Any]:
    import torch

    torch.set_num_threads(1)
    features = 3072 if work == "R: ResNet-10" else 784
    return torch.rand(BATCH, features), torch.randint(0, 10, (BATCH,))


def torch_loop(work: str) -> tuple[Callable[[], None], int]:
    """A loop of steps, as anybody writes it."""
    import torch

    network, (x, y) = torch_network(work), torch_batch(work)
    optimiser = torch.optim.SGD(network.parameters(), lr=STEP)

    steps = 2 if work == "R: ResNet-10" else STEPS

    def turn() -> None:
        for _ in range(steps):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(x), y).backward()
            optimiser.step()

    return turn, steps


def opacus_loop(work: str, *, ghost: bool) -> tuple[Callable[[], None], int]:
    """The same with clipped gradients of single records, or their norms only."""
    import opacus
    import torch
    from opacus import grad_sample, optimizers
    from opacus.utils import fast_gradient_clipping_utils

    (x, y), bare = torch_batch(PRIVATE[work]), torch_network(PRIVATE[work])
    kind = optimizers.DPOptimizer
    network: Any = None
    if ghost:
        kind = optimizers.DPOptimizerFastGradientClipping
        wrap = grad_sample.GradSampleModuleFastGradientClipping
        network = wrap(bare, max_grad_norm=NORM)
    else:
        network = opacus.GradSampleModule(bare)
    optimiser = kind(
        torch.optim.SGD(network.parameters(), lr=STEP),
        noise_multiplier=NOISE * BATCH,
        max_grad_norm=NORM,
        expected_batch_size=BATCH,
    )
    loss: Any = torch.nn.CrossEntropyLoss()
    if ghost:
        wrap = fast_gradient_clipping_utils.DPLossFastGradientClipping
        loss = wrap(network, optimiser, loss)

    def turn() -> None:
        for _ in range(STEPS):
            optimiser.zero_grad()
            loss(network(x), y).backward()
            optimiser.step()

    return turn, STEPS


def jax_network(work: str) -> tuple[Any, Callable[[Any, Any], Any]]:
    """The networks in JAX: parameters, and scores of rows."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return jnp.asarray(rng.normal(0, 0.05, shape), jnp.float32)

    if work == SOFTMAX:
        return normal(784, 10), lambda p, x: x @ p
    if work == MLP:
        sizes = (784, 200), (200, 200), (200, 10)

        def perceive(p: Any, x: Any) -> Any:
            for matrix, bias in p[:-1]:
                x = jax.nn.relu(x @ matrix + bias)
            return x @ p[-1][0] + p[-1][1]

        return [(normal(*size), jnp.zeros(size[1])) for size in sizes], perceive

    def look(p: Any, x: Any) -> Any:
        x = x.reshape(-1, 28, 28, 1)
        for kernel, bias in p[:-1]:
            told = ("NHWC", "HWIO", "NHWC")
            x = jax.lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=told
            )
            x, (b, h, w, c) = jax.nn.relu(x + bias), x.shape
            x = x.reshape(b, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))
        return x.reshape(len(x), -1) @ p[-1][0] + p[-1][1]

    kernels = [(normal(3, 3, a, b), jnp.zeros(b)) for a, b in ((1, 32), (32, 64))]
    return [*kernels, (normal(3136, 10), jnp.zeros(10))], look


def jax_privacy_loop(work: str) -> tuple[Callable[[], None], int]:
    """Its clipped gradients and its noise, in one compiled step."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax_privacy import clipping, noise_addition

    start, scores = jax_network(PRIVATE[work])
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.random((BATCH, 784)), jnp.float32)
    y = jnp.asarray(rng.integers(0, 10, BATCH))

    def loss(p: Any, x: Any, y: Any) -> Any:
        logits = jax.nn.log_softmax(scores(p, x))
        return -jnp.mean(jnp.take_along_axis(logits, y[:, None], axis=1))

    gradient = clipping.clipped_grad(
        loss, l2_clip_norm=NORM, batch_argnums=(1, 2), normalize_by=BATCH
    )
    noise = noise_addition.gaussian_privatizer(stddev=NOISE, prng_key=0)

    @jax.jit
    def step(p: Any, state: Any) -> tuple[Any, Any]:
        noisy, state = noise.update(gradient(p, x, y), state)
        return jax.tree.map(lambda a, g: a - STEP * g, p, noisy), state

    def turn() -> None:
        held = start, noise.init(start)
        for _ in range(STEPS):
            held = step(*held)
        jax.block_until_ready(held)

    return turn, STEPS


def pfl_round(work: str) -> tuple[Callable[[], None], int]:
    """A round of its FedAvg, with its simulated backend."""
    import numpy as np
    import torch
    from pfl import algorithm, data
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.model.pytorch import PyTorchModel

    torch.set_num_threads(1)
    agents, network = PLAIN[work], torch_network(work)

    def loss(x: Any, y: Any, eval: bool = False) -> Any:
        return torch.nn.functional.cross_entropy(network(x), y)

    network.loss, network.metrics = loss, lambda x, y: {}
    rows = {k: torch_batch(work) for k in range(agents)}

    def one(user: int) -> Any:
        x, y = (torch.cat([part] * STEPS) for part in rows[user])
        return data.dataset.Dataset((x, y), user_id=str(user))

    sampler = get_user_sampler("random", list(rows))
    held = data.federated_dataset.FederatedDataset(one, sampler)
    backend = SimulatedBackend(training_data=held, val_data=held)
    central = torch.optim.SGD(network.parameters(), lr=1.0)
    model = PyTorchModel(network, torch.optim.SGD, central)
    local = NNTrainHyperParams(
        local_batch_size=BATCH, local_num_epochs=1, local_learning_rate=STEP
    )
    rounds = algorithm.NNAlgorithmParams(
        central_num_iterations=1,
        evaluation_frequency=2,
        train_cohort_size=agents,
        val_cohort_size=0,
    )

    def turn() -> None:
        np.random.seed(0)
        FederatedAveraging().run(
            rounds, backend, model, local, send_metrics_to_platform=False
        )

    return turn, agents * STEPS


MAKERS: dict[str, tuple[str, Callable[[str], Any], Any]] = {
    "PyTorch": ("torch", torch_loop, PLAIN),
    "pfl": ("pfl", pfl_round, (CNN, MLP)),
    "Opacus": ("opacus", partial(opacus_loop, ghost=False), PRIVATE),
    "Opacus, ghost": ("opacus", partial(opacus_loop, ghost=True), PRIVATE),
    "jax-privacy": ("jax_privacy", jax_privacy_loop, PRIVATE),
}


@cache
def made(work: str, name: str) -> tuple[Callable[[], None], int]:
    turn, steps = MAKERS[name][1](work)
    turn()
    return turn, steps


def main() -> None:
    warnings.simplefilter("ignore")
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever libraries print
    there = {n: m for n, m in MAKERS.items() if importlib.util.find_spec(m[0])}
    modules = {module for module, _, _ in there.values()}
    versions = {m: importlib.metadata.version(m.replace("_", "-")) for m in modules}
    works = {name: list(works) for name, (_, _, works) in there.items()}
    told: Any = {"versions": versions, "works": works}
    print(json.dumps(told), file=answers, flush=True)
    for line in sys.stdin:
        turn, steps = made(*json.loads(line))
        began = time.process_time()
        turn()
        told = (time.process_time() - began) / steps * 1e3
        print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main()

"""PyTorch, Opacus and pfl at the works of `bench.networks` and `bench.simulator`."""

from __future__ import annotations

from typing import Any

from peers_works import (
    BATCH,
    MLP,
    NOISE,
    NORM,
    PAPER,
    PLAIN,
    PRIVATE,
    RESNET,
    ROUNDS,
    SOFTMAX,
    STEP,
    STEPS,
    Made,
)


def torch_network(work: str) -> Any:
    """The networks in PyTorch; rows are flat."""
    from torch import nn

    if work == SOFTMAX:
        return nn.Linear(784, 10, bias=False)
    if work == MLP:
        layers = [nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(200, 10))
    if work == RESNET:
        return residual_network()
    side, dense = (3, [nn.Linear(3136, 10)])
    if work == PAPER:
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
    features = 3072 if work == RESNET else 784
    return torch.rand(BATCH, features), torch.randint(0, 10, (BATCH,))


def torch_work(work: str) -> Made:
    """Rounds of all agents at once, or steps of a network."""
    if work in ROUNDS:
        return logistic_rounds(work) if work[0] == "A" else softmax_rounds()
    return torch_loop(work)


def logistic_rounds(work: str) -> Made:
    """Work A: five full steps of a hundred agents, in batched products."""
    import torch

    torch.set_num_threads(1)
    kind = torch.float64 if ROUNDS[work] == 64 else torch.float32
    x, y = torch.randn(100, 250, 5, dtype=kind), torch.randn(100, 250).sign().to(kind)
    turned = x.transpose(1, 2).contiguous()

    def turn() -> None:
        w = torch.zeros(5, dtype=kind)
        for _ in range(50):
            local = w.expand(100, 5)
            for _ in range(5):
                scores = torch.bmm(x, local[..., None])[..., 0]
                residual = -y * torch.sigmoid(-y * scores) / 250
                gradient = torch.bmm(turned, residual[..., None])[..., 0]
                local = local - 0.1 * (gradient + 0.5 * local)
            w = local.mean(dim=0)

    return turn, 50


def softmax_rounds() -> Made:
    """Work B: five batches of ten at a hundred of a thousand agents."""
    import torch

    torch.set_num_threads(1)
    x, y = torch.rand(1000, 50, 784), torch.randint(0, 10, (1000, 50))

    def turn() -> None:
        w = torch.zeros(784, 10)
        for _ in range(5):
            who = torch.randperm(1000)[:100, None]
            picks = torch.rand(100, 5, 50).argsort(dim=-1)[..., :10]
            local = w.expand(100, 784, 10).clone()
            for k in range(5):
                rows = x[who, picks[:, k]]
                wanted = torch.nn.functional.one_hot(y[who, picks[:, k]], 10)
                residual = torch.softmax(torch.bmm(rows, local), dim=-1) - wanted
                local.baddbmm_(rows.transpose(1, 2), residual, alpha=-0.1 / 10)
            w = local.mean(dim=0)

    return turn, 5


def torch_loop(work: str) -> Made:
    """A loop of steps, as anybody writes it."""
    import torch

    network, (x, y) = torch_network(work), torch_batch(work)
    optimiser = torch.optim.SGD(network.parameters(), lr=STEP)

    steps = 2 if work == RESNET else STEPS

    def turn() -> None:
        for _ in range(steps):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(x), y).backward()
            optimiser.step()

    return turn, steps


def opacus_loop(work: str, *, ghost: bool) -> Made:
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


def pfl_round(work: str) -> Made:
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

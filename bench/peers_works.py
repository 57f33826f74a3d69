"""What peers work at: numbers and names of `bench.networks` and `bench.simulator`."""

from __future__ import annotations

from collections.abc import Callable

STEP, STEPS, BATCH, NORM, NOISE = 0.05, 10, 20, 1.0, 0.1
#: Titles of works, as in `bench.networks`.
CNN, MLP, SOFTMAX = "C: CNN", "D: perceptron", "E: private softmax"
PAPER, RESNET = "H: CNN of FedAvg", "R: ResNet-10"
#: By work: how many agents take its steps.
PLAIN = {CNN: 2, MLP: 10, PAPER: 2, RESNET: 1}
#: By work: whose network it has.
PRIVATE = {SOFTMAX: SOFTMAX, "E: private perceptron": MLP, "E: private CNN": CNN}
#: Rounds of FedAvg, by work: its numbers are of this many bits.
ROUNDS = {"A: float32": 32, "A: float64": 64, "B: float32": 32}
Made = tuple[Callable[[], None], int]  # a turn, and its steps

"""Table II of Fed-PLT, both columns, six tuned methods: the time, and NumPy's.

    python -m bench.fed_plt_table_2                    # 100 repetitions
    python -m bench.fed_plt_table_2 --repetitions 5

Prints the seconds for the whole table, tuning and compilation included, and, for the
runs of one repetition after compilation, the ratio to the same arithmetic in NumPy,
which must need the same rounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

from bench.timing import in_turns, table
from papers.fed_plt.common.comparison import LOCAL_STEPS
from papers.fed_plt.common.measures import ACCURACY, MOST_ROUNDS, Case, count_rounds
from papers.fed_plt.common.problems import Instance, revised
from papers.fed_plt.common.tuning import METHODS
from papers.fed_plt.table_2 import both
from tacita import keys
from tacita.algorithm.random_steps import geometric
from tacita.problem.model.regulariser import SquaredL2


class Costs:
    """Gradients of all agents at once, by batched products."""

    def __init__(self, instance: Instance) -> None:
        x, self.y, _ = instance.problem.stacked()
        self.x = np.ascontiguousarray(x)
        regulariser = instance.problem.population.regulariser
        self.weight = float(regulariser.weight)
        self.convex = isinstance(regulariser, SquaredL2)
        self.n = len(self.x)

    def grad(self, w: np.ndarray) -> np.ndarray:
        """Every agent's gradient at its own w, (N, d)."""
        scores = (self.x @ w[:, :, None])[..., 0]
        residual = -self.y / (1 + np.exp(self.y * scores)) / self.y.shape[1]
        extra = w if self.convex else 2 * w / (1 + w**2) ** 2
        return (residual[:, None, :] @ self.x)[:, 0] + self.weight * extra

    def measure(self, w: np.ndarray) -> float:
        """||sum_i grad f_i(w)||^2 at one w."""
        point = np.broadcast_to(w, (self.n, len(w)))
        return float(np.sum(self.grad(point).sum(axis=0) ** 2))


def fed_plt(f: Costs, a: Any, start: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    x = np.tile(start, (f.n, 1))
    z = x.copy()
    while True:
        y = z.mean(axis=0)
        v = 2 * y - z
        for _ in range(LOCAL_STEPS):
            x = x - a.solver.step_size * (f.grad(x) + (x - v) / a.rho)
        z = z + 2 * (x - y)
        yield x.mean(axis=0)


def fed_pd(f: Costs, a: Any, start: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    x = np.tile(start, (f.n, 1))
    lam, c = np.zeros_like(x), start
    while True:
        for _ in range(LOCAL_STEPS):
            x = x - a.step_size * (f.grad(x) + lam + (x - c) / a.eta)
        lam = lam + (x - c) / a.eta
        c = (x + a.eta * lam).mean(axis=0)
        yield x.mean(axis=0)


def fed_lin(f: Costs, a: Any, start: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    x = start
    while True:
        w = np.tile(x, (f.n, 1))
        own = f.grad(w)
        mean = own.mean(axis=0)
        for _ in range(LOCAL_STEPS):
            w = w - a.step_size * (f.grad(w) - own + mean)
        x = w.mean(axis=0)
        yield x


def led(f: Costs, a: Any, start: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    x, y = start, np.zeros((f.n, len(start)))
    while True:
        w = np.tile(x, (f.n, 1))
        for _ in range(LOCAL_STEPS):
            w = w - a.step_size * f.grad(w) - a.beta * y
        x = w.mean(axis=0)
        y = y + w - x
        yield x


def tamuna(f: Costs, a: Any, start: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    x, h = start, np.zeros((f.n, len(start)))
    for steps in _numbers_of_steps(a.local_steps, seed):
        w = np.tile(x, (f.n, 1))
        for _ in range(steps):
            w = w - a.step_size * (f.grad(w) - h)
        x = w.mean(axis=0)
        h = h + a.eta / a.step_size * (x - w)
        yield x


def _numbers_of_steps(mean: float, seed: int) -> list[int]:
    """The numbers that the simulator draws: announced after each round's exchange."""
    with jax.enable_x64(True):
        base = keys.from_seed(seed)
        rounds = np.arange(MOST_ROUNDS)
        phase = np.where(rounds == 0, 0, 1)
        draw = jax.vmap(
            lambda r, p: geometric(keys.coordinator_key(base, r, p), 1 / mean)
        )
        return np.asarray(draw(rounds, phase)).tolist()


def five_gcs(f: Costs, a: Any, start: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    mu, n = a.strong_convexity, f.n
    step, rho = np.asarray(a.solver.step_size).reshape(-1, 1), 1 / (n * a.tau)
    u, v = np.zeros((n, len(start))), np.zeros_like(start)
    x_hat = start / (1 + a.gamma * mu)
    while True:
        centre = x_hat + rho * u
        y = np.tile(x_hat, (n, 1))
        for _ in range(LOCAL_STEPS):
            y = y - step * (f.grad(y) - mu * y + (y - centre) / rho)
        u = f.grad(y) - mu * y
        after = u.mean(axis=0)
        x = x_hat - a.gamma * (after - v)
        v = after
        x_hat = (x - a.gamma * v) / (1 + a.gamma * mu)
        yield x_hat


REFERENCES = {
    "FedPD": fed_pd,
    "FedLin": fed_lin,
    "TAMUNA": tamuna,
    "LED": led,
    "5GCS": five_gcs,
    "Fed-PLT": fed_plt,
}


def numpy_rounds(name: str, instance: Instance, algorithm: Any, seed: int) -> int:
    """Rounds to the accuracy by the NumPy reference."""
    costs = Costs(instance)
    models = REFERENCES[name](costs, algorithm, instance.start, seed)
    for k, model in enumerate(models, start=1):
        if costs.measure(model) <= ACCURACY:
            return k
    raise AssertionError("the reference ended before it arrived")


def do_all(work: list[Callable[[], Any]]) -> None:
    for one in work:
        one()


def one_repetition(found: Any) -> None:
    """The runs of repetition 1, Tacita and NumPy in turns."""
    tacita_work, numpy_work = [], []
    for convex, compared in zip((True, False), found, strict=True):
        instance = revised(1, convex=convex)
        for name, choice in compared.choices.items():
            algorithm = choice.on(instance.problem).resolve(instance.problem)
            case = Case(choice.on, METHODS[name].measured)
            ours = int(count_rounds(instance, case, 1))
            reference = numpy_rounds(name, instance, algorithm, 1)
            kind = "convex" if convex else "non-convex"
            print(f"  {name:<8}{kind:<11} rounds {ours:>4}   numpy {reference:>4}")
            assert ours == reference, f"{name}, {kind}: not the same arithmetic"
            tacita_work.append(partial(count_rounds, instance, case, 1))
            numpy_work.append(partial(numpy_rounds, name, instance, algorithm, 1))
    seconds = in_turns(
        {
            "tacita": partial(do_all, tacita_work),
            "numpy, batched matmul": partial(do_all, numpy_work),
        },
        repeats=7,
    )
    print(table("one repetition, all twelve runs", seconds, "tacita"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100)
    repetitions = parser.parse_args().repetitions
    began, worked = time.perf_counter(), time.process_time()
    found = both(repetitions)
    took, worked = time.perf_counter() - began, time.process_time() - worked
    # On a busy machine the processor time tells more than the clock.
    print(
        f"Table II, {repetitions} repetitions, tuning and compilation included: "
        f"{took:.0f} s, of processor time {worked:.0f} s"
    )
    one_repetition(found)


if __name__ == "__main__":
    main()

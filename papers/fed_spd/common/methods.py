"""The methods that are compared, with what is tuned: eight settings each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import tacita
from papers.fed_spd.common.adult import Table
from tacita.algorithm.solvers import GradientDescent
from tacita.privacy import Clipped, Scope, gaussian_sigma, report
from tacita.privacy.letters import Question, guarantee
from tacita.trees import replace

DELTA = 1e-4
OBSERVER = "coordinator"
#: Rows of norm 1: no logistic gradient is longer, so nothing is ever cut.
CLIP = Clipped(norm=1.0)


@dataclass(frozen=True)
class Setting:
    """One candidate: an algorithm without noise, and its number of rounds."""

    algorithm: Any
    rounds: int
    words: str


def _dp_sgd() -> list[Setting]:
    pairs = [(40, 1.0), (40, 2.0), (80, 0.5), (80, 1.0), (80, 2.0)]
    pairs += [(160, 0.25), (160, 0.5), (160, 1.0)]
    return [
        Setting(
            tacita.DPSGD(step_size=step, momentum=0.9, average=0.9, oracle=CLIP),
            rounds,
            f"{rounds} rounds, step {step:g}, momentum 0.9",
        )
        for rounds, step in pairs
    ]


def _dp_fed_avg() -> list[Setting]:
    return [
        Setting(
            tacita.DPFedAvg(step_size=step, local_steps=steps, oracle=CLIP),
            rounds,
            f"{rounds} rounds, step {step:g}, Q = {steps}",
        )
        for steps in (1, 3)
        for rounds in (20, 80)
        for step in (3.0, 6.0)
    ]


def _dp_admm() -> list[Setting]:
    return [
        Setting(
            tacita.DPADMM(rho=rho, step_size=step, oracle=CLIP),
            rounds,
            f"{rounds} rounds, rho {rho:g}, step {step:g}",
        )
        for rounds in (40, 80)
        for rho in (0.01, 0.05)
        for step in (8.0, 16.0)
    ]


def _fed_spd(state: str = "public") -> list[Setting]:
    # gamma just above L/2 = 1/8, so that local steps do not expand.
    return [
        Setting(
            tacita.FedSPD(
                rho=rho, gamma=gamma, local_steps=steps, state=state, oracle=CLIP
            ),
            rounds,
            f"{rounds} rounds, rho {rho:g}, gamma {gamma:g}, Q = {steps}",
        )
        for rounds in (40, 80)
        for rho in (0.01, 0.05)
        for steps, gamma in ((1, 0.13), (3, 0.4))
    ]


def _fed_plt() -> list[Setting]:
    return [
        Setting(
            tacita.FedPLT(
                rho=rho,
                solver=GradientDescent(step_size=step, local_steps=2),
                oracle=CLIP,
            ),
            rounds,
            f"{rounds} rounds, rho {rho:g}, step {step:g}, Ne = 2",
        )
        for rounds in (40, 80)
        for rho in (10.0, 40.0)
        for step in (3.0, 6.0)
    ]


def _in_papers_columns() -> list[Setting]:
    """Rows of norm 1 that share a large mean direction need longer steps."""
    return [
        Setting(
            tacita.DPSGD(step_size=step, momentum=0.9, average=0.9, oracle=CLIP),
            rounds,
            f"{rounds} rounds, step {step:g}, momentum 0.9",
        )
        for rounds in (80, 160)
        for step in (1.0, 2.0, 4.0, 8.0)
    ]


class Method(NamedTuple):
    """What is compared: candidates, and on which columns."""

    candidates: Callable[[], list[Setting]]
    encoding: str = "public"


METHODS = {
    "DP-SGD, momentum": Method(_dp_sgd),
    "DP-FedAvg": Method(_dp_fed_avg),
    "DP-ADMM": Method(_dp_admm),
    "FedSPD, public state": Method(_fed_spd),
    "private Fed-PLT": Method(_fed_plt),
    "DP-SGD, paper's columns": Method(_in_papers_columns, "unit"),
    "FedSPD, hidden state": Method(lambda: _fed_spd("hidden")),
}


def with_budget(problem: tacita.Problem, setting: Setting, epsilon: float) -> Any:
    """The candidate with noise for (epsilon, delta) against the coordinator."""
    algorithm = setting.algorithm
    if getattr(algorithm, "state", "public") != "hidden":
        return tacita.private(
            problem,
            algorithm,
            epsilon=epsilon,
            delta=DELTA,
            observer=OBSERVER,
            rounds=setting.rounds,
        )
    # Sound noise beside a hidden state: mu is inversely proportional to the noise.
    noisy = replace(algorithm, noise_std=1.0, paper_noise=True).resolve(problem)
    smallest = int(np.argmin(problem.counts))
    asked = Question(scope=Scope(OBSERVER), agent=smallest, rounds=setting.rounds)
    mu = guarantee(noisy, problem, asked).mu
    assert mu is not None
    noise = mu * gaussian_sigma(epsilon, DELTA, 1.0)
    return replace(noisy, noise_std=noise)


def accuracies(
    table: Table, problem: tacita.Problem, setting: Setting, epsilon: float, seeds: int
) -> np.ndarray:
    """Accuracy on the rows to judge by, one per seed."""
    algorithm = with_budget(problem, setting, epsilon)
    run = tacita.simulate(
        problem,
        algorithm,
        setting.rounds,
        seeds=seeds,
        seed=10,
        record=("loss",),
        record_every=setting.rounds,
        progress=False,
    )
    spent = report(run, problem, algorithm, delta=DELTA).row(OBSERVER).epsilon
    assert spent is not None and spent <= epsilon * (1 + 1e-6)
    return table.accuracy(run.params)

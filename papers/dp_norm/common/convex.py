"""All methods on the convex benchmark: learning curves and norms, as one table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tacita
from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import runs
from tacita.privacy import letters_of

MEASURES: dict[str, runs.Measure] = {
    "accuracy": runs.own_accuracy,
    "released accuracy": runs.released_accuracy,
    "norm of w": runs.model_norm,
    "norm of dual": runs.dual_norm,
}
FIELDS = ("method", "noise", "epsilon", "noise_std", "round", *MEASURES)


@dataclass(frozen=True)
class Entry:
    """One configuration: which method, whose noise, for which epsilon."""

    method: str
    noise: str
    epsilon: float | None
    algorithm: Any

    @property
    def words(self) -> dict[str, Any]:
        """What is written beside every record of it."""
        return {
            "method": self.method,
            "noise": self.noise,
            "epsilon": "inf" if self.epsilon is None else f"{self.epsilon:g}",
            "noise_std": f"{float(letters_of(self.algorithm).noise_std):.6g}",
        }


def dp_norm(alpha: float, noise_std: float, **changes: Any) -> tacita.DPNorm:
    """DP-Norm with the paper's numbers."""
    given = {"step_size": b.STEP, "local_steps": b.STEPS, "oracle": b.permuted}
    return tacita.DPNorm(alpha=alpha, noise_std=noise_std, **given | changes)


def dp_norm_entries(rounds: int, epsilons: Sequence[float | None]) -> list[Entry]:
    """DP-Norm with and without normalisation; the noise of the paper, and ours."""
    made = []
    for alpha in (b.ALPHA, 0.0):
        for epsilon in epsilons:
            sigma = b.paper_noise(epsilon, alpha, rounds)
            name = f"DP-Norm alpha={alpha:g}"
            made.append(Entry(name, "paper", epsilon, dp_norm(alpha, sigma)))
            if epsilon is not None:
                sigma = b.tight_noise(epsilon, alpha, rounds)
                made.append(Entry(name, "sound", epsilon, dp_norm(alpha, sigma)))
    return made


def gossip_entries(rounds: int, epsilons: Sequence[float | None]) -> list[Entry]:
    """DP-SGD with gossip once a round; the noise of Table II, and a sound one."""

    def made(noise: str, epsilon: float | None, sigma: float) -> Entry:
        oracle = tacita.Noisy(std=sigma, oracle=b.permuted)
        one = tacita.GossipSGD(step_size=b.STEP, local_steps=b.STEPS, oracle=oracle)
        return Entry("DP-SGD gossip", noise, epsilon, one)

    return _both(made, b.gossip_paper_noise, rounds, epsilons)


def admm_entries(rounds: int, epsilons: Sequence[float | None]) -> list[Entry]:
    """DP-ADMM; the noise of Table II, and a sound one."""

    def made(noise: str, epsilon: float | None, sigma: float) -> Entry:
        oracle = tacita.Noisy(std=sigma, oracle=b.permuted)
        given = {"step_size": b.STEP, "local_steps": b.STEPS, "oracle": oracle}
        one = tacita.GraphADMM(rho=b.PENALTY, **given)
        return Entry("DP-ADMM", noise, epsilon, one)

    return _both(made, b.admm_paper_noise, rounds, epsilons)


def _both(
    made: Any, paper: Any, rounds: int, epsilons: Sequence[float | None]
) -> list[Entry]:
    entries = [made("paper", e, paper(e, rounds)) for e in epsilons]
    return entries + [
        made("sound", e, b.sound_gradient_noise(e, rounds))
        for e in epsilons
        if e is not None
    ]


#: All methods with noise, by the names of their files.
METHODS = {"dp_norm": dp_norm_entries, "gossip": gossip_entries, "admm": admm_entries}


def play(
    problem: tacita.Problem,
    entries: Sequence[Entry],
    rounds: int,
    every: int,
    seed: int = 0,
    told: Any = lambda done: None,
    kept: Path | None = None,
) -> list[dict[str, Any]]:
    """Run configurations of one algorithm; a line per configuration and record.

    With a file to keep it in, a run that was stopped goes on where it was.
    """
    made = [entry.algorithm for entry in entries]
    found = runs.curves(problem, made, rounds, every, MEASURES, seed, told, kept)
    return [
        {
            **entry.words,
            "round": int(found["round"][k]),
            **{name: f"{found[name][lane, k]:.6g}" for name in MEASURES},
        }
        for lane, entry in enumerate(entries)
        for k in range(len(found["round"]))
    ]


def single_node(
    split: int, rounds: int, every: int, iid: bool = False
) -> list[dict[str, Any]]:
    """SGD on the pooled data of the ring, without noise."""
    pooled = b.problem(nodes=1, split=split, iid=iid)
    sgd = tacita.FedAvg(step_size=b.STEP, local_steps=b.STEPS, oracle=b.permuted)
    return alone(pooled, sgd, rounds, every)


def alone(
    pooled: tacita.Problem, sgd: tacita.FedAvg, rounds: int, every: int
) -> list[dict[str, Any]]:
    """The lines of a single node that has all images."""
    run = tacita.simulate(
        pooled,
        sgd,
        rounds,
        seed=0,
        record=("test_accuracy",),
        record_every=every,
        progress=False,
    )
    return [
        {
            "method": "single node",
            "noise": "paper",
            "epsilon": "inf",
            "noise_std": "0",
            "round": int(r),
            "accuracy": f"{a:.6g}",
        }
        for r, a in zip(run.metrics["round"], run.metrics["test_accuracy"], strict=True)
    ]


def write(
    path: Path, lines: Sequence[dict[str, Any]], fields: Sequence[str] = FIELDS
) -> Path:
    """All lines as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    return path


def read(path: Path) -> list[dict[str, str]]:
    """The lines of `write`."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def last(
    lines: Sequence[dict[str, Any]], column: str = "accuracy", **where: str
) -> Any:
    """The last record of the configuration that fits, or NaN."""
    found = [line for line in lines if all(str(line[k]) == v for k, v in where.items())]
    return float(found[-1][column]) if found else np.nan

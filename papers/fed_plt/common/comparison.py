"""Six methods side by side: Tables II, III and V of the revised version."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from papers.common.kept import Kept
from papers.fed_plt.common.measures import Case, median, repeat, time_of
from papers.fed_plt.common.problems import TUNING_SEEDS, Make
from papers.fed_plt.common.tuning import METHODS, Choice, choose, rounds_score

LOCAL_STEPS = 5


class Compared(NamedTuple):
    """What each method was given, and the rounds it took in every repetition."""

    choices: dict[str, Choice]
    rounds: dict[str, np.ndarray]

    def time(
        self, name: str, t_grad: float, t_comm: float, middle: bool = False
    ) -> float:
        """Mean, or median, time of a method by the paper's cost model."""
        rounds = self.rounds[name]
        return time_of(
            median(rounds) if middle else rounds,
            LOCAL_STEPS,
            t_grad,
            t_comm,
            exchanges=METHODS[name].exchanges,
        )

    def ranking(self, t_grad: float, t_comm: float, middle: bool = False) -> list[str]:
        """Methods from the fastest to the slowest."""
        times = {name: self.time(name, t_grad, t_comm, middle) for name in self.rounds}
        return sorted(times, key=times.__getitem__)


def compare(
    make: Make,
    repetitions: int,
    words: str,
    tuning_instances: int = len(TUNING_SEEDS),
    kept: Kept | None = None,
) -> Compared:
    """Tune all six methods and run them on every repetition."""
    seeds = TUNING_SEEDS[:tuning_instances]
    choices = {
        name: choose(
            method.grid,
            LOCAL_STEPS,
            make,
            f"{name}, {words}",
            rounds_score(method.measured),
            seeds,
            kept,
        )
        for name, method in METHODS.items()
    }
    cases = {
        name: Case(
            choice.finalists, METHODS[name].measured, rounds=choice.likely_rounds
        )
        for name, choice in choices.items()
    }
    return Compared(choices, repeat(make, cases, repetitions, words, kept=kept))


def paper_rounds(name: str, time: float | None, t_grad: float, t_comm: float) -> float:
    """The number of rounds behind a printed time; NaN where none is printed."""
    if time is None:
        return float("nan")
    each = time_of(1, LOCAL_STEPS, t_grad, t_comm, exchanges=METHODS[name].exchanges)
    return time / each


def fastest(times: dict[str, float | None]) -> str:
    """The methods with the least time, in words."""
    known = {name: time for name, time in times.items() if time is not None}
    least = min(known.values())
    return " and ".join(name for name, time in known.items() if time <= least)

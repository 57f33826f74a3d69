"""Choosing how strongly neighbours are coupled: by rows that every node held out."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np

from tacita import check
from tacita.problem.gtv.edges import usual_curvature
from tacita.problem.gtv.gtvmin import GTVMin
from tacita.problem.held_out import hold_out, node_losses


@dataclasses.dataclass(frozen=True)
class AlphaTrial:
    """One strength of the coupling: mean loss over nodes, in training and held out."""

    alpha: float
    train: float
    validation: float


@dataclasses.dataclass(frozen=True)
class AlphaTuning:
    """The chosen coupling and everything that was tried.

    Attributes:
        alpha: The strength with the smallest loss on held-out rows.
        gtv: GTVMin on all rows with that strength.
        trials: All strengths, ascending.
        seconds: What the choice took.
    """

    alpha: float
    gtv: GTVMin
    trials: tuple[AlphaTrial, ...]
    seconds: float

    def __str__(self) -> str:
        best = min(self.trials, key=lambda t: t.validation)
        ends = {self.trials[0].alpha, self.trials[-1].alpha}
        hint = "; at the end of the grid, try further" if best.alpha in ends else ""
        return (
            f"alpha {best.alpha:.3g}: validation loss {best.validation:.4g}, training "
            f"{best.train:.4g} ({len(self.trials)} tried, {self.seconds:.1f} s{hint})"
        )


def usual_alphas(gtv: GTVMin) -> np.ndarray:
    """A grid in units of the losses' curvature per unit of degree."""
    curvature = usual_curvature(gtv.problem) or 1.0  # of flat losses any is as good
    degree = float(np.mean(gtv.graph.degrees)) or 1.0  # without edges all are alike
    return curvature / degree * np.geomspace(1e-3, 1e3, 13)


def tune_alpha(
    gtv: GTVMin,
    alphas: Any = None,
    validation: float = 0.25,
    repeats: int = 3,
    seed: int = 0,
) -> AlphaTuning:
    """Choose alpha by the loss on held-out rows, averaged over nodes and splits."""
    began = time.perf_counter()
    grid = usual_alphas(gtv) if alphas is None else ascending(alphas)
    check.count(repeats=repeats)
    if gtv.problem.counts.max() < 2:
        check.refuse("no node has two rows, one to train on and one to hold out")
    losses = np.zeros((len(grid), 2))
    for k in range(repeats):
        train, held = hold_out(gtv.problem, validation, seed + k)
        for row, alpha in zip(losses, grid, strict=True):
            models = GTVMin(train, float(alpha), gtv.penalty, gtv.h).solve()
            for place, part in enumerate((train, held)):
                row[place] += np.nanmean(node_losses(part, models)) / repeats
    trials = tuple(
        AlphaTrial(float(alpha), float(row[0]), float(row[1]))
        for alpha, row in zip(grid, losses, strict=True)
    )
    best = min(trials, key=lambda t: t.validation).alpha
    chosen = GTVMin(gtv.problem, best, gtv.penalty, gtv.h)
    return AlphaTuning(best, chosen, trials, time.perf_counter() - began)


def ascending(alphas: Any) -> np.ndarray:
    """Strengths that were asked for, checked and in order."""
    grid = np.asarray(check.finite(alphas=alphas), float)
    check.not_negative(alphas=check.shape((None,), alphas=grid))
    if not len(grid):
        check.refuse("expected alphas with one strength to try or more, got none")
    return np.sort(grid)

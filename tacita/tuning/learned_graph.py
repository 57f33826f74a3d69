"""Choosing a learnt graph's neighbours and the coupling together, by held-out rows.

A denser graph wants a weaker coupling, so that neither can be chosen alone. The graph
is learnt anew from the training rows of every split: one that had seen the held-out
rows would look better than it is.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacita import check
from tacita.problem.graph import Graph, learned
from tacita.problem.gtv.gtvmin import GTVMin
from tacita.problem.held_out import hold_out, node_losses
from tacita.problem.problem import Problem
from tacita.trees import replace
from tacita.tuning.alpha import ascending, usual_alphas

#: Neighbours that are tried where nobody says which.
_USUAL_KS = (2, 4, 8)


@dataclasses.dataclass(frozen=True)
class GraphTrial:
    """One graph and coupling: mean loss over nodes, in training and held out."""

    k: int | None
    alpha: float
    train: float
    validation: float


@dataclasses.dataclass(frozen=True)
class GraphTuning:
    """The chosen graph and coupling, and everything that was tried.

    Attributes:
        k: Neighbours of a node; None for a method that has no k.
        alpha: The strength of the coupling.
        graph: Learnt from all rows with that k.
        gtv: GTVMin on all rows, that graph and that strength.
        trials: All that was tried.
        seconds: What the choice took.
    """

    k: int | None
    alpha: float
    graph: Graph
    gtv: GTVMin
    trials: tuple[GraphTrial, ...]
    seconds: float

    def __str__(self) -> str:
        best = min(self.trials, key=lambda t: t.validation)
        chosen = "" if best.k is None else f"k {best.k}, "
        return (
            f"{chosen}alpha {best.alpha:.3g}: validation loss {best.validation:.4g}, "
            f"training {best.train:.4g} ({len(self.trials)} tried, "
            f"{self.seconds:.1f} s); chosen by looking at rows without noise"
        )


def tune_graph(
    problem: Problem,
    discrepancy: str = "parameters",
    method: str = "nearest",
    *,
    ks: Sequence[int] | None = None,
    alphas: Any = None,
    penalty: Any = "squared",
    validation: float = 0.25,
    repeats: int = 3,
    seed: int = 0,
    **options: Any,
) -> GraphTuning:
    """Choose k and alpha by the loss on held-out rows, over nodes and splits.

    Args:
        problem: The nodes' rows; a graph it has is not looked at.
        discrepancy: As in `tacita.problem.graph.learned`.
        method: Likewise.
        ks: Neighbours to try; 2, 4 and 8 if left out.
        alphas: Strengths to try for every k; a grid in units of the problem's
            curvature and the graph's degrees if left out.
        penalty: Of GTVMin.
        validation: The share of every node's rows that is held out.
        repeats: Random splits to average over.
        seed: Of the splits.
        **options: As in `learned`.
    """
    began = time.perf_counter()
    tried = _ks(problem, method, ks)
    splits = [
        hold_out(problem, validation, seed + one)
        for one in range(check.count(repeats=repeats))
    ]
    trials = []
    for k in tried:
        whole = _joined(problem, discrepancy, method, k, options)
        usual = usual_alphas(GTVMin(whole, 1.0, penalty))
        grid = usual if alphas is None else ascending(alphas)
        losses = np.zeros((len(grid), 2))
        for train, held in splits:
            part = _joined(train, discrepancy, method, k, options)
            for row, alpha in zip(losses, grid, strict=True):
                models = GTVMin(part, float(alpha), penalty).solve()
                for place, rows in enumerate((part, held)):
                    row[place] += np.nanmean(node_losses(rows, models)) / repeats
        trials += [
            GraphTrial(k, float(alpha), float(row[0]), float(row[1]))
            for alpha, row in zip(grid, losses, strict=True)
        ]
    best = min(trials, key=lambda trial: trial.validation)
    chosen = _joined(problem, discrepancy, method, best.k, options)
    assert chosen.graph is not None
    return GraphTuning(
        k=best.k,
        alpha=best.alpha,
        graph=chosen.graph,
        gtv=GTVMin(chosen, best.alpha, penalty),
        trials=tuple(trials),
        seconds=time.perf_counter() - began,
    )


def _ks(
    problem: Problem, method: str, ks: Sequence[int] | None
) -> tuple[int | None, ...]:
    if problem.counts.max() < 2:
        check.refuse("no node has two rows, one to train on and one to hold out")
    if method == "test":
        if ks is not None:
            check.refuse("method='test' has no k to choose; leave out ks")
        return (None,)
    if ks is None:
        return tuple(k for k in _USUAL_KS if k < problem.n_agents - 1) or (1,)
    if not len(ks):
        check.refuse("expected ks with one number to try or more, got none")
    return tuple(check.count(ks=k) for k in ks)


def _joined(
    problem: Problem, discrepancy: str, method: str, k: int | None, options: Any
) -> Problem:
    """The problem on the graph that its own rows give."""
    made = learned(problem, discrepancy, method, k, **options)
    return replace(problem, graph=made)

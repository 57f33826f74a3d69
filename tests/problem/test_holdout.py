"""Rows held out at every node: nothing lost, nothing twice; losses node by node."""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from tacita.problem import folds, hold_out, node_losses


def unequal() -> tacita.Problem:
    """Nodes with 1, 2 and 9 rows, each row with a number of its own."""
    agent = np.repeat([0, 1, 2], [1, 2, 9])
    x = np.stack([np.arange(1.0, 13.0), np.ones(12)], axis=1)
    return tacita.from_arrays(x, np.arange(101.0, 113.0), agent, "linear")


def rows_of(problem: tacita.Problem) -> list[list[tuple[float, float]]]:
    x, y, counts = problem.stacked()
    return [
        sorted(zip(x[i, : counts[i], 0], y[i, : counts[i]], strict=True))
        for i in range(problem.n_agents)
    ]


def test_every_row_is_on_one_side():
    problem = unequal()
    train, held = hold_out(problem, 0.3, seed=1)
    assert held.counts.tolist() == [0, 1, 3]
    parts = zip(rows_of(train), rows_of(held), strict=True)
    together = [sorted(a + b) for a, b in parts]
    assert together == rows_of(problem)
    again, other = hold_out(problem, 0.3, seed=1)[0], hold_out(problem, 0.3, seed=2)[0]
    assert rows_of(again) == rows_of(train) != rows_of(other)


def test_losses_are_those_of_the_nodes_own_rows():
    problem = unequal()
    models = np.array([[1.0, 0.0], [2.0, 3.0], [0.5, -1.0]])
    for part in (problem, *hold_out(problem, 0.4)):
        x, y, counts = part.stacked()
        found = node_losses(part, models)
        for i, m in enumerate(counts):
            if m == 0:
                assert np.isnan(found[i])
            else:
                by_hand = np.mean((x[i, :m] @ models[i] - y[i, :m]) ** 2)
                assert found[i] == pytest.approx(by_hand)


def test_training_uses_what_is_left():
    problem = unequal()
    train, _ = hold_out(problem, 0.3)
    x, y, counts = train.stacked()
    w = np.array([0.3, 2.0])
    total = sum(np.mean((x[i, :m] @ w - y[i, :m]) ** 2) for i, m in enumerate(counts))
    assert train.loss(w) == pytest.approx(total)
    with pytest.raises(tacita.TacitaError, match="share"):
        hold_out(problem, 1.5)


def test_every_row_is_held_out_in_one_fold():
    problem = unequal()
    parts = folds(problem, 4, seed=1)
    assert [held.counts.tolist() for _, held in parts] == [
        *([0, 1, 3], [0, 1, 2], [0, 0, 2], [0, 0, 2])
    ]
    for train, held in parts:
        both = zip(rows_of(train), rows_of(held), strict=True)
        assert [sorted(a + b) for a, b in both] == rows_of(problem)
    for node in (1, 2):
        held = [row for _, part in parts for row in rows_of(part)[node]]
        assert sorted(held) == rows_of(problem)[node]
    with pytest.raises(tacita.TacitaError, match="count"):
        folds(problem, 1)

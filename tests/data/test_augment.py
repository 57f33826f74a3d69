"""Penalties as rows: section 2.5 of the book."""

from __future__ import annotations

import numpy as np
import pytest

from tacita import TacitaError
from tacita.data.augment import between_pairs, noisy_copies, ridge_rows

DICE = np.random.default_rng(0)
X, Y = DICE.normal(size=(20, 3)), DICE.normal(size=20)
ALPHA = 0.3


def ridge(centre=0.0):
    q = X.T @ X / len(X) + ALPHA * np.eye(3)
    return np.linalg.solve(q, X.T @ Y / len(X) + ALPHA * np.full(3, centre))


def least_squares(x, y):
    return np.linalg.lstsq(x, y, rcond=None)[0]


@pytest.mark.parametrize("centre", [None, [1.0, -2.0, 0.5]])
def test_added_rows_have_the_objective_of_ridge_regression(centre):
    x, y = ridge_rows(X, Y, ALPHA, centre)
    middle = np.zeros(3) if centre is None else np.array(centre)
    for w in DICE.normal(size=(5, 3)):
        ours = np.mean((Y - X @ w) ** 2) + ALPHA * np.sum((w - middle) ** 2)
        assert np.isclose(np.mean((y - x @ w) ** 2), ours, rtol=1e-12)
    if centre is None:
        assert np.allclose(least_squares(x, y), ridge())


def test_noisy_copies_tend_to_ridge_regression():
    few = least_squares(*noisy_copies(X, Y, ALPHA, copies=10))
    many = least_squares(*noisy_copies(X, Y, ALPHA, copies=20_000))
    assert np.abs(many - ridge()).max() < 0.005 < np.abs(few - ridge()).max()


def test_rows_between_pairs_have_a_smaller_training_error():
    # Exercise 2.4: no, the error shrinks: residuals of mixtures are mixtures.
    x, y = between_pairs(X, Y, steps=10)
    assert len(x) == 20 * 19 * 10
    w = least_squares(X, Y)
    assert np.mean((y - x @ w) ** 2) < np.mean((Y - X @ w) ** 2)


def test_what_does_not_fit_is_refused():
    with pytest.raises(TacitaError, match="centre"):
        ridge_rows(X, Y, ALPHA, [1.0])
    with pytest.raises(TacitaError, match="centre has 1 NaN"):
        ridge_rows(X, Y, ALPHA, [1.0, np.nan, 0.0])
    with pytest.raises(TacitaError, match="variance"):
        noisy_copies(X, Y, -1.0, 2)

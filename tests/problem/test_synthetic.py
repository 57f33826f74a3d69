"""Synthetic rows: those of scikit-learn, without loading it."""

from __future__ import annotations

import numpy as np
import pytest

from tacita.problem.gaussian_clusters import LARGEST_SEED, two_clusters


@pytest.mark.parametrize("features", [1, 2, 3, 4, 5, 9])
def test_rows_are_those_of_scikit_learn(features: int):
    from sklearn.datasets import make_classification

    for seed in (0, 1, 2, 3, 77, LARGEST_SEED):
        for rows in (2, 3, 60, 201):
            told = min(2, features)
            x, y = make_classification(
                rows,
                features,
                n_informative=told,
                n_redundant=min(2, features - told),
                n_clusters_per_class=1,
                random_state=seed,
            )
            mine = two_clusters(rows, features, seed)
            np.testing.assert_array_equal(mine[0], x)
            np.testing.assert_array_equal(mine[1], y)

"""The weather stations: models of different kinds help each other, on the real rows."""

import os

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import tacita
from tacita import data
from tacita.problem import graph
from tacita.variants import estimator_network

pytestmark = pytest.mark.data


def test_trees_and_ridge_regressions_beat_training_alone():
    if not os.environ.get("TACITA_DATA"):
        pytest.skip("TACITA_DATA names no folder with the data sets")
    fmi = data.load("fmi", table="daily", test_share=0.3)
    kinds = (Ridge(alpha=10.0), DecisionTreeRegressor(max_depth=3, random_state=0))
    near = graph.nearest_neighbours(graph.kilometres(fmi.positions), k=4)
    shared = fmi.x[np.random.default_rng(0).choice(len(fmi.x), 100, replace=False)]
    network = estimator_network(
        fmi.x,
        fmi.y,
        fmi.agent,
        [kinds[i % 2] for i in range(fmi.n_agents)],
        near,
        shared,
    )
    later = (fmi.test_x, fmi.test_y, fmi.test_agent)
    run = tacita.simulate_estimators(
        network, tacita.ModelAgnosticFedRelax(alpha=1.0), 3, validation=later
    )
    # Round 1 is training alone.
    alone = tacita.simulate_estimators(
        network, tacita.ModelAgnosticFedRelax(alpha=0.0), 1
    ).errors(*later)
    together = run.errors(*later)
    assert run.metrics["validation_error"][0] == pytest.approx(alone.mean())
    for half in (slice(0, None, 2), slice(1, None, 2)):
        assert together[half].mean() < 0.9 * alone[half].mean()

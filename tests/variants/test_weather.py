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


def test_exercise_1_3_a_day_predicts_the_next_ones_maximum():
    """The book's station a month later: April 2023, hour by hour, is shipped."""
    if not os.environ.get("TACITA_DATA"):
        pytest.skip("TACITA_DATA names no folder with the data sets")
    april = data.load("fmi", table="kustavi", features="hour")
    hour = april.x[:, -1].astype(int)
    day = np.cumsum(np.diff(hour, prepend=-1) < 0)
    whole = [d for d in range(30) if np.sum(day == d) == 24]
    assert len(whole) == 29  # an hour is missing in one of thirty days
    highest = april.x[:, april.feature_names.index("Maximum temperature [°C]")]
    pairs = [d for d in whole if d + 1 in whole]
    x = np.stack([april.y[day == d] for d in pairs])
    y = np.array([highest[day == d + 1].max() for d in pairs])
    assert x.shape == (27, 24)
    problem = tacita.from_arrays(x, y, np.zeros(27, int), "linear")
    expected = np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(problem.solve(), expected, rtol=1e-6)
    # Fewer days than hours, as with the book's 144 readings a day in 28 days: X'X has
    # no inverse, and the pseudo-inverse gives the shortest of many perfect fits.
    few = np.linalg.pinv(x[:10]) @ y[:10]
    np.testing.assert_allclose(x[:10] @ few, y[:10], atol=1e-8)
    assert np.linalg.matrix_rank(x[:10].T @ x[:10]) == 10 < 24
    assert np.linalg.matrix_rank(x.T @ x) == 24

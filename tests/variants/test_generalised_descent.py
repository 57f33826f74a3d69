"""Algorithm 3 of the book: gradient steps for any regressor."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import tacita
from tacita.variants import generalised_descent

DICE = np.random.default_rng(0)
X = DICE.normal(size=(30, 2))
Y = X @ [1.0, -2.0] + 0.1 * DICE.normal(size=30)
#: Their second moments are the identity, as (95) assumes.
POINTS = np.sqrt(2) * np.eye(2)


def test_a_linear_model_takes_proximal_steps():
    plain = LinearRegression(fit_intercept=False)
    eta, w = 0.2, np.zeros(2)
    for steps in (1, 2, 3):
        # (93): (1/m) X'(Xw - y) + (w - w_old)/(2 eta) = 0
        left = X.T @ X / 30 + np.eye(2) / (2 * eta)
        w = np.linalg.solve(left, X.T @ Y / 30 + w / (2 * eta))
        found = generalised_descent(plain, X, Y, POINTS, eta, most_steps=steps)
        assert np.allclose(found.estimator.coef_, w)
    end = generalised_descent(plain, X, Y, POINTS, eta, least_change=1e-14)
    assert np.allclose(end.estimator.coef_, np.linalg.lstsq(X, Y, rcond=None)[0])
    assert len(end.errors) < 100 and np.all(np.diff(end.errors) <= 1e-12)
    # When the steps end does not depend on the unit of the labels.
    usual, tiny = (
        generalised_descent(plain, X, unit * Y, POINTS, eta) for unit in (1.0, 1e-6)
    )
    assert len(usual.errors) == len(tiny.errors) > 5


def test_a_tree_learns_step_by_step():
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    found = generalised_descent(tree, X, Y, X, step_size=0.5)
    assert found.errors[-1] < 0.7 * found.errors[0] < np.mean(Y**2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"test_points": np.zeros((0, 1))}, "test points, got 2 and 0"),
        ({"x": [[1.0], [np.nan]]}, "x has 1 NaN"),
        ({"y": ["a", "b"]}, "expected y numeric"),
        ({"estimator": "tree"}, "expected estimator with fit and predict"),
    ],
)
def test_what_cannot_be_fitted_is_refused(change, words):
    given = dict(
        estimator=LinearRegression(),
        x=[[1.0], [2.0]],
        y=[1.0, 2.0],
        test_points=[[1.0]],
        step_size=1.0,
    )
    with pytest.raises(tacita.TacitaError, match=words):
        generalised_descent(**{**given, **change})

"""Gradient steps for models without parameters: trees, forests, neighbours.

A. Jung, "Federated Learning: From Theory to Practice", Algorithm 3: the distance of two
parameter vectors in a proximal step is replaced by that of predictions on test points,

    h <- argmin_h (1/(2 eta m')) sum_r (h(x'_r) - h_old(x'_r))^2 + f(h),         (96)

with f the mean squared error on the training rows. The step is a weighted fit to both
sets of rows, so any regressor with `fit` and `predict` can take it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.variants.model_agnostic import augmentation, fit_weighted


class Trained(NamedTuple):
    """A fitted model and what its training was like.

    Attributes:
        estimator: The last hypothesis.
        errors: The mean squared error on the training rows after every step.
    """

    estimator: Any
    errors: np.ndarray


def generalised_descent(
    estimator: Any,
    x: Any,
    y: Any,
    test_points: Any,
    step_size: float,
    *,
    least_change: float = 1e-6,
    most_steps: int = 100,
    seed: int = 0,
) -> Trained:
    """Train a regressor by generalised gradient steps, from the zero hypothesis.

    Args:
        estimator: A scikit-learn regressor; it is copied, not changed.
        x: Training features, (m, d).
        y: Their labels, (m,).
        test_points: Features on which hypotheses are compared; labels are not needed.
        step_size: eta; the larger, the nearer is one step to plain fitting.
        least_change: Ends the steps: where the training error changes by less,
            relative to its size and that of the zero hypothesis together.
        most_steps: Ends them as well.
        seed: For estimators that draw at random.
    """
    check.positive(step_size=step_size)
    check.not_negative(least_change=least_change)
    if not all(callable(getattr(estimator, do, None)) for do in ("fit", "predict")):
        check.refuse(
            "expected estimator with fit and predict, such as scikit-learn's "
            f"regressors, got {estimator!r}"
        )
    x = np.asarray(check.finite(x=x), float)
    points = np.asarray(check.finite(test_points=test_points), float)
    check.shape((None, None), x=x)
    check.shape((None, x.shape[1]), test_points=points)
    y = np.asarray(check.shape((len(x),), y=check.finite(y=y)), float)
    if not len(x) or not len(points):
        check.refuse(
            f"expected training rows and test points, got {len(x)} and {len(points)}"
        )
    random = np.random.default_rng(check.count(0, seed=seed))
    # (96) times m: weight one on training rows, m/(2 eta m') on test points.
    each = len(x) / (2 * step_size * len(points))
    # An error that falls to zero has no size of its own there; the first is that of 0.
    floor = float(np.mean(y**2))
    said, errors, fitted = np.zeros(len(points)), [], None
    for _ in range(check.count(most_steps=most_steps)):
        new_x, new_y, new_weight = augmentation(points, said, each)
        weight = np.concatenate([np.ones(len(x)), new_weight])
        rows, labels = np.concatenate([x, new_x]), np.concatenate([y, new_y])
        fitted = fit_weighted(estimator, rows, labels, weight, random)
        said = np.asarray(fitted.predict(points), float)
        errors.append(float(np.mean((np.asarray(fitted.predict(x)) - y) ** 2)))
        if len(errors) > 1:
            change = abs(errors[-2] - errors[-1])
            if change <= least_change * (floor + errors[-1]):
                break
    return Trained(fitted, np.array(errors))

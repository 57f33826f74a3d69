"""Linear regression under a probabilistic model: risks, bounds and baselines.

A. Jung, "Federated Learning: From Theory to Practice", chapter 2. Labels follow
y = x.w + noise with noise of standard deviation sigma, (11); equation numbers are the
book's. Baselines E_ref for `tacita.theory.diagnosis` are risks that nothing beats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from tacita import check


def risk(w: Any, truth: Any, noise_std: float) -> float:
    """The expected squared error of a linear hypothesis, (12), for x ~ N(0, I).

    >>> risk([1.0, 0.0], [1.0, 2.0], noise_std=3.0)
    13.0
    """
    model = np.asarray(check.finite(w=w), float)
    target = np.asarray(check.finite(truth=truth), float)
    off = model - check.shape(model.shape, truth=target)
    return float(np.sum(off**2) + check.not_negative(noise_std=noise_std) ** 2)


def estimation_error_bound(x: Any, noise: Any) -> float:
    """Prop. 2.1, (16): ||w - truth||^2 of least squares is at most this.

    (4/m^2) ||X'n||^2 / lambda_1^2 with lambda_1 the smallest eigenvalue of Q = X'X/m.
    A quarter of it holds as well: Q (w - truth) = X'n/m. The book's proof compares
    values of the objective where comparing gradients would do.

    Args:
        x: X, the features, (m, d), of full rank.
        noise: n, the noise of every label, (m,).

    >>> estimation_error_bound([[1.0], [1.0]], [1.0, 1.0])
    4.0
    """
    x, least = _full_rank(x)
    n = np.asarray(check.shape((len(x),), noise=check.finite(noise=noise)), float)
    return float(4 / len(x) ** 2 * np.sum((x.T @ n) ** 2) / least**2)


def _full_rank(x: Any) -> tuple[np.ndarray, float]:
    x = np.asarray(check.finite(x=x), float)
    check.shape((None, None), x=x)
    if not x.size:
        check.refuse(f"expected x with rows and columns, got shape {x.shape}")
    values = np.linalg.eigvalsh(x.T @ x / len(x))
    if values[0] <= 1e-12 * max(values[-1], 1e-300):
        check.refuse("expected x of full rank, got columns that depend on each other")
    return x, float(values[0])


def minimax_risk(noise_std: float, rows: int, features: int) -> float:
    """What no method beats for every truth, with x ~ N(0, C): exercise 2.1.

    sigma^2 (1 + d/(m - d - 1)), which least squares reaches; infinite below m = d + 2,
    but for labels without noise, of which d rows tell the truth.

    >>> minimax_risk(2.0, rows=12, features=1)
    4.4
    """
    check.not_negative(noise_std=noise_std)
    spare = check.count(rows=rows) - check.count(features=features) - 1
    if spare > 0 or (noise_std == 0 and rows >= features):
        return noise_std**2 * (1 + features / max(spare, 1))
    return np.inf


def bayes_risk(covariance: Any) -> float:
    """The least squared error where (x, y) is Gaussian with this covariance, y last.

    var(y) - c' C^+ c: what is left of y when x is known. A baseline for regressions.

    >>> bayes_risk([[1.0, 0.6], [0.6, 1.0]])
    0.64
    """
    full = np.asarray(check.finite(covariance=covariance), float)
    check.shape((None, None), covariance=full)
    check.shape((len(full), len(full)), covariance=full)
    symmetric = np.allclose(full, full.T, rtol=1e-9, atol=1e-12 * np.trace(full))
    if not symmetric or np.linalg.eigvalsh(full)[0] < -1e-9 * np.trace(full):
        check.refuse(
            "expected covariance symmetric and positive semidefinite, got another"
        )
    shared = full[:-1, -1]
    return float(full[-1, -1] - shared @ np.linalg.pinv(full[:-1, :-1]) @ shared)


def bayes_error(distance: float, share: float = 0.5) -> float:
    """The least share of wrong classes where both classes are Gaussian and alike.

    Args:
        distance: Mahalanobis distance of the two means, of one common covariance.
        share: Of the first class among the rows, in (0, 1).

    >>> bayes_error(0.0, 0.3), round(bayes_error(2.0), 4)
    (0.3, 0.1587)
    """
    check.not_negative(distance=distance)
    check.inside_unit(share=share)
    if distance == 0:
        return min(share, 1 - share)
    # The log of the classes' odds shifts the cut away from the middle.
    shift = np.log(share / (1 - share)) / distance
    wrong_first = norm.cdf(-distance / 2 - shift)
    wrong_second = norm.cdf(-distance / 2 + shift)
    return float(share * wrong_first + (1 - share) * wrong_second)


def online_risk(
    step_sizes: Any, features: int, noise_std: float, start: float
) -> np.ndarray:
    """The risk of online gradient descent after every row: exercise 4.3.

    w <- w + 2 eta_t x_t (y_t - w.x_t) with x ~ N(0, I) moves the mean of
    e = ||w - truth||^2, exactly, by

        e <- (1 - 4 eta + 4 eta^2 (d + 2)) e + 4 eta^2 sigma^2 d,

    and the risk is e + sigma^2, (12).

    Args:
        step_sizes: eta_t of every row.
        features: d, how many features a row has.
        noise_std: sigma, of the labels' noise.
        start: ||w - truth||^2 before the first row.

    >>> online_risk([0.0, 0.5], features=1, noise_std=1.0, start=2.0).tolist()
    [3.0, 6.0]
    """
    check.count(features=features)
    check.not_negative(noise_std=noise_std)
    error, found = float(check.not_negative(start=start)), []
    for eta in np.ravel(check.not_negative(step_sizes=np.asarray(step_sizes, float))):
        kept = 1 - 4 * eta + 4 * eta**2 * (features + 2)
        error = kept * error + 4 * eta**2 * noise_std**2 * features
        found.append(error + noise_std**2)
    return np.array(found)

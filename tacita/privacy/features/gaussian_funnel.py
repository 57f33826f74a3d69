"""The privacy funnel of Gaussians: the best single linear feature.

A. Jung, "Federated Learning: From Theory to Practice", (183), for z = v'x with x, s, y
jointly normal. In coordinates in which the features are white,

    a = C^(-1/2) c_s / sd(s),   b = C^(-1/2) c_y / sd(y),   r = sqrt(1 - e^(-2 rate)),

I(y; z) >= rate is |<b, z>| >= r for a unit vector z, and the least |corr(s, z)| is

    max(0, t |<a, b>|/||b|| - sqrt(1 - t^2) ||a_perp||),   t = r/||b||,

a_perp being what a has across b. Up to the rate of b without its part along a nothing
leaks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.privacy import inputs


class GaussianFunnel(NamedTuple):
    """The best linear feature for a rate.

    Attributes:
        direction: v of z = v'x, with variance 1.
        leak: I(s; z), in nats.
        kept: I(y; z), in nats.
    """

    direction: np.ndarray
    leak: float
    kept: float


def gaussian_funnel(
    covariance: Any,
    c_s: Any,
    c_y: Any,
    rate: float,
    *,
    var_s: float = 1.0,
    var_y: float = 1.0,
) -> GaussianFunnel:
    """The linear feature with the least I(s; z) among those with I(y; z) >= rate.

    Args:
        covariance: C, of the features; positive definite.
        c_s: Their covariances with the private attribute.
        c_y: Their covariances with the label.
        rate: What z has to tell of y, in nats.
        var_s: Variance of the private attribute.
        var_y: Variance of the label.

    >>> free = gaussian_funnel(np.eye(2), [0.6, 0.0], [0.4, 0.4], rate=0.05)
    >>> free.leak, free.direction.round(6).tolist()
    (0.0, [0.0, 1.0])
    """
    whiten = _inverse_root(covariance)
    rate = inputs.not_negative(rate=rate)
    sd_s, sd_y = (
        math.sqrt(inputs.positive(**{name: value}))
        for name, value in (("var_s", var_s), ("var_y", var_y))
    )
    a = whiten @ _column(len(whiten), c_s=c_s) / sd_s
    b = whiten @ _column(len(whiten), c_y=c_y) / sd_y
    for name, told in (("c_s", a), ("c_y", b)):
        if np.linalg.norm(told) >= 1:
            check.refuse(f"{name} is more than the features and its variance allow")
    most = _nats(float(np.linalg.norm(b)))
    if rate > most + 1e-12:
        check.refuse(f"expected rate <= I(y; x) = {most:.6g}, got rate={rate}")
    z = _best(a, b, math.sqrt(-math.expm1(-2 * rate)))
    return GaussianFunnel(whiten @ z, _nats(float(a @ z)), _nats(float(b @ z)))


def _best(a: np.ndarray, b: np.ndarray, r: float) -> np.ndarray:
    """The unit vector with <b, z> >= r and the least |<a, z>|."""
    along_a = a * (a @ b) / (a @ a) if a @ a > 0 else 0 * b
    free = b - along_a
    length = np.linalg.norm(free)
    if length > 1e-12 and length >= r:
        z = free / length
        return z - a * (a @ z) / (a @ a) if a @ a > 0 else z
    size = np.linalg.norm(b)
    if size == 0:
        return _across(a, np.zeros_like(a))
    t = min(1.0, r / size) if len(b) > 1 else 1.0
    forward = b / size
    side = a - forward * (a @ forward)
    length = np.linalg.norm(side)
    sideways = side / length if length > 1e-12 else _across(b, side)
    sign = math.copysign(1.0, a @ forward)
    return t * forward - sign * math.sqrt(1 - t * t) * sideways


def _across(vector: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Any unit vector across another; `otherwise` where there is only one direction."""
    if len(vector) == 1:
        return otherwise if vector.any() else np.ones(1)
    return np.linalg.svd(vector[None])[2][-1]


def _nats(correlation: float) -> float:
    """-log(1 - corr^2)/2; nothing where rounding is all there is."""
    told = 0.0 if abs(correlation) < 1e-15 else correlation
    return -0.5 * math.log1p(-told * told) + 0.0


def _inverse_root(covariance: Any) -> np.ndarray:
    """C^(-1/2)."""
    matrix = np.asarray(covariance, float)
    check.shape((len(matrix), len(matrix)), covariance=matrix)
    values, vectors = np.linalg.eigh(matrix)
    if values[0] <= 0:
        check.refuse("expected covariance positive definite; leave features out")
    return vectors / np.sqrt(values) @ vectors.T


def _column(length: int, **named: Any) -> np.ndarray:
    ((name, value),) = named.items()
    column = np.asarray(value, float)
    check.shape((length,), **{name: column})
    return column

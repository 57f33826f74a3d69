"""Extreme eigenvalues of a graph's Laplacian, also of large sparse graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.linalg import splu

#: Up to this many nodes all eigenvalues are computed at once.
_DENSE = 500
_MAX_STEPS = 2000
_CHECK_EVERY = 20
_TOLERANCE = 1e-6


class Spectrum(NamedTuple):
    """Extreme eigenvalues of the Laplacian and extreme weighted degrees."""

    lambda_2: float
    lambda_n: float
    degree_min: float
    degree_max: float


def laplacian_spectrum(laplacian: Any, connected: bool) -> Spectrum:
    """Return lambda_2, lambda_n and the extremes of the diagonal."""
    n, degrees = laplacian.shape[0], laplacian.diagonal()
    if n <= _DENSE:
        values = np.linalg.eigvalsh(laplacian.toarray())
        lambda_2, lambda_n = float(values[min(1, n - 1)]), float(values[-1])
    else:
        lambda_n, _ = _largest(laplacian.dot, n)
        lambda_2 = _second(laplacian, lambda_n) if connected else 0.0
    lambda_2 = lambda_2 if connected else 0.0
    return Spectrum(lambda_2, lambda_n, float(degrees.min()), float(degrees.max()))


def _largest(matvec: Any, n: int, floor: float = 0.0) -> tuple[float, float]:
    """Return the largest eigenvalue of a symmetric matrix and a bound of its error.

    Lanczos steps without reorthogonalisation: only extreme eigenvalues are asked for,
    and these do not suffer. Stops at an error of 1e-6 of the distance to `floor`.
    """
    # A fixed start vector, so that the same graph gives the same last digit.
    v = np.random.default_rng(0).standard_normal(n)
    v, before, beta = v / _norm(v), np.zeros(n), 0.0
    diagonal, beside = [], []
    while True:
        w = matvec(v) - beta * before
        diagonal.append(float((w * v).sum()))
        w -= diagonal[-1] * v
        beta = _norm(w)
        done = len(diagonal) == _MAX_STEPS or beta <= 1e-14 * max(diagonal)
        if done or len(diagonal) % _CHECK_EVERY == 0:
            last = len(diagonal) - 1
            value, vector = eigh_tridiagonal(
                np.array(diagonal),
                np.array(beside),
                select="i",
                select_range=(last,) * 2,
            )
            top, error = float(value[0]), beta * abs(float(vector[-1, 0]))
            if done or error <= _TOLERANCE * abs(top - floor):
                return top, error
        before, v = v, w / beta
        beside.append(beta)


def _norm(v: np.ndarray) -> float:
    # Threads of the linear algebra library cost more than they save on such products.
    return float(np.sqrt((v * v).sum()))


def _second(laplacian: Any, lambda_n: float) -> float:
    """Return lambda_2 of a connected graph.

    Lanczos steps find it on well connected graphs. Where they are slow (long rings,
    grids) a sparse factorisation is cheap, and the inverse is iterated instead.
    """
    n = laplacian.shape[0]

    def flipped(v: np.ndarray) -> np.ndarray:
        w = lambda_n * v - laplacian @ v
        return w - w.mean()  # without the constant vector, whose eigenvalue is zero

    top, error = _largest(flipped, n, floor=lambda_n)
    if error <= _TOLERANCE * (lambda_n - top):
        return lambda_n - top
    return 1 / _largest(_pseudo_inverse(laplacian), n)[0]


def _pseudo_inverse(laplacian: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Return v -> L^+ v of a connected graph, with one sparse factorisation."""
    n = laplacian.shape[0]
    # L x = v has a solution for v of mean zero; holding one node at zero makes it
    # unique, and the node with most edges leaves the sparsest rest.
    keep = np.delete(np.arange(n), int(laplacian.diagonal().argmax()))
    factors = splu(
        laplacian[keep][:, keep].tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def solve(v: np.ndarray) -> np.ndarray:
        x = np.zeros(n)
        x[keep] = factors.solve((v.ravel() - v.mean())[keep])
        return x - x.mean()

    return solve

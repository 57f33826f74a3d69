"""Extreme eigenvalues of a graph's Laplacian, also of large sparse graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu

#: Up to this many nodes all eigenvalues are computed at once.
_DENSE = 500


class Spectrum(NamedTuple):
    """Extreme eigenvalues of the Laplacian and extreme weighted degrees."""

    lambda_2: float
    lambda_n: float
    degree_min: float
    degree_max: float


def laplacian_spectrum(laplacian: Any, connected: bool) -> Spectrum:
    """Return 0 <= lambda_2 <= lambda_n and the extremes of the diagonal."""
    n, degrees = laplacian.shape[0], laplacian.diagonal()
    low, high = float(degrees.min()), float(degrees.max())
    if laplacian.nnz <= n:  # no edges
        return Spectrum(0.0, 0.0, low, high)
    if n <= _DENSE:
        values = np.linalg.eigvalsh(laplacian.toarray())
        lambda_2, lambda_n = float(values[1]), float(values[-1])
    else:
        lambda_n = _extreme(laplacian.dot, n, "LA", tol=1e-8)
        lambda_2 = _second(laplacian, lambda_n) if connected else 0.0
    return Spectrum(lambda_2 if connected else 0.0, lambda_n, low, high)


def _extreme(matvec: Any, n: int, which: str, **options: Any) -> float:
    """Return the largest ("LA") or smallest ("SA") eigenvalue, by Lanczos steps."""
    operator: Any = LinearOperator  # its stubs do not know matvec=
    values = eigsh(
        operator((n, n), matvec=matvec, dtype=np.float64),
        k=1,
        which=which,
        # A fixed start vector, so that the same graph gives the same last digit.
        v0=np.random.default_rng(0).standard_normal(n),
        return_eigenvectors=False,
        **options,
    )
    return float(values[0])


def _second(laplacian: Any, lambda_n: float) -> float:
    """Return lambda_2 of a connected graph.

    Lanczos steps find it on well connected graphs. Where they are slow (long rings,
    grids) a sparse factorisation is cheap, and the inverse is iterated instead.
    """
    n = laplacian.shape[0]
    try:
        # The constant vector's eigenvalue moves from 0 to lambda_n, out of the way.
        moved = lambda v: laplacian @ v + lambda_n * v.mean()  # noqa: E731
        return _extreme(moved, n, "SA", ncv=40, maxiter=40, tol=1e-7)
    except ArpackNoConvergence:
        return 1 / _extreme(_pseudo_inverse(laplacian), n, "LA", tol=1e-9)


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

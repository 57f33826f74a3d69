"""Strong convexity and smoothness of every agent's loss, from its rows or a bound.

For a generalised linear model the Hessian of the mean loss is X^T D X / m with the
entries of D between the model's curvature bounds, so its eigenvalues lie between
`c_min * eig_min(X^T X / m)` and `c_max * eig_max(X^T X / m)`. If no row is longer than
B, whatever the rows are, they lie between 0 and `c_max * B^2`.
An agent's weight multiplies both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.problem.model.linear import Huber, Kinked, Linear, Logistic, Softmax
from tacita.problem.model.per_agent import PerAgent, kinds_of
from tacita.problem.population import Population

#: Agents whose Gram matrices are held in memory at once.
_BLOCK_BYTES = 2**28


class Moduli(NamedTuple):
    """Per-agent constants; the losses' Hessians have eigenvalues between them."""

    strong_convexity: np.ndarray
    smoothness: np.ndarray

    @property
    def smallest(self) -> float:
        """A strong convexity that holds for every agent."""
        return float(self.strong_convexity.min())

    @property
    def largest(self) -> float:
        """A smoothness that holds for every agent."""
        return float(self.smoothness.max())

    @property
    def usual(self) -> float:
        """The median smoothness of the agents whose loss is not flat."""
        curved = self.smoothness[self.smoothness > 0]
        return float(np.median(curved)) if len(curved) else 0.0


def of(population: Population) -> Moduli:
    """Moduli of every agent's f_i, regulariser included, from the rows."""
    _require_known(population)
    return _moduli(population, *_gram_eigenvalues(population))


def within(population: Population, bound: float, n_agents: int) -> Moduli:
    """Moduli that hold for any rows no longer than `bound`, the same for all agents."""
    _require_known(population)
    return _moduli(population, np.zeros(n_agents), np.full(n_agents, bound**2))


def of_rows(population: Population) -> np.ndarray:
    """The smoothness of every agent's steepest row, regulariser included."""
    _require_known(population)
    x = np.asarray(population.rows.x)
    rows = "ijk,ijk->ik" if population.by_feature else "ijk,ijk->ij"
    squares = np.einsum(rows, x, x, dtype=np.float64)  # and no copy of all rows
    longest = squares.max(axis=1)  # padding is zero
    return _moduli(population, np.zeros_like(longest), longest).smoothness


def usual_curvature(population: Population) -> float:
    """`Moduli.usual` of the agents whose losses have no kinks.

    Where all losses have, as if they were squares, which kinks are over a length like
    that of the labels.
    """
    low, high = _gram_eigenvalues(population)
    if isinstance(population.model, Kinked):
        length = np.sqrt(np.mean(np.square(np.asarray(population.rows.y, float))))
        return Moduli(low, high).usual / float(length or 1.0)
    return _moduli(population, low, high).usual


def usual_within(population: Population, bound: float) -> float:
    """The same for rows no longer than `bound`, whatever they are: labels of size 1."""
    each = [getattr(m, "curvature_bounds", (0, 0)) for m in kinds_of(population.model)]
    curved = [high for _, high in each if high > 0]
    if not curved:
        return bound**2
    most = float(population.regulariser.curvature_bounds[1])
    return float(np.median(curved)) * bound**2 + most


def lowest_curvature(population: Population) -> np.ndarray:
    """Strong convexity of every agent's loss; kinks have none, but a regulariser."""
    low, high = _gram_eigenvalues(population)
    if isinstance(population.model, Kinked):
        none = np.zeros_like(low)
        return none + float(population.regulariser.curvature_bounds[0])
    return _moduli(population, low, high).strong_convexity


def require_squares(rows: np.ndarray) -> None:
    """Refuse features whose squares, added up, are beyond the largest number."""
    with np.errstate(over="ignore"):
        squares = float(np.vdot(rows, rows))
    if not np.isfinite(squares):
        check.refuse(
            f"features of up to {np.abs(rows).max():g} have squares that are not "
            "finite; scale the features"
        )


def _require_known(population: Population) -> None:
    for model in kinds_of(population.model):
        if not isinstance(model, Linear | Huber | Logistic | Softmax):
            check.refuse(
                f"the smoothness of {_told(model)} is not known; give step_size=, or "
                "the rho= or eta= of exact local answers, yourself"
            )


def _told(model: Any) -> str:
    return getattr(model, "name", type(model).__name__)


def _moduli(population: Population, low: np.ndarray, high: np.ndarray) -> Moduli:
    """From the smallest and the largest eigenvalue of X_i^T X_i / m_i of each agent."""
    model: Any = population.model
    if isinstance(model, PerAgent):
        c_min, c_max = model.curvature_bounds_of(np.asarray(population.rows.kind))
    else:
        c_min, c_max = model.curvature_bounds
    r_min, r_max = population.regulariser.curvature_bounds
    weight = population.rows.weight
    rho = 1.0 if weight is None else np.asarray(weight, float)
    return Moduli(rho * c_min * low + float(r_min), rho * c_max * high + float(r_max))


def _gram_eigenvalues(population: Population) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest eigenvalue of X_i^T X_i / m_i for every agent i."""
    x = np.asarray(population.rows.x)
    x = x.swapaxes(1, 2) if population.by_feature else x
    counts = np.asarray(population.counts)
    n, rows, width = x.shape
    # The smaller of X^T X and X X^T has the same non-zero eigenvalues.
    wide = width > rows
    side = min(rows, width)
    low, high = np.empty(n), np.empty(n)
    block = max(1, _BLOCK_BYTES // (8 * side * side))
    for first in range(0, n, block):
        part = x[first : first + block].astype(np.float64)
        require_squares(part)
        gram = part @ part.mT if wide else part.mT @ part
        eigenvalues = np.linalg.eigvalsh(gram)
        m = np.maximum(counts[first : first + block], 1)
        low[first : first + block] = eigenvalues[:, 0] / m
        high[first : first + block] = eigenvalues[:, -1] / m
    short = (counts < width) | wide
    return np.where(short, 0.0, np.maximum(low, 0.0)), high

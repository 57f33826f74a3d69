"""Means and covariances of rows as a model: sums over agents become a run.

With z = (x, y) and v(z) the entries of z and of the upper triangle of z z', those off
the diagonal times sqrt(2), the loss of a row is ||w - v(z)||^2 / 2. The optimum is the
mean of v over agents, and one gradient step of size 1 from zero reaches it: clipping,
noise, secure sums, ledgers and federations then are those of any other run, of one
round. A row with ||z|| <= B has ||v|| <= B sqrt(1 + B^2), see `longest`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check


class MeanAndCovariance(NamedTuple):
    """Of the features and, last, the label."""

    mean: np.ndarray
    covariance: np.ndarray


@dataclass(frozen=True)
class Moments:
    """The means of rows (x, y) and of their products.

    Attributes:
        features: Numbers in x.
    """

    features: int

    @property
    def dim(self) -> int:
        """As many as k means and k (k + 1)/2 products of k = features + 1 numbers."""
        k = self.features + 1
        return k + k * (k + 1) // 2

    @property
    def classes(self) -> int | None:
        """None: y is a number."""
        return None

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """||w - v(z)||^2 / 2."""
        z = jnp.concatenate([x, y[:, None]], axis=1)
        products = z[:, self._first] * z[:, self._second] * self._twice
        return jnp.sum((w - jnp.concatenate([z, products], axis=1)) ** 2, axis=1) / 2

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """sum_k weight_k (w - v(z_k))."""
        z = jnp.concatenate([x, y[:, None]], axis=1)
        weights = jnp.broadcast_to(weights, y.shape)
        products = (weights[:, None] * z).T @ z
        upper = products[self._first, self._second] * self._twice
        return jnp.sum(weights) * w - jnp.concatenate([weights @ z, upper])

    def predict(self, w: Array, x: Array) -> Array:
        """The y of the best linear reader by these moments."""
        k, mean = self.features, w[: self.features + 1]
        upper = jnp.zeros((k + 1, k + 1), w.dtype)
        upper = upper.at[self._first, self._second].set(w[k + 1 :] / self._twice)
        covariance = upper + jnp.triu(upper, 1).T - jnp.outer(mean, mean)
        slope = jnp.linalg.pinv(covariance[:k, :k], hermitian=True) @ covariance[:k, k]
        return mean[k] + (x - mean[:k]) @ slope

    def start(self) -> np.ndarray:
        """Zero."""
        return np.zeros(self.dim)

    def read(self, w: Any) -> MeanAndCovariance:
        """Mean and covariance of (x, y) out of a parameter vector.

        >>> Moments(1).read([1.0, 2.0, 1.5, 3 * 2**0.5, 8.0]).covariance.round(9)
        array([[0.5, 1. ],
               [1. , 4. ]])
        """
        found = np.asarray(w, float)
        check.shape((self.dim,), w=found)
        k = self.features + 1
        mean, second = found[:k], np.zeros((k, k))
        second[self._first, self._second] = found[k:] / self._twice
        second = second + np.triu(second, 1).T
        return MeanAndCovariance(mean, second - np.outer(mean, mean))

    def longest(self, bound: float) -> float:
        """How long v(z) is for rows (x, y) that are no longer than `bound`.

        The norm to clip to: rows within the bound are not clipped then.
        """
        return float(check.positive(bound=bound)) * math.hypot(1.0, bound)

    @property
    def _first(self) -> np.ndarray:
        return np.triu_indices(self.features + 1)[0]

    @property
    def _second(self) -> np.ndarray:
        return np.triu_indices(self.features + 1)[1]

    @property
    def _twice(self) -> np.ndarray:
        """sqrt(2) for what stands twice in z z'."""
        return np.where(self._first == self._second, 1.0, math.sqrt(2.0))

"""A direction that tells two classes apart and says little of a private attribute.

A. Jung, "Federated Learning: From Theory to Practice", exercise 9.2: classes y = -1, +1
with means mu_y, private attributes s = F x. z = a'x of variance a'C a = 1 has
(a'gap)^2/4 of it from the classes, and a'C F'(F C F')^-1 F C a from s. Their
difference, the second `strength` times, is largest at an eigenvector.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita import check
from tacita.privacy import inputs


def private_direction(
    mean_gap: Any, covariance: Any, attribute: Any, strength: float
) -> np.ndarray:
    """The direction a with a'C a = 1 of the largest difference; a'gap >= 0.

    Args:
        mean_gap: Mean of the features of class +1 less that of class -1.
        covariance: C, of the features; positive definite.
        attribute: F of s = F x, (attributes, features).
        strength: What privacy is worth; 0 is linear discriminant analysis.

    >>> private_direction([1.0, 1.0], np.eye(2), [[1.0, 0.0]], 9.0).round(2).tolist()
    [0.03, 1.0]
    """
    gap, c = np.asarray(mean_gap, float), np.asarray(covariance, float)
    f = np.atleast_2d(np.asarray(attribute, float))
    check.shape((len(gap), len(gap)), covariance=c)
    check.shape((None, len(gap)), attribute=f)
    strength = inputs.not_negative(strength=strength)
    values, vectors = np.linalg.eigh(c)
    if values[0] <= 0:
        check.refuse("expected covariance positive definite; leave features out")
    whiten = vectors / np.sqrt(values) @ vectors.T
    told = f @ c
    private = told.T @ np.linalg.pinv(told @ f.T) @ told
    balance = whiten @ (np.outer(gap, gap) / 4 - strength * private) @ whiten
    best = whiten @ np.linalg.eigh(balance)[1][:, -1]
    return best if best @ gap >= 0 else -best

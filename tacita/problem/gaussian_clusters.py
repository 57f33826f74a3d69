"""Two Gaussian clusters, one per class: the rows of scikit-learn's generator.

The draws are those of `sklearn.datasets.make_classification` with one cluster per
class, bit for bit (tests/problem/test_synthetic.py), made without scikit-learn, which
takes longer to import than a first run to compute. Design: I. Guyon, "Design of
experiments for the NIPS 2003 variable selection benchmark".
"""

from __future__ import annotations

import numpy as np

#: Of the generator, which takes 32 bits.
LARGEST_SEED = 2**32 - 1
#: How many labels are drawn anew.
_FLIPPED = 0.01


def two_clusters(rows: int, features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (rows, features) and labels 0 or 1.

    Up to two features tell the classes apart, up to two more mix those, the others are
    noise. The order of the draws is what makes the rows what they are.
    """
    rng = np.random.RandomState(seed)
    telling = min(2, features)
    mixed = min(2, features - telling)
    noise = features - telling - mixed
    centres = 2.0 * _corners(rng, telling) - 1
    split = rows - rows // 2  # the first class has one row more if they are odd
    y = (np.arange(rows) >= split).astype(int)

    x = np.zeros((rows, features))
    x[:, :telling] = rng.standard_normal((rows, telling))
    for label, own in enumerate((slice(split), slice(split, None))):
        shape = _uniform(rng, (telling, telling))
        x[own, :telling] = np.dot(x[own, :telling], shape) + centres[label]
    if mixed:
        shape = _uniform(rng, (telling, mixed))
        x[:, telling : telling + mixed] = np.dot(x[:, :telling], shape)
    if noise:
        x[:, -noise:] = rng.standard_normal((rows, noise))

    flipped = rng.uniform(size=rows) < _FLIPPED
    y[flipped] = rng.randint(2, size=flipped.sum())

    order, columns = np.arange(rows), np.arange(features)
    rng.shuffle(order)
    rng.shuffle(columns)
    return np.ascontiguousarray(x[np.ix_(order, columns)]), y[order]


def _uniform(rng: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers in [-1, 1)."""
    return 2 * rng.uniform(size=shape) - 1


def _corners(rng: np.random.RandomState, dimensions: int) -> np.ndarray:
    """Two different corners of a unit cube of one or two dimensions."""
    chosen = [0, 1] if dimensions == 1 else rng.permutation(4)[:2]
    return np.array([[corner >> 1, corner & 1] for corner in chosen])[:, -dimensions:]

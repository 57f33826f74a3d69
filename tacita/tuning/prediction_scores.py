"""How good predictions are: of every node, and of all rows together.

Regressions: mean absolute error, root mean squared error, R^2 = 1 - (sum of squared
errors)/(sum of squares about the mean). Classes: accuracy, F1 (the mean over classes of
2 TP / (2 TP + FP + FN), over those that occur), AUC (the chance that a row of the class
is scored above another one, ties by half; of more than two classes the mean over each
against the rest), and the confusion matrix. What the rows of a node do not determine
is NaN: R^2 of equal labels, AUC of one class.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import rankdata


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Scores of every node, and pooled.

    Attributes:
        by_node: Of every score its value at each node, (N,); NaN without rows.
        pooled: Of every score its value over all rows.
        confusion: Rows by true class (down) and predicted class (across), (C, C); None
            for regressions.
        classes: The names of the classes; None for regressions.
    """

    by_node: dict[str, np.ndarray]
    pooled: dict[str, float]
    confusion: np.ndarray | None = None
    classes: tuple[str, ...] | None = None

    def __str__(self) -> str:
        told = ", ".join(f"{name} {value:.4g}" for name, value in self.pooled.items())
        return f"all rows: {told}"

    def as_dict(self) -> dict[str, Any]:
        """Numbers and words only, for `run.json`."""
        told: dict[str, Any] = {
            "scores": {name: _plain(values) for name, values in self.by_node.items()},
            "pooled_scores": {n: _plain(value) for n, value in self.pooled.items()},
        }
        if self.confusion is not None:
            told["confusion"] = self.confusion.tolist()
            told["classes"] = list(self.classes or ())
        return told


def _plain(values: Any) -> Any:
    return np.asarray(values, float).tolist()


def of_values(said: np.ndarray, y: np.ndarray, node: np.ndarray, n: int) -> Scores:
    """Scores of predicted values."""

    def of(rows: Any) -> dict[str, float]:
        off = said[rows] - y[rows]
        # Squares about a mean that is rounded are not zero where labels are equal.
        differ = len(off) > 0 and np.ptp(y[rows]) > 0
        spread = float(np.sum((y[rows] - y[rows].mean()) ** 2)) if differ else 0.0
        return {
            "MAE": _mean(np.abs(off)),
            "RMSE": float(np.sqrt(_mean(off**2))),
            "R2": 1 - float(np.sum(off**2)) / spread if spread > 0 else np.nan,
        }

    return Scores(_by_node(of, node, n), of(slice(None)))


def of_classes(
    scores: np.ndarray,
    codes: np.ndarray,
    node: np.ndarray,
    n: int,
    names: tuple[str, ...],
) -> Scores:
    """Scores of predicted classes, from one score per row and class, (m, C)."""
    said = scores.argmax(axis=1)
    odds = _log_odds(scores)
    count = len(names)

    def confusion(rows: Any) -> np.ndarray:
        both = codes[rows] * count + said[rows]
        return np.bincount(both, minlength=count**2).reshape(count, count)

    def of(rows: Any) -> dict[str, float]:
        table = confusion(rows)
        right, total = np.diag(table), table.sum()
        seen = table.sum(axis=0) + table.sum(axis=1)  # 2 TP + FP + FN
        f1 = 2 * right[seen > 0] / seen[seen > 0]
        return {
            "accuracy": float(right.sum() / total) if total else np.nan,
            "F1": _mean(f1),
            "AUC": _auc(odds[rows], codes[rows]),
        }

    everything = slice(None)
    return Scores(_by_node(of, node, n), of(everything), confusion(everything), names)


def _log_odds(scores: np.ndarray) -> np.ndarray:
    """Of each class against the others, (m, C).

    They have the order of probabilities, which all round to 1 from odds of 1e16 on.
    """
    odds = np.empty_like(scores)
    for k in range(scores.shape[1]):
        odds[:, k] = scores[:, k] - logsumexp(np.delete(scores, k, axis=1), axis=1)
    return odds


def _auc(odds: np.ndarray, codes: np.ndarray) -> float:
    """By ranks, as Mann and Whitney's test."""
    classes = odds.shape[1]
    # Of two classes one is the other against the rest.
    found = [
        _area(odds[:, k], codes == k) for k in range(1 if classes == 2 else 0, classes)
    ]
    return _mean(np.array([one for one in found if np.isfinite(one)]))


def _area(odds: np.ndarray, positive: np.ndarray) -> float:
    above, below = int(positive.sum()), int((~positive).sum())
    if above == 0 or below == 0:
        return np.nan
    ranks = rankdata(odds)[positive].sum()
    return float((ranks - above * (above + 1) / 2) / (above * below))


def _by_node(of: Any, node: np.ndarray, n: int) -> dict[str, np.ndarray]:
    order = np.argsort(node, kind="stable")
    parts = np.split(order, np.searchsorted(node[order], np.arange(1, n)))
    found = [of(rows) for rows in parts]
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else np.nan

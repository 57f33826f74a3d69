"""Membership inference: was this record among the rows?

N. Carlini et al., "Membership inference attacks from first principles" (LiRA), IEEE S&P
2022. No attack does better than epsilon allows: TPR <= e^epsilon FPR + delta.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacita import check


def lira(confidence: Any, inside: Any, outside: Any) -> np.ndarray:
    """How much likelier a model's confidence is if the record was inside, as a log.

    Args:
        confidence: Of the model in the record's true label, a probability.
        inside: Of shadow models that were trained with the record.
        outside: Of shadow models that were trained without it.
    """
    here = _logit(confidence)
    return _log_density(here, _logit(inside)) - _log_density(here, _logit(outside))


def caught(inside: Any, outside: Any, false_rate: float = 0.001) -> float:
    """The share of members found where so many others are taken for members.

    Args:
        inside: Scores of members, larger for members.
        outside: Scores of others.
        false_rate: Share of others that may be taken for members.

    >>> caught([3.0, 1.0], [0.0, 2.0], false_rate=0.5)
    1.0
    """
    check.fraction(false_rate=false_rate)
    others = np.sort(np.asarray(outside, float))[::-1]
    allowed = math.floor(false_rate * len(others))
    limit = others[allowed] if allowed < len(others) else -math.inf
    return float(np.mean(np.asarray(inside, float) > limit))


def most_caught(epsilon: float, delta: float, false_rate: float = 0.001) -> float:
    """What (epsilon, delta) allows: e^epsilon FPR + delta.

    >>> most_caught(0.0, 0.0, 0.25)
    0.25
    """
    return min(1.0, math.exp(min(epsilon, 700)) * false_rate + delta)


def _logit(chance: Any) -> np.ndarray:
    p = np.clip(np.asarray(chance, float), 1e-12, 1 - 1e-12)
    return np.log(p / (1 - p))


def _log_density(value: np.ndarray, sample: np.ndarray) -> np.ndarray:
    spread = np.maximum(sample.std(), 1e-12)
    return -0.5 * ((value - sample.mean()) / spread) ** 2 - np.log(spread)

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
    here = logit(confidence)
    return _log_density(here, logit(inside)) - _log_density(here, logit(outside))


def lira_scores(sure: Any, member: Any) -> np.ndarray:
    """The same for many runs and records: each run is judged by all the others.

    Args:
        sure: The logit of every model's confidence in every record, (runs, records).
        member: Which records every run had, (runs, records).
    """
    logits, had = np.asarray(sure, float), np.asarray(member, bool)
    check.shape(logits.shape, member=had)
    return _log_density_of_others(logits, had) - _log_density_of_others(logits, ~had)


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


def most_caught_replaced(
    epsilon: float, delta: float, false_rate: float = 0.001
) -> float:
    """The same of a record that was replaced, where it may be added or removed.

    That is a removal and an addition: 2 epsilon, and (1 + e^epsilon) delta.
    """
    return most_caught(
        2 * epsilon, (1 + math.exp(min(epsilon, 700))) * delta, false_rate
    )


def logit(chance: Any) -> np.ndarray:
    """log(p / (1 - p)), of chances that are neither 0 nor 1."""
    p = np.clip(np.asarray(chance, float), 1e-12, 1 - 1e-12)
    return np.log(p / (1 - p))


def _log_density(value: np.ndarray, sample: np.ndarray) -> np.ndarray:
    spread = np.maximum(sample.std(), 1e-12)
    return -0.5 * ((value - sample.mean()) / spread) ** 2 - np.log(spread)


def _log_density_of_others(values: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Of every value, under a normal law fitted to the others of its column."""
    values = values - values.mean(axis=0)  # lest squares lose digits
    others = used.sum(axis=0) - used
    first = np.where(used, values, 0)
    mean = (first.sum(axis=0) - first) / np.maximum(others, 1)
    squares = (first**2).sum(axis=0) - first**2
    spread = np.sqrt(np.maximum(squares / np.maximum(others, 1) - mean**2, 1e-12))
    return -0.5 * ((values - mean) / spread) ** 2 - np.log(spread)

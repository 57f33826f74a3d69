"""Diagnosis of a trained model from three numbers.

A. Jung, "Federated Learning: From Theory to Practice", section 2.4: compare the
training error E_t, the validation error E_v and a baseline E_ref. The book leaves open
when one error is "much larger" than another; here it is by more than a factor.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tacita import check

#: By a factor below 1 an error is much larger than itself.
FACTOR = check.Range(">= 1", lambda v: v >= 1)


class Verdict(NamedTuple):
    """A word for tables and what it means, with the remedy."""

    word: str
    meaning: str


GOOD = Verdict(
    "as good as the baseline",
    "training and validation error are on one level, and no worse than the baseline: "
    "there is little point in improving the method further.",
)
OVERFITTING = Verdict(
    "overfitting",
    "the validation error is much larger than the training error: use a smaller model, "
    "more rows (also those of similar nodes: a larger alpha) or more regularisation.",
)
UNDERFITTING = Verdict(
    "underfitting",
    "training and validation error are on one level, but much larger than the "
    "baseline: the model is too small, too tightly coupled (try a smaller alpha), or "
    "its training did not converge.",
)
UNLUCKY = Verdict(
    "unlike sets",
    "the training error is much larger than the validation error: the two sets are not "
    "of one kind (tacita.tuning.same_kind tests that), or the validation set is too "
    "small to tell; look at how they differ.",
)
NO_OVERFITTING = Verdict(
    "no overfitting seen",
    "training and validation error are on one level; without a baseline nothing says "
    "whether that level is good.",
)
UNKNOWN = Verdict("no rows to tell", "there are no training or no validation rows.")
VERDICTS = (GOOD, OVERFITTING, UNDERFITTING, UNLUCKY, NO_OVERFITTING, UNKNOWN)


def diagnose(
    train: float, validation: float, baseline: float | None = None, factor: float = 1.5
) -> Verdict:
    """The book's four cases, checked in its order of alarm.

    Args:
        train: E_t, the error on the rows the model was trained on.
        validation: E_v, the error on other rows.
        baseline: E_ref, an error that is known to be reachable; None if there is none.
        factor: An error is much larger than another if it is more than this many times
            as large.

    >>> diagnose(1.0, 1.1, 1.0).word
    'as good as the baseline'
    >>> diagnose(0.2, 1.1, 1.0).word, diagnose(3.0, 3.2, 1.0).word
    ('overfitting', 'underfitting')
    >>> diagnose(3.0, 1.0, 1.0).word
    'unlike sets'
    """
    FACTOR(factor=factor)
    if math.isnan(train) or math.isnan(validation):
        return UNKNOWN
    if validation > factor * train:
        return OVERFITTING
    if train > factor * validation:
        return UNLUCKY
    if baseline is None or math.isnan(baseline):
        return NO_OVERFITTING
    return UNDERFITTING if validation > factor * baseline else GOOD

"""What a linear model multiplies the columns of `fit` with: coef_ and intercept_."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacita.problem.model.linear import GeneralisedLinear, Softmax
from tacita.trained import TrainedModel


class Weights(NamedTuple):
    """Scores, or values, are x coef' + intercept, in the units of the rows given."""

    coef: np.ndarray
    intercept: np.ndarray


def weights_of(model: TrainedModel) -> Weights:
    """Of every score one row; of two classes the second's score less the first's.

    An AttributeError, by which scikit-learn asks, says where there are none.
    """
    card = model.card
    if not isinstance(card.model, GeneralisedLinear):
        raise AttributeError("a network has no coef_ and no intercept_")
    unit = card.encoding is not None and card.encoding.unit_rows
    if card.bound is not None or unit:
        raise AttributeError(
            "rows are cut by bound= or scaled to norm 1 one by one, so that scores are "
            "not linear in them: no coef_, no intercept_"
        )
    w = np.asarray(model.params, float).reshape(_scores(card.model), -1)
    w = w[1:] - w[:1] if len(w) == 2 else w
    coef, constant = (w[:, :-1], w[:, -1]) if card.intercept else (w, np.zeros(len(w)))
    # w (x - centre) / spread + constant
    if card.encoding is not None and card.encoding.spread is not None:
        coef = coef / np.asarray(card.encoding.spread)
    if card.encoding is not None and card.encoding.centre is not None:
        constant = constant - coef @ np.asarray(card.encoding.centre)
    return Weights(coef, constant)


def _scores(model: GeneralisedLinear) -> int:
    return model.n_classes if isinstance(model, Softmax) else 1

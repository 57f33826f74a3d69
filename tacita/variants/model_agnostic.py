"""Model-agnostic FedRelax: nodes with models of any kind agree on predictions.

A. Jung, "Federated Learning: From Theory to Practice", Algorithm 12. Every node fits,
within its own kind of model,

    h_i <- argmin_h L_i(h) + alpha sum_j A_ij d(h, h_j)                          (124)

where d compares predictions on shared unlabelled points by a loss, (64)-(65): squares
for numbers and the log-loss for classes, or another one. By exercise 5.3
that is plain fitting on augmented data: to the node's own rows come the shared points,
with what its neighbours predict there as targets. Any scikit-learn estimator will do;
nothing but predictions on shared points leaves a node.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacita import check
from tacita.trees import checked, needed, number, ruled
from tacita.variants import compared
from tacita.variants.estimator_nodes import EstimatorNode


def _loss(**given: Any) -> Any:
    return None if given["loss"] is None else compared.checked_loss(**given)


@checked
class ModelAgnosticFedRelax:
    """Algorithm 12, for one node; `tacita.simulate_estimators` runs it for all.

    A node's own rows weigh 1 each, as in `estimator.fit(X, y)`, so that alpha = 0 is
    just that call, and penalties of the estimator mean what they mean there. Shared
    points then weigh alpha d_i m_i / m', d_i being the node's degree.

    Attributes:
        alpha: Strength of the coupling along edges; 0 trains every node alone.
        damping: Share of its last letter that a node keeps in its new one, in [0, 1).
            It steadies nodes that swing.
        loss: L of (64): None for "squared" of numbers and "log" of classes; or, of
            numbers, "absolute", "huber" (squared up to a difference of 1), or an even
            function of a difference that JAX can differentiate. Those weigh every
            shared point by how far the neighbours' last predictions are apart, so that
            fits by squares come to rest where (124) with that loss has no slope.
    """

    alpha: float = needed(check.not_negative)
    damping: float = number(check.below_one, 0.0)
    loss: Any = ruled(None, _loss, words=" or ".join(compared.LOSSES))

    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithm 12"

    def loss_for(self, classes: int | None) -> Any:
        """The loss for numbers, or for classes, which know one."""
        usual = "squared" if classes is None else "log"
        loss = usual if self.loss is None else self.loss
        if (loss == "log") != (classes is not None):
            check.refuse(
                f"predictions of {'numbers' if classes is None else 'classes'} are not "
                f"compared by loss={loss!r}; leave it out for {usual!r}"
            )
        return loss

    def local(
        self,
        random: np.random.Generator,
        node: EstimatorNode,
        heard: Heard | None,
    ) -> Any:
        """Fit a copy of one node's model to its own rows and its neighbours' views.

        Args:
            random: For estimators without weights, whose rows are drawn.
            node: What the node holds.
            heard: What its neighbours predict; None before there are letters.
        """
        x, y, weight = node.x, node.y, np.ones(len(node.y))
        if heard is not None and self.alpha * np.sum(heard.share) > 0:
            # (124) times m_i: weight alpha A_ij m_i / m' on (x, h_j(x)), for all j
            each = self.alpha * len(y) * heard.share
            new_x, new_y, new_weight = augmentation(heard.points, heard.views, each)
            x, y = np.concatenate([x, new_x]), np.concatenate([y, new_y])
            weight = np.concatenate([weight, new_weight])
        return fit_weighted(node.estimator, x, y, weight, random)

    def letter(
        self, fitted: Any, shared: np.ndarray, classes: int | None, last: Any
    ) -> np.ndarray:
        """What the node tells its neighbours: its predictions on the shared points."""
        new = predictions(fitted, shared, classes)
        return new if last is None else new + self.damping * (last - new)


class Heard(NamedTuple):
    """What neighbours predict on the points that a node shares with them.

    Attributes:
        points: The shared points.
        views: What neighbours predict there: their mean where all share all points.
        share: What each point weighs in (124): d_i / m', or A_ij / m' of its edge times
            the weight of the square that touches the loss.
    """

    points: np.ndarray
    views: np.ndarray
    share: np.ndarray


def augmentation(
    shared: np.ndarray, inbox: np.ndarray, each: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets and weights that stand for the coupling term of (124).

    Regression: sum_j A_ij (h(x) - h_j(x))^2 is d_i (h(x) - mean)^2 up to a constant, so
    one row per point carries the neighbours' mean: the same minimiser from fewer rows
    than one per neighbour. Classification: with the log-loss, the neighbours' mean
    probabilities are soft labels, one row per point and class.
    """
    each = np.broadcast_to(each, len(shared))
    if inbox.ndim == 1:
        return shared, inbox, each
    point, code = np.nonzero(inbox > 0)
    return shared[point], code, each[point] * inbox[point, code]


def predictions(fitted: Any, x: np.ndarray, classes: int | None) -> np.ndarray:
    """Values, (points,), or probabilities of all classes, (points, classes)."""
    if classes is None:
        return np.asarray(fitted.predict(x), np.float64).reshape(len(x))
    table = np.zeros((len(x), classes))
    known = np.asarray(fitted.classes_, int)
    if hasattr(fitted, "predict_proba"):
        table[:, known] = fitted.predict_proba(x)
    else:  # a vote instead of probabilities
        table[np.arange(len(x)), np.asarray(fitted.predict(x), int)] = 1.0
    return table


def fit_weighted(
    estimator: Any,
    x: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    random: np.random.Generator,
) -> Any:
    """Fit a copy of `estimator` to weighted rows.

    One that takes no `sample_weight` is fitted to equally many rows drawn in proportion
    to their weight. The draw is systematic: a row's count differs from its expectation
    by less than one. A `random_state` that was left open is drawn too.
    """
    from sklearn.base import clone  # slow to import

    given: dict[str, np.ndarray] = {}
    if not np.all(weight == weight[0]):
        argument = weight_argument(estimator)
        if argument is not None:
            given = {argument: weight}
        else:
            rows = systematic_draw(weight, len(weight), random)
            x, y = x[rows], y[rows]
    # Of the rows that are left: a draw may miss all but one class.
    if _is_of_one_class(estimator, y):
        from sklearn.dummy import DummyClassifier

        return DummyClassifier().fit(x, y)
    chosen: Any = clone(estimator)
    _set_random_states(chosen, random)
    return chosen.fit(x, y, **given)


def _is_of_one_class(estimator: Any, y: np.ndarray) -> bool:
    """Many classifiers refuse rows of a single class, which a node may well have."""
    from sklearn.base import is_classifier

    return is_classifier(estimator) and bool(np.all(y == y[0]))


def _set_random_states(estimator: Any, random: np.random.Generator) -> None:
    """Chance that was left to NumPy's global state comes from the node's own draws."""
    given = estimator.get_params()
    left = [k for k, v in sorted(given.items()) if _is_open(k, v)]
    # A child, lest the rows drawn depend on how many seeds are.
    seeds = random.spawn(1)[0].integers(2**31, size=len(left)).tolist()
    estimator.set_params(**dict(zip(left, seeds, strict=True)))


def _is_open(name: str, value: Any) -> bool:
    return value is None and name.rpartition("__")[2] == "random_state"


def weight_argument(estimator: Any) -> str | None:
    """What `fit` calls the weights of rows; None if it takes none.

    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> weight_argument(Ridge()), weight_argument(KNeighborsRegressor())
    ('sample_weight', None)
    """
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_argument(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def systematic_draw(
    weight: np.ndarray, draws: int, random: np.random.Generator
) -> np.ndarray:
    """Row numbers, each drawn in proportion to its weight, from one random offset."""
    ends = np.cumsum(weight) / np.sum(weight)
    marks = (np.arange(draws) + random.random()) / draws
    return np.minimum(np.searchsorted(ends, marks, "right"), len(weight) - 1)

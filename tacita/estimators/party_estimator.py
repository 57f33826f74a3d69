"""What all estimators share: from a table with groups to a run, and to its model."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from tacita import check
from tacita.algorithm import ALGORITHMS
from tacita.algorithm.base import Algorithm
from tacita.data.tabular import SCALES, scale_of
from tacita.encoding import SEEN_LABELS, Encoding, Origin, kind_of, labels_of, word
from tacita.estimators import columns, private_fit
from tacita.problem import Problem, from_arrays, mlp
from tacita.problem.chosen_model import MODELS
from tacita.problem.model.linear import Hinge
from tacita.problem.model.per_agent import name_of
from tacita.runtime.simulate import simulate
from tacita.trace import Run
from tacita.trained import TrainedModel
from tacita.trees import replace


class PartyEstimator(BaseEstimator):
    """Fitted on rows of several parties; what is learnt stands in attributes with _."""

    algorithm: Any
    model: Any
    hidden: Any
    l2: float
    intercept: bool
    scale: Any
    rounds: int
    tol: float
    participation: Any
    epsilon: float | None
    delta: float | None
    observer: str
    unit: str
    bound: float | None
    random_state: Any
    #: The algorithms that may be asked for.
    _kind: type[Algorithm]

    run_: Run
    model_: TrainedModel
    feature_names_in_: np.ndarray
    classes_: np.ndarray

    def _usual_algorithm(self, problem: Problem) -> Algorithm:
        """What is taken where nobody named an algorithm."""
        raise NotImplementedError

    def _usual_model(self, classes: int | None) -> str:
        raise NotImplementedError

    def _graph(self, parties: np.ndarray) -> Any:
        return None

    def _slope(self, problem: Problem, algorithm: Any, run: Run) -> float | None:
        """How long the gradient of what is minimised is at the end; None: not known."""
        raise NotImplementedError

    def _watched(self, private: bool) -> dict[str, Any]:
        """What the run records, and when it may stop; a private one shows nothing."""
        return {"record": () if private else ("loss",)}

    @property
    def n_iter_(self) -> int:
        """Rounds done."""
        check_is_fitted(self)
        return self.run_.rounds

    @property
    def parties_(self) -> np.ndarray:
        """Whose rows were learnt from, in the order of `run_.agents`."""
        check_is_fitted(self)
        return np.asarray(self.run_.info["parties"])

    @property
    def privacy_(self) -> Any:
        """What each observer may have learnt; None of a fit without an epsilon."""
        check_is_fitted(self)
        return self.run_.privacy

    @property
    def report_(self) -> dict[str, Any]:
        """How the fit went: algorithm, rounds, parties, loss, letters and bytes."""
        check_is_fitted(self)
        run = self.run_
        loss = run.metrics.get("loss")
        return {
            "algorithm": run.config["algorithm"],
            "problem": run.config["problem"],
            "rounds": run.rounds,
            "stopped_early": run.info["stopped_early"],
            "parties": self.parties_.tolist(),
            "loss": None if loss is None or not len(loss) else float(loss[-1]),
            "communication": run.info["communication"],
            "seconds": run.info["seconds"]["total"],
            "privacy": None if run.privacy is None else run.privacy.as_dict(),
        }

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the model into a folder; `tacita.load_model` reads it back."""
        check_is_fitted(self)
        return self.model_.save(folder)

    def _fit_classes(self, x: Any, y: Any, groups: Any) -> Self:
        x, y = self._rows(x, columns.labels(y))
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            (only,) = self.classes_.tolist()
            check.refuse(f"y has one class only, {only!r}; give rows of two or more")
        return self._fit(x, codes, groups, self.classes_)

    def _fit_numbers(self, x: Any, y: Any, groups: Any) -> Self:
        x, y = self._rows(x, y)
        return self._fit(x, columns.numbers(y), groups, None)

    def _fit(
        self, x: np.ndarray, y: np.ndarray, groups: Any, classes: np.ndarray | None
    ) -> Self:
        check.not_negative(tol=check.given(tol=self.tol))
        private_fit.check_words(self)
        problem = self._problem(x, y, groups, classes)
        _require_fit_for(problem.model, classes is not None)
        algorithm = self._algorithm(problem)
        private = self.epsilon is not None
        if private:
            algorithm = private_fit.private_for(self, problem, algorithm)
        run = simulate(
            problem,
            algorithm,
            rounds=self.rounds,
            seed=self._seed(),
            participation=self.participation,
            progress=False,
            **self._watched(private),
        )
        if run.info["diverged"]:
            what = "features and labels" if classes is None else "features"
            other = "give an algorithm with" if self.algorithm is None else "take"
            check.refuse(
                f"the fit diverged within {run.rounds} rounds; scale the {what}, or "
                f"{other} a smaller step size"
            )
        card = run.card
        if classes is not None and card is not None:
            names = [word(label) for label in classes.tolist()]
            card = replace(card, classes=labels_of(names, kind_of(classes)))
        info = {**run.info, "parties": list(problem.ids)}
        privacy = private_fit.stated(run.privacy) if private else None
        self.run_ = replace(run, card=card, info=info, privacy=privacy)
        self.model_ = self.run_.model
        if not private:
            self._warn(self._slope(problem, algorithm, run))
        return self

    def _warn(self, left: float | None) -> None:
        """Where the optimum was not reached, who called `fit` is warned."""
        if left is not None and left > self.tol:
            warnings.warn(
                f"after {self.n_iter_} rounds the gradient is {left:.2g} long, more "
                f"than tol={self.tol:g}; scale the features or raise rounds",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _rows(self, x: Any, y: Any) -> Any:
        """Rows to learn from, checked as scikit-learn does."""
        return validate_data(self, x, y, dtype=np.float64)

    def _new_rows(self, x: Any) -> np.ndarray:
        return np.asarray(validate_data(self, x, reset=False, dtype=np.float64))

    def _problem(
        self, x: np.ndarray, y: np.ndarray, groups: Any, classes: np.ndarray | None
    ) -> Problem:
        parties = np.zeros(len(x), int) if groups is None else columns.parties(groups)
        check_consistent_length(x, parties)
        encoding = self._encoding(x)
        features = x if encoding is None else encoding.scaled(x)
        model = self._model(x.shape[1], None if classes is None else len(classes))
        network = isinstance(self.model, str) and self.model == "mlp"
        made = from_arrays(
            features,
            y,
            parties,
            model=model,
            l2=self.l2,
            graph=self._graph(np.unique(parties)),
            classes=None if classes is None else range(len(classes)),
            coded=classes is not None,
            intercept=self.intercept and not network and isinstance(model, str),
            bound=self.bound,
            name=type(self).__name__,
        )
        seen = Origin() if classes is None else Origin((SEEN_LABELS,))
        return replace(made, encoding=encoding, before=seen)

    def _encoding(self, x: np.ndarray) -> Encoding | None:
        """The names and scales of the columns; None where they have neither."""
        names = getattr(self, "feature_names_in_", None)
        if names is None and self.scale is None:
            return None
        names = [f"x{i}" for i in range(x.shape[1])] if names is None else names
        if not isinstance(self.scale, str):
            return Encoding.of_numbers(names, **private_fit.public_scale(self.scale))
        check.one_of(SCALES, scale=self.scale)
        private_fit.refuse_learnt_scale(self)
        learnt = (SCALES[self.scale],)
        return Encoding.of_numbers(names, learnt=learnt, **scale_of(x, self.scale))

    def _model(self, features: int, classes: int | None) -> Any:
        if self.model is None:
            return self._usual_model(classes)
        if isinstance(self.model, str):
            check.one_of((*MODELS, "mlp"), model=self.model)
            if self.model == "mlp":
                return mlp(features, self.hidden, classes)
        return self.model

    def _algorithm(self, problem: Problem) -> Any:
        if self.algorithm is None:
            return self._usual_algorithm(problem)
        chosen = self.algorithm
        if isinstance(chosen, str):
            chosen = _by_name(chosen)
        if not isinstance(chosen, self._kind):
            check.refuse(
                f"{type(self).__name__} takes a {self._kind.__name__} such as "
                f"{type(self._usual_algorithm(problem)).__name__}, got {chosen!r}"
            )
        return chosen

    def _seed(self) -> int | None:
        if self.random_state is None or isinstance(self.random_state, int):
            return self.random_state
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _codes(self, x: Any, groups: Any = None) -> np.ndarray:
        check_is_fitted(self)
        return self.model_.codes(self._new_rows(x), groups)

    def _scores(self, x: Any, groups: Any = None) -> np.ndarray:
        check_is_fitted(self)
        return self.model_.scores(self._new_rows(x), groups)

    def _probabilities(self, x: Any, groups: Any = None) -> np.ndarray:
        check_is_fitted(self)
        return self.model_.predict_proba(self._new_rows(x), groups)

    def _values(self, x: Any, groups: Any = None) -> np.ndarray:
        check_is_fitted(self)
        return self.model_.predict(self._new_rows(x), groups)


def likely(estimator: PartyEstimator) -> bool:
    """Whether a classifier has probabilities, or will have; by the hinge loss none."""
    fitted = getattr(estimator, "model_", None)
    model = estimator.model if fitted is None else fitted.card.model
    return model != "hinge" and not isinstance(model, Hinge)


def _by_name(name: str) -> Algorithm:
    """The algorithm of that name, every number set by theory."""
    known: dict[str, Any] = {one.__name__: one for one in ALGORITHMS}
    check.one_of(known, algorithm=name)
    try:
        return known[name]()
    except TypeError:
        check.refuse(
            f"algorithm={name!r} has numbers that theory does not set; give them, as "
            f"in algorithm=tacita.{name}(...)"
        )


def _require_fit_for(model: Any, classes: bool) -> None:
    """Refuse a model of numbers in a classifier, and one of classes in a regressor."""
    if (model.classes is not None) == classes:
        return
    name = name_of(model)
    if classes:
        check.refuse(
            f"{name} predicts a number; use a regressor, or model='logistic', "
            "'softmax' or 'mlp'"
        )
    check.refuse(f"{name} predicts a class; use a classifier, or model='linear'")

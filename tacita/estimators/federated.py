"""One model of all parties, by a coordinator who never sees a row."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacita import check
from tacita.algorithm.base import Algorithm, ServerAlgorithm
from tacita.algorithm.fed_avg import FedAvg
from tacita.algorithm.fed_plt import FedPLT
from tacita.algorithm.solvers import Accelerated, ExactProx
from tacita.estimators.party_estimator import PartyEstimator, likely
from tacita.estimators.weights import weights_of
from tacita.problem import Problem, moduli
from tacita.problem.model.linear import GeneralisedLinear, Kinked
from tacita.problem.model.per_agent import name_of
from tacita.trace import Run

#: Steps of parties between two letters, where nobody chose.
_LOCAL_STEPS, _NETWORK_STEP_SIZE = 20, 0.1


class _Federated(PartyEstimator):
    """The constructor of both, and how they are solved."""

    _kind = ServerAlgorithm

    def __init__(
        self,
        algorithm: Any = None,
        *,
        model: Any = None,
        hidden: Any = (32,),
        l2: float = 1e-3,
        intercept: bool = True,
        scale: Any = None,
        rounds: int = 200,
        tol: float = 1e-4,
        participation: Any = 1.0,
        epsilon: float | None = None,
        delta: float | None = None,
        observer: str = "coordinator",
        unit: str = "record",
        bound: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.model = model
        self.hidden = hidden
        self.l2 = l2
        self.intercept = intercept
        self.scale = scale
        self.rounds = rounds
        self.tol = tol
        self.participation = participation
        self.epsilon = epsilon
        self.delta = delta
        self.observer = observer
        self.unit = unit
        self.bound = bound
        self.random_state = random_state

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the columns as they were given to `fit`, scaled or not."""
        check_is_fitted(self)
        found = weights_of(self.model_).coef
        return found if self.model_.card.classes else found[0]

    @property
    def intercept_(self) -> Any:
        """The constant beside `coef_`, 0 where there is none."""
        check_is_fitted(self)
        found = weights_of(self.model_).intercept
        return found if self.model_.card.classes else float(found[0])

    def _usual_algorithm(self, problem: Problem) -> Algorithm:
        if not isinstance(problem.model, GeneralisedLinear):
            return FedAvg(step_size=_NETWORK_STEP_SIZE, local_steps=_LOCAL_STEPS)
        kinked = isinstance(problem.model, Kinked)
        if self.epsilon is not None and kinked:
            check.refuse(
                f"theory sets no step size for model={name_of(problem.model)!r}, whose "
                "loss has kinks; give algorithm=tacita.FedAvg(step_size=0.1)"
            )
        if self.epsilon is not None:
            return FedAvg()
        if kinked:
            rho = 1 / moduli.usual_curvature(problem.population)
            return FedPLT(rho=rho, solver=ExactProx())
        return FedPLT(solver=Accelerated(local_steps=_LOCAL_STEPS))

    def _watched(self, private: bool) -> dict[str, Any]:
        if private:
            return super()._watched(private)
        stop = {"grad_norm_sq": float(self.tol) ** 2}
        return {"record": ("loss", "grad_norm_sq"), "stop": stop}

    def _slope(self, problem: Problem, algorithm: Any, run: Run) -> float | None:
        if isinstance(problem.model, Kinked):
            return _apart(run, algorithm)  # the gradient at a kink tells nothing
        found = run.metrics["grad_norm_sq"]
        return None if run.info["stopped_early"] else float(found[-1]) ** 0.5


def _apart(run: Run, algorithm: Algorithm) -> float | None:
    """How hard parties still pull at the shared model, a gradient's length each.

    At the optimum all have it. Only of algorithms whose parties keep a model near it.
    """
    if not isinstance(algorithm, FedPLT) or algorithm.rho is None:
        return None
    pulls = np.linalg.norm(run.agents - run.params, axis=1) / float(algorithm.rho)
    return float(pulls.mean())


class FederatedClassifier(ClassifierMixin, _Federated):
    """A classifier of all parties together; `groups` says whose each row is.

    Args:
        algorithm: How to train: an algorithm with a server such as
            `tacita.FedAvg(local_steps=5)`, or its name. None solves linear models to
            their optimum by `FedPLT`; networks, and all private fits, by `FedAvg`.
        model: None for a linear model (ridge, logistic or softmax regression), a name
            as in `tacita.from_arrays`, "mlp", or a model object.
        hidden: Sizes of the layers of "mlp".
        l2: Adds (l2/2)||w||^2 to every party's mean loss.
        intercept: Whether linear models have a constant term.
        scale: None; "standard", "minmax" or "unit" by the rows, refused with an
            epsilon; or (centre, spread), public numbers.
        rounds: Rounds at most; with an epsilon exactly so many.
        tol: Stop when the gradient is no longer than this, and warn where it is longer
            at the end; of losses with kinks, where parties pull apart harder. Not with
            an epsilon: when a fit ends would tell of the rows.
        participation: Who takes part in a round, as in `tacita.simulate`.
        epsilon: The budget of this fit; None trains without privacy.
        delta: The probability of exceeding it; needed with an epsilon.
        observer: Against whom, as in `tacita.private`.
        unit: What is protected: one "record", or all of a "client".
        bound: A public number to which longer rows are cut, the constant included.
        random_state: Of all randomness. With an epsilon leave it out: noise whose seed
            is known protects nobody.

    Attributes:
        classes_: The labels, of a classifier.
        n_features_in_, feature_names_in_: The columns seen in `fit`.
        parties_: The groups, in the order of `run_.agents`.
        n_iter_: Rounds done.
        coef_, intercept_: Of a linear model, in the units of the rows given to `fit`,
            shaped as scikit-learn has them; not with `bound` or scale "unit".
        privacy_: What each observer may have learnt; None without an epsilon.
        report_: How the fit went.
        model_: The `tacita.TrainedModel`.
        run_: The `tacita.Run`.
    """

    def _usual_model(self, classes: int | None) -> str:
        return "logistic" if classes == 2 else "softmax"

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: N803
        """Train on the rows of all parties.

        Args:
            X: Rows of numbers, an array or a pandas table.
            y: A label for every row.
            groups: The party that holds the row; None means one party holds all.
        """
        return self._fit_classes(X, y, groups)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The likeliest label of every row."""
        codes = self._codes(X)
        return self.classes_[codes]

    def decision_function(self, X: Any) -> np.ndarray:  # noqa: N803
        """One score per row, above 0 for `classes_[1]`; of several classes one each."""
        return self._scores(X)

    @available_if(likely)
    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """One probability per row and class, in the order of `classes_`.

        The hinge loss has none.
        """
        return self._probabilities(X)


class FederatedRegressor(RegressorMixin, _Federated):
    """A regression of all parties together; `groups` says whose each row is.

    Arguments and attributes are those of `FederatedClassifier`.
    """

    def _usual_model(self, classes: int | None) -> str:
        return "linear"

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: N803
        """Train on the rows of all parties.

        Args:
            X: Rows of numbers, an array or a pandas table.
            y: A number for every row.
            groups: The party that holds the row; None means one party holds all.
        """
        return self._fit_numbers(X, y, groups)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """A number for every row."""
        return self._values(X)

"""A model for every party, held close to its neighbours' on a graph."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacita import check
from tacita.algorithm.base import Algorithm, GraphAlgorithm
from tacita.algorithm.coupled import Coupled
from tacita.algorithm.fed_gd import FedGD
from tacita.algorithm.fed_relax import FedRelax
from tacita.algorithm.primal_dual import PrimalDual
from tacita.estimators.party_estimator import PartyEstimator, likely
from tacita.problem import Graph, Problem
from tacita.problem.graph import complete
from tacita.problem.gtv import GTVMin
from tacita.problem.gtv import penalty as penalties
from tacita.problem.model.linear import GeneralisedLinear, Kinked
from tacita.trace import Run

_NETWORK_STEP_SIZE = 0.1


class _Network(PartyEstimator):
    """The constructor of both, and how they are solved."""

    _kind = GraphAlgorithm

    def __init__(
        self,
        algorithm: Any = None,
        *,
        graph: Any = None,
        coupling: float = 0.1,
        model: Any = None,
        hidden: Any = (32,),
        l2: float = 1e-3,
        intercept: bool = True,
        scale: Any = None,
        rounds: int = 100,
        tol: float = 1e-4,
        participation: Any = 1.0,
        epsilon: float | None = None,
        delta: float | None = None,
        observer: str = "neighbour",
        unit: str = "record",
        bound: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.graph = graph
        self.coupling = coupling
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

    def _usual_algorithm(self, problem: Problem) -> Algorithm:
        check.not_negative(coupling=check.given(coupling=self.coupling))
        assert problem.graph is not None
        degrees = np.asarray(problem.graph.degrees, float)
        if not isinstance(problem.model, GeneralisedLinear):
            # As for a smoothness of one over that step, (106): it bears any coupling.
            curvature = 1 / _NETWORK_STEP_SIZE + 4 * self.coupling * degrees.max()
            return FedGD(alpha=self.coupling, step_size=1 / float(curvature))
        if self.epsilon is not None:
            return FedGD(alpha=self.coupling)
        if isinstance(problem.model, Kinked):
            return FedRelax(alpha=self.coupling)
        # A step of FedRelax leaves 1/(1 + sigma/(2 alpha d)) of the error, (133): next
        # to nothing is done where neighbours pull harder than rows do. Flows along the
        # edges are slow where they pull less.
        if 2 * self.coupling * degrees.mean() > problem.moduli.smoothness.mean():
            return PrimalDual(alpha=self.coupling, penalty="squared")
        return FedRelax(alpha=self.coupling)

    def _slope(self, problem: Problem, algorithm: Any, run: Run) -> float | None:
        # Algorithms on a graph have other goals too, such as one model for all.
        if not isinstance(algorithm, Coupled) or algorithm.h is not None:
            return None
        penalty = penalties.of(algorithm.penalty)
        if not penalty.smooth or isinstance(problem.model, Kinked):
            return None  # what is left of it at a kink tells nothing
        gtv = GTVMin(problem, algorithm.alpha, penalty)
        return float(np.linalg.norm(gtv.gradient(run.agents)))

    def _graph(self, parties: np.ndarray) -> Any:
        if self.graph is not None:
            return self.graph
        if len(parties) == 1:
            return Graph.from_edges(parties.tolist(), np.zeros((0, 2), int))
        return complete(len(parties)).named(parties.tolist())

    def _whose(self, groups: Any) -> Any:
        """Whose model is asked for every row; a lone party need not be named."""
        check_is_fitted(self)
        if groups is not None:
            return np.asarray(groups)
        if len(self.parties_) == 1:
            return self.parties_[0]
        check.refuse(
            "every party has a model of its own; say whose row each is with groups="
        )


class NetworkClassifier(ClassifierMixin, _Network):
    """A classifier for every party, like its neighbours'; `groups` names parties.

    Args:
        algorithm: How to train: an algorithm on a graph such as
            `tacita.FedGD(alpha=0.5)`, or its name. None takes `FedRelax`, where
            neighbours pull harder than rows `PrimalDual`, and `FedGD` for private fits
            and for networks.
        graph: Who is joined with whom: `networkx` or `tacita.problem.Graph`, nodes
            named by the groups; None joins everybody.
        coupling: How strongly neighbours' models are held together, the alpha of the
            usual algorithms; 0 trains every party alone.
        model: As of `FederatedClassifier`; so are the other arguments and attributes.
        hidden: Sizes of the layers of "mlp".
        l2: Adds (l2/2)||w||^2 to every party's mean loss.
        intercept: Whether linear models have a constant term.
        scale: None, a scale by the rows (not with an epsilon), or public numbers.
        rounds: Rounds.
        tol: Warn when the gradient of the network's objective (`tacita.GTVMin`) is
            longer than this at the end; not with an epsilon, nor of losses with kinks.
        participation: Who takes part in a round.
        epsilon: The budget of this fit; None trains without privacy.
        delta: The probability of exceeding it; needed with an epsilon.
        observer: Against whom.
        unit: What is protected: one "record", or all of a "client".
        bound: A public number to which longer rows are cut, the constant included.
        random_state: Of all randomness; with an epsilon leave it out.
    """

    def _usual_model(self, classes: int | None) -> str:
        return "logistic" if classes == 2 else "softmax"

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: N803
        """Train every party's model.

        Args:
            X: Rows of numbers, an array or a pandas table.
            y: A label for every row.
            groups: The party that holds the row; None means one party holds all.
        """
        return self._fit_classes(X, y, groups)

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:  # noqa: N803
        """The likeliest label of every row, by the model of its party."""
        codes = self._codes(X, self._whose(groups))
        return self.classes_[codes]

    def decision_function(self, X: Any, groups: Any = None) -> np.ndarray:  # noqa: N803
        """One score per row, above 0 for `classes_[1]`; of several classes one each."""
        return self._scores(X, self._whose(groups))

    @available_if(likely)
    def predict_proba(self, X: Any, groups: Any = None) -> np.ndarray:  # noqa: N803
        """One probability per row and class, by the model of the row's party.

        The hinge loss has none.
        """
        return self._probabilities(X, self._whose(groups))

    def score(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> float:
        """The share of rows whose label is predicted rightly."""
        found = self.predict(X, groups)
        return float(accuracy_score(y, found, sample_weight=sample_weight))


class NetworkRegressor(RegressorMixin, _Network):
    """A regression for every party, like its neighbours'; `groups` names parties.

    Arguments and attributes are those of `NetworkClassifier`.
    """

    def _usual_model(self, classes: int | None) -> str:
        return "linear"

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: N803
        """Train every party's model.

        Args:
            X: Rows of numbers, an array or a pandas table.
            y: A number for every row.
            groups: The party that holds the row; None means one party holds all.
        """
        return self._fit_numbers(X, y, groups)

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:  # noqa: N803
        """A number for every row, by the model of its party."""
        return self._values(X, self._whose(groups))

    def score(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> float:
        """R^2 of the predictions."""
        found = self.predict(X, groups)
        return float(r2_score(y, found, sample_weight=sample_weight))

"""What is no array: scikit-learn models at the nodes, and training over columns."""

from tacita.variants.estimator_nodes import EstimatorNetwork, estimator_network
from tacita.variants.estimator_rounds import EstimatorRun, simulate_estimators
from tacita.variants.model_agnostic import ModelAgnosticFedRelax
from tacita.variants.vertical_party import VerticalNewton
from tacita.variants.vertical_rounds import VerticalRun, train_vertical

__all__ = [
    "EstimatorNetwork",
    "EstimatorRun",
    "ModelAgnosticFedRelax",
    "VerticalNewton",
    "VerticalRun",
    "estimator_network",
    "simulate_estimators",
    "train_vertical",
]

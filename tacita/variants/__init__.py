"""What is no plain run: scikit-learn models, training over columns, learnt graphs."""

from tacita.variants.autoencoder import encoded
from tacita.variants.estimator_nodes import EstimatorNetwork, estimator_network
from tacita.variants.estimator_rounds import EstimatorRun, simulate_estimators
from tacita.variants.generalised_descent import generalised_descent
from tacita.variants.hyper_model import HyperModel, hyper_model
from tacita.variants.model_agnostic import ModelAgnosticFedRelax
from tacita.variants.private_graph import PrivateGraph, private_graph
from tacita.variants.vertical_party import VerticalNewton
from tacita.variants.vertical_rounds import VerticalRun, train_vertical

__all__ = [
    "EstimatorNetwork",
    "EstimatorRun",
    "HyperModel",
    "ModelAgnosticFedRelax",
    "PrivateGraph",
    "VerticalNewton",
    "VerticalRun",
    "encoded",
    "estimator_network",
    "generalised_descent",
    "hyper_model",
    "private_graph",
    "simulate_estimators",
    "train_vertical",
]

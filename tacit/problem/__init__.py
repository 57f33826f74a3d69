"""What is solved: models and losses, agents' rows, oracles, prox, graphs."""

from tacit.problem import graph, prox, synthetic
from tacit.problem.arrays import from_arrays
from tacit.problem.clusters import cluster_nodes, representations, solve_clusters
from tacit.problem.differentiable import Custom, Differentiable
from tacit.problem.estimators import EstimatorNetwork, estimator_network
from tacit.problem.graph import Graph
from tacit.problem.gtv import GTVMin, convex_clustering
from tacit.problem.holdout import hold_out, node_losses
from tacit.problem.models import Linear, Logistic, Softmax
from tacit.problem.networks import cnn, mlp, resnet10
from tacit.problem.oracle import Full, Minibatch
from tacit.problem.penalty import Combined, Penalty
from tacit.problem.problem import Problem
from tacit.problem.regulariser import NonConvex, SquaredL2

__all__ = [
    "Combined",
    "Custom",
    "Differentiable",
    "EstimatorNetwork",
    "Full",
    "GTVMin",
    "Graph",
    "Linear",
    "Logistic",
    "Minibatch",
    "NonConvex",
    "Penalty",
    "Problem",
    "Softmax",
    "SquaredL2",
    "cluster_nodes",
    "cnn",
    "convex_clustering",
    "estimator_network",
    "from_arrays",
    "graph",
    "hold_out",
    "mlp",
    "node_losses",
    "prox",
    "representations",
    "resnet10",
    "solve_clusters",
    "synthetic",
]

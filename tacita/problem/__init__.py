"""What is solved: models and losses, agents' rows, oracles, prox, graphs."""

from tacita.problem import graph, prox, synthetic
from tacita.problem.arrays import from_arrays
from tacita.problem.descend import descend
from tacita.problem.discrepancies import discrepancy, representations
from tacita.problem.graph import Graph
from tacita.problem.gtv.clusters import cluster_nodes, solve_clusters
from tacita.problem.gtv.gtvmin import GTVMin, convex_clustering
from tacita.problem.gtv.penalty import Combined, OwnPenalty, Penalty
from tacita.problem.held_out import folds, hold_out, node_losses
from tacita.problem.model.differentiable import Custom, Differentiable
from tacita.problem.model.linear import (
    Absolute,
    Hinge,
    Huber,
    Linear,
    Logistic,
    Softmax,
)
from tacita.problem.model.moments import Moments
from tacita.problem.model.networks import cnn, mlp, resnet10
from tacita.problem.model.own import from_equinox, from_flax, from_function
from tacita.problem.model.per_agent import PerAgent
from tacita.problem.model.regulariser import NonConvex, SquaredL2
from tacita.problem.oracles import Full, Minibatch
from tacita.problem.own_agents import from_own_agents
from tacita.problem.problem import Problem
from tacita.problem.quantised import Quantised
from tacita.problem.stream import Stream

__all__ = [
    "Absolute",
    "Combined",
    "Custom",
    "Differentiable",
    "Full",
    "GTVMin",
    "Graph",
    "Hinge",
    "Huber",
    "Linear",
    "Logistic",
    "Minibatch",
    "Moments",
    "NonConvex",
    "OwnPenalty",
    "Penalty",
    "PerAgent",
    "Problem",
    "Quantised",
    "Softmax",
    "SquaredL2",
    "Stream",
    "cluster_nodes",
    "cnn",
    "convex_clustering",
    "descend",
    "discrepancy",
    "folds",
    "from_arrays",
    "from_equinox",
    "from_flax",
    "from_function",
    "from_own_agents",
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

"""What is solved: models and losses, agents' rows, oracles, prox, graphs."""

from tacit.problem import graph, prox, synthetic
from tacit.problem.arrays import from_arrays
from tacit.problem.graph import Graph
from tacit.problem.models import Linear, Logistic, Softmax
from tacit.problem.networks import Custom, Differentiable, cnn, mlp, resnet10
from tacit.problem.oracle import Full, Minibatch
from tacit.problem.problem import Problem
from tacit.problem.regulariser import NonConvex, SquaredL2

__all__ = [
    "Custom",
    "Differentiable",
    "Full",
    "Graph",
    "Linear",
    "Logistic",
    "Minibatch",
    "NonConvex",
    "Problem",
    "Softmax",
    "SquaredL2",
    "cnn",
    "from_arrays",
    "graph",
    "mlp",
    "prox",
    "resnet10",
    "synthetic",
]

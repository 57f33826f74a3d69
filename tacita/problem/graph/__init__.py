"""Networks of agents: undirected graphs with positive weights."""

from tacita.problem.graph.builders import (
    complete,
    erdos_renyi,
    grid,
    kilometres,
    nearest_neighbours,
    random_regular,
    ring,
    star,
)
from tacita.problem.graph.cut import letters_across
from tacita.problem.graph.graph import Graph
from tacita.problem.graph.learned import from_distances, from_vectors, learned
from tacita.problem.graph.resilience import EdgeLosses, edge_sensitivity, resilience
from tacita.problem.graph.sparse import Slots, exchange, neighbour_sum
from tacita.problem.graph.spectrum import Spectrum

__all__ = [
    "resilience",
    "learned",
    "from_vectors",
    "from_distances",
    "edge_sensitivity",
    "EdgeLosses",
    "Graph",
    "Slots",
    "Spectrum",
    "complete",
    "erdos_renyi",
    "exchange",
    "grid",
    "kilometres",
    "letters_across",
    "nearest_neighbours",
    "neighbour_sum",
    "random_regular",
    "ring",
    "star",
]

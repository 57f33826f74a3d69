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
from tacita.problem.graph.graph import Graph
from tacita.problem.graph.sparse import Slots, exchange, neighbour_sum
from tacita.problem.graph.spectrum import Spectrum

__all__ = [
    "Graph",
    "Slots",
    "Spectrum",
    "complete",
    "erdos_renyi",
    "exchange",
    "grid",
    "kilometres",
    "nearest_neighbours",
    "neighbour_sum",
    "random_regular",
    "ring",
    "star",
]

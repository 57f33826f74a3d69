"""A graph as the runtime needs it: every agent's edges, and how letters travel."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita.algorithm.base import Edges, GraphAlgorithm
from tacita.problem.graph import Graph, Slots, exchange, neighbour_sum


class Links(NamedTuple):
    """Edges of all agents, stacked, and the routes of their letters."""

    edges: Edges
    routes: Graph | Slots
    slots: Slots | None = None  # of asynchronous runs, whatever the delivery


def of(
    graph: Graph, algorithm: GraphAlgorithm, dtype: Any, asynchronous: bool = False
) -> Links:
    """Lay the graph out for the way in which the algorithm's letters are delivered."""
    on_edges = jax.tree.map(jnp.asarray, graph.slots) if asynchronous else None
    degree = jnp.asarray(graph.degrees, dtype)
    counts = jnp.asarray(graph.neighbour_counts)
    if algorithm.delivery == "sum":
        edges = Edges(degree, None, None, None, counts, None)  # pyright: ignore
        return Links(edges, graph, on_edges)
    slots = graph.slots
    edges = Edges(
        degree=degree,
        weight=jnp.asarray(slots.weight, dtype),
        mask=jnp.asarray(slots.mask),
        sign=jnp.asarray(slots.sign, dtype),
        neighbour_count=counts,
        neighbour_counts=counts[slots.neighbour] * slots.mask,
    )
    return Links(edges, slots, on_edges)


def deliver(links: Links, letters: Array) -> Array:
    """What every agent receives when all last letters are delivered."""
    if isinstance(links.routes, Graph):
        return neighbour_sum(links.routes, letters)
    return exchange(links.routes, letters)

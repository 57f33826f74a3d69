"""A graph as the runtime needs it: every agent's edges, and how letters travel."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita.aggregation import Aggregation, Heard
from tacita.aggregation.robust_rule import RobustRule, Vectors
from tacita.algorithm.base import Edges, GraphAlgorithm
from tacita.mesh.places import Places
from tacita.problem.graph import Graph, Slots, exchange, neighbour_sum
from tacita.problem.graph.cut import CutSlots, CutSums, cut_slots, cut_sums
from tacita.robust import Attack, Dissensus


class Links(NamedTuple):
    """Edges of all agents, stacked, and the routes of their letters.

    On a mesh a device has its own agents' edges, and routes that are cut.
    """

    edges: Edges
    routes: Graph | Slots | CutSums | CutSlots
    #: Where letters are needed one by one all the same.
    slots: Slots | CutSlots | None = None


def of(
    graph: Graph, algorithm: GraphAlgorithm, dtype: Any, one_by_one: bool = False
) -> Links:
    """Lay the graph out for the way in which the algorithm's letters are delivered."""
    on_edges = jax.tree.map(jnp.asarray, graph.slots) if one_by_one else None
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


def cut(links: Links, places: Places) -> Links:
    """The routes of letters where agents lie on several devices, planned once."""
    routes, slots = links.routes, links.slots
    if isinstance(routes, Graph):
        routes = cut_sums(routes, places)
    elif isinstance(routes, Slots):
        routes = cut_slots(routes, places, per_edge=True)
    if isinstance(slots, Slots):
        slots = cut_slots(slots, places, per_edge=False)
    return Links(links.edges, routes, slots)


def deliver(links: Links, letters: Array) -> Array:
    """What every agent receives when all last letters are delivered."""
    if isinstance(links.routes, Graph):
        return neighbour_sum(links.routes, letters)
    if isinstance(links.routes, Slots):
        return exchange(links.routes, letters)
    return links.routes.deliver(letters)


def deliver_by_rule(
    links: Links,
    rule: Aggregation,
    attack: Attack | None,
    keys: Array,
    letters: Array,
    number: Any,
    agents: int,
) -> Array:
    """What every agent receives when a rule joins its neighbours' letters.

    Args:
        links: All agents' edges.
        rule: What joins the letters.
        attack: Who lies; None where nobody does.
        keys: Of the rule, one for every agent.
        letters: Everybody's; on a mesh those of this device.
        number: Of the round.
        agents: How many there are, on all devices.
    """
    slots = links.slots
    assert slots is not None
    near, mask = jnp.asarray(slots.neighbour), jnp.asarray(slots.mask)
    weights = jnp.asarray(slots.weight, letters.dtype)
    honest = jnp.ones(agents, bool)
    if attack is not None:
        honest = jnp.asarray(attack.honest(agents))
    apart = isinstance(slots, CutSlots)
    everybody = slots.borders.with_arrived(letters) if apart else letters
    found = jnp.asarray(slots.found) if apart else near

    def at_one(own: Array, found: Array, true: Array, *edges: Any) -> Any:
        heard, (weight, mask, *rest) = everybody[found], edges
        if isinstance(attack, Dissensus):
            heard = attack.tell(own, heard, weight, true | ~mask, number)
        return at_node(rule, own, heard, weight, mask, *rest)

    edges = (weights, mask, keys, links.edges.degree)
    return jax.vmap(at_one)(letters, found, honest[near], *edges)


def at_node(
    rule: Aggregation,
    own: Array,
    letters: Array,
    weights: Array,
    mask: Array,
    key: Array,
    degree: Array,
) -> Array:
    """What one node receives: its degree times the rule's letter.

    In place of sum_j A_ij letter_j, so that algorithms run unchanged.

    Args:
        rule: What joins the letters.
        own: The node's own letter, (d,): the rule's centre.
        letters: Its neighbours', (slots, d).
        weights: Of its edges.
        mask: Which slots are edges.
        key: Of the rule.
        degree: The sum of the weights.
    """
    if isinstance(rule, RobustRule):
        # As in its own call, nothing is looked at where there is no edge.
        heard = jnp.where(mask[:, None], letters, 0)
        return degree * rule.join(Vectors(heard, mask, weights, own, key))
    return degree * rule(Heard(letters, weights, mask, key, own))

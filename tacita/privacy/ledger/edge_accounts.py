"""Accounts per edge: what a node on a graph may still tell each of its neighbours.

A node promises each neighbour's side of the graph its own budget. A letter that leaves
is charged to the account of its edge and to the node's own, against an eavesdropper.
Each edge is charged with the whole round of the node, not with its own letter alone:
what other neighbours were told comes back through their answers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.ledger.ledger import Ledger
from tacita.privacy.letters import Question, guarantee
from tacita.problem.graph import Graph
from tacita.problem.problem import Problem
from tacita.trees import in_double_precision


def edge_account(node: Hashable, neighbour: Hashable) -> str:
    """The name under which a ledger keeps the edge from a node to a neighbour.

    >>> edge_account("north", "south")
    'north to south'
    """
    return f"{node} to {neighbour}"


def neighbours_of(problem: Problem, agent: int) -> list[Hashable]:
    """The ids of a node's neighbours, in the order of its letters."""
    graph = problem.graph
    if graph is None:
        check.refuse("edges need a graph; pass graph= to the problem")
    mine = np.asarray(graph.receivers) == agent
    return [problem.ids[j] for j in np.asarray(graph.senders)[mine]]


def allow_edges(
    ledger: Ledger,
    problem: Problem,
    agent: int,
    *,
    epsilon: float | Mapping[Hashable, float],
    delta: float,
    **unit: str,
) -> None:
    """Set the budget of every edge of a node, and of the node against eavesdroppers.

    Args:
        ledger: Where.
        problem: With its graph.
        agent: The node's number.
        epsilon: One budget for all edges, or one for each neighbour by its id. Who
            taps the lines sees what the best trusted neighbour sees.
        delta: The probability of exceeding them.
        **unit: `unit` and `relation`, as in `Ledger.allow`.
    """
    node, there = problem.ids[agent], neighbours_of(problem, agent)
    budgets = epsilon if isinstance(epsilon, Mapping) else dict.fromkeys(there, epsilon)
    for other in there:
        if other not in budgets:
            check.refuse(f"no budget for neighbour {other!r} of node {node!r}")
        where = {"agent": edge_account(node, other), "observer": "neighbour"}
        ledger.allow(**where, epsilon=budgets[other], delta=delta, **unit)
    most = max(budgets[other] for other in there)
    where = {"agent": str(node), "observer": "eavesdropper"}
    ledger.allow(**where, epsilon=most, delta=delta, **unit)


def charge_edges(
    ledger: Ledger,
    problem: Problem,
    algorithm: Any,
    agent: int,
    *,
    run: str,
    round: int,
    letters: np.ndarray,
) -> None:
    """Charge a node's letters of one round; when this returns, they may leave.

    Args:
        ledger: With budgets set by `allow_edges`.
        problem: With its graph.
        algorithm: With its noise.
        agent: The node's number.
        run: The run's name.
        round: The round, from 0.
        letters: One letter per neighbour, in the order of `neighbours_of`.

    Raises:
        BudgetExceeded: An account would be passed. The edges charged before it stay
            charged: budget may be wasted, never under-counted.
    """
    node, there = problem.ids[agent], neighbours_of(problem, agent)
    if len(letters) < len(there):
        check.refuse(f"expected one letter for each of {there}, got {len(letters)}")
    named = {"run": run, "round": round}
    for other, letter in zip(there, letters, strict=False):
        ledger.charge(
            price_of_round(problem, algorithm, agent, "neighbour"),
            agent=edge_account(node, other),
            content=np.ascontiguousarray(letter).tobytes(),
            **named,
        )
    ledger.charge(
        price_of_round(problem, algorithm, agent, "eavesdropper"),
        agent=str(node),
        content=np.ascontiguousarray(letters).tobytes(),
        **named,
    )


def price_of_round(
    problem: Problem,
    algorithm: Any,
    agent: int,
    observer: str,
    *,
    unit: str = "record",
    relation: str = "replace_one",
) -> Guarantee:
    """What one round in which the node takes part costs against an observer."""
    question = Question(
        observer=observer, unit=unit, relation=relation, agent=agent, rounds=1
    )
    return guarantee(algorithm, problem, question)


@in_double_precision
def as_everybody(own: Problem, graph: Graph) -> Problem:
    """A problem in which every node of the graph holds one node's own rows.

    In a federation a node knows the graph and its own rows, which is all that its own
    guarantee and noise depend on: ask this problem, and read off the node's entry.
    """
    population = own.population
    rows = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (graph.n_nodes, *leaf.shape[1:])),
        population.rows,
    )
    return Problem(
        dataclasses.replace(population, rows=rows),
        tuple(graph.nodes),
        own.start,
        own.class_names,
        own.name,
        graph,
    )

"""From ids and pairs of ids to checked arrays: what a graph is made of."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from tacita.check import count, refuse


def sorted_nodes(n_or_ids: int | Iterable[Hashable]) -> Sequence[Any]:
    """Return the ids in ascending order; `range(n)` where they are 0 .. n-1."""
    if isinstance(n_or_ids, int | np.integer):
        return range(count(n_or_ids=n_or_ids))
    if isinstance(n_or_ids, range) and n_or_ids == range(len(n_or_ids)):
        return n_or_ids
    ids: list[Any] = [i.item() if isinstance(i, np.generic) else i for i in n_or_ids]
    if not ids:
        refuse("expected at least one node, got none")
    try:
        nodes = tuple(sorted(ids))
    except TypeError:
        kinds = sorted({type(i).__name__ for i in ids})
        refuse(f"node ids of types {kinds} cannot be sorted; use one type")
    for one, other in zip(nodes, nodes[1:], strict=False):
        if one == other:
            refuse(f"node id {one!r} is given twice; every id names one node")
    numbers = range(len(nodes))
    same = nodes == tuple(numbers) and all(type(i) is int for i in nodes)
    return numbers if same else nodes


def index_edges(
    nodes: Sequence[Any], edges: Any, weights: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return checked edges as indices of nodes, (E, 2) int32, and their weights."""
    pairs = _index_pairs(nodes, edges)
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        node = nodes[pairs[np.argmax(loops), 0]]
        refuse(f"an edge joins node {node!r} to itself; remove self loops")
    if weights is None:
        return pairs, np.ones(len(pairs))
    try:
        weights = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        refuse("expected weights one number per edge, got something else")
    if weights.shape != (len(pairs),):
        refuse(f"expected weights of shape ({len(pairs)},), got shape {weights.shape}")
    bad = ~((weights > 0) & (weights < np.inf))
    if bad.any():
        first = int(np.argmax(bad))
        i, j = pairs[first]
        refuse(
            f"expected weights > 0, got {weights[first]} on edge "
            f"({nodes[i]!r}, {nodes[j]!r})"
        )
    return pairs, weights


def _index_pairs(nodes: Sequence[Any], edges: Any) -> np.ndarray:
    """Look up both ends of every edge among the nodes."""
    if not isinstance(edges, np.ndarray):
        edges = list(edges)
    if not len(edges):
        return np.zeros((0, 2), np.int32)
    if isinstance(nodes, range) or isinstance(edges, np.ndarray):
        table = np.asarray(edges)
        if table.ndim != 2 or table.shape[1] != 2:
            refuse(f"expected edges as pairs, shape (E, 2), got shape {table.shape}")
        if isinstance(nodes, range) and table.dtype.kind in "iu":
            unknown = (table < 0) | (table >= len(nodes))
            if unknown.any():
                _refuse_unknown(nodes, table[unknown][0])
            return table.astype(np.int32)
        edges = table.tolist()
    index = {node: i for i, node in enumerate(nodes)}
    found = np.empty((len(edges), 2), np.int32)
    for row, edge in enumerate(edges):
        if not isinstance(edge, tuple | list | np.ndarray) or len(edge) != 2:
            refuse(f"expected edges as pairs of nodes, got {edge!r}")
        for end in (0, 1):
            if edge[end] not in index:
                _refuse_unknown(nodes, edge[end])
            found[row, end] = index[edge[end]]
    return found


def _refuse_unknown(nodes: Sequence[Any], node: Any) -> NoReturn:
    node = node.item() if isinstance(node, np.generic) else node
    refuse(
        f"an edge names {node!r}, which is none of the {len(nodes)} nodes "
        f"({nodes[0]!r} to {nodes[-1]!r}); add the node or remove the edge"
    )

"""A graph beside the map of its nodes: who is near, and who is alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from tacita import check
from tacita.problem.graph import Graph
from tacita.theme import LIGHT, Theme, dress, new_figure, png, title

#: Of larger graphs nobody could tell the edges apart.
_DRAWN = 2000
#: Up to this many nodes are named.
_NAMED = 30


def graph_picture(
    graph: Graph,
    positions: Any = None,
    theme: Theme = LIGHT,
    words: str = "who is alike",
) -> Figure:
    """Nodes at their places, and the same nodes pulled together by their edges.

    Both halves have the same colours, from south to north, so that one can follow a
    node from one to the other; without places, colours follow the graph's parts.

    Args:
        graph: Of at most 2000 nodes.
        positions: Latitude and longitude of every node, (N, 2); without them there is
            no map.
        theme: Colours of the paper.
        words: Above the graph.
    """
    if graph.n_nodes > _DRAWN:
        check.refuse(
            f"expected a graph of at most {_DRAWN} nodes to draw, got {graph.n_nodes}"
        )
    pulled = _pulled(graph)
    if positions is None:
        figure = new_figure(theme, 6.0, 5.6)
        _draw(figure.subplots(), graph, pulled, _parts(graph), theme, words)
        return figure
    places = np.asarray(check.finite(positions=positions), float)
    check.shape((graph.n_nodes, 2), positions=places)
    figure = new_figure(theme, 10.0, 6.2)
    left, right = figure.subplots(1, 2)
    values = places[:, 0]
    where = places[:, ::-1]
    _draw(left, graph, where, values, theme, "where they are, from south to north")
    # A degree of longitude is shorter than one of latitude by this factor.
    left.set_aspect(1 / np.cos(np.deg2rad(float(values.mean()))))
    _draw(right, graph, pulled, values, theme, words)
    return figure


def draw_graph(graph: Graph, path: Path, positions: Any = None, **more: Any) -> Path:
    """Draw it into a file; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(graph_picture(graph, positions, **more)))
    return path


def _parts(graph: Graph) -> np.ndarray:
    from scipy.sparse import csgraph

    return csgraph.connected_components(graph.adjacency(), directed=False)[1]


def _pulled(graph: Graph) -> np.ndarray:
    import networkx as nx  # slow to import, needed only here

    drawn = graph.to_networkx()
    places: Any = nx.spring_layout(drawn, seed=0, k=2.2 / np.sqrt(graph.n_nodes))
    return np.array([places[one] for one in graph.nodes])


def _draw(
    axes: Any,
    graph: Graph,
    places: np.ndarray,
    values: np.ndarray,
    theme: Theme,
    words: str,
) -> None:
    dress(axes, theme)
    axes.grid(False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines["bottom"].set_visible(False)
    i, j, weights = graph.pairs()
    if len(i):
        strength = weights / weights.max()
        lines = LineCollection(
            list(np.stack([places[i], places[j]], axis=1)),
            colors=theme.soft,
            alpha=float(np.clip(150 / len(i), 0.15, 0.6)),  # many must not hide nodes
            linewidths=0.3 + 0.7 * strength,
            zorder=1,
        )
        axes.add_collection(lines)
    colours = LinearSegmentedColormap.from_list(
        "places", ["#9c1f2e", "#e07b39", "#f2d06b", "#8fc3b0", "#2f8fb3", "#27408b"]
    )
    size = 60 if graph.n_nodes <= _NAMED else 26
    axes.scatter(
        *places.T,
        c=values,
        cmap=colours,
        s=size,
        edgecolors=theme.paper,
        linewidths=0.6,
        zorder=2,
    )
    if graph.n_nodes <= _NAMED:
        for name, place in zip(graph.nodes, places, strict=True):
            axes.annotate(
                str(name),
                place,
                xytext=(5, 4),
                textcoords="offset points",
                fontsize=7.5,
                color=theme.soft,
                parse_math=False,
            )
    axes.margins(0.06)
    title(axes, theme, words)

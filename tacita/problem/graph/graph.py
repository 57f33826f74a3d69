"""The network of agents: an undirected graph with positive weights.

Stored as flat NumPy arrays, so that ten nodes and a million are handled alike. The
generalised total variation of models w_i over it is
sum_{i<j} A_ij ||w_i - w_j||^2 = trace(W' L W), with the Laplacian L = D - A; see
A. Jung, "Federated Learning: From Theory to Practice", chapter 3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from tacita import notebook
from tacita.check import refuse
from tacita.problem.graph.checks import index_edges, sorted_nodes
from tacita.problem.graph.layout import Array, Layout, build_layout
from tacita.problem.graph.sparse import Slots, build_slots
from tacita.problem.graph.spectrum import Spectrum, laplacian_spectrum

if TYPE_CHECKING:
    import networkx as nx


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Undirected graph with positive weights A_ij = A_ji, a pytree of arrays.

    Make one with `from_edges`, `from_networkx` or a builder such as `ring`; these
    check what the bare constructor takes on trust. Under `jax.jit` it can be an
    argument: arrays are leaves, the node ids are static.

    Attributes:
        nodes: Ids in ascending order; `range(n)` where they are just numbers.
        receivers: Index i of every directed edge j -> i, ascending; 2E of them.
        senders: Index j of every directed edge j -> i, ascending for each i.
        weights: A_ij of every directed edge.
        degrees: Weighted degree sum_j A_ij of every node.
        neighbour_counts: Number of neighbours of every node.
        layout: The edges as `neighbour_sum` reads them.
        from_rows: Whether it was learnt from rows without noise: who knows its edges
            then learns of them, and private runs on it say so.
        from_letters: Whether it was learnt from noisy letters of the nodes, which have
            a price of their own: private runs on it say so, too.

    Example:
        >>> graph = Graph.from_edges(["c", "a", "b"], [("a", "b"), ("c", "b")])
        >>> graph
        Graph(3 nodes, 2 edges)
        >>> graph.nodes, graph.degrees.tolist()
        (('a', 'b', 'c'), [1.0, 2.0, 1.0])
    """

    nodes: Sequence[Any]
    receivers: Array
    senders: Array
    weights: Array
    degrees: Array
    neighbour_counts: Array
    layout: Layout
    from_rows: bool = False
    from_letters: bool = False

    @classmethod
    def from_edges(
        cls, n_or_ids: int | Iterable[Hashable], edges: Any, weights: Any = None
    ) -> Graph:
        """Make a graph from its edges, each undirected edge given once.

        Args:
            n_or_ids: Number of nodes, then called 0 .. n-1, or their ids.
            edges: Pairs of nodes, shape (E, 2).
            weights: One positive number per edge; 1 if left out.
        """
        nodes = sorted_nodes(n_or_ids)
        pairs, weights = index_edges(nodes, edges, weights)
        receivers = np.concatenate([pairs[:, 0], pairs[:, 1]])
        senders = np.concatenate([pairs[:, 1], pairs[:, 0]])
        both = (np.concatenate([weights, weights]), (receivers, senders))
        n = len(nodes)
        matrix = sp.coo_array(both, shape=(n, n)).tocsr()  # rows and columns ascending
        if matrix.nnz < len(receivers):
            _, seen = np.unique(
                pairs.min(axis=1).astype(np.int64) * n + pairs.max(axis=1),
                return_index=True,
            )
            i, j = pairs[np.setdiff1d(np.arange(len(pairs)), seen)[0]]
            refuse(
                f"edge ({nodes[i]!r}, {nodes[j]!r}) is given twice; give every "
                "undirected edge once"
            )
        return cls._from_matrix(nodes, matrix)

    @classmethod
    def _from_matrix(cls, nodes: Sequence[Any], matrix: Any) -> Graph:
        counts = np.diff(matrix.indptr).astype(np.int32)
        senders = matrix.indices.astype(np.int32)
        receivers = np.repeat(np.arange(len(nodes), dtype=np.int32), counts)
        degrees = np.bincount(receivers, matrix.data, minlength=len(nodes))
        layout = build_layout(senders, matrix.data, counts)
        return cls(nodes, receivers, senders, matrix.data, degrees, counts, layout)

    @classmethod
    def from_networkx(cls, g: nx.Graph, weight: str | None = "weight") -> Graph:
        """Take over a `networkx` graph.

        Args:
            g: Undirected, without parallel edges and self loops.
            weight: Edge attribute that holds the weight; 1 where an edge has none.
                None ignores all weights.
        """
        if g.is_directed() or g.is_multigraph():
            refuse(
                "expected an undirected graph without parallel edges, got "
                f"{type(g).__name__}; convert it with networkx.Graph(g)"
            )
        edges = list(g.edges())
        weights = None
        if weight is not None:
            weights = [value for _, _, value in g.edges(data=weight, default=1.0)]
        made = cls.from_edges(g.nodes(), edges, weights)
        known = {name: bool(g.graph.get(name, False)) for name in _ORIGINS}
        return dataclasses.replace(made, **known)

    def to_networkx(self) -> nx.Graph:
        """Return the same graph for `networkx`, weights in the attribute "weight"."""
        import networkx as nx  # slow to import, needed only here

        g = nx.Graph()
        # What its edges tell of rows they still tell after some were changed.
        g.graph.update({name: True for name in _ORIGINS if getattr(self, name)})
        g.add_nodes_from(self.nodes)
        edges = zip(*(part.tolist() for part in self.pairs()), strict=True)
        g.add_weighted_edges_from(
            (self.nodes[i], self.nodes[j], a) for i, j, a in edges
        )
        return g

    def _repr_html_(self) -> str:
        counts = np.asarray(self.neighbour_counts)
        i, j, weights = self.pairs()
        rows = [("nodes", self.n_nodes), ("edges", self.n_edges)]
        rows.append(("parts", self.n_parts))
        if self.n_edges:
            rows += [
                ("neighbours", f"{counts.min()} to {counts.max()}"),
                ("weights", f"{weights.min():.4g} to {weights.max():.4g}"),
            ]
        told = notebook.table("Graph", rows)
        if self.from_rows:
            told += notebook.notes([("edges", "learnt from rows without noise")])
        return told + notebook.round_graph(self.n_nodes, zip(i, j, strict=True))

    def __repr__(self) -> str:
        return f"Graph({self.n_nodes} nodes, {self.n_edges} edges)"

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.nodes)

    @property
    def n_edges(self) -> int:
        """Number of undirected edges E."""
        return self.receivers.shape[0] // 2

    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Every edge once: its two ends, the smaller index first, and its weight."""
        i, j = np.asarray(self.receivers), np.asarray(self.senders)
        once = i < j
        return i[once], j[once], np.asarray(self.weights)[once]

    @property
    def max_degree(self) -> float:
        """Largest weighted degree; under `jax.jit` use `degrees.max()`."""
        return float(np.max(np.asarray(self.degrees)))

    @cached_property
    def slots(self) -> Slots:
        """Padded slots for one letter per edge, made at the first call.

        Make them outside of `jax.jit` and pass them as an argument.
        """
        return build_slots(self)

    def adjacency(self) -> Any:
        """Return A as a `scipy.sparse` CSR array."""
        ends = np.append(0, np.cumsum(np.asarray(self.neighbour_counts)))
        data = np.asarray(self.weights, np.float64)
        parts = (data, np.asarray(self.senders), ends)
        return sp.csr_array(parts, shape=(self.n_nodes, self.n_nodes))

    def laplacian(self) -> Any:
        """Return L = D - A as a `scipy.sparse` CSR array."""
        degrees = np.asarray(self.degrees, np.float64)
        return sp.csr_array(sp.diags_array(degrees) - self.adjacency())

    def spectrum(self) -> Spectrum:
        """Return lambda_2 and lambda_n of the Laplacian and the extreme degrees.

        0 = lambda_1 <= lambda_2 <= ... <= lambda_n, with lambda_2 > 0 exactly if the
        graph is connected. Exact up to rounding for small graphs, to a relative error
        of about 1e-6 for large ones.
        """
        return self._spectrum

    @cached_property
    def _spectrum(self) -> Spectrum:
        return laplacian_spectrum(self.laplacian(), self.connected)

    @cached_property
    def _components(self) -> tuple[int, np.ndarray]:
        return csgraph.connected_components(self.adjacency(), directed=False)

    @property
    def connected(self) -> bool:
        """Whether a path joins every two nodes."""
        return self._components[0] == 1

    @property
    def n_parts(self) -> int:
        """How many parts it has between which there is no edge."""
        return self._components[0]

    def require_connected(self, otherwise: str = "") -> Graph:
        """Return the graph itself; refuse one in several parts.

        Args:
            otherwise: What else would help, for the refusal.
        """
        if self.connected:
            return self
        counts = np.asarray(self.neighbour_counts)
        parts = self._components[0]
        if counts.min() == 0:
            lonely = self.nodes[int(counts.argmin())]
            refuse(
                f"the graph has {parts} parts: node {lonely!r} has no neighbours; add "
                f"an edge to it or leave the node out{otherwise}"
            )
        refuse(
            f"the graph has {parts} parts without an edge between them; add edges"
            f"{otherwise}"
        )

    def match(self, ids: Iterable[Hashable]) -> Graph:
        """Return this graph with node i for the i-th of the sorted agent ids.

        Args:
            ids: The agents; must be the nodes of the graph, in any order.
        """
        wanted = sorted_nodes(ids)
        if wanted == self.nodes:
            return self
        missing = sorted(set(wanted) - set(self.nodes))
        extra = sorted(set(self.nodes) - set(wanted))
        if not missing and not extra:
            return self
        if len(extra) == len(self.nodes):
            refuse(
                f"no node of the graph is an agent: nodes are {_some(self.nodes)}, "
                f"agents are {_some(wanted)}; rename the nodes with graph.named(ids)"
            )
        if missing:
            refuse(
                f"the graph lacks the agents {_some(missing)}; add them with their "
                "edges, or drop these agents"
            )
        refuse(f"the graph has nodes without data: {_some(extra)}; remove them")

    def named(self, ids: Iterable[Hashable]) -> Graph:
        """Return the same graph with node i called by the i-th of the sorted ids.

        Example:
            >>> from tacita.problem.graph import ring
            >>> ring(3).named(["london", "aalto", "oslo"]).nodes
            ('aalto', 'london', 'oslo')
        """
        nodes = sorted_nodes(ids)
        if len(nodes) != self.n_nodes:
            refuse(f"expected {self.n_nodes} ids for as many nodes, got {len(nodes)}")
        return dataclasses.replace(self, nodes=nodes)


#: Where edges come from.
_ORIGINS = ("from_rows", "from_letters")
_STATIC = ["nodes", *_ORIGINS]
jax.tree_util.register_dataclass(
    Graph,
    data_fields=[f.name for f in dataclasses.fields(Graph) if f.name not in _STATIC],
    meta_fields=_STATIC,
)


def _some(ids: Sequence[Any]) -> str:
    shown = ", ".join(repr(one) for one in ids[:3])
    return shown if len(ids) <= 3 else f"{shown} and {len(ids) - 3} more"

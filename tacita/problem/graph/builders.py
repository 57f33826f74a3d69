"""Graphs made by rule or by chance.

Every builder gives nodes 0 .. n-1 and edges of weight 1 unless it says otherwise; call
`named` on the result to give the nodes their agents' ids. Random builders take a seed:
the same seed gives the same graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tacita.check import between, count, finite, refuse
from tacita.problem.graph.nearest import nearest_points, wanted_pairs

if TYPE_CHECKING:
    from tacita.problem.graph.graph import Graph

#: A random graph that must be connected is drawn again this often,
_MAX_TRIES = 50
#: but no more often than makes this many edges in all.
_MAX_DRAWN = 10_000_000
_MAX_REPAIRS = 200
#: Length of a degree of latitude in kilometres.
_DEGREE = 111.195


def _graph(n: int, pairs: np.ndarray, weights: Any = None) -> Graph:
    from tacita.problem.graph.graph import Graph

    return Graph.from_edges(n, pairs, weights)


def star(n: int) -> Graph:
    """Join node 0 with each of the n - 1 others.

    >>> star(4).degrees.tolist()
    [3.0, 1.0, 1.0, 1.0]
    """
    count(at_least=2, n=n)
    leaves = np.arange(1, n)
    return _graph(n, np.stack([np.zeros_like(leaves), leaves], axis=1))


def ring(n: int) -> Graph:
    """Join every node with the next, and the last with the first.

    >>> ring(5).n_edges
    5
    """
    return _graph(n, _ring_pairs(count(at_least=3, n=n)))


def _ring_pairs(n: int) -> np.ndarray:
    return np.stack([np.arange(n), np.roll(np.arange(n), -1)], axis=1)


def complete(n: int) -> Graph:
    """Join every node with every other."""
    count(at_least=2, n=n)
    return _graph(n, np.stack(np.triu_indices(n, k=1), axis=1))


def grid(rows: int, cols: int) -> Graph:
    """Join neighbours on a rows x cols grid; the node at (r, c) is r * cols + c."""
    number = np.arange(count(rows=rows) * count(cols=cols)).reshape(rows, cols)
    right = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return _graph(number.size, np.concatenate([right, down]))


def erdos_renyi(
    n: int,
    p: float | None = None,
    edges: int | None = None,
    seed: int = 0,
    connected: bool = True,
) -> Graph:
    """Draw a random graph: every edge with probability p, or `edges` of them.

    Args:
        n: Number of nodes.
        p: Probability of each of the n (n - 1) / 2 edges.
        edges: Number of edges, all sets of that many equally likely. Give p or edges.
        seed: Of the random draw.
        connected: Draw again until the graph is connected: the draw is then conditional
            on it. Refused when many draws have failed. Below about n log(n) / 2
            edges a large graph is hardly ever connected.

    Example:
        >>> erdos_renyi(1000, edges=8000, connected=False)
        Graph(1000 nodes, 8000 edges)
    """
    count(at_least=2, n=n)
    pairs = n * (n - 1) // 2
    if (p is None) == (edges is None):
        refuse("expected either p or edges, got both or none")
    if edges is not None and count(at_least=0, edges=edges) > pairs:
        refuse(f"expected at most {pairs} edges among {n} nodes, got edges={edges}")
    if p is not None:
        between(0, 1)(p=p)
    rng = np.random.default_rng(seed)

    def draw() -> Graph:
        m = rng.binomial(pairs, p) if p is not None else edges
        codes = _distinct(rng, pairs, int(m or 0))
        # Code k n + i is the pair {i, i + k + 1 mod n}: a ring's chords, each once.
        first = codes % n
        return _graph(n, np.stack([first, (first + codes // n + 1) % n], axis=1))

    if not connected:
        return draw()
    remedy = (
        f"raise p well above log(n)/n = {np.log(n) / n:.2g}"
        if edges is None
        else (f"raise edges well above n log(n)/2 = {n * np.log(n) / 2:.0f}")
    )
    return _until_connected(draw, remedy + " or pass connected=False")


def _until_connected(draw: Callable[[], Graph], remedy: str) -> Graph:
    tries = drawn = 0
    while tries < _MAX_TRIES and drawn < _MAX_DRAWN:
        graph = draw()
        if graph.connected:
            return graph
        tries, drawn = tries + 1, drawn + graph.n_edges
    refuse(f"no connected graph in {tries} draws; {remedy}")


def _distinct(rng: np.random.Generator, total: int, m: int) -> np.ndarray:
    """Draw m different numbers below `total`, all sets of m equally likely."""
    if 2 * m > total:
        left_out = _distinct(rng, total, total - m)
        return np.delete(np.arange(total), left_out)
    found = np.zeros(0, np.int64)
    if m == 0:
        return found
    while len(found) < m:
        more = rng.integers(total, size=m - len(found) + m // 16 + 8)
        found = _unique(np.concatenate([found, more]))
    surplus = rng.choice(len(found), len(found) - m, replace=False)
    return np.delete(found, surplus)


def _unique(codes: np.ndarray) -> np.ndarray:
    """Sort and drop repeats, faster than the hashing of `np.unique` on millions."""
    codes = np.sort(codes)
    return codes[np.append(True, codes[1:] != codes[:-1])]


def random_regular(n: int, degree: int, seed: int = 0, connected: bool = True) -> Graph:
    """Draw a random graph in which every node has `degree` neighbours.

    Stubs are paired at random (the configuration model; B. Bollobas, 1980); loops and
    double edges are then removed by switching ends with edges drawn at random.

    Args:
        n: Number of nodes; n times degree must be even.
        degree: Number of neighbours of every node, below n.
        seed: Of the random draw.
        connected: Draw again until the graph is connected. From degree 3 on nearly all
            draws are; of degree 2 this is a ring in random order.

    Example:
        >>> set(random_regular(100, degree=4).neighbour_counts.tolist())
        {4}
    """
    count(at_least=2, n=n)
    count(degree=degree)
    if degree >= n or n * degree % 2:
        refuse(f"expected degree < n with n * degree even, got n={n}, degree={degree}")
    if connected and degree == 1 and n > 2:
        refuse("a graph of degree 1 is not connected; pass connected=False or degree=2")
    rng = np.random.default_rng(seed)
    if connected and degree == 2:
        return _graph(n, rng.permutation(n)[_ring_pairs(n)])

    def draw() -> Graph:
        return _graph(n, _regular_pairs(rng, n, degree))

    return _until_connected(draw, "raise degree") if connected else draw()


def _regular_pairs(rng: np.random.Generator, n: int, degree: int) -> np.ndarray:
    """Draw the edges of a simple regular graph as pairs of nodes."""
    if 2 * degree > n - 1:  # few edges are missing: draw those
        first, second = np.triu_indices(n, k=1)
        present = np.ones((n, n), bool)
        if degree < n - 1:
            missing = _regular_pairs(rng, n, n - 1 - degree)
            present[missing[:, 0], missing[:, 1]] = False
            present[missing[:, 1], missing[:, 0]] = False
        kept = present[first, second]
        return np.stack([first[kept], second[kept]], axis=1)
    for _ in range(_MAX_TRIES):
        stubs = np.repeat(np.arange(n), degree)
        pairs = _repair(rng, n, rng.permutation(stubs).reshape(-1, 2))
        if pairs is not None:
            return pairs
    refuse(f"no simple graph found for n={n}, degree={degree}; try another seed")


def _repair(rng: np.random.Generator, n: int, pairs: np.ndarray) -> np.ndarray | None:
    """Switch ends of bad edges with other edges until the graph is simple.

    {a, b}, {c, d} -> {a, d}, {c, b} keeps all degrees. A pass switches every bad edge
    with a partner of its own, unless that made a loop or an edge that is there already.
    """
    for _ in range(_MAX_REPAIRS):
        code = _code(n, pairs)
        order = np.argsort(code, kind="stable")
        present = code[order]
        bad = pairs[:, 0] == pairs[:, 1]
        bad[order[1:]] |= present[1:] == present[:-1]
        broken = np.flatnonzero(bad)
        if not len(broken):
            return pairs
        partner = rng.choice(len(pairs), len(broken), replace=False)
        one = np.stack([pairs[broken, 0], pairs[partner, 1]], axis=1)
        two = np.stack([pairs[partner, 0], pairs[broken, 1]], axis=1)
        made = np.concatenate([_code(n, one), _code(n, two)])
        place = np.minimum(np.searchsorted(present, made), len(present) - 1)
        _, which, times = np.unique(made, return_inverse=True, return_counts=True)
        new = (present[place] != made) & (times[which] == 1)
        loops = (one[:, 0] == one[:, 1]) | (two[:, 0] == two[:, 1])
        good = new.reshape(2, -1).all(axis=0) & ~loops & ~bad[partner]
        pairs[broken[good]], pairs[partner[good]] = one[good], two[good]
    return None


def _code(n: int, pairs: np.ndarray) -> np.ndarray:
    """Return one number per undirected edge."""
    return pairs.min(axis=1) * n + pairs.max(axis=1)


def nearest_neighbours(
    positions: Any, k: int, weight: Callable[[np.ndarray], Any] | None = None
) -> Graph:
    """Join every point with its k nearest; an edge holds if either end wants it.

    Not always connected: far apart clusters stay apart.

    Args:
        positions: Points, shape (n, dimensions).
        k: Number of nearest points, 1 <= k < n. Nodes have k neighbours or more.
        weight: Function from an array of distances to positive weights; 1 if left out.

    Example:
        >>> graph = nearest_neighbours([[0.0], [1.0], [3.0]], k=1)
        >>> graph.to_networkx().edges
        EdgeView([(0, 1), (1, 2)])
    """
    points = np.asarray(finite(positions=positions), np.float64)
    if points.ndim != 2:
        refuse(f"expected positions of shape (n, dimensions), got {points.shape}")
    n = len(points)
    if count(k=k) >= n:
        refuse(f"expected k < {n}, the number of points, got k={k}")
    pairs = wanted_pairs(nearest_points(points, k))
    if weight is None:
        return _graph(n, pairs)
    distances = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    return _graph(n, pairs, weight(distances))


def kilometres(positions: Any) -> np.ndarray:
    """Latitude and longitude in degrees as kilometres north and east, (n, 2).

    Flat, around the mean latitude: good for a country, not for a continent.

    >>> kilometres([[60.0, 25.0], [61.0, 25.0]]).round(1).tolist()
    [[-55.6, 0.0], [55.6, 0.0]]
    """
    degrees = np.asarray(finite(positions=positions), np.float64)
    if degrees.ndim != 2 or degrees.shape[1] != 2:
        refuse(f"expected positions of shape (n, 2), got {degrees.shape}")
    between(-90, 90)(latitude=degrees[:, 0])
    middle = degrees.mean(axis=0)
    shrink = np.array([1.0, np.cos(np.deg2rad(middle[0]))])
    return _DEGREE * shrink * (degrees - middle)

"""DP-Norm's convergence rate as a function of numbers.

T. Fukami, T. Murata, K. Niwa, I. Tyou, "DP-Norm: Differential Privacy Primal-Dual
Algorithm for Decentralized Federated Learning", Theorem 2. A rate up to constants and
logarithms: it says how error falls with a number, not how large it is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tacita import check


class Rate(NamedTuple):
    """The five terms of (9).

    Attributes:
        steps: 1/(K R), of plain descent.
        network: E/(N R), of the exchanges.
        batches: 1/sqrt(B K R), of the batches.
        rows: sqrt(p)/(d_min epsilon), of the noise; it does not fall with rounds.
        noise: sqrt(p)/(K B epsilon), likewise.
    """

    steps: float
    network: float
    batches: float
    rows: float
    noise: float

    @property
    def total(self) -> float:
        """Their sum: the whole rate."""
        return sum(self)

    @property
    def floor(self) -> float:
        """What is left however long a run is."""
        return self.rows + self.noise


def rate(
    *,
    rounds: int,
    local_steps: int,
    batch: int,
    edges: int,
    nodes: int,
    dim: int,
    rows: int,
    epsilon: float = math.inf,
) -> Rate:
    """Theorem 2, (9), for convex losses and averaged iterates.

    Args:
        rounds: R.
        local_steps: K, local steps in a round.
        batch: B, rows in a batch.
        edges: E, of the graph.
        nodes: N.
        dim: p, how many parameters there are.
        rows: d_min, of the node that has fewest.
        epsilon: Of the whole run; infinite without noise.

    >>> paper = dict(local_steps=10, batch=500, edges=6, nodes=6, dim=7840, rows=4000)
    >>> told = rate(rounds=2000, epsilon=1.0, **paper)
    >>> max(told._asdict(), key=told._asdict().get), round(told.floor, 4)
    ('rows', 0.0398)
    """
    for name, value in list(locals().items()):
        if name != "epsilon":
            check.count(**{name: value})
    if epsilon != math.inf:
        check.positive(epsilon=epsilon)
    return Rate(
        1 / (local_steps * rounds),
        edges / (nodes * rounds),
        1 / math.sqrt(batch * local_steps * rounds),
        math.sqrt(dim) / (rows * epsilon),
        math.sqrt(dim) / (local_steps * batch * epsilon),
    )

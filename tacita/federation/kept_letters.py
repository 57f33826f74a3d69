"""Letters that a coordinator keeps, agent by agent, to learn a graph from them.

What a node sends to be compared with others is a letter as any other: made by an
algorithm, clipped, noised, charged in the node's ledger against the coordinator, who
sees it whole. A graph made of such letters says no more of any node than they do, so
its edges may stand in the description of the next run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import GraphAlgorithm
from tacita.federation.shapes import Form
from tacita.federation.tally import LetterTally, Seen, SumTally
from tacita.problem.graph import from_vectors


def require_whole(algorithm: Any) -> None:
    """Refuse to keep letters that nobody collects, or that are not whole."""
    if isinstance(algorithm, GraphAlgorithm):
        check.refuse("run.keep_letters needs a coordinator who collects letters")
    single = algorithm.aggregation is None and len(algorithm.phases) == 1
    if not single or algorithm.averages != "active":
        check.refuse(
            f"run.keep_letters keeps what agents say of themselves in one letter; those"
            f" of {type(algorithm).__name__} are changes, parts or sums: use FedAvg"
        )


class KeepingTally:
    """Another tally, which also keeps the letters of its last exchange.

    `kept` has one row per agent, NaN where nothing came.
    """

    def __init__(self, inner: SumTally | LetterTally, agents: int) -> None:
        self._inner, self._agents, self.least = inner, agents, inner.least
        self.kept: list[np.ndarray] = []

    def open(self, form: Form, centre: object) -> None:
        """Nothing came yet."""
        self._inner.open(form, centre)
        self.kept = [
            np.full((self._agents, *part.shape), np.nan) for part in form.zeros()
        ]

    #: Letters that are kept are in step.
    fresh = 1.0

    def add(
        self, agent: int, letter: Sequence[np.ndarray], freshness: float = 1.0
    ) -> None:
        """Keep the letter, and hand it on."""
        self._inner.add(agent, letter, freshness)
        for whole, part in zip(self.kept, letter, strict=True):
            whole[agent] = part

    def close(self, keep: bool, key: Array, watch: bool = True) -> list[np.ndarray]:
        """What the other tally makes of them."""
        return self._inner.close(keep, key, watch)

    @property
    def seen(self) -> Seen | None:
        """How they lay, if the other tally looks."""
        return self._inner.seen


def graph_table(
    agents: Sequence[str],
    letters: Any,
    method: str = "nearest",
    k: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The table [graph] of a next run, in which agents with like letters are joined.

    Args:
        agents: Their names, in the order of the letters.
        letters: One per agent: `Result.models["letters"]` of a run that kept them.
        method: As in `tacita.problem.graph.learned`.
        k: Likewise.
        **options: Likewise.

    >>> graph_table(["oslo", "rome", "turku"], [[0.0], [9.0], [1.0]], k=1)["edges"]
    [['oslo', 'turku'], ['rome', 'turku']]
    """
    made = from_vectors(letters, method, k, **options).named(agents)
    i, j, weights = made.pairs()
    pairs = zip(i.tolist(), j.tolist(), strict=True)
    edges = [[made.nodes[a], made.nodes[b]] for a, b in pairs]
    return {"edges": edges, "weights": weights.tolist()}

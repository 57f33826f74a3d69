"""Adult dealt to clients evenly and not, for what Remark 4 leaves open."""

from __future__ import annotations

import functools

import numpy as np

import tacita
from papers.fed_spd.common.adult import CLIENTS, tables
from tacita.data.splits import split_quantity

#: Fewest rows of a client: Q b = 10 batches of 10 are still disjoint.
LEAST = 100
#: Of the Dirichlet draw of sizes.
CONCENTRATION = 0.5
DEALS = ("even", "uneven", "uneven, by class")


def agents_of(deal: str) -> np.ndarray:
    """The client of every training row."""
    labels = tables()[1].y
    order = np.random.default_rng(2).permutation(len(labels))
    agent = np.empty(len(labels), int)
    if deal == "even":
        agent[order] = np.arange(len(labels)) % CLIENTS
        return agent
    drawn = split_quantity(
        len(labels), CLIENTS, alpha=CONCENTRATION, seed=3, min_rows=LEAST
    )
    if deal == "uneven":
        return drawn
    # The same sizes, rows in the order of their labels: nearly all of one class each.
    counts = np.bincount(drawn, minlength=CLIENTS)
    turn = np.random.default_rng(4).permutation(CLIENTS)
    by_label = order[np.argsort(labels[order], kind="stable")]
    agent[by_label] = np.repeat(turn, counts[turn])
    return agent


@functools.cache
def problem(deal: str) -> tacita.Problem:
    """Logistic model on the public columns; every client's mean loss weighs the same.

    As in (34): a row of a small client counts for more than one of a large client.
    """
    _, table = tables()
    return tacita.from_arrays(
        table.x,
        table.y,
        agents_of(deal),
        model="logistic",
        dtype=np.float32,
        bound=1.0,
        name=f"adult, {deal}",
    )


def sizes_in_words() -> str:
    """Fewest, middle and most rows of the uneven deals."""
    counts = np.bincount(agents_of("uneven"), minlength=CLIENTS)
    most = np.sort(counts)[::-1]
    tenth = most[: CLIENTS // 10].sum() / counts.sum()
    return (
        f"{counts.min()} to {counts.max():,} rows, half of the clients below "
        f"{int(np.median(counts))}, the largest tenth with {100 * tenth:.0f} % of all"
    )

"""The privacy funnel of small alphabets: which symbols to merge.

A. Jung, "Federated Learning: From Theory to Practice", (183):

    minimise I(s; z) such that I(y; z) >= rate,   z a function of x.

Up to `MOST_EXACT` symbols all partitions of the alphabet are looked at; beyond, pairs
are merged as long as the rate allows, each time those that leave the least I(s; z) (A.
Makhdoumi et al., "From the information bottleneck to the privacy funnel", 2014).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.privacy import inputs

#: Symbols of which all 4,140 partitions are tried.
MOST_EXACT = 8
#: By how much rounding may fall short of a rate.
_ROUNDING = 1e-12


class Funnel(NamedTuple):
    """A map of symbols, and what it tells.

    Attributes:
        groups: For every symbol of x, the symbol of z.
        leak: I(s; z), in nats.
        kept: I(y; z), in nats.
    """

    groups: tuple[int, ...]
    leak: float
    kept: float


def funnel(p_xs: Any, p_xy: Any, rate: float, *, exact: bool | None = None) -> Funnel:
    """The map of symbols with the least I(s; z) among those with I(y; z) >= rate.

    Args:
        p_xs: Joint probabilities of the symbols of x and s, (symbols, values of s).
        p_xy: Joint probabilities of the symbols of x and y, (symbols, values of y).
        rate: What z has to tell of y, in nats.
        exact: Whether to look at all partitions; the default is up to 8 symbols.

    >>> p_xs = np.array([[0.25, 0.0], [0.0, 0.25], [0.25, 0.0], [0.0, 0.25]])
    >>> p_xy = np.array([[0.25, 0.0], [0.25, 0.0], [0.0, 0.25], [0.0, 0.25]])
    >>> funnel(p_xs, p_xy, rate=0.6).groups
    (0, 0, 1, 1)
    """
    s, y = _joint(p_xs=p_xs), _joint(p_xy=p_xy)
    if len(s) != len(y) or not np.allclose(s.sum(1), y.sum(1), atol=1e-9):
        check.refuse("p_xs and p_xy differ in how likely the symbols of x are")
    rate = inputs.not_negative(rate=rate)
    everything = _information(y)
    if rate > everything + _ROUNDING:
        check.refuse(f"expected rate <= I(y; x) = {everything:.6g}, got rate={rate}")
    exact = len(s) <= MOST_EXACT if exact is None else exact
    if exact and len(s) > MOST_EXACT:
        check.refuse(
            f"{len(s)} symbols have too many partitions; leave exact out beyond "
            f"{MOST_EXACT}"
        )
    tried = _partitions(len(s)) if exact else _merges(s, y, rate)
    found = (_told(groups, s, y) for groups in tried)
    allowed = (one for one in found if one.kept >= rate - _ROUNDING)
    return min(allowed, key=lambda one: (one.leak, -one.kept))


def _told(groups: tuple[int, ...], s: np.ndarray, y: np.ndarray) -> Funnel:
    # z takes the symbols 0 .. max(groups).
    sums = np.eye(max(groups) + 1)[:, list(groups)]
    return Funnel(groups, _information(sums @ s), _information(sums @ y))


def _partitions(symbols: int, begun: tuple[int, ...] = ()) -> Iterator:
    """All maps in which every new group has the next number."""
    if len(begun) == symbols:
        yield begun
        return
    for group in range(max(begun, default=-1) + 2):
        yield from _partitions(symbols, (*begun, group))


def _merges(s: np.ndarray, y: np.ndarray, rate: float) -> Iterator:
    """Ever coarser maps; merging never raises either information."""
    groups = tuple(range(len(s)))
    while True:
        yield groups
        pairs = combinations(range(max(groups) + 1), 2)
        coarser = [_told(_merged(groups, *pair), s, y) for pair in pairs]
        allowed = [one for one in coarser if one.kept >= rate - _ROUNDING]
        if not allowed:
            return
        groups = min(allowed, key=lambda one: (one.leak, -one.kept)).groups


def _merged(groups: tuple[int, ...], one: int, other: int) -> tuple[int, ...]:
    joined = [one if g == other else g for g in groups]
    order = {g: k for k, g in enumerate(dict.fromkeys(joined))}
    return tuple(order[g] for g in joined)


def _information(joint: np.ndarray) -> float:
    """Mutual information of the two symbols, in nats."""
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    seen = joint > 0
    return float(np.sum(joint[seen] * np.log(joint[seen] / apart[seen])))


def _joint(**named: Any) -> np.ndarray:
    """A table of joint probabilities, checked."""
    ((name, value),) = named.items()
    table = np.asarray(value, float)
    whole = table.ndim == 2 and np.all(table >= 0) and abs(table.sum() - 1) < 1e-9
    if not whole:
        check.refuse(
            f"expected {name} a table of probabilities that sum to 1, a row for every "
            f"symbol of x, got shape {table.shape} and sum {table.sum():g}"
        )
    return table

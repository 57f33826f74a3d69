"""Giving rows to agents.

A split returns the agent number 0, 1, ... of every row, -1 for a row that nobody
holds; `Dataset.with_agents` takes it from there. No split ever makes an agent without
a row: where it would, it refuses and says what to change. The same seed gives the
same split.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita.check import column as check_column
from tacita.check import count, given, positive, refuse, shape

_REDRAWS = 1000


def generator(seed: int) -> np.random.Generator:
    """A random generator from a whole number; nothing here draws without one."""
    return np.random.default_rng(count(at_least=0, seed=given(seed=seed)))


def split_iid(rows: Any, agents: int, *, seed: int) -> np.ndarray:
    """Deal rows out at random, equally many to each agent (up to one).

    Args:
        rows: How many rows there are, or one label per row (only counted).
        agents: How many agents.
        seed: Of the draw.

    Returns:
        The agent number of each row.

    >>> np.bincount(split_iid(10, 3, seed=0)).tolist()
    [4, 3, 3]
    """
    n, agents = _sizes(rows, agents)
    return generator(seed).permutation(np.arange(n) % agents)


def split_quantity(
    rows: Any, agents: int, *, alpha: float, seed: int, min_rows: int = 1
) -> np.ndarray:
    """Deal rows out at random in unequal amounts (quantity skew).

    Every agent gets `min_rows` rows; the rest is shared by p ~ Dirichlet(alpha).

    Args:
        rows: How many rows there are, or one label per row (only counted).
        agents: How many agents.
        alpha: Concentration: 0.1 very unequal, 1 unequal, 100 nearly equal.
        seed: Of the draw.
        min_rows: Fewest rows of an agent.

    Returns:
        The agent number of each row.
    """
    given(alpha=alpha)
    n, agents = _sizes(rows, agents, min_rows)
    random = generator(seed)
    shares = random.dirichlet(np.full(agents, float(positive(alpha=alpha))))
    sizes = min_rows + _share_out(n - agents * min_rows, shares)
    return random.permutation(np.repeat(np.arange(agents), sizes))


def split_dirichlet(
    labels: Any, agents: int, *, alpha: float, seed: int, min_rows: int = 1
) -> np.ndarray:
    """Share out every class by its own draw of p ~ Dirichlet(alpha) (label skew).

    T. Hsu, H. Qi, M. Brown, "Measuring the effects of non-identical data
    distribution for federated visual classification", arXiv:1909.06335, in the form
    with one draw per class. Redrawn until every agent has `min_rows` rows.

    Args:
        labels: The class of each row.
        agents: How many agents.
        alpha: Concentration: 0.1 few classes an agent, 100 nearly iid.
        seed: Of the draw.
        min_rows: Fewest rows of an agent.

    Returns:
        The agent number of each row.
    """
    given(alpha=alpha)
    codes = _codes(labels)
    _, agents = _sizes(codes, agents, min_rows)
    concentration = np.full(agents, float(positive(alpha=alpha)))
    random = generator(seed)
    counts = np.bincount(codes)
    for _ in range(_REDRAWS):
        table = [_share_out(n, random.dirichlet(concentration)) for n in counts]
        if np.sum(table, axis=0).min() >= min_rows:
            return _deal(codes, np.array(table).T, random)
    refuse(
        f"no draw in {_REDRAWS} gives each of {agents} agents {min_rows} rows at "
        f"alpha={alpha:g}; raise alpha, take fewer agents or lower min_rows"
    )


def split_by_classes(
    labels: Any,
    agents: int,
    classes_per_agent: int,
    *,
    seed: int,
    per_agent: int | None = None,
    balanced: bool = False,
) -> np.ndarray:
    """Give each agent rows of some classes only, no row to two agents.

    Args:
        labels: The class of each row.
        agents: How many agents.
        classes_per_agent: How many classes each holds, drawn at random.
        seed: Of the draw.
        per_agent: How many rows each agent gets, in equal parts of its classes (up to
            one); the other rows are left out. None: all rows of a class, in equal
            parts to its holders.
        balanced: Draw the class sets so that every class sits on equally many agents
            (up to one). Otherwise a class may end up with nobody.

    Returns:
        The agent number of each row, -1 for rows that nobody holds.

    >>> labels = np.repeat(np.arange(10), 60)
    >>> agent = split_by_classes(labels, 6, 6, seed=0, per_agent=40, balanced=True)
    >>> np.bincount(agent[agent >= 0]).tolist()
    [40, 40, 40, 40, 40, 40]
    """
    given(classes_per_agent=classes_per_agent)
    codes = _codes(labels)
    _, agents = _sizes(codes, agents)
    n_classes = codes.max() + 1
    if count(classes_per_agent=classes_per_agent) > n_classes:
        refuse(
            f"expected classes_per_agent <= {n_classes}, the number of classes, got "
            f"classes_per_agent={classes_per_agent}"
        )
    random = generator(seed)
    holds = _class_sets(agents, int(n_classes), classes_per_agent, balanced, random)
    available = np.bincount(codes)
    if per_agent is None:
        table = np.zeros(holds.shape, int)
        for c, n in enumerate(available):
            holders = random.permutation(np.flatnonzero(holds[:, c]))
            table[holders, c] = _equal_parts(n, len(holders))
    else:
        table = _fixed_sizes(holds, count(per_agent=per_agent), random)
        _check_supply(table, available, per_agent)
    if not table.any(axis=1).all():
        refuse(
            f"agent {int(np.argmin(table.any(axis=1)))} would hold no row; raise "
            f"classes_per_agent or take fewer agents"
        )
    return _deal(codes, table, random)


def split_by_column(
    column: Any, *, min_rows: int = 1
) -> tuple[np.ndarray, tuple[str, ...]]:
    """One agent per distinct value of a column.

    Args:
        column: The value of each row.
        min_rows: Values with fewer rows are left out (-1).

    Returns:
        The agent number of each row, and the names of the agents:
        `data.with_agents(*split_by_column(column))`.

    >>> agent, names = split_by_column(["b", "a", "b"])
    >>> agent.tolist(), names
    ([1, 0, 1], ('a', 'b'))
    """
    values = check_column(column=column)
    if not len(values):
        refuse("expected a column with at least one row, got none")
    levels, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
    kept = sizes >= count(min_rows=min_rows)
    if not kept.any():
        refuse(
            f"no value of the column has {min_rows} rows, the most frequent one has "
            f"{sizes.max()}; lower min_rows"
        )
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    return number[codes], tuple(str(level) for level in levels[kept])


def _sizes(rows: Any, agents: int, min_rows: int = 1) -> tuple[int, int]:
    """The number of rows and of agents, if there are enough rows."""
    given(rows=rows)
    given(min_rows=min_rows)
    agents = count(agents=given(agents=agents))
    n = rows if np.ndim(rows) == 0 else len(shape((None,), labels=np.asarray(rows)))
    n = count(rows=n)
    if agents * count(min_rows=min_rows) > n:
        refuse(
            f"{agents} agents with at least {min_rows} rows each need "
            f"{agents * min_rows} rows, there are {n}; take fewer agents"
        )
    return n, agents


def _codes(labels: Any) -> np.ndarray:
    """Class numbers 0, 1, ... of discrete labels."""
    array = shape((None,), labels=np.asarray(labels))
    if not len(array):
        refuse("expected labels of at least one row, got none")
    if np.issubdtype(array.dtype, np.floating) and not np.all(array == array.round()):
        refuse(
            "expected labels to be classes, got fractions; cut the target into bins "
            "first, or use split_iid or split_quantity"
        )
    return np.unique(array, return_inverse=True)[1]


def _equal_parts(n: int, parts: int) -> np.ndarray:
    return n // parts + (np.arange(parts) < n % parts) if parts else np.zeros(0, int)


def _share_out(n: int, shares: np.ndarray) -> np.ndarray:
    """Whole numbers that sum to n, in proportion to `shares`, by rounding the sums."""
    ends = np.rint(np.cumsum(shares) / shares.sum() * n).astype(int)
    return np.diff(ends, prepend=0)


def _deal(codes: np.ndarray, table: np.ndarray, random: Any) -> np.ndarray:
    """Give `table[agent, class]` random rows of each class to each agent."""
    agent = np.full(len(codes), -1)
    for c, wanted in enumerate(table.T):
        rows = random.permutation(np.flatnonzero(codes == c))
        agent[rows[: wanted.sum()]] = np.repeat(np.arange(len(table)), wanted)
    return agent


def _class_sets(
    agents: int, classes: int, each: int, balanced: bool, random: Any
) -> np.ndarray:
    """A table `holds[agent, class]` with `each` classes in every line."""
    holds = np.zeros((agents, classes), bool)
    for line in holds:
        # The least held classes first keeps the columns equal up to one; adding a
        # fraction breaks ties at random. Without balance only the fraction counts.
        held = holds.sum(axis=0) if balanced else 0
        line[np.argsort(held + random.random(classes))[:each]] = True
    if balanced:
        _trade(holds, random)
    return holds


def _trade(holds: np.ndarray, random: Any) -> None:
    """Shuffle a table of zeros and ones in place without changing its sums.

    Filling by need makes neighbouring agents complements of each other; trading
    between random pairs forgets the order of filling. G. Strona et al., "A fast and
    unbiased procedure to randomize ecological binary matrices with fixed row and
    column totals", Nature Communications 5, 2014.
    """
    if len(holds) < 2:
        return
    for _ in range(20 * len(holds)):
        one, two = random.choice(len(holds), 2, replace=False)
        differ = random.permutation(np.flatnonzero(holds[one] != holds[two]))
        mine = int(holds[one, differ].sum())
        holds[one, differ] = np.arange(len(differ)) < mine
        holds[two, differ] = ~holds[one, differ]


def _fixed_sizes(holds: np.ndarray, per_agent: int, random: Any) -> np.ndarray:
    """`per_agent` rows for each agent, in equal parts of the classes it holds."""
    table = np.zeros(holds.shape, int)
    for line, mine in zip(table, holds, strict=True):
        chosen = random.permutation(np.flatnonzero(mine))
        line[chosen] = _equal_parts(per_agent, len(chosen))
    return table


def _check_supply(table: np.ndarray, available: np.ndarray, per_agent: int) -> None:
    wanted = table.sum(axis=0)
    short = wanted > available
    if short.any():
        c = int(np.argmax(wanted / available))
        most = int(per_agent * available[c] / wanted[c])
        refuse(
            f"per_agent={per_agent} asks for {wanted[c]} rows of class {c}, there are "
            f"{available[c]}; take at most about per_agent={most}, or fewer agents"
        )

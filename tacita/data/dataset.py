"""A table of numbers, a target, and who holds which row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacita.check import finite, nearest, one_of, refuse, shape
from tacita.data.catalog import Task
from tacita.encoding import Encoding, LabelKind

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """Rows, their target, and the agent that holds each of them.

    Attributes:
        name: What the data set is called.
        x: Features, `(rows, features)`.
        y: Target, `(rows,)`: class numbers 0, 1, ... or real values.
        task: "classification" or "regression".
        feature_names: One name per column of `x`.
        target_name: What `y` is.
        classes: Names of the classes in the order of their numbers, or empty.
        label_kind: What the target's values are that these names stand for.
        agent: Agent number 0, 1, ... of each row, or None if nobody holds the rows yet.
        agent_names: One name per agent, in the order of their numbers.
        positions: Latitude and longitude per agent, `(agents, 2)`, or None.
        test_x: Features of the test rows, or None.
        test_y: Target of the test rows, or None.
        test_agent: Agent number of each test row (-1: an agent that holds no training
            row), or None.
        parties: For a vertical split: the columns of `x` that each party holds.
        notes: What was done to the data on the way, one sentence each.
        classes_seen: Whether the classes are those of these rows, which nobody named
            beforehand.
        encoding: How a row of the original table became one of `x`; None where the
            features are the columns themselves.

    >>> data = Dataset(name="toy", x=np.eye(3), y=np.array([0, 1, 1]),
    ...                task="classification", feature_names=("a", "b", "c"),
    ...                classes=("no", "yes"))
    >>> data.with_agents([0, 1, 1])
    Dataset toy: 3 rows x 3 features, classification (2 classes), 2 agents
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    task: Task
    feature_names: tuple[str, ...]
    target_name: str = "y"
    classes: tuple[str, ...] = ()
    label_kind: LabelKind = "words"
    agent: np.ndarray | None = None
    agent_names: tuple[str, ...] = ()
    positions: np.ndarray | None = None
    test_x: np.ndarray | None = None
    test_y: np.ndarray | None = None
    test_agent: np.ndarray | None = None
    parties: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    classes_seen: bool = False
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        one_of(("classification", "regression"), task=self.task)
        shape((None, len(self.feature_names)), x=self.x)
        shape((len(self.x),), y=self.y)
        if not len(self.x):
            refuse(f"the data set {self.name!r} has no rows; check how it was selected")
        finite(x=self.x)
        self._check_target("y", self.y)
        self._check_test()
        self._check_agents()
        if self.encoding and self.encoding.feature_names != self.feature_names:
            refuse(f"the encoding of {self.name!r} makes other features than it has")

    def _check_target(self, name: str, y: np.ndarray) -> None:
        finite(**{name: y})
        if self.task == "regression":
            return
        whole = np.issubdtype(y.dtype, np.integer)
        if not whole or y.min() < 0 or y.max() >= len(self.classes):
            refuse(
                f"expected {name} whole numbers from 0 to {len(self.classes) - 1}, one "
                f"per class name, got {y.dtype} from {y.min()} to {y.max()}"
            )

    def _check_test(self) -> None:
        if (self.test_x is None) != (self.test_y is None):
            refuse("expected test_x and test_y together, got only one of them")
        if self.test_x is None or self.test_y is None:
            return
        shape((None, len(self.feature_names)), test_x=self.test_x)
        shape((len(self.test_x),), test_y=self.test_y)
        finite(test_x=self.test_x)
        if len(self.test_y):
            self._check_target("test_y", self.test_y)

    def _check_agents(self) -> None:
        if self.agent is None:
            return
        shape((len(self.x),), agent=self.agent)
        held = np.bincount(self.agent, minlength=len(self.agent_names))
        if len(held) != len(self.agent_names):
            refuse(
                f"expected one name per agent, got {len(self.agent_names)} names for "
                f"{len(held)} agents"
            )
        if not held.all():
            empty = self.agent_names[int(np.argmin(held))]
            refuse(f"agent {empty!r} holds no row; leave it out or give it rows")
        if self.positions is not None:
            shape((self.n_agents, 2), positions=self.positions)
        if self.test_agent is not None:
            shape((len(self._test_rows()),), test_agent=self.test_agent)

    def _test_rows(self) -> np.ndarray:
        return np.empty(0) if self.test_y is None else self.test_y

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        rows, features = self.x.shape
        text = f"Dataset {self.name}: {rows} rows x {features} features, {self.task}"
        if self.classes:
            text += f" ({len(self.classes)} classes)"
        if self.agent is not None:
            text += f", {self.n_agents} agent{'s' if self.n_agents > 1 else ''}"
        if self.test_y is not None:
            text += f", {len(self.test_y)} test rows"
        return text

    @property
    def n_agents(self) -> int:
        """Number of agents; 0 while nobody holds the rows."""
        return len(self.agent_names)

    def rows_of(self, agent: int | str) -> np.ndarray:
        """Row numbers of one agent, named by its number or its name."""
        held = self._agents()
        if isinstance(agent, str):
            if agent not in self.agent_names:
                refuse(f"unknown agent={agent!r}; {nearest(agent, self.agent_names)}")
            agent = self.agent_names.index(agent)
        if not 0 <= agent < self.n_agents:
            refuse(f"expected agent from 0 to {self.n_agents - 1}, got agent={agent}")
        return np.flatnonzero(held == agent)

    def by_agent(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The features and target of every agent, in the order of their numbers."""
        held = self._agents()
        order = np.argsort(held, kind="stable")
        ends = np.cumsum(np.bincount(held, minlength=self.n_agents))[:-1]
        return [(self.x[rows], self.y[rows]) for rows in np.split(order, ends)]

    def party(self, name: str) -> np.ndarray:
        """The columns of `x` that one party of a vertical split holds."""
        if name not in self.parties:
            refuse(f"unknown party={name!r}; {nearest(name, self.parties)}")
        return self.x[:, list(self.parties[name])]

    def subset(self, rows: Any) -> Dataset:
        """The data set with some of its training rows, by number or by mask.

        Agents left without a row disappear with their test rows, and the others are
        numbered anew in the same order.
        """
        kept = self._chosen(np.asarray(rows))
        part = replace(
            self, x=self.x[kept], y=self.y[kept], agent=None, test_agent=None
        )
        if self.agent is None:
            return part
        return part._keep_agents(self, self.agent[kept])

    def _chosen(self, rows: np.ndarray) -> np.ndarray:
        if not rows.size or rows.dtype == bool and not rows.any():
            refuse("a subset without rows is no data set; choose at least one row")
        try:
            return np.arange(len(self))[rows]
        except IndexError as error:
            refuse(f"cannot choose rows of {self.name!r}: {error}")

    def _keep_agents(self, whole: Dataset, agent: np.ndarray) -> Dataset:
        """Number anew the agents of `whole` that occur in `agent`."""
        still = np.unique(agent)
        number = np.full(whole.n_agents + 1, -1)  # the last place catches -1
        number[still] = np.arange(len(still))
        changes: dict[str, Any] = {
            "agent": number[agent],
            "agent_names": tuple(whole.agent_names[i] for i in still),
        }
        if whole.positions is not None:
            changes["positions"] = whole.positions[still]
        if whole.test_agent is not None and whole.test_y is not None:
            gone = np.setdiff1d(np.arange(whole.n_agents), still)
            rest = ~np.isin(whole.test_agent, gone)
            assert whole.test_x is not None
            changes["test_x"] = whole.test_x[rest]
            changes["test_y"] = whole.test_y[rest]
            changes["test_agent"] = number[whole.test_agent[rest]]
        return replace(self, **changes)

    def with_agents(self, agent: Any, names: Sequence[str] | None = None) -> Dataset:
        """The data set with its rows given to other agents.

        Args:
            agent: The agent number of each row, as a split returns it (-1 leaves the
                row out), or a label per row (a column of names, say).
            names: One name per agent number; "agent 0", ... if left out.

        Returns:
            The data set without the rows that nobody holds. Test rows belong to no
            agent in particular afterwards, and positions are forgotten.
        """
        given = shape((len(self),), agent=np.asarray(agent))
        if not np.issubdtype(given.dtype, np.integer):
            if names is not None:
                refuse("expected names only with agent numbers, got names with labels")
            labels, given = np.unique(given, return_inverse=True)
            names = [str(label) for label in labels]
        if given.min() < -1 or given.max() < 0:
            refuse(f"expected agent numbers >= 0, or -1, got {given.min()}")
        if names is None:
            names = [f"agent {i}" for i in range(given.max() + 1)]
        kept = given >= 0
        return replace(
            self,
            x=self.x[kept],
            y=self.y[kept],
            agent=given[kept],
            agent_names=tuple(names),
            positions=None,
            test_agent=None,
        )

    def summary(self) -> pd.DataFrame:
        """Who holds what: one line per agent; see `tacita.data.who_holds_what`."""
        from tacita.data.holdings import who_holds_what

        return who_holds_what(self)

    def _agents(self) -> np.ndarray:
        if self.agent is None:
            refuse(
                f"nobody holds the rows of {self.name!r} yet; give them to agents with "
                f"with_agents(...) and one of the splits"
            )
        return self.agent

"""Who holds what, as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tacita.data.dataset import Dataset


def who_holds_what(data: Dataset) -> pd.DataFrame:
    """One line per agent: its rows, its share of all, and its target.

    Args:
        data: Any data set; while nobody holds its rows they are shown as one line.

    Returns:
        Columns `agent`, `rows`, `share`, then one count per class, or `mean`, `std`,
        `min` and `max` of a real target.

    >>> data = Dataset(name="toy", x=np.eye(3), y=np.array([0, 1, 1]),
    ...                task="classification", feature_names=("a", "b", "c"),
    ...                classes=("no", "yes")).with_agents([0, 1, 1])
    >>> print(who_holds_what(data).to_string(index=False))
      agent  rows    share  no  yes
    agent 0     1 0.333333   1    0
    agent 1     2 0.666667   0    2
    """
    agent, names = holders(data)
    rows = np.bincount(agent, minlength=len(names))
    columns = {"agent": names, "rows": rows, "share": rows / len(data)}
    if data.task == "classification":
        for code, label in enumerate(data.classes):
            held = np.bincount(agent, data.y == code, minlength=len(names))
            columns[f"class {label}" if label in columns else label] = held.astype(int)
    else:
        parts = [data.y[agent == i] for i in range(len(names))]
        columns["mean"] = [part.mean() for part in parts]
        columns["std"] = [part.std() for part in parts]
        columns["min"] = [part.min() for part in parts]
        columns["max"] = [part.max() for part in parts]
    return pd.DataFrame(columns)


def holders(data: Dataset) -> tuple[np.ndarray, list[str]]:
    """The agent number of each row, and the names of the agents."""
    if data.agent is None:
        return np.zeros(len(data), int), ["nobody yet"]
    return data.agent, list(data.agent_names)

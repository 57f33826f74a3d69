"""The graph of a run file: who is joined with whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tacita.check import nearest, refuse
from tacita.data.table_file import EMPTY
from tacita.job.calls import call, keys_of, take_kind, told_of
from tacita.problem import graph
from tacita.problem.graph import Graph
from tacita.problem.problem import Problem
from tacita.trees import replace

_EARTH_RADIUS_KM = 6371.0


def from_file(path: str, ids: Sequence[Any]) -> Graph:
    """A graph from a CSV file with columns "from", "to" and, if wanted, "weight"."""
    try:
        # With more cells than the header, as of a weight 1,5, pandas would shift rows.
        pd.read_csv(path, header=None, nrows=2)
        frame: Any = pd.read_csv(
            path,
            skipinitialspace=True,
            dtype={"from": str, "to": str},
            keep_default_na=False,
            na_values=list(EMPTY),
        )
    except UnicodeDecodeError:
        refuse(f"cannot read {path}: it is not text in UTF-8; save it in that encoding")
    except (OSError, ValueError) as error:
        first = str(error).strip().split("\n")[0]
        refuse(f"cannot read {path}: {first}; name a .csv file of edges")
    for column in ("from", "to"):
        if column not in frame.columns:
            hint = nearest(column, frame.columns)
            if frame.shape[1] == 1:
                hint += " (only one column: are they parted by commas?)"
            refuse(f"{path} has no column {column!r}; {hint}")
        if frame[column].isna().any():
            row = int(np.argmax(frame[column].isna())) + 1
            refuse(f"column {column!r} of {path} is empty in data row {row}; fill it")
    known = {str(one): one for one in ids}
    ends = zip(frame["from"], frame["to"], strict=True)
    pairs = [tuple(_node(word.strip(), known) for word in pair) for pair in ends]
    weights = frame["weight"].to_numpy() if "weight" in frame.columns else None
    return Graph.from_edges(ids, pairs, weights)


def _node(word: str, known: dict[str, Any]) -> Any:
    """The id that a cell names: 3, where agents are numbers, may be written as 3.0."""
    return known.get(word, known.get(word.removesuffix(".0"), word))


KINDS = {
    "ring": graph.ring,
    "star": graph.star,
    "complete": graph.complete,
    "grid": graph.grid,
    "erdos_renyi": graph.erdos_renyi,
    "random_regular": graph.random_regular,
    "nearest_neighbours": graph.nearest_neighbours,
    "file": from_file,
    "learned": graph.learned,
}


def build(
    table: Any, ids: Sequence[Any], positions: np.ndarray | None, seed: int
) -> Graph | None:
    """Build the graph over the agents, in the order of their sorted ids.

    Args:
        table: What the run file says, or None.
        ids: The agents.
        positions: Latitude and longitude of every agent, where they are known.
        seed: For random graphs, unless the table has one.
    """
    if table is None:
        return None
    where = "problem.graph"
    function, rest = take_kind(where, table, KINDS, "kind")
    if function is graph.learned:
        refuse(
            f'{where}.kind = "learned" needs everybody\'s rows, which nobody here has; '
            "keep the letters of a first run with run.keep_letters, and learn it there"
        )
    if function is from_file:
        return call(where, function, rest, {"ids": ids})
    fixed: dict[str, Any] = {}
    if function is graph.nearest_neighbours:
        if positions is None:
            refuse(
                f'{where}.kind = "nearest_neighbours" needs the positions of the '
                "agents, which this data set does not have; choose another kind"
            )
        fixed = {"positions": on_globe(positions), "weight": None}
    elif "n" in keys_of(function):
        fixed = {"n": len(ids)}
    if "seed" in keys_of(function):
        rest.setdefault("seed", seed)
    made: Graph = call(where, function, rest, fixed)
    with told_of(where):
        return made.named(ids)


def is_learned(table: Any) -> bool:
    """Whether the graph is made from the problem's own rows."""
    function = take_kind("problem.graph", table, KINDS, "kind")[0] if table else None
    return function is graph.learned


def learn(table: Any, problem: Problem) -> Problem:
    """The problem on the graph that its rows give."""
    _, rest = take_kind("problem.graph", table, KINDS, "kind")
    made = call("problem.graph", graph.learned, rest, {"problem": problem})
    return replace(problem, graph=made)


def on_globe(degrees: np.ndarray) -> np.ndarray:
    """Latitude and longitude as points in space, in kilometres.

    Degrees would make places far from the equator too distant from east to west.

    >>> equator_to_pole = on_globe(np.array([[0.0, 0.0], [90.0, 0.0]]))
    >>> float(np.linalg.norm(np.diff(equator_to_pole, axis=0)).round())
    9010.0
    """
    latitude, longitude = np.radians(np.asarray(degrees, float)).T
    return _EARTH_RADIUS_KM * np.stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ],
        axis=1,
    )

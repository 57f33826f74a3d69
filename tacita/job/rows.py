"""The data of a run file: a data set by name, a table of the user's, and its split."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tacita import data
from tacita.check import nearest, refuse
from tacita.data import Dataset
from tacita.job.calls import call, keys_of, take_kind, told_of
from tacita.job.run_file import ProblemTable
from tacita.problem import synthetic

SYNTHETIC = {
    "synthetic-logistic": synthetic.logistic,
    "synthetic-linear": synthetic.linear,
}
SPLITS = {
    "iid": data.split_iid,
    "dirichlet": data.split_dirichlet,
    "by_classes": data.split_by_classes,
    "quantity": data.split_quantity,
}
_TABLES = (".csv", ".gz", ".tsv", ".txt", ".parquet", ".pq")


def is_path(name: str) -> bool:
    """Whether a run file names a file rather than a data set."""
    return "/" in name or Path(name).suffix.lower() in _TABLES


def absolute(name: str, folder: Path) -> str:
    """A path in a run file is meant from the folder of that file."""
    return str((folder / Path(name).expanduser()).resolve())


def load(table: ProblemTable) -> Dataset:
    """Load the data set that a run file names, rows given to agents."""
    name, ours = table.data, ProblemTable.model_fields
    if is_path(name):
        if not Path(name).is_file():
            refuse(f"problem.data: there is no file {name}; check the path")
        fixed = {"path": name, "seed": table.seed}
        loaded = call("problem", data.read_table, table.options, fixed, ours)
    elif name in data.names():
        loaded = _from_catalogue(table)
    else:
        known = [*data.names(), *SYNTHETIC]
        refuse(
            f"unknown problem.data = {name!r}; {nearest(name, known)}; or the path of "
            "a .csv or .parquet file"
        )
    if table.split is None:
        if loaded.agent is None:
            refuse(
                f"missing key problem.split; nobody holds the rows of {name} yet, add "
                'for example split = { kind = "dirichlet", agents = 10, alpha = 0.3 }'
            )
        return loaded
    function, rest = take_kind("problem.split", table.split, SPLITS, "kind")
    rows = next(iter(keys_of(function)))
    rest.setdefault("seed", table.seed)
    given = call("problem.split", function, rest, {rows: loaded.y})
    made = loaded.with_agents(given)
    if loaded.agent is None:
        return made
    note = "rows given to agents by problem.split, not as the data had them"
    return replace(made, notes=(*made.notes, note))


def _from_catalogue(table: ProblemTable) -> Dataset:
    known = data.options(table.data)
    for key, value in table.options.items():
        if key not in known:
            others = dict.fromkeys((*ProblemTable.model_fields, *known))
            refuse(f"unknown key problem.{key} = {value!r}; {nearest(key, others)}")
    seed = {"seed": table.seed} if "seed" in known else {}
    with told_of("problem"):
        return data.load(table.data, **table.options, **seed)

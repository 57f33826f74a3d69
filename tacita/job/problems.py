"""The problem of a run file: its data, their split, the model, penalties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tacita import check, data
from tacita.check import nearest, refuse
from tacita.data import Dataset
from tacita.encoding import SEEN_LABELS, Encoding, Origin, labels_of
from tacita.job import graphs
from tacita.job.calls import call, keys_of, take_kind, told_of
from tacita.job.run_file import ProblemTable
from tacita.problem import Problem, cnn, from_arrays, mlp, prox, resnet10, synthetic
from tacita.problem.chosen_model import MODELS, REGRESSIONS
from tacita.problem.model import regulariser

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
NETWORKS = {"mlp": mlp, "cnn": cnn, "resnet10": resnet10}
PENALTIES = {
    "l1": prox.L1,
    "elastic_net": prox.ElasticNet,
    "group_lasso": prox.GroupLasso,
    "box": prox.Box,
    "l2_ball": prox.L2Ball,
    "simplex": prox.Simplex,
    "sum": prox.Sum,
}
REGULARISERS = {
    "squared_l2": regulariser.SquaredL2,
    "non_convex": regulariser.NonConvex,
}
#: Keys that say what to do with a data set: a synthetic problem brings its own.
_DATA_ONLY = ("model", "split", "intercept")


def is_path(name: str) -> bool:
    """Whether a run file names a file rather than a data set."""
    return "/" in name or Path(name).suffix.lower() in _TABLES


def _load(table: ProblemTable) -> Dataset:
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


def build(table: ProblemTable) -> tuple[Problem, tuple[str, ...]]:
    """Make the problem of a run file, and tell what was done to the data."""
    if graphs.is_learned(table.graph):
        made, notes = build(table.model_copy(update={"graph": None}))
        return graphs.learn(table.graph, made), notes
    if table.data in SYNTHETIC:
        made, notes = _synthetic(table), ()
    else:
        loaded = _load(table)
        made, notes = _from_dataset(table, loaded), loaded.notes
    if table.weights is None:
        return made, notes
    with told_of("problem"):
        return made.with_weights(table.weights), notes


def _from_dataset(table: ProblemTable, loaded: Dataset) -> Problem:
    ids = _ids(loaded.agent_names)
    order = np.argsort(np.asarray(ids))
    positions = None if loaded.positions is None else loaded.positions[order]
    agent = np.asarray(ids)[loaded.agent]
    classify = loaded.task == "classification"
    held_out = loaded.test_x is not None and loaded.test_y is not None
    model, options = _model(table, loaded), _shared(table)
    joined = graphs.build(table.graph, sorted(ids), positions, table.seed)
    labels = labels_of(loaded.classes, loaded.label_kind)
    with told_of("problem"):
        made = from_arrays(
            loaded.x,
            loaded.y,
            agent,
            model=model,
            l2=table.l2,
            graph=joined,
            classes=labels if classify else None,
            coded=classify,
            intercept=table.intercept,
            test=(loaded.test_x, loaded.test_y) if held_out else None,
            name=loaded.name,
            **options,
        )
    seen = (SEEN_LABELS,) if loaded.classes_seen else ()
    return replace(
        made,
        before=Origin(seen),
        positions=positions,
        encoding=loaded.encoding or Encoding.of_numbers(loaded.feature_names),
        target=loaded.target_name,
    )


def _synthetic(table: ProblemTable) -> Problem:
    function = SYNTHETIC[table.data]
    for key in _DATA_ONLY:
        if key in table.model_fields_set:
            refuse(
                f"problem.{key} does not go with problem.data = {table.data!r}, which "
                "brings its own; leave it out"
            )
    agents = keys_of(function)["agents"].default
    with told_of("problem"):
        nodes = range(check.count(agents=table.options.get("agents", agents)))
    fixed = {
        "l2": table.l2,
        "seed": table.seed,
        "graph": graphs.build(table.graph, nodes, None, table.seed),
        **_shared(table),
    }
    if fixed["regulariser"] is None:
        del fixed["regulariser"]
    elif "regulariser" not in keys_of(function):
        refuse(f"problem.regulariser does not go with {table.data!r}; use l2")
    return call("problem", function, table.options, fixed, ProblemTable.model_fields)


def _shared(table: ProblemTable) -> dict[str, Any]:
    return {
        "h": _object("problem.h", table.h, PENALTIES),
        "regulariser": _object("problem.regulariser", table.regulariser, REGULARISERS),
        "dtype": table.dtype,
        "bound": table.bound,
    }


def _object(where: str, table: Any, known: dict[str, Any]) -> Any:
    if table is None:
        return None
    function, rest = take_kind(where, table, known, "kind")
    lists = {
        key: _parts(f"{where}.{key}", value, known)
        for key, value in rest.items()
        if isinstance(value, list)
    }
    return call(where, function, {**rest, **lists})


def _parts(where: str, values: list[Any], known: dict[str, Any]) -> Any:
    """A list of numbers, or of tables, each of which is a function."""
    if not any(isinstance(one, dict) for one in values):
        return np.asarray(values)
    return [_object(f"{where}[{k}]", one, known) for k, one in enumerate(values)]


def _ids(names: Sequence[str]) -> list[Any]:
    """Agents' ids: numbers where all names are numbers, so that 2 comes before 10.

    A name such as 007 is none: the number would be called 7.
    """
    numbers = [name.removeprefix("agent ") for name in names]
    plain = all(n.isdecimal() and n == str(int(n)) for n in numbers)
    return [int(n) for n in numbers] if plain else [*names]


def _model(table: ProblemTable, loaded: Dataset) -> Any:
    """The model, checked against the kind of target and its classes."""
    n = len(loaded.classes) or None
    chosen = table.model or _usual(n, table.l2)
    name = chosen if isinstance(chosen, str) else str(chosen.get("name"))
    if name == "by_agent":
        return _by_agent(table, chosen, loaded)
    if name in REGRESSIONS and n is not None:
        refuse(
            f"problem.model = {name!r} predicts a number, the target of {table.data} "
            f'is one of {n} classes; use "{_usual(n, 0)}"'
        )
    if name in ("logistic", "hinge", "softmax", "cnn", "resnet10") and n is None:
        refuse(
            f"problem.model = {name!r} predicts a class, but labels of {table.data} "
            'are outside any set of classes: they are real numbers; use "linear" or '
            '"ridge"'
        )
    if name in ("logistic", "hinge") and n != 2:
        refuse(
            f"problem.model = {name!r} takes two labels, {table.data} has {n}: label "
            f'{loaded.classes[2]!r} is outside the model\'s set; use "softmax"'
        )
    if isinstance(chosen, str) and chosen in MODELS:
        return chosen
    return network_of(chosen, loaded.x.shape[1], n, table.intercept)


def _by_agent(table: ProblemTable, chosen: Any, loaded: Dataset) -> dict[Any, str]:
    """Every agent's own model, from lists of agents by the name of a model."""
    lists = {k: v for k, v in chosen.items() if k != "name"}
    names = dict(zip(_ids(loaded.agent_names), loaded.agent_names, strict=True))
    places = {str(one): one for one in names} | {v: k for k, v in names.items()}
    made: dict[Any, str] = {}
    for kind, agents in lists.items():
        _model(table.model_copy(update={"model": kind}), loaded)  # fits the target
        if not isinstance(agents, list):
            refuse(f"problem.model.{kind} = {agents!r}: expected a list of agents")
        for agent in agents:
            if str(agent) not in places:
                hint = nearest(str(agent), places)
                refuse(f"problem.model.{kind} has an unknown agent {agent!r}; {hint}")
            if places[str(agent)] in made:
                refuse(f"problem.model names agent {agent!r} twice; name it once")
            made[places[str(agent)]] = kind
    left = [names[one] for one in names if one not in made]
    if left:
        refuse(f"problem.model names none for agent {left[0]!r}; add it to a list")
    return made


def _usual(classes: int | None, l2: float) -> str:
    if classes is None:
        return "ridge" if l2 > 0 else "linear"
    return "logistic" if classes == 2 else "softmax"


def network_of(chosen: Any, features: int, classes: int | None, intercept: bool) -> Any:
    """The network that a run file, or a federation's description, names.

    Args:
        chosen: Its table, or its name alone.
        features: Numbers in a row.
        classes: How many the target has; None for a number.
        intercept: Whether a column of ones is asked for, which networks do not need.
    """
    known = {**NETWORKS, **dict.fromkeys(MODELS)}
    function, rest = take_kind("problem.model", chosen, known, "name")
    if function is None:
        refuse(f"problem.model = {chosen!r}: this model has no options; give its name")
    if intercept:
        name = chosen if isinstance(chosen, str) else chosen["name"]
        refuse(f"problem.intercept does not go with {name}, which has its own biases")
    hashable = {k: tuple(v) if isinstance(v, list) else v for k, v in rest.items()}
    fixed: dict[str, Any] = {"classes": classes}
    if function is mlp:
        fixed["features"] = features
    return call("problem.model", function, hashable, fixed)

"""The problem of a run file."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacita.check import refuse
from tacita.data import Dataset
from tacita.job import networks
from tacita.job.calls import call, take_kind, told_of
from tacita.job.rows import SYNTHETIC, load
from tacita.job.run_file import ProblemTable
from tacita.problem import Problem, cnn, from_arrays, mlp, prox, resnet10
from tacita.problem.arrays import MODELS
from tacita.problem.model import regulariser

NETWORKS = {"mlp": mlp, "cnn": cnn, "resnet10": resnet10}
PENALTIES = {
    "l1": prox.L1,
    "elastic_net": prox.ElasticNet,
    "group_lasso": prox.GroupLasso,
    "box": prox.Box,
    "l2_ball": prox.L2Ball,
    "simplex": prox.Simplex,
}
REGULARISERS = {
    "squared_l2": regulariser.SquaredL2,
    "non_convex": regulariser.NonConvex,
}
#: Keys that say what to do with a data set: a synthetic problem brings its own.
_DATA_ONLY = ("model", "split", "intercept")


def build(table: ProblemTable) -> tuple[Problem, tuple[str, ...]]:
    """Make the problem of a run file, and tell what was done to the data."""
    if table.data in SYNTHETIC:
        return _synthetic(table), ()
    loaded = load(table)
    return _from_dataset(table, loaded), loaded.notes


def _from_dataset(table: ProblemTable, loaded: Dataset) -> Problem:
    ids = _ids(loaded.agent_names)
    order = np.argsort(np.asarray(ids))
    positions = None if loaded.positions is None else loaded.positions[order]
    agent = np.asarray(ids)[loaded.agent]
    classify = loaded.task == "classification"
    names = np.asarray(loaded.classes)
    labels = names[loaded.y] if classify else loaded.y
    test = None
    if loaded.test_x is not None and loaded.test_y is not None:
        test = loaded.test_x, names[loaded.test_y] if classify else loaded.test_y
    model, options = _model(table, loaded), _shared(table)
    joined = networks.build(table.graph, sorted(ids), positions, table.seed)
    with told_of("problem"):
        return from_arrays(
            loaded.x,
            labels,
            agent,
            model=model,
            l2=table.l2,
            graph=joined,
            classes=loaded.classes if classify else None,
            intercept=table.intercept,
            test=test,
            name=loaded.name,
            **options,
        )


def _synthetic(table: ProblemTable) -> Problem:
    function = SYNTHETIC[table.data]
    for key in _DATA_ONLY:
        if key in table.model_fields_set:
            refuse(
                f"problem.{key} does not go with problem.data = {table.data!r}, which "
                "brings its own; leave it out"
            )
    agents = inspect.signature(function).parameters["agents"].default
    n = table.options.get("agents", agents)
    nodes = range(n) if isinstance(n, int) else ()
    fixed = {
        "l2": table.l2,
        "seed": table.seed,
        "graph": networks.build(table.graph, nodes, None, table.seed),
        **_shared(table),
    }
    if fixed["regulariser"] is None:
        del fixed["regulariser"]
    elif "regulariser" not in inspect.signature(function).parameters:
        refuse(f"problem.regulariser does not go with {table.data!r}; use l2")
    return call("problem", function, table.options, fixed, ProblemTable.model_fields)


def _shared(table: ProblemTable) -> dict[str, Any]:
    return {
        "h": _object("problem.h", table.h, PENALTIES),
        "regulariser": _object("problem.regulariser", table.regulariser, REGULARISERS),
        "dtype": table.dtype,
    }


def _object(where: str, table: Any, known: dict[str, Any]) -> Any:
    if table is None:
        return None
    function, rest = take_kind(where, table, known, "kind")
    lists = {k: np.asarray(v) for k, v in rest.items() if isinstance(v, list)}
    return call(where, function, {**rest, **lists})


def _ids(names: Sequence[str]) -> list[Any]:
    """Agents' ids: numbers where all names are numbers, so that 2 comes before 10."""
    numbers = [name.removeprefix("agent ") for name in names]
    return (
        [int(n) for n in numbers] if all(n.isdecimal() for n in numbers) else [*names]
    )


def _model(table: ProblemTable, loaded: Dataset) -> Any:
    """The model, checked against the kind of target and its classes."""
    n = len(loaded.classes) or None
    chosen = table.model or _usual(n, table.l2)
    name = chosen if isinstance(chosen, str) else str(chosen.get("name"))
    if name in ("linear", "ridge") and n is not None:
        refuse(
            f"problem.model = {name!r} predicts a number, the target of {table.data} "
            f'is one of {n} classes; use "{_usual(n, 0)}"'
        )
    if name in ("logistic", "softmax", "cnn", "resnet10") and n is None:
        refuse(
            f"problem.model = {name!r} predicts a class, but labels of {table.data} "
            'are outside any set of classes: they are real numbers; use "linear" or '
            '"ridge"'
        )
    if name == "logistic" and n != 2:
        refuse(
            f"problem.model = 'logistic' takes two labels, {table.data} has {n}: label "
            f'{loaded.classes[2]!r} is outside the model\'s set; use "softmax"'
        )
    if isinstance(chosen, str) and chosen in MODELS:
        return chosen
    known = {**NETWORKS, **dict.fromkeys(MODELS)}
    function, rest = take_kind("problem.model", chosen, known, "name")
    if function is None:
        refuse(f"problem.model = {chosen!r}: this model has no options; give its name")
    if table.intercept:
        refuse(f"problem.intercept does not go with {name}, which has its own biases")
    return _network(function, rest, loaded, n)


def _usual(classes: int | None, l2: float) -> str:
    if classes is None:
        return "ridge" if l2 > 0 else "linear"
    return "logistic" if classes == 2 else "softmax"


def _network(function: Any, rest: dict[str, Any], loaded: Dataset, n: Any) -> Any:
    hashable = {k: tuple(v) if isinstance(v, list) else v for k, v in rest.items()}
    fixed: dict[str, Any] = {"classes": n}
    if function is mlp:
        fixed["features"] = loaded.x.shape[1]
    return call("problem.model", function, hashable, fixed)

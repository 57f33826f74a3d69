"""Networks in federations: named by a table, trained as in a simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.federation import Policy, PostRoom
from tacita.federation.description import Description
from tacita.federation.own_rows import own_problem
from tacita.federation.setting import blank_setting
from tests.federation.towns import NAMES, Town, rows, run_of

MLP = {"name": "mlp", "hidden": [2], "seed": 3}
BUDGET: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "norm": 1.0}
PIXELS = [f"p{k}" for k in range(16)]


def run_with(model: Any, **problem: Any) -> dict[str, Any]:
    told = run_of(2)
    told["problem"] |= {"model": model, **problem}
    return told


def describe(model: Any, **problem: Any) -> Description:
    tables = run_with(model, **problem)
    return Description("town", "try", "coordinator", tuple(NAMES), tables)


@pytest.mark.long
def test_a_private_network_is_that_of_a_simulation(tmp_path: Path):
    told = run_with(MLP, dtype="float64") | {"privacy": BUDGET}
    with Town(tmp_path, post=PostRoom()) as town:
        found = town.run(told)
    parts = [rows(name) for name in NAMES]
    x, y = (np.concatenate([part[k] for part in parts]) for k in range(2))
    made = tacita.from_arrays(
        x,
        y,
        np.repeat(NAMES, 30),
        tacita.problem.mlp(3, [2], 2, seed=3),
        l2=0.1,
        dtype="float64",
    )
    algorithm = tacita.private(
        made,
        tacita.FedAvg(step_size=0.3, local_steps=3),
        rounds=2,
        observer="coordinator",
        noise_kind="integers",
        **BUDGET,
    )
    expected = tacita.simulate(made, algorithm, 2, seed=5, record=()).params
    for who in ("coordinator", "ada"):
        shared = found[who].models["shared"]
        np.testing.assert_allclose(shared, expected, rtol=0, atol=1e-12)
    # What is left in the folder predicts, without the run or its rows.
    model = tacita.load_model(found["ada"].folder)
    network: Any = made.model
    scores = network.scores(shared, x[:5])
    assert model.predict(x[:5]).tolist() == np.argmax(scores, axis=1).tolist()


@pytest.mark.parametrize(
    ("model", "problem", "words"),
    [
        ("mlp", {}, "missing key problem.model.hidden"),
        ({"hidden": [2]}, {}, "expected problem.model.name a word"),
        ({"name": "mpl", "hidden": [2]}, {}, "did you mean 'mlp'"),
        ({"name": "mlp", "hidden": [10**9, 10**9]}, {}, "choose smaller layers"),
        ({"name": "mlp", "hidden": [1] * 33}, {}, "at most 32 of them"),
        ({"name": "mlp", "hidden": [2.5]}, {}, "a whole number >= 1"),
        ({"name": "by_agent", "linear": ["ada"]}, {}, "one kind of model"),
        ({"name": "logistic"}, {}, "no options; give its name"),
        (MLP, {"intercept": True}, "has its own biases"),
        ({"name": "cnn", "image": [4, 4, 1]}, {}, r"does not fit rows of shape \(3,\)"),
        (
            {"name": "cnn", "image": [4, 4, 1]},
            {"columns": PIXELS, "classes": []},
            "name the classes in problem.classes",
        ),
    ],
)
def test_what_is_no_network_for_these_columns_is_refused(model, problem, words):
    with pytest.raises(tacita.TacitaError, match=words) as refused:
        blank_setting(describe(model, **problem))
    assert "\n" not in str(refused.value)


def test_networks_of_images_and_of_numbers():
    told = {"name": "cnn", "image": [4, 4, 1], "channels": [2]}
    assert blank_setting(describe(told, columns=PIXELS)).own.dim == 38
    run = describe(MLP)
    number = {key: v for key, v in run.problem.items() if key != "classes"}
    run = Description("town", "n", "hub", ("ada",), {**run.tables, "problem": number})
    # Few values, and still numbers: nobody named classes.
    table = {f"x{k}": np.arange(4.0) for k in range(3)} | {"y": [1, 2, 2, 3]}
    own = own_problem(run, table)
    assert own.dim == 11 and own.class_names is None and own.dtype == np.float32


def test_a_policy_names_networks():
    run = describe(MLP)
    told = {"allow_shared_seed": True}
    assert Policy.anything(models=["mlp"], **told).objection(run) is None
    objection = Policy.anything(models=["logistic"], **told).objection(run)
    assert objection == "mlp is not one of the models allowed here"


def test_numbers_of_a_network_are_those_of_single_precision():
    with pytest.raises(tacita.TacitaError, match="between 1e-12 and 1e\\+12"):
        describe(MLP, l2=1e-20)
    describe(MLP, l2=1e-20, dtype="float64")

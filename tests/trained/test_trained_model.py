"""A model outside of its run: predictions, refusals, files."""

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import tacita
from tacita.federation.own_rows import own_problem
from tacita.problem import Custom, Differentiable, cnn, from_arrays, graph, mlp
from tacita.trained import TrainedModel, card_of, from_problem
from tacita.trees import double_precision, replace
from tacita.trust.explain import toward
from tests.trained.conftest import patients

NEW = patients(40, seed=7).dropna()
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(12, 4))
AGENT = np.arange(12) % 3


def predicted(problem, w, x):
    """As the compiled program does it."""
    with double_precision():
        return np.asarray(problem.model.predict(jnp.asarray(w), jnp.asarray(x)))


def test_a_run_predicts_as_its_problem_does(job, run):
    frame = patients().assign(row=np.arange(60))
    problem = job.problem
    x = problem.encoding.encode(frame)
    said = predicted(problem, run.params, np.column_stack([x, np.ones(60)]))
    expected = np.where(said > 0, "yes", "no")
    np.testing.assert_array_equal(run.predict(frame), expected)
    likely = run.predict_proba(frame)
    np.testing.assert_allclose(likely.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(likely[:, 1] > 0.5, expected == "yes")
    assert run.model.columns == ("age", "pet", "dose", "ward")
    assert run.model.classes == ("no", "yes") and run.card.target == "ill"


def test_training_accuracy_is_that_of_predictions(job, run):
    x, y, counts = job.problem.stacked()
    correct = rows = 0
    model = TrainedModel(card=card_of(job.problem), params=run.params)
    scores = [x[i, : counts[i]] @ run.params for i in range(3)]
    for i, score in enumerate(scores):
        correct += np.sum((score > 0) == (y[i, : counts[i]] > 0))
        rows += counts[i]
    assert correct / rows == pytest.approx(job.problem.accuracy(run.params))
    assert model.card.features(NEW, "new").shape == (len(NEW), x.shape[2])


def test_rows_are_cut_to_the_bound_wherever_the_model_looks_at_them(tmp_path):
    long = X * np.array([30.0, 1, 1, 1])
    how = {"bound": 1.0, "intercept": True, "test": (long, X[:, 0])}
    problem = from_arrays(X, X[:, 0], AGENT, model="linear", **how)
    run = tacita.simulate(problem, tacita.FedAvg(step_size=0.1), 2)
    tested = predicted(problem, run.params, problem.population.test.x)
    np.testing.assert_allclose(run.predict(long), tested, rtol=1e-12)
    run.save(tmp_path)
    model = tacita.load_model(tmp_path)
    np.testing.assert_array_equal(model.predict(long), run.predict(long))
    assert np.linalg.norm(model.card.features(long, "new"), axis=1).max() <= 1.0
    uncut = from_problem(replace(problem, bound=None), run.params)
    assert not np.allclose(uncut.predict(long), tested, rtol=0.1)


def test_a_reloaded_model_gives_the_same_bits(run, saved):
    back = tacita.load_model(saved)
    for one in (back, tacita.load_run(saved)):
        np.testing.assert_array_equal(one.predict(NEW), run.predict(NEW))
        np.testing.assert_array_equal(one.predict_proba(NEW), run.predict_proba(NEW))
    assert back.card == run.card and back.privacy is None
    np.testing.assert_array_equal(back.params, run.params)


def test_a_bare_process_needs_neither_rows_nor_run_file(run, saved, tmp_path):
    alone = tacita.load_model(saved).save(tmp_path / "alone")
    assert sorted(p.name for p in alone.iterdir()) == [
        "model.json",
        "model.safetensors",
    ]
    NEW.to_csv(tmp_path / "new.csv", index=False)
    words = (
        "import sys, pandas, tacita; from tacita.trained import load_model;"
        "print(*load_model(sys.argv[1]).predict(pandas.read_csv(sys.argv[2])));"
        "print(*{'tacita.runtime', 'tacita.job', 'tacita.privacy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", words, str(alone), str(tmp_path / "new.csv")],
        capture_output=True,
        text=True,
        check=True,
    )
    said, loaded = done.stdout.split("\n")[:2]
    assert said.split() == run.predict(NEW).tolist() and loaded == ""


def test_missing_columns_are_refused(run):
    with pytest.raises(tacita.TacitaError, match="no column 'dose'"):
        run.predict(NEW.drop(columns="dose"))
    with pytest.raises(tacita.TacitaError, match="the 4 columns age, pet, dose, ward"):
        run.predict(np.ones((3, 3)))


def models(kind):
    if kind == "mlp":
        return mlp(4, (5,), 3), RANDOM.integers(0, 3, 12)
    if kind == "regression":
        return mlp(4, (3, 2), None), X @ np.arange(4.0)
    if kind == "softmax":
        return "softmax", np.array(["a", "b", "c"])[RANDOM.integers(0, 3, 12)]
    if kind == "cnn":
        return cnn((2, 2, 1), 2, channels=(3,)), RANDOM.integers(0, 2, 12)
    labels = X[:, 0] > 0 if kind in ("logistic", "hinge") else X @ np.arange(4.0)
    return kind, labels


KINDS = ["linear", "huber", "absolute", "moments", "logistic", "softmax", "mlp"]
KINDS += ["regression", "cnn", "hinge"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_predicts_as_in_training_and_reloads(kind, tmp_path):
    chosen, y = models(kind)
    problem = from_arrays(X, y, AGENT, model=chosen, intercept=kind == "linear")
    w = RANDOM.normal(size=problem.dim).astype(problem.dtype)
    model = from_problem(problem, w, algorithm="none")
    x = np.concatenate([problem.stacked()[0][i] for i in range(3)])
    rows = np.concatenate([X[AGENT == i] for i in range(3)])
    said = predicted(problem, w, x)
    if model.classes is None:
        np.testing.assert_allclose(model.predict(rows), said, rtol=2e-5)
    else:
        codes = (said > 0).astype(int) if kind in ("logistic", "hinge") else said
        np.testing.assert_array_equal(
            model.predict(rows), np.array(model.classes)[codes]
        )
        if kind == "hinge":
            with pytest.raises(tacita.TacitaError, match="no probabilities"):
                model.predict_proba(rows)
            assert model.predict_frame(rows).columns.tolist() == ["prediction"]
        else:
            best = np.argmax(model.predict_proba(rows), axis=1)
            np.testing.assert_array_equal(best, codes)
    back = tacita.load_model(model.save(tmp_path))
    np.testing.assert_array_equal(back.predict(rows), model.predict(rows))
    assert back.card == model.card


@pytest.mark.parametrize(
    "options, wanted",
    [
        ({"model": "softmax"}, [False, True]),
        ({"model": "logistic", "classes": (False, True)}, [False, True]),
        ({"model": "logistic", "classes": (True, False)}, [False, True]),
        ({"model": "logistic"}, [-1, 1]),  # whatever the rows are called by
    ],
)
def test_truth_values_are_predicted_as_such(options, wanted, tmp_path):
    told = X[:, 0] > 0
    problem = from_arrays(X, told, AGENT, l2=1e-3, **options)
    model = from_problem(problem, problem.solve())
    expected = np.array(wanted)[told.astype(int)]
    for one in (model, tacita.load_model(model.save(tmp_path))):
        found = one.predict(X)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_personal_models_need_a_node(tmp_path):
    problem = from_arrays(
        pd.DataFrame(X, columns=list("abcd")),
        X @ np.arange(4.0),
        np.array(["x", "y", "z"])[AGENT],
        model="linear",
        graph=graph.ring(3).named(("x", "y", "z")),
    )
    run = tacita.simulate(problem, tacita.FedGD(alpha=0.1), 3, record=())
    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(
        tacita.TacitaError, match="say whose with node=, one of x, y, z"
    ):
        run.predict(frame)
    with pytest.raises(tacita.TacitaError, match="there is no node 'w'"):
        run.predict(frame, node="w")
    np.testing.assert_array_equal(run.predict(frame, node="y"), X @ run.agents[1])
    whose = np.array(["x", "y", "z"])[AGENT]
    mixed = run.predict(frame, node=whose)
    np.testing.assert_allclose(mixed, np.sum(X * run.agents[AGENT], axis=1), rtol=1e-12)
    back = tacita.load_model(run.save(tmp_path))
    np.testing.assert_array_equal(back.predict(frame, node=whose), mixed)
    alone = back.of_node("z")
    np.testing.assert_array_equal(alone.predict(X), X @ run.agents[2])
    with pytest.raises(tacita.TacitaError, match="one model for all, got node='z'"):
        alone.predict(X, node="z")


@pytest.mark.parametrize("shared", [False, True])
def test_nodes_with_several_kinds_of_models_predict_by_their_own(shared, tmp_path):
    kinds = {"x": "linear", "y": "logistic", "z": "hinge"}
    whose = np.array(["x", "y", "z"])[AGENT]
    y = np.where(X[:, 0] > 0, 1, -1)
    problem = from_arrays(X, y, whose, model=kinds)
    w = RANDOM.normal(size=4 if shared else (3, 4))
    own = np.broadcast_to(w, (3, 4))
    model = tacita.load_model(from_problem(problem, w).save(tmp_path))
    np.testing.assert_array_equal(model.predict(X, node="x"), X @ own[0])
    signed = [np.where(X @ v > 0, 1, -1) for v in own]
    np.testing.assert_array_equal(model.predict(X, node="z"), signed[2])
    two = AGENT > 0
    said = model.predict(X[two], node=whose[two])
    np.testing.assert_array_equal(said, np.where(AGENT == 1, *signed[1:])[two])
    assert "probability of 1" in model.predict_frame(X, "y")
    assert [*model.predict_frame(X, "z")] == ["prediction"]
    assert model.of_node("z").card == card_of(from_arrays(X, y, AGENT, model="hinge"))
    for node, match in (
        (None, "say whose with node=, one of x, y, z"),
        (whose, "some of these nodes predict a class and others a number"),
    ):
        with pytest.raises(tacita.TacitaError, match=match):
            model.predict(X, node=node)
    with pytest.raises(tacita.TacitaError, match="no classes"):
        model.predict_proba(X, node="x")


def test_a_run_with_several_kinds_shares_or_keeps_parameters():
    kinds = {0: "linear", 1: "huber", 2: "absolute"}
    problem = from_arrays(X, X.sum(axis=1), AGENT, model=kinds)
    assert card_of(problem).shape == (4,) and card_of(problem).shared
    assert card_of(problem, personal=True).shape == (3, 4)
    for wrong in ((0, 1), (0, 1, 3)):
        with pytest.raises(tacita.TacitaError, match="for every node"):
            replace(card_of(problem), kinds=wrong)


def test_what_holds_no_model_says_so(run, tmp_path):
    problem = from_arrays(X, X[:, 0] > 0, AGENT)
    algorithm = tacita.FedAvg(step_size=0.1)
    several = tacita.simulate(problem, algorithm, 1, seeds=2, record=())
    assert not (several.save(tmp_path) / "model.json").exists()
    with pytest.raises(tacita.TacitaError, match="several seeds or configurations"):
        several.predict(X)
    bare = Custom(4, lambda w, x, y: (x @ w - y) ** 2, lambda: np.zeros(4))
    problem = from_arrays(X, X[:, 0], AGENT, model=bare)
    alone = tacita.simulate(problem, algorithm, 1, record=())
    with pytest.raises(tacita.TacitaError, match="holds no model"):
        alone.predict(X)
    with pytest.raises(tacita.TacitaError, match="no model to keep"):
        from_problem(problem, np.zeros(4))
    # A folder that is saved over keeps nothing of the model before.
    run.save(tmp_path)
    assert not (alone.save(tmp_path) / "model.json").exists()


def test_an_own_model_is_brought_along(tmp_path):
    own = Differentiable(4, lambda w, x: x @ w, lambda: np.zeros(4), name="mine")
    problem = from_arrays(X, X[:, 0], AGENT, model=own)
    run = tacita.simulate(problem, tacita.FedAvg(step_size=0.1), 1, record=())
    folder = run.save(tmp_path)
    for absent in (tacita.load_model(folder), tacita.load_run(folder)):
        with pytest.raises(tacita.TacitaError, match="bring it along"):
            absent.predict(X)
    back = tacita.load_model(folder, model=own)
    np.testing.assert_array_equal(back.predict(X), run.predict(X))
    other = Differentiable(5, own.apply, own.initial)
    with pytest.raises(tacita.TacitaError, match="with 4 parameters"):
        tacita.load_model(folder, model=other)


def test_weights_of_rows_are_no_column_of_the_model():
    problem = from_arrays(X, X[:, 0] > 0, AGENT)
    drawn = toward(problem, X[:2], [1, -1], rho=0.5)
    model = from_problem(drawn, np.ones(4))
    np.testing.assert_array_equal(model.predict(X), np.sign(X.sum(axis=1)))


def test_privacy_travels_with_the_model_and_says_what_it_does_not_cover(job, tmp_path):
    budget = {"epsilon": 2.0, "delta": 1e-5, "observer": "coordinator", "rounds": 3}
    safe = tacita.private(job.problem, job.algorithm, **budget)
    run = tacita.simulate(job.problem, safe, 3, record=())
    back = tacita.load_model(run.save(tmp_path))
    assert back.privacy == json.loads((tmp_path / "privacy.json").read_text())
    row = tacita.trace.PrivacyReport.from_dict(back.privacy).row("coordinator")
    assert row.epsilon == pytest.approx(2.0, rel=1e-4) and row.assumptions
    assert any("scaled to mean 0" in one for one in back.not_covered)
    assert "not_covered" in json.loads((tmp_path / "model.json").read_text())
    # Notes on the data are of rows, too: they stay with the run.
    whole = tacita.private(
        job.problem, job.algorithm, **budget | {"rounds": job.plan()["rounds"]}
    )
    kept = job.with_algorithm(whole).simulate()
    assert kept.info["data_notes"] and kept.card.notes == ()
    # An epsilon never stands alone.
    for statement in ({"epsilon": 1.0}, {"rows": [{"epsilon": 1.0}]}):
        with pytest.raises(tacita.TacitaError, match="statement of privacy"):
            TrainedModel(card=back.card, params=back.params, privacy=statement)


def test_wrong_parameters_are_refused(run):
    for params, words in (
        (run.params[:-1], "expected params of shape"),
        (run.params.astype(np.float32), "expected params of float64"),
        (run.params * np.nan, "not finite"),
    ):
        with pytest.raises(tacita.TacitaError, match=words):
            TrainedModel(card=run.card, params=params)


def test_a_federation_reads_rows_by_the_numbers_it_agreed_on():
    told = {"columns": ["a", "b"], "target": "ill", "classes": ["no", "yes"]}
    told |= {"centre": [1.0, 2.0], "spread": [2.0, 4.0], "intercept": True}
    agreed: Any = SimpleNamespace(problem=told, name="clinic")
    rows = pd.DataFrame({"b": [2.0, 6.0], "ill": ["no", "yes"], "a": [3.0, 1.0]})
    problem = own_problem(agreed, rows)
    model = from_problem(problem, [1.0, 1.0, 0.5])
    x = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    np.testing.assert_array_equal(problem.stacked()[0][0], x)
    np.testing.assert_array_equal(model.card.features(rows, "rows"), x)
    assert model.card.target == "ill" and model.classes == ("no", "yes")
    assert model.not_covered == ()

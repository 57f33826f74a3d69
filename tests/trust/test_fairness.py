"""Fairness: known numbers, gaps between groups, features that must not matter."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacita
from tacita.privacy import features
from tacita.trust import fairness

TOLD = json.loads((Path(__file__).parent / "vectors.json").read_text())["fairness"]


def test_the_spread_of_losses_is_the_known_one():
    found = fairness.spread(TOLD["losses"])
    assert found.keys() == TOLD["spread"].keys()
    for name, value in TOLD["spread"].items():
        assert found[name] == pytest.approx(value, rel=1e-9), name


def test_a_tenth_of_many_agents_is_a_tenth():
    found = fairness.spread(np.arange(40.0))
    assert found["worst_tenth"] == 37.5 and found["best_tenth"] == 1.5


def test_gaps_between_groups_are_the_known_ones():
    told = TOLD["groups"]
    found = fairness.group_gaps(told["predicted"], told["y"], told["group"])
    for name, value in found.items():
        assert value == pytest.approx(told[name], rel=1e-9), name


def test_augmented_rows_are_the_known_ones_and_their_fit_is_blind():
    told = TOLD["augmented"]
    found = fairness.augmented(told["x"], told["y"], told["column"], told["values"])
    for one, key in zip(found, ("rows", "labels", "weights"), strict=True):
        np.testing.assert_allclose(one, told[key], rtol=1e-9)
    fit = np.linalg.lstsq(found[0], found[1])[0]
    np.testing.assert_allclose(fit, told["fit"], rtol=0, atol=1e-9)
    whole = fairness.augmented(np.ones((1, 2), int), [1.0], 1, (0.5, 1.5))[0]
    assert whole.tolist() == [[1.0, 0.5], [1.0, 1.5]]


def test_training_without_a_column_is_training_on_augmented_rows():
    told = TOLD["augmented"]
    column, values = told["column"], told["values"]
    x, y = np.array(told["x"]), np.array(told["y"])
    problem = tacita.from_arrays(x, y, [0] * len(y), "linear")
    blind = fairness.without_column(problem, column, values)
    rows, labels, _ = fairness.augmented(x, y, column, values)
    wide = tacita.from_arrays(rows, labels, [0] * len(labels), "linear")
    w = np.array([0.3, -1.0, 2.0, 0.7])
    assert blind.loss(w) == pytest.approx(wide.loss(w), rel=1e-12)
    np.testing.assert_allclose(blind.grad(w), wide.grad(w), rtol=1e-12)
    assert blind.counts.tolist() == [6]  # a person stays one row
    run = tacita.simulate(blind, tacita.FedAvg(step_size=0.2), 3000, record=())
    np.testing.assert_allclose(run.params, told["fit"], atol=1e-8)


def test_features_without_the_group_leave_no_gap_of_means():
    """(184) removes proxies, which training without the column leaves."""
    rng = np.random.default_rng(0)
    group = rng.choice([-1.0, 1.0], 300)
    x = rng.normal(size=(300, 3)) + np.outer(group, [2.0, 0.5, 0.0])
    y = x @ [1.0, 1.0, -1.0]
    owner = np.repeat([0, 1, 2], [90, 100, 110])
    problem = tacita.from_arrays(x, y, owner, "linear", test=(x, y), bound=9.0)
    centre, spread = x.mean(axis=0), x.std(axis=0)
    c = ((x - centre) / spread).T @ (group - group.mean()) / 300
    hidden = np.eye(3) - np.outer(c, c) / (c @ c)
    made = fairness.with_features(
        problem, lambda rows: (rows - centre) / spread @ hidden
    )
    assert made.counts.tolist() == [90, 100, 110] and made.bound is None
    # The map of the room of private features is the same one.
    same = fairness.with_features(problem, features.private_projection(x, group))
    np.testing.assert_allclose(same.stacked()[0], made.stacked()[0], atol=1e-12)
    seen = np.asarray(same.population.test.x)
    assert features.linear_leak(x, group) > 0.5 > features.linear_leak(seen, group)
    assert features.linear_leak(seen, group) < 1e-20
    for one, gap in ((problem, 4.0), (made, 0.0), (same, 0.0)):
        w, seen = one.solve(), np.asarray(one.population.test.x)
        said = seen @ w
        found = said[group > 0].mean() - said[group < 0].mean()
        assert found == pytest.approx(gap, abs=1.1 if gap else 1e-9)


@pytest.mark.parametrize("of_rows", (True, False))
def test_a_private_run_says_where_its_features_come_from(of_rows):
    """A projection that was computed from rows moves them all with each of them."""
    rng = np.random.default_rng(0)
    x, owner = rng.normal(size=(40, 3)), np.repeat(range(4), 10)
    made = features.private_projection(x, x[:, 0] + rng.normal(size=40))
    change = made if of_rows else lambda rows: rows @ np.diag([0.0, 1.0, 1.0])
    problem = tacita.from_arrays(x, x @ [1.0, 1.0, 0.0], owner, "linear", bound=3.0)
    problem = fairness.with_features(problem, change)
    budget = {"epsilon": 1.0, "delta": 1e-5, "observer": "coordinator", "rounds": 2}
    safe = tacita.private(problem, tacita.FedAvg(step_size=0.1), **budget)
    told = tacita.privacy.forecast(problem, safe, rounds=2).row("coordinator")
    words = "computed from the rows" if of_rows else "map that changed the features"
    (found,) = (a for a in told.assumptions if words in a["statement"])
    assert found["status"] == ("violated" if of_rows else "believed")


def test_models_of_changed_features_take_changed_features(tmp_path):
    """They took rows of the table, as if those were the features of the training."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    frame["pet"], frame["site"] = rng.choice(["cat", "dog"], 40), np.arange(40) % 4
    frame["y"] = frame.a - 2 * frame.b + 3 * (frame.pet == "dog") + 1
    frame.to_csv(tmp_path / "rows.csv", index=False)
    asked = {"data": "rows.csv", "target": "y", "agent": "site", "intercept": True}
    table = {"problem": asked, "algorithm": {"name": "ServerGD"}, "run": {"rounds": 1}}
    problem = tacita.job.job_from(table, tmp_path).problem
    turn = np.linalg.qr(rng.normal(size=(problem.dim, problem.dim)))[0]
    made = fairness.with_features(problem, lambda x: x @ turn)
    assert set(made.origin.learnt) > set(problem.origin.learnt) != set()
    model = tacita.trained.from_problem(made, made.solve())
    x, y, counts = made.stacked()
    real = np.arange(y.shape[1]) < counts[:, None]
    np.testing.assert_allclose(model.predict(x[real]), y[real], atol=1e-6)
    with pytest.raises(tacita.TacitaError):
        model.predict(frame)


def test_what_does_not_fit_is_refused():
    problem = tacita.problem.synthetic.linear(agents=2, features=3, samples=4)
    for call, words in (
        (lambda: fairness.without_column(problem, 3, (0, 1)), "column"),
        (lambda: fairness.without_column(problem, 0, (1,)), "values"),
        (lambda: fairness.group_gaps([1, 0], [1, 0], ["a", "a"]), "two groups"),
        (lambda: fairness.group_gaps([1], [1, 0], ["a", "b"]), "one length"),
        (lambda: fairness.spread([]), "agents"),
        (lambda: fairness.with_features(problem, lambda x: x[:, :2]), "shape"),
    ):
        with pytest.raises(tacita.TacitaError, match=words):
            call()
    assert np.isnan(fairness.spread([0.0, 0.0])["gini"])
    assert np.isnan(fairness.group_gaps([1, 0], [1, 0], [0, 1])["opportunity"])

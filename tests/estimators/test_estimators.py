"""Estimators: optimum, parties, names, files, privacy, and what is refused."""

import re
import warnings
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tacita
from tacita import (
    FederatedClassifier,
    FederatedRegressor,
    NetworkClassifier,
    NetworkRegressor,
)
from tacita.encoding import SEEN_LABELS

DOCS = Path(__file__).parents[2] / "docs"
RANDOM = np.random.default_rng(3)
FRAME = pd.DataFrame(RANDOM.normal(size=(60, 3)), columns=["a", "b", "c"])
X = FRAME.to_numpy()
LABELS = np.where(X[:, 0] + 0.3 * RANDOM.normal(size=60) > 0, "well", "ill")
NUMBERS = X @ [1.0, -2.0, 0.5] + 3 + 0.1 * RANDOM.normal(size=60)
PARTY = np.array(["north", "south", "west"])[np.arange(60) % 3]
L2 = 0.05


@pytest.fixture(scope="module")
def clinic() -> FederatedClassifier:
    return FederatedClassifier(l2=L2, tol=1e-9).fit(FRAME, LABELS, groups=PARTY)


@pytest.fixture(scope="module")
def line() -> FederatedRegressor:
    return FederatedRegressor(l2=L2, tol=1e-9).fit(X, NUMBERS, groups=PARTY)


def test_a_regression_is_the_optimum_in_closed_form(line):
    ones = np.column_stack([X, np.ones(60)])
    # Parties are equally large: the sum of their mean losses and penalties.
    left = 3 * L2 * np.eye(4) + 2 * ones.T @ ones / 20
    expected = np.linalg.solve(left, 2 * ones.T @ NUMBERS / 20)
    np.testing.assert_allclose(line.run_.params, expected, atol=1e-8)
    np.testing.assert_allclose(line.predict(X), ones @ expected, atol=1e-7)
    assert line.n_iter_ < line.rounds and line.report_["stopped_early"]


def test_a_classification_is_the_optimum(clinic):
    codes = np.where(LABELS == "well", 1, -1)
    problem = tacita.from_arrays(X, codes, PARTY, l2=L2, intercept=True)
    np.testing.assert_allclose(clinic.run_.params, problem.solve(), atol=1e-7)


def test_what_is_learnt_stands_in_attributes(clinic):
    assert clinic.classes_.tolist() == ["ill", "well"]
    assert clinic.feature_names_in_.tolist() == ["a", "b", "c"]
    assert clinic.n_features_in_ == 3
    assert clinic.parties_.tolist() == ["north", "south", "west"]
    assert clinic.privacy_ is None and clinic.report_["privacy"] is None
    assert clinic.report_["loss"] == pytest.approx(clinic.run_.metrics["loss"][-1])
    assert clinic.score(FRAME, LABELS) > 0.8
    likely = clinic.predict_proba(FRAME)
    np.testing.assert_allclose(likely.sum(axis=1), 1)
    found = clinic.classes_[likely.argmax(axis=1)]
    np.testing.assert_array_equal(found, clinic.predict(FRAME))


def test_a_saved_model_predicts_the_same_bits(clinic, tmp_path):
    back = tacita.load_model(clinic.save(tmp_path))
    np.testing.assert_array_equal(back.predict(FRAME), clinic.predict(FRAME))
    np.testing.assert_array_equal(back.predict_proba(X), clinic.predict_proba(FRAME))
    assert back.columns == ("a", "b", "c")


def test_rows_in_another_order_and_parties_of_other_names_change_nothing(line):
    order = RANDOM.permutation(60)
    renamed = np.char.add("z", PARTY)[order]
    twin = clone(line).fit(X[order], NUMBERS[order], groups=renamed)
    np.testing.assert_allclose(twin.run_.params, line.run_.params, atol=1e-7)


def test_scales_travel_with_the_model(tmp_path):
    far = FRAME * [1000.0, 0.001, 1.0] + 7
    near = FederatedRegressor(l2=L2, scale="standard").fit(far, NUMBERS, groups=PARTY)
    back = tacita.load_model(near.save(tmp_path))
    np.testing.assert_array_equal(back.predict(far[["c", "a", "b"]]), near.predict(far))
    assert near.score(far, NUMBERS) > 0.9
    piped = make_pipeline(StandardScaler(), FederatedRegressor(l2=L2))
    piped.fit(far, NUMBERS, federatedregressor__groups=PARTY)
    np.testing.assert_allclose(piped.predict(far), near.predict(far), atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [None, "standard", "minmax", ([1, 2, 3], [4, 5, 6])])
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_are_in_the_units_of_the_rows(scale, intercept):
    far = X * [100.0, 0.01, 1.0] + 7
    told = {"scale": scale, "intercept": intercept, "rounds": 5}
    told["algorithm"] = tacita.ServerGD(step_size=1e-5)
    line = FederatedRegressor(**told).fit(far, NUMBERS, groups=PARTY)
    assert line.coef_.shape == (3,)
    found = far @ line.coef_ + line.intercept_
    np.testing.assert_allclose(found, line.predict(far), rtol=1e-9, atol=1e-12)
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    for model, y, scores in (
        (None, LABELS, 1),
        ("hinge", LABELS, 1),
        ("softmax", LABELS, 1),
        ("softmax", three, 3),
    ):
        fitted = FederatedClassifier(model=model, **told).fit(far, y, groups=PARTY)
        assert fitted.coef_.shape == (scores, 3)
        assert fitted.intercept_.shape == (scores,)
        found = far @ fitted.coef_.T + fitted.intercept_
        expected = fitted.decision_function(far).reshape(60, scores)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("told", [{"model": "mlp"}, {"bound": 9.0}, {"scale": "unit"}])
def test_what_is_not_linear_in_the_rows_has_no_weights(told):
    fitted = FederatedClassifier(rounds=1, **told)
    assert not hasattr(fitted, "coef_")
    fitted.fit(X, LABELS, groups=PARTY)
    assert not hasattr(fitted, "coef_") and not hasattr(fitted, "intercept_")


def test_a_party_is_left_out_and_the_fit_knows_the_others():
    known = []

    class Watching(FederatedRegressor):
        def fit(self, X, y, groups=None):
            known.append(sorted(set(groups)))
            return super().fit(X, y, groups)

    scores = cross_val_score(
        Watching(l2=L2),
        X,
        NUMBERS,
        groups=PARTY,
        params={"groups": PARTY},
        cv=LeaveOneGroupOut(),
    )
    assert known == [["south", "west"], ["north", "west"], ["north", "south"]]
    assert min(scores) > 0.9


def test_a_fit_that_runs_away_says_what_there_is_to_do():
    """It advised to leave out a step size that nobody had given."""
    x = np.random.default_rng(0).normal(size=(30, 2))
    network = FederatedRegressor(model="mlp", rounds=5, random_state=0)
    told = "scale the features and labels, or give an algorithm with a smaller step"
    with pytest.raises(tacita.TacitaError, match=told):
        network.fit(x, 1e9 * x[:, 0])


def test_too_few_rounds_are_told():
    with pytest.warns(ConvergenceWarning, match="after 2 rounds the gradient is"):
        FederatedRegressor(rounds=2, l2=L2).fit(X, NUMBERS, groups=PARTY)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"epsilon": 1.0}, "expected delta"),
        ({"epsilon": 1.0, "delta": 1e-5}, "read off the rows.*give bound="),
        ({"epsilon": 1.0, "scale": "standard"}, "scale='standard' is computed from"),
        ({"scale": "robust"}, "unknown scale='robust'"),
        ({"scale": 3.0}, "expected scale 'standard'"),
        ({"scale": ([0, 0], [1, 1])}, "expected centre one number per feature, 3"),
        ({"algorithm": "FedAgv"}, "did you mean 'FedAvg'"),
        ({"algorithm": tacita.FedGD(alpha=1.0)}, "takes a ServerAlgorithm such as"),
        ({"rounds": 0}, "expected rounds a whole number >= 1"),
        ({"model": "mpl"}, "did you mean 'mlp'"),
        ({"model": "huber"}, "huber predicts a number; use a regressor"),
        ({"observer": "cordinator"}, "observer='cordinator'; did you mean 'coord"),
        ({"unit": "recrod"}, "unknown unit='recrod'; did you mean 'record'"),
        ({"delta": -3.0}, r"expected delta in \(0, 1\), got delta=-3"),
        ({"delta": "small"}, r"expected delta in \(0, 1\), got delta='small'"),
    ],
)
def test_what_does_not_go_is_refused(options, words):
    with pytest.raises(tacita.TacitaError, match=words):
        FederatedClassifier(**options).fit(X, LABELS, groups=PARTY)


def test_a_delta_may_wait_for_its_epsilon():
    """A search over epsilon has None among its values."""
    kept = FederatedClassifier(rounds=500, delta=1e-5, observer="final_model")
    assert kept.fit(X, LABELS, groups=PARTY).privacy_ is None
    with pytest.raises(tacita.TacitaError, match="unknown unit='agent'"):
        NetworkRegressor(unit="agent").fit(X, NUMBERS, groups=PARTY)


def test_other_misuse_is_refused():
    with pytest.raises(tacita.TacitaError, match="one class only, 'a'; give"):
        FederatedClassifier().fit(X, ["a"] * 60)
    with pytest.raises(tacita.TacitaError, match="one class only, 1; give"):
        FederatedClassifier().fit(X, np.ones(60, int))
    with pytest.raises(tacita.TacitaError, match="coupling >= 0, got coupling=-1"):
        NetworkRegressor(coupling=-1).fit(X, NUMBERS, groups=PARTY)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        FederatedClassifier().fit(X, LABELS, groups=PARTY[:5])
    for groups, words in (
        (["a", float("nan"), "b"] * 20, "groups has no value in 20 rows"),
        (["a", 1, "b"] * 20, "groups mixes numbers and str"),
        ([-1, 0, 1] * 20, "groups has -1; parties are called by words"),
    ):
        with pytest.raises(tacita.TacitaError, match=words):
            NetworkRegressor().fit(X, NUMBERS, groups=groups)
    with pytest.raises(tacita.TacitaError, match="y has text, a regressor takes num"):
        FederatedRegressor().fit(X, LABELS)
    with pytest.raises(NotFittedError):
        _ = FederatedClassifier().privacy_
    with pytest.raises(NotFittedError):
        FederatedClassifier().save("nowhere")


def test_a_private_fit_says_what_it_covers_and_shows_nothing_else(tmp_path):
    private = FederatedClassifier(epsilon=2.0, delta=1e-5, bound=3.0, rounds=5)
    private.fit(X, LABELS, groups=PARTY)
    row = private.privacy_.row("coordinator")
    assert row.epsilon == pytest.approx(2.0, rel=1e-3) and row.delta == 1e-5
    believed = [a["statement"] for a in row.assumptions if a["status"] == "believed"]
    for words in ("pipeline", "fitted once", "labels there are"):
        assert any(words in one for one in believed), words
    assert not private.privacy_.violated()
    assert set(private.run_.metrics) == {"round"} and private.report_["loss"] is None
    assert private.n_iter_ == 5
    back = tacita.load_model(private.save(tmp_path))
    assert back.privacy["rows"][0]["assumptions"] and back.not_covered == (SEEN_LABELS,)


def test_a_private_regression_has_no_labels_to_tell_of():
    private = FederatedRegressor(
        tacita.FedAvg(step_size=0.1), epsilon=2.0, delta=1e-5, bound=3.0, rounds=2
    )
    private.fit(X, NUMBERS / 10, groups=PARTY)
    told = [a["statement"] for a in private.privacy_.row("coordinator").assumptions]
    assert not any("labels" in one for one in told)
    assert private.model_.not_covered == ()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("given", [None, tacita.FedProx(eta=1.0)])
@pytest.mark.parametrize("model", ["absolute", "hinge"])
def test_losses_with_kinks_are_solved_too(model, given):
    numbers = model == "absolute"
    kind = FederatedRegressor if numbers else FederatedClassifier
    fitted = kind(given, model=model, l2=L2, rounds=500)
    fitted.fit(X, NUMBERS if numbers else LABELS, groups=PARTY)
    if given is None:
        y = NUMBERS if numbers else np.where(LABELS == "well", 1, -1)
        told = {"model": model, "l2": L2, "intercept": True}
        best = tacita.from_arrays(X, y, PARTY, **told).solve()
        np.testing.assert_allclose(fitted.run_.params, best, atol=1e-8)


@pytest.mark.parametrize("scale, reached", [(1.0, True), (100.0, False)])
def test_a_fit_with_kinks_that_did_not_arrive_says_so(scale, reached):
    """Beside a constant term features of length 100 take many thousands of rounds."""
    fitted = FederatedRegressor(model="absolute", l2=L2, rounds=500)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted.fit(scale * X, NUMBERS, groups=PARTY)
    told = {"model": "absolute", "l2": L2, "intercept": True}
    problem = tacita.from_arrays(scale * X, NUMBERS, PARTY, **told)
    above = problem.loss(fitted.run_.params) / problem.loss(problem.solve())
    assert (above < 1 + 1e-9) == reached == (not said)
    if said:
        assert "scale the features or raise rounds" in str(said[0].message)


@pytest.mark.parametrize("model", ["hinge", tacita.problem.Hinge(3)])
def test_a_classifier_by_margins_gives_scores_and_no_probabilities(model):
    """Scorers took its `predict_proba`, which refused, for what ranks rows."""
    asked = FederatedClassifier(model=model, l2=L2, intercept=False, tol=0.01)
    assert not hasattr(asked, "predict_proba")
    margin = clone(asked).fit(FRAME, LABELS, groups=PARTY)
    assert not hasattr(margin, "predict_proba")
    scores = margin.decision_function(FRAME)
    np.testing.assert_allclose(scores, X @ margin.run_.params, atol=1e-12)
    ranked = get_scorer("roc_auc")(margin, FRAME, LABELS)
    assert ranked == roc_auc_score(LABELS == "well", X @ margin.run_.params) > 0.9
    calibrated = CalibratedClassifierCV(asked, cv=2).fit(FRAME, LABELS)
    assert calibrated.predict_proba(FRAME).shape == (60, 2)


@pytest.mark.parametrize("model", [None, "softmax", "mlp"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scores_of_two_classes_are_positive_for_the_second(model):
    fitted = FederatedClassifier(model=model, rounds=30, random_state=0)
    fitted.fit(X, LABELS, groups=PARTY)
    scores, likely = fitted.decision_function(X), fitted.predict_proba(X)
    assert scores.shape == (60,)
    np.testing.assert_allclose(1 / (1 + np.exp(-scores)), likely[:, 1], atol=1e-6)
    said = fitted.classes_[(scores > 0).astype(int)]
    np.testing.assert_array_equal(said, fitted.predict(X))
    assert get_scorer("roc_auc")(fitted, X, LABELS) > 0.9


def test_scores_of_several_classes_have_a_column_each():
    three = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    shared = FederatedClassifier(l2=L2).fit(X, three, groups=PARTY)
    network = NetworkClassifier(l2=L2, rounds=5, tol=1e9).fit(X, three, groups=PARTY)
    for scores, said in (
        (shared.decision_function(X), shared.predict(X)),
        (network.decision_function(X, PARTY), network.predict(X, PARTY)),
    ):
        assert scores.shape == (60, 3)
        np.testing.assert_array_equal(shared.classes_[scores.argmax(axis=1)], said)
    with pytest.raises(tacita.TacitaError, match="say whose row each is with groups="):
        network.decision_function(X)
    margin = NetworkClassifier(model="hinge", rounds=5)
    assert hasattr(margin, "decision_function") and not hasattr(margin, "predict_proba")


def test_a_private_fit_with_kinks_asks_for_a_step():
    private = FederatedRegressor(model="absolute", epsilon=2.0, delta=1e-5, bound=3.0)
    with pytest.raises(tacita.TacitaError, match=r"algorithm=tacita.FedAvg\(step_size"):
        private.fit(X, NUMBERS, groups=PARTY)


def test_parties_alone_are_ridge_regressions_of_their_own():
    alone = NetworkRegressor(coupling=0.0, l2=L2, rounds=2)
    alone.fit(FRAME, NUMBERS, groups=PARTY)
    for number, name in enumerate(alone.parties_):
        own = PARTY == name
        ones = np.column_stack([X[own], np.ones(20)])
        left = L2 * np.eye(4) + 2 * ones.T @ ones / 20
        expected = np.linalg.solve(left, 2 * ones.T @ NUMBERS[own] / 20)
        np.testing.assert_allclose(alone.run_.agents[number], expected, atol=1e-9)
        found = alone.predict(FRAME[own], groups=PARTY[own])
        np.testing.assert_allclose(found, ones @ expected, atol=1e-9)
    assert alone.score(FRAME, NUMBERS, groups=PARTY) > 0.9


@pytest.mark.parametrize("coupling", [0.1, 100.0])
def test_parties_on_a_road_are_at_the_optimum_however_strongly_held(coupling):
    road = tacita.problem.Graph.from_edges(
        ["north", "south", "west"], [("north", "south"), ("south", "west")]
    )
    offset = 2.0 * (PARTY == "west")
    network = NetworkRegressor(graph=road, coupling=coupling, l2=L2, rounds=60)
    network.fit(FRAME, NUMBERS + offset, groups=PARTY)
    laplacian = np.array([[1, -1, 0], [-1, 2, -1], [0, -1, 1]])
    left = np.kron(2 * coupling * laplacian, np.eye(4)) + L2 * np.eye(12)
    right = np.zeros(12)
    for number, name in enumerate(network.parties_):
        own, at = PARTY == name, slice(4 * number, 4 * number + 4)
        ones = np.column_stack([X[own], np.ones(20)])
        left[at, at] += 2 * ones.T @ ones / 20
        right[at] = 2 * ones.T @ (NUMBERS + offset)[own] / 20
    expected = np.linalg.solve(left, right).reshape(3, 4)
    np.testing.assert_allclose(network.run_.agents, expected, atol=1e-6)


def test_a_network_that_is_far_from_its_optimum_says_so():
    slow = NetworkRegressor(tacita.FedRelax(alpha=100.0), rounds=60)
    with pytest.warns(ConvergenceWarning, match="after 60 rounds the gradient is"):
        slow.fit(FRAME, NUMBERS, groups=PARTY)
    with pytest.raises(tacita.TacitaError, match="expected tol >= 0, got tol=-1"):
        NetworkRegressor(tol=-1).fit(FRAME, NUMBERS, groups=PARTY)
    with pytest.raises(tacita.TacitaError, match="coupling a number, got"):
        NetworkRegressor(coupling=None).fit(FRAME, NUMBERS, groups=PARTY)


def test_a_network_predicts_by_party(tmp_path):
    road = tacita.problem.Graph.from_edges(
        ["north", "south", "west"], [("north", "south"), ("south", "west")]
    )
    network = NetworkClassifier(graph=road, coupling=0.5, rounds=3, tol=1.0)
    network.fit(FRAME, LABELS, groups=PARTY)
    said = network.predict(FRAME, groups=PARTY)
    likely = network.predict_proba(FRAME, groups=PARTY)
    np.testing.assert_array_equal(network.classes_[likely.argmax(axis=1)], said)
    back = tacita.load_model(network.save(tmp_path))
    np.testing.assert_array_equal(back.predict(FRAME, node=PARTY), said)
    with pytest.raises(tacita.TacitaError, match="say whose row each is with groups="):
        network.predict(FRAME)
    with pytest.raises(tacita.TacitaError, match="there is no node 'east'"):
        network.predict(FRAME[:1], groups=["east"])
    with pytest.raises(tacita.TacitaError, match="as in algorithm=tacita.FedGD"):
        clone(network).set_params(algorithm="FedGD").fit(X, LABELS, groups=PARTY)
    with pytest.raises(tacita.TacitaError, match="takes a GraphAlgorithm such as"):
        clone(network).set_params(algorithm="FedAvg").fit(X, LABELS, groups=PARTY)


def test_no_number_is_compiled_in(line, caplog):
    def compiled(**changes):
        caplog.clear()
        with jax.log_compiles(), caplog.at_level("WARNING", logger="jax"):
            clone(line).set_params(**changes).fit(X, NUMBERS + 1, groups=PARTY)
        told = [record.getMessage() for record in caplog.records]
        return [words.split()[1] for words in told if words.startswith("Compiling")]

    assert compiled(l2=0.2, rounds=150) == []
    other = compiled(algorithm=tacita.FedAvg(), tol=1.0)
    assert other == ["jit(_first)", "jit(_several_rounds)"]


@pytest.mark.long
@pytest.mark.parametrize(
    "page", ["how-to-use-with-scikit-learn.md", "how-to-use-a-trained-model.md"]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_code_on_the_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text()
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(block, names)
    if "trained-model" in page:
        assert (tmp_path / "clinic.onnx").exists()
        np.testing.assert_array_equal(
            names["model"].predict(names["new"]), names["run"].predict(names["new"])
        )
    else:
        assert names["clinic"].score(names["X"], names["y"]) > 0.9
        assert len(names["scores"]) == 3 and min(names["scores"]) > 0.8
        assert names["search"].best_params_["l2"] in (0.001, 0.1)
        assert names["private"].privacy_.row("coordinator").epsilon <= 1.0 + 1e-6

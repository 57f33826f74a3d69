"""Errors of every node, the book's four cases, and what a report shows of them."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn import metrics

import tacita
from tacita.problem import graph, synthetic
from tacita.report import write_report
from tacita.report.nodes import nodes_map, nodes_table
from tacita.theory import diagnosis
from tacita.theory.diagnosis import diagnose


@pytest.mark.parametrize(
    "errors, word",
    [
        ((1.0, 1.0, 1.0), "as good as the baseline"),
        ((0.5, 0.6, 1.0), "as good as the baseline"),
        ((1.0, 1.6, 1.0), "overfitting"),
        ((0.0, 0.1, 1.0), "overfitting"),
        ((2.0, 2.0, 1.0), "underfitting"),
        ((2.0, 1.0, 1.0), "unlike sets"),
        ((1.0, 1.2, None), "no overfitting seen"),
        ((np.nan, 1.0, 1.0), "no rows to tell"),
        ((1.0, np.nan, None), "no rows to tell"),
    ],
)
def test_the_four_cases(errors, word):
    verdict = diagnose(*errors)
    assert verdict.word == word and verdict in diagnosis.VERDICTS
    # What "much larger" means does not depend on the unit of the error.
    scaled = [e if e is None else 1e3 * e for e in errors]
    assert diagnose(*scaled) == verdict


def test_the_factor_says_what_much_larger_is():
    assert diagnose(1.0, 1.4, 1.0).word == "as good as the baseline"
    assert diagnose(1.0, 1.4, 1.0, factor=1.3).word == "overfitting"
    with pytest.raises(tacita.TacitaError, match="expected factor >= 1, got"):
        diagnose(1.0, 1.0, 1.0, factor=0.5)


@pytest.fixture(scope="module")
def trained():
    """Five nodes with unequal rows, and others kept back for all but the last."""
    rng = np.random.default_rng(0)
    agent = np.repeat(["a", "b", "c", "d", "e"], [3, 5, 4, 6, 2])
    x = rng.normal(size=(len(agent), 2))
    y = x @ [1.0, -1.0] + 0.1 * rng.normal(size=len(agent))
    ring = graph.ring(5).named("abcde")
    problem = tacita.from_arrays(
        x, y, agent, model="linear", intercept=True, graph=ring, l2=0.5
    )
    run = tacita.simulate(problem, tacita.FedGD(alpha=0.3), 30, record=("loss",))
    others = rng.permutation(np.repeat(["a", "b", "c", "d"], 7))
    new = rng.normal(size=(len(others), 2))
    target = new @ [1.0, -1.0] + rng.normal(size=len(others))
    return problem, run, (x, y, agent), (new, target, others)


def test_errors_are_mean_losses_over_a_nodes_own_rows(trained):
    problem, run, own, others = trained
    told = tacita.validate(problem, run, others, intercept=True, baseline=1.0)
    for i, name in enumerate("abcde"):
        for found, (x, y, agent) in ((told.train, own), (told.validation, others)):
            w = run.agents[i]
            rows = agent == name
            if not rows.any():
                assert np.isnan(found[i]) and told.verdicts[i].word == "no rows to tell"
                continue
            expected = np.mean((x[rows] @ w[:2] + w[2] - y[rows]) ** 2)
            assert found[i] == pytest.approx(expected, rel=1e-12)
    one = tacita.validate(problem, run.agents[0], others, intercept=True)
    assert one.train[0] == pytest.approx(told.train[0]) and one.baseline is None


def test_labels_of_classes_are_coded_as_in_the_problem():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(30, 2)), rng.choice(["cat", "dog", "eel"], 30)
    problem = tacita.from_arrays(x, y, np.arange(30) % 3, model="softmax")
    w = rng.normal(size=(3, 6))
    told = tacita.validate(problem, w, (x, y, np.arange(30) % 3))
    np.testing.assert_allclose(told.train, told.validation, rtol=1e-12)
    assert told.train.sum() == pytest.approx(problem.loss(w))


def test_scores_are_those_of_scikit_learn(trained):
    problem, run, _, (x, y, agent) = trained
    scores = tacita.validate(problem, run, (x, y, agent), intercept=True).scores
    w = dict(zip("abcde", run.agents, strict=True))
    said = np.array([r @ w[a][:2] + w[a][2] for r, a in zip(x, agent, strict=True)])
    expected = {
        "MAE": metrics.mean_absolute_error,
        "RMSE": metrics.root_mean_squared_error,
        "R2": metrics.r2_score,
    }
    for name, score in expected.items():
        assert scores.pooled[name] == pytest.approx(score(y, said), rel=1e-12)
        own = [score(y[agent == a], said[agent == a]) for a in "abcd"]
        np.testing.assert_allclose(scores.by_node[name], [*own, np.nan], rtol=1e-12)
    alike = np.full(len(y), 0.1)  # whose mean is rounded
    scores = tacita.validate(problem, run, (x, alike, agent), intercept=True).scores
    assert np.isnan(scores.by_node["R2"]).all() and np.isnan(scores.pooled["R2"])


@pytest.mark.parametrize("kind", ["softmax", "logistic"])
def test_scores_of_classes_are_those_of_scikit_learn(kind):
    rng = np.random.default_rng(2)
    names = ["cat", "dog", "eel"] if kind == "softmax" else ["no", "yes"]
    x, y = rng.normal(size=(60, 2)).round(1), rng.choice(names, 60)
    agent = np.arange(60) % 3
    problem = tacita.from_arrays(x, y, agent, model=kind, classes=names)
    w = rng.normal(size=problem.dim)
    scores = tacita.validate(problem, w, (x, y, agent)).scores
    given = x @ w.reshape(-1, 2).T
    if kind == "logistic":
        given = np.hstack([0 * given, given])
    chances = softmax(given, axis=1)
    said = np.array(names)[given.argmax(axis=1)]
    area = chances if kind == "softmax" else chances[:, 1]

    def expected(rows):
        return {
            "accuracy": metrics.accuracy_score(y[rows], said[rows]),
            "F1": metrics.f1_score(y[rows], said[rows], average="macro"),
            "AUC": metrics.roc_auc_score(y[rows], area[rows], multi_class="ovr"),
        }

    assert scores.pooled == pytest.approx(expected(slice(None)), rel=1e-12)
    for i in range(3):
        one = {name: values[i] for name, values in scores.by_node.items()}
        assert one == pytest.approx(expected(agent == i), rel=1e-12)
    np.testing.assert_array_equal(scores.confusion, metrics.confusion_matrix(y, said))
    assert "all rows: accuracy" in str(tacita.validate(problem, w, (x, y, agent)))


def test_nodes_with_losses_of_their_own_have_scores():
    """All predict values, or all classes; some of each have no score in common."""
    rng = np.random.default_rng(3)
    x, agent = rng.normal(size=(40, 2)), np.arange(40) % 2
    values, signs = rng.normal(size=40), rng.choice([-1, 1], 40)
    w = rng.normal(size=(2, 2))
    said = np.sum(x * w[agent], axis=1)

    def scores(own, y):
        several = tacita.from_arrays(x, y, agent, dict(enumerate(own)))
        return tacita.validate(several, w, (x, y, agent)).scores

    told = scores(["linear", "huber"], values)
    assert told.pooled["R2"] == pytest.approx(metrics.r2_score(values, said))
    own = metrics.mean_absolute_error(values[1::2], said[1::2])
    assert told.by_node["MAE"][1] == pytest.approx(own)
    told = scores(["logistic", "hinge"], signs)
    assert told.pooled["AUC"] == pytest.approx(metrics.roc_auc_score(signs, said))
    right = metrics.confusion_matrix(signs, np.where(said > 0, 1, -1))
    np.testing.assert_array_equal(told.confusion, right)
    assert scores(["linear", "logistic"], signs) is None


def test_the_area_ranks_scores_whose_probabilities_are_one():
    """From a score of 37 on all probabilities round to 1; their order counts."""
    x, y = np.array([[40.0], [60.0], [50.0], [70.0]]), [-1, 1, -1, 1]
    problem = tacita.from_arrays(x, y, [0, 0, 0, 0])
    scores = tacita.validate(problem, np.ones(1), (x, y, [0, 0, 0, 0])).scores
    assert scores.pooled["AUC"] == 1.0


def test_models_that_diverged_are_refused(trained):
    problem, run, _, others = trained
    with pytest.raises(tacita.TacitaError, match="training diverged"):
        tacita.validate(problem, np.nan * run.agents, others, intercept=True)


def test_rows_that_do_not_fit_are_refused(trained):
    problem, run, _, (x, y, agent) = trained
    with pytest.raises(tacita.TacitaError, match="expected X of shape"):
        tacita.validate(problem, run, (x, y, agent))
    stranger = np.where(agent == "a", "z", agent)
    with pytest.raises(tacita.TacitaError, match="agent 'z' is not one"):
        tacita.validate(problem, run, (x, y, stranger), intercept=True)
    with pytest.raises(tacita.TacitaError, match=r"validation=\(X, y, agent\)"):
        tacita.validate(problem, run, (x, y))
    for wrong in ([1.0, 1.0, 1.0], {"a": 1.0}, "low"):
        with pytest.raises(
            tacita.TacitaError, match="expected baseline one number, or"
        ):
            tacita.NodeErrors(ids="ab", train=1.0, validation=1.0, baseline=wrong)
    with pytest.raises(tacita.TacitaError, match="positions"):
        tacita.NodeErrors(ids="ab", train=1.0, validation=1.0, positions=[[0.0, 1.0]])
    for wrong in (run.agents[:2], run.agents[None]):  # too few; of several seeds
        with pytest.raises(tacita.TacitaError, match="models"):
            tacita.validate(problem, wrong, (x, y, agent), intercept=True)
    with pytest.raises(tacita.TacitaError, match="baseline"):
        tacita.NodeErrors(ids="abc", train=1.0, validation=1.0, baseline=[1.0, 2.0])


def test_nodes_without_errors_have_no_mean():
    told = tacita.NodeErrors(ids="ab", train=np.nan, validation=1.0)
    assert "training error nan" in str(told) and "2 no rows to tell" in str(told)


@pytest.mark.long
def test_the_report_shows_a_table_and_a_map(trained, tmp_path):
    problem, run, _, others = trained
    places = np.array([[60.0, 20 + i] for i in range(5)])
    told = tacita.validate(
        problem,
        run,
        others,
        intercept=True,
        baseline=[2.0, 0.1, 2.0, 2.0, 2.0],
        baseline_name="yesterday",
        positions=places,
    )
    told.attach(run).save(tmp_path)
    page = write_report(tacita.load_run(tmp_path), tmp_path).read_text()
    assert (tmp_path / "nodes-FedGD.png").stat().st_size > 5000
    better = int(np.sum(told.validation < told.baseline))
    assert f"{better} of 5 nodes do better than yesterday" in page
    for verdict in told.verdicts:
        assert verdict.word in page
    table = nodes_table(told.as_dict())
    assert table.columns[3] == "yesterday" and table.rows[-1][0] == "e"
    assert "Over all validation rows: MAE" in page and "R2" in table.columns
    shown = [float(row[2]) for row in table.rows[:-1]]
    assert shown == sorted(shown, reverse=True)
    # The same run without errors of its nodes has no such section.
    assert "Every node" not in write_report(run, tmp_path / "other").read_text()


def test_the_map_draws_nodes_where_they_are(trained):
    problem, run, _, others = trained
    places = np.array([[60.0 + i, 20 + 2.0 * i] for i in range(5)])
    told = tacita.validate(problem, run, others, intercept=True, positions=places)
    axes = nodes_map(told.as_dict()).axes[0]
    drawn = np.concatenate([c.get_offsets() for c in axes.collections[1:]])
    np.testing.assert_allclose(np.sort(drawn, axis=0), places[:, ::-1])
    assert axes.get_xlabel() == "longitude"
    by_edges = tacita.validate(problem, run, others, intercept=True).as_dict()
    assert by_edges["layout"] == "graph" and len(by_edges["edges"]) == 5
    nodes_map(by_edges)
    lonely = synthetic.linear(agents=2, features=2, samples=3)
    rows = (np.ones((2, 2)), [0.0, 1.0], [0, 1])
    assert "layout" not in tacita.validate(lonely, lonely.start, rows).as_dict()

"""Model-agnostic FedRelax against closed forms and the book's exercise 5.3."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import tacita
from tacita.problem import graph
from tacita.theory import gtv
from tacita.variants import estimator_network
from tacita.variants.model_agnostic import (
    Heard,
    augmentation,
    fit_weighted,
    systematic_draw,
    weight_argument,
)

NODES, FEATURES = 6, 2


@pytest.fixture(scope="module")
def rows():
    """Six nodes with five rows each, on a ring."""
    rng = np.random.default_rng(3)
    truth = np.array([1.0, -2.0]) + 0.3 * rng.normal(size=(NODES, FEATURES))
    agent = np.repeat(np.arange(NODES), 5)
    x = rng.normal(size=(len(agent), FEATURES))
    y = np.sum(x * truth[agent], axis=1) + 0.1 * rng.normal(size=len(agent))
    return x, y, agent


def network_of(rows, estimators, shared=None):
    points = np.random.default_rng(0).normal(size=(20, FEATURES))
    points = points if shared is None else shared
    return estimator_network(*rows, estimators, graph.ring(NODES), points)


def test_linear_models_reach_the_closed_form_of_gtvmin(rows):
    # On points with X'X / m' = I, equal predictions are equal parameters: (65) is
    # ||w_i - w_j||^2 and the fixed point is the solution (58) of GTVMin.
    shared = np.sqrt(FEATURES) * np.eye(FEATURES)
    network = network_of(rows, LinearRegression(fit_intercept=False), shared)
    algorithm = tacita.ModelAgnosticFedRelax(alpha=0.7)
    run = tacita.simulate_estimators(network, algorithm, 400, tolerance=1e-12)
    problem = tacita.from_arrays(*rows, model="linear", graph=graph.ring(NODES))
    found = np.stack([model.coef_ for model in run.estimators])
    exact = gtv.linear_optimum(problem, 0.7)
    np.testing.assert_allclose(found, exact, atol=1e-9)
    total = sum(np.sum((exact[i] - exact[i - 1]) ** 2) for i in range(NODES))
    assert run.metrics["discrepancy"][-1] == pytest.approx(total, rel=1e-9)
    assert run.communication["letters"] == run.rounds * 2 * NODES


LATE = {"asynchronous": tacita.Asynchronous(most_delay=2), "participation": 0.5}


def test_late_letters_and_silent_nodes_change_the_way_but_not_the_end(rows):
    # (129) with the operators of Algorithm 12, which contract as those of FedRelax do.
    shared = np.sqrt(FEATURES) * np.eye(FEATURES)
    network = network_of(rows, LinearRegression(fit_intercept=False), shared)
    algorithm = tacita.ModelAgnosticFedRelax(alpha=0.3)
    run = tacita.simulate_estimators(network, algorithm, 90, seed=1, **LATE)
    problem = tacita.from_arrays(*rows, model="linear", graph=graph.ring(NODES))
    found = np.stack([model.coef_ for model in run.estimators])
    np.testing.assert_allclose(found, gtv.linear_optimum(problem, 0.3), atol=1e-7)
    assert 90 * NODES < run.communication["letters"] < 2 * 90 * NODES


@pytest.mark.parametrize("told", [{"most_delay": 0}, {"law": "geometric"}])
def test_without_delays_events_are_rounds(rows, told):
    network = network_of(rows, Ridge())
    algorithm = tacita.ModelAgnosticFedRelax(alpha=1.0)
    never = tacita.Asynchronous(mean_delay=0.0, **told)
    late = tacita.simulate_estimators(network, algorithm, 4, asynchronous=never)
    in_step = tacita.simulate_estimators(network, algorithm, 4)
    assert late.communication == in_step.communication
    for name, values in in_step.metrics.items():
        np.testing.assert_allclose(late.metrics[name], values, rtol=1e-10)


def test_columns_of_further_tables_are_found_by_their_names(rows):
    x, y, agent = rows
    table, shared = pd.DataFrame(x, columns=["p", "q"]), np.eye(FEATURES)
    named = pd.DataFrame(shared, columns=["p", "q"])[["q", "p"]]
    turned = table[["q", "p"]]
    by_edge = {(i, (i + 1) % NODES): named for i in range(NODES)}
    algorithm = tacita.ModelAgnosticFedRelax(alpha=0.5)
    wanted = tacita.simulate_estimators(network_of(rows, Ridge(), shared), algorithm, 2)
    for points in (named, shared, by_edge):
        network = network_of((table, y, agent), Ridge(), points)
        run = tacita.simulate_estimators(network, algorithm, 2)
        told = run.predict(turned, agent)
        np.testing.assert_allclose(told, wanted.predict(x, agent), rtol=1e-12)
        assert np.array_equal(run.predict(table, agent), told)
        assert np.array_equal(run.errors(turned, y, agent), run.errors(x, y, agent))


def test_silent_nodes_keep_their_models(rows):
    network = network_of(rows, Ridge())
    algorithm = tacita.ModelAgnosticFedRelax(alpha=1.0)
    runs = [
        tacita.simulate_estimators(network, algorithm, k, participation=2)
        for k in (3, 4)
    ]
    kept = [
        np.array_equal(one.coef_, other.coef_)
        for one, other in zip(*(run.estimators for run in runs), strict=True)
    ]
    # Who heard nothing new fits the same model again.
    assert NODES - 2 <= sum(kept) < NODES
    assert runs[1].communication["letters"] == 2 * (NODES + 3 * 2)


@pytest.mark.long
def test_damping_changes_the_way_but_not_the_end(rows):
    shared = np.sqrt(FEATURES) * np.eye(FEATURES)
    network = network_of(rows, LinearRegression(fit_intercept=False), shared)
    ends = [
        tacita.simulate_estimators(
            network, tacita.ModelAgnosticFedRelax(alpha=0.7, damping=d), 150
        )
        for d in (0.0, 0.5)
    ]
    assert ends[0].metrics["change"][1] > 1.5 * ends[1].metrics["change"][1]
    for one, other in zip(*(run.estimators for run in ends), strict=True):
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [Ridge(alpha=0.3), DecisionTreeRegressor(max_depth=3, random_state=0)],
    ids=["ridge", "tree"],
)
def test_one_row_per_point_is_the_augmentation_of_exercise_5_3(estimator):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(7, 2)), rng.normal(size=7)
    shared, letters = rng.normal(size=(11, 2)), rng.normal(size=(3, 11))
    weights = np.array([0.5, 1.0, 2.5])  # A_ij of three neighbours
    alpha = 0.8
    # As the exercise says it: one row per neighbour j and point, weight alpha A_ij/m'.
    plain = fit_weighted(
        estimator,
        np.concatenate([x, shared, shared, shared]),
        np.concatenate([y, *letters]),
        7 * np.concatenate([np.full(7, 1 / 7), np.repeat(alpha * weights / 11, 11)]),
        rng,
    )
    node = tacita.variants.estimator_nodes.EstimatorNode(x, y, estimator)
    merged = tacita.ModelAgnosticFedRelax(alpha=alpha).local(
        rng,
        node,
        Heard(
            shared, weights @ letters / weights.sum(), np.full(11, weights.sum() / 11)
        ),
    )
    grid = rng.normal(size=(50, 2))
    np.testing.assert_allclose(merged.predict(grid), plain.predict(grid), atol=1e-10)


def test_round_one_and_alpha_zero_are_training_alone(rows):
    x, y, agent = rows
    models = [DecisionTreeRegressor(max_depth=2, random_state=0), Ridge(0.1)] * 3
    alone = [
        model.fit(x[agent == i], y[agent == i]).predict(x)
        for i, model in enumerate(
            [DecisionTreeRegressor(max_depth=2, random_state=0), Ridge(0.1)] * 3
        )
    ]
    for alpha, rounds in ((0.0, 3), (5.0, 1)):
        algorithm = tacita.ModelAgnosticFedRelax(alpha=alpha)
        run = tacita.simulate_estimators(network_of(rows, models), algorithm, rounds)
        for fitted, expected in zip(run.estimators, alone, strict=True):
            np.testing.assert_array_equal(fitted.predict(x), expected)


def test_different_kinds_come_to_agree_as_alpha_grows(rows):
    models = {
        0: Ridge(0.1),
        1: DecisionTreeRegressor(random_state=0),
        2: KNeighborsRegressor(2),
        3: RandomForestRegressor(5, random_state=0),
        4: make_pipeline(StandardScaler(), Ridge(0.1)),
        5: Ridge(0.1),
    }
    gaps = [
        tacita.simulate_estimators(
            network_of(rows, models),
            tacita.ModelAgnosticFedRelax(alpha=a),
            8,
            validation=rows,
        ).metrics["discrepancy"][-1]
        for a in (0.0, 0.3, 30.0)
    ]
    # Not to zero: two neighbours' values and five trees cannot draw a line.
    assert gaps[0] > 2 * gaps[1] and gaps[1] > gaps[2]


@pytest.mark.long
def test_the_result_does_not_depend_on_the_number_of_processes(rows):
    forest = make_pipeline(StandardScaler(), RandomForestRegressor(3))
    network = network_of(rows, [KNeighborsRegressor(2), Ridge(), forest] * 2)
    algorithm = tacita.ModelAgnosticFedRelax(alpha=1.0)
    one, two = (
        tacita.simulate_estimators(network, algorithm, 3, n_jobs=jobs, seed=4)
        for jobs in (1, 2)
    )
    for name in ("train_error", "discrepancy", "change"):
        np.testing.assert_array_equal(one.metrics[name], two.metrics[name])


def test_rows_are_drawn_in_proportion_to_their_weight():
    rng = np.random.default_rng(0)
    weight = rng.exponential(size=40)
    counts = np.bincount(systematic_draw(weight, 40, rng), minlength=40)
    assert np.abs(counts - 40 * weight / weight.sum()).max() < 1
    mean = np.mean(
        [np.bincount(systematic_draw(weight, 40, rng), minlength=40)
         for _ in range(4000)],
        axis=0,
    )  # fmt: skip
    np.testing.assert_allclose(mean, 40 * weight / weight.sum(), atol=0.04)


def test_weights_find_their_way_into_pipelines():
    pipeline = make_pipeline(StandardScaler(), Ridge())
    assert weight_argument(pipeline) == "ridge__sample_weight"
    assert weight_argument(make_pipeline(KNeighborsRegressor())) is None


def test_soft_labels_carry_the_neighbours_probabilities():
    shared = np.array([[0.0], [1.0]])
    x, y, weight = augmentation(shared, np.array([[0.25, 0.75], [1.0, 0.0]]), 2.0)
    assert x.ravel().tolist() == [0.0, 0.0, 1.0] and y.tolist() == [0, 1, 0]
    assert weight.tolist() == [0.5, 1.5, 2.0]


def test_a_classifier_learns_a_class_that_it_has_no_rows_of():
    rng = np.random.default_rng(0)
    agent = np.repeat(np.arange(4), 30)
    x = rng.normal(size=(120, 2))
    label = np.where(x[:, 0] > 0, "right", "left")
    kept = (agent != 2) | (label == "left")  # node 2 never saw "right"
    models = [LogisticRegression(), KNeighborsClassifier(3)] * 2
    network = estimator_network(
        x[kept], label[kept], agent[kept], models, graph.ring(4), x[:40]
    )
    run = tacita.simulate_estimators(
        network,
        tacita.ModelAgnosticFedRelax(alpha=1.0),
        6,
        validation=(x, label, agent),
    )
    errors = run.errors(x, label, agent)
    alone = tacita.simulate_estimators(
        network, tacita.ModelAgnosticFedRelax(alpha=0.0), 1
    ).errors(x, label, agent)
    share = np.mean(label[agent == 2] == "right")
    assert alone[2] == pytest.approx(share) and errors[2] < 0.15
    assert run.metrics["validation_error"][-1] == pytest.approx(errors.mean())
    order = rng.permutation(120)
    said = run.predict(x[order], agent[order])
    assert set(said) == {"left", "right"}
    found = [np.mean((said != label[order])[agent[order] == i]) for i in range(4)]
    np.testing.assert_allclose(found, errors)
    with pytest.raises(tacita.TacitaError, match="unknown node 9"):
        run.predict(x[:1], [9])


def test_a_draw_that_misses_a_class_is_fitted():
    x, y, weight = np.arange(6.0)[:, None], np.arange(6) % 2, np.ones(6)
    weight[y == 1] = 1e-9
    # It takes no weights, and refuses rows of one class.
    rare = fit_weighted(
        LinearDiscriminantAnalysis(), x, y, weight, np.random.default_rng(0)
    )
    assert rare.predict(x).tolist() == [0] * 6


def test_bad_input_is_refused_in_one_line(rows):
    x, y, agent = rows
    ring = graph.ring(NODES)
    cases = [
        (([Ridge()] * 2, ring, x), "expected 6 estimators"),
        (({0: Ridge()}, ring, x), "node 1 has no estimator"),
        (([Ridge()] * 5 + [LogisticRegression()], ring, x), "all regressors or all"),
        ((StandardScaler(), ring, x), "neither a regressor nor a classifier"),
        ((3, ring, x), r"node 0, int, is neither .* pass an object such as Ridge"),
        (("Ridge", ring, x), "node 0, str, is neither"),
        ((Ridge, ring, x), "node 0, the class Ridge, is neither"),
        (([Ridge()] * 4 + [object(), Ridge()], ring, x), "node 4, object, is neither"),
        ((Ridge(), ring, x[:, :1]), "expected shared of shape"),
        ((Ridge(), ring, x[:0]), "at least one point"),
        ((Ridge(), graph.ring(5), x), "lacks the agents"),
    ]
    for rest, words in cases:
        with pytest.raises(tacita.TacitaError, match=words) as error:
            estimator_network(x, y, agent, *rest)
        assert "\n" not in str(error.value)
    for wrong in ({"alpha": -1.0}, {"alpha": 1.0, "damping": 1.0}):
        with pytest.raises(tacita.TacitaError, match="expected"):
            tacita.ModelAgnosticFedRelax(**wrong)
    network = network_of(rows, KNeighborsRegressor(50))
    with pytest.raises(
        tacita.TacitaError, match="coupled by tacita.ModelAgnosticFedRel"
    ):
        tacita.simulate_estimators(network, tacita.FedRelax(alpha=1.0), 2)
    with pytest.raises(tacita.TacitaError, match="node 0 in round 1: Expected n_neigh"):
        tacita.simulate_estimators(network, tacita.ModelAgnosticFedRelax(alpha=1.0), 2)
    ready = (network_of(rows, Ridge()), tacita.ModelAgnosticFedRelax(alpha=1.0), 2)
    with pytest.raises(tacita.TacitaError, match="leave tolerance out"):
        tacita.simulate_estimators(*ready, tolerance=1e-3, participation=2)
    with pytest.raises(tacita.TacitaError, match="tacita.Asynchronous"):
        tacita.simulate_estimators(*ready, asynchronous=tacita.Pace())
    with pytest.raises(tacita.TacitaError, match="unknown node"):
        network.rows(x, y, agent + 1)
    with pytest.raises(tacita.TacitaError, match="validation has no rows"):
        tacita.simulate_estimators(*ready, validation=(x[:0], y[:0], agent[:0]))
    words = np.where(y > 0, "high", None)
    with pytest.raises(tacita.TacitaError, match="y has no value in"):
        estimator_network(x, words, agent, LogisticRegression(), ring, x)


def resumable(rows, folder, rounds, resume=True, **changes: Any):
    models = [KNeighborsRegressor(2), Ridge()] * (NODES // 2)
    settings: dict[str, Any] = {"validation": rows, "seed": 4} | changes
    alpha = settings.pop("alpha", 0.5)
    return tacita.simulate_estimators(
        network_of(rows, models),
        tacita.ModelAgnosticFedRelax(alpha=alpha, damping=0.2),
        rounds,
        checkpoint=folder,
        resume=resume,
        **settings,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"validation": None},
        {"asynchronous": tacita.Asynchronous(law="geometric"), "participation": 2},
    ],
    ids=["validated", "not", "late"],
)
def test_resumed_runs_are_those_never_interrupted(rows, tmp_path, changes):
    whole = resumable(rows, tmp_path / "whole", 7, resume=False, **changes)
    resumable(rows, tmp_path / "cut", 5, **changes)
    for _ in range(2):  # the second time only the last round is left
        run = resumable(rows, tmp_path / "cut", 7, **changes)
        assert run.metrics.keys() == whole.metrics.keys()
        for name, values in whole.metrics.items():
            np.testing.assert_array_equal(run.metrics[name], values)
        assert run.communication == whole.communication
        np.testing.assert_array_equal(run.errors(*rows), whole.errors(*rows))


def test_a_checkpoint_of_another_run_is_refused(rows, tmp_path):
    resumable(rows, tmp_path, 3)
    with pytest.raises(ValueError, match="belongs to another run"):
        resumable(rows, tmp_path, 5, alpha=0.6)
    with pytest.raises(ValueError, match="belongs to another run"):
        resumable(rows, tmp_path, 5, seed=5)
    with pytest.raises(ValueError, match="belongs to another run"):
        resumable(rows, tmp_path, 5, **LATE)
    with pytest.raises(ValueError, match="ask for more than 2 rounds"):
        resumable(rows, tmp_path, 2)
    with pytest.raises(ValueError, match="add checkpoint=folder"):
        resumable(rows, None, 2)

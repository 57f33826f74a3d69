"""Private features: vectors, what linear readers find, funnels, sums over agents."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import tacita
from tacita.data import load
from tacita.federation.in_process import InProcess
from tacita.privacy import features, gaussian_sigma
from tacita.problem import Moments
from tacita.trees import double_precision

KNOWN = json.loads((Path(__file__).parent / "feature_vectors.json").read_text())
X, S, Y = (np.array(KNOWN[name]) for name in "xsy")


@pytest.mark.parametrize(
    ("least_change", "matrix", "change", "kept"),
    [
        (False, "projection_184", "change_184", "keeps_of_y_184"),
        (True, "least_change", "change_least", "keeps_of_y_least_change"),
    ],
)
def test_projections_are_the_vectors(least_change, matrix, change, kept):
    made = features.private_projection(
        X, S, least_change=least_change, standardise=False
    )
    np.testing.assert_allclose(made.matrix, KNOWN[matrix], atol=1e-9)
    z = made(X)
    moved = np.mean(np.sum((z - X + X.mean(axis=0)) ** 2, axis=1))
    assert moved == pytest.approx(KNOWN[change], rel=1e-9)
    assert features.linear_leak(X, S) == pytest.approx(KNOWN["leak_before"], rel=1e-9)
    assert features.linear_leak(z, S) < 1e-20
    assert features.linear_leak(z, Y) == pytest.approx(KNOWN[kept], rel=1e-9)


@pytest.fixture(scope="module")
def mixed() -> tuple[np.ndarray, np.ndarray]:
    """Correlated features in all units, and two attributes that they tell."""
    random = np.random.default_rng(0)
    x = random.standard_normal((400, 5)) @ random.standard_normal((5, 5))
    x = x * [1.0, 100.0, 0.01, 1.0, 7.0] + [0.0, 1000.0, 3.0, -5.0, 1.0]
    told = np.column_stack([x[:, 0] + x[:, 3], x[:, 1] / 100])
    return x, told + random.standard_normal(told.shape)


@pytest.mark.parametrize("least_change", [False, True])
def test_several_attributes_are_hidden_together(mixed, least_change):
    x, s = mixed
    one = features.private_projection(x, s[:, 0], least_change=least_change)(x)
    both = features.private_projection(x, s, least_change=least_change)(x)
    assert np.all(features.linear_leak(x, s) > 0.3)
    assert features.linear_leak(one, s)[0] < 1e-20
    assert features.linear_leak(one, s)[1] > 0.05
    assert np.all(features.linear_leak(both, s) < 1e-20)
    assert np.linalg.matrix_rank(both, tol=1e-6) == 3


def test_units_do_not_matter(mixed):
    x, s = mixed
    z = features.private_projection(x, s)(x)
    again = x * [3.0, 1e-4, 5.0, 1.0, 2.0] - 4.0
    np.testing.assert_allclose(features.private_projection(again, s)(again), z)


def test_the_least_change_is_the_least(mixed):
    """Any other map that hides s moves the standardised features further."""
    x, s = mixed
    best = features.private_projection(x, s[:, 0], least_change=True)
    plain = (x - best.centre) / best.scale
    c = plain.T @ (s[:, 0] - s[:, 0].mean())

    def moved(matrix: np.ndarray) -> float:
        return float(np.sum((plain @ matrix.T - plain) ** 2))

    random = np.random.default_rng(1)
    for _ in range(50):
        other = best.matrix + 0.1 * random.standard_normal((5, 5))
        other -= np.outer(other @ c, c) / (c @ c)
        np.testing.assert_allclose(other @ c, 0, atol=1e-8)
        assert moved(other) >= moved(best.matrix)


def test_a_feature_that_never_changes_stays(mixed):
    x, s = mixed
    with_ones = np.column_stack([x, np.ones(len(x))])
    for least_change in (False, True):
        made = features.private_projection(with_ones, s, least_change=least_change)
        z = made(with_ones)
        assert np.all(z[:, -1] == 0)
        assert np.all(features.linear_leak(z, s) < 1e-20)


@pytest.mark.parametrize("least_change", [False, True])
def test_an_attribute_may_be_a_feature_itself(mixed, least_change):
    x, _ = mixed
    z = features.private_projection(x, x[:, 1], least_change=least_change)(x)
    assert features.linear_leak(z, x[:, 1]) < 1e-20


@pytest.mark.data
def test_the_hour_of_exercise_9_5():
    if not os.environ.get("TACITA_DATA"):
        pytest.skip("TACITA_DATA names no folder with the data sets")
    weather = load("fmi", table="kustavi", features="hour")
    x, hour = np.column_stack([weather.y, weather.x[:, :-1]]), weather.x[:, -1]
    turn = 2 * np.pi * hour / 24
    circle = np.column_stack([np.sin(turn), np.cos(turn)])
    z = features.private_projection(x, hour)(x)
    found = [
        *(features.linear_leak(x, hour), features.linear_leak(z, hour)),
        *(features.linear_leak(z, weather.y), *features.linear_leak(z, circle)),
    ]
    np.testing.assert_allclose(found, [0.202, 0, 0.599, 0.009, 0.092], atol=5e-4)


@pytest.mark.parametrize("exact", [True, False])
def test_the_funnel_is_the_vector(exact):
    known = KNOWN["funnel"]
    found = features.funnel(known["p_xs"], known["p_xy"], known["rate"], exact=exact)
    leak, groups = ("least_leak", "map") if exact else ("greedy_leak", "greedy_map")
    assert found.leak == pytest.approx(known[leak], rel=1e-9)
    assert list(found.groups) == known[groups]
    assert found.kept >= known["rate"]
    whole = features.funnel(
        known["p_xs"], known["p_xy"], known["information_y"] - 1e-12
    )
    assert whole.kept == pytest.approx(known["information_y"], rel=1e-9)


def test_the_curve_of_the_funnel_rises_and_greedy_is_no_better():
    random = np.random.default_rng(3)
    x = random.dirichlet(np.ones(6))
    s = x[:, None] * random.dirichlet(np.ones(2), 6)
    y = x[:, None] * random.dirichlet(np.ones(3), 6)
    most = features.funnel(s, y, 0.0, exact=False)
    assert most.leak < 1e-15 and set(most.groups) == {0}
    leaks = []
    for rate in (0.0, 0.02, 0.04, 0.06):
        exact = features.funnel(s, y, rate)
        greedy = features.funnel(s, y, rate, exact=False)
        assert exact.leak <= greedy.leak + 1e-15
        assert min(exact.kept, greedy.kept) >= rate - 1e-12
        leaks.append(exact.leak)
    assert leaks == sorted(leaks) and leaks[-1] > 0


@pytest.mark.parametrize("rate", ["0.05", "0.12", "0.18"])
def test_the_gaussian_funnel_is_the_vector(rate):
    known = KNOWN["gaussian_funnel"]
    given = known["covariance"], known["c_s"], known["c_y"], float(rate)
    found = features.gaussian_funnel(*given)
    assert found.leak == pytest.approx(known["leak_by_rate"][rate], rel=1e-9)
    assert found.kept >= float(rate) - 1e-12
    direction, c = found.direction, np.array(known["covariance"])
    assert direction @ c @ direction == pytest.approx(1.0)
    corr = direction @ np.array(known["c_s"])
    assert -np.log1p(-(corr**2)) / 2 == pytest.approx(found.leak, abs=1e-12)
    scaled = features.gaussian_funnel(
        c, 2 * np.array(known["c_s"]), 3 * np.array(known["c_y"]), float(rate),
        var_s=4.0, var_y=9.0,
    )  # fmt: skip
    assert scaled.leak == pytest.approx(found.leak, abs=1e-12)


def test_no_direction_beats_the_gaussian_funnel():
    """Also in one dimension, and where s and y are told by the same direction."""
    random = np.random.default_rng(5)
    along = np.array([0.5, 0.3])
    for a, b in (
        (random.uniform(-0.5, 0.5, 3), random.uniform(-0.5, 0.5, 3)),
        (along, 0.8 * along),
        (along, np.array([0.5, 0.0])),
        (np.array([0.5]), np.array([0.4])),
        (0 * along, along),
    ):
        rate = 0.6 * -np.log1p(-(b @ b)) / 2
        found = features.gaussian_funnel(np.eye(len(a)), a, b, rate)
        z = random.standard_normal((20_000, len(a)))
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        allowed = -np.log1p(-((z @ b) ** 2)) / 2 >= rate
        leaks = -np.log1p(-((z[allowed] @ a) ** 2)) / 2
        assert found.kept >= rate - 1e-12
        assert found.leak <= leaks.min() + 1e-12
        assert found.leak == pytest.approx(leaks.min(), abs=2e-3)


@pytest.mark.parametrize("strength", [0, 1])
def test_the_private_direction_is_the_vector(strength):
    known = KNOWN["private_direction"]
    given = known["mean_gap"], known["covariance"], known["F"]
    found = features.private_direction(*given, strength)
    np.testing.assert_allclose(found, known[f"strength{strength}"], atol=1e-9)


def test_bad_input_is_refused_in_one_line():
    half = np.full((2, 1), 0.5)
    for call, words in (
        (lambda: features.private_projection(X, np.ones(12)), "the same in all rows"),
        (lambda: features.private_projection(X, S[:5]), "expected s"),
        (lambda: features.private_projection(X[0], S), "rows and columns"),
        (lambda: features.private_projection(X, ["a"] * 12), "of numbers"),
        (lambda: features.funnel(half, half, None), "rate"),
        (
            lambda: features.projection_of_moments([0.0, 0.0], np.eye(2), [5]),
            "numbers below 2",
        ),
        (lambda: features.funnel(half, half, 0.3), "rate <= I"),
        (lambda: features.funnel(half, half[::-1] * 3, 0.0), "sum to 1"),
        (lambda: features.gaussian_funnel(np.eye(1), [0.5], [0.5], 1.0), "rate <= I"),
        (lambda: features.gaussian_funnel(np.eye(1), [0.5], [1.5], 0.1), "c_y"),
        (
            lambda: features.projection_of_moments([0.0, 0.0], -np.eye(2)),
            "noise is larger",
        ),
        (
            lambda: features.projection_of_moments([0.0], np.eye(1), [0]),
            "some features",
        ),
    ):
        with pytest.raises(tacita.TacitaError, match=words):
            call()


@pytest.fixture(scope="module")
def agents() -> tuple[tacita.Problem, np.ndarray, np.ndarray]:
    """Five unequal agents whose features tell an attribute."""
    random = np.random.default_rng(0)
    x = random.standard_normal((1500, 3))
    s = x @ [1.0, 0.5, 0.0] + 0.5 * random.standard_normal(1500)
    who = random.choice(5, 1500, p=[0.3, 0.3, 0.2, 0.1, 0.1])
    return tacita.from_arrays(x, s, who, model="moments"), x, s


SUMS = tacita.FedAvg(step_size=1.0, weights="samples")


def test_one_round_sums_the_covariance(agents, tmp_path):
    """Simulated and between parties: the projection of all rows together."""
    problem, x, s = agents
    run = tacita.simulate(problem, SUMS, rounds=1, record=())
    found = problem.model.read(run.params)
    both = np.column_stack([x, s])
    np.testing.assert_allclose(found.mean, both.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.covariance, np.cov(both.T, bias=True), atol=1e-12)
    shared, _ = InProcess(tmp_path, problem, SUMS, 1, 0).run()
    np.testing.assert_allclose(shared, run.params, rtol=0, atol=1e-12)
    made = features.projection_of_moments(*found)
    direct = features.private_projection(x, s)
    np.testing.assert_allclose(made.matrix, direct.matrix, atol=1e-10)
    assert features.linear_leak(made(x), s) < 1e-20


@pytest.mark.parametrize(
    ("rule", "noises"), [(None, 5), pytest.param("secure", 1, marks=pytest.mark.long)]
)
def test_sums_with_noise_hide_nearly_as_much(agents, rule, noises):
    """Against the coordinator every agent adds the noise that a secure sum shares."""
    problem, x, s = agents
    norm = problem.model.longest(4.0)
    safe = tacita.private(
        problem,
        SUMS,
        epsilon=1.0,
        delta=1e-6,
        observer="coordinator",
        rounds=1,
        norm=norm,
        aggregation=rule,
    )
    run = tacita.simulate(problem, safe, rounds=1, record=(), seed=1)
    # Of a sum another agent knows more than the coordinator: its own noise.
    most = "coordinator" if rule is None else "neighbour"
    assert 0.99 < run.privacy.row(most).epsilon <= 1.0
    exact = problem.model.grad(np.zeros(problem.dim), x, s, np.full(1500, 1 / 1500))
    sigma = gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=2 * norm / 1500)
    wrong = np.linalg.norm(run.params + exact) / sigma
    assert 0.7 < wrong / np.sqrt(noises * problem.dim) < 1.4
    made = features.projection_of_moments(*problem.model.read(run.params))
    assert features.linear_leak(made(x), s) < 0.1 < features.linear_leak(x, s)


@pytest.mark.long
def test_the_page_on_private_features_runs():
    page = Path(__file__).parents[2] / "docs" / "explanation-private-features.md"
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S):
        exec(block, names)
    assert names["before"] > 0.8 and names["after"] < 1e-20
    assert names["told"].epsilon <= 1.0
    left = features.linear_leak(names["project"](names["x"]), names["s"])
    assert left < 0.2


def test_moments_know_their_optimum_their_length_and_their_reader(agents):
    problem, x, s = agents
    counts = problem.counts[:, None]
    stacked, labels, _ = problem.stacked()
    means = np.concatenate([stacked.sum(axis=1), labels.sum(axis=1)[:, None]], axis=1)
    found = problem.solve()
    np.testing.assert_allclose(found[:4], np.mean(means / counts, axis=0), atol=1e-12)
    model, z = Moments(2), np.array([[3.0, 0.0]])
    long = np.linalg.norm(model.grad(model.start(), z, np.array([4.0]), np.ones(1)))
    assert long == pytest.approx(model.longest(5.0), rel=1e-6)
    with double_precision():
        read = np.asarray(problem.model.predict(found, x))
    # These moments weigh agents alike, not rows.
    share = 1 - np.var(s - read) / np.var(s)
    assert share == pytest.approx(features.linear_leak(x, s), abs=1e-2)

"""DP-Norm's sensitivities against vectors and trajectories on neighbouring data."""

import math

import numpy as np
import pytest

from papers.dp_norm.common.as_printed import (
    dp_norm_sigma,
    gamma_of,
    lemma_1_sensitivity,
    step_shrinkage,
    theorem_1_factor,
    theorem_1_h,
    tight_factor,
)
from tacita.check import TacitaError
from tacita.privacy import gaussian_epsilon
from tacita.privacy.letters.trajectory import trajectory_sensitivity

GRAPH = {"step_size": 0.03, "local_steps": 10, "degree": 2, "alpha": 0.2}
DATA = {"batch": 2000, "samples": 4000, "gradient_bound": 1.0}
PAPER = {**GRAPH, **DATA, "smoothness": 0.5}


def test_lemma_1_vectors(vectors):
    for row in vectors["dpnorm_delta2"]:
        graph = {
            "step_size": row["mu"],
            "local_steps": row["K"],
            "degree": row["E"],
            "alpha": row["alpha"],
        }
        assert gamma_of(**graph) == pytest.approx(row["gamma"], rel=1e-9)
        setting = {
            **graph,
            "batch": row["B"],
            "samples": row["d"],
            "gradient_bound": row["G"],
            "smoothness": row["L"],
        }
        got = lemma_1_sensitivity(**setting)
        assert got == pytest.approx(row["Delta2"], rel=1e-9)
        # The longest step allowed: a smoother loss than this is refused.
        limit = row["L"] * row["mu_max"] / row["mu"]
        lemma_1_sensitivity(**setting | {"smoothness": limit * (1 - 1e-9)})
        with pytest.raises(TacitaError, match="Lemma 1"):
            lemma_1_sensitivity(**setting | {"smoothness": limit * (1 + 1e-9)})


def test_theorem_1_vectors(vectors):
    for row in vectors["dpnorm_J"]:
        budget = (row["eps"], row["delta"])
        assert theorem_1_h(*budget) == pytest.approx(row["h"], rel=1e-9)
        paper = theorem_1_factor(*budget, row["R"])
        assert paper == pytest.approx(row["J_theorem1"], rel=1e-9)
        tight = tight_factor(*budget, row["R"])
        assert tight == pytest.approx(row["J_tight"], rel=1e-9)


# R, eps, delta -> J of (8), the epsilon that it really gives, tight J
TABLE = (
    (2000, 0.5, 1e-3, 312.561122, 0.304217, 206.171190),
    (100, 3.0, 1e-5, 17.453104, 2.321462, 13.905935),
    (100, 10.0, 1e-5, 6.029422, 7.956530, 4.998886),
)


@pytest.mark.parametrize("row", TABLE)
def test_theorem_1_is_sound_and_loose(row):
    rounds, epsilon, delta, paper, truth, tight = row
    got = theorem_1_factor(epsilon, delta, rounds)
    assert got == pytest.approx(paper, rel=1e-6)
    real = gaussian_epsilon(got / math.sqrt(rounds), delta)
    assert real == pytest.approx(truth, rel=1e-5)
    assert real < epsilon
    assert tight_factor(epsilon, delta, rounds) == pytest.approx(tight, rel=1e-6)


def test_theorem_1_is_sound_on_a_grid():
    for epsilon in np.geomspace(0.02, 20, 12):
        for delta in (1e-8, 1e-5, 1e-3, 1e-2):
            assert theorem_1_factor(epsilon, delta, 50) >= tight_factor(
                epsilon, delta, 50
            )


def test_noise_of_the_paper():
    change = lemma_1_sensitivity(**PAPER)
    for epsilon, paper, tight in ((1.0, 0.171051, 0.117445), (0.5, 0.318812, 0.210295)):
        got = dp_norm_sigma(epsilon, 1e-3, 2000, change, "paper")
        assert got == pytest.approx(paper, rel=1e-5)
        analytic = dp_norm_sigma(epsilon, 1e-3, 2000, change)
        assert analytic == pytest.approx(tight, rel=1e-5)
        real = gaussian_epsilon(analytic / (change * math.sqrt(2000)), 1e-3)
        assert real == pytest.approx(epsilon, rel=1e-9)


def shrink(**changes):
    return step_shrinkage(**{**GRAPH, **changes})


def test_shrinkage_of_regular_and_irregular_graphs():
    gamma = gamma_of(**GRAPH)
    assert shrink() == pytest.approx(gamma / (gamma + 1 / 10))
    assert shrink() == pytest.approx(40 / 43)
    assert shrink(neighbour_degrees=[2, 2]) == shrink()
    # A neighbour of higher degree pulls less, so more of a difference remains.
    assert shrink(neighbour_degrees=[2, 5]) > shrink()
    with pytest.raises(TacitaError, match="neighbour_degrees"):
        shrink(neighbour_degrees=[2])


def gaps(hits, shrinkage, kick):
    """D after every step: the recursion D <- r (D + kick n_k), step by step."""
    gap, seen = 0.0, []
    for hit in hits:
        gap = shrinkage * (gap + kick * hit)
        seen.append(gap)
    return np.array(seen)


@pytest.mark.parametrize(
    ("steps", "samples"), ((10, 4), (10, 20), (10, 8), (3, 20), (7, 2), (5, 10))
)
def test_trajectory_bound_is_reached_and_never_passed(steps, samples):
    """Every schedule of fresh permutations, brute force; batches of 2 records."""
    batch, step_size, bound = 2, 0.1, 1.5
    period = samples // batch
    kick = 2 * step_size * bound / batch
    r = 0.8
    setting = {
        "shrinkage": r,
        "step_size": step_size,
        "local_steps": steps,
        "batch": batch,
        "samples": samples,
        "gradient_bound": bound,
    }
    at_end = trajectory_sensitivity(**setting)
    anywhere = trajectory_sensitivity(**setting, any_step=True)
    epochs = math.ceil(steps / period)
    choices = np.stack(
        np.meshgrid(*[range(period)] * epochs, indexing="ij"), axis=-1
    ).reshape(-1, epochs)
    rounds = 60
    ends, peaks = [], []
    draw = np.random.default_rng(0)
    for positions in choices[draw.permutation(len(choices))[:400]]:
        hits = np.zeros(epochs * period)
        hits[np.arange(epochs) * period + positions] = 1
        once = hits[:steps]
        path = gaps(np.tile(once, rounds), r, kick)
        ends.append(path[steps - 1 :: steps].max())
        peaks.append(path.max())
    late = np.zeros(epochs * period)
    late[period - 1 :: period] = 1
    if steps % period:
        late[steps - 1] = 1
    path = gaps(np.tile(late[:steps], rounds), r, kick)
    assert path[-1] == pytest.approx(at_end, rel=1e-5)
    assert max(ends) <= at_end * (1 + 1e-12)
    assert max(peaks) <= anywhere * (1 + 1e-12)
    assert anywhere >= at_end
    if steps % period == 0:
        assert at_end == pytest.approx(kick * r / (1 - r**period), rel=1e-12)


def test_trajectory_bound_covers_logistic_nodes():
    """Two runs on neighbouring data, given the same received letters."""
    draw = np.random.default_rng(1)
    samples, batch, steps, rounds, mu = 12, 3, 8, 25, 0.5
    graph = {"step_size": mu, "local_steps": steps, "degree": 2, "alpha": 0.05}
    r = step_shrinkage(**graph)
    bound = trajectory_sensitivity(
        shrinkage=r,
        step_size=mu,
        local_steps=steps,
        batch=batch,
        samples=samples,
        gradient_bound=1.0,
    )
    rows = draw.normal(size=(samples, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    other = rows.copy()
    other[0] = -rows[0]

    def gradient(x, w, chosen):
        p = 1 / (1 + np.exp(x[chosen] @ w))
        return -(x[chosen] * p[:, None]).mean(0)

    worst = 0.0
    for _ in range(20):
        w, w_other = np.zeros(4), np.zeros(4)
        for _ in range(rounds):
            received = draw.normal(size=4)
            order = np.concatenate([draw.permutation(samples) for _ in range(2)])
            for k in range(steps):
                chosen = order[k * batch : (k + 1) * batch]
                w = r * (w - mu * gradient(rows, w, chosen)) + (1 - r) * received
                w_other = (
                    r * (w_other - mu * gradient(other, w_other, chosen))
                    + (1 - r) * received
                )
            worst = max(worst, float(np.linalg.norm(w - w_other)))
    assert 0.2 * bound < worst <= bound


def test_the_tight_bound_in_the_papers_setting():
    steps = {"step_size": 0.03, "local_steps": 10, **DATA}
    change = trajectory_sensitivity(shrinkage=shrink(), **steps)
    by_hand = 2 * 0.03 / 2000 * (40 / 43) / (1 - (40 / 43) ** 2)
    assert change == pytest.approx(by_hand, rel=1e-12)
    real = gaussian_epsilon(0.024 / (change * math.sqrt(2000)), 1e-3)
    assert real == pytest.approx(1.0, abs=0.02)
    assert lemma_1_sensitivity(**PAPER) / change == pytest.approx(1.02e-3 / by_hand)
    # Letters that leave after any step show no less.
    assert trajectory_sensitivity(shrinkage=shrink(), any_step=True, **steps) >= change


@pytest.mark.parametrize(
    ("ask", "message"),
    (
        (lambda: lemma_1_sensitivity(**PAPER | {"step_size": 0.04}), "Lemma 1"),
        (
            lambda: trajectory_sensitivity(
                shrinkage=0.9, step_size=0.1, local_steps=3, **DATA | {"batch": 1500}
            ),
            "batch to divide samples",
        ),
        (lambda: gamma_of(**GRAPH | {"alpha": -0.1}), "alpha"),
        (lambda: dp_norm_sigma(1.0, 1e-5, 0, 1.0), "rounds"),
        (lambda: dp_norm_sigma(1.0, 1e-5, 10, -1.0), "sensitivity"),
        (lambda: dp_norm_sigma(1.0, 1e-5, 10, 1.0, "classical"), "method"),  # pyright: ignore
    ),
)
def test_refusals(ask, message):
    with pytest.raises(TacitaError, match=message):
        ask()

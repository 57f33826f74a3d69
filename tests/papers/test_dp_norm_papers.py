"""The scripts of DP-Norm: shared runs, noise of each method, and what was reached."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import tacita
from papers.dp_norm.common import benchmark, convex, runs
from papers.dp_norm.common.features import oriented_gradients
from tacita.problem import graph

RESULTS = Path(benchmark.__file__).parent.parent / "results"


def test_configurations_together_equal_each_alone():
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(60, 4)), draw.integers(0, 3, 60)
    who = np.repeat(np.arange(5), 12)
    problem = tacita.from_arrays(
        x, y, who, model="softmax", graph=graph.ring(5), test=(x, y)
    )
    oracle = tacita.Minibatch(size=4, sampling="permutation")
    given = {"step_size": 0.1, "local_steps": 3, "oracle": oracle, "publish": "own"}
    many = [
        tacita.DPNorm(alpha=a, noise_std=s, **given) for a, s in ((0, 0), (0.2, 0.1))
    ]
    measures = {"norm": runs.model_norm, "own": runs.own_accuracy}
    found = runs.curves(problem, many, 6, 3, measures, seed=4)
    for lane, algorithm in enumerate(many):
        alone = tacita.simulate(problem, algorithm, 6, seed=4, record=())
        norm = np.linalg.norm(alone.agents, axis=1).mean()
        assert found["norm"][lane, -1] == pytest.approx(norm, rel=1e-6)
        right = np.mean(
            [(np.argmax(x @ w.reshape(3, 4).T, 1) == y) for w in alone.agents]
        )
        assert found["own"][lane, -1] == pytest.approx(right, abs=1e-6)
    assert found["norm"].shape == (2, 2)


def test_noise_of_every_method():
    assert benchmark.paper_noise(1.0, 0.2) == pytest.approx(0.171051, rel=1e-5)
    assert benchmark.paper_noise(0.5, 0.2) == pytest.approx(0.318812, rel=1e-5)
    assert benchmark.tight_noise(1.0, 0.2) == pytest.approx(0.0337, abs=5e-5)
    assert benchmark.tight_noise(0.5, 0.2) == pytest.approx(0.0604, abs=5e-5)
    # Table II counts noise in w: mu times, and 1/(2 rho E + 1/mu) times ours.
    in_w = benchmark.STEP * benchmark.gossip_paper_noise(1.0)
    assert in_w == pytest.approx(0.0028, abs=5e-5)
    share = 1 / (2 * benchmark.PENALTY * 2 + 1 / benchmark.STEP)
    assert share * benchmark.admm_paper_noise(1.0) == pytest.approx(0.008, abs=5e-4)
    # Its decreasing step, written out for local step 3 of round 50, D = 2.
    inside = 1 / 6**2 + 7840 * 10 * 2000 * np.log(1250) / (4000**2 * 0.5**2)
    printed = 2.0 / (np.sqrt(2 * 3 * 50) * np.sqrt(inside))
    step = benchmark.admm_paper_step(0.5, radius=2.0).over(50)[-1] / np.sqrt(3)
    assert step == pytest.approx(printed)
    # A sound budget for gossip, asked of the accountant.
    draw = np.random.default_rng(0)
    x = draw.normal(size=(24, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    problem = tacita.from_arrays(
        np.tile(x, (1000, 1)),
        np.tile(draw.integers(0, 3, 24), 1000),
        np.repeat(np.arange(6), 4000),
        model="softmax",
        classes=range(3),
        graph=graph.ring(6),
    )
    noise = benchmark.sound_gradient_noise(1.0, 50)
    made = tacita.GossipSGD(
        step_size=0.03,
        local_steps=benchmark.STEPS,
        oracle=tacita.Noisy(std=noise, oracle=benchmark.safely_clipped()),
    )
    told = tacita.privacy.forecast(problem, made, rounds=50, delta=benchmark.DELTA)
    assert told.row("neighbour").epsilon == pytest.approx(1.0, rel=1e-6)


def test_features_look_at_one_image_at_a_time():
    draw = np.random.default_rng(0)
    images = draw.random((5, 784))
    made = oriented_gradients(images)
    assert made.shape == (5, 392)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(oriented_gradients(images[3:4])[0], made[3])
    # The contrast of an image changes nothing.
    np.testing.assert_allclose(oriented_gradients(3 * images), made, atol=1e-5)
    assert np.all(np.isfinite(oriented_gradients(np.zeros((1, 784)))))


def test_what_was_reached_beyond_the_paper():
    with open(RESULTS / "beyond.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    mean = {
        epsilon: np.mean(
            [float(k["released accuracy"]) for k in lines if k["epsilon"] == epsilon]
        )
        for epsilon in ("1", "0.5")
    }
    assert sum(k["epsilon"] == "1" for k in lines) == 3
    assert mean["1"] >= 0.75 and mean["0.5"] >= 0.72


@pytest.mark.parametrize("split", (0, 1))
def test_curves_are_kept_whole(split):
    lines = convex.read(RESULTS / f"raw/convex_dp_norm-2000-split-{split}-seed-0.csv")
    assert {int(line["round"]) for line in lines} == set(range(50, 2001, 50))
    quiet = convex.last(lines, method="DP-Norm alpha=0.2", noise="paper", epsilon="inf")
    loud = convex.last(lines, method="DP-Norm alpha=0.2", noise="paper", epsilon="1")
    assert quiet > 0.7 and loud < 0.62


def test_dual_norms_of_noise_alone():
    """Known levels: 4.37 and 2.10 standard deviations a coordinate, synchronous."""
    still = tacita.from_arrays(
        np.zeros((6, 300)),
        np.zeros(6),
        np.arange(6),
        model="linear",
        graph=graph.ring(6),
    )
    levels = {}
    for exchange in ("synchronous", "asynchronous"):
        lanes = [
            tacita.DPNorm(
                step_size=benchmark.STEP,
                local_steps=benchmark.STEPS,
                alpha=alpha,
                noise_std=1.0,
                exchange=exchange,
            )
            for alpha in (0.0, 0.2)
        ]
        found = runs.curves(still, lanes, 600, 60, {"dual": runs.dual_norm})
        levels[exchange] = found["dual"] / np.sqrt(300)
    late = levels["synchronous"][:, 1:].mean(axis=1)
    np.testing.assert_allclose(late, [4.37, 2.10], rtol=0.03)
    # Asynchronous letters make the duals wander, unless alpha holds them.
    first, last = levels["asynchronous"][:, 0], levels["asynchronous"][:, -1]
    assert 2.2 < last[0] / first[0] < 4.5 and last[1] / first[1] < 1.3

"""The loop for readings of Fed-PLT's Table IV, against the package and closed forms."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

import tacita
from papers.fed_plt import v1_table_4, v1_table_4_readings
from papers.fed_plt.common import readings
from papers.fed_plt.common.problems import ROWS, first
from papers.fed_plt.common.tables import RESULTS
from tacita.algorithm.solvers import GradientDescent

RHO, ROUNDS = 0.3, 5


@pytest.fixture(scope="module")
def instance():
    return first(3)


def test_without_noise_it_is_the_package(instance):
    """The sum of losses with (rho, gamma) is the mean with (20 rho, 20 gamma)."""
    setting = readings.Setting("sum", "each step, sqrt(v)")
    made = readings.ready(instance, "sum", RHO)
    found = readings.errors(made, setting, RHO, np.zeros(1), ROUNDS, 0)[..., 0]
    best = made.best
    np.testing.assert_allclose(best, instance.problem.solve(), atol=1e-12)
    step = ROWS * made.step
    solver = GradientDescent(step_size=step, local_steps=readings.STEPS)
    run = tacita.simulate(
        instance.problem,
        tacita.FedPLT(rho=ROWS * RHO, solver=solver),
        ROUNDS,
        start=instance.start,
        record=("error", "mean_grad_norm_sq"),
        record_every=1,
        reference=np.tile(best, (10, 1)),
    )
    named = dict(zip(readings.MEASURES, found, strict=True))
    np.testing.assert_allclose(named["X - x*"], run.metrics["error"], rtol=1e-9)
    gradients = ROWS * np.sqrt(run.metrics["mean_grad_norm_sq"])
    np.testing.assert_allclose(
        named["sum_i grad f_i(mean x)"], gradients, rtol=1e-7, atol=1e-9
    )
    y = np.linalg.norm(run.params - best)
    assert named["y - x*"][-1] == pytest.approx(y, rel=1e-9)


def test_noise_has_the_scale_of_the_reading(instance):
    """After one round from one point, the noise of one column beside that of none."""
    made = readings.ready(instance, "sum", RHO)
    small = np.array([0.0, 1e-8])
    moved = {}
    for noise in readings.NOISES:
        setting = readings.Setting("sum", noise)
        found = readings.errors(made, setting, RHO, small, 60, 7)
        moved[noise] = found[readings.MEASURES.index("X - x*"), -1, 1]
    ratio = moved["each step, sqrt(v)"] / moved["each step, sqrt(2 gamma v)"]
    assert ratio == pytest.approx(1 / math.sqrt(2 * made.step), rel=1e-4)
    ratio = moved["each gradient, sqrt(v)"] / moved["each step, sqrt(v)"]
    assert ratio == pytest.approx(made.step, rel=1e-4)
    # Noise once a round is less than noise in every step, and more than a tenth.
    once = moved["once a round, sqrt(v)"] / moved["each step, sqrt(v)"]
    assert 0.1 < once < 1


def test_a_reading_is_as_far_from_print_as_it_says():
    printed = np.array(list(v1_table_4.PAPER.values()))
    far = printed * np.array([1, 1, 1, 1, 1, 1, 0.5, 1])
    one = v1_table_4_readings.Reading(
        v1_table_4_readings.SETTINGS[0], "X - x*", "mean", 5, far
    )
    assert one.factor == pytest.approx(2) and one.noisy_factor == pytest.approx(2)
    a, b, off = v1_table_4_readings.floor_fit()
    assert a == printed[0] and 6 < b < 9 and off < 1.2


def test_the_page_shows_the_nearest_readings():
    with open(RESULTS / "v1_table_4_readings.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    settled = [row for row in rows if row["rounds"] == str(v1_table_4_readings.ROUNDS)]
    assert len(settled) >= len(v1_table_4_readings.SETTINGS)
    nearest = min(float(row["worst factor"]) for row in rows)
    text = (RESULTS / "v1_table_4_readings.md").read_text()
    assert f"within a factor of {nearest:.2f} of print" in text

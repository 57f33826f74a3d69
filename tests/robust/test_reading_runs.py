"""Rows read back from the letters of runs: what noise buys."""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from tacita.aggregation import Summed
from tacita.audits import read_back
from tacita.privacy import inversion
from tacita.problem import mlp


def pictures(agents: int = 3, rows: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of 16 pixels in three classes."""
    random = np.random.default_rng(0)
    return random.random((agents * rows, 16)), np.arange(agents * rows) % 3


def test_local_steps_of_a_linear_model_are_undone():
    random = np.random.default_rng(0)
    x = random.standard_normal((9, 3))
    q, b = x.T @ x / 9, x.T @ random.standard_normal(9) / 9
    points = random.standard_normal((4, 3))
    letters = points.copy()
    for _ in range(4):
        letters = letters - 0.1 * 2 * (letters @ q - b)
    found = inversion.linear_after(points, letters, step_size=0.1, local_steps=4)
    np.testing.assert_allclose(found.q, q, atol=1e-9)
    np.testing.assert_allclose(found.b, b, atol=1e-9)
    once = inversion.linear_after(points, letters, step_size=0.1, local_steps=1)
    assert np.abs(once.q - q).max() > 0.1


def test_a_batch_of_softmax_is_read_at_once():
    x, y = pictures(1, 3)
    residual = np.full((3, 5), 0.2) - np.eye(5)[y]
    grad = residual.T @ x / 3
    np.testing.assert_allclose(inversion.softmax_rows(grad, y), x, atol=1e-9)
    counts = inversion.label_counts(residual.mean(axis=0), 3, np.full(5, 0.2))
    assert counts.tolist() == [1, 1, 1, 0, 0]


@pytest.fixture(scope="module")
def softmax() -> tacita.Problem:
    x, y = pictures()
    who = np.arange(len(y)) // 6
    return tacita.from_arrays(x, y, who, model="softmax", intercept=True)


@pytest.mark.long
def test_letters_of_local_steps_are_read_and_noise_hides_rows(softmax):
    how = tacita.FedAvg(step_size=0.5, local_steps=3)
    about = {"agent": 1, "rows": 2, "letters": 1, "epsilons": [1.0]}
    read = read_back(softmax, how, rounds=4, **about)
    bare, noised = read.readings
    assert bare.error < 0.01 < 0.9 * read.blind
    assert sorted(bare.y) == sorted(read.y)
    assert bare.privacy.epsilon is None
    assert noised.error > 0.7 * read.blind
    assert noised.privacy.epsilon == pytest.approx(1.0, rel=1e-3)
    assert noised.privacy.observer == "coordinator"


@pytest.mark.long
def test_letters_of_agents_with_weights_are_read_as_well():
    random = np.random.default_rng(1)
    x, y = random.standard_normal((24, 3)), np.sign(random.standard_normal(24))
    about = {"model": "logistic", "weights": [0.3, 4.0, 1.0]}
    problem = tacita.from_arrays(x, y, np.arange(24) // 8, **about)
    how = tacita.FedAvg(step_size=0.05)
    read = read_back(problem, how, rounds=2, agent=1, rows=1, epsilons=[])
    assert read.readings[0].error < 1e-6 < read.blind


@pytest.mark.long
def test_rows_of_a_network_are_read():
    x, y = pictures()
    who = np.arange(len(y)) // 6
    model = mlp(16, (24,), 3)
    problem = tacita.from_arrays(x, y, who, model=model, dtype="float64")
    how = tacita.ServerGD(step_size=0.1)
    read = read_back(problem, how, rounds=2, rows=1, letters=1, epsilons=[])
    assert read.readings[0].error < 0.05 * read.blind
    assert read.readings[0].y == read.y


@pytest.mark.long
def test_rows_of_a_network_in_single_precision_are_read():
    """Networks are float32 unless asked for otherwise; guesses are in double."""
    x, y = pictures()
    problem = tacita.from_arrays(x, y, np.arange(len(y)) // 6, model=mlp(16, (8,), 3))
    assert problem.dtype == np.float32
    how = tacita.FedAvg(step_size=0.1, local_steps=2)
    read = read_back(problem, how, rounds=2, rows=1, letters=1, epsilons=[])
    assert read.readings[0].error < 0.05 * read.blind


def test_refusals(softmax):
    how = tacita.FedAvg(step_size=0.5)
    with pytest.raises(tacita.TacitaError, match="agent 0 has 6 rows"):
        read_back(softmax, how, rounds=2, rows=7)
    summed = Summed(algorithm=how, aggregation=tacita.SecureSum())
    with pytest.raises(tacita.TacitaError, match="shows no single letter"):
        read_back(softmax, summed, rounds=2)

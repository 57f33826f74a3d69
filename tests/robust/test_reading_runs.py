"""Rows read back from the letters of runs: what noise buys."""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from tacita.aggregation import Summed
from tacita.audits import read_back
from tacita.audits.reader import Reader
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


def linear_rows(ones: bool = False) -> tacita.Problem:
    random = np.random.default_rng(0)
    x = random.standard_normal((40, 4))
    y = x @ [1.0, 2.0, -1.0, 0.5]
    about = {"model": "linear", "intercept": ones}
    return tacita.from_arrays(x, y, np.arange(40) // 8, **about)


@pytest.mark.long
def test_a_row_of_a_linear_model_is_read_up_to_its_sign():
    """Agent 2's row was found as minus itself, and told to be worse than a guess."""
    how = tacita.ServerGD(step_size=0.1)
    read = read_back(linear_rows(), how, rounds=5, agent=2, rows=1, epsilons=[])
    assert read.readings[0].error < 1e-6 < read.blind and not read.signed
    np.testing.assert_allclose(read.readings[0].x, read.x, atol=1e-6)
    np.testing.assert_allclose(read.readings[0].y, read.y, atol=1e-6)
    assert "up to their sign" in tacita.report.reading_lede(read)


def test_signs_are_told_by_a_constant_feature():
    rows = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, -1.0, 3.0, 0.0]])
    for ones, signed in ((False, False), (True, True)):
        problem = linear_rows(ones)
        reader = Reader.knowing(problem, 0)
        assert reader.tells_signs(problem.model) == signed
    softmax = tacita.problem.Softmax(4, 3)
    reader = Reader.knowing(linear_rows(), 0)
    assert reader.tells_signs(softmax)
    assert reader.apart(rows, -rows[::-1])[0] > 0.1
    error, order, signs = reader.apart(rows, -rows[::-1], signed=False)
    assert error == 0 and list(order) == [1, 0] and list(signs) == [-1, -1]


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

"""Descent that watches itself ends at the minimum, whatever its first step."""

import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.problem import descend
from tacita.problem.prox import L2Ball

Q = np.diag([1.0, 10.0])
AIM = np.array([2.0, -1.0])


def objective(w):
    return (w - AIM) @ jnp.asarray(Q) @ (w - AIM)


@pytest.mark.parametrize("step_size", [1e-16, 1.0, 1e4])
def test_any_first_learning_rate_ends_at_the_minimum(step_size):
    found = descend(objective, np.zeros(2), step_size=step_size)
    assert found.converged and np.allclose(found.w, AIM, atol=1e-6)
    # In the flattest direction, of curvature 2, steps up to 1/2 pass; then one bolder.
    assert found.step_size <= 1.25 / 2 and found.steps < 500
    off = found.w - AIM
    assert found.value == pytest.approx(off @ Q @ off)


@pytest.mark.parametrize(("unit", "step_size"), [(1e-12, 1.0), (1.0, 1e300)])
def test_neither_a_small_objective_nor_a_wild_first_step_ends_it_early(unit, step_size):
    small = lambda w: unit * objective(w)  # noqa: E731
    found = descend(small, np.zeros(2), step_size=step_size)
    assert found.converged and np.allclose(found.w, AIM, atol=1e-5)


def test_projected_steps_end_in_the_set():
    ball = L2Ball(1.0)
    project = lambda w: ball.prox(w, 1.0)  # noqa: E731
    found = descend(objective, np.zeros(2), project=project)
    # On the circle the gradient points outwards along the radius.
    slope = 2 * Q @ (found.w - AIM)
    assert np.isclose(np.linalg.norm(found.w), 1.0)
    assert np.allclose(slope, -np.linalg.norm(slope) * found.w, atol=1e-5)


def test_a_step_is_refused_where_the_objective_falls_too_little():
    # Of curvature 2 steps up to 1/2 fall by enough.
    short = descend(lambda w: jnp.sum(w**2), np.ones(1), step_size=0.4, most_steps=1)
    assert short.w == pytest.approx(0.2) and short.step_size == pytest.approx(0.5)
    long = descend(lambda w: jnp.sum(w**2), np.ones(1), step_size=0.6, most_steps=1)
    assert long.w == 1.0 and long.step_size == pytest.approx(0.3)


def test_it_ends_after_most_steps_or_a_small_change():
    short = descend(objective, np.zeros(2), most_steps=3)
    assert short.steps == 3 and not short.converged
    coarse = descend(objective, np.zeros(2), least_change=1e-2)
    assert coarse.converged and coarse.steps < descend(objective, np.zeros(2)).steps
    with pytest.raises(tacita.TacitaError, match="step_size"):
        descend(objective, np.zeros(2), step_size=0.0)


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (lambda w: w, r"one number, got shape \(2,\)"),
        (lambda w: jnp.sum(jnp.log(w)), "-inf at start"),
    ],
)
def test_objectives_that_cannot_be_followed_are_refused(objective, words):
    with pytest.raises(tacita.TacitaError, match=words):
        descend(objective, np.zeros(2))

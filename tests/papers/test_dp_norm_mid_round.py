"""DP-Norm's asynchronous exchange as printed: letters that swap within a round."""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from papers.dp_norm import figure_4
from papers.dp_norm.common import mid_round, runs
from tacita.problem import graph


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    rng = np.random.default_rng(0)
    x, nodes = rng.normal(size=(40, 3)), np.arange(40) % 5
    y = x @ np.array([1.0, -2.0, 0.5]) + 0.3 * nodes
    return tacita.from_arrays(
        x, y, nodes, model="linear", l2=0.1, graph=graph.ring(5), test=(x, y)
    )


def dp_norm(**changes) -> tacita.DPNorm:
    given = {"step_size": 0.05, "local_steps": 4, "noise_std": 0.0, "publish": "own"}
    return tacita.DPNorm(**given | changes)


@pytest.mark.parametrize("swap", [True, False])
def test_with_one_inner_step_it_is_the_synchronous_algorithm(problem, swap):
    many = [dp_norm(local_steps=1, alpha=a) for a in (0.0, 0.2)]
    found = mid_round.curves(problem, many, 6, 3, swap, seed=4)
    measures = {"norm of w": runs.model_norm, "norm of dual": runs.dual_norm}
    plain = runs.curves(problem, many, 6, 3, measures, seed=4)
    for name in measures:
        np.testing.assert_allclose(found[name], plain[name], rtol=1e-12)


def test_swapped_letters_keep_the_optimum(problem):
    """Exact without noise and alpha, whenever both ends of an edge exchange."""
    reached = np.linalg.norm(problem.solve())
    found = mid_round.curves(problem, [dp_norm()], 1200, 600, swap=True)
    assert abs(found["norm of w"][0, -1] - reached) < 1e-9


def by_hand(problem, rounds: int, times) -> np.ndarray:
    """Algorithm 1 on a ring in NumPy, without noise; node models after the rounds."""
    n, mu, steps = 5, 0.05, 4
    rows = problem.population.rows
    x = np.swapaxes(rows.x, 1, 2) if problem.population.by_feature else rows.x
    x, y = np.asarray(x), np.asarray(rows.y)
    w = np.zeros((n, 3))
    z = {(i, j): np.zeros(3) for i in range(n) for j in ((i - 1) % n, (i + 1) % n)}
    sign = {(i, j): 1.0 if i < j else -1.0 for i, j in z}
    eta = 1 / (mu * 2 * steps)
    for r in range(rounds):
        for k in range(steps):
            g = np.einsum("nhf,nh->nf", x, np.einsum("nhf,nf->nh", x, w) - y)
            g = 2 * g / x.shape[1] + 0.1 * w
            pull = np.array(
                [sum(sign[e] * z[e] for e in z if e[0] == i) for i in range(n)]
            )
            w = (w - mu * g + mu * eta * pull) / (1 + 2 * eta * mu)
            y_now = {(i, j): z[i, j] - 2 * sign[i, j] * w[i] for i, j in z}
            z = {(i, j): y_now[j, i] if times(r, i, j) == k else z[i, j] for i, j in z}
    return w


def test_a_round_is_that_of_algorithm_1(problem, monkeypatch):
    """Every edge at a fixed step, so that NumPy can follow."""
    import jax.numpy as jnp

    def at_step_two(key, shape, low, high):
        return jnp.full(shape, 2)

    monkeypatch.setattr(mid_round.jax.random, "randint", at_step_two)
    found = mid_round.curves(problem, [dp_norm()], 3, 3, swap=False, seed=77)
    hand = by_hand(problem, 3, lambda r, i, j: 2)
    norm = np.linalg.norm(hand, axis=1).mean()
    assert found["norm of w"][0, -1] == pytest.approx(norm, rel=1e-12)


def test_duals_are_normalised_by_the_end_without_noise():
    def line(epsilon, number, dual):
        told = {"method": "DP-ADMM", "noise": "paper", "epsilon": epsilon}
        return told | {"round": number, "norm of w": "1", "norm of dual": dual}

    given = [line("inf", 50, "1"), line("inf", 100, "4"), line("1", 100, "6")]
    found = figure_4.curves(given)
    assert found[figure_4.NORMALISED, "DP-ADMM", "inf"] == ([50, 100], [0.25, 1.0])
    assert found[figure_4.NORMALISED, "DP-ADMM", "1"] == ([100], [1.5])

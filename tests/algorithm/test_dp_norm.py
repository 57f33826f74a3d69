"""DP-Norm against Algorithm 1 written out by hand, and against what it minimises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest

import tacita
from tacita.algorithm.dp_norm import State
from tacita.problem import graph, synthetic
from tacita.theory import gtv


def with_chords() -> nx.Graph:
    """A ring with three chords: degrees 2 to 4."""
    made = nx.cycle_graph(8)
    made.add_edges_from([(0, 3), (0, 4), (2, 6)])
    return made


NETWORKS = {"ring": graph.ring(8), "grid": graph.grid(2, 4), "chords": with_chords()}


def linear_on(network: Any) -> Any:
    return synthetic.linear(
        agents=8, features=3, samples=6, noise=0.5, spread=0.5, seed=5, graph=network
    )


PROBLEMS = {name: linear_on(network) for name, network in NETWORKS.items()}
each_network = pytest.mark.parametrize("name", PROBLEMS)


def reached(problem, algorithm, rounds=1500, **options) -> np.ndarray:
    return tacita.simulate(problem, algorithm, rounds, record=(), **options).agents


def weighted_optimum(problem, weights) -> np.ndarray:
    """argmin sum_i weight_i f_i of a linear problem, by the normal equations."""
    x, y, counts = problem.stacked()
    share = (np.asarray(weights) / counts)[:, None]
    rows = (x * np.sqrt(share)[..., None]).reshape(-1, x.shape[-1])
    return np.linalg.lstsq(rows, (y * np.sqrt(share)).ravel(), rcond=None)[0]


@pytest.mark.few(2)
@each_network
def test_without_noise_all_nodes_reach_the_common_optimum(name):
    problem = PROBLEMS[name]
    best = problem.solve()
    np.testing.assert_allclose(weighted_optimum(problem, np.ones(8)), best, atol=1e-9)
    found = reached(problem, tacita.DPNorm(local_steps=5))
    assert np.abs(found - best).max() < 1e-8


@pytest.mark.parametrize("name", ("grid", "chords"))
def test_the_printed_form_reaches_the_degree_weighted_optimum(name):
    problem = PROBLEMS[name]
    degrees = np.asarray(problem.graph.neighbour_counts)
    biased = weighted_optimum(problem, degrees)
    found = reached(problem, tacita.DPNorm(local_steps=5, form="printed"))
    assert np.abs(found - biased).max() < 1e-8
    assert np.abs(biased - problem.solve()).max() > 0.01


@each_network
def test_with_alpha_it_minimises_total_variation(name):
    """On every graph, not only on rings: GTVMin with edge weight 1/(4 alpha)."""
    problem, alpha = PROBLEMS[name], 0.3
    found = reached(problem, tacita.DPNorm(local_steps=5, alpha=alpha))
    expected = gtv.linear_optimum(problem, 1 / (4 * alpha))
    assert np.abs(found - expected).max() < 1e-10


HEAVY = nx.path_graph(8)
nx.set_edge_attributes(HEAVY, {(i, i + 1): 0.5 + i for i in range(7)}, "weight")


@pytest.mark.parametrize("form", ["corrected", "printed"])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_its_goal_is_what_it_reaches_also_with_weights_on_edges(form, alpha):
    """On a path with unequal weights; the printed form has another goal."""
    problem = linear_on(HEAVY)
    algorithm = tacita.DPNorm(local_steps=5, alpha=alpha, form=form)
    goal = algorithm.goal(problem)
    assert np.abs(reached(problem, algorithm, 4000) - goal).max() < 1e-8
    plain = tacita.DPNorm(alpha=alpha).goal(linear_on(nx.path_graph(8)))
    assert (np.abs(goal - plain).max() > 0.01) == (alpha > 0 or form == "printed")
    if form == "corrected" and alpha:
        relaxed = tacita.FedRelax(alpha=1 / (4 * alpha)).goal(problem)
        np.testing.assert_allclose(goal, relaxed, atol=1e-9)


@pytest.mark.long
def test_late_letters_single_steps_and_silent_nodes_are_exact_too():
    problem = PROBLEMS["chords"]
    best = problem.solve()
    late = reached(problem, tacita.DPNorm(local_steps=5, exchange="asynchronous"))
    assert np.abs(late - best).max() < 1e-8
    single = reached(problem, tacita.DPNorm(local_steps=1))
    assert np.abs(single - best).max() < 1e-8
    silent = reached(problem, tacita.DPNorm(local_steps=5), 3000, participation=0.5)
    assert np.abs(silent - best).max() < 1e-8


def test_nodes_share_their_step_size():
    steps: Any = np.linspace(0.01, 0.02, 8)
    with pytest.raises(tacita.TacitaError, match="common to all"):
        reached(PROBLEMS["ring"], tacita.DPNorm(step_size=steps), 2)
    with pytest.raises(tacita.TacitaError, match="common to all"):
        reached(PROBLEMS["ring"], tacita.GraphADMM(rho=steps), 2)


def algorithm_1(problem, alpha, mu, steps, rounds) -> np.ndarray:
    """Algorithm 1 as printed, with signs and dual variables, node by node."""
    x, y, counts = problem.stacked()
    links = [(i, j) for i, j in zip(*problem.graph.adjacency().nonzero(), strict=True)]
    w = np.zeros((8, 3))
    z = {link: np.zeros(3) for link in links}
    for _ in range(rounds):
        letters = {}
        for i in range(8):
            mine = [j for k, j in links if k == i]
            eta = 1 / (mu * len(mine) * steps)
            gamma = 1 + alpha * eta
            sign = {j: 1.0 if i < j else -1.0 for j in mine}
            for _ in range(steps):
                g = 2 * x[i].T @ (x[i] @ w[i] - y[i]) / counts[i]
                pull = sum(sign[j] * z[i, j] for j in mine)
                w[i] = (
                    gamma
                    / (gamma + eta * mu * len(mine))
                    * (w[i] - mu * g + mu * eta / gamma * pull)
                )
            for j in mine:
                dual = eta / gamma * (z[i, j] - sign[j] * w[i])
                letters[j, i] = 2 / eta * dual - z[i, j]
        z = letters
    return w


@pytest.mark.parametrize("alpha", (0.0, 0.2))
def test_the_printed_form_is_algorithm_1(alpha):
    problem = PROBLEMS["chords"]
    by_hand = algorithm_1(problem, alpha, 0.05, 4, 7)
    given = {"step_size": 0.05, "local_steps": 4, "alpha": alpha}
    found = reached(problem, tacita.DPNorm(form="printed", **given), 7)
    np.testing.assert_allclose(found, by_hand, atol=1e-12)
    corrected = reached(problem, tacita.DPNorm(**given), 7)
    assert np.abs(corrected - by_hand).max() > 1e-3
    ring = PROBLEMS["ring"]
    same = reached(ring, tacita.DPNorm(**given), 7)
    np.testing.assert_allclose(same, algorithm_1(ring, alpha, 0.05, 4, 7), atol=1e-12)


def silent_ring(dim: int = 300) -> tacita.Problem:
    """Six nodes on a ring whose data is all zero: nothing but noise moves."""
    return tacita.from_arrays(
        np.zeros((6, dim)),
        np.zeros(6),
        np.arange(6),
        model="linear",
        graph=graph.ring(6),
    )


@pytest.mark.long
def test_noise_in_letters_builds_up_as_computed():
    """Each letter is -a u + b (w + n), w follows: the covariance by hand."""
    steps, mu, alpha, rounds = 10, 0.03, 0.2, 40
    gamma = 1 + alpha / (mu * 2 * steps)
    rho = (gamma / (gamma + 1 / steps)) ** steps
    a, b = (2 - gamma) / gamma, 2 / gamma
    # (w, u): u[i, side] is what node i received from its left, and from its right.
    side = {-1: 6, 1: 12}
    move, noise = np.zeros((18, 18)), np.zeros((18, 6))
    walk = np.zeros((6, 18))
    for i in range(6):
        walk[i, i] = rho
        for first in side.values():
            walk[i, first + i] = (1 - rho) / 2
    move[:6] = walk
    for i in range(6):
        for way, first in side.items():
            j = (i + way) % 6
            move[first + i, side[-way] + j] = -a
            move[first + i] += b * walk[j]
            noise[first + i, j] = b
    spread = np.zeros((18, 18))
    for _ in range(rounds):
        spread = move @ spread @ move.T + noise @ noise.T
    algorithm = tacita.DPNorm(
        step_size=mu, local_steps=steps, alpha=alpha, noise_std=0.7
    )
    run = tacita.simulate(silent_ring(9000), algorithm, rounds, seed=0, record=())
    # Published is w + n, with noise that did not enter w yet.
    assert run.agents.std() / 0.7 == pytest.approx(np.sqrt(spread[0, 0] + 1), rel=0.03)
    own = replace(algorithm, publish="own").model
    assert own(State(w=1.0, released=2.0)) == 1.0  # pyright: ignore


@pytest.mark.long
def test_asynchronous_letters_have_fresh_noise_and_different_iterates():
    problem = silent_ring(9000)
    noisy = tacita.DPNorm(
        step_size=0.1, local_steps=4, noise_std=1.0, exchange="asynchronous"
    )
    # A node tells the mean of what its two letters show: the noise of both.
    spread = {
        noise: tacita.simulate(
            problem, replace(noisy, letter_noise=noise), 1, seed=0, record=()
        ).agents.std()
        for noise in ("fresh", "shared")
    }
    assert spread["fresh"] == pytest.approx(np.sqrt(0.5), rel=0.03)
    assert spread["shared"] == pytest.approx(1.0, rel=0.03)


def test_a_thousand_nodes_on_a_random_regular_graph():
    problem = synthetic.linear(
        agents=1000,
        features=3,
        samples=4,
        noise=0.5,
        graph=graph.random_regular(1000, 4, seed=1),
    )
    found = reached(problem, tacita.DPNorm(local_steps=3), 300)
    assert np.abs(found - problem.solve()).max() < 1e-6

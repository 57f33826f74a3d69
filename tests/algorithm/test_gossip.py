"""Gossip, gradient tracking and ADMM on graphs against their definitions."""

from __future__ import annotations

import dataclasses
from typing import Any

import networkx as nx
import numpy as np
import pytest

import tacita
from tacita.problem import synthetic


def problem_on(weights: bool = False) -> Any:
    network = nx.cycle_graph(6)
    network.add_edges_from([(0, 2), (0, 3)])
    if weights:
        for k, edge in enumerate(network.edges):
            network.edges[edge]["weight"] = 1 + 0.2 * k
    return synthetic.linear(
        agents=6, features=3, samples=6, noise=0.5, spread=0.5, seed=2, graph=network
    )


@pytest.fixture(scope="module")
def problem():
    return problem_on()


def metropolis(problem) -> np.ndarray:
    there = np.asarray(problem.graph.adjacency().todense()) > 0
    degree = there.sum(axis=1)
    weights = np.where(there, 1 / (1 + np.maximum.outer(degree, degree)), 0.0)
    return weights + np.diag(1 - weights.sum(axis=1))


def gradients(problem, w) -> np.ndarray:
    return problem.grad(w)


def agents(problem, algorithm, rounds, **options):
    return tacita.simulate(
        problem, algorithm, rounds, seed=0, record=(), **options
    ).agents


def test_gossip_is_mixing_and_steps(problem):
    mix = metropolis(problem)
    assert np.allclose(mix.sum(axis=0), 1) and np.allclose(mix, mix.T)
    w = np.zeros((6, 3))
    for _ in range(5):
        w = mix @ w
        for _ in range(3):
            w = w - 0.05 * gradients(problem, w)
    found = agents(problem, tacita.GossipSGD(step_size=0.05, local_steps=3), 5)
    np.testing.assert_allclose(found, w, atol=1e-12)


def test_gossip_is_biased_and_the_bias_shrinks_with_the_step(problem):
    best = problem.solve()
    off = [
        np.abs(agents(problem, tacita.GossipSGD(step_size=s), 6000) - best).max()
        for s in (0.05, 0.005)
    ]
    assert off[0] > 1e-3 and off[1] < off[0] / 5


def test_noise_is_in_every_gradient():
    still = tacita.from_arrays(
        np.zeros((6, 4000)),
        np.zeros(6),
        np.arange(6),
        model="linear",
        graph=tacita.problem.graph.ring(6),
    )
    gossip = tacita.GossipSGD(
        step_size=0.5, local_steps=4, oracle=tacita.Noisy(std=3.0)
    )
    spread = agents(still, gossip, 1).std()
    assert spread == pytest.approx(0.5 * 3.0 * 2, rel=0.03)
    admm = tacita.GraphADMM(
        rho=0.25, step_size=0.5, local_steps=1, oracle=tacita.Noisy(std=3.0)
    )
    # Noise in w is std / (2 rho E + 1/mu).
    spread = agents(still, admm, 1).std()
    assert spread == pytest.approx(3.0 / (2 * 0.25 * 2 + 2), rel=0.03)


def test_tracking_is_exact_and_as_defined(problem):
    mix, mu = metropolis(problem), 0.03
    w, y, g = np.zeros((6, 3)), np.zeros((6, 3)), np.zeros((6, 3))
    for _ in range(6):
        w, mixed = mix @ w - mu * y, mix @ y
        fresh = gradients(problem, w)
        y, g = mixed + fresh - g, fresh
    found = agents(problem, tacita.GradientTracking(step_size=mu), 6)
    np.testing.assert_allclose(found, w, atol=1e-12)
    far = agents(problem, tacita.GradientTracking(step_size=mu), 4000)
    assert np.abs(far - problem.solve()).max() < 1e-8


@pytest.mark.parametrize("weighted", (False, True))
def test_admm_is_exact_and_as_defined(weighted):
    problem = problem_on(weighted)
    links = np.asarray(problem.graph.adjacency().todense())
    degree = links.sum(axis=1)[:, None]
    rho, mu = 0.2, 0.05
    w, lam = np.zeros((6, 3)), np.zeros((6, 3))
    for _ in range(5):
        lam = lam + rho * (degree * w - links @ w)
        last = w
        for _ in range(3):
            right = w / mu - gradients(problem, w) - lam
            right += rho * (degree * last + links @ last)
            w = right / (2 * rho * degree + 1 / mu)
    admm = tacita.GraphADMM(rho=rho, step_size=mu, local_steps=3)
    np.testing.assert_allclose(agents(problem, admm, 5), w, atol=1e-12)
    far = agents(problem, admm, 4000)
    assert np.abs(far - problem.solve()).max() < 1e-8


@pytest.mark.parametrize("mixing", ("metropolis", "weights"))
def test_led_on_a_graph_is_exact_and_as_defined(problem, mixing):
    mix = (np.eye(6) + metropolis(problem)) / 2
    if mixing == "weights":
        problem, mix = mixed_by_weights(problem)
    alpha, beta, steps = 0.02, 0.3, 3
    f, y = np.zeros((6, 3)), np.zeros((6, 3))
    for number in range(5):
        x = mix @ f
        y = y + (f - x) * (number > 0)
        f = x
        for _ in range(steps):
            f = f - alpha * gradients(problem, f) - beta * y
    numbers = dict(step_size=alpha, beta=beta, local_steps=steps, mixing=mixing)
    method = tacita.GraphLED(**numbers)
    np.testing.assert_allclose(agents(problem, method, 5), f, atol=1e-12)
    far = agents(problem, tacita.GraphLED(mixing=mixing), 4000)
    assert np.abs(far - problem.solve()).max() < 1e-8


def mixed_by_weights(problem):
    """Edges of unequal weights, and the mixing matrix that they are."""
    old = problem.graph
    i, j, _ = old.pairs()
    links = np.zeros((6, 6))
    links[i, j] = np.linspace(1.0, 3.0, len(i))
    links += links.T
    laplacian = np.diag(links.sum(axis=1)) - links
    most = np.linalg.eigvalsh(laplacian)[-1]
    weights = links[i, j] / most
    pairs = list(zip(i.tolist(), j.tolist(), strict=True))
    made = tacita.problem.Graph.from_edges(old.nodes, pairs, weights)
    # W = I - L has an eigenvalue of zero, the smallest that is allowed.
    return dataclasses.replace(problem, graph=made), np.eye(6) - laplacian / most


def test_weights_that_are_no_mixing_matrix_are_refused():
    with pytest.raises(tacita.TacitaError, match="divide the weights by"):
        agents(problem_on(True), tacita.GraphLED(mixing="weights"), 1)

"""Hyper-models: closed forms, gradients by hand, starts that save rounds."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.problem import graph, mlp
from tacita.variants import hyper_model
from tacita.variants.hyper_model import Described

N, D, Q = 10, 3, 2


def nodes_of(noise: float = 0.0):
    """Nodes whose truths are Phi z + offset, with rows enough for all to tell."""
    random = np.random.default_rng(0)
    phi, z = random.normal(size=(D, Q + 1)), random.normal(size=(N, Q))
    truth = z @ phi[:, :Q].T + phi[:, Q]
    agent = np.repeat(np.arange(N), [4, 5] * (N // 2))
    x = random.normal(size=(len(agent), D))
    y = np.sum(x * truth[agent], axis=1) + noise * random.normal(size=len(agent))
    ring = graph.ring(N)
    made = tacita.from_arrays(x, y, agent, model="linear", graph=ring)
    return made, z, phi, truth


def test_the_optimum_is_the_least_squares_of_products():
    problem, z, *_ = nodes_of(noise=0.5)
    hyper = hyper_model(problem, z)
    x, y, counts = problem.stacked()
    rows, labels = [], []
    for i in range(N):
        for k in range(counts[i]):
            share = 1 / np.sqrt(counts[i])
            rows.append(share * np.outer(x[i, k], np.append(z[i], 1)).ravel())
            labels.append(share * y[i, k])
    expected = np.linalg.lstsq(np.array(rows), np.array(labels), rcond=None)[0]
    found = hyper.problem.solve()
    np.testing.assert_allclose(found, expected, atol=1e-9)
    starts = hyper.starts(found)
    by_hand = z @ expected.reshape(D, Q + 1)[:, :Q].T + expected.reshape(D, Q + 1)[:, Q]
    np.testing.assert_allclose(starts, by_hand, atol=1e-9)
    run = tacita.simulate(hyper.problem, tacita.ServerGD(), 4000, record=())
    np.testing.assert_allclose(hyper.starts(run), starts, atol=1e-6)


def test_a_node_never_seen_is_started_from_its_description():
    problem, z, phi, truth = nodes_of()
    hyper = hyper_model(problem, z)
    found = hyper.problem.solve()
    np.testing.assert_allclose(hyper.starts(found), truth, atol=1e-8)
    np.testing.assert_allclose(
        hyper.start(found, [0.5, -2.0]), phi @ [0.5, -2.0, 1.0], atol=1e-8
    )


def test_starts_of_their_own_save_rounds():
    problem, z, _, _ = nodes_of(noise=0.02)
    hyper = hyper_model(problem, z)
    algorithm = tacita.FedGD(alpha=1e-4)  # hardly coupled
    exact = algorithm.goal(problem)
    errors = [
        np.abs(
            tacita.simulate(problem, algorithm, 20, start=start, record=()).agents
            - exact
        ).max()
        for start in (None, problem.solve(), hyper.starts(hyper.problem.solve()))
    ]
    assert errors[2] < 0.2 * min(errors[:2])


def test_gradients_of_networks_are_those_of_the_chain_rule():
    random = np.random.default_rng(1)
    local = mlp(D, (2,), None)
    model = Described(local, Q + 1)
    phi = jnp.asarray(random.normal(size=model.dim), jnp.float32)
    z = jnp.asarray([*random.normal(size=Q), 1.0], jnp.float32)
    x = jnp.asarray(random.normal(size=(4, D)), jnp.float32)
    y = jnp.asarray(random.normal(size=4), jnp.float32)
    rows = jnp.concatenate([x, jnp.tile(z, (4, 1))], axis=1)
    # A row of zeros is padding: it weighs nothing, and describes nobody.
    padded = jnp.concatenate([rows, jnp.zeros((1, rows.shape[1]), jnp.float32)])
    share = jnp.asarray([0.25] * 4 + [0.0], jnp.float32)
    own = phi.reshape(-1, Q + 1) @ z
    slope = local.grad(own, x, y, share[:4])
    found = model.grad(phi, padded, jnp.append(y, 0), share)
    np.testing.assert_allclose(found, jnp.outer(slope, z).ravel(), rtol=1e-4, atol=1e-6)
    losses = model.losses(phi, rows, y)
    np.testing.assert_allclose(losses, local.losses(own, x, y), rtol=1e-5)


def test_a_network_as_hyper_model_is_trained_by_federated_averaging():
    problem, z, _, truth = nodes_of()
    hyper = hyper_model(problem, z, mlp(Q, (8,), D))
    algorithm = tacita.FedAvg(step_size=0.05, local_steps=5)
    run = tacita.simulate(hyper.problem, algorithm, 300, record=("loss",))
    assert run.metrics["loss"][-1] < 0.05 * run.metrics["loss"][0]
    near = np.abs(hyper.starts(run) - truth).mean()
    assert near < 0.3 * np.abs(truth).mean()


def test_a_private_run_says_that_descriptions_are_taken_for_public():
    nodes = tacita.problem.synthetic.linear(agents=3, features=2, samples=8)
    made = hyper_model(nodes, np.linspace(-1, 1, 3)[:, None]).problem
    noisy = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.FedAvg(step_size=0.1, oracle=noisy)
    told = tacita.privacy.forecast(made, algorithm, rounds=2).row("coordinator")
    (found,) = (a for a in told.assumptions if "descriptions" in a["statement"])
    assert found["status"] == "believed"


def test_what_does_not_fit_is_refused():
    problem, z, *_ = nodes_of()
    with pytest.raises(tacita.TacitaError, match="descriptions"):
        hyper_model(problem, z[:3])
    with pytest.raises(tacita.TacitaError, match="3 scores"):
        hyper_model(problem, z, mlp(Q, (8,), 4))
    box = tacita.problem.prox.Box(low=0.0, high=1.0)
    held = dataclasses.replace(
        problem, population=dataclasses.replace(problem.population, h=box)
    )
    with pytest.raises(tacita.TacitaError, match="h=Box is of one model"):
        hyper_model(held, z)
    with pytest.raises(tacita.TacitaError, match="expected network"):
        hyper_model(problem, z, "mlp")
    hyper = hyper_model(problem, z)
    with pytest.raises(tacita.TacitaError, match="description"):
        hyper.start(hyper.problem.solve(), [1.0])

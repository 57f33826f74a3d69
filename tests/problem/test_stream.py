"""Online gradients: which rows, how many rounds, and the risk that theory says."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import tacita
from tacita.problem import graph
from tacita.problem.graph import Graph
from tacita.problem.oracles import AgentOracle
from tacita.schedule import Polynomial
from tacita.theory import regression
from tacita.trees import tree_rows


def unequal(counts: tuple[int, ...] = (7, 4)) -> tacita.Problem:
    draw = np.random.default_rng(0)
    rows = sum(counts)
    agent = np.repeat(np.arange(len(counts)), counts)
    return tacita.from_arrays(
        draw.normal(size=(rows, 2)), draw.normal(size=rows), agent, model="linear"
    )


@pytest.mark.parametrize("wrap", [False, True])
def test_rows_come_in_turn_and_once(wrap: bool):
    """Three rounds of two steps on two rows: the last ones are void, or the first."""
    population, oracle = unequal().population, tacita.Stream(size=2, wrap=wrap)
    with jax.enable_x64(True):
        local = population.local(tree_rows(population.rows, 0))
        drawn = [
            np.asarray(
                AgentOracle(oracle.in_round(k), local).draws(jax.random.key(0), 2)
            )
            for k in (1, 2, 3)
        ]
    found = np.concatenate(drawn).ravel().tolist()
    assert found[:6] == [0, 1, 2, 3, 4, 5]
    assert found[6:] == ([0, 1, 2, 3, 4, 5] if wrap else [6, *[-1] * 5])


def test_every_row_is_in_one_gradient():
    """Gradients at zero of all rounds add up to that of all rows, padded or not."""
    for counts in ((6, 6), (6, 8)):
        problem = unequal(counts)
        rounds = 3
        algorithm = tacita.FedAvg(
            step_size=1e-9, local_steps=1, oracle=tacita.Stream(size=2)
        )
        run = tacita.simulate(problem, algorithm, rounds, record=())
        features, labels, _ = problem.stacked()
        mean = [
            -2 * (x[:6] * y[:6, None]).sum(axis=0) / 2
            for x, y in zip(features, labels, strict=True)
        ]
        np.testing.assert_allclose(run.params / -1e-9, np.mean(mean, axis=0), rtol=1e-6)


def test_more_rounds_than_rows_are_refused():
    problem = unequal()
    algorithm = tacita.FedAvg(step_size=0.1, local_steps=2, oracle=tacita.Stream())
    with pytest.raises(
        tacita.TacitaError, match=r"agent 1 has 4; run at most 2 rounds"
    ):
        tacita.simulate(problem, algorithm, 3)
    with pytest.raises(tacita.TacitaError, match="at most 2 rounds"):
        tacita.debug(problem, algorithm, 3)
    tacita.simulate(problem, algorithm, 2, record=())
    with pytest.raises(tacita.TacitaError, match="size=5"):
        too_large = tacita.ServerGD(step_size=0.1, oracle=tacita.Stream(size=5))
        tacita.simulate(problem, too_large, 1)
    for twice in (tacita.FedLin(step_size=0.1), tacita.ProxSkip(step_size=0.1)):
        streamed: Any = tacita.algorithm.base.replace(twice, oracle=tacita.Stream())
        with pytest.raises(tacita.TacitaError, match="rows of a stream are used once"):
            tacita.simulate(problem, streamed, 1)


def test_the_risk_of_online_descent():
    """Exercise 4.3: 3,000 nodes, each alone with its stream, against theory."""
    agents, features, rounds, noise = 3000, 3, 40, 0.5
    draw = np.random.default_rng(1)
    truth = np.array([1.0, -1.0, 0.5])
    x = draw.normal(size=(agents * rounds, features))
    y = x @ truth + noise * draw.normal(size=agents * rounds)
    alone = Graph.from_edges(range(agents), [(0, 1)])
    problem = tacita.from_arrays(
        x, y, np.repeat(np.arange(agents), rounds), model="linear", graph=alone
    )
    steps = Polynomial(start=0.15, power=0.75, decay=0.2)
    algorithm = tacita.FedGD(
        alpha=0.0, step_size=steps, need_connected=False, oracle=tacita.Stream()
    )
    start = float(truth @ truth)
    told = regression.online_risk(steps.over(rounds), features, noise, start)
    for k in (5, rounds):
        run = tacita.simulate(problem, algorithm, k, record=())
        risks = np.sum((run.agents - truth) ** 2, axis=1) + noise**2
        spread = risks.std() / np.sqrt(agents)
        assert abs(risks.mean() - told[k - 1]) < 4 * spread
    # A constant step of that length stays above, as theory says too.
    constant = regression.online_risk(np.full(rounds, 0.15), features, noise, start)
    assert told[-1] < constant[-1]


@pytest.mark.long
def test_a_stream_goes_on_without_the_silent():
    """Round k has block k, whoever took part before."""
    problem = unequal((8, 8, 8))
    algorithm = tacita.GossipSGD(step_size=0.1, oracle=tacita.Stream(size=2))
    ring = tacita.from_arrays(
        np.concatenate(list(problem.stacked()[0])),
        np.concatenate(list(problem.stacked()[1])),
        np.repeat(np.arange(3), 8),
        model="linear",
        graph=graph.ring(3),
    )
    told = (ring, algorithm, 4, 3, 0.5)
    fast, slow = tacita.simulate(*told), tacita.debug(*told)
    np.testing.assert_allclose(fast.agents, slow.agents, rtol=0, atol=1e-12)


def test_agents_with_models_of_their_own_stream_them():
    """An online step is along the gradient of the agent's own loss."""
    x, y = np.array([[1.0], [2.0], [1.0], [2.0]]), np.array([5.0, 5.0, 5.0, 5.0])
    own = {"a": "linear", "b": "huber"}
    both = tacita.from_arrays(x, y, ["a", "a", "b", "b"], model=own)
    online = tacita.ServerGD(step_size=0.1, oracle=tacita.Stream())
    run = tacita.simulate(both, online, 1)
    # The slopes of the first rows at zero: -2 * 5, and -2 delta beyond delta = 1.
    np.testing.assert_allclose(run.params, [0.1 * (10 + 2) / 2])


def test_a_gradient_of_more_rows_than_an_agent_has_is_refused():
    x, y = np.ones((3, 1)), np.ones(3)
    short = tacita.from_arrays(x, y, ["a", "b", "b"], model="linear")
    online = tacita.ServerGD(oracle=tacita.Stream(size=2, wrap=True))
    with pytest.raises(tacita.TacitaError, match="agent 'a'; use size=1"):
        tacita.simulate(short, online, 1)

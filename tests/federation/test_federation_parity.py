"""A federation gives the numbers of a simulation, whatever the post does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacita
from tacita.aggregation import (
    Bridge,
    Buckets,
    CenteredClipping,
    ClippedGossip,
    Krum,
    Median,
    NearestToOwn,
    TrimmedMean,
)
from tacita.algorithm.base import GraphAlgorithm
from tacita.federation.in_process import (
    COORDINATOR,
    Faults,
    InProcess,
    InProcessPost,
    run_in_process,
)
from tacita.federation.server_coordinator import ServerCoordinator
from tacita.problem.oracles import Full
from tacita.robust.detection import SIGNS
from tacita.trees import frozen
from tests.cases import CASES, Case, case_of
from tests.test_contract import participations

ROUNDS = 4
#: Random schedules for each setting: a few, and in `make test-all` more; the ten
#: settings together try 1,000 with 100.
SCHEDULES = int(os.environ.get("TACITA_SCHEDULES", "8"))
some_schedules = pytest.mark.parametrize(
    "schedules", [2, pytest.param(SCHEDULES, marks=pytest.mark.long)]
)
BAD_POST = Faults(loss=0.2, repeat=0.2, most_delay=3.0)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


@pytest.mark.few(14)
@each_case
def test_the_same_iterates_as_a_simulation(case: Case, tmp_path: Path):
    problem = case.problem()
    # Partial participation where it is allowed: everybody is the easier case.
    for k, participation in enumerate(participations(case)[-1:]):
        run = tacita.simulate(
            problem, case.algorithm, ROUNDS, seed=3, participation=participation
        )
        made = InProcess(
            tmp_path / str(k), problem, case.algorithm, ROUNDS, 3, participation
        )
        shared, agents = made.run()
        np.testing.assert_allclose(shared, run.params, rtol=0, atol=1e-12)
        np.testing.assert_allclose(agents, run.agents, rtol=0, atol=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "rule"),
    [("FedAvg", CenteredClipping(radius=0.05)), ("FedPLT", Median())],
)
def test_another_rule_than_the_mean(name: str, rule: Any, tmp_path: Path):
    """FedPLT joins everybody's last letters, of which agents send the changes."""
    case = case_of(name)
    for k, participation in enumerate(participations(case)):
        chosen = {"participation": participation, "aggregation": rule}
        run = tacita.simulate(case.problem(), case.algorithm, ROUNDS, 3, **chosen)
        folder = tmp_path / str(k)
        made = InProcess(folder, case.problem(), case.algorithm, ROUNDS, 3, **chosen)
        shared, agents = made.run(BAD_POST)
        np.testing.assert_allclose(shared, run.params, rtol=0, atol=1e-12)
        np.testing.assert_allclose(agents, run.agents, rtol=0, atol=1e-12)


def test_a_coordinator_sees_letters_as_a_simulation_that_watches(tmp_path: Path):
    case = case_of("FedAvg")
    chosen = {"aggregation": Krum(liars=1), "participation": 5}
    given = (case.problem(), case.algorithm, ROUNDS, 3)
    told = tacita.simulate(*given, watch=True, record=(), **chosen).info["letters"]
    made = InProcess(tmp_path, *given, **chosen)
    parties = made.parties()
    run_in_process(parties, InProcessPost())
    coordinator = parties[COORDINATOR]
    assert isinstance(coordinator, ServerCoordinator)
    seen = coordinator.seen
    for k, name in enumerate(made.names):
        heard = np.isfinite(told["rank"][k])
        assert (name in seen) == heard[-1]
        if heard[-1]:
            for sign in SIGNS:
                assert seen[name][sign] == pytest.approx(told[sign][k, -1], rel=1e-4)
            assert seen[name]["letters"] == np.sum(heard)
            assert seen[name]["times_used"] == np.nansum(told["used"][k])
    # Nothing is held of an exchange that is closed.
    assert not coordinator._tally._came  # pyright: ignore


@pytest.mark.parametrize(
    "rule",
    [
        ClippedGossip(drop=1),
        Bridge(trim=1),
        NearestToOwn(liars=1),
        Buckets(size=2, rule=TrimmedMean(trim=0)),
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_rules_at_the_nodes_of_a_graph(rule: Any, tmp_path: Path):
    # One node has fewer neighbours than the others: its slots are filled up.
    edges = [(i, j) for i in range(5) for j in range(i)]
    graph = tacita.problem.graph.Graph.from_edges(range(5), edges[1:])
    problem = tacita.problem.synthetic.linear(
        agents=5, features=2, samples=6, graph=graph
    )
    algorithm = tacita.FedGD(alpha=1.0)
    chosen = {"participation": 0.7, "aggregation": rule}
    run = tacita.simulate(problem, algorithm, ROUNDS, 3, record=(), **chosen)
    made = InProcess(tmp_path, problem, algorithm, ROUNDS, 3, **chosen)
    _, agents = made.run(BAD_POST)
    np.testing.assert_allclose(agents, run.agents, rtol=0, atol=1e-15)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "case",
    [
        case_of("FedAvg"),
        case_of("FedPLT"),
        case_of("TAMUNA", 1),
        case_of("FedGD"),
        case_of("DPNorm"),
    ],
    ids=lambda c: c.name,
)
@some_schedules
def test_a_bad_post_changes_nothing(case: Case, schedules: int, tmp_path_factory):
    for participation in participations(case):
        try_schedules(case, participation, tmp_path_factory, schedules)


def try_schedules(case: Case, participation: Any, folders: Any, schedules: int) -> None:
    problem = case.problem()

    def made() -> InProcess:
        folder = folders.mktemp("bad")
        return InProcess(folder, problem, case.algorithm, 5, 3, participation)

    calm = made().run()

    @settings(max_examples=schedules, deadline=None, derandomize=True)
    @given(st.integers(0, 2**32))
    def always(seed: int):
        shared, agents = made().run(BAD_POST, seed)
        assert shared.tobytes() == calm[0].tobytes()
        assert agents.tobytes() == calm[1].tobytes()

    always()


def test_sealed_letters_carry_the_same_numbers(tmp_path: Path):
    for k, case in enumerate((case_of("FedPLT"), case_of("FedGD"))):
        problem = case.problem()
        plain = InProcess(tmp_path / f"{k}p", problem, case.algorithm, 3, 1, 1.0)
        sealed = InProcess(
            tmp_path / f"{k}s", problem, case.algorithm, 3, 1, 1.0, sealed=True
        )
        (a, b), (c, d) = plain.run(), sealed.run(BAD_POST, 5)
        assert a.tobytes() == c.tobytes() and b.tobytes() == d.tobytes()


@frozen
class Gossip(GraphAlgorithm):
    """Sends another letter along every edge: its model, tilted by the edge's sign."""

    oracle: Any = Full()
    delivery: ClassVar[str] = "slots"
    source: ClassVar[str] = "for tests only"

    def init(self, w, edges):
        return w, self._letters(w, edges)

    def _letters(self, w, edges):
        tilt = 1 + 0.1 * edges.sign * jnp.arange(len(edges.sign))
        return jnp.where(edges.mask[:, None], tilt[:, None] * w, 0)

    def local(self, key, oracle, edges, state, inbox):
        noise = 0.01 * jax.random.normal(key, state.shape, state.dtype)
        pull = jnp.sum(edges.weight[:, None] * inbox, axis=0) / edges.neighbour_count
        w = 0.5 * state + 0.4 * pull - 0.1 * oracle.once(key, state) + noise
        return w, self._letters(w, edges)

    def model(self, state):
        return state


@pytest.mark.long
def test_one_letter_per_edge(tmp_path: Path):
    made = tacita.problem.synthetic.logistic(
        agents=6, features=3, samples=12, graph=tacita.problem.graph.star(6), l2=0.1
    )
    for k, participation in enumerate((1.0, 2, 0.4)):
        run = tacita.simulate(made, Gossip(), 6, seed=2, participation=participation)
        folder = tmp_path / str(k)
        federation = InProcess(folder, made, Gossip(), 6, 2, participation)
        _, agents = federation.run(BAD_POST, k)
        np.testing.assert_allclose(agents, run.agents, rtol=0, atol=1e-12)

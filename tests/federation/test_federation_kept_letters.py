"""A graph learnt in a federation: letters that are charged, kept, compared."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.federation import PostRoom, graph_table
from tacita.federation.in_process import COORDINATOR, Faults, InProcess
from tacita.federation.setting import graph_of
from tacita.privacy import Ledger
from tacita.problem import synthetic
from tests.federation.towns import NAMES, Town, run_of, simulated

BUDGET = {"epsilon": 2.0, "delta": 1e-5, "norm": 1.0}


@pytest.mark.long
def test_letters_are_kept_charged_and_make_the_next_graph(tmp_path: Path):
    about = {"rounds": 1, "shared_seed": 5, "keep_letters": True}
    first = run_of(privacy=BUDGET, run=about, name="compare")
    with Town(tmp_path, PostRoom(), max_epsilon=4.0) as town:
        met = town.run(first)["coordinator"]
        letters = met.models["letters"]
        # What agents sent is what a simulation says that they send.
        np.testing.assert_allclose(letters, simulated(first).agents, atol=1e-12)
        shared = met.models["shared"]
        np.testing.assert_allclose(letters.mean(axis=0), shared, atol=1e-12)
        assert met.numbers["agents"] == NAMES
        with np.load(met.folder / "models.npz") as file:
            np.testing.assert_array_equal(file["letters"], letters)
        table = graph_table(NAMES, letters, k=1)
        assert 2 <= len(table["edges"]) <= 3
        second = run_of(rounds=3, privacy=BUDGET, graph=table, name="train")
        second["algorithm"] = {"name": "GossipSGD", "step_size": 0.3}
        done = town.run(second)
    for name in NAMES:
        assert np.isfinite(done[name].numbers["loss_own"])
        with Ledger(tmp_path / f"{name}-home" / "ledger.db", read_only=True) as ledger:
            releases = [row for row in ledger.rows() if row.kind == "release"]
            seen = {(row.observer, row.round) for row in releases}
            spent = ledger.spent(1e-5)[name, "everybody"]
        assert ("coordinator", 1) in seen and ("neighbour", 3) in seen
        first_run = releases[0].run
        told = {row.observer for row in releases if row.run == first_run}
        assert told == {"coordinator"}
        # The graph goes to neighbours too; all observers count as one person, against
        # whom it has its price beside the training.
        assert 2.0 < spent <= 4.0


def run_with(table) -> Any:
    return SimpleNamespace(tables={"graph": table}, agents=("a", "b", "c"))


def test_a_table_has_the_weights_of_its_edges():
    table = graph_table(["c", "a", "b"], [[0.0], [9.0], [1.0]], k=1, weights="inverse")
    made = graph_of(run_with(table))
    assert made is not None
    weights = {tuple(e): w for e, w in zip(*table.values(), strict=True)}
    assert len(set(weights.values())) == 2
    for i, j, w in zip(*made.pairs(), strict=True):
        pair = made.nodes[i], made.nodes[j]
        assert weights.get(pair, weights.get(pair[::-1])) == w
    for bad, why in (
        ({"edges": table["edges"], "weights": [1.0]}, "weights"),
        ({"kind": "ring", "weights": [1.0]}, "name the edges too"),
    ):
        with pytest.raises(tacita.TacitaError, match=why):
            graph_of(run_with(bad))


def test_kept_letters_survive_a_bad_post_and_a_crash(tmp_path: Path):
    problem = synthetic.logistic(agents=4, features=3, samples=12, seed=2)
    algorithm = tacita.FedAvg(step_size=0.3, local_steps=2)
    made = InProcess(tmp_path, problem, algorithm, 2, seed=3, keep_letters=True)
    made.run(Faults(loss=0.2, repeat=0.2, most_delay=3.0))
    run = tacita.simulate(problem, algorithm, 2, seed=3)
    again = made.make(COORDINATOR)  # from its checkpoint, when all is over
    again.start(0.0)
    np.testing.assert_allclose(again.models()["letters"], run.agents, atol=1e-12)


def test_who_is_silent_has_no_letter(tmp_path: Path):
    problem = synthetic.logistic(agents=4, features=3, samples=12, seed=2)
    algorithm = tacita.FedAvg(step_size=0.3)
    about = {"participation": 2, "keep_letters": True}
    made = InProcess(tmp_path, problem, algorithm, 1, seed=3, **about)
    made.run()
    again = made.make(COORDINATOR)
    again.start(0.0)
    letters = again.models()["letters"]
    assert np.isnan(letters).all(axis=1).sum() == 2
    with pytest.raises(tacita.TacitaError, match="NaN"):
        graph_table(list("abcd"), letters)


@pytest.mark.parametrize(
    "algorithm, words",
    [
        (tacita.FedPLT(rho=1.0), "those of FedPLT are changes"),
        (tacita.FedLin(step_size=0.1), "those of FedLin"),
        (tacita.FedGD(alpha=0.1, step_size=0.1), "needs a coordinator"),
    ],
)
def test_letters_that_are_not_whole_are_not_kept(algorithm, words, tmp_path: Path):
    ring = tacita.problem.graph.ring(4)
    problem = synthetic.logistic(agents=4, features=3, samples=12, graph=ring)
    with pytest.raises(tacita.TacitaError, match=words):
        InProcess(tmp_path, problem, algorithm, 1, keep_letters=True)

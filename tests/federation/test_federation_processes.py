"""Real processes over a real broker on loopback: parity, refusals, deaths."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tacita
from tacita.cli.app import app
from tacita.privacy import Ledger
from tests.federation.processes import NAMES, Chaos, Town, run_of, simulated

#: Runs with random deaths; with more than one, ten deaths in each.
CHAOS_RUNS = int(os.environ.get("TACITA_CHAOS_RUNS", "1"))
BUDGET = {"epsilon": 5.0, "delta": 1e-5, "norm": 1.0}
PRIVATE = run_of(rounds=60, privacy=BUDGET)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A private run that nobody disturbed."""
    with Town(tmp_path_factory.mktemp("calm"), PRIVATE) as town:
        town.wait(150)
    return town


def test_processes_give_the_numbers_of_a_simulation(calm: Town):
    expected = simulated(PRIVATE)
    shared = calm.model("coordinator", "shared")
    np.testing.assert_allclose(shared, expected.params, rtol=0, atol=1e-12)
    for i, name in enumerate(NAMES):
        own = calm.model(name, "own")
        np.testing.assert_allclose(own, expected.agents[i], rtol=0, atol=1e-12)
        assert calm.model(name, "shared").tobytes() == shared.tobytes()


def test_no_secret_is_logged_and_the_status_tells(calm: Town):
    for name in NAMES:
        home = calm.folder / f"{name}-home"
        assert (home / "secret.locked").stat().st_mode & 0o777 == 0o600
        told = json.loads(calm.invitations[name].read_text())
        for secret in (told["key"], *told["keys"].values()):
            assert secret not in calm.log(name)
    words = ["federation", "status", str(calm.folder / "ada-home")]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0
    assert "ada: finished, round 60 of 60" in answer.output
    assert "budget: epsilon 5 of 5 spent" in answer.output


def require_all_charged(town: Town) -> None:
    for name in NAMES:
        assert town.result(name)["epsilon_spent"] <= BUDGET["epsilon"]
        with Ledger(town.folder / f"{name}-home" / "ledger.db") as ledger:
            released = [row for row in ledger.rows() if row.kind == "release"]
        assert [row.round for row in released] == list(range(1, 61))


@pytest.mark.parametrize("seed", range(CHAOS_RUNS))
def test_deaths_of_anybody_change_no_bit_and_the_ledger_counts(calm, tmp_path, seed):
    require_all_charged(calm)
    chaos = Chaos(seed, kills=5 if CHAOS_RUNS == 1 else 10, most_rounds=5)
    with Town(tmp_path, PRIVATE) as town:
        town.wait(300, chaos)
    assert len(chaos.victims) == chaos.kills
    require_all_charged(town)
    shared = calm.model("coordinator", "shared")
    assert town.model("coordinator", "shared").tobytes() == shared.tobytes()


def test_a_ring_needs_no_coordinator(tmp_path: Path):
    run = run_of(
        algorithm={"name": "FedRelax", "alpha": 0.4, "damping": 0.1},
        graph={"kind": "ring"},
    )
    with Town(tmp_path, run) as town:
        town.wait(120)
        ring = tacita.problem.graph.ring(3).named(NAMES)
        expected = simulated(run, ring)
        for i, name in enumerate(NAMES):
            own = town.model(name, "own")
            np.testing.assert_allclose(own, expected.agents[i], rtol=0, atol=1e-12)


def test_a_refused_run_is_withdrawn_and_the_next_one_goes(tmp_path: Path):
    modest = {**BUDGET, "epsilon": 0.4}
    town = Town(tmp_path, PRIVATE)
    town.allow("cyd", max_epsilon=0.5)
    with town:
        assert town.children["coordinator"].wait(90) == 2
        said = town.log("coordinator")
        assert "cyd refuses the run: epsilon=5.0 is above the 0.5 allowed here" in said
        # The others had accepted; they are free for what is offered next.
        town.propose(run_of(rounds=3, privacy=modest, name="modest"))
        town.start("coordinator")
        town.wait(90)
        assert town.result("ada")["name"] == "modest"
        assert town.result("cyd")["epsilon_spent"] <= 0.4
        # cyd's ledger has room for one such run, and says so before it begins.
        town.propose(run_of(rounds=3, privacy=modest, name="again"))
        for who in ("coordinator", *NAMES):
            town.start(who)
        assert town.children["coordinator"].wait(90) == 2
    assert "with this run epsilon would come to" in town.log("coordinator")


def test_somebody_who_comes_late_finds_the_run_under_way(tmp_path: Path):
    run = run_of(rounds=200)
    run["run"] |= {"least_agents": 2, "deadline": 0.3}
    town = Town(tmp_path, run)
    with town.starting("broker", "coordinator", "ada", "bob"):
        town.wait_for_round(2)
        town.start("cyd")
        town.wait(180)
    shared = town.model("coordinator", "shared")
    assert town.model("cyd", "shared").tobytes() == shared.tobytes()
    # It answered questions, and did not only hear of the end.
    told = json.loads((tmp_path / "cyd-home" / "status.json").read_text())
    assert told["round"] > 2

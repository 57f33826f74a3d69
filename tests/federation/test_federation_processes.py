"""A federation over a real broker, in threads and in processes: parity, deaths."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tacita
from tacita.cli import coordinate, join
from tacita.cli.app import app
from tacita.federation import Invitation, Post, PostRoom, Result
from tacita.privacy import Ledger
from tests.federation.towns import NAMES, Chaos, Programs, Town, run_of, simulated
from tests.patience import HANG

#: Runs with random deaths; with more than one, ten deaths in each.
CHAOS_RUNS = int(os.environ.get("TACITA_CHAOS_RUNS", "1"))
BUDGET = {"epsilon": 5.0, "delta": 1e-5, "norm": 1.0}
PRIVATE = run_of(rounds=60, privacy=BUDGET)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A private run that nobody disturbed, in threads: the town and the results."""
    with Town(tmp_path_factory.mktemp("calm")) as town:
        return town, town.run(PRIVATE)


def test_threads_give_the_numbers_of_a_simulation(calm):
    _, results = calm
    expected = simulated(PRIVATE)
    shared = results["coordinator"].models["shared"]
    np.testing.assert_allclose(shared, expected.params, rtol=0, atol=1e-12)
    for i, name in enumerate(NAMES):
        own = results[name].models["own"]
        np.testing.assert_allclose(own, expected.agents[i], rtol=0, atol=1e-12)
        assert results[name].models["shared"].tobytes() == shared.tobytes()
        kept = json.loads((results[name].folder / "result.json").read_text())
        assert kept == results[name].numbers and kept["name"] == "run"


def test_no_secret_is_told_and_the_status_tells(calm):
    town, _ = calm
    for name in NAMES:
        home = town.folder / f"{name}-home"
        assert (home / "secret.locked").stat().st_mode & 0o777 == 0o600
        told = json.loads(town.hub.invitations[name].read_text())["secrets"]
        assert town.said[name]
        for secret in (told["access"], *told["private"].values()):
            assert secret not in "\n".join(town.said[name])
    words = ["federation", "status", str(town.folder / "ada-home")]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0
    assert "ada: finished, round 60 of 60" in answer.output
    assert "budget: epsilon 5 of 5 spent" in answer.output


def require_all_charged(folder: Path, results: dict) -> None:
    for name in NAMES:
        assert results[name]["epsilon_spent"] <= BUDGET["epsilon"]
        with Ledger(folder / f"{name}-home" / "ledger.db") as ledger:
            released = [row for row in ledger.rows() if row.kind == "release"]
        # Reading the rows pays for the first round, whose letter then costs nothing.
        assert [row.round for row in released] == [1, *range(1, 61)]
        assert released[1].mu_squared == 0.0 < released[0].mu_squared  # pyright: ignore


def test_the_commands_take_files_and_tell_where_the_result_is(tmp_path: Path, capsys):
    town, pool = Programs(tmp_path, run_of(rounds=3)), ThreadPoolExecutor()
    with town.hub as hub, pool:
        for name in NAMES:
            pool.submit(
                join.join,
                hub.invitations[name],
                data=tmp_path / f"{name}.csv",
                folder=tmp_path / f"{name}-home",
                policy=tmp_path / f"{name}.policy.toml",
                wait=HANG,
            )
        coordinate.coordinate(
            tmp_path / "run.toml",
            invitation=hub.invitations["coordinator"],
            folder=tmp_path / "coordinator-home",
            wait=HANG,
        )
    shared = town.model("coordinator", "shared")
    expected = simulated(run_of(rounds=3))
    np.testing.assert_allclose(shared, expected.params, rtol=0, atol=1e-12)
    said = capsys.readouterr().out
    for who in ("coordinator", *NAMES):
        assert f"see it with: tacita report {town.home(who)}" in said
    assert "ada is connected to" in said and "cyd accepts" in said


@pytest.mark.long
def test_programs_of_their_own_give_the_bits_of_threads(tmp_path: Path):
    run = run_of(rounds=3)
    with Programs(tmp_path / "programs", run) as programs:
        programs.wait(HANG)
    with Town(tmp_path / "threads", PostRoom()) as town:
        expected = town.run({**run, "name": "run"})
    for who in ("coordinator", *NAMES):
        for which, model in expected[who].models.items():
            assert programs.model(who, which).tobytes() == model.tobytes()
    for name in NAMES:
        told = json.loads(programs.hub.invitations[name].read_text())["secrets"]
        for secret in (told["access"], *told["private"].values()):
            assert secret not in programs.log(name)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(CHAOS_RUNS))
def test_deaths_of_anybody_change_no_bit_and_the_ledger_counts(calm, tmp_path, seed):
    town, results = calm
    require_all_charged(town.folder, {name: results[name].numbers for name in NAMES})
    chaos = Chaos(seed, kills=5 if CHAOS_RUNS == 1 else 10, most_rounds=5)
    with Programs(tmp_path, PRIVATE) as programs:
        programs.wait(300, chaos)
    assert len(chaos.victims) == chaos.kills
    require_all_charged(tmp_path, {name: programs.result(name) for name in NAMES})
    shared = results["coordinator"].models["shared"]
    assert programs.model("coordinator", "shared").tobytes() == shared.tobytes()


def test_a_ring_needs_no_coordinator(tmp_path: Path):
    relax = {"name": "FedRelax", "alpha": 0.4, "damping": 0.1}
    run = run_of(algorithm=relax, graph={"kind": "ring"})
    with Town(tmp_path, PostRoom()) as town:
        results = town.run(run)
    assert results["coordinator"] is None
    expected = simulated(run, tacita.problem.graph.ring(3).named(NAMES))
    for i, name in enumerate(NAMES):
        own = results[name].models["own"]
        np.testing.assert_allclose(own, expected.agents[i], rtol=0, atol=1e-12)
        kept = tacita.load_run(results[name].folder)
        assert kept.params.tobytes() == own.tobytes() and kept.info["turns"] == [6]
        assert kept.metrics["round"][-1] == 6
        assert set(kept.info["communication"]) == {"letters", "bytes"}
    answer = CliRunner().invoke(
        app, ["federation", "status", str(tmp_path / "coordinator-home")]
    )
    assert "their own folders tell" in answer.output


def test_a_refused_run_is_withdrawn_and_the_next_one_goes(tmp_path: Path):
    modest = {**BUDGET, "epsilon": 0.4}
    with Town(tmp_path, PostRoom()) as town:
        town.policies["cyd"] = {"allow_shared_seed": True, "max_epsilon": 0.5}
        agents = {name: town.join(name) for name in NAMES}
        with pytest.raises(tacita.TacitaError, match="cyd refuses the run; its own"):
            town.coordinate(PRIVATE)
        # Why, only its own people are told.
        assert "refused: epsilon=5.0 is above the 0.5 allowed here" in town.said["cyd"]
        # The others had accepted; they are free for what is offered next.
        town.coordinate(run_of(rounds=3, privacy=modest, name="modest"))
        results = {name: agent.result(HANG).numbers for name, agent in agents.items()}
        assert results["ada"]["name"] == "modest"
        assert results["cyd"]["epsilon_spent"] <= 0.4
        # cyd's ledger has room for one such run, and says so before it begins.
        again = run_of(rounds=3, privacy=modest, name="again")
        cyd = town.join("cyd")
        with pytest.raises(tacita.TacitaError, match="cyd refuses the run"):
            town.coordinate(again)
        assert "epsilon would come to" in town.said["cyd"][-1]
        small = {**BUDGET, "epsilon": 0.05}
        town.coordinate(run_of(1, privacy=small, name="small", agents=["cyd"]))
        assert cyd.result(HANG).numbers["name"] == "small"


class Counted(PostRoom):
    """Says when so many letters were sent to somebody."""

    def __init__(self, to: str, letters: int) -> None:
        super().__init__()
        self._to, self._left, self.enough = to, letters, threading.Event()

    def __call__(self, invitation: Invitation) -> Post:
        post = super().__call__(invitation)
        deliver = post.deliver

        def counted(to: str, content: bytes) -> None:
            deliver(to, content)
            self._left -= to == self._to
            if self._left <= 0:
                self.enough.set()

        post.deliver = counted
        return post


@pytest.mark.long
def test_somebody_who_comes_late_finds_the_run_under_way(tmp_path: Path):
    run = run_of(rounds=60)
    run["run"] |= {"least_agents": 2, "deadline": 0.3}
    room = Counted("ada", letters=8)  # more than an offer, and the first two questions
    with Town(tmp_path, room) as town:
        early = [town.join(name) for name in ("ada", "bob")]
        shared: list[Result | None] = []
        centre = threading.Thread(target=lambda: shared.append(town.coordinate(run)))
        centre.start()
        assert room.enough.wait(HANG)
        late = town.join("cyd").result(HANG)
        centre.join(HANG)
        assert [agent.result(HANG).numbers["name"] for agent in early] == ["run"] * 2
    assert shared[0] is not None
    ours = shared[0].models["shared"]
    assert late.models["shared"].tobytes() == ours.tobytes()
    # It answered questions, and did not only hear of the end.
    told = json.loads((tmp_path / "cyd-home" / "status.json").read_text())
    assert told["round"] > 2

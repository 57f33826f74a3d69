"""An agent as a service: run after run, ended kindly, with a log that machines read."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import tacita
from tacita.cli.app import app
from tacita.federation import Agent, Hub, PostRoom, coordinate, correspondence
from tacita.federation.invitation import Invitation
from tests.federation.towns import (
    LENIENT,
    NAMES,
    Town,
    launch,
    run_of,
    table_of_rows,
)
from tests.patience import HANG


def test_agents_stay_for_the_next_run_until_they_are_ended(tmp_path: Path):
    town = Town(tmp_path, PostRoom())
    agents = {
        name: Agent(
            town.hub.invitations[name],
            table_of_rows(name),
            LENIENT,
            **town.options(name),
        )
        for name in NAMES
    }
    folders = []
    with town, ThreadPoolExecutor() as pool:
        stays = [pool.submit(agent.stay) for agent in agents.values()]
        for name in ("first", "second"):
            result = town.coordinate(run_of(2, name=name))
            assert result is not None
            folders.append(result.folder.name)
        for name in NAMES:  # the result is kept a moment after the coordinator's
            kept = tmp_path / f"{name}-home" / folders[1] / "result.json"
            while not kept.exists():
                assert not any(one.done() for one in stays)
                time.sleep(0.01)
        for agent in agents.values():
            agent.end()
        for one in stays:
            one.result(HANG)
    for name in NAMES:
        said = town.said[name]
        assert said[-1] == "ended as asked; what was begun is kept"
        assert sum("the run is over" in line for line in said) == 2
        assert not any("over already" in line for line in said)
        told = [tacita.load_run(tmp_path / f"{name}-home" / f) for f in folders]
        assert [run.name for run in told] == ["first", "second"]
    status = CliRunner().invoke(app, ["federation", "status", f"{tmp_path}/ada-home"])
    assert status.output.startswith("ada: waits for a run")
    over = CliRunner().invoke(
        app, ["federation", "status", f"{tmp_path}/coordinator-home"]
    )
    assert "finished" in over.output and "yes" not in over.output


def test_waiting_includes_the_wait_for_a_broker(tmp_path: Path, monkeypatch):
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=1)  # nobody listens there
    tried: list[float] = []

    def refusing(me: Invitation, patience: float) -> None:
        tried.append(patience)
        raise tacita.TacitaError("no connection to the broker")

    def now() -> float:
        return 100.0 + sum(tried)

    monkeypatch.setattr("tacita.federation.nats_post.NatsPost", refusing)
    monkeypatch.setattr(correspondence, "time", SimpleNamespace(monotonic=now))
    ada = {"folder": tmp_path / "home", "tell": print}
    with pytest.raises(tacita.TacitaError, match="no connection"):
        Agent(made.invitations["ada"], {}, LENIENT, **ada).take_part(25.0)
    assert tried == [10.0, 10.0, 5.0]
    tried.clear()
    with pytest.raises(tacita.TacitaError, match="no connection"):
        centre = {"folder": tmp_path / "centre", "tell": print}
        coordinate(run_of(2), made.invitations["coordinator"], 14.0, **centre)
    assert tried == [10.0, 4.0]


def test_a_log_of_json_has_a_line_an_object(tmp_path: Path, monkeypatch):
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=1)
    data = tmp_path / "ada.csv"
    table_of_rows("ada").to_csv(data, index=False)

    def refusing(me: Invitation, patience: float) -> None:
        raise tacita.TacitaError("no connection to the broker")

    monkeypatch.setattr("tacita.federation.nats_post.NatsPost", refusing)
    words = ["join", made.invitations["ada"], "--data", data, "--trust-everything"]
    words += ["--folder", tmp_path / "home", "--wait", 0.01, "--log"]
    answer = CliRunner().invoke(app, [str(w) for w in (*words, "json")])
    assert answer.exit_code == 2
    told = [json.loads(line) for line in answer.output.strip().split("\n")]
    assert told[-1]["level"] == "error" and "no connection" in told[-1]["message"]
    assert all(set(one) == {"time", "level", "message"} for one in told)
    answer = CliRunner().invoke(app, [str(w) for w in (*words, "xml")])
    assert answer.exit_code == 2 and "log" in answer.output


@pytest.mark.long
def test_a_service_without_a_broker_ends_by_sigterm(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=1)
    data, log = tmp_path / "ada.csv", tmp_path / "log"
    table_of_rows("ada").to_csv(data, index=False)
    words = ["join", made.invitations["ada"], "--data", data, "--trust-everything"]
    words += ["--folder", tmp_path / "home", "--stay", "--log", "json"]
    child = launch([str(word) for word in words], log)
    while not log.read_text():  # it says what is wrong, and tries again
        assert child.poll() is None
        time.sleep(0.05)
    child.terminate()
    assert child.wait(HANG) == 0
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert "no connection to the broker" in told[0]["message"]
    assert told[-1]["message"] == "ended as asked; what was begun is kept"

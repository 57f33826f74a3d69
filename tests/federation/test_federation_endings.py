"""One program in a folder, and results that outlive whoever has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tacita
from tacita.disk import LOCK, alone_in
from tacita.federation import Agent, PostRoom, program
from tacita.federation.description import Description
from tacita.federation.driving import run_party
from tacita.federation.in_process import (
    COORDINATOR,
    InProcess,
    InProcessPost,
    run_in_process,
)
from tacita.federation.own_rows import blank_problem
from tacita.federation.setting import setting_of
from tests.cases import case_of
from tests.federation.towns import LENIENT, NAMES, Town, run_of, table_of_rows
from tests.patience import HANG

FED_PLT = case_of("FedPLT")


def test_a_folder_has_one_program(tmp_path: Path):
    with alone_in(tmp_path):
        with pytest.raises(tacita.TacitaError, match=f"process {os.getpid()}"):
            with alone_in(tmp_path):
                pass
    with alone_in(tmp_path):
        pass  # free again


def test_the_lock_ends_with_its_program(tmp_path: Path):
    words = (
        "import sys, time; from pathlib import Path\n"
        "from tacita.disk import alone_in\n"
        "with alone_in(Path(sys.argv[1])):\n"
        "    print('in', flush=True); time.sleep(60)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", words, str(tmp_path)], stdout=subprocess.PIPE
    )
    assert child.stdout is not None and child.stdout.readline() == b"in\n"
    with pytest.raises(tacita.TacitaError, match=f"process {child.pid}"):
        with alone_in(tmp_path):
            pass
    child.kill()
    child.wait(HANG)
    child.stdout.close()
    with alone_in(tmp_path):
        assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"


def test_a_second_program_is_refused_in_one_line(tmp_path: Path):
    with Town(tmp_path, PostRoom()) as town:
        second = Agent(
            town.hub.invitations["ada"],
            table_of_rows("ada"),
            LENIENT,
            folder=tmp_path / "ada-home",
            post=town.post,
        )
        with second.alone():
            for refused in (lambda: town.join("ada").result(HANG), second.abandon):
                with pytest.raises(tacita.TacitaError, match="in use by another"):
                    refused()


class Killed(BaseException):
    """The program is gone."""


def test_killed_after_done_the_result_is_still_there(tmp_path: Path, monkeypatch):
    """The agent confirms the end and dies before it has kept anything."""

    def drive_and_die(party: Any, *more: Any, **first: Any) -> bool:
        over = run_party(party, *more, **first)
        if party.name == "ada":
            raise Killed
        return over

    run = run_of(rounds=3)
    with Town(tmp_path, PostRoom()) as town:
        monkeypatch.setattr(program, "run_party", drive_and_die)
        agents = {name: town.join(name) for name in NAMES}
        shared = town.coordinate(run)
        with pytest.raises(Killed):
            agents["ada"].result(HANG)
        assert not list((tmp_path / "ada-home").glob("*/result.json"))
        monkeypatch.undo()
        # The coordinator is gone, and nobody else is there.
        again = town.join("ada").result(HANG)
    assert shared is not None
    ours = shared.models["shared"]
    assert again.models["shared"].tobytes() == ours.tobytes()
    assert agents["bob"].result(HANG).models["shared"].tobytes() == ours.tobytes()


def test_a_coordinator_started_again_serves_a_finished_model(tmp_path: Path):
    made = InProcess(tmp_path, FED_PLT.problem(), FED_PLT.algorithm, 4, linger=3.0)
    parties: Any = made.parties()
    lost = parties["agent-0"]
    take = lost._take

    def deaf_to_the_end(letter: Any, now: float) -> None:
        if letter.identity.kind != "end":
            take(letter, now)

    lost._take = deaf_to_the_end
    others = {name: party for name, party in parties.items() if name != "agent-0"}
    post = InProcessPost()

    class Absent:
        finished = True

        def __getattr__(self, name: str) -> Any:
            return getattr(lost, name)

    run_in_process({**others, "agent-0": Absent()}, post)  # pyright: ignore
    assert post.now >= 3.0 and parties[COORDINATOR].finished and not lost.finished
    late: Any = {name: made.make(name) for name in (COORDINATOR, *made.names)}
    run_in_process(late, InProcessPost())
    expected = parties[COORDINATOR].model()
    assert late["agent-0"].shared().tobytes() == expected.tobytes()


def test_how_long_the_end_is_served_is_the_runs_to_say(tmp_path: Path):
    for linger, graph in ((7.0, {}), (8.0, {"graph": {"kind": "ring"}})):
        run = run_of(run={"rounds": 2, "linger": linger}, **graph)
        if graph:
            run["algorithm"] = {"name": "FedRelax", "alpha": 0.4, "damping": 0.1}
        told = Description("town", "run", "coordinator", tuple(NAMES), run)
        assert setting_of(told, blank_problem(told)).roles.terms.linger == linger

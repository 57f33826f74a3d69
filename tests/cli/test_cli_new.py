"""`tacita new`: everything in the folder that it makes works as its README says."""

import csv
import json
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

import tacita
from tacita.federation import Policy, broker
from tacita.federation.description import Description
from tests.federation.test_federation_deploy import require_command
from tests.federation.test_federation_page import Reader
from tests.patience import HANG

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clinic(tacita_, place):
    assert "cd clinic" in tacita_.ok("new", "clinic")
    return place / "clinic"


def test_its_run_files_are_valid_and_its_policy_allows_four_runs(clinic):
    job = tacita.job.read(clinic / "run.toml")
    assert job.problem.n_agents == 3 and job.name == "clinic"
    table = tomllib.loads((clinic / "federation.toml").read_text())
    table.pop("name")
    table["privacy"]["observer"] = "coordinator"
    agents = ("oslo", "tampere", "turku")
    proposed = Description("clinic", "first", "coordinator", agents, table)
    policy = Policy.read(clinic / "policy.toml")
    assert policy.objection(proposed) is None
    assert policy.max_epsilon == 4 * table["privacy"]["epsilon"]


def test_its_rows_are_the_same_on_every_machine(clinic, tacita_):
    tables = {path.stem: path.read_text() for path in (clinic / "rows").iterdir()}
    assert sorted(tables) == ["all", "new", "oslo", "tampere", "turku"]
    assert tables["oslo"].splitlines()[:2] == ["age,pressure,glucose,ill", FIRST]
    assert len(set(tables.values())) == 5
    rows = list(csv.DictReader(tables["all"].splitlines()))
    assert {row["hospital"] for row in rows} == {"oslo", "tampere", "turku"}
    for hospital in ("oslo", "tampere", "turku"):
        ill = [row["ill"] for row in rows if row["hospital"] == hospital]
        assert len(ill) == 300 and 0.2 < ill.count("1") / 300 < 0.8
    assert "ill" not in tables["new"].splitlines()[0]


#: As drawn on the machine on which this test was written.
FIRST = "0.54,-1.8,-1.08,0"


def test_its_unit_and_compose_file_are_those_of_the_project(clinic):
    unit = "tacita-agent@.service"
    kept = (ROOT / "deploy" / "systemd" / unit).read_text()
    assert (clinic / unit).read_text() == kept
    text = (clinic / "compose.yaml").read_text()
    commands = re.findall(r"command: (.*)", text)
    assert len(commands) == 5 and "{{" not in text
    for words in commands:
        require_command(["tacita", *words.split()])


def test_its_readme_names_commands_that_exist_and_no_others(clinic):
    text = (clinic / "README.md").read_text()
    found = [line.split() for line in text.split("\n") if line.startswith("tacita ")]
    for words in found:
        require_command(words)
    told = {words[1] for words in found}
    assert told >= {
        "run",
        "privacy",
        "join",
        "coordinate",
        "watch",
        "report",
        "predict",
    }
    for file in re.findall(r"`([\w@.-]+\.(?:toml|yaml|service))`", text):
        assert file == "private.toml" or (clinic / file).exists(), file


def test_a_folder_that_holds_something_is_refused(tacita_, place):
    (place / "full").mkdir()
    (place / "full" / "mine.txt").write_text("mine")
    (line,) = tacita_.refused("new", "full")
    assert "exists and is not empty" in line
    (place / "file").write_text("")
    assert "exists and is not empty" in tacita_.refused("new", "file")[0]
    (place / "empty").mkdir()
    tacita_.ok("new", "empty")
    (line,) = tacita_.refused("new", "white space")
    assert "expected NAME of letters" in line
    assert sorted(p.name for p in place.iterdir()) == ["empty", "file", "full"]


@pytest.mark.long
def test_its_readme_works_command_by_command(clinic, monkeypatch):
    """A new user's way: every command is copied from the README that was made."""
    pytest.importorskip("nats")
    monkeypatch.chdir(clinic)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    text = (clinic / "README.md").read_text()
    reader = Reader(broker.free_port(), broker.free_port())
    try:
        for kind, block in re.findall(r"```(sh[ a-z]*)\n(.*?)```", text, flags=re.S):
            reader.do(kind, block)
            if "coordinate" in block:
                for child in reader.children[1:4]:
                    assert child.wait(HANG) == 0
    finally:
        for child in reader.children:
            broker.stop(child)
    private = tacita.load_run("runs/private")
    assert private.privacy.row("coordinator").epsilon <= 2.0 + 1e-6
    share = private.metrics["test_accuracy"][-1]
    assert share > 0.7, "the noise of the budget must leave something to learn"
    for hospital in ("oslo", "tampere", "turku"):
        (result,) = Path("sites", hospital).glob("*/result.json")
        told = json.loads(result.read_text())
        assert told["epsilon_spent"] <= 2.0 + 1e-6 and told["epsilon_allowed"] == 8.0
    assert Path("runs/private/report.html").exists()
    assert len(Path("predictions.csv").read_text().splitlines()) == 21

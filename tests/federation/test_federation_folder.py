"""A federation leaves the run folder of a simulation at every party."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import tacita
from tacita.cli.app import app
from tacita.federation import Invitation, PostRoom
from tacita.federation.description import Description, unsigned
from tacita.federation.diary import Diary
from tacita.federation.draws import derive
from tacita.federation.own_rows import RowsFile, problem_of
from tacita.federation.own_test import OwnMeasures, OwnTest, alone, held_out
from tacita.federation.setting import secret_of
from tests.federation.towns import COLUMNS, NAMES, Town, rows, run_of, table_of_rows

ROUNDS, SHARE = 4, 0.4
PRIVACY = {"epsilon": 5.0, "delta": 1e-5, "norm": 1.0}
RUN = run_of(ROUNDS, privacy=PRIVACY, name="first")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[str, Any]:
    """Everybody's result of one private run, in which agents hold rows out."""
    folder = tmp_path_factory.mktemp("town")
    with Town(folder, PostRoom(), max_epsilon=5.0, test_share=SHARE) as town:
        found = town.run(RUN)
        return found | {"said": town.said}


@pytest.mark.long
def test_reports_and_comparisons_read_it(results, tmp_path: Path):
    runs = {who: tacita.load_run(results[who].folder) for who in ("ada", "coordinator")}
    for who, run in runs.items():
        assert run.name == "first" and run.rounds == ROUNDS
        assert run.params.tobytes() == results[who].models["shared"].tobytes()
        sent = run.info["communication"]
        assert sent["bytes"] == sent["bytes_up"] + sent["bytes_down"] > 0
    page = tacita.report.write_report(runs, tmp_path).read_text()
    for words in ("Privacy", "On own test rows", "majority class", "agents that took"):
        assert words in page


@pytest.mark.parametrize("who", ["ada", "coordinator"])
def test_its_model_reads_rows_as_they_come(results, who: str):
    run = tacita.load_run(results[who].folder)
    x, _ = rows("bob")
    wanted = (x @ results["coordinator"].models["shared"] > 0).astype(int)
    table = pd.DataFrame(x, columns=pd.Index(COLUMNS)).assign(more=1.0)
    assert run.predict(table[["more", "x2", "x0", "x1"]]).tolist() == wanted.tolist()
    assert (tacita.load_model(results[who].folder).privacy is None) == (who != "ada")
    with pytest.raises(tacita.TacitaError, match="x1"):
        run.predict(table[["x0", "x2"]])


def test_the_commands_read_it(results, tmp_path: Path):
    folder, new = str(results["ada"].folder), tmp_path / "new.csv"
    pd.DataFrame([[1.0, 0.0, 0.0]], columns=pd.Index(COLUMNS)).to_csv(new, index=False)

    def say(*words: str) -> tuple[int, str]:
        answer = CliRunner().invoke(app, list(words))
        return answer.exit_code, answer.output

    code, said = say("predict", folder, str(new))
    assert code == 0 and len(said.strip().splitlines()) == 2
    code, said = say("privacy", "account", folder)
    assert code == 0 and "coordinator" in said and "theorem" in said
    for words in (("privacy", "account", folder, "--delta", "1e-6"), ("read", folder)):
        code, said = say(*words)
        assert code == 2 and len(said.strip().splitlines()) == 1, said
    code, said = say("privacy", "account", str(results["coordinator"].folder))
    assert code == 2 and "no account" in said


def test_an_agent_knows_its_own_rows_and_its_ledger(results):
    folder = results["ada"].folder
    run = tacita.load_run(folder)
    kept = int((~held_out_rows(folder)).sum())
    assert run.info["holdings"] == {"agent": ["ada"], "rows": [kept]}
    assert run.info["turns"] == [ROUNDS]
    assert run.metrics["round"].tolist() == list(range(ROUNDS + 1))
    assert run.metrics["own_loss"][-1] == results["ada"].numbers["loss_shared"]
    for name in ("own_accuracy", "test_loss", "test_accuracy"):
        assert np.isfinite(run.metrics[name]).all()
    assert run.privacy is not None and not run.privacy.planned
    metrics = dict(run.privacy.notes())["metrics"]
    assert "this agent's own rows" in metrics and "simulation" not in metrics
    against = run.privacy.row("coordinator")
    spent = results["ada"].numbers["epsilon_spent"]
    assert against.epsilon == pytest.approx(spent) and spent <= 5.0
    for file in ("run.json", "config.toml", "trace.npz", "privacy.json"):
        assert (folder / file).stat().st_mode & 0o77 == 0


def test_the_coordinator_knows_who_took_part_and_no_number_from_rows(results):
    folder = results["coordinator"].folder
    run = tacita.load_run(folder)
    assert set(run.metrics) == {"took_part", "round"}
    assert run.metrics["took_part"].tolist() == [3.0] * ROUNDS
    assert run.info["turns"] == [ROUNDS] * 3
    assert run.kept.shape == (0, 3) and run.privacy is None
    words = "".join((folder / f).read_text() for f in ("run.json", "rounds.jsonl"))
    for name in ("loss", "accuracy", "holdings", "evaluation", "measured"):
        assert name not in words


def held_out_rows(folder: Path) -> np.ndarray:
    """Which rows an agent held out, told apart by how many trained."""
    home = folder.parent
    town = home.parent
    keys = Invitation.load(town / "hub" / "invitations" / "ada.json").keys
    secret = derive(secret_of(home, keys), "test rows")
    return held_out(len(rows("ada")[1]), SHARE, secret)


def test_test_rows_never_train_and_are_the_same_again(results):
    told = results["ada"].numbers["evaluation"]
    test = held_out_rows(results["ada"].folder)
    x, y = rows("ada")
    agreed = described(results["ada"].folder)
    train, held = (problem_of(agreed, x[part], y[part]) for part in (~test, test))
    shared = results["ada"].models["shared"]
    assert told["rows"] == test.sum() > 0
    assert told["together"] == held.accuracy(shared)
    assert results["ada"].numbers["loss_shared"] == train.loss(shared)
    assert told["majority class"] == np.mean(y[test] == (y[~test].mean() > 0.5))
    assert OwnMeasures(train, held).evaluation(shared) == told
    assert train.loss(shared) > train.loss(alone(train))
    assert any("own test rows: accuracy" in line for line in results["said"]["ada"])


def described(folder: Path) -> Any:
    return unsigned((folder / "offer.json").read_text())


def test_held_out_rows_do_not_depend_on_what_is_in_them():
    few, more = (held_out(n, 0.3, b"secret") for n in (400, 500))
    assert (few == more[:400]).all()
    assert few.mean() == pytest.approx(0.3, abs=0.07)
    assert (held_out(400, 0.3, b"other") != few).any()


def described_as(**problem: Any) -> Description:
    words = {"columns": COLUMNS, "target": "y", **problem}
    tables = {"problem": words, "algorithm": {"name": "FedAvg"}, "run": {"rounds": 1}}
    return Description("f", "n", "c", ("a",), tables)


def test_test_rows_may_come_from_a_file_and_never_stop_a_run(tmp_path: Path):
    about = described_as(classes=["0", "1"])
    table, said = table_of_rows("ada"), []
    test = {"share": lambda: None, "secret": lambda: b"", "tell": said.append}
    file = tmp_path / "test.csv"
    table[:9].to_csv(file, index=False)
    train, held = OwnTest(file, **test).split(about, table)
    assert held is not None and (train.counts[0], held.counts[0]) == (30, 9)
    file.write_text("x0,x1\n1,2\n")
    train, held = OwnTest(file, **test).split(about, table)
    assert held is None and train.counts[0] == 30
    assert "the test rows cannot be used" in said[0]
    with pytest.raises(tacita.TacitaError, match="leave one of them out"):
        OwnTest(file, **{**test, "share": lambda: 0.2})
    with pytest.raises(tacita.TacitaError, match="there is no file"):
        OwnTest(tmp_path / "none.csv", **test)
    # Whether held-out rows can be used shows nowhere either.
    half = {**test, "share": lambda: 0.5, "secret": lambda: b"s"}
    odd = table.assign(y=np.where(held_out(len(table), 0.5, b"s"), 7, table["y"]))
    train, held = OwnTest(None, **half).split(about, odd)
    assert held is None and "the test rows cannot be used" in said[-1]
    assert train.counts[0] == (odd["y"] != 7).sum()
    few = {**test, "share": lambda: 1e-9, "secret": lambda: b"s"}
    train, held = OwnTest(None, **few).split(about, table)
    assert held is None and "too few" in said[-1]


def test_rows_that_did_not_fit_are_others_once_they_are_read_otherwise(tmp_path: Path):
    file = tmp_path / "rows.csv"
    assert RowsFile(file).stamp == "no file"
    file.write_text("a;b\n1;2\n")
    stamps = {RowsFile(file).stamp, RowsFile(file, ";").stamp}
    assert len(stamps) == 2 and RowsFile(file).stamp in stamps


def test_regressions_are_tested_too():
    about = described_as(model="linear", l2=0.01)
    x = np.random.default_rng(0).normal(size=(40, 3))
    y = x @ [1.0, 2.0, 3.0]
    train, test = (problem_of(about, x[k], y[k]) for k in (slice(30), slice(30, 40)))
    told = OwnMeasures(train, test).evaluation(np.asarray([1.0, 2.0, 3.0]))
    assert told is not None and told["rows"] == 10
    assert told["together"] < told["alone"] < told["mean"]


def test_a_diary_goes_on_after_a_restart_and_passes_over_torn_lines(tmp_path: Path):
    first = Diary(tmp_path, NAMES, 300)
    first.counts.sent_bytes = 10
    first.ended(1, ["ada", "bob"])
    assert [k for k in range(7) if first.wants(k)] == [0, 3, 6]
    first.measured(3, {"own_loss": 1.0})
    with open(tmp_path / "rounds.jsonl", "ab") as file:
        file.write(b'{"round": 9, "own_l\n')
    again = Diary(tmp_path, NAMES, 300)
    again.counts.sent_bytes = 5
    again.ended(1, ["ada"])  # a crash undid the round: it is noted once
    again.ended(2, ["cyd"])
    assert again.traffic()["sent_bytes"] == 15 and not again.wants(3)
    assert again.turns() == [1, 0, 1]
    assert again.metrics()["own_loss"].tolist() == [1.0]
    lines = (tmp_path / "rounds.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["round"] == 2

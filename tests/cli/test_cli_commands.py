"""The commands around a run: help, lists, the demo, changes."""

import os
import re
import sys
from pathlib import Path

import pytest

import tacita
from tacita.algorithm import ALGORITHMS
from tacita.cli import demo
from tacita.cli.app import app, main
from tacita.job import changes

COMMANDS = ["demo", "new", "run", "resume", "report", "compare", "algorithms"]
COMMANDS += ["predict"]
COMMANDS += ["data list", "data show", "data fetch"]
COMMANDS += ["papers list", "papers run"]
COMMANDS += ["privacy sign", "privacy verify"]
COMMANDS += ["privacy plan", "privacy account", "audit", "attack", "read", "graph"]
COMMANDS += ["ledger show", "ledger verify"]
COMMANDS += [f"hub {word}" for word in "init start sign add renew remove".split()]
COMMANDS += ["hub sites", "hub status", "site request", "join", "coordinate"]
COMMANDS += ["offers", "accept", "decline", "log"]
COMMANDS += ["federation doctor", "federation status"]
COMMANDS += ["watch", "federation watch"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_shows_an_example_of_it(tacita_, command):
    said = tacita_.ok(*command.split(), "--help")
    assert f"Example: tacita {command}" in re.sub(r"\s+", " ", said)


def test_help_names_every_command(tacita_):
    said = tacita_.ok("--help")
    registered = {command.name for command in app.registered_commands}
    registered |= {group.name for group in app.registered_groups}
    assert registered == {command.split()[0] for command in COMMANDS}
    assert all(name in said for name in registered)


def test_help_keeps_words_in_square_brackets(tacita_):
    said = re.sub(r"\s+", " ", tacita_.ok("graph", "--help"))
    assert "for [graph] of a federation" in said


def test_version(tacita_):
    assert tacita_.ok("--version").strip() == f"tacita {tacita.__version__}"


def test_debug_shows_the_traceback_wherever_it_stands(monkeypatch, capsys):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")  # leaves this process's JAX
    monkeypatch.setattr(sys, "argv", ["tacita", "run", "nowhere.toml"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: cannot read nowhere.toml")
    sys.argv.append("--debug")
    with pytest.raises(tacita.TacitaError, match="cannot read nowhere.toml"):
        main()


def test_every_algorithm_is_listed_with_what_it_is_for(tacita_):
    lines = {
        line.split()[0]: line for line in tacita_.ok("algorithms").split("\n") if line
    }
    for algorithm in ALGORITHMS:
        assert len(algorithm.purpose.split()) > 2, algorithm
        assert algorithm.purpose in lines[algorithm.__name__]
        assert len(lines[algorithm.__name__].rstrip()) <= 80
    assert len({algorithm.purpose for algorithm in ALGORITHMS}) == len(ALGORITHMS)


def test_an_algorithm_is_shown_with_all_its_keys(tacita_):
    said = tacita_.ok("algorithms", "fed_prox")
    assert 'name = "FedProx"' in said
    assert "# eta (> 0, needed): Strength of the pull" in said
    assert "# step_size (> 0, or a schedule, theory: 1 / (L + 2/eta), where" in said
    assert "# local_steps (a whole number >= 1, default none): Gradient" in said
    assert "# weights (uniform or samples, default 'uniform'): " in said
    assert '# oracle (default { name = "Full" })' in said
    for algorithm in ALGORITHMS:
        told = tacita_.ok("algorithms", algorithm.__name__)
        assert algorithm.source in told and algorithm.purpose in told


def test_data_sets_are_listed_and_shown(tacita_):
    said = tacita_.ok("data", "list")
    for name in tacita.data.names():
        assert re.search(rf"^{name}\b", said, flags=re.M)
    shown = tacita_.ok("data", "show", "digits")
    assert "# test_share (default 0.0)" in shown and "licence" in shown
    assert "nothing to fetch" in tacita_.ok("data", "fetch", "digits")


@pytest.mark.long
def test_the_demo_compares_on_a_held_out_set(tacita_):
    said = tacita_.ok("demo", "--rounds", "3")
    assert said.strip().split("\n")[-1] == "report: runs/demo/report.html"
    assert Path("runs/demo/report.html").exists()
    for name, label in (("fedavg", "FedAvg"), ("fedprox", "FedProx")):
        run = tacita.load_run(f"runs/demo/{name}")
        assert run.rounds == 3 and run.config["problem"]["test_share"] == 0.25
        held = run.info["holdings"]
        assert sum(held["rows"]) == run.config["resolved"]["problem"]["rows"] == 1347
        # Uneven by class: nobody holds all ten digits in equal parts.
        assert min(max(held[str(c)]) / (sum(held[str(c)]) / 20) for c in range(10)) > 3
        middle = sorted(run.metrics["test_accuracy"][:, -1])[1]
        assert f"{label:8} test accuracy {100 * middle:.1f} %" in said
    # A second demo takes the place of the first, and of nothing else.
    Path("runs/demo/notes.txt").write_text("mine")
    (line,) = tacita_.refused("demo", "--rounds", "3")
    assert "holds 'notes.txt', which is not of a demo" in line
    assert Path("runs/demo/fedavg/run.json").exists()


def test_the_demo_is_replaced_whole(place):
    out = place / "demo"
    (out / "fedavg").mkdir(parents=True)
    (out / "fedavg" / "old").write_text("")
    (out / "report.html").write_text("")
    demo._make_room(out)
    assert os.listdir(out) == ["report.html"]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("5", 5),
        ("1e-3", 1e-3),
        ("true", True),
        ('"a b"', "a b"),
        ("FedAvg", "FedAvg"),
        ("./data/x.csv", "./data/x.csv"),
        ("{ kind = 'ring' }", {"kind": "ring"}),
        ("[0.1, 0.2]", [0.1, 0.2]),
        ("synthetic-logistic", "synthetic-logistic"),
    ],
)
def test_a_change_is_read_as_toml(words, value):
    given = changes.with_changes({"a": {"b": 1}}, [f"a.c={words}"])
    assert given == {"a": {"b": 1, "c": value}}


def test_a_change_cannot_smuggle_in_another_key():
    with pytest.raises(tacita.TacitaError, match="not a TOML value"):
        changes.with_changes({}, ["a=1\nb = 2"])


def test_a_change_leaves_the_original_alone():
    table = {"run": {"rounds": 5}}
    changes.with_changes(table, ["run.rounds=6", "run.seed=1", "name=x"])
    assert table == {"run": {"rounds": 5}}

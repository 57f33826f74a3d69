"""Running, reporting and comparing, in this process."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.cli import execute, folder, run_file
from tacit.cli.builders import job_from
from tacit.cli.changes import with_changes

FILES = {"config.toml", "run.json", "trace.npz"}


def same_bits(one, two):
    """Whether two run folders hold the same models and metrics, bit for bit."""
    with np.load(Path(one) / "trace.npz") as a, np.load(Path(two) / "trace.npz") as b:
        assert sorted(a.files) == sorted(b.files)
        return all(a[k].tobytes() == b[k].tobytes() for k in a.files)


def test_a_run_is_what_simulate_gives(tacit_, small):
    said = tacit_.ok("run", small)
    assert "runs/fedavg-synthetic-logistic-1" in said
    run = tacit.load_run("runs/fedavg-synthetic-logistic-1")
    problem = tacit.problem.synthetic.logistic(agents=4, features=3, samples=12, l2=0.1)
    algorithm = tacit.FedAvg(step_size=0.2, local_steps=2)
    want = tacit.simulate(
        problem,
        algorithm,
        6,
        participation=0.5,
        record=("loss", "grad_norm_sq", "disagreement", "accuracy"),
    )
    np.testing.assert_array_equal(run.params, want.params)
    np.testing.assert_array_equal(run.agents, want.agents)
    assert set(run.metrics) == set(want.metrics)
    for name, values in want.metrics.items():
        np.testing.assert_array_equal(run.metrics[name], values)
    assert f"{want.metrics['loss'][-1]:.4g}" in said


def test_a_run_folder_is_whole_and_numbered(tacit_, small):
    tacit_.ok("run", small)
    tacit_.ok("run", small, "--set", "name=other")
    tacit_.ok("run", small)
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "fedavg-synthetic-logistic-1",
        "fedavg-synthetic-logistic-2",
        "other-1",
    ]
    for made in Path("runs").iterdir():
        assert {path.name for path in made.iterdir()} == FILES


def test_the_config_of_a_run_is_a_run_file_that_gives_the_same_bits(tacit_, small):
    tacit_.ok("run", small, "--set", "run.seed=3", "--out", "first")
    tacit_.ok("run", "first/config.toml", "--out", "again")
    assert same_bits("first", "again")
    config = tomllib.loads(Path("first/config.toml").read_text())
    assert config["run"]["seed"] == 3
    assert config["resolved"]["algorithm"]["oracle"] == {"name": "Full"}
    tacit_.ok("run", small, "--set", "run.seed=4", "--out", "other")
    assert not same_bits("first", "other")


def test_a_table_is_found_from_the_folder_of_its_run_file(
    tacit_, sites, place, monkeypatch
):
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    said = tacit_.ok("run", place / sites, "--out", "out")
    assert "accuracy on test rows" in said
    run = tacit.load_run("out")
    assert run.info["holdings"]["agent"] == ["s0", "s1", "s2", "s3"]
    assert run.config["problem"]["data"] == str(place / "sites.csv")
    # Eight of ten rows of each site train, the others test.
    assert run.info["holdings"]["rows"] == [8, 8, 8, 8]
    (note,) = run.info["data_notes"]
    assert note.startswith("features scaled to mean 0 and deviation 1")


def test_nested_records_are_built_from_tables(tacit_, small):
    tacit_.ok("run", small, "--set", "algorithm.batch=4", "--out", "short")
    oracle = "{ name = 'Minibatch', size = 4 }"
    tacit_.ok("run", small, "--set", f"algorithm.oracle={oracle}", "--out", "long")
    assert same_bits("short", "long")
    described = tacit.load_run("short").config["resolved"]["algorithm"]
    assert described["oracle"]["name"] == "Minibatch"


def test_solvers_are_built_from_tables_and_words(tacit_, small):
    """Records that an algorithm's own file does not name are found too."""
    for solver, name in (
        ("{ name = 'Accelerated', local_steps = 3 }", "Accelerated"),
        ("accelerated", "Accelerated"),
        ("exact-prox", "ExactProx"),
    ):
        file = run_file.read(Path(small))
        file["algorithm"] = {"name": "FedPLT", "rho": 0.5}
        table = with_changes(file, [f"algorithm.solver={solver}"])
        made = job_from(table, Path()).algorithm.solver
        assert type(made).__name__ == name
    assert job_from(table, Path()).algorithm.rho == 0.5
    mixed = {"name": "Mixed", "solvers": [{"name": "Newton"}], "group": [0] * 4}
    file["algorithm"]["solver"] = mixed
    assert type(job_from(file, Path()).algorithm.solver.solvers[0]).__name__ == "Newton"
    file["algorithm"]["solver"] = "Acelerated"
    with pytest.raises(tacit.TacitError, match="did you mean 'Accelerated'"):
        job_from(file, Path())


def test_names_of_algorithms_need_no_capitals(tacit_, small):
    tacit_.ok("run", small, "--set", "algorithm.name=fed-avg", "--out", "a")
    tacit_.ok("run", small, "--set", "algorithm.name=FED_AVG", "--out", "b")
    assert same_bits("a", "b")


def test_a_diverged_run_is_kept_and_fails(tacit_, place):
    (place / "wild.toml").write_text(
        "[problem]\ndata='synthetic-linear'\nagents=3\nfeatures=2\nsamples=5\n"
        "[algorithm]\nname='FedAvg'\nstep_size=1e9\nlocal_steps=2\n[run]\nrounds=40\n"
        "record=['loss']\n"
    )
    result = tacit_("run", "wild.toml", "--out", "wild")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: the run diverged")
    assert {path.name for path in Path("wild").iterdir()} == FILES
    assert "the run diverged" in Path(tacit_.ok("report", "wild").strip()).read_text(
        encoding="utf-8"
    )


def broken(*_, **__):
    raise RuntimeError("the disk is on fire\nand so on")


def test_a_crash_is_one_line_exit_code_1_and_leaves_nothing(
    tacit_, small, place, monkeypatch
):
    monkeypatch.setattr(execute, "simulate", broken)
    result = tacit_("run", small)
    assert result.exit_code == 1
    (line,) = result.stderr.strip().split("\n")
    assert line.startswith("error: RuntimeError: the disk is on fire (run again")
    assert [path.name for path in place.iterdir()] == [small]
    assert isinstance(tacit_("--debug", "run", small).exception, RuntimeError)


def test_what_only_the_runtime_refuses_leaves_nothing(
    tacit_, small, place, monkeypatch
):
    def refusing(*_, **__):
        tacit.check.refuse("not today")

    monkeypatch.setattr(execute, "simulate", refusing)
    assert tacit_.refused("run", small) == ["not today"]
    assert [path.name for path in place.iterdir()] == [small]


def test_an_interrupted_run_tells_how_to_go_on(tacit_, small, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(execute, "simulate", interrupted)
        result = tacit_("run", small, "--out", "cut")
        assert result.exit_code == 130
        assert "go on with: tacit resume cut" in result.stderr
    assert [path.name for path in Path("cut").iterdir()] == ["config.toml"]
    tacit_.ok("resume", "cut")
    tacit_.ok("run", small, "--out", "whole")
    assert same_bits("cut", "whole")


def test_a_finished_run_is_not_resumed(tacit_, small):
    tacit_.ok("run", small, "--out", "all done")
    before = Path("all done/run.json").read_bytes()
    (line,) = tacit_.refused("resume", "all done")
    assert line.endswith("all done is finished; see it with: tacit report 'all done'")
    assert Path("all done/run.json").read_bytes() == before


def test_a_run_in_use_is_not_resumed(tacit_, small):
    made = folder.create(Path("busy"), "busy", Path(small).read_text())
    with folder.held(made):
        (line,) = tacit_.refused("resume", "busy")
    assert "is being run by another process" in line
    assert Path("busy/config.toml").exists()
    tacit_.ok("resume", "busy")


def test_data_that_changed_meanwhile_stop_a_resume(tacit_, sites, place):
    tacit_.ok("run", sites, "--out", "full")
    config = (place / "full" / "config.toml").read_text()
    tacit_.ok("run", sites, "--out", "cut")
    # As if it had been killed after its last checkpoint.
    (place / "cut" / "run.json").unlink()
    made = job_from(run_file.read(place / "cut" / "config.toml"), place)
    options = {**made.options, "rounds": 2}
    tacit.simulate(made.problem, made.algorithm, **options, checkpoint="cut")
    text = (place / "sites.csv").read_text()
    (place / "sites.csv").write_text(text.replace("s0", "s1", 1))
    (line,) = tacit_.refused("resume", "cut")
    assert "belongs to another run" in line
    (place / "sites.csv").write_text(text)
    tacit_.ok("resume", "cut")
    assert same_bits("full", "cut")
    assert (place / "full" / "config.toml").read_text() == config


def test_report_writes_a_page_beside_the_run_or_elsewhere(tacit_, small):
    loss_only = "run.record=['loss']"
    said = tacit_.ok("run", small, "--out", "one", "--report", "--set", loss_only)
    assert "report: one/report.html" in said
    assert Path("one/report.html").exists()
    path = tacit_.ok("report", "one", "--out", "pages").strip()
    assert path == "pages/report.html"
    assert Path("pages/curve-loss.png").exists()
    assert "FedAvg on synthetic logistic" in Path(path).read_text(encoding="utf-8")


def test_compare_tabulates_and_overlays(tacit_, small):
    for seed in (0, 1):
        seeded = [f"run.seed={seed}", "--set", "run.record=['loss']"]
        tacit_.ok("run", small, "--out", f"s{seed}", "--set", *seeded)
    runs = {s: tacit.load_run(s) for s in ("s0", "s1")}
    value = float(np.median([r.metrics["loss"][-1] for r in runs.values()]))
    said = tacit_.ok("compare", "s0", "s1", "--tolerance", f"loss={value}")
    for label, run in runs.items():
        line = next(row for row in said.split("\n") if row.startswith(label))
        assert f"{run.metrics['loss'][-1]:.4g}" in line
    assert "not reached" in said and "rounds to loss" in said
    page = re.search(r"report: (\S+)", said).group(1)
    assert page == "runs/comparison-1/report.html"
    assert "s0, s1: 2 runs compared" in Path(page).read_text(encoding="utf-8")
    assert "comparison-2" in tacit_.ok("compare", "s1", "s0")


def test_comparisons_that_make_no_sense_are_refused(tacit_, small):
    tacit_.ok("run", small, "--out", "a")
    for arguments, words in (
        (("a", "a"), "given twice"),
        (("a", "--tolerance", "loss"), "expected METRIC=VALUE"),
        (("a", "--tolerance", "loss=nan"), "expected METRIC=VALUE"),
        (("a", "--tolerance", "lss=1"), "did you mean 'loss'?"),
    ):
        (line,) = tacit_.refused("compare", *arguments)
        assert words in line
    assert not Path("runs").exists()


def test_a_run_that_records_nothing_is_a_run(tacit_, small):
    said = tacit_.ok("run", small, "--set", "run.record=[]", "--out", "a", "--report")
    assert "metric" not in said and tacit.load_run("a").rounds == 6


def test_run_json_tells_what_was_sent(tacit_, small):
    tacit_.ok("run", small, "--out", "a")
    info = json.loads(Path("a/run.json").read_text())
    assert info["communication"]["letters"] == sum(info["turns"])

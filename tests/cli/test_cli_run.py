"""Running, reporting and comparing, in this process."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import tacita
from tacita.job import folder, job_from, run_file
from tacita.job.changes import with_changes

FILES = {"config.toml", "run.json", "trace.npz"}
MODEL = {"model.json", "model.safetensors"}


def same_bits(one, two):
    """Whether two run folders hold the same models and metrics, bit for bit."""
    with np.load(Path(one) / "trace.npz") as a, np.load(Path(two) / "trace.npz") as b:
        assert sorted(a.files) == sorted(b.files)
        return all(a[k].tobytes() == b[k].tobytes() for k in a.files)


def test_a_run_is_what_simulate_gives(tacita_, small):
    said = tacita_.ok("run", small)
    assert "runs/fedavg-synthetic-logistic-1" in said
    run = tacita.load_run("runs/fedavg-synthetic-logistic-1")
    problem = tacita.problem.synthetic.logistic(
        agents=4, features=3, samples=12, l2=0.1
    )
    algorithm = tacita.FedAvg(step_size=0.2, local_steps=2)
    want = tacita.simulate(
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


def test_a_run_folder_is_whole_and_numbered(tacita_, small):
    tacita_.ok("run", small)
    tacita_.ok("run", small, "--set", "name=other")
    tacita_.ok("run", small)
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "fedavg-synthetic-logistic-1",
        "fedavg-synthetic-logistic-2",
        "other-1",
    ]
    for made in Path("runs").iterdir():
        assert {path.name for path in made.iterdir()} == FILES | MODEL


def test_the_config_of_a_run_is_a_run_file_that_gives_the_same_bits(tacita_, small):
    tacita_.ok("run", small, "--set", "run.seed=3", "--out", "first")
    tacita_.ok("run", "first/config.toml", "--out", "again")
    assert same_bits("first", "again")
    config = tomllib.loads(Path("first/config.toml").read_text())
    assert config["run"]["seed"] == 3
    assert config["resolved"]["algorithm"]["oracle"] == {"name": "Full"}
    tacita_.ok("run", small, "--set", "run.seed=4", "--out", "other")
    assert not same_bits("first", "other")


def test_a_table_is_found_from_the_folder_of_its_run_file(
    tacita_, sites, place, monkeypatch
):
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    said = tacita_.ok("run", place / sites, "--out", "out")
    assert "accuracy on test rows" in said
    run = tacita.load_run("out")
    assert run.info["holdings"]["agent"] == ["s0", "s1", "s2", "s3"]
    assert run.config["problem"]["data"] == str(place / "sites.csv")
    # Eight of ten rows of each site train, the others test.
    assert run.info["holdings"]["rows"] == [8, 8, 8, 8]
    (note,) = run.info["data_notes"]
    assert note.startswith("features scaled to mean 0 and deviation 1")


def test_nested_records_are_built_from_tables(tacita_, small):
    tacita_.ok("run", small, "--set", "algorithm.batch=4", "--out", "short")
    oracle = "{ name = 'Minibatch', size = 4 }"
    tacita_.ok("run", small, "--set", f"algorithm.oracle={oracle}", "--out", "long")
    assert same_bits("short", "long")
    described = tacita.load_run("short").config["resolved"]["algorithm"]
    assert described["oracle"]["name"] == "Minibatch"


def test_solvers_are_built_from_tables_and_words(tacita_, small):
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
    with pytest.raises(tacita.TacitaError, match="did you mean 'Accelerated'"):
        job_from(file, Path())


def test_names_of_algorithms_need_no_capitals(tacita_, small):
    tacita_.ok("run", small, "--set", "algorithm.name=fed-avg", "--out", "a")
    tacita_.ok("run", small, "--set", "algorithm.name=FED_AVG", "--out", "b")
    assert same_bits("a", "b")


def test_a_diverged_run_is_kept_and_fails(tacita_, place):
    (place / "wild.toml").write_text(
        "[problem]\ndata='synthetic-linear'\nagents=3\nfeatures=2\nsamples=5\n"
        "[algorithm]\nname='FedAvg'\nstep_size=1e9\nlocal_steps=2\n[run]\nrounds=40\n"
        "record=['loss']\n"
    )
    result = tacita_("run", "wild.toml", "--out", "wild")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: the run diverged")
    assert {path.name for path in Path("wild").iterdir()} == FILES
    assert "the run diverged" in Path(tacita_.ok("report", "wild").strip()).read_text(
        encoding="utf-8"
    )


def broken(*_, **__):
    raise RuntimeError("the disk is on fire\nand so on")


def test_a_crash_is_one_line_exit_code_1_and_leaves_nothing(
    tacita_, small, place, monkeypatch
):
    monkeypatch.setattr("tacita.job.job.simulate", broken)
    result = tacita_("run", small)
    assert result.exit_code == 1
    (line,) = result.stderr.strip().split("\n")
    assert line.startswith("error: RuntimeError: the disk is on fire (run again")
    assert [path.name for path in place.iterdir()] == [small]
    assert isinstance(tacita_("--debug", "run", small).exception, RuntimeError)


def test_what_only_the_runtime_refuses_leaves_nothing(
    tacita_, small, place, monkeypatch
):
    def refusing(*_, **__):
        tacita.check.refuse("not today")

    monkeypatch.setattr("tacita.job.job.simulate", refusing)
    assert tacita_.refused("run", small) == ["not today"]
    assert [path.name for path in place.iterdir()] == [small]


def test_an_interrupted_run_tells_how_to_go_on(tacita_, small, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tacita.job.job.simulate", interrupted)
        result = tacita_("run", small, "--out", "cut")
        assert result.exit_code == 130
        assert "go on with: tacita resume cut" in result.stderr
    assert [path.name for path in Path("cut").iterdir()] == ["config.toml"]
    tacita_.ok("resume", "cut")
    tacita_.ok("run", small, "--out", "whole")
    assert same_bits("cut", "whole")


def test_a_finished_run_is_not_resumed(tacita_, small):
    tacita_.ok("run", small, "--out", "all done")
    before = Path("all done/run.json").read_bytes()
    (line,) = tacita_.refused("resume", "all done")
    assert line.endswith("all done is finished; see it with: tacita report 'all done'")
    assert Path("all done/run.json").read_bytes() == before


def test_a_run_in_use_is_not_resumed(tacita_, small):
    made = folder.create(Path("busy"), "busy", Path(small).read_text())
    with folder.held(made):
        (line,) = tacita_.refused("resume", "busy")
    assert "is being run by another process" in line
    assert Path("busy/config.toml").exists()
    tacita_.ok("resume", "busy")


def test_data_that_changed_meanwhile_stop_a_resume(tacita_, sites, place):
    tacita_.ok("run", sites, "--out", "full")
    config = (place / "full" / "config.toml").read_text()
    tacita_.ok("run", sites, "--out", "cut")
    # As if it had been killed after its last checkpoint.
    (place / "cut" / "run.json").unlink()
    made = job_from(run_file.read(place / "cut" / "config.toml"), place)
    options = {**made.options, "rounds": 2}
    tacita.simulate(made.problem, made.algorithm, **options, checkpoint="cut")
    text = (place / "sites.csv").read_text()
    (place / "sites.csv").write_text(text.replace("s0", "s1", 1))
    (line,) = tacita_.refused("resume", "cut")
    assert "belongs to another run" in line
    (place / "sites.csv").write_text(text)
    tacita_.ok("resume", "cut")
    assert same_bits("full", "cut")
    assert (place / "full" / "config.toml").read_text() == config


def test_report_writes_a_page_beside_the_run_or_elsewhere(tacita_, small):
    loss_only = "run.record=['loss']"
    said = tacita_.ok("run", small, "--out", "one", "--report", "--set", loss_only)
    assert "report: one/report.html" in said
    assert Path("one/report.html").exists()
    given = ("--trust", "--group", 1, "--joules-per-operation", 1e-9)
    path = tacita_.ok("report", "one", "--out", "pages", *given).strip()
    assert path == "pages/report.html"
    page = Path(path).read_text(encoding="utf-8")
    assert 'id="trust"' in page and "between groups" in page
    assert 'id="trust"' not in Path("one/report.html").read_text(encoding="utf-8")
    (line,) = tacita_.refused("report", "one", "--group", 1)
    assert "add --trust" in line
    assert Path("pages/curve-loss.png").exists()
    assert "FedAvg on synthetic logistic" in Path(path).read_text(encoding="utf-8")


def test_compare_tabulates_and_overlays(tacita_, small, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for seed in (0, 1):
        seeded = [f"run.seed={seed}", "--set", "run.record=['loss']"]
        tacita_.ok("run", small, "--out", f"s{seed}", "--set", *seeded)
    runs = {s: tacita.load_run(s) for s in ("s0", "s1")}
    value = float(np.median([r.metrics["loss"][-1] for r in runs.values()]))
    said = tacita_.ok("compare", "s0", "s1", "--tolerance", f"loss={value}")
    tables = said.partition("report:")[0]
    assert max(len(line.rstrip()) for line in tables.split("\n")) <= 80
    for label, run in runs.items():
        line = next(row for row in said.split("\n") if row.startswith(label))
        assert f"{run.metrics['loss'][-1]:.4g}" in line
    assert "not reached" in said and "rounds to loss" in said
    page = re.search(r"report: (\S+)", said).group(1)
    assert page == "runs/comparison-1/report.html"
    assert "s0, s1: 2 runs compared" in Path(page).read_text(encoding="utf-8")
    assert "comparison-2" in tacita_.ok("compare", "s1", "s0")


def test_comparisons_that_make_no_sense_are_refused(tacita_, small):
    tacita_.ok("run", small, "--out", "a")
    for arguments, words in (
        (("a", "a"), "given twice"),
        (("a", "--tolerance", "loss"), "expected METRIC=VALUE"),
        (("a", "--tolerance", "loss=nan"), "expected METRIC=VALUE"),
        (("a", "--tolerance", "lss=1"), "did you mean 'loss'?"),
    ):
        (line,) = tacita_.refused("compare", *arguments)
        assert words in line
    assert not Path("runs").exists()


def test_a_run_that_records_nothing_is_a_run(tacita_, small):
    said = tacita_.ok("run", small, "--set", "run.record=[]", "--out", "a", "--report")
    assert "metric" not in said and tacita.load_run("a").rounds == 6


def test_run_json_tells_what_was_sent(tacita_, small):
    tacita_.ok("run", small, "--out", "a")
    info = json.loads(Path("a/run.json").read_text())
    assert info["communication"]["letters"] == sum(info["turns"])


@pytest.mark.long
def test_trust_in_a_private_run_is_kept_out_of_its_folder(tacita_, small):
    noisy = ("algorithm.norm=1.0", "algorithm.noise_std=0.5", "run.rounds=1")
    changes = [word for change in noisy for word in ("--set", change)]
    tacita_.ok("run", small, "--out", "one", *changes)
    for same in ((), ("--out", "one/../one")):
        (line,) = tacita_.refused("report", "one", "--trust", *same)
        assert "name another one with --out" in line
    assert not Path("one/report.html").exists()
    tacita_.ok("report", "one", "--trust", "--out", "own")
    assert 'id="trust"' in Path("own/report.html").read_text(encoding="utf-8")

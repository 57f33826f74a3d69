"""The noise of a private run comes from a secret that nobody is shown."""

from __future__ import annotations

import json
import stat

import numpy as np
import pytest

import tacita
from tacita.cli.execute import execute
from tacita.problem import synthetic
from tacita.runtime import checkpoint, seeds

NOISY = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=1.0))
PRIVATE = tacita.FedAvg(step_size=0.1, oracle=NOISY)
IN_LETTERS = tacita.DPFedAvg(
    step_size=0.1, noise_std=1.0, oracle=tacita.Clipped(norm=1.0)
)
BY_COORDINATOR = tacita.ClientDPFedAvg(step_size=0.1, noise_std=1.0)


@pytest.fixture(scope="module")
def problem():
    return synthetic.logistic(agents=3, features=3, samples=20)


@pytest.mark.few(1)
@pytest.mark.parametrize("algorithm", [PRIVATE, IN_LETTERS, BY_COORDINATOR])
def test_noise_is_not_the_same_again(problem, algorithm):
    """With one seed the models of neighbours differ by what one row does, exactly."""
    runs = [tacita.simulate(problem, algorithm, 2, record=()) for _ in range(6)]
    # Of six, by chance, two may be near each other, but not all.
    found = np.stack([run.params for run in runs])
    apart = np.linalg.norm(found[:, None] - found, axis=-1)
    assert apart.max() > 0.01 and np.all(apart[~np.eye(6, dtype=bool)] > 0)
    runs = [tacita.simulate(problem, algorithm, 2, 7, record=()) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].params, runs[1].params)


@pytest.mark.long
def test_nor_one_agent_at_a_time_nor_side_by_side(problem):
    runs = [tacita.debug(problem, PRIVATE, 1, record=()).params for _ in range(2)]
    runs += [*tacita.simulate(problem, PRIVATE, 1, seeds=2, record=()).params]
    runs += [*tacita.sweep(problem, [PRIVATE, PRIVATE], 1, record=()).params]
    assert len({run.tobytes() for run in runs}) == 6


def test_without_privacy_a_run_is_the_same_again(problem):
    plain = tacita.FedAvg(step_size=0.1, oracle=tacita.Minibatch(size=4))
    runs = [tacita.simulate(problem, plain, 3, **k) for k in ({}, {}, {"seed": 0})]
    np.testing.assert_array_equal(runs[0].params, runs[1].params)
    np.testing.assert_array_equal(runs[0].params, runs[2].params)
    assert runs[0].info["seed"] == 0 and runs[0].config["run"]["seed"] == 0


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "chosen, told",
    [
        ({}, "secret, drawn for this run"),
        ({"seeds": 2}, "secret, drawn for this run"),
        ({"seed": 918273645}, "asked for, not shown"),
        ({"seeds": [918273645, 3]}, "asked for, not shown"),
    ],
)
def test_no_seed_is_shown(problem, chosen, told, tmp_path, monkeypatch):
    monkeypatch.setattr(seeds.secrets, "randbits", lambda bits: 918273645)
    run = tacita.simulate(problem, PRIVATE, 2, **chosen)
    run.save(tmp_path)
    tacita.report.write_report(run, tmp_path)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"918273645" not in path.read_bytes(), path
    assert json.loads((tmp_path / "run.json").read_text())["seed"] == told
    asked = "asked for" in told
    warned = "whoever does can compute all noise"
    assert (warned in str(run.privacy)) == asked
    # So does a report that is made anew from the folder.
    again = tacita.privacy.report(tacita.load_run(tmp_path), problem, PRIVATE)
    assert (warned in str(again)) == asked


def test_a_run_file_keeps_its_seed_to_itself(problem, tmp_path):
    table = {
        "problem": {"data": "synthetic-logistic", "agents": 3, "samples": 20},
        "algorithm": tacita.job.table_of(PRIVATE),
        "run": {"rounds": 2, "seed": 918273645},
    }
    job = tacita.job.job_from(table, tmp_path)
    folder = tacita.job.folder.create(tmp_path / "asked", "asked", job.toml)
    assert "918273645" in (folder / "config.toml").read_text()  # to resume with
    execute(job, folder)
    assert not any(b"918273645" in path.read_bytes() for path in folder.iterdir())
    del table["run"]["seed"]
    runs = []
    for name in ("one", "two"):
        job = tacita.job.job_from(table, tmp_path)
        folder = tacita.job.folder.create(tmp_path / name, name, job.toml)
        runs.append(execute(job, folder))
        assert not (folder / seeds.NAME).exists()  # nobody goes on with a finished run
    assert np.any(runs[0].params != runs[1].params)


def test_a_secret_stays_beside_its_checkpoint(problem, tmp_path):
    whole = {"checkpoint": tmp_path / "whole", "record": ()}
    tacita.simulate(problem, PRIVATE, 2, **whole)
    path = tmp_path / "whole" / seeds.NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    secret = int(path.read_text())
    resumed = tacita.simulate(problem, PRIVATE, 4, resume=True, **whole)
    assert int(path.read_text()) == secret
    straight = tacita.simulate(problem, PRIVATE, 4, seed=secret, record=())
    np.testing.assert_array_equal(resumed.params, straight.params)
    with pytest.raises(tacita.TacitaError, match="expected rounds"):
        tacita.simulate(problem, PRIVATE, 0, **whole)
    assert int(path.read_text()) == secret  # a refusal costs nobody a run
    # Not to go on is to begin anew, with noise of its own.
    tacita.simulate(problem, PRIVATE, 2, **whole)
    assert int(path.read_text()) != secret
    # Without its secret a run cannot go on.
    path.unlink()
    with pytest.raises(tacita.TacitaError, match=r"no .*seed\.secret, so"):
        tacita.simulate(problem, PRIVATE, 4, resume=True, **whole)
    # Nor is it used for what may be another run.
    path.write_text(str(secret))
    (tmp_path / "whole" / checkpoint.NAME).unlink()
    tacita.simulate(problem, PRIVATE, 2, resume=True, **whole)
    assert int(path.read_text()) != secret
    path.write_text("-1")
    with pytest.raises(tacita.TacitaError, match=r"seed\.secret is damaged"):
        tacita.simulate(problem, PRIVATE, 4, resume=True, **whole)


@pytest.mark.long
def test_classes_of_single_agents_are_not_counted_in_a_private_run(problem, tmp_path):
    open_run = tacita.simulate(problem, tacita.FedAvg(step_size=0.1), 2)
    assert set(open_run.info["holdings"]) == {"agent", "rows", "-1", "+1"}
    run = tacita.simulate(problem, PRIVATE, 2)
    assert set(run.info["holdings"]) == {"agent", "rows"}
    page = tacita.report.write_report(run, tmp_path).read_text()
    assert "Who holds what" in page

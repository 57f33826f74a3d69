"""A run on disk: written whole, read back the same, refused when it is not one."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

import tacita
from tacita.problem import synthetic


@pytest.fixture(scope="module")
def run() -> tacita.Run:
    problem = synthetic.logistic(agents=6, features=3, samples=12, seed=1)
    return tacita.simulate(
        problem, tacita.FedAvg(step_size=0.3), 4, participation=2, seed=3
    )


def test_saved_and_loaded_runs_are_equal(run, tmp_path):
    folder = run.save(tmp_path / "deep" / "run")
    back = tacita.load_run(folder)
    np.testing.assert_array_equal(back.params, run.params)
    np.testing.assert_array_equal(back.agents, run.agents)
    assert set(back.metrics) == set(run.metrics)
    for name, values in run.metrics.items():
        np.testing.assert_array_equal(back.metrics[name], values)
    assert back.rounds == 4 and back.name == "FedAvg"
    assert sorted(p.name for p in folder.iterdir()) == [
        "config.toml",
        "model.json",
        "model.safetensors",
        "run.json",
        "trace.npz",
    ]


def test_config_and_info_say_what_was_run(run, tmp_path):
    folder = run.save(tmp_path)
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["algorithm"]["name"] == "FedAvg"
    assert config["algorithm"]["step_size"] == 0.3
    assert config["problem"]["agents"] == 6
    assert config["run"]["participation"] == 2
    info = json.loads((folder / "run.json").read_text())
    assert info["seed"] == 3
    assert info["versions"]["tacita"] == tacita.__version__
    assert info["communication"]["letters"] == 8
    assert info["seconds"]["total"] > 0
    assert sum(info["holdings"]["rows"]) == 72


def test_the_trace_needs_no_pickle(run, tmp_path):
    folder = run.save(tmp_path)
    with np.load(folder / "trace.npz", allow_pickle=False) as file:
        assert {"params", "agents", "metric_loss"} <= set(file.files)


def test_what_is_not_a_run_is_refused(run, tmp_path):
    with pytest.raises(tacita.TacitaError, match="name a folder that holds run.json"):
        tacita.load_run(tmp_path)
    (tmp_path / "checkpoint.npz").write_bytes(b"")
    with pytest.raises(tacita.TacitaError, match=r"tacita.simulate\(.*resume=True"):
        tacita.load_run(tmp_path)
    (tmp_path / "config.toml").write_bytes(b"")
    with pytest.raises(tacita.TacitaError, match="go on with: tacita resume"):
        tacita.load_run(tmp_path)
    file = tmp_path / "file"
    file.write_text("x")
    for place, words in ((file, "is a file"), (file / "in", "cannot make the folder")):
        with pytest.raises(tacita.TacitaError, match=words):
            run.save(place)


@pytest.mark.parametrize("harm", ["broken", "empty", "torn", "bare", "config"])
def test_a_damaged_run_is_refused(run, tmp_path, harm):
    trace = run.save(tmp_path) / "trace.npz"
    whole = trace.read_bytes()
    if harm == "bare":
        np.savez(trace, agents=run.agents)
    elif harm == "config":
        (tmp_path / "config.toml").write_bytes(b"")
    else:
        half = whole[: len(whole) // 2]
        trace.write_bytes({"broken": b"broken", "empty": b"", "torn": half}[harm])
    with pytest.raises(
        tacita.TacitaError, match="cannot read the run .*; run it again"
    ):
        tacita.load_run(tmp_path)


def test_a_crash_while_saving_over_a_run_leaves_no_mixture(run, tmp_path, monkeypatch):
    run.save(tmp_path)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", crash)
    with pytest.raises(KeyboardInterrupt):
        run.save(tmp_path)
    with pytest.raises(tacita.TacitaError, match="no finished run"):
        tacita.load_run(tmp_path)
    (tmp_path / "config.toml").unlink()
    with pytest.raises(tacita.TacitaError, match="not saved whole, save it again"):
        tacita.load_run(tmp_path)

"""How often a run is recorded where nobody says: by cost, the same everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tacita
from tacita.problem import synthetic
from tacita.runtime import progress, recording
from tacita.runtime.ready import make_world, prepare

ALGORITHM = tacita.FedAvg(step_size=0.1)
ROUNDS = 25


@tacita.trees.in_double_precision
def chosen(problem: tacita.Problem, algorithm: Any, active: Any, *record: str) -> int:
    ready = prepare(problem, algorithm)
    world = make_world(problem, ready, active)
    return recording.of(problem, ready, world, record, None).rounds


def rows(samples: int = 400) -> tacita.Problem:
    return synthetic.logistic(agents=40, features=2, samples=samples, seed=1)


def test_records_are_made_as_often_as_they_are_cheap():
    problem = rows()
    seldom = chosen(problem, ALGORITHM, 1, "loss")
    assert seldom > 10
    assert chosen(problem, ALGORITHM, 1, "loss", "grad_norm_sq") > seldom
    assert chosen(problem, ALGORITHM, 20, "loss") < seldom
    busy = tacita.FedAvg(step_size=0.1, local_steps=20)
    assert chosen(problem, busy, 1.0, "loss") == 1
    # A batch costs its rows; a test costs its own.
    batch = tacita.FedAvg(step_size=0.1, oracle=tacita.Minibatch(size=2))
    assert chosen(problem, batch, 40, "loss") > chosen(problem, ALGORITHM, 40, "loss")


def test_small_problems_are_recorded_after_every_round():
    assert chosen(rows(samples=20), ALGORITHM, 1, "loss", "grad_norm_sq") == 1


def test_of_a_private_run_nothing_follows_from_how_many_rows_there_are():
    oracle = tacita.Clipped(norm=1.0, oracle=tacita.Minibatch(size=4))
    private = tacita.FedAvg(step_size=0.1, oracle=tacita.Noisy(std=1.0, oracle=oracle))
    for algorithm, differ in ((private, 1), (ALGORITHM, 2)):
        found = {chosen(rows(m), algorithm, 1, "loss") for m in (20, 400)}
        assert len(found) == differ


@pytest.fixture
def seldom(monkeypatch) -> tacita.Problem:
    """A problem so small that tests are quick, and as if its records cost a lot."""
    monkeypatch.setattr(recording, "LITTLE", 0)
    monkeypatch.setattr(recording, "_ROUND", 700)
    return synthetic.logistic(agents=3, features=2, samples=4, seed=1)


@pytest.mark.long
def test_debug_sweeps_and_resumed_runs_agree(seldom, tmp_path):
    told = {"participation": 1, "seed": 4}
    whole = tacita.simulate(seldom, ALGORITHM, ROUNDS, **told)
    every = whole.config["run"]["record_every"]
    assert 5 < every < ROUNDS and ROUNDS % every
    assert whole.metrics["round"].tolist() == [*range(every, ROUNDS, every), ROUNDS]
    assert whole.config["run"]["record_every_chosen"] == "by cost"
    tacita.simulate(seldom, ALGORITHM, every + 1, checkpoint=tmp_path, **told)
    told_again = {"checkpoint": tmp_path, "resume": True, **told}
    again = tacita.simulate(seldom, ALGORITHM, ROUNDS, **told_again)
    np.testing.assert_array_equal(again.metrics["loss"], whole.metrics["loss"])
    slow = tacita.debug(seldom, ALGORITHM, ROUNDS, **told)
    np.testing.assert_allclose(slow.metrics["loss"], whole.metrics["loss"], atol=1e-11)
    both = tacita.sweep(seldom, [ALGORITHM] * 2, ROUNDS, **told)
    for other in (again, slow, both):
        np.testing.assert_array_equal(other.metrics["round"], whole.metrics["round"])


def test_what_is_asked_for_is_done(seldom):
    told = {"participation": 1, "stop": {"loss": 0.0}}
    stopping = tacita.simulate(seldom, ALGORITHM, 3, **told)
    assert stopping.metrics["round"].tolist() == [1, 2, 3]
    run = tacita.simulate(seldom, ALGORITHM, 5, participation=1, record_every=2)
    assert run.metrics["round"].tolist() == [2, 4, 5]
    assert "record_every_chosen" not in run.config["run"]
    with pytest.raises(tacita.TacitaError, match="expected record_every"):
        tacita.simulate(seldom, ALGORITHM, 5, record_every=0)


def test_the_progress_line_says_so(seldom, monkeypatch):
    told = []

    class Line:
        def __init__(self, rounds, done):
            pass

        def start(self):
            pass

        stop = start

        def update(self, done, loss):
            told.append(loss)

    monkeypatch.setattr(progress, "_Terminal", Line)
    run = tacita.simulate(seldom, ALGORITHM, ROUNDS, participation=1, progress=True)
    every = run.config["run"]["record_every"]
    assert told and all(f"recorded every {every} rounds" in words for words in told)
    assert recording.Every(3, by_cost=False).words == ""

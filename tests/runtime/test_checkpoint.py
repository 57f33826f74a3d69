"""Crash at any moment, resume, same bits."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import tacita
from tacita.problem import synthetic
from tacita.runtime.checkpoint import glance

ROUNDS = 3000
PROGRAM = """
import sys, tacita
from tacita.problem import synthetic
problem = synthetic.logistic(agents=6, features=3, samples=12, seed=1)
algorithm = tacita.FedAvg(step_size=0.3, local_steps=2, oracle=tacita.Minibatch(size=3))
run = tacita.simulate(problem, algorithm, {rounds}, seed=5, participation=0.7,
    checkpoint=sys.argv[1], resume=True, progress=False)
run.save(sys.argv[1])
"""


def setting():
    problem = synthetic.logistic(agents=6, features=3, samples=12, seed=1)
    algorithm = tacita.FedAvg(
        step_size=0.3, local_steps=2, oracle=tacita.Minibatch(size=3)
    )
    return problem, algorithm


def written(path):
    """Which checkpoint stands there: a new one has a new inode."""
    return path.stat().st_ino if path.exists() else None


@pytest.mark.long
def test_killed_at_random_moments_and_resumed_gives_the_same_bits(tmp_path):
    """A kill lands soon after a new checkpoint, at an instant the machine decides."""
    folder = tmp_path / "run"
    path = folder / "checkpoint.npz"
    program = PROGRAM.format(rounds=ROUNDS)
    delays = random.Random(0)
    for _ in range(2):
        before = written(path)
        child = subprocess.Popen([sys.executable, "-c", program, str(folder)])
        while written(path) == before and child.poll() is None:
            time.sleep(0.002)
        time.sleep(delays.uniform(0.0, 0.3))
        child.kill()
        # A fast machine may be done already: the next child then finds a whole run.
        assert child.wait() in (-signal.SIGKILL, 0)
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True)
    resumed = tacita.load_run(folder)
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "whole")], check=True)
    whole = tacita.load_run(tmp_path / "whole")
    np.testing.assert_array_equal(resumed.params, whole.params)
    np.testing.assert_array_equal(resumed.agents, whole.agents)
    for name, values in whole.metrics.items():
        np.testing.assert_array_equal(resumed.metrics[name], values)


@pytest.mark.long
def test_resume_continues_and_may_go_further(tmp_path):
    problem, algorithm = setting()
    whole = tacita.simulate(problem, algorithm, 40, seed=5)
    tacita.simulate(problem, algorithm, 15, seed=5, checkpoint=tmp_path)
    run = tacita.simulate(
        problem, algorithm, 40, seed=5, checkpoint=tmp_path, resume=True
    )
    np.testing.assert_array_equal(run.agents, whole.agents)
    np.testing.assert_array_equal(run.metrics["loss"], whole.metrics["loss"])
    assert run.metrics["round"].tolist() == list(range(1, 41))
    again = tacita.simulate(
        problem, algorithm, 40, seed=5, checkpoint=tmp_path, resume=True
    )
    np.testing.assert_array_equal(again.params, whole.params)


def test_seeds_resume_too(tmp_path):
    problem, algorithm = setting()
    whole = tacita.simulate(problem, algorithm, 12, seeds=3)
    tacita.simulate(problem, algorithm, 5, seeds=3, checkpoint=tmp_path)
    seen = glance(tmp_path)  # as those see it who watch
    assert seen is not None and seen.rounds == 5 and seen.seconds > 0
    assert seen.aim == (5, ("loss", "grad_norm_sq", "disagreement"), False)
    np.testing.assert_array_equal(seen.metrics[:, 0], whole.metrics["loss"][:, :5])
    assert seen.record_rounds.tolist() == [1, 2, 3, 4, 5]
    run = tacita.simulate(
        problem, algorithm, 12, seeds=3, checkpoint=tmp_path, resume=True
    )
    np.testing.assert_array_equal(run.agents, whole.agents)


def test_a_private_run_tells_what_it_has_spent_so_far(tmp_path):
    problem = synthetic.logistic(agents=4, features=2, samples=8)
    oracle = tacita.Noisy(std=5.0, oracle=tacita.Clipped(norm=1.0))
    algorithm, seen = tacita.ServerGD(step_size=1.0, oracle=oracle), []
    choices = dict(participation=2, record=("loss",), checkpoint=tmp_path, resume=True)
    for rounds in (6, 9):
        run = tacita.simulate(
            problem,
            algorithm,
            rounds,
            on_record=lambda _: seen.append(glance(tmp_path).spent),
            **choices,
        )
        row = run.privacy.row("coordinator")
        told = glance(tmp_path).spent
        # At the end it is what the report says; what was read before is kept.
        assert told["epsilon"][-1] == row.epsilon and told["rounds"][-1] == rounds
        assert told["theorem"] == row.theorem
        assert told["assumptions"] == list(row.assumptions)
    assert told["rounds"][0] == 1 and {"observer", "unit", "delta"} < set(told)
    assert [len(one["rounds"]) for one in seen] == sorted(
        len(one["rounds"]) for one in seen
    )
    assert seen[0]["epsilon"][-1] < told["epsilon"][-1]


def test_another_runs_checkpoint_is_refused(tmp_path):
    problem, algorithm = setting()
    tacita.simulate(problem, algorithm, 5, checkpoint=tmp_path)
    other = tacita.FedAvg(
        step_size=0.31, local_steps=2, oracle=tacita.Minibatch(size=3)
    )
    for changes in ({"seed": 1}, {"participation": 3}, {"record": ("loss",)}):
        with pytest.raises(tacita.TacitaError, match="belongs to another run"):
            tacita.simulate(
                problem, algorithm, 9, checkpoint=tmp_path, resume=True, **changes
            )
    with pytest.raises(tacita.TacitaError, match="belongs to another run"):
        tacita.simulate(problem, other, 9, checkpoint=tmp_path, resume=True)


def test_records_of_a_resumed_run_lie_where_they_would_have(tmp_path):
    problem, algorithm = setting()
    choices = dict(seed=5, record=("loss",), record_every=4)
    whole = tacita.simulate(problem, algorithm, 22, **choices)
    choices["checkpoint"] = tmp_path
    tacita.simulate(problem, algorithm, 15, **choices)
    run = tacita.simulate(problem, algorithm, 22, resume=True, **choices)
    assert run.metrics["round"].tolist() == [4, 8, 12, 16, 20, 22]
    np.testing.assert_array_equal(run.metrics["loss"], whole.metrics["loss"])
    np.testing.assert_array_equal(run.params, whole.params)


def test_resume_says_what_it_lacks(tmp_path):
    problem, algorithm = setting()
    with pytest.raises(tacita.TacitaError, match="add checkpoint="):
        tacita.simulate(problem, algorithm, 5, resume=True)
    tacita.simulate(problem, algorithm, 5, checkpoint=tmp_path)
    with pytest.raises(tacita.TacitaError, match="ask for at least 5 rounds"):
        tacita.simulate(problem, algorithm, 4, checkpoint=tmp_path, resume=True)
    again = dict(checkpoint=tmp_path / "error", record=("error",))
    tacita.simulate(problem, algorithm, 5, reference=np.zeros(3), **again)
    with pytest.raises(tacita.TacitaError, match="belongs to another run"):
        tacita.simulate(
            problem, algorithm, 5, reference=np.ones(3), resume=True, **again
        )


MODELS = """
import numpy as np
from tacita.problem import cnn, mlp
from tacita.runtime.fingerprint import words_of

def scaled(by):
    return lambda w, x: by * (x @ w)

models = (
    mlp(3, (4,), 2), mlp(3, (4,), 2, seed=1), mlp(3, (5,), 2), cnn((4, 4, 1), 2, (2,)),
    scaled(2.0), scaled(3.0), scaled(np.ones(2)), lambda w, x: x in {"a", "b", "c"},
)
told = [words_of(model) for model in models]
"""


@pytest.mark.long
def test_models_have_the_same_fingerprint_in_another_process():
    """Not their address; what they are made of tells them apart."""
    here = {"__name__": "__main__"}
    exec(MODELS, here)
    there = subprocess.run(
        [sys.executable, "-c", MODELS + "print(*told, sep='\\n')"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert there.splitlines() == here["told"]
    assert len(set(here["told"])) == 8 and "0x" not in there


@pytest.mark.parametrize("harm", ["torn", "flipped", "emptied", "other rounds"])
def test_a_damaged_checkpoint_is_refused(tmp_path, harm):
    problem, algorithm = setting()
    tacita.simulate(problem, algorithm, 5, checkpoint=tmp_path)
    path = tmp_path / "checkpoint.npz"
    content = bytearray(path.read_bytes())
    if harm == "torn":
        content = content[: len(content) // 2]
    elif harm == "flipped":
        content[-40] ^= 1
    elif harm == "other rounds":  # one bit of the line before the arrays
        content[content.index(b'"rounds": 5') + len(b'"rounds": ')] ^= 1
    else:
        content = bytearray()
    path.write_bytes(content)
    with pytest.raises(tacita.TacitaError, match="damaged; delete it"):
        tacita.simulate(problem, algorithm, 9, checkpoint=tmp_path, resume=True)

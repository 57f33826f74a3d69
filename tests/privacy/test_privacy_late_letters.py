"""What late letters cost: every question counts, whether it was heard or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tacita
from tacita.privacy import gaussian_epsilon
from tests.federation.towns import run_of

AGENTS, ROUNDS, DELTA = 4, 9, 1e-5
#: The last agent is so slow that it is given up again and again.
PACE = tacita.Pace(mean=[1.0, 1.0, 1.0, 1e6], most_staleness=1)


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    return tacita.problem.synthetic.logistic(agents=AGENTS, features=3, samples=20)


@pytest.fixture(scope="module")
def algorithm(problem) -> Any:
    algorithm = tacita.FedBuff(step_size=0.3)
    budget = {"epsilon": 2.0, "delta": DELTA, "observer": "coordinator"}
    return tacita.private(problem, algorithm, rounds=ROUNDS, **budget)


@pytest.fixture(scope="module")
def run(problem, algorithm) -> Any:
    told = {"participation": 2, "asynchronous": PACE, "record": ()}
    return tacita.simulate(problem, algorithm, ROUNDS, seed=2, **told)


def test_an_agent_pays_for_every_question_it_was_asked(run, algorithm):
    turns = run.info["turns"]
    # Asked anew in every second round, and never heard.
    assert turns[3] == (ROUNDS + 1) // 2
    std = float(algorithm.oracle.std)
    spent = gaussian_epsilon(std / 0.1 / np.sqrt(turns.max()), DELTA)
    row = run.privacy.row("coordinator")
    assert row.epsilon == pytest.approx(spent)
    assert row.epsilon <= 2.0
    curves = run.privacy.curves
    slow = curves["epsilon"][curves["agents"].index("3")][-1]
    assert slow == pytest.approx(gaussian_epsilon(std / 0.1 / np.sqrt(turns[3]), DELTA))


def test_a_plan_for_all_rounds_covers_whoever_is_always_heard(problem, algorithm):
    """Nobody can be asked more often than there are rounds."""
    always = tacita.Arrivals(agents=[[0, 1]] * ROUNDS)
    run = tacita.simulate(problem, algorithm, ROUNDS, asynchronous=always, record=())
    assert run.privacy is not None
    row = run.privacy.row("coordinator")
    assert row.epsilon == pytest.approx(2.0, rel=1e-4)
    assert run.info["turns"].tolist() == [ROUNDS, ROUNDS, 1, 1]


@pytest.mark.parametrize(
    ("told", "status"),
    [({"name": "Pace"}, "enforced"), ({"name": "Arrivals"}, "believed"), (None, None)],
)
def test_the_times_of_letters_are_an_assumption(run, problem, algorithm, told, status):
    about = {**run.config["run"], "asynchronous": told}
    again = tacita.privacy.report(
        tacita.Run(**{**vars(run), "config": {**run.config, "run": about}}),
        problem,
        algorithm,
    )
    for row in again.rows:
        notes = {
            one["status"]
            for one in row.assumptions
            if one["statement"].startswith(("who is heard when", "when letters come"))
        }
        assert notes == ({status} if status else set())


def test_a_run_file_counts_on_no_draw_of_who_is_heard(tmp_path):
    """Two of four agents a round would look like half the rounds."""
    spent = {}
    for name, more in {"drawn": {}, "late": {"asynchronous": {"mean": 1.0}}}.items():
        job = tacita.job.job_from(
            {
                "problem": {"data": "synthetic-logistic", "agents": 4},
                "algorithm": {
                    "name": "FedBuff",
                    "step_size": 0.3,
                    "norm": 1.0,
                    "noise_std": 1.0,
                },
                "run": {"rounds": ROUNDS, "participation": 2, **more},
            },
            tmp_path,
        )
        plan = tacita.privacy.forecast(job.problem, job.algorithm, **job.plan())
        spent[name] = plan.row("coordinator").epsilon
    assert spent["late"] > spent["drawn"]


def test_a_deployed_budget_names_the_times_too(tmp_path):
    from tacita.federation import setting
    from tacita.federation.budget import plan_of, privacy_of
    from tacita.federation.description import Description
    from tacita.federation.own_rows import blank_problem
    from tacita.privacy import Ledger

    made = run_of(privacy={"epsilon": 1.0, "delta": DELTA})
    made["problem"]["bound"] = 3.0
    made["algorithm"] = {"name": "FedBuff", "step_size": 0.3}
    made["run"] = {"rounds": 4, "participation": 2, "asynchronous": True}
    run = Description("town", "try", "coordinator", ("ada", "bob", "cyd"), made)
    ready = setting.setting_of(run, blank_problem(run))
    with Ledger(tmp_path / "ledger.db") as ledger:
        plan = plan_of(ready, "ada", ledger, None)
    believed = {one.statement for one in plan.price.assumptions}
    assert any(words.startswith("when letters come") for words in believed)
    row = privacy_of(plan.setting, run.rounds).row("coordinator")
    assert row.epsilon == pytest.approx(1.0, rel=1e-4)
    told = [one["statement"] for one in row.assumptions]
    assert any(words.startswith("when letters come") for words in told)

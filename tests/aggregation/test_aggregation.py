"""How letters become one: the mean by default, any other rule by handing it over."""

from __future__ import annotations

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.aggregation import RULES, Bridge, Heard, Mean, Median
from tacita.runtime import engine
from tests.cases import case_of

NAMES = ["ServerGD", "FedAvg", "FedPLT", "FedProx"]


@pytest.mark.few(1)
@pytest.mark.parametrize("participation", [1.0, 3, 0.3])
@pytest.mark.parametrize("name", NAMES)
def test_a_rule_gives_the_same_simulated_and_one_by_one(name, participation):
    """FedPLT averages everybody's last letters, the others the active."""
    case = case_of(name)
    chosen = {"participation": participation, "seed": 2, "aggregation": Median()}
    fast = tacita.simulate(case.problem(), case.algorithm, 4, record=(), **chosen)
    slow = tacita.debug(case.problem(), case.algorithm, 4, record=(), **chosen)
    np.testing.assert_allclose(fast.agents, slow.agents, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fast.params, slow.params, rtol=0, atol=1e-12)


def test_the_rule_is_used():
    """With a median one of six agents whose data are wild moves nothing far."""
    problem = case_of("FedAvg").problem()
    algorithm = tacita.FedAvg(step_size=np.array([0.3] * 5 + [300.0]), local_steps=1)
    mean = tacita.simulate(problem, algorithm, 3)
    median = tacita.simulate(problem, algorithm, 3, aggregation=Median())
    assert np.linalg.norm(mean.params) > 10 * np.linalg.norm(median.params)


@pytest.mark.few(1)
@pytest.mark.parametrize("participation", [1.0, 3, 0.3])
def test_the_mean_is_the_default(participation):
    case = case_of("FedAvg")
    chosen = {"participation": participation, "seed": 2, "record": ()}
    plain = tacita.simulate(case.problem(), case.algorithm, 3, **chosen)
    named = tacita.simulate(
        case.problem(), case.algorithm, 3, aggregation=Mean(), **chosen
    )
    np.testing.assert_array_equal(plain.agents, named.agents)


def test_a_mean_is_over_who_is_heard_and_by_weight():
    letters = {"w": jnp.array([[1.0], [2.0], [jnp.nan]])}
    weights = jnp.array([1.0, 3.0, 5.0])
    active = jnp.array([True, True, False])
    key = jnp.zeros(2)
    joint = Mean()(Heard(letters, weights, active, key))
    assert joint["w"].tolist() == [1.75]
    nobody = Mean()(Heard(letters, weights, jnp.zeros(3, bool), key))
    assert nobody["w"].tolist() == [0.0]


def test_a_rule_is_part_of_the_run(tmp_path):
    """Its name is told, and a checkpoint of another rule is another run."""
    case = case_of("FedAvg")
    run = tacita.simulate(case.problem(), case.algorithm, 2, aggregation=Median())
    assert run.config["run"]["aggregation"] == {"name": "Median"}
    chosen = {"checkpoint": tmp_path, "record": ()}
    tacita.simulate(case.problem(), case.algorithm, 2, **chosen)
    with pytest.raises(tacita.TacitaError, match="another run"):
        tacita.simulate(
            case.problem(),
            case.algorithm,
            4,
            resume=True,
            aggregation=Median(),
            **chosen,
        )


def test_only_a_mean_covers_a_letter_with_the_noise_of_others():
    """Seen by who gets the model only; the coordinator sees letters either way."""
    problem = case_of("FedAvg").problem()
    noisy = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.FedAvg(step_size=0.1, oracle=noisy)
    mean = tacita.simulate(problem, algorithm, 3)
    median = tacita.simulate(problem, algorithm, 3, aggregation=Median())
    for observer in ("coordinator", "eavesdropper"):
        same = [run.privacy.row(observer).epsilon for run in (mean, median)]
        assert same[0] == same[1]
    final = [run.privacy.row("final_model").epsilon for run in (mean, median)]
    assert final[1] > 2 * final[0]
    assert final[1] == median.privacy.row("coordinator").epsilon
    with pytest.raises(tacita.TacitaError, match="joined by Median"):
        tacita.privacy.report(median, problem, algorithm)
    again = tacita.privacy.report(median, problem, algorithm, aggregation=Median())
    assert again.row("final_model").epsilon == final[1]
    budget = {"epsilon": 1.0, "delta": 1e-5, "rounds": 5, "observer": "final_model"}
    plain = tacita.private(problem, tacita.FedAvg(step_size=0.1), **budget)
    chosen = tacita.FedAvg(step_size=0.1)
    alone = tacita.private(problem, chosen, **budget, aggregation=Median())
    assert np.all(alone.oracle.std > 2 * np.asarray(plain.oracle.std))


def test_noise_of_a_coordinator_covers_sums_only():
    problem = case_of("FedAvg").problem()
    algorithm = tacita.ClientDPFedAvg(step_size=0.1, noise_std=1.0)
    told = tacita.privacy.forecast(
        problem, algorithm, rounds=3, aggregation=Median()
    ).row("final_model", "client")
    assert told.epsilon is None
    assert "no number bounds what one letter does" in told.theorem


def test_the_same_rule_compiles_once():
    case = case_of("FedAvg")
    for _ in range(2):
        tacita.simulate(case.problem(), case.algorithm, 2, aggregation=Median())
        before = engine.advance.programs
    tacita.simulate(case.problem(), case.other, 3, aggregation=Median())
    assert engine.advance.programs == before


@pytest.mark.parametrize(
    ("name", "rule", "words"),
    [
        ("FedAvg", "median", "expected aggregation a rule"),
        ("FedAvg", Median, "expected aggregation a rule"),
        ("DPNorm", Median(), "letters of DPNorm are no models"),
        ("SCAFFOLD", Median(), "SCAFFOLD needs the exact mean"),
        ("FedSPD", Median(), "FedSPD needs the exact mean"),
        ("FedAvg", Bridge(), "Bridge starts from a node's own letter"),
    ],
)
def test_what_is_no_rule_is_refused(name, rule, words):
    case = case_of(name)
    for run in (tacita.simulate, tacita.debug):
        with pytest.raises(tacita.TacitaError, match=words):
            run(case.problem(), case.algorithm, 1, aggregation=rule)


def test_a_rule_refuses_too_few_agents():
    pair = tacita.problem.synthetic.logistic(agents=2, features=3, samples=12)
    with pytest.raises(tacita.TacitaError, match="at least 3 letters"):
        tacita.simulate(pair, tacita.FedAvg(), 1, aggregation=Median())


def test_a_page_says_when_each_rule_fails():
    page = Path(__file__).parents[2] / "docs" / "explanation-robust.md"
    text = page.read_text().split("## When each rule fails")[1].split("\n## ")[0]
    bold = re.findall(r"\*\*([^*]+)\*\*", text)
    named = {name for group in bold for name in group.split(", ")}
    assert {rule.__name__ for rule in RULES} <= named

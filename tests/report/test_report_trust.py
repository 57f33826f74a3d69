"""The section on trust: a sentence and a table for each part of it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.aggregation import TrimmedMean
from tacita.encoding import Encoding
from tacita.problem import graph, synthetic
from tacita.report import trustworthy, write_report
from tacita.theory.sensitivity import Sensitivity
from tacita.trust import examine
from tests.report.test_report_page import Page

PARTS = ("Robustness", "Fairness", "Explainability", "Energy", "Privacy")


@pytest.fixture(scope="module")
def coupled():
    problem = synthetic.linear(6, 2, 9, graph=graph.ring(6), seed=1)
    algorithm = tacita.FedGD(alpha=0.5)
    return problem, algorithm, tacita.simulate(problem, algorithm, 60, record=())


@pytest.fixture(scope="module")
def private():
    problem = synthetic.logistic(agents=4, features=3, samples=30, bound=3.0)
    algorithm = tacita.private(
        problem,
        tacita.ServerGD(step_size=0.5),
        epsilon=1.0,
        delta=1e-5,
        observer="coordinator",
        rounds=4,
    )
    return problem, algorithm, tacita.simulate(problem, algorithm, 4, record=())


def test_a_page_has_five_parts_each_a_sentence_and_a_table(coupled, tmp_path: Path):
    problem, algorithm, run = coupled
    given: dict[str, Any] = {"joules_per_operation": 1e-9, "joules_per_byte": 1e-7}
    told = examine(problem, algorithm, run, **given, kilograms_per_kwh=0.3)
    page = Page(write_report(told.attach(run), tmp_path))
    text = (tmp_path / "report.html").read_text()
    content = text[text.index('id="trust"') :].split("</section>")[0]
    parts = re.split(r"<h3>(\w+)</h3>", content)
    assert tuple(parts[1::2]) == PARTS
    for part in parts[2::2]:
        assert re.match(r"\s*<p>[A-Z][^<]+\.</p>\s*<div class=\"scroll\"><table>", part)
    for value in (told.robustness["label_gain"], told.fairness["spread"]["gini"]):
        assert f"{value:.4g}" in page.text
    assert "not known" not in page.text and "This run is private" not in page.text


def test_the_numbers_are_those_of_the_run(coupled):
    problem, algorithm, run = coupled
    told = examine(problem, algorithm, run)
    exact = Sensitivity(problem, 0.5)
    assert told.robustness["label_gain"] == pytest.approx(exact.label_gain)
    assert (told.robustness["bears"], told.robustness["letters"]) == (0, 2)
    first, second, _ = problem.graph.pairs()
    worst = int(np.argmax(exact.edge_influences()))
    assert told.robustness["edge_most"] == f"{first[worst]} - {second[worst]}"
    losses = tacita.problem.held_out.node_losses(problem, run.agents)
    np.testing.assert_allclose(told.fairness["losses"], losses)
    assert told.fairness["worst"] == str(int(np.argmax(losses)))
    assert told.energy["joules"] is None
    # Two features are all that there are.
    assert told.explanation["sparse"] > 0.9


def test_agents_with_several_kinds_of_models_are_examined_by_their_own(coupled):
    x, y, _ = coupled[0].stacked()
    rows, labels, agent = x.reshape(54, 2), np.sign(y.ravel()), np.repeat(range(6), 9)
    run, algorithm = coupled[2], tacita.FedGD(alpha=0.5, step_size=0.1)

    def told(even, odd):
        kinds = {i: odd if i % 2 else even for i in range(6)}
        on = {"model": kinds, "graph": graph.ring(6)}
        problem = tacita.from_arrays(rows, labels, agent, **on)
        return examine(problem, algorithm, run)

    scores = np.einsum("nmd,nd->nm", x, run.agents).ravel()
    numbers, signs = told("linear", "huber"), told("logistic", "hinge")
    tree = tacita.trust.explain.fidelity(rows, scores, "tree", classes=False)
    assert numbers.explanation["tree"] == pytest.approx(tree)
    assert not numbers.robustness["classes"] and signs.robustness["classes"]
    with pytest.raises(tacita.TacitaError, match="predict a class and others a number"):
        told("linear", "logistic")


def test_a_private_run_says_whose_the_numbers_are(private, tmp_path: Path):
    problem, algorithm, run = private
    plain = Page(write_report(run, tmp_path / "plain"))
    assert "trust" not in plain.ids
    told = examine(problem, algorithm, run, group=0, aggregation=TrimmedMean(trim=1))
    page = Page(write_report(told.attach(run), tmp_path / "own"))
    assert trustworthy.OWNER in page.text
    assert "Of 4 agents that are heard, 1 may lie" in page.text
    assert "what the coordinator sees" in page.text
    # (1 + delta e^-1) / (1 + e^-1)
    assert "at most 73.1" in page.text
    assert "gap of decisions between groups" in page.text
    assert "Energy and CO2e are not known: nobody has said" in page.text


def test_a_violated_assumption_takes_the_promise_back(tmp_path: Path):
    noisy = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=1.0))
    problem = synthetic.logistic(agents=4, features=3, samples=30)
    run = tacita.simulate(problem, tacita.ServerGD(oracle=noisy), 2, record=())
    sentence, _ = trustworthy.privacy(run.privacy)
    assert sentence.startswith("No promise is kept")


def test_answers_off_by_a_little_are_measured():
    """A model that looks at one feature only turns with it."""
    x = np.array([[1.0, 5.0], [-1.0, 5.0], [1e-9, -5.0], [-1e-9, -5.0]] * 50)
    problem = tacita.from_arrays(x, np.sign(x[:, 0]), np.arange(200) % 2)
    algorithm = tacita.ServerGD(step_size=0.1)
    run = tacita.simulate(problem, algorithm, 1, record=())
    run = dataclasses.replace(run, params=np.array([1.0, 0.0]))
    told = examine(problem, algorithm, run)
    # Half of the rows are at the border, and half of those fall to the other side.
    assert told.robustness["turned"] == pytest.approx(0.25, abs=0.08)


def test_groups_are_told_apart_by_the_name_of_a_feature(private):
    problem, algorithm, run = private
    names = tuple(f"f{i}" for i in range(problem.stacked()[0].shape[2]))
    named = dataclasses.replace(problem, encoding=Encoding.of_numbers(names))
    by_number = examine(named, algorithm, run, group=1).fairness
    by_name = examine(named, algorithm, run, group="f1").fairness
    assert by_name["group"] == by_number["group"] == "f1"
    assert by_name["gaps"] == by_number["gaps"]
    assert by_name["gaps"] != examine(named, algorithm, run, group="0").fairness["gaps"]
    assert "told apart by f1, decisions" in trustworthy.fairness(by_name)[0]
    with pytest.raises(tacita.TacitaError, match="unknown group='sex'; .*f0"):
        examine(named, algorithm, run, group="sex")
    with pytest.raises(tacita.TacitaError, match="no names here; give a number"):
        examine(problem, algorithm, run, group="sex")


def test_what_cannot_be_examined_is_refused(coupled):
    problem, algorithm, run = coupled
    with pytest.raises(tacita.TacitaError, match="yes/no"):
        examine(problem, algorithm, run, group=0)
    run = tacita.simulate(problem, tacita.FedGD(alpha=0.5, step_size=1e9), 60)
    with pytest.raises(tacita.TacitaError, match="diverged"):
        examine(problem, algorithm, run)

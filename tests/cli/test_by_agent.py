"""Run files in which every agent has a model of its own."""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from tacita.problem import Huber, Linear

FILE = """
[problem]
data = "rows.csv"
target = "y"
agent = "who"
graph = {{ kind = "ring" }}
model = {model}

[algorithm]
name = "FedRelax"
alpha = 0.5
h = {{ name = "L1", weight = 0.1 }}

[run]
rounds = 2
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    lines = [
        f"{who},{a:.3f},{b:.3f},{a - b:.3f}"
        for who in ("a", "b", "c")
        for a, b in random.normal(size=(6, 2))
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["who,u,v,y", *lines]))

    def read(model):
        (tmp_path / "run.toml").write_text(FILE.format(model=model))
        return tacita.job.read(str(tmp_path / "run.toml"))

    return read


def test_lists_of_agents_by_model(written):
    lists = '{ name = "by_agent", linear = ["a"], huber = ["c", "b"] }'
    job = written(lists)
    assert job.problem.model_of("a") == Linear(2)
    assert job.problem.model_of("b") == job.problem.model_of("c") == Huber(2)
    assert job.algorithm.h.weight == 0.1
    same = tacita.job.table_of(job.algorithm)
    assert same["h"] == {"name": "L1", "weight": 0.1}
    alone = written('{ name = "by_agent", huber = ["a", "b", "c"] }')
    assert alone.problem.model == Huber(2)


@pytest.mark.parametrize(
    "lists, match",
    [
        ('linear = ["a"], huber = ["b"]', "none for agent 'c'"),
        ('linear = ["a", "b"], huber = ["b", "c"]', "'b' twice"),
        ('linear = ["a", "b", "d"]', "unknown agent 'd'"),
        ('linear = "a"', "a list of agents"),
        ('cubic = ["a", "b", "c"]', "cubic"),
        ('linear = ["a", "b"], logistic = ["c"]', "predicts a class"),
    ],
)
def test_lists_that_do_not_fit_are_refused(written, lists, match):
    with pytest.raises(tacita.TacitaError, match=match):
        written(f'{{ name = "by_agent", {lists} }}')

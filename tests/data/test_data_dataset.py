"""The container: what it accepts, and that rows keep their agents."""

import numpy as np
import pytest

from tacita.check import TacitaError
from tacita.data import Dataset, load


def toy(**changes):
    fields = {
        "name": "toy",
        "x": np.arange(12.0).reshape(6, 2),
        "y": np.array([0, 1, 0, 1, 0, 1]),
        "task": "classification",
        "feature_names": ("a", "b"),
        "classes": ("no", "yes"),
        "agent": np.array([0, 0, 1, 2, 2, 2]),
        "agent_names": ("north", "east", "south"),
        "positions": np.array([[60.0, 24.0], [61.0, 25.0], [62.0, 26.0]]),
        "test_x": np.arange(8.0).reshape(4, 2),
        "test_y": np.array([1, 1, 0, 0]),
        "test_agent": np.array([2, 1, 0, -1]),
    }
    return Dataset(**(fields | changes))


def test_rows_by_agent():
    data = toy()
    assert len(data) == 6 and data.n_agents == 3
    assert data.rows_of("south").tolist() == data.rows_of(2).tolist() == [3, 4, 5]
    parts = data.by_agent()
    assert [len(y) for _, y in parts] == [2, 1, 3]
    np.testing.assert_array_equal(parts[2][0], data.x[3:])
    shuffled = toy(agent=np.array([2, 0, 1, 2, 0, 1]))
    np.testing.assert_array_equal(shuffled.by_agent()[0][0], shuffled.x[[1, 4]])


def test_subset_renumbers_agents_and_drops_the_test_rows_of_those_gone():
    data = toy()
    for rows in ([0, 3, 4], np.array([True, False, False, True, True, False])):
        part = data.subset(rows)
        assert part.agent_names == ("north", "south")
        assert part.agent.tolist() == [0, 1, 1]
        assert part.positions.tolist() == [[60.0, 24.0], [62.0, 26.0]]
        assert part.test_agent.tolist() == [1, 0, -1]
        assert part.test_y.tolist() == [1, 0, 0]
        assert part.y.tolist() == [0, 1, 0]
    assert len(data) == 6
    whole = data.subset(np.arange(6))
    np.testing.assert_array_equal(whole.test_agent, data.test_agent)
    assert toy(agent=None, agent_names=()).subset([1]).agent is None


def test_with_agents_takes_numbers_labels_and_left_out_rows():
    data = toy().with_agents(np.array([0, -1, 1, 1, -1, 0]))
    assert data.agent.tolist() == [0, 1, 1, 0] and len(data) == 4
    assert data.x[:, 0].tolist() == [0.0, 4.0, 6.0, 10.0]
    assert data.agent_names == ("agent 0", "agent 1")
    assert data.positions is None and data.test_agent is None
    assert data.test_x is not None
    data = toy().with_agents(list("baabba"))
    assert data.agent_names == ("a", "b") and data.agent.tolist() == [1, 0, 0, 1, 1, 0]
    named = toy().with_agents([0, 0, 0, 1, 1, 1], ("left", "right"))
    assert named.agent_names == ("left", "right")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"task": "clasification"}, "did you mean 'classification'"),
        ({"x": np.ones(6)}, "x of shape"),
        ({"x": np.ones((6, 3))}, "x of shape (any, 2)"),
        ({"y": np.zeros(5, int)}, "y of shape (6"),
        ({"x": np.full((6, 2), np.nan)}, "remove or impute"),
        ({"y": np.array([0, 1, 2, 0, 0, 0])}, "from 0 to 1"),
        ({"y": np.zeros(6)}, "whole numbers"),
        ({"y": np.full(6, np.inf), "task": "regression"}, "infinite"),
        ({"test_y": None}, "together"),
        ({"test_y": np.array([0, 0, 0, 5])}, "test_y whole numbers"),
        ({"agent": np.array([0, 0, 0, 2, 2, 2])}, "agent 'east' holds no row"),
        ({"agent_names": ("north",)}, "1 names for 3 agents"),
        ({"positions": np.ones((2, 2))}, "positions of shape (3, 2)"),
        ({"test_agent": np.zeros(3, int)}, "test_agent of shape (4"),
        ({"x": np.ones((0, 2)), "y": np.zeros(0, int)}, "has no rows"),
    ],
)
def test_bad_fields_are_refused_in_one_line(changes, words):
    with pytest.raises(TacitaError) as caught:
        toy(**changes)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: d.rows_of("nort"), "did you mean 'north'"),
        (lambda d: d.rows_of(3), "agent from 0 to 2"),
        (lambda d: d.party("bank"), "unknown party='bank'"),
        (lambda d: d.with_agents([0, 1]), "agent of shape (6"),
        (lambda d: d.with_agents([0, 0, 0, 2, 2, 2]), "'agent 1' holds no row"),
        (lambda d: d.with_agents([-1] * 6), "agent numbers >= 0"),
        (lambda d: d.with_agents([-2] * 6), "agent numbers >= 0"),
        (lambda d: d.with_agents(list("aabbcc"), ("x",)), "names only with"),
        (lambda d: d.subset([]), "choose at least one row"),
        (lambda d: d.subset([False] * 6), "choose at least one row"),
        (lambda d: d.subset([6]), "out of bounds"),
        (lambda d: d.subset([True] * 5), "cannot choose rows"),
        (lambda d: d.subset([0.5]), "cannot choose rows"),
        (lambda d: load("iris").by_agent(), "nobody holds the rows of 'iris' yet"),
    ],
)
def test_bad_calls_are_refused_in_one_line(call, words):
    with pytest.raises(TacitaError) as caught:
        call(toy())
    assert words in str(caught.value) and "\n" not in str(caught.value)

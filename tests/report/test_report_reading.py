"""The page of letters that were read, and what every epsilon on it rests on."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tacita.audits import Members, ReadBack, Reading
from tacita.report import (
    members_table,
    picture_shape,
    reading_table,
    resilience_table,
    write_reading,
)
from tacita.trace import PrivacyRow
from tacita.tuning.resilience import LOSS, Resilience

ROW = PrivacyRow(
    observer="coordinator",
    unit="record",
    relation="replace_one",
    delta=1e-5,
    epsilon=None,
    theorem="no noise, no bound",
)
BOUND = dataclasses.replace(
    ROW,
    epsilon=1.0,
    theorem="composition of Gaussians",
    assumptions=({"statement": "gradients are clipped", "status": "enforced"},),
)


@pytest.fixture
def read() -> ReadBack:
    x = np.random.default_rng(0).random((2, 17))
    bare = Reading("no noise", ROW, x, np.array([0.0, 2.0]), 0.0)
    noised = Reading("epsilon 1", BOUND, 0 * x, np.array([2.0, 1.0]), 0.3)
    return ReadBack("<b>", 1, 9, x, np.array([0.0, 2.0]), 0.25, (bare, noised))


def test_the_table_says_what_was_found_beside_what_is_allowed(read):
    bare, noised, guess = reading_table(read).rows
    assert bare[1:] == ("–", "0.000", "100%", "2 of 2")
    assert noised[1:] == ("1", "0.300", "0%", "1 of 2")
    assert guess[2] == "0.250"


def test_members_stand_beside_their_bound():
    inside, outside = np.arange(1000.0), np.arange(1000.0) - 500
    found = {"epsilon 1": Members("a", inside, outside, BOUND)}
    (line,) = members_table(found).rows
    most = np.e * 0.1 + 1e-5
    assert line[-1] == f"60.0% ({most:.1%})"
    assert Members("a", inside, outside, ROW).most(0.1) == 1.0
    added = dataclasses.replace(BOUND, relation="add_remove")
    twice = np.exp(2) * 0.01 + (1 + np.e) * 1e-5
    assert Members("a", inside, outside, added).most(0.01) == pytest.approx(twice)


def test_the_page_names_what_every_epsilon_rests_on(read, tmp_path):
    page = write_reading(read, {}, tmp_path / "out", "Letters", (4, 4)).read_text()
    for words in ("composition of Gaussians", "gradients are clipped (enforced)"):
        assert words in page
    assert "epsilon 1 (delta 1e-05), coordinator, one record, replace_one" in page
    assert "agent &lt;b&gt;" in page and "Members found" not in page
    assert (tmp_path / "out" / "letters-read.png").stat().st_size > 1000


def test_which_rows_are_pictures():
    assert picture_shape((785,), ones=True) == (28, 28)
    assert picture_shape((9,), ones=False) is None
    assert picture_shape((8, 8, 3), ones=False) == (8, 8, 3)


def test_losses_are_judged_by_their_own_size():
    values = np.array([[-100.0, -np.inf], [-101.0, -104.0]])
    made = Resilience(("Mean", "Median"), ("none", "flip"), values, LOSS, -100.0, (1,))
    said = made.recommendation()
    assert "take Median" in said and "costs" not in said and "unlike" not in said
    assert resilience_table(made).rows[0][2] == "diverged"
    small = dataclasses.replace(made, values=values / 100, alone=-0.5)
    assert "No rule here holds" in small.recommendation()

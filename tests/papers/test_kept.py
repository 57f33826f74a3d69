"""Raw results of long scripts: kept as they come, gone on from, drawn from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.common.kept import Kept, kept_or_made
from papers.fed_plt.common.measures import Case, repeat


class StoppedError(Exception):
    """The power went."""


def fail():
    raise StoppedError


def test_what_was_made_is_not_made_again(tmp_path):
    first = Kept(tmp_path, "table")
    given = {"x": np.arange(3) / 7, "n": math.nan, "words": "a"}
    made = first("one", lambda: given)
    assert made["x"] == given["x"].tolist() and math.isnan(made["n"])
    assert first("one", fail) is made
    with pytest.raises(StoppedError):
        first("two", fail)
    again = Kept(tmp_path, "table", resume=True)
    assert again("one", fail)["x"] == made["x"]  # to the last digit
    np.testing.assert_array_equal(again.array("two", lambda: [1, 2]), [1, 2])
    with pytest.raises(StoppedError):
        Kept(tmp_path, "table")("one", fail)  # without resume all is run again


def test_a_line_that_was_being_written_is_left_out(tmp_path):
    kept = Kept(tmp_path, "table")
    kept("one", lambda: 1.5)
    kept("two", lambda: 2.5)
    path = tmp_path / "raw" / "table.jsonl"
    whole = path.read_text()
    path.write_text(whole[:-4])
    again = Kept(tmp_path, "table", resume=True)
    assert again("one", fail) == 1.5 and again("two", lambda: 2.5) == 2.5
    assert path.read_text() == whole


def test_repetitions_go_on_where_they_were_stopped(tmp_path):
    """Nothing that is kept is measured, or drawn, again."""
    drawn: list[int] = []
    left = [5]

    def make(seed):
        drawn.append(seed)
        return seed

    def measure(instance, case, repetition):
        if not left[0]:
            raise StoppedError
        left[0] -= 1
        return 10.0 * instance + case.rounds

    cases = {"a": Case(lambda p: p, rounds=1), "b": Case(lambda p: p, rounds=2)}
    given = (make, cases, 4, "Table", measure)
    with pytest.raises(StoppedError):
        repeat(*given, kept=Kept(tmp_path, "table"))
    assert drawn == [1, 2, 3]
    left[0] = 3
    found = repeat(*given, kept=Kept(tmp_path, "table", resume=True))
    assert drawn == [1, 2, 3, 3, 4] and left == [0]
    assert found["a"].tolist() == [11, 21, 31, 41]
    assert found["b"].tolist() == [12, 22, 32, 42]
    left[0] = 8
    assert repeat(*given)["a"].tolist() == found["a"].tolist()
    assert kept_or_made(None, "one", lambda: 3) == 3

"""Tests wait for events, not for seconds: no limit that a busy machine could miss."""

from __future__ import annotations

import re
from pathlib import Path

#: Waiting for a result, a process or an answer for so many seconds.
LIMIT = re.compile(
    r"\.(?:result|exception|wait|join)\([1-9][\d.]*\)|(?<!_)timeout=[1-9][\d.]*[,)]"
)


def test_no_test_has_a_wall_clock_limit_of_its_own():
    assert LIMIT.search("run.result(20)") and LIMIT.search("get(url, timeout=5)")
    assert not LIMIT.search("run.result(HANG)")
    for path in Path(__file__).parent.rglob("*.py"):
        if path == Path(__file__):
            continue
        lines = path.read_text().splitlines()
        found = [one for one in lines if LIMIT.search(one)]
        assert not found, f"{path.name}: {found[0].strip()}; use tests.patience.HANG"

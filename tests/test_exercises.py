"""Every exercise that is a computation is listed, and stands where the page says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Those of chapters 7 to 10 all are.
EXERCISES = [
    *("1.3", "1.4"),
    *("2.1", "2.3", "2.4", "2.5"),
    *(
        "3.1",
        "3.2",
        "3.4",
        "3.5",
        "3.7",
        "3.9",
        "3.10",
        "3.11",
        "3.12",
        "3.13",
        "3.14",
        "3.15",
    ),
    *("4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7"),
    *("5.1", "5.2", "5.3", "5.4", "5.6"),
    *("6.1", "6.2"),
    *("7.1", "8.1", "8.2", "9.1", "9.2", "9.3", "9.4", "9.5"),
    *("10.1", "10.2", "10.3", "10.4"),
]


def rows() -> dict[str, list[tuple[str, str]]]:
    """By exercise, the files and functions that its row names."""
    text = (ROOT / "docs" / "ref-exercises.md").read_text()
    listed = re.findall(r"^\| (\d+\.\d+) \|(.*)$", text, flags=re.M)
    return {number: re.findall(r"`([^`]+)::(\w+)`", row) for number, row in listed}


def test_all_exercises_are_listed():
    assert list(rows()) == EXERCISES


def test_every_place_exists():
    for number, places in rows().items():
        assert places, number
        for file, function in places:
            tree = ast.parse((ROOT / file).read_text())
            names = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
            assert function in names, f"{number}: {file}::{function}"
            runs = file.startswith("examples/") or function.startswith("test_")
            assert runs, f"{number}: nobody runs {file}::{function}"

"""Every exercise of chapters 7 to 10 is listed, and stands where the page says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: All of them are computations.
EXERCISES = [
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

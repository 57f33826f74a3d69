"""The notebooks hold what they show, and show the same kinds of things again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.notebooks import NOTEBOOKS, execute, faults, words_of

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def kinds(notebook) -> list[list[str]]:
    """What every cell shows: tables, pictures, words."""
    return [
        sorted({kind for o in cell.outputs for kind in o.get("data", {"text": ""})})
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_there_are_five_and_each_is_small():
    assert len(NOTEBOOKS) == 5
    for path in NOTEBOOKS:
        assert path.stat().st_size < 400_000, path.name
        cells = json.loads(path.read_text())["cells"]
        counts = [c["execution_count"] for c in cells if c["cell_type"] == "code"]
        assert counts == list(range(1, len(counts) + 1)), path.name


@each
def test_it_shows_neither_errors_nor_paths_of_a_machine(path: Path):
    nbformat = pytest.importorskip("nbformat")
    kept = nbformat.read(path, as_version=4)
    assert not faults(kept)
    assert words_of(kept)


@pytest.mark.long
@each
def test_it_runs_again(path: Path):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    import nbformat

    done = execute(path)
    assert not faults(done)
    assert kinds(done) == kinds(nbformat.read(path, as_version=4))

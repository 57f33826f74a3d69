"""What the pages show of the federation works as shown."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tacita.federation import Invitation
from tests.federation.towns import NAMES, Town, run_of, simulated

ROOT = Path(__file__).parents[2]


def test_the_transport_of_the_how_to_page_carries_a_run(tmp_path: Path):
    text = (ROOT / "docs" / "how-to-run-a-hub.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    names: dict[str, Any] = {}
    exec(code, names)

    def post(invitation: Invitation) -> Any:
        return names["FolderPost"](invitation, tmp_path / "letters")

    run = run_of(rounds=3)
    with Town(tmp_path, post) as town:
        results = town.run(run)
    shared = results["coordinator"].models["shared"]
    expected = simulated(run)
    np.testing.assert_allclose(shared, expected.params, rtol=0, atol=1e-12)
    for name in NAMES:
        assert results[name].models["shared"].tobytes() == shared.tobytes()


def test_the_example_in_python_keeps_every_budget(capsys, monkeypatch):
    path = ROOT / "examples" / "federation_in_python.py"
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    said = capsys.readouterr().out
    assert said.count("epsilon 2.00 of 2.00 spent against the coordinator") == 3

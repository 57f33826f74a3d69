"""What the pages show of the federation works as shown."""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from tacita.federation import Invitation, Policy
from tacita.federation.description import Description
from tacita.trees import rules
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


def test_the_page_on_policies_names_every_key_and_its_examples_are_valid():
    text = (ROOT / "docs" / "how-to-decide-on-a-run.md").read_text()
    for key in rules(Policy):
        assert f"`{key}`" in text, key
    found = re.findall(r"```toml\n(.*?)```", text, flags=re.S)
    policies = [Policy.of_words(tomllib.loads(block)) for block in found]
    assert [p.approval for p in policies] == [True]


def test_the_policies_that_are_shown_allow_the_run_of_the_tutorial():
    text = (ROOT / "docs" / "tutorial-federation.md").read_text()
    blocks = [tomllib.loads(b) for b in re.findall(r"```toml\n(.*?)```", text, re.S)]
    (run,) = (b for b in blocks if "problem" in b)
    (shown,) = (b for b in blocks if "max_epsilon" in b)
    run.pop("name")
    assert (
        run["privacy"]["epsilon"] <= shown["max_epsilon"] / 2
    )  # not all of it at once
    run["privacy"]["observer"] = "coordinator"
    agents = ("oslo", "turku")
    tutorial = Description("clinics", "first", "coordinator", agents, run)
    examples = ROOT / "examples" / "federation"
    for policy in (
        Policy.of_words(shown),
        Policy.read(examples / "policy-careful.toml"),
        Policy.read(examples / "policy-trial.toml"),
    ):
        assert policy.objection(tutorial) is None
    bare = {k: v for k, v in run.items() if k != "privacy"}
    unprotected = Description("clinics", "first", "coordinator", agents, bare)
    trial = Policy.read(examples / "policy-trial.toml")
    careful = Policy.read(examples / "policy-careful.toml")
    assert trial.objection(unprotected) is None
    assert "states no epsilon" in str(careful.objection(unprotected))


def test_the_example_in_python_keeps_every_budget(capsys, monkeypatch):
    path = ROOT / "examples" / "federation_in_python.py"
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    said = capsys.readouterr().out
    assert said.count("epsilon 2.00 of 4.00 spent against the coordinator") == 3

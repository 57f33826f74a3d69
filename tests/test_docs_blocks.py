"""Every command and every piece of code on the pages is run, or says why it is not.

A block is `python`, `sh`, `sh background`, `sh fails`, `toml`, or something to read.
One that cannot run stands below a comment: `<!-- not run: REASON -->`.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tacita.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = {p.name: p for p in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
KINDS = ("python", "sh", "sh background", "sh fails", "toml", "text", "")
#: Pages whose blocks a test of their own runs.
ELSEWHERE = {
    "how-to-run-a-hub.md": "tests/federation/test_federation_page.py",
    "how-to-add-an-algorithm.md": "tests/cli/test_cli_docs.py",
    "how-to-add-a-rule.md": "tests/cli/test_cli_docs.py",
    "how-to-bring-your-own-model.md": "tests/problem/test_own_models.py",
    "how-to-use-a-trained-model.md": "tests/estimators/test_estimators.py",
    "how-to-use-with-scikit-learn.md": "tests/estimators/test_estimators.py",
    "explanation-private-features.md": "tests/privacy/test_private_features.py",
}
#: What a page takes to be there.
GIVEN = {
    "explanation-dp-norm.md": """
        import numpy as np
        dice = np.random.default_rng(0)
        X, node = dice.normal(size=(1200, 3)), np.arange(1200) % 6
        y = (X[:, 0] > 0).astype(int)
    """,
    "explanation-variants.md": """
        import numpy as np
        import tacita
        dice = np.random.default_rng(0)
        X, agent = dice.normal(size=(40, 2)), np.repeat(["a", "b"], 20)
        graph = tacita.problem.Graph.from_edges(["a", "b"], [("a", "b")])
        y, shared = X[:, 0], X[:9]
        X_new, y_new, agent_new = X, y, agent
        ring = tacita.problem.graph.ring(4)
        nodes = tacita.problem.synthetic.linear(agents=4, features=2, graph=ring)
        descriptions = dice.normal(size=(4, 2))
    """,
    "explanation-gtvmin.md": """
        import numpy as np
        import tacita
        dice, names = np.random.default_rng(0), ["north", "east", "south"]
        X, agent = dice.normal(size=(60, 3)), np.repeat(names, 20)
        y = np.where(agent == "south", np.sign(X[:, 0]), X[:, 0])
        edges = [("north", "east"), ("east", "south")]
        network, X_new = tacita.problem.Graph.from_edges(names, edges), X[:5]
    """,
    "explanation-reading-letters.md": """
        import shutil
        shutil.copy("examples/runs/logistic-fedplt.toml", "run.toml")
    """,
}
#: Added to a command that would take long.
SHORTER = {"run": ["--set", "run.rounds=2"], "audit": ["--runs", "200"]}


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    reason: str

    @property
    def lines(self) -> list[str]:
        """What somebody would type, line by line."""
        if not self.kind.startswith("sh"):
            return []
        lines = self.text.replace("\\\n", " ").split("\n")
        return [line for line in lines if line.strip() and line[0] != "#"]

    @property
    def commands(self) -> list[list[str]]:
        """The lines that are commands of this project."""
        ours = [line for line in self.lines if re.match("(tacita|make|python) ", line)]
        return [shlex.split(line, comments=True) for line in ours]


@cache
def blocks(name: str) -> list[Block]:
    found = re.findall(
        r"(?:<!-- not run: ([^\n]*) -->\n)?^( *)```([^\n]*)\n(.*?)^\2```",
        PAGES[name].read_text(),
        flags=re.S | re.M,
    )
    return [Block(kind, textwrap.dedent(text), why) for why, _, kind, text in found]


@cache
def help_of(*words: str) -> str:
    answer = CliRunner().invoke(app, [*words, "--help"])
    assert answer.exit_code == 0, answer.output
    return answer.output


def require(words: list[str]) -> None:
    """The command is there, with every option that is named."""
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M), words
    elif words[0] == "python" and words[1] != "-m":
        assert (ROOT / words[1]).exists(), words
    elif words[0] == "tacita":
        groups = {group.name for group in app.registered_groups}
        name = words[1 : 3 if words[1] in groups else 2]
        for option in [word for word in words if word.startswith("--")]:
            assert re.search(rf"{option}\b", help_of(*name)), words


def test_every_block_says_what_it_is_and_its_commands_exist():
    for name in PAGES:
        for block in blocks(name):
            assert block.kind in KINDS, (name, block)
            if block.kind in ("", "text"):
                assert not re.search(
                    r"^(tacita|python|make) [a-z./]", block.text, re.M
                ), name
            if block.kind == "python":
                compile(block.text, name, "exec")
            for words in block.commands:
                require(words)


def test_fences_are_pairs_and_reasons_stand_above_a_block():
    for name, path in PAGES.items():
        text = path.read_text()
        fences = len(re.findall(r"^ *```", text, flags=re.M))
        assert fences == 2 * len(blocks(name)), name
        reasons = [block.reason for block in blocks(name) if block.reason]
        assert text.count("<!-- not run:") == len(reasons), name
        assert all(len(reason) > 15 for reason in reasons), name


def test_pages_that_are_run_elsewhere_are():
    for name, test in ELSEWHERE.items():
        assert name in (ROOT / test).read_text()


RUN = [
    name
    for name in PAGES
    if name not in ELSEWHERE
    and any(b.kind in ("python", "sh") and not b.reason for b in blocks(name))
]


@pytest.mark.long
@pytest.mark.parametrize("name", RUN)
def test_the_page_runs_as_it_stands(name: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names: dict[str, Any] = {"__name__": "page"}
    exec(textwrap.dedent(GIVEN.get(name, "")), names)
    for block in blocks(name):
        if block.reason:
            continue
        if block.kind == "python":
            exec(compile(block.text, name, "exec"), names)
        for line, words in zip(block.lines, block.commands, strict=True):
            assert words[0] == "tacita", f"{name}: mark {line!r} as not run"
            typed = [*words[1:], *SHORTER.get(words[1], [])]
            answer = CliRunner().invoke(app, typed)
            assert answer.exit_code == 0, (words, answer.output)

"""The how-to page of the hub, followed word by word."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tacita.cli.app import app
from tacita.federation import Hub, broker
from tests.federation.test_federation_deploy import require_command
from tests.federation.test_federation_hub import fetch, wait_until
from tests.federation.towns import PROGRAM
from tests.patience import HANG

PAGE = (Path(__file__).parents[2] / "docs" / "how-to-run-a-hub.md").read_text()
#: How a block is meant ("sh", "sh background", "sh fails", "toml"), and its text.
BLOCKS = re.findall(r"```((?:sh|toml)[ a-z]*)\n(.*?)```", PAGE, flags=re.S)


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line) for line in text.splitlines() if line.strip()]


def test_every_command_of_the_page_exists():
    found = [c for kind, text in BLOCKS if kind != "toml" for c in commands_in(text)]
    assert len(found) > 20
    for words in found:
        require_command(words)
    for words in re.findall(r"`(tacita (?:hub|join|site|federation)[^`]*)`", PAGE):
        require_command([word.rstrip(",") for word in shlex.split(words)])


def commands_in(text: str) -> list[list[str]]:
    return [shlex.split(x) for x in text.splitlines() if x.startswith("tacita ")]


class Reader:
    """Somebody who types what the page says."""

    def __init__(self, port: int, metrics: int) -> None:
        self.ports = {"4222": str(port), "9464": str(metrics)}
        self.children: list[subprocess.Popen] = []

    def do(self, kind: str, text: str) -> None:
        for usual, ours in self.ports.items():
            text = text.replace(usual, ours)
        if kind == "toml":
            Path("run.toml").write_text(text)
        elif not text.startswith("tacita"):
            subprocess.run(["bash", "-e", "-c", text], check=True, timeout=HANG)
        else:
            for words in commands(text):
                self.type(words, kind.partition(" ")[2])

    def type(self, words: list[str], how: str) -> None:
        if words[0] != "tacita":
            subprocess.run(words, check=True, timeout=HANG)
        elif how == "background":
            log = open(f"{len(self.children)}.log", "wb")
            with log:
                self.children.append(
                    subprocess.Popen([*PROGRAM, *words[1:]], stdout=log, stderr=log)
                )
            if words[1] == "hub":
                wait_until(lambda: broker.listens(int(self.ports["4222"])))
        elif how == "fails":  # "within a second", says the page, of a quiet machine
            wait_until(lambda: CliRunner().invoke(app, words[1:]).exit_code == 1)
        else:
            answer = CliRunner().invoke(app, words[1:])
            assert answer.exit_code == 0, answer.output


@pytest.mark.long
def test_the_page_works_word_by_word(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    source = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(source), *sys.path]))
    reader = Reader(broker.free_port(), broker.free_port())
    try:
        for kind, text in BLOCKS:
            if "rotate" in text:  # all agents have ended their run by then
                for child in reader.children[1:]:
                    assert child.wait(HANG) == 0
            reader.do(kind, text)
        health = fetch(int(reader.ports["9464"]), "healthz")
        assert health == "ok\n"
    finally:
        for child in reader.children:
            broker.stop(child)
    hub = Hub("hub")
    assert hub.roster.names == ["bergen", "centre", "oslo"]
    models: dict[str, Any] = {}
    for site in ("oslo", "turku", "bergen"):
        (result,) = Path(site, "home").glob("*/result.json")
        told = json.loads(result.read_text())
        assert told["name"] == "first" and told["epsilon_spent"] <= 2.0 + 1e-6
        models[site] = told["run"]
    assert len(set(models.values())) == 1

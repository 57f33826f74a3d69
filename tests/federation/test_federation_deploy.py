"""Units and container file: they parse, and the commands in them exist."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tacita.cli.app import app
from tests.patience import HANG

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
each_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)


def require_command(words: list[str]) -> None:
    """The command is there, and has every option that is named."""
    assert words[0].endswith("tacita"), words
    options = [word for word in words if word.startswith("--")]
    name = [w for w in words[1:3] if re.fullmatch(r"[a-z]+", w)]
    answer = CliRunner().invoke(app, [*name, "--help"])
    assert answer.exit_code == 0, answer.output
    for option in options:
        assert re.search(rf"{option}\b", answer.output), f"{name} has no {option}"


def read_unit(path: Path) -> configparser.RawConfigParser:
    made = configparser.RawConfigParser(strict=False)
    made.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    made.read_string(path.read_text().replace("\\\n", " "))
    return made


def test_there_are_units_for_everybody():
    assert [unit.stem for unit in UNITS] == [
        "tacita-agent@",
        "tacita-coordinator@",
        "tacita-hub",
    ]


@each_unit
def test_a_unit_runs_a_command_that_exists_and_keeps_its_files_private(unit: Path):
    service = read_unit(unit)["Service"]
    require_command(shlex.split(service["ExecStart"]))
    assert service["UMask"] == "0077" and service["StateDirectoryMode"] == "0700"
    assert service["NoNewPrivileges"] == "yes"
    state = f"/var/lib/{service['StateDirectory']}"
    assert state in service["ExecStart"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@each_unit
def test_systemd_finds_nothing_wrong_with_a_unit(unit: Path, tmp_path: Path):
    # The program and the user are made by whoever installs it.
    text = unit.read_text().replace(
        "/opt/tacita/bin/tacita", shutil.which("true") or ""
    )
    copy = tmp_path / unit.name.replace("@", "@oslo")
    copy.write_text(re.sub(r"^User=.*$", "User=root", text, flags=re.M))
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", copy],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert copy.name not in found.stderr


def instructions() -> list[tuple[str, str]]:
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [x for x in text.splitlines() if x.strip() and not x.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_container_file_says_what_it_should():
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "VOLUME", "EXPOSE"}
    known |= {"HEALTHCHECK", "ENTRYPOINT", "CMD"}
    found = instructions()
    assert {word for word, _ in found} <= known
    root = DEPLOY.parent
    for word, rest in found:
        if word == "COPY" and "--from" not in rest:
            *sources, _ = rest.split()
            assert all((root / source).exists() for source in sources), rest
        if word in ("ENTRYPOINT", "CMD"):
            assert json.loads(rest)
        if word == "FROM":
            assert ":" in rest  # a version, never whatever is newest
    told = dict(found)
    assert told["USER"] == "tacita"
    assert json.loads(told["ENTRYPOINT"]) == ["tacita"]
    _, _, check = told["HEALTHCHECK"].partition("CMD ")
    assert json.loads(check)[0] == "python" and "/healthz" in check
    broker = re.search(r"nats:(\d+)\.(\d+)\.(\d+)", str(found))
    assert broker is not None
    from tacita.federation.broker import require_fixed

    require_fixed(tuple(int(n) for n in broker.groups()))


def test_the_examples_in_the_container_file_are_commands():
    text = (DEPLOY / "Containerfile").read_text()
    comments = text[: text.index("FROM")].replace("\\\n#", " ")
    examples = re.findall(r"^#\s+podman run .*? (tacita .*)$", comments, flags=re.M)
    assert len(examples) == 2
    for example in examples:
        require_command(shlex.split(example))

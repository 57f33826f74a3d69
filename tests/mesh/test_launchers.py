"""The page's commands for ssh, Slurm and Kubernetes, with stand-ins for what starts.

What the stand-ins cannot show is a real network between machines; what they do show is
that quotes, numbers of processes and names of machines arrive as they are meant.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tacita
from tests.mesh.test_mesh import ROOT, RUN, program
from tests.patience import HANG

pytestmark = pytest.mark.long

PAGE = (ROOT / "docs/how-to-run-on-many-machines.md").read_text()
#: ssh HOST COMMAND: a shell of its own in the home folder, with no variable of ours.
SSH = """shift; cd "$STAND_IN_HOME" && exec sh -c "$1" """
#: The machines of a job, of which all are this one.
SCONTROL = "echo 127.0.0.1; echo other"
#: srun COMMAND...: the command as often as there are tasks, each with its number.
SRUN = """
for task in $(seq 0 $((SLURM_NTASKS - 1))); do SLURM_PROCID=$task "$@" & done
wait"""


def block(title: str) -> str:
    """The commands below a heading."""
    found = re.search(rf"### {title}\n.*?```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert found, title
    return found.group(1)


def changed(text: str, *changes: tuple[str, str]) -> str:
    """With two processes on this machine in place of many on others."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def kubernetes() -> str:
    """What the containers of an indexed job run, one for every index."""
    text = block("Kubernetes")
    command = re.search(r"command: \[(.*?)\]", text)
    args = text.split("args:\n")[1].strip().removeprefix("- ")
    assert command is not None and command.group(1) == "sh, -c"
    line = " ".join(args.split())
    of = re.search(r"completions: (\d+)\n", text)
    assert of and line.endswith(f"/{of.group(1)}")
    return f"for i in 0 1; do JOB_COMPLETION_INDEX=$i sh -c '{line}' & done; wait"


SCRIPTS = {
    "ssh": lambda: changed(
        block("ssh"), ("1 2 3 4", "1 2"), ("node-1:", "127.0.0.1:"), ("/4", "/2")
    ),
    "Slurm": lambda: block("Slurm"),
    "Kubernetes": lambda: changed(
        kubernetes(), ("big-0.big:", "127.0.0.1:"), ("/8", "/2"), ("/job/", "")
    ),
}


def stand_in(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def job(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder with a run file, and what a shell finds there."""
    commands, place = tmp_path / "bin", tmp_path / "job"
    commands.mkdir()
    place.mkdir()
    (place / "run.toml").write_text(RUN)
    stand_in(commands, "ssh", SSH)
    stand_in(commands, "scontrol", SCONTROL)
    stand_in(commands, "srun", SRUN)
    stand_in(commands, "tacita", f'exec "{sys.executable}" -m tacita "$@"')
    told = {
        "PATH": f"{commands}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XLA_FLAGS": "",
        "STAND_IN_HOME": str(tmp_path),
        "SLURM_NTASKS": "2",
        "SLURM_JOB_NODELIST": "node-[1-2]",
    }
    return place, {**os.environ, **told}


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> np.ndarray:
    """The model of the same run in one process."""
    place = tmp_path_factory.mktemp("alone")
    (place / "run.toml").write_text(RUN)
    begun = program("tacita", "run", "run.toml", "--out", "one", cwd=place)
    wrong = begun.communicate(timeout=HANG)[1]
    assert begun.returncode == 0, wrong.decode()
    return tacita.load_run(place / "one").params


@pytest.mark.parametrize(
    "way",
    [
        "Slurm",
        *(pytest.param(w, marks=pytest.mark.variant) for w in SCRIPTS if w != "Slurm"),
    ],
)
def test_what_the_page_says_runs(alone, job, way):
    place, told = job
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = changed(SCRIPTS[way](), (":9000", f":{port}"))
    done = subprocess.run(
        ["sh", "-c", script], cwd=place, env=told, capture_output=True, timeout=HANG
    )
    assert done.returncode == 0, done.stderr.decode()
    run = tacita.load_run(place / "runs/big")
    assert run.rounds == 400 and np.array_equal(run.params, alone)
    assert not list((place / "runs/big").glob("checkpoint*"))

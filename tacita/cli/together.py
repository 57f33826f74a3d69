"""Starting the processes of a run, and ending them all when one of them ends.

They are programs of their own (`tacita.cli.part`). JAX ends a process whose others are
gone with pages of its own words; those are kept from the reader, who gets one line.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import tacita
from tacita.cli.execute import command

#: Seconds that the others have to end by themselves when one has ended.
GRACE = 30.0
#: Exit codes of a process that has lost another: its own, and that of JAX's abort.
LOST, ABORTED = 3, -6
#: That of a process that somebody interrupted.
INTERRUPTED = 130

Processes = Annotated[
    int, typer.Option(help="Share the work among so many processes here.")
]
Coordinator = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Where the first of several processes is reached; with --process.",
    ),
]
Process = Annotated[
    str | None,
    typer.Option(
        metavar="I/N", help="Which process this is, from 1/N to N/N; on any machine."
    ),
]


class Part(NamedTuple):
    """Which process of how many; the first is number 1."""

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> Part:
        """Out of "2/8".

        >>> Part.read("0/8")
        Traceback (most recent call last):
        tacita.check.TacitaError: expected --process from 1/N to N/N such as 2/8, got 0/8
        """  # noqa: E501
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            tacita.check.refuse(
                f"expected --process from 1/N to N/N such as 2/8, got {text}"
            )
        return cls(int(found[1]), int(found[2]))


class Team(NamedTuple):
    """The processes of a run that this command starts.

    Attributes:
        coordinator: Where the first of all is reached.
        parts: Those that are started here.
        alone: Whether these are all of them, so that a folder is this command's own.
    """

    coordinator: str
    parts: tuple[Part, ...]
    alone: bool

    @property
    def words(self) -> str:
        """The options that start it again."""
        if self.alone:
            return f"--processes {len(self.parts)}"
        part = self.parts[0]
        return f"--coordinator {self.coordinator} --process {part.number}/{part.of}"


def team_of(
    processes: int, coordinator: str | None, process: str | None
) -> Team | None:
    """Whom a command starts; None where it does all by itself."""
    count = tacita.check.count(processes=processes)
    if coordinator is None and process is None:
        if count == 1:
            return None
        parts = tuple(Part(i + 1, count) for i in range(count))
        return Team(f"127.0.0.1:{_free_port()}", parts, True)
    if coordinator is None or process is None or count > 1:
        tacita.check.refuse(
            "--coordinator and --process go together, and without --processes: name "
            "where the first process is, and which one this is"
        )
    tacita.mesh.processes.address(coordinator)
    return Team(coordinator, (Part.read(process),), False)


def run_together(team: Team, folder: Path, *, resume: bool = False) -> None:
    """Run the processes to their end; one that fails ends all, in one line."""
    how = "resume" if resume else "begin"
    started: list[Started] = []
    only = tacita.job.folder.held(folder) if team.alone else nullcontext()
    with only:
        try:
            for part in team.parts:
                # Only the first has a progress bar; what they end with is told below.
                speaks = part.number == 1 and sys.stderr.isatty()
                said = None if speaks else tempfile.TemporaryFile()
                which = f"{part.number}/{part.of}"
                here = str(len(team.parts))
                words = [str(folder), team.coordinator, which, here, how]
                program = [sys.executable, "-m", "tacita.cli.part", *words]
                pipe = subprocess.PIPE  # which tells them when this command is gone
                process = subprocess.Popen(program, stdin=pipe, stderr=said)
                started.append(Started(part, process, said))
            _wait(started)
        except KeyboardInterrupt:
            for one in started:
                one.leave()  # the interrupt may have been for this process alone
            _end(started)
            typer.echo(f"interrupted; {_go_on(team, folder)}", err=True)
            raise
        finally:
            _end(started)
    failed = [one for one in started if one.process.returncode]
    if failed:
        code = _tell(min(failed, key=Started.order), team, folder)
        if team.alone and not resume and not any(folder.glob("checkpoint*")):
            shutil.rmtree(folder, ignore_errors=True)
        raise typer.Exit(code)


class Started(NamedTuple):
    """A process that was started, and what it writes to stderr."""

    part: Part
    process: subprocess.Popen[bytes]
    said: Any

    def leave(self) -> None:
        """Have it end at once, wherever it is: its checkpoint is always whole."""
        if self.process.stdin is not None:
            self.process.stdin.close()

    def order(self) -> int:
        """How likely it is the one that the others failed after."""
        code = self.process.returncode
        if code in (LOST, ABORTED):
            return 2
        return 0 if code < 0 else 1

    @property
    def error(self) -> str:
        """The lines with which it ended, if it had time to say some."""
        if self.said is None:
            return ""
        self.said.seek(0)
        lines = self.said.read().decode(errors="replace").splitlines()
        return "\n".join(line for line in lines if line.startswith("error: "))


def _tell(one: Started, team: Team, folder: Path) -> int:
    """Say why a run ended; the exit code."""
    code = one.process.returncode
    if code in (LOST, ABORTED):
        typer.echo(
            "error: another process of this run ended or cannot be reached; "
            f"{_go_on(team, folder)}, and all others likewise",
            err=True,
        )
        return 1
    if code < 0 or code == INTERRUPTED:
        how = "interrupted" if code == INTERRUPTED else f"ended by signal {-code}"
        typer.echo(
            f"error: process {one.part.number} of {one.part.of} was {how}, and so was "
            f"the run; {_go_on(team, folder)}",
            err=True,
        )
        return 1
    if one.error:
        typer.echo(one.error, err=True)
    return code


def _wait(started: list[Started]) -> None:
    """Until all have ended well, or one has not."""
    while True:
        codes = [one.process.poll() for one in started]
        if any(codes) or all(code == 0 for code in codes):
            return
        time.sleep(0.05)


def _end(started: list[Started]) -> None:
    """Let processes end by themselves, then make them."""
    until = time.monotonic() + GRACE
    for one in started:
        try:
            one.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.wait()


def _go_on(team: Team, folder: Path) -> str:
    return f"go on with: {command('resume', folder)} {team.words}"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]

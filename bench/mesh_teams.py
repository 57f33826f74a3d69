"""Contestants of `bench.mesh`: teams of processes, each asked for its turn.

Cores are given to a process before JAX starts, so that every contestant lives in
processes of its own. They wait for their turn without using a processor.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

_PROGRAM = "from bench import mesh_teams; mesh_teams.main()"


@dataclass(frozen=True)
class Member:
    """One process of a team.

    Attributes:
        devices: As which JAX takes the cores.
        mesh: Devices of a run; None lets the engine choose.
        core: The only one that it may use; None for all.
        process: Which one of the team.
        of: How many there are.
        port: Where they find each other.
    """

    devices: int = 1
    mesh: int | None = None
    core: int | None = None
    process: int = 0
    of: int = 1
    port: int = 0


class Turn(NamedTuple):
    """Milliseconds of a round by the clock and by all processors, and the model."""

    clock: float
    processor: float
    model: str


class Team:
    """Processes that run one work together."""

    def __init__(self, members: list[Member]) -> None:
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, json.dumps(asdict(member))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for member in members
        ]

    def turn(self, work: str) -> Turn:
        """Have all members run the work; the last one to end counts."""
        for one in self._processes:
            assert one.stdin is not None
            one.stdin.write(work + "\n")
            one.stdin.flush()
        told = [Turn(*self._answer(one)) for one in self._processes]
        clock = max(turn.clock for turn in told)
        models = {turn.model for turn in told}
        return Turn(clock, sum(turn.processor for turn in told), " and ".join(models))

    def close(self) -> None:
        """End them."""
        for one in self._processes:
            assert one.stdin is not None
            one.stdin.close()  # of all before any is waited for: they end together
        for one in self._processes:
            one.wait()

    @staticmethod
    def _answer(process: Any) -> list[Any]:
        line = process.stdout.readline()
        if not line:
            sys.exit("a process of the benchmark has ended; see above")
        return json.loads(line)


def teams(parts: int) -> dict[str, Team]:
    """All contestants, over so many devices or processes."""
    core = min(os.sched_getaffinity(0))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    members = {
        "one core": [Member(core=core)],
        "one device": [Member()],
        f"{parts} devices": [Member(devices=parts, mesh=parts)],
        f"{parts} processes": [
            Member(process=i, of=parts, port=port) for i in range(parts)
        ],
        "the engine's choice": [Member(devices=parts)],
    }
    return {name: Team(some) for name, some in members.items()}


def main() -> None:
    """Answer every line on the way in with a turn of that work."""
    member = Member(**json.loads(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print must not be taken for an answer
    if member.core is not None:
        os.sched_setaffinity(0, {member.core})
    import tacita

    tacita.use_cores(member.devices)
    if member.of > 1:
        address = f"127.0.0.1:{member.port}"
        # As `tacita run --processes` starts them.
        tacita.use_processes(address, member.process, member.of, here=member.of)
    from bench.mesh_works import turn

    for line in sys.stdin:
        print(json.dumps(turn(line.strip(), member.mesh)), file=answers, flush=True)

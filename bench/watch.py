"""What the live page costs: processor time of server and browser while one looks.

A program of its own serves a folder that another one changes every second, as the
programs of a federation do; a reader takes every update in. Processor time is counted
by the system for the server alone, and shared out over the updates that came, one a
second: on a busy machine some come late. Where chromium is there, it is the reader once
more, and the time of all its processes is counted beside the server's.

    coordinator   50 parties, all of whose numbers change
    agent         a ledger and a log that grow by a letter a second
    alone         50 parties, and nobody looks
    browser       50 parties, all of whose numbers change, drawn by chromium

    python -m bench.watch
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from tacita.federation.audit_log import AuditLog
from tacita.privacy import Ledger
from tests.browser.chromium import LOOKS, chromium, missing
from tests.watch import folders

SECONDS, WARM_UP, PARTIES, LETTERS = 30.0, 5.0, 50, 1000
#: So much that a thousand letters stay within the budget.
NOISE = 500.0
MOST_SHARE = 0.03
OUT = Path(__file__).parent / "results" / "watch.json"


def processor_seconds(process: int) -> float:
    """User and system time of a process so far."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def read(address: str, seen: list[int]) -> None:
    """Take updates in until the server ends."""
    try:
        with httpx.stream("GET", f"{address}events", timeout=60) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    seen.append(len(line))
    except httpx.HTTPError:
        pass


def family(process: int) -> list[int]:
    """A process and all that it started, directly or not."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(words[1]), []).append(int(folder.name))
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return found


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[tuple[int, str]]:
    """The process that serves a folder, and its address."""
    command = [sys.executable, "-u", "-m", "tacita", "federation", "watch", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            yield program.pid, program.stdout.readline().split()[-1]
        finally:
            program.terminate()


def in_browser(folder: Path, change: Callable[[int], Any]) -> dict[str, Any]:
    """Serve a folder that changes every second to chromium."""
    change(0)
    with tempfile.TemporaryDirectory() as profile, serving(folder) as (server, address):
        with chromium(Path(profile), logs=False) as browser:
            browser.look(**LOOKS["desktop"])
            browser.open(address)
            driver, known = browser.driver.service.process.pid, dict[int, float]()

            def spent() -> tuple[float, float]:
                for one in family(driver):
                    with contextlib.suppress(OSError):  # what it spent is known
                        known[one] = processor_seconds(one)
                return processor_seconds(server), sum(known.values())

            begun = first = time.monotonic()
            before = (0.0, 0.0)
            for turn in range(1, int(WARM_UP + SECONDS) + 1):
                change(turn)
                time.sleep(max(0.0, begun + turn - time.monotonic()))
                if turn == WARM_UP:
                    before, first = spent(), time.monotonic()
            after, took = spent(), time.monotonic() - first
    of_server, of_browser = (b - a for a, b in zip(before, after, strict=True))
    return {
        "seconds": round(took, 1),
        "server_share_of_a_core": round(of_server / took, 5),
        "browser_share_of_a_core": round(of_browser / took, 5),
        "share_of_a_core": round((of_server + of_browser) / took, 5),
    }


def measure(folder: Path, change: Callable[[int], Any], readers: int) -> dict[str, Any]:
    """Serve a folder that changes every second to some readers."""
    change(0)
    with serving(folder) as (server, address):
        seen: list[int] = []
        for _ in range(readers):
            threading.Thread(target=read, args=(address, seen), daemon=True).start()
        begun, spent, counted = time.monotonic(), 0.0, 0
        turn = 0
        while (now := time.monotonic() - begun) < WARM_UP + SECONDS:
            if now < WARM_UP:
                spent, counted = processor_seconds(server), len(seen)
            turn += 1
            change(turn)
            time.sleep(max(0.0, begun + turn - time.monotonic()))
        took = time.monotonic() - begun - WARM_UP
        spent = processor_seconds(server) - spent
        sizes = seen[counted:]
    return {
        "readers": readers,
        "seconds": round(took, 1),
        "processor_seconds": round(spent, 3),
        "share_of_a_core": round(spent / (len(sizes) or took), 5),
        "updates": len(sizes),
        "bytes_an_update": round(sum(sizes) / max(1, len(sizes))),
    }


def agent_letter(home: Path, turn: int) -> None:
    """One letter leaves: status, ledger and log change."""
    if turn == 0:
        folders.agent(home, releases=LETTERS, noise=NOISE)
    with Ledger(home / "ledger.db") as ledger:
        charged = {"agent": "oslo", "run": f"later {turn}", "content": b"letter"}
        ledger.charge(folders.letter(NOISE), round=turn, **charged)
    AuditLog(home).note("release", durable=False, run="5f" * 8, round=turn)
    spent = {"epsilon_spent": 0.5 + 0.01 * turn}
    folders.write_status(home, folders.agent_status(turn, **spent))


def main() -> int:
    """Measure, print and write down; 1 if the page costs too much."""
    with tempfile.TemporaryDirectory() as place:
        home, other = Path(place) / "coordinator", Path(place) / "agent"

        def round_ends(turn: int) -> None:
            folders.coordinator(home, round=turn, parties=PARTIES)

        found = {
            "coordinator": measure(home, round_ends, readers=1),
            "agent": measure(other, lambda turn: agent_letter(other, turn), readers=1),
            "alone": measure(home, round_ends, readers=0),
        }
        if missing() is None:
            found["browser"] = in_browser(home, round_ends)
    told = {"parties": PARTIES, "letters": LETTERS, "most_share": MOST_SHARE, **found}
    OUT.write_text(json.dumps(told, indent=1) + "\n")
    for name, one in found.items():
        print(f"{name:12} {100 * one['share_of_a_core']:.2f} % of a core", one)
    return int(any(one["share_of_a_core"] > MOST_SHARE for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())

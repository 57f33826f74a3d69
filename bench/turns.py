"""Contestants in turns, by processor time, and raw results that pages are made of.

Other programs on the machine do not count, and what slows the machine slows all alike.
Peers live in interpreters of their own (`bench/peers.py`) and are asked for their turn.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import jax
import numpy as np

RESULTS = Path(__file__).parent / "results"
#: A contestant's turn: milliseconds of processor time for a step.
Turn = Callable[[], float]
_OURS = ("tacita", "jax", "jaxlib", "numpy")


def on_one_core() -> None:
    """Let this process, and what it starts, use one core; before JAX starts.

    With threads that wait for each other small steps take up to twice as much of the
    processors, and not alike in all libraries.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def own_turn(work: Callable[[], Any], steps: int) -> Turn:
    """A turn in this process, of so many steps."""

    def turn() -> float:
        began = time.process_time()
        work()
        return (time.process_time() - began) / steps * 1e3

    return turn


class Peers:
    """Libraries in an interpreter of their own.

    Attributes:
        versions: Of the libraries.
        works: By contestant, the works it takes part in.
    """

    def __init__(self, interpreter: str) -> None:
        interpreter = str(Path(interpreter).absolute())
        self._process = subprocess.Popen(
            [interpreter, "-c", "import peers; peers.main()"],
            cwd=Path(__file__).parent,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        told = self._answer()
        self.versions: dict[str, str] = told["versions"]
        self.works: dict[str, list[str]] = told["works"]

    def turns(self, work: str) -> dict[str, Turn]:
        """Of all contestants in this work."""

        def turn(name: str) -> float:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps([work, name]) + "\n")
            self._process.stdin.flush()
            return self._answer()

        names = [name for name, works in self.works.items() if work in works]
        return {name: lambda name=name: turn(name) for name in names}

    def close(self) -> None:
        """End the interpreter."""
        self._process.communicate()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit("the interpreter of the peers has ended; see above")
        return json.loads(line)


def in_turns(contestants: dict[str, Turn], repeats: int) -> dict[str, list[float]]:
    """Milliseconds of every turn; each contestant compiles and warms up before."""
    for turn in contestants.values():
        turn()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, turn in contestants.items():
            times[name].append(float(f"{turn():.4g}"))
    return times


def compete(
    name: str,
    works: dict[str, tuple[str, Callable[[], dict[str, Turn]], int]],
    against: str,
    interpreters: Sequence[str] = (),
    only: str = "",
) -> None:
    """All works on one core, each printed as it comes; a run of all of them is kept.

    Args:
        name: Of the program, and of its file of results.
        works: By title: what it is, its contestants in this process, and repeats.
        against: The contestant that others are compared with.
        interpreters: Of peers, which take part where they know a work.
        only: The first letters of the works that are wanted.
    """
    on_one_core()
    kept: dict[str, Any] = {"machine": machine(), "versions": versions()}
    command = f"python -m bench.{name}" + " --peers PYTHON" * len(interpreters)
    kept |= {"command": command, "works": {}}
    with ExitStack() as open_ones:
        peers = [open_ones.enter_context(closing(Peers(one))) for one in interpreters]
        for one in peers:
            kept["versions"] |= one.versions
        for title, (about, make, repeats) in works.items():
            if title.startswith(only):
                contestants = make()
                for one in peers:
                    contestants |= one.turns(title)
                times = in_turns(contestants, repeats)
                print(table(f"{title}: {about}", times, against), flush=True)
                kept["works"][title] = {"about": about, "milliseconds": times}
                jax.clear_caches()
    if not only:
        save(name, kept)


def table(title: str, times: dict[str, list[float]], against: str) -> str:
    """Medians and quartiles, and the ratio to one contestant."""
    lines, base = [title], float(np.median(times[against]))
    for name, found in times.items():
        low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
        told = f"{middle:9.3f} ms ({low:.3f} to {high:.3f})"
        lines.append(f"  {name:<24}{told:<36}{middle / base:6.2f} x {against}")
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """What the figures are of: processor, cores, system and interpreter."""
    processor = platform.processor()
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        lines = listed.read_text().splitlines()
        named = [line.split(":", 1)[1] for line in lines if line[:10] == "model name"]
        processor = named[0].strip() if named else processor
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load before": round(os.getloadavg()[0], 1),
    }


def versions() -> dict[str, str]:
    """Of the packages in this process."""
    return {name: importlib.metadata.version(name) for name in _OURS}


def save(name: str, found: dict[str, Any]) -> None:
    """Keep raw results as bench/results/NAME.json."""
    (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")

"""Long scripts in parts: to be stopped and resumed, their raw results kept.

Every result of a script is a line of `raw/NAME.jsonl`, written as it comes. A script
that was stopped goes on after the last whole line, and where all lines are there its
page is drawn again without running anything.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: Seconds between two lines about how far a script is.
_TELL = 30.0


class Kept:
    """The raw results of one script.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> Kept(folder, "table_1")("rounds of FedPD, repetition 1", lambda: 15.0)
    15.0
    >>> Kept(folder, "table_1", resume=True)("rounds of FedPD, repetition 1", int)
    15.0
    """

    def __init__(self, out: Path, name: str, resume: bool = False) -> None:
        self._path = out / "raw" / f"{name}.jsonl"
        self._name, self._found = name, dict[str, Any]()
        self._fresh, self._told = 0, time.monotonic()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if resume and self._path.exists():
            self._found = _whole_lines(self._path)
        # What a kill left of a last line goes, and without `resume` everything.
        lines = [_line(key, value) for key, value in self._found.items()]
        self._path.write_text("".join(lines), encoding="utf-8")

    def __call__(self, key: str, make: Callable[[], Any]) -> Any:
        """The result of that name: as it was kept, or made now and kept.

        Args:
            key: Says what the result is of, every number that it depends on included.
            make: Returns numbers, words, arrays, and lists and dictionaries of these.
        """
        if key not in self._found:
            # Read back, so that a fresh result and a kept one are the same.
            line = _line(key, make())
            self._found[key] = json.loads(line)["found"]
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(line)
            self._tell(key)
        return self._found[key]

    def array(self, key: str, make: Callable[[], Any]) -> np.ndarray:
        """The same, as an array."""
        return np.asarray(self(key, make))

    def _tell(self, key: str) -> None:
        """Say now and then, on standard error, how far the script is."""
        self._fresh += 1
        if time.monotonic() - self._told > _TELL:
            self._told = time.monotonic()
            words = f"{self._name}: {self._fresh} results, last {key}"
            print(words, file=sys.stderr, flush=True)


def kept_or_made(kept: Kept | None, key: str, make: Callable[[], Any]) -> Any:
    """The result of that name, or where nothing is kept the result itself."""
    return make() if kept is None else kept(key, make)


def _line(key: str, found: Any) -> str:
    return json.dumps({"of": key, "found": found}, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    """Arrays, of NumPy or JAX, and their numbers."""
    return np.asarray(value).tolist()


def _whole_lines(path: Path) -> dict[str, Any]:
    """Results of a file, without a last line that was being written."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            read = json.loads(line)
            found[read["of"]] = read["found"]
    return found

"""Models kept during a run, chained by digests so that a later change shows.

A folder holds `round-000010.npz` for each kept round and `chain.jsonl`, a line for
each: when, which file, its digest, the digests of settings, graph and rows, and the
digest of the line before. Whoever wrote down the last digest, the *head*, can tell that
nothing before it was changed, put in or left out.

The digest of rows is a commitment: it is taken together with a random salt, kept in
`salt` for the owner's eyes only. Without the salt it tells nothing of the rows.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from tacita import check
from tacita.problem.problem import Problem
from tacita.runtime.fingerprint import fingerprint
from tacita.runtime.finish import describe
from tacita.trace import Run, plain_values

CHAIN, SALT = "chain.jsonl", "salt"
#: What stands before the first line.
_GENESIS = "0" * 64
_LONGEST_LINE = 10_000


class Snapshots:
    """Writes snapshots of one run into a folder.

    Args:
        folder: Where to; made if it is not there, refused if it holds a chain.
        problem: What is solved: graph and rows are committed to.
        algorithm: How, with all its numbers.
    """

    def __init__(
        self, folder: str | os.PathLike[str], problem: Problem, algorithm: Any
    ) -> None:
        self.folder = check.folder(snapshots=Path(folder))
        if (self.folder / CHAIN).exists():
            check.refuse(f"{self.folder} holds snapshots already; name another folder")
        salt = secrets.token_hex(32)
        path = self.folder / SALT
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
            f.write(salt)
        settings = {"problem": problem.describe(), "algorithm": describe(algorithm)}
        self._known = {
            "settings": _digest(_words(settings)),
            "graph": "none" if problem.graph is None else fingerprint(problem.graph),
            "rows": rows_digest(problem, salt),
        }
        self.head = _GENESIS

    def add(self, run: Run) -> str:
        """Keep the models of a run as it stands; returns the new head."""
        name = f"round-{run.rounds:06d}.npz"
        with open(self.folder / name, "xb") as file:
            np.savez_compressed(file, params=run.params, agents=run.kept)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        link = {
            "round": run.rounds,
            "time": now,
            "file": name,
            "models": _digest((self.folder / name).read_bytes()),
            **self._known,
            "before": self.head,
        }
        self.head = _digest(_words(link))
        with open(self.folder / CHAIN, "a", encoding="utf-8") as file:
            file.write(json.dumps({**link, "digest": self.head}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return self.head


def rows_digest(problem: Problem, salt: str) -> str:
    """The commitment to a problem's rows under a salt."""
    return _digest(f"{salt} {fingerprint(problem.population.rows)}".encode())


def verify(
    folder: str | os.PathLike[str],
    *,
    head: str | None = None,
    problem: Problem | None = None,
) -> list[dict[str, Any]]:
    """The lines of a chain that fits together, or a refusal that names what does not.

    Args:
        folder: The folder of the snapshots.
        head: The last digest, as it was written down; without it nobody can tell
            whether the end is missing, or all was written anew.
        problem: The rows that were trained on; needs the owner's `salt`.
    """
    path = Path(folder)
    try:
        lines = (path / CHAIN).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        check.refuse(f"no chain of snapshots in {path}; name a folder with {CHAIN}")
    links, before = [], _GENESIS
    for number, line in enumerate(lines, 1):
        link = _link(path, number, line)
        told = link.pop("digest")
        if link.get("before") != before or _digest(_words(link)) != told:
            check.refuse(f"line {number} of {path / CHAIN} does not follow on the last")
        file = path / str(link["file"])
        if file.parent != path or not file.is_file():
            check.refuse(f"{file}, which line {number} names, is not there")
        if _digest(file.read_bytes()) != link["models"]:
            check.refuse(f"{file} was changed after round {link['round']}")
        before = told
        links.append({**link, "digest": told})
    if head is not None and head != before:
        check.refuse(f"the chain in {path} ends in {before}, not in the head given")
    if problem is not None:
        _require_rows(path, links, problem)
    return links


def _link(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        link = json.loads(line) if len(line) <= _LONGEST_LINE else None
    except ValueError:
        link = None
    if not isinstance(link, dict) or not {"digest", "file", "models", "round"} <= set(
        link
    ):
        check.refuse(f"line {number} of {path / CHAIN} is damaged")
    return link


def _require_rows(path: Path, links: list[dict[str, Any]], problem: Problem) -> None:
    try:
        salt = (path / SALT).read_text(encoding="utf-8")
    except OSError:
        check.refuse(f"rows are checked with the owner's salt; put it into {path}")
    if any(link["rows"] != rows_digest(problem, salt) for link in links):
        check.refuse(f"these are not the rows that the models in {path} learnt from")


def _words(table: dict[str, Any]) -> bytes:
    return json.dumps(plain_values(table), sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

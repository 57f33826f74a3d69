"""The rows of a ledger, and the lines in which they are kept.

A line is the SHA-256 of its text, a space, and the text: one JSON object that holds the
digest of the row before it. So no byte of a line can change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace

from tacita.check import TacitaError


class BudgetExceeded(TacitaError):
    """A release would pass the budget. Nothing was written; the letter must stay."""


class BrokenLedger(TacitaError):
    """The ledger was changed outside Tacita, or cannot be read or written."""


#: What stands in place of a digest before the first row.
GENESIS = "0" * 64
#: The first line of the file.
HEADER = b"tacita ledger, format 4\n"
#: How files of other formats begin: 1 and 2 were databases, 3 kept no assumptions.
EARLIER = (b"SQLite format 3", b"tacita ledger, format 3\n")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row. `kind` is `ledger` (the first), `budget`, `release` or `note`.

    The cost of a release is `mu_squared` (Gaussian part) and `loss` (the rest, in the
    words of `accounting.words`); `assumptions` (JSON) stand in the first release that
    has them, and hold for others of its theorem. `content` is the letter's SHA-256,
    `checkpoint` the number of the checkpoint that the letter builds on. A budget names
    in `separate` (JSON) the groups of observers who do not compare notes, if there are
    any. A note costs nothing: it is a word that was given and must not be given
    otherwise.
    """

    id: int
    kind: str
    agent: str | None = None
    observer: str | None = None
    run: str | None = None
    round: int | None = None
    phase: str | None = None
    unit: str | None = None
    relation: str | None = None
    theorem: str | None = None
    assumptions: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    mu_squared: float | None = None
    loss: str | None = None
    separate: str | None = None
    content: str | None = None
    checkpoint: int | None = None
    time: str = ""
    previous: str = ""
    digest: str = ""

    @property
    def identity(self) -> tuple:
        """Which release it is; no other row has the same."""
        return self.agent, self.observer, self.run, self.round, self.phase

    def sealed(self) -> tuple[Row, bytes]:
        """The row with its digest, and its line."""
        told = {k: v for k, v in asdict(self).items() if k != "digest"}
        text = json.dumps(told, sort_keys=True, allow_nan=False).encode()
        digest = hashlib.sha256(text).hexdigest()
        return replace(self, digest=digest), digest.encode() + b" " + text + b"\n"


def read_line(line: bytes) -> Row | None:
    """The row of a line, or None if any byte of it is not what was written."""
    digest, text = line[:64], line[65:-1]
    if hashlib.sha256(text).hexdigest().encode() != digest:
        return None
    if line[64:65] + line[-1:] != b" \n":
        return None
    try:
        return Row(**json.loads(text), digest=digest.decode())
    except (ValueError, TypeError, RecursionError):
        return None

"""The run description: all that is agreed before anything is computed.

It is one canonical text (JSON, keys sorted), signed by the starter. Its digest names
the run in every letter, so parties with different descriptions cannot even talk.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit import check
from tacit.check import TacitError, refuse
from tacit.runtime.federation.seal import PrivateKeys, PublicKeys, require_signature
from tacit.runtime.federation.wire import LetterRefused

_DOMAIN = b"tacit run description 1\n"
#: Tables of a description, and the keys that each may have; None for any.
_TABLES: dict[str, tuple[str, ...] | None] = {
    "problem": (
        "model",
        "columns",
        "target",
        "classes",
        "l2",
        "intercept",
        "centre",
        "spread",
        "dtype",
    ),
    "algorithm": None,
    "run": (
        "rounds",
        "participation",
        "own_draws",
        "deadline",
        "least_agents",
        "least_letters",
        "late",
        "most_norm",
        "shared_seed",
    ),
    "privacy": ("epsilon", "delta", "norm", "unit"),
    "graph": ("kind", "edges"),
}
_NEEDED = ("problem", "algorithm", "run")
_NEEDED_KEYS = (
    ("problem", "columns"),
    ("problem", "target"),
    ("algorithm", "name"),
    ("run", "rounds"),
    ("privacy", "epsilon"),
    ("privacy", "delta"),
)


@dataclass(frozen=True)
class Description:
    """A run that is proposed.

    Attributes:
        federation: Where.
        name: What it is called.
        starter: Who proposes it: the coordinator of a server algorithm.
        agents: Who takes part, in the order of the algorithm's agents.
        tables: "problem", "algorithm", "run", and "privacy" and "graph" if any.
    """

    federation: str
    name: str
    starter: str
    agents: tuple[str, ...]
    tables: Mapping[str, Mapping[str, Any]]

    def __post_init__(self) -> None:
        for table, content in self.tables.items():
            if table not in _TABLES or not isinstance(content, Mapping):
                refuse(f"unknown table [{table}]; {check.nearest(table, _TABLES)}")
            known = _TABLES[table]
            for key in content:
                if known is not None and key not in known:
                    refuse(f"unknown key {table}.{key}; {check.nearest(key, known)}")
        for table in _NEEDED:
            if table not in self.tables:
                refuse(f"the run has no table [{table}]; add it")
        for table, key in _NEEDED_KEYS:
            if table in self.tables and key not in self.tables[table]:
                refuse(f"missing key {table}.{key}; add it")
        check.count(rounds=self.run["rounds"])
        if "least_agents" in self.run:
            check.count(least_agents=self.run["least_agents"])
            if "deadline" not in self.run:
                refuse(
                    "run.least_agents lets a run begin without everybody, so it needs "
                    "run.deadline, the seconds that a round waits; add it"
                )
        for key in ("epsilon", "delta") if self.privacy is not None else ():
            if not check.is_number(self.tables["privacy"][key]):
                refuse(f"expected privacy.{key} a number")
        if not self.agents or len(set(self.agents)) != len(self.agents):
            refuse("a run needs agents, each named once")

    @property
    def run(self) -> Mapping[str, Any]:
        """How long, with whom, by when."""
        return self.tables["run"]

    @property
    def problem(self) -> Mapping[str, Any]:
        """Model and columns."""
        return self.tables["problem"]

    @property
    def privacy(self) -> Mapping[str, Any] | None:
        """The budget, or None for a run without one."""
        return self.tables.get("privacy")

    @property
    def least_agents(self) -> int:
        """How many must have accepted before the run begins."""
        return min(
            int(self.run.get("least_agents", len(self.agents))), len(self.agents)
        )

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.run["rounds"])

    def text(self) -> str:
        """The canonical text: the same description gives the same bytes everywhere."""
        words = {
            "federation": self.federation,
            "name": self.name,
            "starter": self.starter,
            "agents": list(self.agents),
            "tables": {k: dict(v) for k, v in self.tables.items()},
        }
        return json.dumps(words, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def digest(self) -> str:
        """The name of the run in letters and folders."""
        return hashlib.sha256(_DOMAIN + self.text().encode()).hexdigest()[:32]

    def signed(self, keys: PrivateKeys) -> str:
        """The description with the starter's signature, as the text of an offer."""
        text = self.text()
        signature = keys.sign(_DOMAIN + text.encode()).hex()
        return json.dumps({"description": text, "signature": signature})


def read_signed(
    offer: str, federation: str, others: Mapping[str, PublicKeys], starter: str
) -> Description:
    """A description out of an offer; refused unless the starter signed every byte."""
    try:
        told = json.loads(offer)
        text, signature = told["description"], bytes.fromhex(told["signature"])
        words = json.loads(text)
    except (ValueError, KeyError, TypeError):
        raise LetterRefused("the offer is no run description") from None
    require_signature(
        others[starter], signature, _DOMAIN + text.encode(), "the run description"
    )
    try:
        made = Description(
            words["federation"],
            words["name"],
            words["starter"],
            tuple(words["agents"]),
            words["tables"],
        )
    except (KeyError, TypeError, AttributeError):
        raise LetterRefused("the offer is no run description") from None
    except TacitError as error:
        raise LetterRefused(str(error)) from None
    if (made.federation, made.starter) != (federation, starter):
        raise LetterRefused("a description of another federation or starter")
    if made.text() != text:
        raise LetterRefused("the description is not in its canonical form")
    return made


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What the owner of an agent allows. None allows anything.

    Attributes:
        max_epsilon: Largest epsilon that a run may promise; a run without a budget is
            refused too, for its letters would not be protected at all.
        max_delta: Largest delta.
        algorithms: Names that are allowed.
        models: Names that are allowed.
        min_participants: Fewest agents of a run.
        columns: Columns that may be used, the target included.
        max_rounds: Most rounds of a run.
        allow_shared_seed: Accept a run whose randomness everybody can compute: only
            for tests, it makes all noise worthless.
    """

    max_epsilon: float | None = None
    max_delta: float | None = None
    algorithms: Sequence[str] | None = None
    models: Sequence[str] | None = None
    min_participants: int = 1
    columns: Sequence[str] | None = None
    max_rounds: int | None = None
    allow_shared_seed: bool = False

    @classmethod
    def of_words(cls, words: Mapping[str, Any]) -> Policy:
        """From the table of a policy file."""
        known = list(cls.__dataclass_fields__)
        for key in words:
            if key not in known:
                refuse(f"unknown key {key} in the policy; {check.nearest(key, known)}")
        return cls(**words)

    def objection(self, run: Description) -> str | None:
        """Why this run is refused, in one line; None if it is not."""
        privacy = run.privacy
        for field, key in (("max_epsilon", "epsilon"), ("max_delta", "delta")):
            limit = getattr(self, field)
            if limit is None:
                continue
            if privacy is None:
                return f"the run states no {key}, this agent allows {key} <= {limit:g}"
            # Written so that what is no number, or missing, is refused.
            if not float(privacy.get(key, float("nan"))) <= limit:
                return f"{key}={privacy.get(key)} is above the {limit:g} allowed here"
        for field, value in (
            ("algorithms", run.tables["algorithm"].get("name")),
            ("models", run.problem.get("model")),
        ):
            allowed = getattr(self, field)
            if allowed is not None and value not in allowed:
                return f"{value} is not one of the {field} allowed here"
        if self.columns is not None:
            wanted = [*run.problem.get("columns", ()), run.problem.get("target")]
            closed = [c for c in wanted if c not in self.columns]
            if closed:
                return f"column {closed[0]!r} may not be used here"
        if len(run.agents) < self.min_participants:
            return (
                f"{len(run.agents)} agents take part, this one asks for "
                f"{self.min_participants} at least"
            )
        if self.max_rounds is not None and run.rounds > self.max_rounds:
            return f"{run.rounds} rounds are more than the {self.max_rounds} allowed"
        if "shared_seed" in run.run and not self.allow_shared_seed:
            return "the run's randomness is known to everybody, which spoils all noise"
        return None

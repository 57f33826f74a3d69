"""The run description: all that is agreed before anything is computed.

It is one canonical text (JSON, keys sorted), signed by the starter. Its digest names
the run in every letter, so parties with different descriptions cannot even talk.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tacita import check
from tacita.aggregation import SecureSum
from tacita.check import TacitaError, refuse
from tacita.federation.json_words import read_table
from tacita.federation.protocol import PROTOCOL, require_protocol
from tacita.federation.seal import PrivateKeys, PublicKeys, require_signature
from tacita.federation.terms import Terms
from tacita.federation.wire import MOST_TEXT, LetterRefused
from tacita.trees import rules

#: What no run may have more of, whatever a policy says: beyond it, looking at an offer
#: would already take an agent's memory or time.
_MOST_AGENTS, _MOST_ROUNDS, _MOST_CLASSES, _MOST_COLUMNS = 100_000, 10**6, 10**4, 10**6
_DOMAIN = b"tacita run description 1\n"


def _numbers(within: check.Range, **named: Any) -> None:
    """Refuse what is no list of numbers in the range."""
    ((name, value),) = named.items()
    if not isinstance(value, list | tuple):
        refuse(f"expected {name} a list of numbers, got {name}={str(value)[:60]}")
    for entry in value:
        within(**{name: entry})


def _word(**named: Any) -> None:
    ((name, value),) = named.items()
    if not isinstance(value, str):
        refuse(f"expected {name} a word, got {name}={str(value)[:60]}")


#: Entries of a list in the table of a network: layers take time to be looked at.
_MOST_LAYERS = 32


def _model(**named: Any) -> None:
    """Refuse what is neither a model's name nor the table of a network."""
    ((name, value),) = named.items()
    if not isinstance(value, Mapping):
        _word(**named)
        return
    _word(**{f"{name}.name": value.get("name")})
    for key, entry in value.items():
        plain = isinstance(entry, list | tuple) and len(entry) <= _MOST_LAYERS
        if not (plain or isinstance(entry, str | int)):
            refuse(
                f"expected {name}.{key} a whole number or at most {_MOST_LAYERS} of "
                f"them, got {name}.{key}={str(entry)[:60]}"
            )


#: Tables of a description, the keys that each may have (None: any), and how a value is
#: checked whose meaning is the same in every run.
_TABLES: dict[str, dict[str, Callable[..., Any] | None] | None] = {
    "problem": {
        **dict.fromkeys(("columns", "classes")),
        "model": _model,
        "target": _word,
        "l2": check.not_negative,
        "intercept": check.flag,
        "centre": partial(_numbers, check.any_number),
        "spread": partial(_numbers, check.positive),
        "dtype": partial(check.one_of, ("float32", "float64")),
        "bound": check.positive,
    },
    "algorithm": None,
    "run": {
        **{name: rule.check for name, rule in rules(Terms).items()},
        "participation": None,
        "least_agents": check.count,
        "shared_seed": partial(check.count, 0),
        "aggregation": None,
    },
    "privacy": {
        "epsilon": check.positive,
        "delta": check.inside_unit,
        "norm": check.positive,
        "schedule": partial(check.one_of, ("uniform", "prefix", "momentum")),
        "noise_kind": partial(check.one_of, ("float", "integers")),
        "unit": partial(check.one_of, ("record", "client")),
        "observer": partial(check.one_of, ("coordinator", "colluders", "neighbour")),
    },
    "graph": {
        "kind": None,
        "edges": None,
        "weights": partial(_numbers, check.not_negative),
    },
    "secure": {
        **{name: rule.check for name, rule in rules(SecureSum).items()},
        **dict.fromkeys(("word", "multiples")),
        "rows": check.count,
    },
}
#: Keys that a table needs if it is there; the first three tables must be.
_NEEDED = {
    "problem": ("columns", "target"),
    "algorithm": ("name",),
    "run": ("rounds",),
    "privacy": ("epsilon", "delta"),
}


#: The smallest and the largest number of a description, besides 0, in double and in
#: single precision. Processors round what is below their smallest number to zero:
#: gradients clipped to 1e-307, and steps of 1e307, would make letters of the usual size
#: whose noise is gone. Products of several numbers have to be far from there.
_WITHIN = {False: (1e-60, 1e60), True: (1e-12, 1e12)}


def _require_usual(name: str, value: Any, least: float, most: float) -> None:
    """Refuse numbers that JSON cannot hold, or with which noise could vanish."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _require_usual(f"{name}.{key}", entry, least, most)
    elif isinstance(value, list | tuple):
        for entry in value:
            _require_usual(name, entry, least, most)
    elif isinstance(value, float) and not math.isfinite(value):
        refuse(f"expected {name} finite, got {name}={value}; correct it")
    elif isinstance(value, int | float) and not (
        value == 0 or least <= abs(value) <= most
    ):
        refuse(
            f"expected {name} between {least:g} and {most:g}, or 0, got "
            f"{name}={str(value)[:60]}; choose units in which it is"
        )


@dataclass(frozen=True)
class Description:
    """A run that is proposed.

    Attributes:
        federation: Where.
        name: What it is called.
        starter: Who proposes it: the coordinator of a server algorithm.
        agents: Who takes part, in the order of the algorithm's agents.
        tables: "problem", "algorithm", "run", and "privacy", "secure" and "graph" if
            any.
        protocol: What its parties speak; see `protocol.py`.
    """

    federation: str
    name: str
    starter: str
    agents: tuple[str, ...]
    tables: Mapping[str, Mapping[str, Any]]
    protocol: int = PROTOCOL

    def __post_init__(self) -> None:
        for table in ("problem", "algorithm", "run"):
            if table not in self.tables:
                refuse(f"the run has no table [{table}]; add it")
        for table, content in self.tables.items():
            if table not in _TABLES or not isinstance(content, Mapping):
                refuse(f"unknown table [{table}]; {check.nearest(table, _TABLES)}")
            known = _TABLES[table] or dict.fromkeys(content)
            for key, value in content.items():
                if key not in known:
                    refuse(f"unknown key {table}.{key}; {check.nearest(key, known)}")
                if (test := known[key]) is not None:
                    test(**{f"{table}.{key}": value})
                _require_usual(f"{table}.{key}", value, *_WITHIN[self._single])
            for key in _NEEDED.get(table, ()):
                if content.get(key) is None:
                    refuse(f"missing key {table}.{key}; add it")
        if "least_agents" in self.run and "deadline" not in self.run:
            refuse(
                "run.least_agents lets a run begin without everybody, so it needs "
                "run.deadline, the seconds that a round waits; add it"
            )
        if not self.agents or len(set(self.agents)) != len(self.agents):
            refuse("a run needs agents, each named once")
        self._require_small()

    @property
    def _single(self) -> bool:
        """Whether it is computed in single precision."""
        told = self.tables["problem"]
        if not isinstance(told, Mapping):
            return False
        network = isinstance(told.get("model"), Mapping)
        usual = "float32" if network else "float64"
        return told.get("dtype", usual) == "float32"

    def _require_small(self) -> None:
        for what, count, most in (
            ("agents", len(self.agents), _MOST_AGENTS),
            ("run.rounds", self.rounds, _MOST_ROUNDS),
            ("problem.classes", self._length("classes"), _MOST_CLASSES),
            ("problem.columns", self._length("columns"), _MOST_COLUMNS),
        ):
            if count > most:
                refuse(f"expected {what} <= {most}, got {count}; make a smaller run")

    def _length(self, key: str) -> int:
        names = self.problem.get(key)
        if names is not None and not isinstance(names, list | tuple):
            refuse(f"expected problem.{key} a list of names, got {str(names)[:60]!r}")
        return 0 if names is None else len(names)

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
        everybody = len(self.agents)
        return min(int(self.run.get("least_agents", everybody)), everybody)

    @property
    def fewest(self) -> int:
        """How few agents the run may begin, or end a round, with."""
        enough = self.least_agents
        if "deadline" in self.run:
            enough = min(enough, int(self.run.get("least_letters", 1)))
        if self.run.get("asynchronous"):
            letters = self.run.get("participation", 1.0)
            enough = min(enough, letters if isinstance(letters, int) else enough)
        if "secure" in self.tables:
            enough = int(self.tables["secure"].get("least", len(self.agents)))
        return enough

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.run["rounds"])

    def text(self) -> str:
        """The canonical text: the same description gives the same bytes everywhere."""
        return json.dumps(
            vars(self), sort_keys=True, separators=(",", ":"), allow_nan=False
        )

    @property
    def digest(self) -> str:
        """The name of the run in letters and folders."""
        return hashlib.sha256(_DOMAIN + self.text().encode()).hexdigest()[:32]

    def signed(self, keys: PrivateKeys) -> str:
        """The description with the starter's signature, as the text of an offer."""
        text = self.text()
        signature = keys.sign(_DOMAIN + text.encode()).hex()
        offer = json.dumps({"description": text, "signature": signature})
        if len(offer) > MOST_TEXT["offer"]:
            refuse(
                f"the run description has {len(offer) / 1e6:.1f} MB, and at most "
                f"{MOST_TEXT['offer'] / 1e6:.1f} MB can be offered; name fewer columns"
            )
        return offer


def read_signed(
    offer: str, federation: str, others: Mapping[str, PublicKeys], starter: str
) -> Description:
    """A description out of an offer; refused unless the starter signed every byte."""
    text, signed = _parts(offer)
    require_signature(
        others[starter], signed, _DOMAIN + text.encode(), "the run description"
    )
    made = _made(text)
    if (made.federation, made.starter) != (federation, starter):
        raise LetterRefused("a description of another federation or starter")
    return made


def words_of(offer: str) -> dict[str, Any]:
    """What an offer says, unchecked: it may be one of another protocol."""
    return read_table(_parts(offer)[0], "the run description", MOST_TEXT["offer"])


def unsigned(offer: str) -> Description:
    """A description out of an offer whose signature was checked when it came."""
    return _made(_parts(offer)[0])


def _parts(offer: str) -> tuple[str, bytes]:
    """The text and the signature of an offer."""
    told = read_table(offer, "the offer", MOST_TEXT["offer"])
    text, signature = told.get("description"), told.get("signature")
    if not isinstance(text, str) or not isinstance(signature, str):
        raise LetterRefused("the offer is no run description")
    try:
        return text, bytes.fromhex(signature)
    except ValueError:
        raise LetterRefused("the offer is not signed") from None


def _made(text: str) -> Description:
    words = read_table(text, "the run description", MOST_TEXT["offer"])
    try:
        require_protocol(words.get("protocol"), "the run")
        made = Description(**{**words, "agents": tuple(words["agents"])})
        canonical = made.text()
    except TacitaError as error:
        raise LetterRefused(str(error)) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise LetterRefused("the offer is no run description") from None
    if canonical != text:
        raise LetterRefused("the description is not in its canonical form")
    return made

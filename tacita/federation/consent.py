"""Who agreed to what: every agent sees that the others agreed to the same run.

With its acceptance an agent signs the description's digest. The coordinator hands all
signatures to everybody, and no agent sends a letter before it has seen those of enough
agents of the federation under the very description that it has itself. So a coordinator
that shows different descriptions to different agents gets no letter from any of them,
and neither does one that invents agents.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from tacita.federation.description import Description
from tacita.federation.json_words import read_table
from tacita.federation.roster import Roster
from tacita.federation.seal import PrivateKeys, PublicKeys, require_signature
from tacita.federation.wire import MOST_TEXT, LetterRefused

_DOMAIN = b"tacita consent 1\n"


class Refusal(StrEnum):
    """All that a coordinator is told of why an agent does not accept.

    None of them depends on rows: they are not looked at before a run is accepted.
    """

    #: The description, the policy, the ledger or a person stands against it.
    REFUSED = "refused"
    #: Too many offers within an hour.
    BUSY = "busy"
    #: A person has to decide first.
    WAITING = "waiting"

    @property
    def final(self) -> bool:
        """Whether waiting for another answer is of no use."""
        return self is Refusal.REFUSED


def sign(run: Description, agent: str, keys: PrivateKeys) -> str:
    """The agent's signature under the run."""
    return keys.sign(_content(run, agent)).hex()


def require(run: Description, agent: str, signature: object, keys: PublicKeys) -> None:
    """Refuse a signature that is not the agent's under this very run."""
    try:
        content = bytes.fromhex(str(signature))
    except ValueError:
        raise LetterRefused("a consent that is no signature") from None
    require_signature(keys, content, _content(run, agent), "the consent")


def _content(run: Description, agent: str) -> bytes:
    # All of the text: the short digest that names a run may be collided with effort.
    whole = hashlib.sha256(run.text().encode()).digest()
    return _DOMAIN + agent.encode() + b"\n" + whole


def bundle(run: Description, signatures: Mapping[str, str]) -> str:
    """The text that hands everybody's signatures to everybody."""
    return json.dumps({"run": run.digest, "consents": dict(signatures)})


def read(run: Description, text: str | bytes) -> dict[str, Any]:
    """The signatures that are handed over, by agent of the run; unchecked."""
    told = read_table(text, "what others agreed to", MOST_TEXT["consents"])
    digest, given = told.get("run"), told.get("consents")
    if not isinstance(given, dict):
        raise LetterRefused("consents that cannot be read")
    if digest != run.digest:
        raise LetterRefused("consents to another run")
    return {name: given[name] for name in run.agents if name in given}


def require_enough(
    run: Description, text: str, roster: Roster, least: int
) -> list[str]:
    """Who agreed to this run; refused where fewer than `least` did.

    Args:
        run: The description that was accepted here.
        text: What the coordinator handed over.
        roster: Who belongs to the federation, and whose consent no run does without.
        least: How many agents must have agreed, the reader among them.
    """
    known = roster.keys
    found, faults = [], []
    for name, signature in read(run, text).items():
        if name not in known:
            continue
        try:
            require(run, name, signature, known[name])
            found.append(name)
        except LetterRefused as fault:  # perhaps it has other keys by now
            faults.append(fault)
    if len(found) < least:
        if faults:
            raise faults[0]
        raise LetterRefused(
            f"{len(found)} agents agreed to this very run, {least} have to; the others "
            "may have been shown another one"
        )
    for name in roster.approvers:
        if name not in found:
            raise LetterRefused(f"{name} has to agree to every run, and did not yet")
    return found

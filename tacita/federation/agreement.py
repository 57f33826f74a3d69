"""Agreeing on a run: the starter offers, agents accept or say why not."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tacita.check import refuse
from tacita.federation.description import Description
from tacita.federation.hub import Invitation
from tacita.federation.post import Post
from tacita.federation.seal import Envelope
from tacita.federation.wire import Identity, Letter, LetterRefused

_MOST_BYTES = 1 << 21


def note(kind: str, federation: str, sender: str, to: str, text: str = "") -> Letter:
    """A letter outside of any run."""
    return Letter(Identity(federation, "", kind, 0, 0, sender, to), (), text)


def _letters(
    envelope: Envelope,
    post: Post,
    say: Callable[[], Iterable[Letter]],
    seconds: float | None,
    tell: Callable[[str], Any],
    patience: float,
) -> Iterator[Letter]:
    """Letters as they come, until the time is over; `say` is sent now and then."""
    end = math.inf if seconds is None else time.monotonic() + seconds
    next_time = 0.0
    while (now := time.monotonic()) < end:
        if now >= next_time:
            next_time = now + patience
            for letter in say():
                post.deliver(letter.identity.receiver, envelope.close(letter))
        for content in post.collect(0.5):
            try:
                yield envelope.open(content, _MOST_BYTES)
            except LetterRefused as refusal:
                tell(f"a letter was refused: {refusal}")


def gather(
    run: Description,
    offer: str,
    envelope: Envelope,
    post: Post,
    seconds: float,
    tell: Callable[[str], Any] = lambda line: None,
    patience: float = 1.0,
) -> dict[str, int]:
    """Offer the run until enough agents have accepted; their numbers of rows.

    Those who come later find the run under way and join it.

    Raises:
        TacitaError: An agent refuses, or somebody does not answer in time.
    """
    rows: dict[str, int] = {}

    def offers() -> list[Letter]:
        missing = [a for a in run.agents if a not in rows]
        return [note("offer", run.federation, run.starter, a, offer) for a in missing]

    for letter in _letters(envelope, post, offers, seconds, tell, patience):
        sender = letter.identity.sender
        try:
            told = accepted(letter, run)
        except LetterRefused as refusal:
            tell(f"a letter was refused: {refusal}")
            continue
        if told is not None and sender not in rows:
            rows[sender] = told
            tell(f"{sender} accepts")
        if len(rows) >= run.least_agents:
            return rows
    missing = ", ".join(a for a in run.agents if a not in rows)
    refuse(f"no answer from {missing} within {seconds:g} s")


def withdraw(run: Description, envelope: Envelope, post: Post) -> None:
    """Tell every agent that the run does not take place."""
    for agent in run.agents:
        sent = note("withdraw", run.federation, run.starter, agent, run.digest)
        post.deliver(agent, envelope.close(sent))


def accepted(letter: Letter, run: Description) -> int | None:
    """The sender's number of rows if it accepts this run; its refusal is raised."""
    one = letter.identity
    if one.sender not in run.agents or one.kind not in ("accept", "refuse"):
        return None
    try:
        told: Mapping[str, Any] = json.loads(letter.text)
        if told["run"] != run.digest:
            return None
        if one.kind == "refuse":
            refuse(f"{one.sender} refuses the run: {str(told['reason'])[:300]}")
        rows = told["rows"]
    except (KeyError, TypeError, json.JSONDecodeError):
        raise LetterRefused("an answer that cannot be read") from None
    if type(rows) is not int or rows < 1:
        raise LetterRefused("an answer without a number of rows")
    return rows


def await_offer(
    me: Invitation,
    envelope: Envelope,
    post: Post,
    judge: Callable[[str], tuple[str, dict[str, Any]]],
    seconds: float | None = None,
    tell: Callable[[str], Any] = lambda line: None,
) -> None:
    """Wait for an offer that `judge` accepts.

    Args:
        me: Who this agent is, and who may offer.
        envelope: How letters are opened.
        post: This agent's post.
        judge: From an offer to ("accept" or "refuse", the words of the answer).
        seconds: Longest wait; None for any.
        tell: Told of letters that are refused.
    """
    starter = me.coordinator
    hello = note("ask", me.federation, me.name, starter)
    for letter in _letters(envelope, post, lambda: [hello], seconds, tell, 2.0):
        one = letter.identity
        if (one.kind, one.run, one.sender) != ("offer", "", starter):
            continue
        answer, words = judge(letter.text)
        reply = note(answer, me.federation, me.name, starter, json.dumps(words))
        post.deliver(starter, envelope.close(reply))
        if answer == "accept":
            return
    refuse(f"no run was offered by {starter} within {seconds:g} s")

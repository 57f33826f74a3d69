"""What turns the parties' crank: on a clock of its own in tests, else the real one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, MutableMapping

from tacita.federation.party import Party
from tacita.federation.post import InProcessPost, Post

#: Seconds between two looks at the clock where no letter comes.
_TICK = 0.25


class Stuck(RuntimeError):
    """A federation inside one program made no progress."""


def run_in_process(
    parties: MutableMapping[str, Party],
    post: InProcessPost,
    most_steps: int = 200_000,
    disturb: Callable[[MutableMapping[str, Party], InProcessPost], None] | None = None,
) -> None:
    """Run all parties to their end inside one program.

    Args:
        parties: By name; `disturb` may replace them.
        post: What carries their letters.
        most_steps: Letters and ticks before it counts as stuck.
        disturb: Called after every letter, before what it caused is sent.
    """
    for party in list(parties.values()):
        party.start(post.now)
        _send(party, post)
    for _ in range(most_steps):
        item = post.next()
        if item is not None:
            to, content = item
            parties[to].receive(content, post.now)
            if disturb is not None:
                disturb(parties, post)
            _send(parties[to], post)
            continue
        if all(party.finished for party in parties.values()):
            return
        due = post.next_due()
        soon = post.now + _TICK
        post.now = soon if due is None else min(soon, due)
        for party in list(parties.values()):
            party.tick(post.now)
            _send(party, post)
    raise Stuck(f"not finished: {_unfinished(parties)}")


def _send(party: Party, post: Post | InProcessPost) -> None:
    for to, content in party.take_out():
        post.deliver(to, content)


def _unfinished(parties: Mapping[str, Party]) -> str:
    return ", ".join(
        f"{n} in round {p.round}" for n, p in parties.items() if not p.finished
    )


def run_party(
    party: Party,
    post: Post,
    watch: Callable[[Party], None] | None = None,
    seconds: float | None = None,
) -> bool:
    """Run one party on the real clock until it is finished; False if time ran out.

    Args:
        party: The party.
        post: Its post.
        watch: Called now and then, for progress and the status file.
        seconds: Longest time to run; None for any.
    """
    begun = time.monotonic()
    party.start(begun)
    _send(party, post)
    looked = 0.0
    while not party.finished:
        for content in post.collect(_TICK):
            party.receive(content, time.monotonic())
            _send(party, post)
        now = time.monotonic()
        party.tick(now)
        _send(party, post)
        if watch is not None and now - looked >= 1.0:
            looked = now
            watch(party)
        if seconds is not None and now - begun > seconds:
            return False
    if watch is not None:
        watch(party)
    return True

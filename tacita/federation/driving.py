"""Driving a party on the real clock: letters in, letters out, until it is finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tacita.federation.party import Party
from tacita.federation.post import Post

#: Seconds between two looks at the clock where no letter comes.
TICK = 0.25


def send(party: Party, deliver: Callable[[str, bytes], None]) -> None:
    """Send what the party has left in its outbox."""
    for to, content in party.take_out():
        deliver(to, content)


def run_party(
    party: Party,
    post: Post,
    watch: Callable[[], None] | None = None,
    seconds: float | None = None,
    first: Sequence[bytes] = (),
    look: Callable[[], None] = lambda: None,
) -> bool:
    """Run one party on the real clock until it is finished; False if time ran out.

    Args:
        party: The party.
        post: Its post.
        watch: Called now and then, for progress and the status file.
        seconds: Longest time to run; None for any.
        first: Letters to it that came before.
        look: Called after letters were answered: whatever it does delays none of them.
    """
    begun = time.monotonic()
    post.expect(party.most_bytes)
    party.start(begun)
    for content in first:
        party.receive(content, begun)
    send(party, post.deliver)
    looked = 0.0
    while not party.finished:
        for content in post.collect(TICK):
            party.receive(content, time.monotonic())
            send(party, post.deliver)
        now = time.monotonic()
        party.tick(now)
        send(party, post.deliver)
        look()
        if watch is not None and now - looked >= 1.0:
            looked = now
            watch()
        if seconds is not None and now - begun > seconds:
            return False
    if watch is not None:
        watch()
    return True

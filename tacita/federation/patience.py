"""How long to wait for a letter before asking for it: as long as such letters took.

For every peer a mean and a spread of the times are kept, as TCP does (V. Paxson et al.,
RFC 6298, 2011), and every ask in vain doubles the wait. Asking moves no letter, so
every time that was measured counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Seconds before the first ask, whatever was measured.
LEAST, MOST = 1.0, 30.0
#: Seconds between two asks of a peer that is usually quicker.
_LATE = 10.0
#: Whom, and what of it: its next letter, or one that is being fetched.
Wait = tuple[str, str]


@dataclass
class _Times:
    """What is known of one peer.

    Attributes:
        mean: Smoothed seconds that its letters took; 0 before the first.
        spread: Smoothed distance from that mean.
        since: When the wait began; None where nothing is waited for.
        due: When to ask.
        asked: Asks of this wait.
    """

    mean: float = 0.0
    spread: float = 0.0
    since: float | None = None
    due: float = math.inf
    asked: int = 0

    def learn(self, seconds: float) -> None:
        if self.mean == 0.0:
            self.mean, self.spread = seconds, seconds / 2
            return
        self.spread += (abs(seconds - self.mean) - self.spread) / 4
        self.mean += (seconds - self.mean) / 8

    def next_due(self, now: float) -> float:
        usual = min(max(LEAST, self.mean + 4 * self.spread), MOST)
        return now + min(usual * 2.0 ** min(self.asked, 9), max(usual, _LATE))


class Patience:
    """Whom a party waits for, and since when."""

    def __init__(self) -> None:
        self._times: dict[Wait, _Times] = {}
        #: No wait is due before this; saves a look at everybody.
        self._soonest = math.inf

    def wait(self, peer: Wait, now: float) -> None:
        """From now on, unless it is waited for already."""
        times = self._times.setdefault(peer, _Times())
        if times.since is None:
            times.since, times.asked = now, 0
            times.due = times.next_due(now)
            self._soonest = min(self._soonest, times.due)

    def came(self, peer: Wait, now: float) -> None:
        """What was waited for is here."""
        times = self._times.get(peer)
        if times is not None and times.since is not None:
            times.learn(now - times.since)
            times.since, times.due = None, math.inf

    def forget(self, peer: Wait) -> None:
        """It is not waited for any more, though nothing came."""
        if peer in self._times:
            self._times[peer].since, self._times[peer].due = None, math.inf

    def due(self, now: float) -> list[Wait]:
        """Whom to ask now; each is due again after a longer while."""
        if now < self._soonest:
            return []
        late = [peer for peer, times in self._times.items() if times.due <= now]
        for peer in late:
            times = self._times[peer]
            times.asked += 1
            times.due = times.next_due(now)
        self._soonest = min((t.due for t in self._times.values()), default=math.inf)
        return late

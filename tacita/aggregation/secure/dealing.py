"""An agent's secrets, and what it publishes and deals of them.

All of it is a function of the agent's secret, the attempt, the exchange and the roster,
so that a crash cannot make it publish or deal something else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tacita.aggregation.secure import masks
from tacita.aggregation.secure.derive import derive
from tacita.aggregation.secure.letters import DEALT_BYTES
from tacita.aggregation.secure.masks import KEY, SELF
from tacita.aggregation.secure.shares import SHARE_BYTES, deal
from tacita.aggregation.secure.terms import Terms, as_parts
from tacita.aggregation.secure.window_roster import Roster
from tacita.check import refuse


@dataclass(frozen=True)
class Dealer:
    """One agent's hand.

    Attributes:
        terms: Of the run.
        name: The agent.
        secret: 32 bytes, fresh for this run, deleted after it.
    """

    terms: Terms
    name: str
    secret: bytes = field(repr=False)

    def round_secret(self, what: str, attempt: int, exchange: int) -> bytes:
        """What is behind its masks in an exchange."""
        return masks.round_secret(self.secret, what, self.terms.run, attempt, exchange)

    def body(self, attempt: int, start: int) -> bytes:
        """What it publishes of all exchanges of a window."""
        found = []
        for exchange in range(start, start + self.terms.width(start)):
            found += [
                masks.public_key(self.round_secret(KEY, attempt, exchange)),
                masks.commitment(self.round_secret(SELF, attempt, exchange)),
            ]
        return b"".join(found)

    def deal(self, roster: Roster) -> dict[str, bytes]:
        """Shares of all its secrets, for each holder."""
        secrets, coins = [], []
        for exchange in roster.exchanges:
            for what in (KEY, SELF):
                secrets.append(self.round_secret(what, roster.attempt, exchange))
                parts = as_parts("coins", what, exchange, roster.digest)
                coins.append(derive(self.secret, *parts))
        made = deal(secrets, coins, len(roster.members), roster.needed)
        return {
            name: np.ascontiguousarray(made[:, place]).tobytes()
            for place, name in enumerate(roster.members)
        }

    def commons(self, roster: Roster, exchange: int) -> dict[str, bytes]:
        """What it alone shares with each other agent of a roster."""
        place = roster.keyed_as(exchange)
        own = self.round_secret(KEY, roster.attempt, place)
        others = [name for name in roster.members if name != self.name]
        try:
            return masks.shared(own, {n: roster.public(n, place) for n in others})
        except ValueError:
            refuse("a public key of the roster is of low order: its owner deceives")

    def masked(
        self,
        letter: np.ndarray,
        roster: Roster,
        exchange: int,
        commons: dict[str, bytes],
        context: bytes,
    ) -> np.ndarray:
        """Its letter under all its masks."""
        own = self.round_secret(SELF, roster.attempt, exchange)
        return masks.masked(letter, self.name, own, commons, context)


def by_exchange(roster: Roster, dealt: dict[str, bytes]) -> dict[int, bytes]:
    """What all agents have dealt to one holder, put together for each exchange."""
    found = {}
    for k, exchange in enumerate(roster.exchanges):
        cut = slice(k * DEALT_BYTES, (k + 1) * DEALT_BYTES)
        found[exchange] = b"".join(dealt[name][cut] for name in roster.members)
    return found


def opened(roster: Roster, held: bytes, chosen: tuple[str, ...]) -> tuple[bytes, ...]:
    """A holder's share of one secret of each agent: never of both.

    Args:
        roster: With its members.
        held: What `by_exchange` has put together for this exchange.
        chosen: The agents whose letters are in the sum: their self masks are opened,
            of all others the keys.
    """
    found, inside = [], set(chosen)
    for place, name in enumerate(roster.members):
        at = place * DEALT_BYTES + (SHARE_BYTES if name in inside else 0)
        found.append(held[at : at + SHARE_BYTES])
    return tuple(found)

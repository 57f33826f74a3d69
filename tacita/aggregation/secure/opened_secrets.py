"""What the coordinator makes of openings: secrets, liars, and the sum itself."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tacita.aggregation.secure import masks
from tacita.aggregation.secure.recovery import Recovered, recover
from tacita.aggregation.secure.roster import Roster
from tacita.aggregation.secure.shares import number


class OpenedSecrets:
    """The secrets that the openings of one exchange come to.

    Args:
        roster: Of the exchange.
        exchange: Which.
        chosen: The agents whose answers are in the sum.
    """

    def __init__(self, roster: Roster, exchange: int, chosen: Iterable[str]) -> None:
        self._roster, self._exchange = roster, exchange
        self._chosen = frozenset(chosen)
        self._openings: dict[str, tuple[bytes, ...]] = {}
        self._secrets: dict[str, bytes] = {}
        self.false_holders: set[str] = set()
        self.liars: tuple[str, ...] = ()

    @property
    def holders(self) -> frozenset[str]:
        """Whose openings are here."""
        return frozenset(self._openings)

    def add(self, holder: str, opened: tuple[bytes, ...]) -> bool:
        """Take in an opening; whether all secrets are known now."""
        self._openings.setdefault(holder, opened)
        if len(self._openings) < self._roster.needed:
            return False
        liars = []
        for place, name in enumerate(self._roster.members):
            if name in self._secrets:
                continue
            found = self._recover(place, name)
            if found.secret is not None:
                self._secrets[name] = found.secret
            elif found.dealer_lied:
                liars.append(name)
            members = self._roster.members
            self.false_holders |= {members[point - 1] for point in found.false}
        self.liars = tuple(liars)
        return len(self._secrets) == len(self._roster.members)

    def _recover(self, place: int, name: str) -> Recovered:
        """One agent's secret; holders whose shares were false before come last."""
        roster = self._roster
        order = sorted(self._openings, key=lambda h: (h in self.false_holders, h))
        shares = {
            roster.members.index(holder) + 1: number(self._openings[holder][place])
            for holder in order
        }
        terms = roster.terms
        return recover(
            shares, roster.needed, terms.colluding, lambda s: self._fits(name, s)
        )

    def _fits(self, name: str, secret: bytes) -> bool:
        roster, exchange = self._roster, self._exchange
        if name in self._chosen:
            return masks.commitment(secret) == roster.commitment(name, exchange)
        return masks.public_key(secret) == roster.public(name, exchange)

    def sum_of(self, total: np.ndarray, context: bytes) -> np.ndarray:
        """The sum of the letters, out of that of the answers."""
        roster, exchange = self._roster, self._exchange
        publics = {name: roster.public(name, exchange) for name in self._chosen}
        missing = {
            name: masks.shared(secret, publics)
            for name, secret in self._secrets.items()
            if name not in self._chosen
        }
        own = [self._secrets[name] for name in self._chosen]
        return masks.unmasked(total, own, missing, context)

"""What the coordinator makes of openings: secrets, liars, and the sum itself."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tacita.aggregation.secure import masks
from tacita.aggregation.secure.recovery import Recovered, recover
from tacita.aggregation.secure.shares import number
from tacita.aggregation.secure.window_roster import Roster


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
        #: The shares that each holder gave, by its point, as numbers.
        self._openings: dict[int, list[int]] = {}
        self._secrets: dict[str, bytes] = {}
        self._false: set[int] = set()
        self.liars: tuple[str, ...] = ()

    @property
    def holders(self) -> frozenset[str]:
        """Whose openings are here."""
        return frozenset(self._roster.members[point - 1] for point in self._openings)

    @property
    def false_holders(self) -> tuple[str, ...]:
        """Who gave shares that do not fit."""
        return tuple(self._roster.members[point - 1] for point in sorted(self._false))

    def add(self, holder: str, opened: tuple[bytes, ...]) -> bool:
        """Take in an opening; whether all secrets are known now."""
        point = self._roster.places[holder] + 1
        self._openings.setdefault(point, [number(share) for share in opened])
        if len(self._openings) < self._roster.needed:
            return False
        # More openings are on their way: what is hard now will be easy then.
        return all(self._find(name, search=False) for name in self._roster.members)

    def search(self) -> bool:
        """Try hard, as no more openings will come; whether all secrets are known."""
        if len(self._openings) < self._roster.needed:
            return False
        self.liars = ()
        return all([self._find(name, search=True) for name in self._roster.members])

    def _find(self, name: str, search: bool) -> bool:
        """Whether an agent's secret is known, or comes to be known."""
        if name in self._secrets:
            return True
        found = self._recover(name, search)
        self._false |= set(found.false)
        if found.dealer_lied:
            self.liars += (name,)
        if found.secret is not None:
            self._secrets[name] = found.secret
        return found.secret is not None

    def _recover(self, name: str, search: bool) -> Recovered:
        """One agent's secret; holders whose shares were false before come last."""
        roster, place = self._roster, self._roster.places[name]
        order = sorted(self._openings, key=self._false.__contains__)
        shares = {point: self._openings[point][place] for point in order}
        most_false = roster.needed, roster.terms.colluding
        return recover(shares, *most_false, lambda s: self._fits(name, s), search)

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

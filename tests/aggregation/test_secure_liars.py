"""Coordinators that lie at random, against real agents: no small sum can be read.

What `test_secure_rosters` proves of the rules is tried here on the machines: the liar
sends any roster to anybody, hands on any letter to anybody, asks anything, has any set
signed and opened, and in the end joins all shares that it was given.
"""

from __future__ import annotations

import hashlib
import random
from itertools import combinations

import pytest

from tacita.aggregation.secure import letters, masks
from tacita.aggregation.secure.dealing import Dealer
from tacita.aggregation.secure.letters import Alive, Entries, Open
from tacita.aggregation.secure.shares import join, number
from tacita.aggregation.secure.signatures import keys_message, set_message
from tacita.aggregation.secure.steps import Send, Step
from tacita.aggregation.secure.window_roster import Roster
from tacita.check import TacitaError
from tests.aggregation.secure_parties import Town, question_of, signing_key, terms_of
from tests.aggregation.test_secure_rosters import readable


class Liar:
    """A coordinator with c agents on its side, which tries whatever comes to its mind.

    Args:
        agents: How many there are; the last `colluding` of them are its own.
        colluding: c.
        least: Fewest letters in a sum.
        seed: Of what comes to its mind.
    """

    def __init__(self, agents: int, colluding: int, least: int, seed: int) -> None:
        settings = dict(least=least, colluding=colluding, exchanges=1, entries=1)
        self.town = Town(terms_of(agents, **settings))
        self.terms, self.chance = self.town.terms, random.Random(seed)
        names = self.terms.names
        self.honest = names[: agents - colluding]
        self.own = names[agents - colluding :]
        some = [c for k in range(least, agents + 1) for c in combinations(names, k)]
        self.rosters = [
            self.roster_of(0, members)
            for members in (names, self.chance.choice(some[:-1] or some))
        ]
        small = [c for c in some if len(c) == least]
        self.sets = self.chance.sample(small, min(len(small), 3))
        self.shares: list[tuple[str, Send]] = []
        self.signed: dict[tuple[bytes, tuple[str, ...]], dict[str, bytes]] = {}
        self.answered: set[tuple[str, bytes]] = set()
        self.opened: dict[tuple[str, bytes], tuple[bytes, ...]] = {}
        self.sets_of: dict[str, set[str]] = {}

    def dealer(self, name: str) -> Dealer:
        return Dealer(self.terms, name, hashlib.sha256(name.encode()).digest())

    def roster_of(self, attempt: int, names: tuple[str, ...]) -> Roster:
        bodies = tuple(self.dealer(n).body(attempt, 0) for n in names)
        signatures = tuple(
            signing_key(n).sign(keys_message(self.terms, attempt, 0, body))
            for n, body in zip(names, bodies, strict=True)
        )
        return Roster(self.terms, Entries(attempt, 0, names, bodies, signatures))

    def tell(self, name: str, kind: str, content: bytes, sender: str = "hub") -> Step:
        step = self.town.agents[name].heard(sender, kind, content)
        for write in step.writes:
            self.town.disks[name].write(write)
        for send in self.town.agents[name].release(step):
            if send.kind == "shares":
                self.shares.append((name, send))
        return step

    def set_up(self) -> None:
        """Give everybody a roster, most the same, and hand on all shares there are."""
        for name in self.honest:
            roster = self.rosters[self.chance.random() < 0.1]
            try:
                self.tell(name, "roster", roster.content)
            except TacitaError:
                continue
            for own in set(self.own) & set(roster.members):
                dealt = self.dealer(own).deal(roster)[name]
                shares = letters.Shares(roster.digest, 0, dealt)
                content = letters.encode(shares, self.terms)
                self.shares.append((own, Send(name, "shares", 0, content)))
        for sender, send in self.shares:
            if send.to in self.honest:
                try:
                    self.tell(send.to, "shares", send.content, sender)
                except TacitaError:
                    continue

    def act(self) -> None:
        """One thing that comes to its mind."""
        name, roster = self.chance.choice(self.honest), self.chance.choice(self.rosters)
        chosen = self.chance.choice((self.sets[0], *self.sets))
        what = self.chance.choice(("ask", "sign", "open"))
        if what == "ask":
            step = self.town.reply(name, 0, question_of(0))
            (send,) = self.town.agents[name].release(step)
            told = self.roster_here(name)
            self.answered.add((name, told.digest))
            if send.content.opened:
                self.opened[name, told.digest] = send.content.opened
                self.sets_of[name] = set(told.members)
        elif what == "sign":
            alive = Alive(0, roster.digest, chosen)
            step = self.tell(name, "alive", letters.encode(alive, self.terms))
            agreed = letters.decode("agreed", step.sends[0].content, self.terms)
            here = self.signed.setdefault((roster.digest, chosen), {})
            here[name] = agreed.signature
        else:
            self.open(name, roster, chosen)

    def roster_here(self, name: str) -> Roster:
        return next(iter(self.town.agents[name]._records.rosters.values()))

    def open(self, name: str, roster: Roster, chosen: tuple[str, ...]) -> None:
        if self.chance.random() < 0.3:
            chosen = roster.members
        found = dict(self.signed.get((roster.digest, chosen), {}))
        message = set_message(self.terms, roster.digest, 0, chosen)
        found |= {own: signing_key(own).sign(message) for own in self.own}
        signers = tuple(sorted(found))
        signatures = tuple(found[n] for n in signers)
        letter = Open(0, roster.digest, chosen, signers, signatures)
        step = self.tell(name, "open", letters.encode(letter, self.terms))
        opening = letters.decode("opening", step.sends[0].content, self.terms)
        self.opened[name, roster.digest] = opening.opened
        self.sets_of[name] = set(chosen)

    def secret(self, roster: Roster, dealer: str, what: str) -> bool:
        """Whether the shares that it was given, and its own, join to a secret."""
        place, shares = roster.places[dealer], {}
        hand = self.dealer(dealer).deal(roster)
        for own in set(self.own) & set(roster.members):
            at = 32 * (what == masks.SELF)
            shares[roster.places[own] + 1] = number(hand[own][at : at + 32])
        for (holder, digest), opened in self.opened.items():
            inside = dealer in self.sets_of[holder]
            if digest == roster.digest and inside == (what == masks.SELF):
                shares[roster.places[holder] + 1] = number(opened[place])
        if len(shares) < roster.needed:
            return False
        points = list(shares)[: roster.needed]
        found = join(points, [shares[p] for p in points])
        if what == masks.SELF:
            told = roster.commitment(dealer, 0)
            return found is not None and masks.commitment(found) == told
        return found is not None and masks.public_key(found) == roster.public(dealer, 0)

    def read(self) -> list[tuple[str, ...]]:
        """All smallest sets of honest agents whose sum it can read."""
        found = []
        for roster in self.rosters:
            honest = frozenset(set(roster.members) & set(self.honest))
            answered = frozenset(
                n for n in honest if (n, roster.digest) in self.answered
            )
            keys = {n for n in honest if self.secret(roster, n, masks.KEY)}
            selfs = {n for n in honest if self.secret(roster, n, masks.SELF)}
            found += [tuple(g) for g in readable(answered, honest, keys, selfs)]
        return found


def lie(agents: int, colluding: int, least: int, seed: int) -> int:
    liar = Liar(agents, colluding, least, seed)
    liar.set_up()
    for _ in range(12 * agents):
        try:
            liar.act()
        except TacitaError:
            continue
    read = liar.read()
    assert all(len(group) >= least - colluding for group in read), (seed, read)
    return len(read)


GAMES = [(3, 0, 2), (4, 0, 3), (4, 1, 3), (5, 1, 4), (5, 0, 3), (4, 1, 4)]


def test_random_liars_read_no_small_sum():
    read = sum(lie(*game, seed) for game in GAMES for seed in range(4))
    assert read  # now and then a whole sum comes out, so there is something to read


@pytest.mark.long
@pytest.mark.parametrize("game", GAMES, ids=str)
def test_thousands_of_random_liars_read_no_small_sum(game):
    assert sum(lie(*game, seed) for seed in range(4, 204))

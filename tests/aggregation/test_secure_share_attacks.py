"""Shares that are missing, false, of another roster, or given twice."""

from __future__ import annotations

import hashlib
from itertools import combinations

import pytest

from tacita.aggregation.secure import letters, masks, recovery
from tacita.aggregation.secure.dealing import Dealer
from tacita.aggregation.secure.letters import (
    Alive,
    Open,
    Shares,
    Want,
)
from tacita.aggregation.secure.recovery import decode
from tacita.aggregation.secure.shares import PRIME, join, number
from tacita.aggregation.secure.steps import Void
from tacita.aggregation.secure.window_roster import Roster
from tacita.check import TacitaError
from tests.aggregation.secure_attackers import (
    HUB,
    A,
    B,
    C,
    D,
    E,
    answered,
    entries_of,
    new_town,
    ready_town,
    signed,
    tell,
)
from tests.aggregation.secure_parties import (
    Town,
    question_of,
    terms_of,
)


def test_nothing_is_answered_signed_or_opened_before_all_shares_are_there():
    town = new_town()
    town.twist = lambda sender, send: (
        None if (sender, send.to, send.kind) == (B, A, "shares") else send
    )
    town.hub_does(lambda: town.coordinator.begin(0))
    roster = town.coordinator.roster
    assert town.agents[A].awaited() == (B,) and not town.coordinator.serves(0)
    with pytest.raises(TacitaError, match="not ready: shares are missing"):
        town.agents[A].asked(0, question_of(0))
    with pytest.raises(TacitaError, match="not ready: shares are missing"):
        tell(town, A, Alive(0, roster.digest, (B, C, D, E)))
    with pytest.raises(TacitaError, match="not ready: shares are missing"):
        tell(town, A, signed(town, 0, (B, C, D, E), [B, C, D, E]))
    with pytest.raises(TacitaError, match="no roster is ready"):
        town.coordinator.ask(0, question_of(0))


def test_shares_of_another_roster_or_window_do_not_count():
    town = new_town(window=2)
    mine = entries_of(town, 0, 0, [A, B, C, D])
    other = entries_of(town, 0, 0, [A, B, C, D, E])
    tell(town, A, mine)
    for name in (B, C):
        for send in tell(town, name, mine).sends:
            if send.to == A:
                town.hand_over(name, send)
    for send in tell(town, D, other).sends:
        if send.to == A:
            with pytest.raises(TacitaError, match="not this agent's"):
                town.agents[A].heard(D, "shares", send.content)
    assert town.agents[A].awaited() == (D,)
    # Shares of an older window, sent again.
    newer = entries_of(town, 1, 2, [A, B, C, D])
    old = [s for s in tell(town, B, mine).sends if s.to == A]
    tell(town, A, newer)
    assert town.agents[A].awaited() == (B, C, D)
    for send in old:
        town.hand_over(B, send)
    assert town.agents[A].awaited() == (B, C, D)
    assert not any(n.startswith("shares-1") for n in town.disks[A].kept)


def test_agents_outside_of_the_roster_neither_deal_nor_hold():
    town = new_town()
    mine = entries_of(town, 0, 0, [A, B, C, D])
    tell(town, A, mine)
    digest = Roster(town.terms, mine).digest
    with pytest.raises(TacitaError, match="nothing to deal"):
        tell(town, A, Shares(digest, 0, bytes(4 * 64)), sender=E)
    with pytest.raises(TacitaError, match="nothing to deal"):
        tell(town, A, Shares(digest, 1, bytes(3 * 64)), sender=B)
    with pytest.raises(TacitaError, match="no holder"):
        tell(town, A, Want(digest), sender=E)
    assert tell(town, A, Want(digest), sender=B).sends[0].to == B


def test_shares_under_two_rosters_or_of_two_secrets_lie_on_different_polynomials():
    """Else shares of one could be joined with shares of the other."""
    town = new_town()
    dealer = Dealer(town.terms, A, hashlib.sha256(A.encode()).digest())
    rosters = [
        Roster(town.terms, entries_of(town, 0, 0, names))
        for names in ([A, B, C, D], [A, B, C, E])
    ]
    hands = [dealer.deal(roster) for roster in rosters]
    for name in (A, B, C):
        assert hands[0][name] != hands[1][name]
    # With equal coefficients two shares would differ by the same at every holder.
    shares = [
        [number(hands[0][n][at : at + 32]) for n in (A, B, C, D)]
        for at in range(0, 4 * 64, 32)
    ]
    for one, other in combinations(shares, 2):
        gaps = {(a - b) % PRIME for a, b in zip(one, other, strict=True)}
        assert len(gaps) == 4


def test_two_rosters_of_one_attempt_cannot_be_mixed():
    """Three agents, none colludes, least = 2: the roster of two is opened whole.

    A and B are told of each other alone, C of everybody. If A and B answered under
    theirs, and C gave its shares for another set, one letter could be read.
    """
    town = Town(terms_of(3, least=2, colluding=0))
    small = entries_of(town, 0, 0, [A, B])
    whole = entries_of(town, 0, 0, [A, B, C])
    for name, told in ((A, small), (B, whole), (C, whole)):
        for send in tell(town, name, told).sends:
            town.post.append((name, send))
    town.deliver()
    for name in (A, B, C):
        with pytest.raises(TacitaError, match="not ready"):
            town.agents[name].asked(0, question_of(0))


def test_wrong_shares_of_a_holder_are_found_and_done_without():
    town = ready_town(7, least=5, colluding=1)
    seen = []

    def lie(sender, send):
        if (sender, send.kind) != (A, "opening"):
            return send
        seen.append(send)
        opening = letters.decode("opening", send.content, town.terms)
        false = tuple(bytes(31) + b"\1" for _ in opening.opened)
        content = letters.encode(opening._replace(opened=false), town.terms)
        return send._replace(content=content)

    town.twist = lie
    for exchange, silent in ((0, set()), (1, {"agent 006"})):
        town.silent = silent
        outcome = town.check_sum(town.run(exchange))
        assert outcome.false_holders == (A,)
    assert seen


def test_a_false_holder_is_looked_for_once(monkeypatch):
    """Decoding is slow; whoever was found false is asked last for the other secrets."""
    town = ready_town(7, least=5, colluding=1)
    decoded = []

    def counted(*arguments):
        decoded.append(arguments)
        return decode(*arguments)

    monkeypatch.setattr(recovery, "decode", counted)
    town.twist = lambda sender, send: (
        send._replace(content=send.content[:-224] + bytes(224))
        if (sender, send.kind) == (A, "opening")
        else send
    )
    assert town.check_sum(town.run(0)).false_holders == (A,)
    assert len(decoded) <= 3  # with t, t + 1 and t + 2 openings


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["of nothing", "of another secret"])
def test_a_dealer_of_wrong_shares_is_named_and_left_out(missing, kind):
    """Its self mask cannot be opened, or, where it is missing, its key."""
    town = Town(terms_of(6, least=4, colluding=1))
    other = Dealer(town.terms, B, b"not the one it published keys of")

    def lie(sender, send):
        if (sender, send.kind) != (B, "shares"):
            return send
        shares = letters.decode("shares", send.content, town.terms)
        wrong = hashlib.sha512(send.to.encode()).digest() * (len(shares.dealt) // 64)
        if kind == "of another secret":
            wrong = other.deal(town.coordinator.roster)[send.to]
        content = letters.encode(shares._replace(dealt=wrong), town.terms)
        return send._replace(content=content)

    town.twist = lie
    town.set_up()
    if missing:
        town.twist = lambda sender, send: (
            None if (sender, send.kind) == (B, "answer") else send
        )
    outcome = town.run(0)
    assert isinstance(outcome, Void) and outcome.liars == (B,)
    assert town.coordinator.liars == (B,)
    town.twist = lambda sender, send: send
    town.restart(HUB)
    town.set_up(1)
    assert B not in town.coordinator.roster.members
    town.check_sum(town.run(1))


@pytest.mark.parametrize("agents, colluding", [(5, 1), (7, 1), (8, 2), (6, 0)])
def test_colluding_holders_who_give_both_shares_read_nobody(agents, colluding):
    """As many as must sign a set without the victim; the others open everybody's."""
    least = max(agents - 1, colluding + 2)
    town = ready_town(agents, least=least, colluding=colluding)
    roster, names = town.coordinator.roster, town.terms.names
    honest, colluders = names[: agents - colluding], names[agents - colluding :]
    victim = honest[-1]
    answered(town, 0, honest)
    chosen = tuple(n for n in names if n != victim)
    signers = sorted((*colluders, *honest)[: roster.needed])
    keys = {names.index(n): _held(town, n, victim, 0) for n in colluders}
    selfs = {names.index(n): _held(town, n, victim, 32) for n in colluders}
    for name in honest:
        if name in signers:
            step = tell(town, name, signed(town, 0, chosen, signers))
        else:
            step = tell(town, name, Open(0, roster.digest, names, (), ()))
        opening = letters.decode("opening", step.sends[0].content, town.terms)
        share = number(opening.opened[names.index(victim)])
        (keys if name in signers else selfs)[names.index(name)] = share
    secrets = [_join(found, roster.needed) for found in (keys, selfs)]
    opened = (
        secrets[0] and masks.public_key(secrets[0]) == roster.public(victim, 0),
        secrets[1] and masks.commitment(secrets[1]) == roster.commitment(victim, 0),
    )
    assert opened[0] and not opened[1]


def _held(town: Town, holder: str, dealer: str, offset: int) -> int:
    at = town.terms.names.index(dealer) * 64 + offset
    return number(town.disks[holder].kept["shares-0-0"][at : at + 32])


def _join(shares: dict[int, int], needed: int) -> bytes | None:
    some = dict(list(shares.items())[:needed])
    return join([place + 1 for place in some], list(some.values()))

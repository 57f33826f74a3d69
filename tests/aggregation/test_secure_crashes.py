"""Parties crash at every point, and the post is unkind: nothing is ever said twice."""

from __future__ import annotations

import random

import pytest

from tacita.aggregation.secure.steps import Sum, Void
from tests.aggregation.secure_parties import Town, terms_of

EXCHANGES = 3


def live(town: Town) -> None:
    """A run of two windows, whatever happens; silence begins with exchange 1.

    Where everybody must be in every sum, nobody falls silent.
    """
    for exchange in range(EXCHANGES):
        for _ in range(5):
            if town.coordinator.serves(exchange):
                break
            town.set_up(exchange)
        if exchange == 1 and town.terms.least < len(town.terms.names):
            town.silent = {town.terms.names[0]}
        if town.coordinator.serves(exchange):
            town.run(exchange)


def check(town: Town, may_be_void: bool) -> None:
    """What holds after any history; `Town.watch` has checked every letter on its way.

    Every set is signed or opened under one roster by all, and every answer that was
    let out is in the ledger.
    """
    for exchange, outcome in town.outcomes.items():
        assert isinstance(outcome, Sum) or may_be_void, outcome
        if isinstance(outcome, Sum):
            town.check_sum(outcome)
        rows = {d.rows.get(("set", exchange)) for d in town.disks.values()} - {None}
        assert len(rows) <= 1
    for kind, seen in (("answer", town.answers), ("set", town.openings)):
        for name, exchange in seen:
            assert (kind, exchange) in town.disks[name].rows


def town_of(seed: int | None = None, least: int = 3) -> Town:
    return Town(terms_of(4, least=least, exchanges=EXCHANGES, window=2), seed)


def points(name: str, least: int) -> int:
    """How many writes and letters a party has in an uninterrupted life."""
    town = town_of(least=least)
    town.disks[name].fuse = 10**6
    live(town)
    return 10**6 - town.disks[name].fuse


def crash_once(name: str, least: int, first: int, every: int) -> None:
    """A life with one crash at some point, for all points of a series."""
    calm = town_of(least=least)
    live(calm)
    assert all(isinstance(o, Sum) for o in calm.outcomes.values())
    last = points(name, least)
    assert last > 15
    for fuse in range(first, last, every):
        town = town_of(least=least)
        town.disks[name].fuse = fuse
        live(town)
        assert town.disks[name].fuse is None, "the crash has not happened"
        check(town, may_be_void=False)
        assert len(town.outcomes) == EXCHANGES
        for exchange, outcome in town.outcomes.items():
            before = calm.outcomes[exchange]
            same = outcome.chosen == before.chosen
            # A crash may change who is in a set, and with it nothing else.
            assert not same or (outcome.total == before.total).all()


NAMES = ["hub", "agent 000", "agent 002"]


@pytest.mark.parametrize("least", [3, 4])
@pytest.mark.parametrize("place, name", list(enumerate(NAMES)))
def test_one_crash_changes_no_sum(place, name, least):
    crash_once(name, least, place, every=6)


@pytest.mark.long
@pytest.mark.parametrize("least", [3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_one_crash_at_every_point_changes_no_sum(name, least):
    crash_once(name, least, 0, every=1)


def unkind(seed: int) -> Town:
    """Crashes of anybody at any point, letters lost, doubled and out of order."""
    town, chance = town_of(seed, least=3 + seed % 2), random.Random(seed)
    for disk in town.disks.values():
        disk.fuse = chance.choice([None, chance.randrange(60)])

    def relight(sender, send):
        for disk in town.disks.values():
            if disk.fuse is None and chance.random() < 0.01:
                disk.fuse = chance.randrange(30)
        return send

    town.twist = relight
    live(town)
    check(town, may_be_void=True)
    return town


def test_random_crashes_and_an_unkind_post():
    outcomes = [o for seed in range(10) for o in unkind(seed).outcomes.values()]
    sums = sum(isinstance(outcome, Sum) for outcome in outcomes)
    assert sums > 0.9 * 10 * EXCHANGES


@pytest.mark.long
@pytest.mark.parametrize("batch", range(20))
def test_thousands_of_random_crashes(batch):
    for seed in range(batch * 100, (batch + 1) * 100):
        unkind(1000 + seed)


def test_a_coordinator_that_fixed_a_set_needs_no_answer_again():
    town = town_of()
    town.set_up()
    town.twist = lambda sender, send: None if send.kind == "open" else send
    town.ask(0)
    assert town.coordinator.stage == "opening"
    answers = dict(town.answers)
    town.restart("hub")
    town.twist = lambda sender, send: send
    town.answers.clear()
    town.check_sum(town.run(0))
    assert answers and not town.answers


def test_a_void_exchange_is_opened_later_for_the_same_set_only():
    town = town_of()
    town.set_up()
    town.twist = lambda sender, send: None if send.kind == "opening" else send
    assert isinstance(town.run(0), Void)
    del town.outcomes[0]
    town.twist = lambda sender, send: send
    town.check_sum(town.run(0))

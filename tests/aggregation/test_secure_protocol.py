"""The sum that is opened is the plain modular sum, whoever drops out and when."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tacita.aggregation.secure.dealing import Dealer
from tacita.aggregation.secure.plan import threshold
from tacita.aggregation.secure.steps import Send, Void
from tests.aggregation.secure_parties import Town, question_of, terms_of


def try_dropouts(agents, colluding, cases, entries, word) -> None:
    """So many agents are gone before the answer, so many more before the opening."""
    least = max(threshold(agents, colluding), colluding + 2)
    settings = dict(least=least, colluding=colluding, entries=entries, word=word)
    town = Town(terms_of(agents, exchanges=len(cases), **settings))
    for exchange, (before, after) in enumerate(cases):
        town.silent, town.twist = set(), lambda sender, send: send
        if not town.coordinator.serves(exchange):
            town.set_up(exchange)
        chance = random.Random(exchange)
        gone = chance.sample(town.terms.names, before + after)
        town.silent = set(gone[:before])

        def late(sender, send, gone=gone):
            # Once an `open` is on its way, more agents are gone.
            if send.kind == "open":
                town.silent = set(gone)
            return send

        town.twist = late
        outcome = town.check_sum(town.run(exchange))
        assert set(outcome.chosen) == set(town.terms.names) - set(gone[:before])


def all_dropouts(agents: int, colluding: int) -> list[tuple[int, int]]:
    needed = threshold(agents, colluding)
    least = max(needed, colluding + 2)
    return [
        (before, after)
        for before in range(agents - least + 1)
        for after in range(agents - before - needed + 1)
    ]


@pytest.mark.few(4)
@pytest.mark.parametrize("agents", [3, 4, 5, 8])
@pytest.mark.parametrize("entries, word", [(1, 64), (7, 32), (1000, 32)])
def test_the_sum_is_plain_under_all_dropouts(agents, entries, word):
    for colluding in (0, 1):
        cases = all_dropouts(agents, colluding)
        try_dropouts(agents, colluding, cases, entries, word)


@pytest.mark.parametrize("case", [(0, 8), (3, 5), (8, 0)], ids=str)
def test_the_sum_is_plain_under_dropouts_of_twenty(case):
    try_dropouts(20, 2, [case], 7, 32)


@pytest.mark.long
@pytest.mark.parametrize("entries", [1, 7, 1000])
@pytest.mark.parametrize("agents", range(3, 21))
def test_the_sum_is_plain_for_up_to_twenty_agents(agents, entries):
    word = 32 if (agents + entries) % 2 else 64
    for colluding in sorted({0, agents // 10}):
        cases = all_dropouts(agents, colluding)
        try_dropouts(agents, colluding, cases, entries, word)


@pytest.mark.parametrize("word", [32, 64])
@pytest.mark.parametrize("entries", [1, 7, 1000])
def test_one_dropout_more_opens_nothing(entries, word):
    town = Town(terms_of(5, least=3, exchanges=1, entries=entries, word=word))
    town.set_up()
    town.silent = set(town.terms.names[:3])
    assert isinstance(town.run(0), Void)
    assert not town.openings


def test_openings_that_never_reach_the_threshold_leave_the_round_void():
    town = Town(terms_of(5, least=4, exchanges=2))
    town.set_up()

    def late(sender, send):
        town.silent = set(town.terms.names[:3]) if send.kind == "open" else set()
        return send

    town.twist = late
    assert isinstance(town.run(0), Void)
    town.twist = lambda sender, send: send
    town.silent = set()
    town.check_sum(town.run(1))


def test_keys_are_exchanged_ahead_of_the_question(monkeypatch):
    town, exchanged = Town(terms_of(3, least=2)), []
    commons = Dealer.commons

    def counted(dealer, roster, exchange):
        exchanged.append(exchange)
        return commons(dealer, roster, exchange)

    monkeypatch.setattr(Dealer, "commons", counted)
    for agent in town.agents.values():
        agent.prepare_next()  # there is no roster yet
    town.set_up()
    for exchange in (0, 1):
        for agent in town.agents.values():
            agent.prepare_next()
        assert exchanged == [exchange] * 3
        town.check_sum(town.run(exchange))
        assert exchanged == [exchange] * 3
        exchanged.clear()


def test_those_who_answered_first_are_asked_to_open():
    """As few as it takes, where nobody is missing; not those who are slow."""
    town = Town(terms_of(5, least=4))
    town.set_up()
    asked: list[str] = []

    def note(sender: str, send: Send) -> Send:
        if send.kind == "open":
            asked.append(send.to)
        return send

    town.twist = note
    hub, names = town.coordinator, town.terms.names
    hub.ask(0, question_of(0))
    for name in reversed(names):
        town.post.append(("hub", Send(name, "question", 0, question_of(0))))
    town.deliver()
    town.check_sum(town.outcomes[0])
    assert set(asked) == set(names[2:]) and len(asked) == hub.roster.needed


@pytest.mark.parametrize("ask", ["again", "time_up"])
def test_a_holder_that_does_not_open_is_done_without(ask):
    town = Town(terms_of(5, least=4))
    town.set_up()
    town.twist = lambda sender, send: (
        None if (sender, send.kind) == ("agent 000", "opening") else send
    )
    town.ask(0)
    hub = town.coordinator
    assert (hub.stage, hub.awaited) == ("opening", ("agent 000",))
    town.hub_does(getattr(hub, ask))
    assert town.check_sum(town.outcomes[0]).chosen == town.terms.names


def test_renaming_agents_changes_no_sum():
    """Masks and points go by name; the sum does not."""
    totals = []
    for order in (list(range(6)), [3, 1, 5, 0, 2, 4]):
        town = Town(terms_of(6, least=4, exchanges=1))
        letters = np.arange(6)[:, None] * 1000 + np.arange(7)
        by_name = dict(zip(town.terms.names, letters[order], strict=True))
        town.set_up()
        town.silent = {town.terms.names[order.index(2)]}
        town.letter = lambda name, *_, found=by_name: found[name].astype(np.uint32)
        totals.append(town.check_sum(town.run(0)).total)
    np.testing.assert_array_equal(totals[0], totals[1])
    np.testing.assert_array_equal(totals[0], (letters.sum(0) - letters[2]))


def test_answers_look_like_noise():
    """Without the masks' keys an answer is uniform words, whatever the letter is."""
    town = Town(terms_of(3, exchanges=1, entries=20_000))
    town.set_up()
    town.letter = lambda *_: np.zeros(20_000, np.uint32)
    assert not town.check_sum(town.run(0)).total.any()
    for answer in town.answers.values():
        bits = np.unpackbits(np.frombuffer(answer, np.uint8)).mean()
        assert abs(bits - 0.5) < 0.005


def test_a_second_window_has_secrets_of_its_own():
    town = Town(terms_of(4, least=3, exchanges=5, window=2))
    for exchange in range(5):
        if not town.coordinator.serves(exchange):
            town.set_up(exchange)
        town.check_sum(town.run(exchange))
    assert town.coordinator.roster.attempt == 2
    agent = town.disks[town.terms.names[0]]
    assert sorted(agent.kept) == ["answer", "opening", "ready-2", "roster-2"]


def test_a_new_attempt_in_the_middle_of_a_window_goes_on_without_the_lost():
    town = Town(terms_of(5, least=3, exchanges=6))
    town.set_up()
    town.check_sum(town.run(0))
    town.silent = set(town.terms.names[:2])
    assert len(town.check_sum(town.run(1)).chosen) == 3
    town.set_up(2)
    assert town.coordinator.roster.members == town.terms.names[2:]
    town.check_sum(town.run(2))
    # Now three are enough for three: one of five more could be lost than before.
    town.silent = set()
    town.set_up(3)
    assert len(town.check_sum(town.run(3)).chosen) == 5


def left_out(town: Town) -> set[str]:
    """Who is not in the roster after time was up once."""
    town.hub_does(lambda: town.coordinator.begin(0))
    assert town.coordinator.stage == "ready"
    town.hub_does(town.coordinator.again)
    town.hub_does(town.coordinator.time_up)
    assert town.coordinator.serves(0)
    town.check_sum(town.run(0))
    return set(town.terms.names) - set(town.coordinator.roster.members)


def test_who_deals_no_shares_is_left_out_and_not_those_who_wait_for_them():
    town = Town(terms_of(5, least=3, exchanges=2))
    town.twist = lambda sender, send: (
        None if (sender, send.kind) == ("agent 001", "shares") else send
    )
    assert left_out(town) == {"agent 001"}


def test_who_is_gone_after_it_sent_its_keys_is_left_out():
    town = Town(terms_of(5, least=3, exchanges=2))

    def gone(sender, send):
        if send.kind == "roster":
            town.silent = {"agent 001"}
        return send

    town.twist = gone
    assert left_out(town) == {"agent 001"}


def test_who_alone_complains_of_another_is_left_out():
    """With one colluding agent it may be either of them; one is not ready."""
    town = Town(terms_of(6, least=4, colluding=1, exchanges=2))
    town.twist = lambda sender, send: (
        None
        if (sender, send.to, send.kind) == ("agent 001", "agent 002", "shares")
        else send
    )
    assert left_out(town) == {"agent 002"}

"""Where only the whole roster can be summed, answers carry their openings."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tacita.aggregation.secure import masks
from tacita.aggregation.secure.letters import Alive, Open
from tacita.aggregation.secure.shares import join, number
from tacita.aggregation.secure.steps import Answer, Keep, Send, Step, Void
from tacita.check import TacitaError
from tests.aggregation.secure_attackers import (
    HUB,
    A,
    B,
    C,
    D,
    answered,
    ready_town,
    signed,
    tell,
)
from tests.aggregation.secure_parties import Town, question_of, terms_of


def whole_town(agents: int = 4, **settings) -> Town:
    return ready_town(agents, **{"least": agents, "colluding": 0} | settings)


@pytest.mark.parametrize("agents, colluding, word", [(3, 0, 32), (8, 2, 64)])
def test_a_sum_takes_one_letter_each_way(agents, colluding, word):
    town = whole_town(agents, colluding=colluding, word=word)
    for name in town.terms.names:
        assert town.agents[name]._records.newest().only_whole
    sent: Counter[str] = Counter()

    def count(sender: str, send: Send) -> Send:
        sent[send.kind] += 1
        return send

    town.twist = count
    written = dict(town.disks[HUB].kept)
    town.check_sum(town.run(0))
    assert sent == {"answer": agents}
    # Nor does the coordinator write anything down before the sum is known.
    assert town.disks[HUB].kept == written


def test_a_roster_that_can_lose_somebody_opens_when_the_set_is_known():
    town = ready_town(4, least=3, colluding=0)
    assert not answered(town, 0, [A])[A].opened
    # Without D the same run has a roster of `least` agents.
    town.silent = {D}
    town.set_up(1)
    assert town.coordinator.roster.members == (A, B, C)
    assert len(answered(town, 1, [A])[A].opened) == 3
    town.check_sum(town.run(1))


def test_what_goes_along_opens_self_masks_and_no_key():
    town = whole_town(4)
    answers, roster = answered(town, 0, [A, B, C, D]), town.coordinator.roster
    points = range(1, roster.needed + 1)
    for place, dealer in enumerate(roster.members):
        given = [number(answers[n].opened[place]) for n in roster.members]
        secret = join(points, given[: roster.needed])
        assert secret and masks.commitment(secret) == roster.commitment(dealer, 0)
        assert masks.public_key(secret) != roster.public(dealer, 0)
        held = [name for name in town.disks[dealer].kept if name.startswith("shares")]
        assert "shares-0-0" not in held and "shares-0-1" in held


def test_keys_serve_a_window_only_where_they_are_never_opened():
    whole, loose = whole_town(4), ready_town(4, least=3, colluding=0)
    for town, same in ((whole, True), (loose, False)):
        agent = town.agents[A]
        assert (agent.prepare(0) == agent.prepare(1)) == same
    # The masks of two exchanges have nothing in common all the same.
    whole.letter = lambda name, wanted, terms: np.zeros(7, np.uint32)
    words = [answered(whole, exchange, [A])[A].words for exchange in (0, 1)]
    roster, agent = whole.coordinator.roster, whole.agents[A]
    for exchange, (context,) in whole.contexts.items():
        words[exchange] = words[exchange].copy()
        own = agent._dealer.round_secret(masks.SELF, roster.attempt, exchange)
        masks.add_words(words[exchange], masks.self_seed(own, context), -1)
    assert not np.any(words[0] == words[1])


def test_whoever_answered_opens_nothing_else():
    town = whole_town(4)
    answered(town, 0, [A, B, C, D])
    digest, few = town.coordinator.roster.digest, (A, B, C)
    for letter in (Alive(0, digest, few), signed(town, 0, few, few)):
        with pytest.raises(TacitaError, match="4 at least"):
            tell(town, A, letter)
    with pytest.raises(TacitaError, match="shares of exchange 0 are gone"):
        tell(town, A, Open(0, digest, (A, B, C, D), (), ()))


def test_asked_again_it_sends_the_same_shares():
    town = whole_town(4)
    first = answered(town, 0, [A])[A]
    town.restart(A)
    step = town.agents[A].asked(0, question_of(3))
    assert isinstance(step, Step) and not step.writes
    again = step.sends[0].content
    assert (again.context, again.opened) == (first.context, first.opened)
    assert again.words.tobytes() == first.words.tobytes()


def test_answers_with_other_shares_than_expected_are_refused():
    town, loose = whole_town(4), ready_town(4, least=3, colluding=0)
    for one, wrong in ((town, 0), (town, 3), (town, 5), (loose, 4)):
        answer = answered(one, 0, [A])[A]
        one.coordinator.ask(0, question_of(0))
        shares = (answer.opened or (bytes(32),)) * 2
        with pytest.raises(TacitaError, match=f"shares, got {wrong} of"):
            one.coordinator.answer(A, 0, answer._replace(opened=(shares * 2)[:wrong]))
        assert A in one.coordinator.awaited


def twisted(names: tuple[str, ...]):
    def lie(sender: str, send: Send) -> Send:
        if sender not in names or not isinstance(send.content, Answer):
            return send
        false = tuple(bytes(31) + b"\1" for _ in send.content.opened)
        return send._replace(content=send.content._replace(opened=false))

    return lie


def test_false_shares_are_found_and_done_without():
    town = whole_town(7, colluding=1)
    town.twist = twisted((A,))
    assert town.check_sum(town.run(0)).false_holders == (A,)


def test_too_many_false_shares_void_the_exchange():
    town = whole_town(4)
    town.twist = twisted((A, B))
    assert isinstance(town.run(0), Void)
    town.twist = lambda sender, send: send
    town.check_sum(town.run(1))


def test_a_dealer_of_wrong_shares_is_named():
    town = Town(terms_of(6, least=5, colluding=1))
    town.silent = {"agent 005"}

    def lie(sender: str, send: Send) -> Send:
        if (sender, send.kind) != (B, "shares"):
            return send
        head, dealt = send.content[:40], send.content[40:]
        return send._replace(content=head + bytes(len(dealt)))

    town.twist = lie
    town.set_up()
    assert town.coordinator.roster.only_whole
    assert isinstance(outcome := town.run(0), Void) and outcome.liars == (B,)
    town.silent, town.twist = set(), lambda sender, send: send
    town.set_up(1)
    assert B not in town.coordinator.roster.members
    town.check_sum(town.run(1))


def test_the_answer_is_on_the_disk_with_its_shares_before_it_leaves():
    """And after its ledger row: a step that cannot be paid for has not happened."""
    town = whole_town(3)
    step = town.reply(A, 0, question_of(0))
    kinds = [type(write).__name__ for write in step.writes]
    assert kinds == ["Row", "Keep", "Drop"]
    keep = next(write for write in step.writes if isinstance(write, Keep))
    assert keep.content.endswith(b"".join(step.sends[0].content.opened))

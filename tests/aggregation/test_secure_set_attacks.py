"""The coordinator asks twice, or for sets that must not be opened: each must fail."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from tacita.aggregation.secure import letters, masks
from tacita.aggregation.secure.letters import (
    Alive,
    Open,
)
from tacita.aggregation.secure.secure_agent import Wanted
from tacita.aggregation.secure.shares import join, number
from tacita.aggregation.secure.signatures import set_message
from tacita.aggregation.secure.steps import Answer, Send, Step, Sum
from tacita.check import TacitaError
from tests.aggregation.secure_attackers import (
    HUB,
    A,
    B,
    C,
    D,
    E,
    answered,
    ready_town,
    signed,
    tell,
)
from tests.aggregation.secure_parties import (
    letter_of,
    question_of,
    signing_key,
)


def test_another_question_in_an_answered_exchange_gets_the_same_letter():
    town = ready_town()
    first = answered(town, 0, [A])[A].words
    other = town.agents[A].asked(0, hashlib.sha256(b"something else").digest())
    assert isinstance(other, Step) and not other.writes
    np.testing.assert_array_equal(other.sends[0].content.words, first)


def test_another_question_that_was_prepared_before_the_first_answer():
    """Two questions come at once; the letter of the second is made, and not sent."""
    town = ready_town()
    agent = town.agents[A]
    wanted = [agent.asked(0, q) for q in (question_of(0), question_of(1))]
    steps = [agent.answer(w, letter_of(A, w, town.terms)) for w in wanted]
    with pytest.raises(TacitaError, match="overtaken"):
        agent.release(steps[0])
    agent.release(steps[1])
    with pytest.raises(TacitaError, match="another answer 0"):
        agent._records.apply(steps[0].writes)


def test_a_letter_that_was_made_for_a_roster_that_is_over_is_not_sent():
    town = ready_town()
    wanted = town.agents[A].asked(2, question_of(2))
    town.set_up(1)
    with pytest.raises(TacitaError, match="another roster by now"):
        town.agents[A].answer(wanted, letter_of(A, wanted, town.terms))


def test_two_sets_in_one_exchange_are_refused():
    town = ready_town()
    answered(town, 0, [A, B, C, D, E])
    digest = town.coordinator.roster.digest
    tell(town, A, Alive(0, digest, (A, B, C, D)))
    tell(town, A, Alive(0, digest, (A, B, C, D)))
    for chosen in ((A, B, C, E), (A, B, C, D, E)):
        with pytest.raises(TacitaError, match="another set 0"):
            tell(town, A, Alive(0, digest, chosen))
        with pytest.raises(TacitaError, match="another set 0"):
            tell(town, A, signed(town, 0, chosen, [A, B, C, D]))
    step = tell(town, A, signed(town, 0, (A, B, C, D), [A, B, C, D]))
    assert step.sends[0].kind == "opening"
    with pytest.raises(TacitaError, match="another set 0"):
        tell(town, A, signed(town, 0, (A, B, C, E), [A, B, C, D]))


def test_an_opening_that_was_given_is_given_again_and_no_other_share_is_left():
    town = ready_town()
    answered(town, 0, [A, B, C, D])
    letter = signed(town, 0, (A, B, C, D), [A, B, C, D])
    first = tell(town, A, letter).sends
    assert not [n for n in town.disks[A].kept if n == "shares-0-0"]
    town.restart(A)
    again = tell(town, A, letter)
    assert again.sends == first and not again.writes


@pytest.mark.parametrize("signers", [[], [A, B, C], [B, C, D]])
def test_a_set_with_one_signature_too_few_is_not_opened(signers):
    town = ready_town()
    answered(town, 0, [A, B, C, D])
    with pytest.raises(TacitaError, match="signed by . agents of the roster, 4 are"):
        tell(town, A, signed(town, 0, (A, B, C, D), signers))


def test_signatures_that_are_forged_or_for_something_else_do_not_count():
    town = ready_town(6, least=4, colluding=0)
    town.silent = {"agent 005"}
    town.set_up()
    roster = town.coordinator.roster
    assert roster.needed == 3 and len(roster.members) == 5
    answered(town, 0, [A, B, C, D])
    right = signed(town, 0, (A, B, C, D), [A, B, C])
    other_set = signed(town, 0, (A, B, C, E), [C]).signatures
    other_exchange = signed(town, 1, (A, B, C, D), [C]).signatures
    outsider = signed(town, 0, (A, B, C, D), [A, B, "agent 005"])
    message = set_message(town.terms, b"another roster", 0, (A, B, C, D))
    other_roster = (signing_key(C).sign(message),)
    for wrong in (other_set, other_exchange, other_roster, (bytes(64),)):
        with pytest.raises(TacitaError, match="signed by 2 agents"):
            bad = right._replace(signatures=(*right.signatures[:2], *wrong))
            tell(town, D, bad)
    with pytest.raises(TacitaError, match="signed by 2 agents"):
        tell(town, D, outsider)
    assert tell(town, D, right).sends


def test_a_sum_of_fewer_letters_than_agreed_is_not_opened():
    town = ready_town(5, least=4, colluding=0)
    answered(town, 0, [A, B, C])
    few = (A, B, C)
    with pytest.raises(TacitaError, match="4 at least"):
        tell(town, A, Alive(0, town.coordinator.roster.digest, few))
    with pytest.raises(TacitaError, match="4 at least"):
        tell(town, A, signed(town, 0, few, [A, B, C]))


def test_a_set_that_names_an_agent_which_has_not_answered_is_refused_by_it():
    town = ready_town()
    answered(town, 0, [B, C, D, E])
    digest = town.coordinator.roster.digest
    with pytest.raises(TacitaError, match="has not answered"):
        tell(town, A, Alive(0, digest, (A, B, C, D)))
    with pytest.raises(TacitaError, match="has not answered"):
        tell(town, A, Open(0, digest, (A, B, C, D, E), (), ()))


def test_a_set_with_strangers_or_of_another_roster_is_refused():
    town = ready_town(6, least=4, colluding=1)
    town.silent = {"agent 005"}
    town.set_up()
    answered(town, 0, [A, B, C, D])
    digest = town.coordinator.roster.digest
    with pytest.raises(TacitaError, match="not in the roster"):
        tell(town, A, Alive(0, digest, (A, B, C, "agent 005")))
    with pytest.raises(TacitaError, match="another roster"):
        tell(town, A, Alive(0, bytes(32), (A, B, C, D)))


@pytest.mark.parametrize("how", ["signed", "opened"])
def test_who_signed_or_opened_without_answering_stays_silent(how):
    """Its key may be public: only the self mask would hide its letter."""
    town = ready_town()
    answered(town, 0, [B, C, D, E])
    chosen = (B, C, D, E)
    if how == "signed":
        tell(town, A, Alive(0, town.coordinator.roster.digest, chosen))
    else:
        tell(town, A, signed(town, 0, chosen, [B, C, D, E]))
    with pytest.raises(TacitaError, match="stays silent"):
        town.agents[A].asked(0, question_of(0))


def test_a_letter_that_is_being_made_when_its_set_is_signed_is_not_sent():
    town = ready_town()
    answered(town, 0, [B, C, D, E])
    wanted = town.agents[A].asked(0, question_of(0))
    tell(town, A, Alive(0, town.coordinator.roster.digest, (B, C, D, E)))
    with pytest.raises(TacitaError, match="stays silent"):
        town.agents[A].answer(wanted, letter_of(A, wanted, town.terms))


def test_what_is_over_stays_over():
    town = ready_town()
    answered(town, 1, [A, B, C, D, E])
    digest = town.coordinator.roster.digest
    with pytest.raises(TacitaError, match="exchange 0 is over"):
        town.agents[A].asked(0, question_of(0))
    with pytest.raises(TacitaError, match="exchange 0 is over"):
        tell(town, A, Alive(0, digest, (B, C, D, E)))
    with pytest.raises(TacitaError, match="exchange 0 is over"):
        tell(town, A, signed(town, 0, (B, C, D, E), [B, C, D, E]))
    assert not any(n.startswith("shares-0-0") for n in town.disks[A].kept)


def test_a_late_letter_stays_hidden_though_its_key_was_opened():
    """E answers, but is not in the set: everybody opens its key, nobody its mask."""
    town = ready_town()
    answers = answered(town, 0, [A, B, C, D, E])
    chosen = (A, B, C, D)
    opened = {}
    for name in (A, B, C, D, E):
        step = tell(town, name, signed(town, 0, chosen, [A, B, C, D]))
        (send,) = step.sends
        opened[name] = letters.decode("opening", send.content, town.terms).opened
    points = [1, 2, 3, 4]
    key = join(points, [number(opened[n][4]) for n in (A, B, C, D)])
    roster = town.coordinator.roster
    assert masks.public_key(key) == roster.public(E, 0)
    # Everything that the key opens is taken away; the self mask is left.
    (context,) = town.contexts[0]
    rest = answers[E].words.copy()
    own = {n: roster.public(n, 0) for n in chosen}
    taken = np.zeros_like(rest)
    masks.add_pair_masks(taken, E, masks.shared(key, own), context)
    rest -= taken
    letter = town.letter(E, Wanted(0, context, b""), town.terms)
    assert not np.any(rest == letter)


def test_agents_that_were_asked_different_things_cannot_be_summed():
    town = ready_town(4, least=4, colluding=0)
    town.act(HUB, lambda: town.coordinator.ask(0, question_of(0)))
    right = town.coordinator._sum.context
    # The coordinator lies to itself, too: an honest one refuses such an answer.
    town.twist = lambda sender, send: (
        send._replace(content=send.content._replace(context=right))
        if send.kind == "answer"
        else send
    )
    for name in town.terms.names:
        other = question_of(0 if name != B else 3)
        town.post.append((HUB, Send(name, "question", 0, other)))
    town.deliver()
    outcome = town.outcomes[0]
    assert isinstance(outcome, Sum)
    contexts = sorted(town.contexts[0])
    assert len(contexts) == 2
    made = [
        town.letter(n, Wanted(0, c, b""), town.terms)
        for n in town.terms.names
        for c in contexts
    ]
    # No sum of some of the letters, whichever they are, comes out in any entry.
    for bits in range(2 ** len(made)):
        some = [m for k, m in enumerate(made) if bits >> k & 1]
        plain = np.sum(some, axis=0, dtype=np.uint32) if some else 0
        assert not np.any(outcome.total == plain)


def test_letters_of_the_wrong_words_are_refused():
    town = ready_town()
    wanted = town.agents[A].asked(0, question_of(0))
    for wrong in (np.zeros(7, np.int64), np.zeros(7), np.zeros(6, np.uint32)):
        with pytest.raises(TacitaError, match="7 words of 32 bits"):
            town.agents[A].answer(wanted, wrong)
        town.coordinator.ask(0, question_of(0))
        with pytest.raises(TacitaError, match="7 words of 32 bits"):
            town.coordinator.answer(A, 0, Answer(wanted.context, wrong))


def test_the_terms_are_those_of_the_description():
    """A coordinator cannot lower `least`: agents read it from what they signed for."""
    town = ready_town()
    low = replace(town.terms, least=3, colluding=0)
    answered(town, 0, [A, B, C])
    letter = Alive(0, town.coordinator.roster.digest, (A, B, C))
    with pytest.raises(TacitaError, match="4 at least"):
        content = letters.encode(letter, low)
        town.agents[A].heard(HUB, "alive", content)

"""A coordinator counts nobody twice, fixes one set, and remembers what it asked."""

from __future__ import annotations

import pytest

from tacita.aggregation.secure import letters
from tacita.check import TacitaError
from tests.aggregation.secure_attackers import (
    HUB,
    A,
    B,
    C,
    D,
    E,
    answered,
    new_town,
    ready_town,
    signed,
)
from tests.aggregation.secure_parties import (
    question_of,
)


def test_the_coordinator_counts_nobody_twice_and_nobody_late():
    town = ready_town()
    answers = answered(town, 0, [A, B, C, D, E])
    hub = town.coordinator
    hub.ask(0, question_of(0))
    for name in (A, A, B, C, D):
        hub.release(hub.answer(name, 0, answers[name]))
    assert hub.awaited == (E,)
    fixed = hub.time_up()
    hub.release(fixed)
    assert {s.kind for s in fixed.sends} == {"alive"}
    with pytest.raises(TacitaError, match="is late"):
        hub.answer(E, 0, answers[E])
    with pytest.raises(TacitaError, match="not under way"):
        hub.answer(E, 1, answers[E])
    with pytest.raises(TacitaError, match="not in the roster"):
        hub.answer("stranger", 0, answers[E])


def test_signatures_under_another_set_are_not_taken_for_agreement():
    town = ready_town()
    town.twist = lambda sender, send: None if send.kind in ("agreed", "open") else send
    town.silent = {E}
    town.ask(0)
    town.hub_does(town.coordinator.time_up)
    assert town.coordinator.stage == "agreed"
    digest = town.coordinator.roster.digest
    wrong = signed(town, 0, (A, B, C, E), [A]).signatures[0]
    content = letters.encode(letters.Agreed(0, digest, wrong), town.terms)
    with pytest.raises(TacitaError, match="has not signed the set"):
        town.coordinator.heard(A, "agreed", content)


def test_asking_again_keeps_what_was_answered_and_another_question_is_refused():
    town = ready_town()
    answers = answered(town, 0, [A, B])
    hub = town.coordinator
    hub.ask(0, question_of(0))
    hub.release(hub.answer(A, 0, answers[A]))
    hub.ask(0, question_of(0))
    assert A not in hub.awaited
    with pytest.raises(TacitaError, match="another question"):
        hub.ask(0, question_of(1))


def test_an_answer_to_something_else_is_not_added():
    """As from an agent that answered before the coordinator lost what it had asked."""
    town = ready_town()
    answers = answered(town, 0, [A])
    town.coordinator.ask(0, question_of(1))
    with pytest.raises(TacitaError, match="asked something else"):
        town.coordinator.answer(A, 0, answers[A])
    town.restart(A)
    again = town.agents[A].asked(0, question_of(1)).sends[0].content
    assert again.context == answers[A].context
    with pytest.raises(TacitaError, match="asked something else"):
        town.coordinator.answer(A, 0, again)


def test_a_set_that_was_fixed_is_not_opened_for_another_question():
    town = ready_town()
    town.twist = lambda sender, send: None if send.kind == "open" else send
    town.ask(0)
    town.restart(HUB)
    with pytest.raises(TacitaError, match="another question"):
        town.coordinator.ask(0, question_of(1))


def test_the_coordinator_fixes_one_set_though_a_letter_comes_in_between():
    town = ready_town()
    answers = answered(town, 0, [A, B, C, D, E])
    hub = town.coordinator
    hub.ask(0, question_of(0))
    for name in (A, B, C, D):
        hub.release(hub.answer(name, 0, answers[name]))
    four = hub.time_up()
    five = hub.answer(E, 0, answers[E])
    with pytest.raises(TacitaError, match="overtaken"):
        hub.release(four)
    assert {send.kind for send in hub.release(five)} == {"open"}


def test_a_coordinator_that_forgot_who_is_ready_is_told_again():
    town = new_town()
    town.twist = lambda sender, send: None if send.kind == "ready" else send
    town.hub_does(lambda: town.coordinator.begin(0))
    assert town.coordinator.awaited == town.terms.names
    town.restart(HUB)
    town.twist = lambda sender, send: send
    town.hub_does(town.coordinator.again)
    assert town.coordinator.serves(0)


def test_an_exchange_after_the_window_needs_a_new_roster():
    town = ready_town(window=2)
    assert town.coordinator.serves(1) and not town.coordinator.serves(2)
    with pytest.raises(TacitaError, match="no roster is ready"):
        town.coordinator.ask(2, question_of(2))
    with pytest.raises(TacitaError, match="no roster serves exchange 2"):
        town.agents[A].asked(2, question_of(2))

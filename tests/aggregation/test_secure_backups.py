"""Old checkpoints, and steps that were not written: nothing is said twice."""

from __future__ import annotations

import hashlib

import pytest

from tacita.aggregation.secure.letters import (
    Alive,
)
from tacita.aggregation.secure.secure_agent import SecureAgent
from tacita.check import TacitaError
from tests.aggregation.secure_attackers import (
    A,
    B,
    C,
    D,
    E,
    answered,
    entries_of,
    ready_town,
    signed,
    tell,
)
from tests.aggregation.secure_parties import (
    Town,
    letter_of,
    question_of,
    signing_key,
    terms_of,
)


def test_an_old_checkpoint_cannot_answer_another_question():
    town = ready_town()
    old = dict(town.disks[A].kept)
    answered(town, 0, [A])
    town.disks[A].kept = old
    town.restart(A)
    with pytest.raises(TacitaError, match="another answer 0"):
        town.agents[A].asked(0, question_of(1))
    assert answered(town, 0, [A])  # the same question gets the same letter


def test_an_old_checkpoint_cannot_sign_or_open_another_set():
    town = ready_town()
    answered(town, 0, [A, B, C, D, E])
    old = dict(town.disks[A].kept)
    first = tell(town, A, signed(town, 0, (A, B, C, D), [A, B, C, D])).sends
    town.disks[A].kept = old
    town.restart(A)
    with pytest.raises(TacitaError, match="another set 0"):
        tell(town, A, Alive(0, town.coordinator.roster.digest, (A, B, C, E)))
    with pytest.raises(TacitaError, match="another set 0"):
        tell(town, A, signed(town, 0, (A, B, C, E), [A, B, C, E]))
    assert tell(town, A, signed(town, 0, (A, B, C, D), [A, B, C, D])).sends == first


def test_an_old_checkpoint_cannot_answer_once_its_key_was_opened():
    town = ready_town()
    answered(town, 0, [B, C, D, E])
    old = dict(town.disks[A].kept)
    tell(town, A, signed(town, 0, (B, C, D, E), [B, C, D, E]))
    town.disks[A].kept = old
    town.restart(A)
    with pytest.raises(TacitaError, match="stays silent"):
        town.agents[A].asked(0, question_of(0))


def test_an_old_checkpoint_cannot_accept_another_roster_nor_use_an_older_one():
    town = ready_town()
    old = dict(town.disks[A].kept)
    newer = entries_of(town, 1, 2, [A, B, C, D])
    tell(town, A, newer)
    town.disks[A].kept = old
    town.restart(A)
    with pytest.raises(TacitaError, match="another roster 1"):
        tell(town, A, entries_of(town, 1, 2, [A, B, C, D, E]))
    with pytest.raises(TacitaError, match="no roster is here"):
        town.agents[A].asked(2, question_of(2))
    assert tell(town, A, newer).sends  # the same one is dealt again


def test_the_ledger_itself_refuses_a_step_that_was_not_released():
    """A machine that was not told of its own writes is stopped by the ledger."""
    town = ready_town()
    agent = town.agents[A]
    wanted = [agent.asked(0, q) for q in (question_of(0), question_of(1))]
    steps = [agent.answer(w, letter_of(A, w, town.terms)) for w in wanted]
    for write in steps[0].writes:
        town.disks[A].write(write)
    with pytest.raises(TacitaError, match="the ledger has another answer"):
        town.disks[A].write(steps[1].writes[0])


def test_a_step_that_could_not_be_written_has_not_happened():
    """As when the ledger has no budget left: nothing was said, nothing is promised."""
    town = ready_town()
    agent, digest = town.agents[A], town.coordinator.roster.digest
    wanted = agent.asked(0, question_of(0))
    assert agent.answer(wanted, letter_of(A, wanted, town.terms)).sends  # not released
    with pytest.raises(TacitaError, match="has not answered"):
        tell(town, A, Alive(0, digest, (A, B, C, D)))
    assert tell(town, A, Alive(0, digest, (B, C, D, E))).sends


def test_what_is_written_down_does_not_grow_with_the_run():
    town = Town(terms_of(4, least=3, exchanges=12))
    town.set_up()
    sizes = []
    for exchange in range(12):
        town.check_sum(town.run(exchange))
        kept, rows = town.agents[A].written
        sizes.append(len(rows))
        # A machine made of these alone is the same, and as strict.
        town.disks[A].kept, again = kept, SecureAgent(*restored(town, rows))
        assert again.written == (kept, rows)
        if exchange:
            with pytest.raises(TacitaError, match="is over"):
                again.asked(exchange - 1, question_of(99))
    assert max(sizes) == 3  # the roster, the last answer, the last set


def restored(town: Town, rows: list) -> tuple:
    secret = hashlib.sha256(A.encode()).digest()
    return town.terms, A, secret, signing_key(A).sign, rows, town.disks[A].kept

"""The ledger: budgets, replays, crashes, tampering."""

import math
import os
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tacita import privacy
from tacita.check import TacitaError
from tacita.privacy import (
    BrokenLedger,
    BudgetExceeded,
    Ledger,
    Poisson,
    WithoutReplacement,
    account,
    gaussian_epsilon,
    gaussian_guarantee,
    laplace_guarantee,
)
from tests.privacy import ledger_victim as victim

KILLS = int(os.environ.get("TACITA_LEDGER_KILLS", "40"))
SEEN = {"observer": "coordinator", "unit": "record", "relation": "replace_one"}
LETTER = gaussian_guarantee(**SEEN, noise_std=10.0, sensitivity=1.0)
CLINIC = {"agent": "clinic", "run": "run"}


def of_letter(**words):
    """What the letter costs in another scope."""
    return replace(LETTER, scope=replace(LETTER.scope, **words))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def opened(path, epsilon=1.0, **more):
    ledger = Ledger(path, **more)
    ledger.allow(agent="clinic", observer="coordinator", epsilon=epsilon, delta=1e-5)
    return ledger


def charge(ledger, number, guarantee=LETTER, content=None, **more):
    said = content or f"letter {number}".encode()
    return ledger.charge(guarantee, **{**CLINIC, **more}, round=number, content=said)


def releases(ledger):
    return [row for row in ledger.rows() if row.kind == "release"]


def test_spends_exactly_what_the_accountant_says(path):
    with opened(path, epsilon=10.0) as ledger:
        assert ledger.spent(1e-5) == {("clinic", "coordinator"): 0.0}
        for number in range(25):
            charge(ledger, number)
        exact = gaussian_epsilon(10.0 / math.sqrt(25), 1e-5)
        for delta in (1e-5, 1e-8):
            exact = gaussian_epsilon(10.0 / math.sqrt(25), delta)
            spent = ledger.spent(delta)["clinic", "coordinator"]
            assert spent == pytest.approx(exact, rel=1e-12)
        assert ledger.verify() == 2 + 25
    with Ledger(path, read_only=True) as ledger:
        spent = ledger.spent(1e-5)["clinic", "coordinator"]
        assert spent == pytest.approx(gaussian_epsilon(2.0, 1e-5), rel=1e-12)


def test_stops_at_the_budget_and_writes_nothing_more(path):
    allowed = 0
    while gaussian_epsilon(10.0 / math.sqrt(allowed + 1), 1e-5) <= 1.0:
        allowed += 1
    with opened(path, epsilon=1.0) as ledger:
        for number in range(allowed):
            charge(ledger, number)
        head = ledger.head()
        for _ in range(3):
            with pytest.raises(BudgetExceeded, match="would spend epsilon=1.*of 1.0"):
                charge(ledger, allowed)
        assert len(releases(ledger)) == allowed and ledger.head() == head
        # What was charged may still be sent again.
        assert not charge(ledger, 0)[0].new
        # A cheaper letter may still fit; a raised budget lets the next one through.
        ledger.allow(agent="clinic", observer="coordinator", epsilon=2.0, delta=1e-5)
        assert charge(ledger, allowed)[0].new


def test_stops_after_being_reopened(path):
    with opened(path, epsilon=0.5) as ledger:
        charge(ledger, 0)
    big = gaussian_guarantee(**SEEN, noise_std=5.0, sensitivity=1.0)
    with opened(path, epsilon=0.5) as ledger, pytest.raises(BudgetExceeded):
        charge(ledger, 1, big)


def test_the_same_letter_again_costs_nothing(path):
    with opened(path) as ledger:
        first = charge(ledger, 3)[0]
        again = charge(ledger, 3)[0]
        assert first.new and not again.new and first.row == again.row
        spent = ledger.spent(1e-5)
    with opened(path) as ledger:
        assert not charge(ledger, 3)[0].new
        assert ledger.spent(1e-5) == spent and len(releases(ledger)) == 1


@pytest.mark.parametrize(
    "change",
    (
        {"content": b"another letter"},
        {"guarantee": gaussian_guarantee(**SEEN, noise_std=9.0, sensitivity=1.0)},
        {"guarantee": of_letter(unit="client")},
    ),
)
def test_another_letter_under_the_same_identity_is_refused(path, change):
    with opened(path, epsilon=10.0) as ledger:
        charge(ledger, 3)
        with pytest.raises(TacitaError, match="row 3 already charges another letter"):
            charge(ledger, 3, **change)
        assert len(releases(ledger)) == 1
        # Another round, phase, run or agent is another release.
        charge(ledger, 4)
        charge(ledger, 3, phase="control")
        charge(ledger, 3, run="second")
        ledger.allow(agent="bank", observer="coordinator", epsilon=1.0, delta=1e-5)
        charge(ledger, 3, agent="bank")
        assert len(releases(ledger)) == 5


def test_observers_are_charged_together_or_not_at_all(path):
    seen = of_letter(observer="eavesdropper")
    with opened(path, epsilon=10.0) as ledger:
        ledger.allow(agent="clinic", observer="eavesdropper", epsilon=0.4, delta=1e-5)
        both = ledger.charge((LETTER, seen), **CLINIC, round=0, content=b"a")
        assert [one.row.observer for one in both] == ["coordinator", "eavesdropper"]
        with pytest.raises(BudgetExceeded, match="eavesdropper"):
            ledger.charge((LETTER, seen), **CLINIC, round=1, content=b"b")
        assert len(releases(ledger)) == 2
        assert ledger.verify() == 5
        spent = ledger.spent(1e-5)
        assert spent["clinic", "coordinator"] == spent["clinic", "eavesdropper"]
        # The refused pair left no trace in the running sums either.
        charge(ledger, 2)
        got = ledger.spent(1e-5)["clinic", "coordinator"]
        assert got == pytest.approx(gaussian_epsilon(10 / math.sqrt(2), 1e-5))


def test_renyi_pure_and_gaussian_rows_add_up(path):
    sampled = account(
        **SEEN,
        noise_std=4.0,
        sensitivity=1.0,
        rounds=1,
        sampling=WithoutReplacement(10, 100),
        participation=0.5,
    )
    laplace = laplace_guarantee(**SEEN, scale=20.0, sensitivity=1.0)
    with opened(path, epsilon=50.0) as ledger:
        charge(ledger, 0, laplace)
        charge(ledger, 1, laplace)
        assert ledger.spent(1e-12)["clinic", "coordinator"] == pytest.approx(0.1)
        for number in range(2, 6):
            charge(ledger, number, sampled)
        charge(ledger, 6)
        together = laplace.repeat(2).compose(sampled.repeat(4), LETTER)
        got = ledger.spent(1e-6)["clinic", "coordinator"]
        assert got == pytest.approx(together.epsilon(1e-6), rel=1e-12)
        curve = ledger.curve("clinic", "coordinator")
        assert curve.rdp(5.5) == pytest.approx(together.rdp(5.5), rel=1e-12)
        assert not charge(ledger, 3, sampled)[0].new
    with Ledger(path) as again:
        assert again.spent(1e-6)["clinic", "coordinator"] == pytest.approx(got)


def test_fails_closed(path, tmp_path):
    with Ledger(path) as ledger:
        with pytest.raises(TacitaError, match="no budget for agent='clinic'"):
            charge(ledger, 0)
    with opened(path) as ledger:
        for field, value in (("unit", "client"), ("relation", "add_remove")):
            with pytest.raises(TacitaError, match="do not add up"):
                charge(ledger, 0, of_letter(**{field: value}))
        with pytest.raises(TacitaError, match="no budget"):
            charge(ledger, 0, of_letter(observer="neighbour"))
        tight = account(
            **{**SEEN, "relation": "add_remove"},
            noise_std=4.0,
            sensitivity=1.0,
            rounds=1,
            sampling=Poisson(0.5),
            method="pld",
        )
        ledger.allow(
            agent="b",
            observer="coordinator",
            epsilon=1.0,
            delta=1e-5,
            relation="add_remove",
        )
        with pytest.raises(TacitaError, match="method='rdp'"):
            charge(ledger, 0, tight, agent="b")
        with pytest.raises(TacitaError, match="another agent name"):
            ledger.allow(
                agent="clinic",
                observer="coordinator",
                epsilon=1.0,
                delta=1e-5,
                unit="client",
            )
        assert releases(ledger) == []
    with pytest.raises(BrokenLedger, match="nothing may leave"):
        charge(ledger, 0)  # closed
    with pytest.raises(BrokenLedger, match="cannot be opened|no usable"):
        Ledger(tmp_path / "missing" / "ledger.db")
    with pytest.raises(TacitaError, match="no ledger at"):
        Ledger(tmp_path / "none.db", read_only=True)
    (tmp_path / "text.db").write_text("not a database, but long enough to look at")
    with pytest.raises(BrokenLedger, match="no usable ledger"):
        Ledger(tmp_path / "text.db")


@pytest.mark.parametrize(
    ("change", "message"),
    (
        ({"agent": ""}, "agent"),
        ({"run": None}, "run"),
        ({"round": -1}, "round"),
        ({"round": 1.5}, "round"),
        ({"phase": 3}, "phase"),
        ({"content": "text"}, "content bytes"),
        ({"guarantees": ()}, "at least one"),
    ),
)
def test_charges_are_checked(path, change, message):
    good = {**CLINIC, "round": 0, "content": b"", "guarantees": LETTER}
    with opened(path) as ledger, pytest.raises(TacitaError, match=message):
        ledger.charge(**{**good, **change})


@pytest.mark.parametrize(
    "change",
    ({"epsilon": 0.0}, {"epsilon": math.nan}, {"delta": 0.0}, {"observer": "us"}),
)
def test_budgets_are_checked(path, change):
    good = {
        "agent": "a",
        "observer": "coordinator",
        "epsilon": 1.0,
        "delta": 0.1,
    }
    with Ledger(path) as ledger, pytest.raises(TacitaError, match=next(iter(change))):
        ledger.allow(**{**good, **change})


def test_read_only_looks_and_does_not_touch(path):
    with opened(path) as ledger:
        charge(ledger, 0)
    before = path.read_bytes()
    with Ledger(path, read_only=True) as ledger:
        assert len(ledger.rows()) == 3 and ledger.verify() == 3
        with pytest.raises(TacitaError, match="read-only"):
            charge(ledger, 1)
        with pytest.raises(TacitaError, match="read-only"):
            ledger.allow(agent="a", observer="coordinator", epsilon=1.0, delta=0.1)
    assert path.read_bytes() == before


def filled(path):
    with opened(path, epsilon=100.0) as ledger:
        for number in range(6):
            charge(ledger, number)
        return ledger.head()


EDITS = {
    "agent": "'bank'",
    "observer": "'neighbour'",
    "run": "'other'",
    "round": "77",
    "phase": "'other'",
    "unit": "'client'",
    "relation": "'add_remove'",
    "theorem": "'trust me'",
    "epsilon": "9.0",
    "mu_squared": "mu_squared / 2",
    "rdp": "'[]'",
    "content": "'00'",
    "time": "'2000-01-01'",
    "digest": "'00'",
    "kind": "'budget'",
}


@pytest.mark.parametrize("column", EDITS)
def test_an_edited_row_is_named(path, column):
    filled(path)
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE entry SET {column} = {EDITS[column]} WHERE id = 5")
    database.close()
    with pytest.raises(BrokenLedger, match="row 5 was changed"):
        Ledger(path)
    with Ledger(path, read_only=True) as ledger:
        assert len(ledger.rows()) == 8
        with pytest.raises(BrokenLedger, match="row 5"):
            ledger.verify()


@pytest.mark.parametrize(
    ("edit", "named"),
    (
        ("DELETE FROM entry WHERE id = 4", "row 4 is missing"),
        ("DELETE FROM entry WHERE id > 6", "row 7 is missing"),
        ("DELETE FROM entry", "row 1 is missing"),
        ("UPDATE entry SET previous = digest WHERE id = 3", "row 3 does not follow"),
        ("UPDATE entry SET epsilon = 1e9 WHERE id = 2", "row 2 was changed"),
        ("UPDATE entry SET id = 99 WHERE id = 8", "row 8 is missing"),
    ),
)
def test_removed_and_reordered_rows_are_named(path, edit, named):
    filled(path)
    with sqlite3.connect(path) as database:
        database.execute(edit)
    database.close()
    with Ledger(path, read_only=True) as ledger:
        with pytest.raises(BrokenLedger, match=named):
            ledger.verify()


def test_a_kept_head_shows_a_careful_cut(path):
    """Cut the tail and hide it from SQLite's own counter: only the head tells."""
    head = filled(path)
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM entry WHERE id > 6")
        database.execute("UPDATE sqlite_sequence SET seq = 6")
    database.close()
    with Ledger(path, read_only=True) as ledger:
        assert ledger.verify() == 6
        with pytest.raises(BrokenLedger, match=f"no row has the digest {head}"):
            ledger.verify(head)


def test_an_old_head_still_fits_a_longer_ledger(path):
    head = filled(path)
    with opened(path, epsilon=100.0) as ledger:
        charge(ledger, 9)
        assert ledger.verify(head) == 9


def test_two_writers_share_one_budget(path):
    """Threads with their own connections race; the budget holds for their sum."""
    letters, spent_by = 60, []
    allowed = 20
    budget = gaussian_epsilon(10 / math.sqrt(allowed), 1e-5) * (1 + 1e-9)
    opened(path, epsilon=budget).close()

    def race(name):
        count = 0
        with Ledger(path) as ledger:
            for number in range(letters):
                try:
                    charge(ledger, number, phase=name)
                    count += 1
                except BudgetExceeded:
                    pass
        spent_by.append(count)

    threads = [threading.Thread(target=race, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(spent_by) == allowed
    with Ledger(path, read_only=True) as ledger:
        assert len(releases(ledger)) == allowed
        ledger.verify()


def test_another_version_with_other_orders_is_refused(path, monkeypatch):
    opened(path).close()
    from tacita.privacy.ledger import database

    monkeypatch.setattr(database, "ORDERS", (2.0, 3.0))
    with pytest.raises(TacitaError, match="other Renyi orders"):
        Ledger(path)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_killed_at_any_moment_it_never_counts_too_little(path, tmp_path):
    """TACITA_LEDGER_KILLS sets how often; a letter that left must be in the ledger."""
    sent = tmp_path / "sent"
    root = str(Path(privacy.__file__).parents[2])
    subprocess.run(
        [sys.executable, "-W", "ignore", victim.__file__, path, sent, str(KILLS)],
        check=True,
        timeout=60 + 2 * KILLS,
        env={**os.environ, "PYTHONPATH": root},
    )
    error = Path(f"{path}.error")
    assert not error.exists(), error.read_text()
    with Ledger(path) as ledger:
        ledger.verify()
        charged = {row.round: row for row in releases(ledger)}
        left = victim.sent_letters(sent)
        assert len(left) > KILLS  # the victims did work
        assert set(left) <= set(charged)
        assert sorted(charged) == list(range(len(charged)))
        assert len(charged) - len(set(left)) <= 1  # at most the letter in hand is lost
        spent = ledger.spent(victim.DELTA)[victim.AGENT, victim.OBSERVER]
        exact = gaussian_epsilon(100 / math.sqrt(len(charged)), victim.DELTA)
        assert spent == pytest.approx(exact, rel=1e-9)


def test_a_letter_that_may_have_left_counts_beyond_the_budget(path):
    with opened(path, epsilon=0.5) as ledger:
        charge(ledger, 0)
        ledger.charge(LETTER, **CLINIC, round=0, content=None)
        assert len(releases(ledger)) == 1  # it is in the ledger already
        for number in range(1, 4):
            ledger.charge(LETTER, **CLINIC, round=number, content=None)
        spent = ledger.spent(1e-5)["clinic", "coordinator"]
        assert spent == pytest.approx(gaussian_epsilon(10 / math.sqrt(4), 1e-5))
        assert spent > 0.5
        # The letter itself, found after all, is paid for; another one is not.
        assert not charge(ledger, 1)[0].new
        with pytest.raises(BudgetExceeded):
            charge(ledger, 9)

"""The ledger: budgets, replays, crashes, tampering."""

import math
import os
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
    PoissonReplaced,
    Scope,
    WithoutReplacement,
    account,
    gaussian_epsilon,
    gaussian_guarantee,
    gaussian_sigma,
    laplace_guarantee,
    noise_for,
)
from tacita.privacy.accounting.curve import (
    ORDERS,
    GaussianCurve,
    LossCurve,
    RenyiCurve,
    compose,
    take_part,
)
from tacita.privacy.accounting.pure_releases import Laplace, RandomisedResponse
from tacita.privacy.accounting.releases import SampledGaussian
from tacita.privacy.accounting.subsampling import WithReplacement
from tacita.privacy.accounting.words import curve_of, words_of
from tacita.privacy.ledger import store
from tacita.privacy.ledger.rows import EARLIER, HEADER
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
    ledger = Ledger(path)
    ledger.allow(agent="clinic", epsilon=epsilon, delta=1e-5, **more)
    return ledger


def charge(ledger, number, guarantee=LETTER, content=None, **more):
    said = content or f"letter {number}".encode()
    return ledger.charge(guarantee, **{**CLINIC, **more}, round=number, content=said)


def releases(ledger):
    return [row for row in ledger.rows() if row.kind == "release"]


def test_spends_exactly_what_the_accountant_says(path):
    with opened(path, epsilon=10.0) as ledger:
        assert ledger.spent(1e-5) == {("clinic", "everybody"): 0.0}
        for number in range(25):
            charge(ledger, number)
        exact = gaussian_epsilon(10.0 / math.sqrt(25), 1e-5)
        for delta in (1e-5, 1e-8):
            exact = gaussian_epsilon(10.0 / math.sqrt(25), delta)
            spent = ledger.spent(delta)["clinic", "everybody"]
            assert spent == pytest.approx(exact, rel=1e-12)
        assert ledger.verify() == 2 + 25
    with Ledger(path, read_only=True) as ledger:
        spent = ledger.spent(1e-5)["clinic", "everybody"]
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
        ledger.allow(agent="clinic", epsilon=2.0, delta=1e-5)
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
        ledger.allow(agent="bank", epsilon=1.0, delta=1e-5)
        charge(ledger, 3, agent="bank")
        assert len(releases(ledger)) == 5


def test_observers_are_charged_together_or_not_at_all(path):
    seen = of_letter(observer="eavesdropper")
    apart = [["coordinator"], ["eavesdropper"]]
    with opened(path, epsilon=0.6, separate=apart) as ledger:
        both = ledger.charge((LETTER, seen), **CLINIC, round=0, content=b"a")
        assert [one.row.observer for one in both] == ["coordinator", "eavesdropper"]
        costly = gaussian_guarantee(**SEEN, noise_std=3.0, sensitivity=1.0)
        costly = replace(costly, scope=seen.scope)
        with pytest.raises(BudgetExceeded, match="against .* and eavesdropper"):
            ledger.charge((LETTER, costly), **CLINIC, round=1, content=b"b")
        assert len(releases(ledger)) == 2
        assert ledger.verify() == 4
        spent = ledger.spent(1e-5)
        assert len(spent) == 2 and len(set(spent.values())) == 1
        # The refused pair left no trace in the running sums either.
        ledger.allow(agent="clinic", epsilon=9.0, delta=1e-5)
        charge(ledger, 2)
        got = ledger.spent(1e-5)["clinic", "everybody"]
        assert got == pytest.approx(gaussian_epsilon(10 / math.sqrt(2), 1e-5))


def priced(epsilon, observer, **scope):
    """A release that costs all of epsilon at delta = 1e-5."""
    sigma = gaussian_sigma(epsilon, 1e-5) * (1 + 1e-12)
    one = gaussian_guarantee(**SEEN, noise_std=sigma, sensitivity=1.0)
    return replace(one, scope=Scope(observer, **scope))


def test_one_person_may_be_coordinator_of_one_run_and_neighbour_in_another(path):
    """A budget of 1 once let somebody who sees both learn 1.465."""
    server, graph = priced(1.0, "coordinator"), priced(1.0, "neighbour")
    with opened(path, epsilon=1.0) as ledger:
        asked = {"agent": "clinic", "delta": 1e-5, "run": "graph"}
        charge(ledger, 0, server, run="server")
        asked["observer"] = "neighbour"
        both = ledger.after(lambda charged: graph, **asked)
        assert both == pytest.approx(1.465, abs=5e-4)
        with pytest.raises(BudgetExceeded, match=r"1\.46\d+ of 1.0.*everybody"):
            charge(ledger, 0, graph, run="graph")
        assert ledger.spent(1e-5) == {("clinic", "everybody"): pytest.approx(1.0)}
        # Two people who do not know each other: each learns 1.
        apart = [["coordinator"], ["neighbour"]]
        ledger.allow(agent="clinic", epsilon=1.0, delta=1e-5, separate=apart)
        charge(ledger, 0, graph, run="graph")
        assert ledger.spent(1e-5) == {
            ("clinic", "final_model and coordinator and eavesdropper"): approx_1,
            ("clinic", "final_model and neighbour and eavesdropper"): approx_1,
        }
        # Who may be in league with either counts with both.
        with pytest.raises(BudgetExceeded):
            charge(ledger, 0, priced(0.1, "final_model"), run="third")
        assert ledger.learnt("clinic", "neighbour", 1e-5) == approx_1
        # Together they have learnt what they have learnt.
        assert ledger.curve("clinic").epsilon(1e-5) == pytest.approx(1.465, abs=5e-4)
    with Ledger(path, read_only=True) as ledger:
        assert len(ledger.spent(1e-5)) == 2


approx_1 = pytest.approx(1.0)


def test_one_letter_seen_by_several_is_one_release(path):
    """What they see of it is nested: the closest sees it all, and costs most."""
    close, far = priced(0.8, "coordinator"), priced(0.3, "final_model")
    same = priced(0.8, "eavesdropper")
    with opened(path, epsilon=1.0) as ledger:
        first = {**CLINIC, "round": 0, "content": b"a"}
        ledger.charge((far, close, same), **first)
        assert ledger.spent(1e-5)["clinic", "everybody"] == pytest.approx(0.8)
        # Another letter under the same name is another release.
        other = {**first, "content": b"b"}
        ledger.charge(priced(0.3, "neighbour"), **other)
        both = ledger.spent(1e-5)["clinic", "everybody"]
        assert both == pytest.approx(
            close.compose(priced(0.3, "coordinator")).epsilon(1e-5)
        )
        # So is the same letter in another round.
        with pytest.raises(BudgetExceeded):
            ledger.charge(close, **{**first, "round": 1})
    with Ledger(path) as again:
        assert again.spent(1e-5)["clinic", "everybody"] == pytest.approx(both)


def test_costs_that_cannot_be_compared_are_added(path):
    batch = account(
        **SEEN,
        noise_std=2.0,
        sensitivity=1.0,
        rounds=1,
        sampling=WithoutReplacement(5, 50),
    )
    model = replace(LETTER, scope=Scope("final_model"))
    with opened(path, epsilon=5.0) as ledger:
        ledger.charge((batch, model), **CLINIC, round=0, content=b"a")
        spent = ledger.curve("clinic")
    assert spent == batch.compose(LETTER).curve


@pytest.mark.parametrize(
    ("separate", "message"),
    (
        ([["coordinator"], ["coordinator"]], "stands twice"),
        ([["coordinater"]], "did you mean 'coordinator'"),
        (["coordinator"], "list of groups"),
        ([[]], "list of groups"),
        ([], "list of groups"),
        ("neighbour", "list of groups"),
    ),
)
def test_groups_are_checked(path, separate, message):
    with Ledger(path) as ledger, pytest.raises(TacitaError, match=message):
        ledger.allow(agent="a", epsilon=1.0, delta=1e-5, separate=separate)


SAMPLED = (
    (Poisson(0.1), "add_remove", 1.0),
    (PoissonReplaced(0.1), "replace_one", 1.0),
    (WithoutReplacement(10, 100), "replace_one", 1.0),
    (WithReplacement(10, 100), "replace_one", 1.0),
    (WithoutReplacement(10, 100), "replace_one", 0.5),
    (None, "replace_one", 0.5),
)


@pytest.mark.few(1)
@pytest.mark.parametrize(("sampling", "relation", "participation"), SAMPLED)
def test_a_calibrated_run_fits_its_budget_and_no_more(
    path, sampling, relation, participation
):
    """Whatever accounts the run accounts its letters: the last one fits, barely."""
    releases = {
        "relation": relation,
        "sensitivity": 1.0,
        "sampling": sampling,
        "participation": participation,
    }
    budget = {"epsilon": 1.0, "delta": 1e-5}
    noise = noise_for(**budget, **releases, rounds=40, tolerance=1e-3)
    one = account(**{**SEEN, **releases}, noise_std=noise, rounds=1)
    with Ledger(path) as ledger:
        ledger.allow(agent="clinic", **budget, relation=relation)
        for number in range(40):
            charge(ledger, number, one)
        assert 0.99 < ledger.spent(1e-5)["clinic", "everybody"] <= 1.0
        with pytest.raises(BudgetExceeded):
            charge(ledger, 40, one)
        assert len([row for row in ledger.rows() if row.round is not None]) == 40
    with Ledger(path) as again, pytest.raises(BudgetExceeded):
        charge(again, 40, one)


def test_looking_ahead_lets_nothing_more_through(path):
    """Costs alternate, so that what was proved of one helps little with the other."""
    batch = account(
        **SEEN,
        noise_std=3.0,
        sensitivity=1.0,
        rounds=1,
        sampling=WithoutReplacement(5, 50),
    )
    kinds, total = (batch, LETTER, batch), []
    with opened(path, epsilon=1.0) as ledger:
        for number in range(200):
            try:
                charge(ledger, number, kinds[number % 3])
            except BudgetExceeded:
                break
            total.append(kinds[number % 3])
        within = total[0].compose(*total[1:])
        beyond = within.compose(kinds[number % 3])
        assert within.epsilon(1e-5) <= 1.0 < beyond.epsilon(1e-5)
        spent = ledger.spent(1e-5)["clinic", "everybody"]
        assert spent == pytest.approx(within.epsilon(1e-5), rel=1e-9)
        # A smaller budget holds at once.
        ledger.allow(agent="clinic", epsilon=0.5, delta=1e-5)
        with pytest.raises(BudgetExceeded, match="of 0.5"):
            charge(ledger, 999, LETTER)


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
        assert ledger.spent(1e-12)["clinic", "everybody"] == pytest.approx(0.1)
        for number in range(2, 6):
            charge(ledger, number, sampled)
        charge(ledger, 6)
        together = laplace.repeat(2).compose(sampled.repeat(4), LETTER)
        got = ledger.spent(1e-6)["clinic", "everybody"]
        assert got == pytest.approx(together.epsilon(1e-6), rel=1e-12)
        curve = ledger.curve("clinic")
        assert curve.rdp(5.5) == pytest.approx(together.rdp(5.5), rel=1e-12)
        assert not charge(ledger, 3, sampled)[0].new
    with Ledger(path) as again:
        assert again.spent(1e-6)["clinic", "everybody"] == pytest.approx(got)


def test_fails_closed(path, tmp_path):
    with Ledger(path) as ledger:
        with pytest.raises(TacitaError, match="no budget for agent='clinic'"):
            charge(ledger, 0)
    with opened(path) as ledger:
        for field, value in (("unit", "client"), ("relation", "add_remove")):
            with pytest.raises(TacitaError, match="do not add up"):
                charge(ledger, 0, of_letter(**{field: value}))
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


def test_only_what_was_charged_binds_an_account_to_its_unit(path):
    """A run that was only looked at once took every other unit from its rows."""
    with opened(path) as ledger:
        for change in ({"unit": "client"}, {"relation": "add_remove"}, {}):
            ledger.allow(agent="clinic", epsilon=1.0, delta=1e-5, **change)
        charge(ledger, 0)
        head = ledger.head()
        for change in ({"unit": "client"}, {"relation": "add_remove"}):
            with pytest.raises(TacitaError, match="another agent name"):
                ledger.allow(agent="clinic", epsilon=1.0, delta=1e-5, **change)
        assert ledger.head() == head
        assert ledger.budget("clinic").unit == "record"
        ledger.allow(agent="other", epsilon=1.0, delta=1e-5, unit="client")


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
    ({"epsilon": 0.0}, {"epsilon": math.nan}, {"delta": 0.0}, {"unit": "us"}),
)
def test_budgets_are_checked(path, change):
    good = {"agent": "a", "epsilon": 1.0, "delta": 0.1}
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
            ledger.allow(agent="a", epsilon=1.0, delta=0.1)
    assert path.read_bytes() == before


def filled(path):
    with opened(path, epsilon=100.0) as ledger:
        for number in range(6):
            charge(ledger, number)
        return ledger.head()


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
    monkeypatch.setattr(store, "ORDERS", (2.0, 3.0))
    with pytest.raises(TacitaError, match="other Renyi orders"):
        Ledger(path)


def test_a_whole_ledger_of_the_format_before_is_refused_in_one_line(path):
    with opened(path) as ledger:
        charge(ledger, 0)
    path.write_bytes(path.read_bytes().replace(HEADER, EARLIER[-1]))
    with pytest.raises(TacitaError, match="an earlier format"):
        Ledger(path)


def test_a_ledger_knows_what_its_epsilons_rest_on(path):
    other = replace(LETTER, theorem="another", assumptions=LETTER.assumptions[:1])
    with opened(path) as ledger:
        assert ledger.basis("clinic")["assumptions"] == []
        for number in range(3):
            charge(ledger, number)
        charge(ledger, 3, other)
    with Ledger(path, read_only=True) as ledger:
        told, (person,) = ledger.basis("clinic"), ledger.people("clinic", "neighbour")
        assert told == ledger.basis("clinic", person)
        rows = [row for row in ledger.rows() if row.kind == "release"]
    assert told["theorem"] == f"{LETTER.theorem}; another"
    assert told["assumptions"] == [vars(one) for one in LETTER.assumptions]
    # They are long, and written once.
    assert [row.assumptions is None for row in rows] == [False, True, True, False]


def test_reasons_of_a_refused_letter_are_written_with_the_next(path):
    with opened(path, epsilon=0.01) as ledger:
        with pytest.raises(BudgetExceeded):
            charge(ledger, 0)
        assert ledger.basis("clinic")["assumptions"] == []
        ledger.allow(agent="clinic", epsilon=9.0, delta=1e-5)
        charge(ledger, 0)
        assert ledger.basis("clinic")["theorem"] == LETTER.theorem


@pytest.mark.parametrize("begin", EARLIER)
@pytest.mark.parametrize("read_only", (False, True))
def test_a_file_of_another_format_is_refused_in_one_line(path, begin, read_only):
    path.write_bytes(begin + bytes(4080))
    with pytest.raises(TacitaError, match="an earlier format, this .* reads format 4"):
        Ledger(path, read_only=read_only)


@pytest.mark.parametrize(
    "curve",
    (
        LossCurve(((SampledGaussian(2.0, Poisson(0.1)), 3), (Laplace(0.25), 1))),
        LossCurve(((SampledGaussian(2.0, WithReplacement(3, 9)), 1),), mu=0.5),
        LossCurve(((RandomisedResponse(1.5, 3), 2),), rest=RenyiCurve.linear(0.25)),
        take_part(GaussianCurve(0.125), 0.5),
        take_part(compose(GaussianCurve(0.125), RenyiCurve.linear(0.5)), 0.5),
        RenyiCurve((0.1,) * len(ORDERS), slope=0.5, pure=3.0),
    ),
)
def test_words_say_all_that_there_is_to_a_curve(curve):
    words = words_of(curve)
    assert curve_of(words) == curve and words_of(curve_of(words)) == words
    with pytest.raises(TacitaError, match="no release of kind 'Magic'"):
        curve_of(words.replace('"kind": "', '"kind": "Magic", "was": "', 1))


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
        spent = ledger.spent(victim.DELTA)[victim.AGENT, "everybody"]
        exact = gaussian_epsilon(100 / math.sqrt(len(charged)), victim.DELTA)
        assert spent == pytest.approx(exact, rel=1e-9)


def test_a_letter_that_may_have_left_counts_beyond_the_budget(path):
    with opened(path, epsilon=0.5) as ledger:
        charge(ledger, 0)
        ledger.charge(LETTER, **CLINIC, round=0, content=None)
        assert len(releases(ledger)) == 1  # it is in the ledger already
        for number in range(1, 4):
            ledger.charge(LETTER, **CLINIC, round=number, content=None)
        spent = ledger.spent(1e-5)["clinic", "everybody"]
        assert spent == pytest.approx(gaussian_epsilon(10 / math.sqrt(4), 1e-5))
        assert spent > 0.5
        # The letter itself, found after all, is paid for; another one is not.
        assert not charge(ledger, 1)[0].new
        with pytest.raises(BudgetExceeded):
            charge(ledger, 9)


def test_charges_are_written_together_or_not_at_all(path):
    with opened(path, epsilon=0.8) as ledger:
        before = path.read_bytes()
        with pytest.raises(BudgetExceeded):
            with ledger.together():
                for number in range(40):
                    charge(ledger, number)
        assert path.read_bytes() == before and releases(ledger) == []
        with ledger.together():
            charge(ledger, 0)
            assert path.read_bytes() == before
            charge(ledger, 1)
        assert len(releases(ledger)) == 2 and ledger.verify() == 4

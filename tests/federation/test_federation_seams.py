"""Where the parts of a federation meet: rows and notes, rosters and runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tomli_w

import tacita
from tacita.disk import write_private
from tacita.federation import (
    Agent,
    Coordinator,
    Hub,
    Invitation,
    PostRoom,
    Request,
    consent,
    make_request,
)
from tacita.federation.budget import with_budget
from tacita.federation.coordinator import _kept_consents, _rows, _to_be_kept
from tacita.federation.description import Description
from tacita.federation.membership import require_partners
from tacita.federation.own_rows import blank_problem
from tacita.federation.receipts import BLANK, Pen
from tacita.federation.setting import secret_of, setting_of
from tacita.federation.wire import Identity, Letter, LetterRefused, note
from tacita.privacy import BudgetExceeded, Ledger
from tests.federation.by_hand import ByHand
from tests.federation.towns import LENIENT, NAMES, Town, run_of, table_of_rows
from tests.patience import HANG

PRIVATE = {**LENIENT, "max_epsilon": 8.0}
BUDGET = {"epsilon": 2.0, "delta": 1e-5, "norm": 1.0}


def charged(home: Path) -> list[int]:
    """Rounds that the ledger of an agent knows of."""
    with Ledger(home / "ledger.db", read_only=True) as ledger:
        return [row.round or 0 for row in ledger.rows() if row.kind == "release"]


def in_run(town: ByHand, run, kind: str, when: tuple[int, int], *arrays) -> None:
    name = Identity("town", run.digest, kind, *when, "coordinator", "ada")
    town.deliver(Letter(name, (*arrays, BLANK, BLANK)))


#: What a coordinator may send in place of a question that is answered and charged.
PROBES = {
    "ready": lambda town, run: in_run(town, run, "ready", (1, 0)),
    "end": lambda town, run: in_run(town, run, "end", (9, 0), np.zeros(3)),
    "bad question": lambda town, run: in_run(town, run, "question", (1, 0)),
}


@pytest.mark.parametrize("probe", PROBES)
def test_what_shows_whether_rows_fit_is_charged(probe: str, tmp_path: Path):
    town = ByHand(tmp_path)
    run = town.describe(run_of(3, privacy={**BUDGET, "observer": "coordinator"}))
    town.join("ada", table_of_rows("ada"), PRIVATE)
    assert town.answer_of(run)["kind"] == "accept"
    town.consents(run)
    town.hear("done")
    town.sent.clear()
    assert charged(tmp_path / "ada-home") == []
    PROBES[probe](town, run)
    while not any('"round"' in letter.text for letter in town.sent):
        town.drain(0.05)  # a program that read its rows tells its round
    assert charged(tmp_path / "ada-home") == [1]


def test_a_number_of_rows_is_told_after_a_charge(tmp_path: Path):
    town = ByHand(tmp_path)
    weighted = {**run_of()["algorithm"], "weights": "samples"}
    budget = {**BUDGET, "observer": "coordinator"}
    run = town.describe(run_of(3, algorithm=weighted, privacy=budget))
    town.join("ada", table_of_rows("ada"), PRIVATE)
    assert town.answer_of(run)["kind"] == "accept"
    town.consents(run)
    assert json.loads(town.hear("done").text)["rows"] == 30
    assert charged(tmp_path / "ada-home") == [1]


def rotated(folder: Path, times: int) -> list[tuple[Path, Path]]:
    """Invitation and key file of a site that changed its keys so often."""
    hub = Hub.create(folder / "hub", "clinics", port=0)
    found, used = [], None
    for number in range(times + 1):
        keys, asked = make_request(folder / str(number), "oslo", rotate=used)
        path = hub.sign(Request.load(asked), renew=used is not None)
        copy = folder / f"{number}.json"
        copy.write_bytes(path.read_bytes())
        used = keys
        found.append((copy, keys))
    return found


def test_new_keys_open_what_all_older_ones_locked_and_know_their_receipts(tmp_path):
    (first, old_keys), *_, (last, new_keys) = rotated(tmp_path, 2)
    old, new = Invitation.load(first, old_keys), Invitation.load(last, new_keys)
    assert secret_of(tmp_path / "home", old.keys) == secret_of(
        tmp_path / "home", new.keys
    )
    written = Pen(old.keys.lasting("receipts"), "run", 7).stamp((3, 0))
    read = Pen(new.keys.lasting("receipts"), "run", 7).read(written)
    assert read is not None and read.when == (3, 0)


@pytest.fixture
def town(tmp_path: Path) -> ByHand:
    return ByHand(tmp_path)


def keep(path: Path, run: Description, town: ByHand) -> Path:
    write_private(path / run.digest / "offer.json", run.signed(town.keys))
    return path


def agent_of(town: ByHand, home: Path, policy=LENIENT) -> Agent:
    rows = table_of_rows("ada")
    return Agent(town.invitation("ada"), rows, policy, folder=home, tell=print)


def test_a_run_goes_on_at_an_agent_though_the_coordinator_has_new_keys(town: ByHand):
    run = town.describe(run_of())
    home = keep(town.folder / "home", run, town)
    keys, asked = make_request(town.folder / "new", "coordinator")
    town.hub.sign(Request.load(asked), renew=True)
    agent = agent_of(town, home)
    assert agent._begun_run(agent._begun()[0]).digest == run.digest
    # A description that was put under another name is still refused.
    (home / run.digest).rename(home / "other")
    with pytest.raises(tacita.TacitaError, match="was changed: it is of another run"):
        agent._begun_run(agent._begun()[0])


def test_a_run_whose_coordinator_was_replaced_says_so(town: ByHand):
    run = town.describe(run_of())
    home = keep(town.folder / "home", run, town)
    town.hub.remove("coordinator")
    town.hub.add("centre", "coordinator")
    agent = agent_of(town, home)
    with pytest.raises(tacita.TacitaError, match="coordinator was removed"):
        agent._begun_run(agent._begun()[0])


PATIENT = {"rounds": 6, "deadline": 0.5, "least_agents": 2, "shared_seed": 5}
LATE = {"rounds": 6, "participation": 2, "asynchronous": True, "shared_seed": 5}
FED_BUFF = {"name": "FedBuff", "step_size": 0.3}


@pytest.mark.parametrize(
    "tables",
    [{"run": PATIENT}, {"run": LATE, "algorithm": FED_BUFF}],
    ids=["deadline", "asynchronous"],
)
def test_a_run_with_a_deadline_goes_on_without_who_was_removed(town: ByHand, tables):
    """Killed and started again too, coordinator and agents."""
    run = town.describe(run_of(**tables))
    require_partners(run, town.invitation("coordinator"))
    centre = town.folder / "centre"
    me = town.invitation("coordinator")
    proposed = Coordinator({**run.tables, "name": "try"}, me, folder=centre)
    assert proposed.run.digest == run.digest
    keep(centre, run, town)
    accepted = _to_be_kept({}, {})
    write_private(centre / run.digest / "accepted.json", accepted)
    home = keep(town.folder / "home", run, town)
    town.hub.remove("cyd")
    agent = agent_of(town, home)
    agent.judge.require_still_allowed(agent._begun_run(agent._begun()[0]))
    me = town.invitation("coordinator")
    require_partners(run, me)
    again = Coordinator({**run.tables, "name": "try"}, me, folder=centre)
    assert again.run.digest == run.digest
    desk = again.desk(again.run)
    name = Identity("town", run.digest, "ready", 1, 0, "coordinator", "cyd")
    assert desk.envelope.close(Letter(name))  # to nobody
    with pytest.raises(tacita.TacitaError, match="no public key of 'eve'"):
        desk.envelope.close(Letter(replace(name, receiver="eve")))
    # A run that was not begun is not proposed to somebody who is gone.
    with pytest.raises(tacita.TacitaError, match="'cyd' is no agent"):
        Coordinator({**run.tables, "agents": NAMES, "name": "new"}, me, folder=centre)


def test_an_asynchronous_run_needs_as_many_as_end_a_round(town: ByHand):
    run = town.describe(run_of(run=LATE, algorithm=FED_BUFF))
    town.hub.remove("cyd")
    town.hub.remove("bob")
    with pytest.raises(tacita.TacitaError, match="bob, cyd was removed"):
        require_partners(run, town.invitation("coordinator"))


def test_who_must_approve_from_now_on_ends_a_proposal_at_once(tmp_path: Path):
    with Town(tmp_path, PostRoom()) as town:
        path = town.hub.invitations["coordinator"]
        centre = Coordinator(run_of(), path, **town.options("coordinator"))
        town.hub.add("dan", approves=True)
        signed = (town.hub.folder / "roster.signed").read_text()
        with centre.connect() as post:
            centre.membership.take(signed)
            with pytest.raises(tacita.TacitaError, match="without the consent of 'dan"):
                centre._gather(post, 5.0)


def test_a_consent_of_former_keys_does_not_spoil_those_of_the_others(town: ByHand):
    run = town.describe(run_of(run=PATIENT))
    given = {n: consent.sign(run, n, town.invitation(n).keys) for n in NAMES}
    _, asked = make_request(town.folder / "new", "cyd")
    town.hub.sign(Request.load(asked), renew=True)
    text, roster = consent.bundle(run, given), town.hub.roster
    assert consent.require_enough(run, text, roster, 2) == ["ada", "bob"]
    with pytest.raises(LetterRefused, match="not signed by whom it says"):
        consent.require_enough(run, text, roster, 3)


def test_a_refusal_is_thought_over_when_people_or_the_roster_change(town: ByHand):
    home = town.folder / "home"
    agent = agent_of(town, home, {**LENIENT, "approval": True})
    run = town.describe(run_of())
    more = town.describe(run_of(), [*NAMES, "dan"])
    offer, late = run.signed(town.keys), more.signed(town.keys)
    with Ledger(town.folder / "ledger.db") as ledger:
        verdict = agent.judge.verdict
        assert verdict(run, offer, ledger).code == "waiting"
        assert verdict(more, late, ledger).code == "refused"
        agent.judge.book.decide(run.digest, False, "ann")
        assert verdict(run, offer, ledger).code == "refused"
        agent.judge.book.decide(run.digest, True, "ann")
        assert verdict(run, offer, ledger).accepted
        town.hub.add("dan")
        agent.membership.take((town.hub.folder / "roster.signed").read_text())
        assert verdict(more, late, ledger).code == "waiting"


def test_a_number_of_rows_without_end_is_refused(town: ByHand):
    run = town.describe(run_of())
    for rows in (10**400, 2**50, 0, -1, True, 1.5):
        letter = note("done", "town", "ada", "coordinator", "")
        told = json.dumps({"run": run.digest, "rows": rows})
        with pytest.raises(LetterRefused, match="without a number of rows"):
            _rows(replace(letter, text=told), run, True)


def test_kept_consents_of_another_run_are_refused(tmp_path: Path):
    path = tmp_path / "accepted.json"
    path.write_text(_to_be_kept({}, {"ada": 3}))
    assert _kept_consents(path, ["ada"])["rows"] == {"ada": 3}
    with pytest.raises(tacita.TacitaError, match="asked once more"):
        _kept_consents(path, NAMES)


def test_rows_are_not_counted_out_once_the_policy_forbids_it(town: ByHand):
    path = town.folder / "policy.toml"
    path.write_text(tomli_w.dumps(LENIENT))
    run = town.describe(
        run_of(algorithm={**run_of()["algorithm"], "weights": "samples"})
    )
    agent = town.join("ada", table_of_rows("ada"), path)
    assert town.answer_of(run)["kind"] == "accept"
    path.write_text(tomli_w.dumps({**LENIENT, "allow_row_counts": False}))
    town.consents(run)
    assert "does not allow it any more" in str(agent.exception(HANG))
    town.drain(0.1)
    assert not any("rows" in letter.text for letter in town.sent)
    assert not list((town.folder / "ada-home").glob("*/unfit"))


def test_two_federations_on_one_ledger_keep_each_to_its_own_policy(town: ByHand):
    """The more generous policy, written last, must not loosen the other one's."""
    path, charges = town.folder / "ledger.db", {}
    with Ledger(path) as one, Ledger(path) as other:
        for ledger, limit in ((one, 1.0), (other, 4.0)):
            budget = {**BUDGET, "epsilon": limit / 1.4, "observer": "coordinator"}
            run = town.describe(run_of(6, privacy=budget))
            bare = setting_of(run, blank_problem(run))
            _, charge = with_budget(bare, "ada", ledger, limit, account="patients")
            name = Identity("town", run.digest, "answer", 1, 0, "ada", "coordinator")
            charges[limit] = charge, name
        strict, first = charges[1.0]
        strict(first, b"allowed")
        loose, second = charges[4.0]
        for number in range(1, 7):
            loose(replace(second, round=number), b"%d" % number)
        with pytest.raises(BudgetExceeded, match=r"of 1\.0"):
            strict(replace(first, round=2), b"too much")
        loose(replace(second, round=6), b"6")  # the same again costs nothing
    with Ledger(path, read_only=True) as ledger:
        assert 1.0 < ledger.spent(1e-5)["patients", "everybody"] < 4.0


def test_a_batch_without_end_takes_no_memory_of_those_who_look_at_it(town: ByHand):
    oracle = {"name": "Minibatch", "size": 10**8}
    table = {**run_of()["algorithm"], "oracle": oracle}
    with pytest.raises(tacita.TacitaError, match="take smaller batches"):
        blank_problem(town.describe(run_of(algorithm=table)))


def test_an_agent_does_not_wait_for_ever_for_a_run_that_it_accepted(town: ByHand):
    agent = town.join("ada", table_of_rows("ada"), LENIENT, silence=0.1)
    run = town.describe(run_of())
    assert town.answer_of(run)["kind"] == "accept"
    assert "nothing was heard from anybody" in str(agent.exception(HANG))
    assert list((town.folder / "ada-home").glob("*/offer.json"))


def test_kept_consents_that_were_changed_are_refused_before_the_first_letter(
    town: ByHand,
):
    run = town.describe(run_of())
    agent = agent_of(town, town.folder / "home")
    path = agent.home / run.digest / "consents.json"
    given = dict.fromkeys(NAMES, "00")
    other = town.describe(run_of(7))
    write_private(path, consent.bundle(run, given))
    agent._agree_to(run)
    assert agent.agreement.agreed
    for text in ("", "\xff", consent.bundle(other, given), consent.bundle(run, {})):
        write_private(path, text)
        with pytest.raises(tacita.TacitaError, match="was changed; delete it"):
            agent._agree_to(run)


def test_who_sends_rubbish_all_the_time_does_not_fill_the_log(tmp_path: Path):
    said: list[str] = []
    hub = Hub.create(tmp_path / "hub", "town", NAMES, port=0)
    options = {"folder": tmp_path / "home", "post": PostRoom(), "tell": said.append}
    rows, path = table_of_rows("ada"), hub.invitations["ada"]
    agent = Agent(path, rows, LENIENT, **options)  # pyright: ignore
    with agent.connect() as post:
        for _ in range(300):
            post.deliver("ada", b"rubbish")
        assert not list(agent.await_letters(post, list, 0.1, 1.0))
    assert said == ["a letter was refused: not an envelope: it begins with other bytes"]

"""Folders put back from a backup, and two programs with the same keys."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import tacita
from tacita.federation import wire
from tacita.federation.account import Account
from tacita.federation.agent_keys import OwnKeys, next_history
from tacita.federation.driving import TICK, send
from tacita.federation.in_process import COORDINATOR, InProcess, InProcessPost
from tacita.federation.party import Diverged
from tacita.federation.receipts import BLANK, OutOfStep, Pen
from tacita.federation.state_file import NOTES
from tacita.federation.wire import Identity, Letter
from tacita.privacy import Ledger, gaussian_guarantee
from tests.cases import case_of

FED_PLT, FED_GD, FED_LIN = map(case_of, ("FedPLT", "FedGD", "FedLin"))


def made_of(folder: Path, case: Any, rounds: int = 8, **more: Any) -> Any:
    """A federation, and what each of its agents charged."""
    made = InProcess(folder, case.problem(), case.algorithm, rounds, 3, **more)
    charged: dict[str, dict] = {name: {} for name in made.names}
    elsewhere: dict[str, set] = {name: set() for name in made.names}

    def charge_of(name: str) -> Any:
        def charge(identity: Identity, content: bytes | None) -> None:
            if identity.kind == "answer":
                charged[name].setdefault((identity.round, identity.phase), content)
            else:
                elsewhere[name].add(identity.round)

        return charge

    made.charge = {name: charge_of(name) for name in made.names}
    made.elsewhere = elsewhere  # pyright: ignore
    return made, charged


def advance(parties: Any, post: InProcessPost, enough: Callable[[], bool]) -> None:
    """Letter by letter, until it is enough."""
    for _ in range(20_000):
        if enough():
            return
        item = post.next()
        if item is None:
            post.now += TICK
            for party in list(parties.values()):
                party.tick(post.now)
                send(party, post.deliver)
            continue
        parties[item[0]].receive(item[1], post.now)
        send(parties[item[0]], post.deliver)
    raise AssertionError("nothing happens any more")


def started(made: InProcess) -> tuple[dict[str, Any], InProcessPost]:
    parties, post = made.parties(), InProcessPost()
    for party in parties.values():
        party.start(0.0)
        send(party, post.deliver)
    return parties, post


def put_back(made: InProcess, who: str, parties: Any, post: Any, at: int, then: int):
    """Copy a folder in one round, and go on with the copy in a later one."""
    folder, backup = made.folder / who, made.folder / f"{who}.backup"
    advance(parties, post, lambda: parties[who].round >= at)
    shutil.copytree(folder, backup)
    advance(parties, post, lambda: parties[who].round >= then)
    shutil.rmtree(folder)
    backup.rename(folder)
    parties[who] = made.make(who)
    parties[who].start(post.now)
    send(parties[who], post.deliver)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "case, sealed",
    ((FED_PLT, True), (FED_LIN, False), (FED_GD, False)),
    ids=("FedPLT", "FedLin", "FedGD"),
)
def test_a_folder_from_a_backup_is_noticed_and_counted(case, sealed, tmp_path):
    made, charged = made_of(tmp_path, case, sealed=sealed)
    parties, post = started(made)
    put_back(made, "agent-0", parties, post, 2, 5)
    # Its ledger was put back too: it knows of two rounds.
    for when in [when for when in charged["agent-0"] if when[0] > 2]:
        del charged["agent-0"][when]
    with pytest.raises(OutOfStep, match="put back from a backup"):
        advance(parties, post, lambda: parties["agent-0"].round >= 7)
    phases = getattr(case.algorithm, "phases", [None])
    # More left than anybody can prove: all rounds to the end are charged.
    letters = {(r, p) for r in range(1, 9) for p in range(len(phases))}
    assert {*charged["agent-0"]} == letters
    # Started again it says the same, and nothing more leaves.
    again = parties["agent-0"] = made.make("agent-0")
    again.start(post.now)
    send(again, post.deliver)
    with pytest.raises(OutOfStep, match=r"agent-0 has spoken in round [4-6]"):
        advance(parties, post, lambda: again.round > 2)
    assert again.round == 2


def test_a_lost_folder_does_not_begin_anew(tmp_path):
    made, charged = made_of(tmp_path, FED_PLT)
    parties, post = started(made)
    advance(parties, post, lambda: parties["agent-0"].round >= 4)
    shutil.rmtree(tmp_path / "agent-0")
    charged["agent-0"].clear()
    parties["agent-0"] = made.make("agent-0")
    parties["agent-0"].start(post.now)
    send(parties["agent-0"], post.deliver)
    with pytest.raises(OutOfStep, match="ends with round 0"):
        advance(parties, post, lambda: parties["agent-0"].round >= 6)
    assert {when[0] for when in charged["agent-0"]} >= {1, 2, 3, 4}


def test_the_coordinator_notices_its_own_old_folder(tmp_path):
    made, _ = made_of(tmp_path, FED_PLT)
    parties, post = started(made)
    with pytest.raises(OutOfStep, match="propose the run under another name"):
        put_back(made, COORDINATOR, parties, post, 2, 5)
        advance(parties, post, lambda: parties[COORDINATOR].round >= 7)


def test_the_receipts_outlive_a_coordinator(tmp_path):
    """Both sides are put back at once, the agent further."""
    made, _ = made_of(tmp_path, FED_PLT)
    parties, post = started(made)
    advance(parties, post, lambda: parties["agent-0"].round >= 2)
    shutil.copytree(tmp_path / "agent-0", tmp_path / "backup")
    advance(parties, post, lambda: parties[COORDINATOR].round >= 6)
    shutil.rmtree(tmp_path / "agent-0")
    shutil.copytree(tmp_path / "backup", tmp_path / "agent-0")
    for who in ("agent-0", COORDINATOR):
        parties[who] = made.make(who)
        parties[who].start(post.now)
        send(parties[who], post.deliver)
    with pytest.raises(OutOfStep, match="agent-0 has spoken in round 5"):
        advance(parties, post, lambda: parties["agent-0"].round >= 7)


@pytest.mark.few(1)
@pytest.mark.parametrize("case", (FED_PLT, FED_GD), ids=lambda c: c.name)
@pytest.mark.parametrize("at", (0, 3))
def test_a_clock_that_was_set_back_is_no_backup(case, at, tmp_path):
    made, _ = made_of(tmp_path, case)
    parties, post = started(made)
    advance(parties, post, lambda: parties["agent-0"].round >= at)
    for who in parties.keys() & {"agent-0", COORDINATOR}:
        again = parties[who] = made.make(who)
        pen = again.desk.pen
        again.desk.pen = replace(pen, started=pen.started - 3600 * 10**9)
        again.start(post.now)
        send(again, post.deliver)
    advance(parties, post, lambda: all(p.finished for p in parties.values()))


class Twins:
    """Two programs behind one address; what stops them is kept."""

    def __init__(self, *programs: Any) -> None:
        self.programs, self.stopped = list(programs), []

    def _each(self, action: Callable[[Any], Any]) -> None:
        for program in list(self.programs):
            try:
                action(program)
            except OutOfStep as reason:
                self.programs.remove(program)
                self.stopped.append((program, str(reason)))

    def start(self, now: float) -> None:
        self._each(lambda p: p.start(now))

    def receive(self, content: bytes, now: float) -> None:
        self._each(lambda p: p.receive(content, now))

    def tick(self, now: float) -> None:
        self._each(lambda p: p.tick(now))

    def take_out(self) -> list:
        return [item for program in self.programs for item in program.take_out()]


@pytest.mark.parametrize("case", (FED_PLT, FED_GD), ids=lambda c: c.name)
def test_two_folders_with_the_same_keys_both_stop(case, tmp_path):
    made, mine = made_of(tmp_path / "one", case, 40)
    other, theirs = made_of(tmp_path / "two", case, 40)
    other._keys, other._public = made._keys, made._public
    parties = made.parties()
    twins: Any = Twins(parties["agent-0"], other.make("agent-0"))
    parties["agent-0"] = twins
    post = InProcessPost()
    for party in parties.values():
        party.start(0.0)
        send(party, post.deliver)
    advance(parties, post, lambda: not twins.programs)
    for program, reason in twins.stopped:
        assert "another program" in reason
        assert program.round <= 2, "letters of both left in too many rounds"
    for one, charged in ((made, mine), (other, theirs)):
        # Every round to the end, and what both have said, twice.
        assert len(charged["agent-0"]) == 40
        assert one.elsewhere["agent-0"] >= {1}


def test_a_copy_of_a_folder_stops_beside_the_original(tmp_path):
    made, _ = made_of(tmp_path / "one", FED_PLT, 40)
    parties, post = started(made)
    advance(parties, post, lambda: parties["agent-0"].round >= 3)
    copy = made.make("agent-0")
    copy.start(post.now)
    twins: Any = Twins(parties["agent-0"], copy)
    parties["agent-0"] = twins
    advance(parties, post, lambda: bool(twins.stopped))
    rounds = [p.round for p in twins.programs] + [p.round for p, _ in twins.stopped]
    assert max(rounds) <= 6


def test_nobody_else_can_write_a_receipt(tmp_path):
    made, _ = made_of(tmp_path, FED_PLT)
    agent = made.make("agent-0")
    agent.start(0.0)
    name = Identity("test", "run", "ask", 0, 0, COORDINATOR, "agent-0")
    forged = Pen(b"x" * 32, "run", 1).stamp((7, 0))
    for receipt in (forged, np.arange(7), np.zeros(3, np.int64)):
        letter = Letter(name, (BLANK, receipt))
        agent.receive(made.desk(COORDINATOR).envelope.close(letter), 0.0)
    agent.receive(made.desk(COORDINATOR).envelope.close(Letter(name)), 0.0)
    refused = agent.counts.refused
    assert refused["a receipt that this party never signed"] == 2
    assert refused["the letter carries no receipt"] == 2


def test_another_question_of_the_same_round_gets_other_noise(tmp_path):
    """Asked again with nearly the same broadcast, a restored agent cancels nothing."""
    noisy = tacita.Noisy(std=1.0, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.FedAvg(step_size=1.0, local_steps=1, oracle=noisy)
    problem = FED_PLT.problem()

    def letter_to(w: np.ndarray, folder: Path) -> np.ndarray:
        made = InProcess(folder, problem, algorithm, 4)
        made.own_keys = [OwnKeys(b"s" * 32)] * problem.n_agents
        agent: Any = made.make("agent-0")
        agent.start(0.0)
        name = Identity("test", "run", "question", 1, 0, COORDINATOR, "agent-0")
        question = Letter(name, (w, np.asarray(0), BLANK, BLANK))
        agent.receive(made.desk(COORDINATOR).envelope.close(question), 0.0)
        assert agent.round == 1
        return agent._answer[0]

    w = np.zeros(problem.dim)
    first, again = letter_to(w, tmp_path / "a"), letter_to(w, tmp_path / "b")
    np.testing.assert_array_equal(first, again)  # the same question: the same letter
    other = letter_to(w + 1e-9, tmp_path / "c")
    assert np.abs(first - other).max() > 0.1


def test_the_same_questions_in_other_rounds_get_other_noise(tmp_path):
    """Else two states that a coordinator knows would be hidden by the same noise."""
    problem, eta, rho = FED_PLT.problem(), 0.5, 1.0
    noisy = tacita.Noisy(std=1e4, oracle=tacita.Clipped(norm=1.0))
    solver = tacita.solvers.GradientDescent(step_size=eta, local_steps=1)
    algorithm = tacita.FedPLT(rho=rho, solver=solver, oracle=noisy)

    def letters(first: int) -> tuple[np.ndarray, np.ndarray]:
        """What is sent in the first round, then in round 3, told the same in both."""
        made = InProcess(tmp_path / str(first), problem, algorithm, 4)
        made.own_keys = [OwnKeys(b"s" * 32)] * problem.n_agents
        agent: Any = made.make("agent-0")
        agent.start(0.0)
        sent = []
        for number in (first, 3):
            name = Identity(
                "test", "run", "question", number, 0, COORDINATOR, "agent-0"
            )
            asked = (np.zeros(problem.dim), np.asarray(0), BLANK, BLANK)
            agent.receive(made.desk(COORDINATOR).envelope.close(Letter(name, asked)), 0)
            assert agent.round == number
            sent.append(agent._letters[number][0])
        return sent[0], sent[1]

    (z, later), (other_z, other_later) = letters(1), letters(2)
    start = z - other_z
    assert np.abs(start).max() > 100
    # x = y + (z - z before)/2; x+ = x - eta (g + n + (x - 2y + z)/rho); z+ = z + 2 x+
    l2 = float(problem.population.regulariser.weight)
    kept = start / 2 * (1 - eta * (1 / rho + l2)) - eta / rho * start
    noise = (later - other_later - start - 2 * kept) / (-2 * eta)
    assert np.abs(noise).max() > 100  # gradients differ by two at most


@pytest.mark.parametrize("case", (FED_PLT, FED_GD), ids=lambda c: c.name)
def test_a_letter_that_is_too_large_to_be_sent_is_charged(case, tmp_path, monkeypatch):
    """Its absence tells of it: asked at the edge, sign by sign."""
    made, charged = made_of(tmp_path, case)
    parties, post = started(made)
    monkeypatch.setattr(wire, "LARGEST", 1e-9)
    with pytest.raises(Diverged, match="own numbers are not finite"):
        advance(parties, post, lambda: parties["agent-0"].round >= 1)
    assert {when for of_agent in charged.values() for when in of_agent} == {(1, 0)}


def test_noise_follows_from_all_questions():
    own = OwnKeys(b"s" * 32)

    def words(*asked: float) -> bytes:
        history = ""
        for value in asked:
            history = next_history(history, (1, 0), [np.asarray(value)])
        return np.asarray(jax.random.key_data(own.noise(2, 0, history))).tobytes()

    assert words(1.0, 2.0) == words(1.0, 2.0)
    assert len({words(1.0, 2.0), words(3.0, 2.0), words(1.0, 3.0), words(2.0)}) == 4


PRICE = gaussian_guarantee(
    observer="coordinator",
    unit="record",
    relation="replace_one",
    noise_std=5.0,
    sensitivity=0.1,
)


def with_ledger(folder: Path, case: Any) -> tuple[InProcess, Callable[[], Ledger]]:
    """A federation whose agent-0 has a ledger; it is opened anew at every call."""
    made = InProcess(folder, case.problem(), case.algorithm, 8, 3)

    def open_ledger() -> Ledger:
        ledger = Ledger(folder / "ledger.db")
        ledger.allow(agent="agent-0", epsilon=9.0, delta=1e-5)
        prices = dict.fromkeys(range(1, 9), PRICE)
        made.charge = {"agent-0": Account(ledger, "agent-0", "run", prices)}
        return ledger

    return made, open_ledger


@pytest.mark.parametrize("case", (FED_PLT, FED_GD), ids=lambda c: c.name)
@pytest.mark.parametrize("which", ("folder", "ledger"))
def test_a_folder_and_a_ledger_of_different_ages_are_refused(case, which, tmp_path):
    made, open_ledger = with_ledger(tmp_path, case)
    files = ["agent-0"] if which == "folder" else ["ledger.db", "ledger.db.end"]
    with open_ledger():
        parties, post = started(made)
        advance(parties, post, lambda: parties["agent-0"].round >= 3)
        for name in files:
            (shutil.copytree if which == "folder" else shutil.copy)(
                tmp_path / name, tmp_path / f"{name}.old"
            )
        advance(parties, post, lambda: parties["agent-0"].round >= 5)
    with open_ledger():  # of the same age: it goes on
        made.make("agent-0").start(post.now)
    for name in files:
        (tmp_path / name).rename(tmp_path / f"{name}.new")
        (tmp_path / f"{name}.old").rename(tmp_path / name)
    with open_ledger() as ledger:
        with pytest.raises(OutOfStep, match=f"the {which} .* put back from a backup"):
            made.make("agent-0").start(post.now)
        charged = ledger.rounds("agent-0", "coordinator", "run")
        assert len(charged) == (5 if which == "folder" else 8)  # or the run as a whole


def test_a_folder_that_was_found_old_is_charged_anew_for_what_it_still_says(tmp_path):
    """Receipts that were shown once may be held back from the program started again."""
    made, open_ledger = with_ledger(tmp_path, FED_PLT)
    with open_ledger() as ledger:
        parties, post = started(made)
        advance(parties, post, lambda: parties["agent-0"].round >= 2)
        agent = parties["agent-0"]
        agent._settle(elsewhere=False)
        name = agent._identity("answer", "coordinator", (3, 0))
        for _ in range(2):  # the same letter again costs nothing
            agent.desk.charge(name, b"another letter of round 3")
        # All eight rounds, and this one twice.
        curve: Any = ledger.curve("agent-0")
        assert curve.mu == pytest.approx(0.02 * 9**0.5)


def test_a_lost_note_shows_once_the_ledger_holds_a_later_step(tmp_path):
    """Notes beside a checkpoint are as old as it is, or the folder is refused."""
    made, open_ledger = with_ledger(tmp_path, FED_PLT)
    with open_ledger():
        parties, post = started(made)
        advance(parties, post, lambda: parties["agent-0"].round >= 2)
        agent = parties["agent-0"]
        agent._note(b"what was agreed")
        agent.desk.account.note("set", 2, b"a word that must not be given otherwise")
    with open_ledger():
        made.make("agent-0").start(post.now)
    notes = tmp_path / "agent-0" / NOTES
    content = bytearray(notes.read_bytes())
    content[-1] ^= 1
    for damaged in (content, content[:-1], b""):
        notes.write_bytes(damaged)
        with open_ledger(), pytest.raises(OutOfStep, match="put back from a backup"):
            made.make("agent-0").start(post.now)


def test_charges_that_no_checkpoint_followed_are_no_restore(tmp_path):
    """Killed between ledger and checkpoint, again and again, in different rounds."""
    made, open_ledger = with_ledger(tmp_path, FED_PLT)
    with open_ledger():
        parties, post = started(made)
        advance(parties, post, lambda: parties["agent-0"].round >= 3)
    for number in (4, 5, 6):
        with open_ledger():
            agent: Any = made.make("agent-0")
            agent.start(0.0)
            name = Identity("test", "run", "answer", number, 0, "agent-0", "")
            agent.desk.charge(name, b"never kept")
    with open_ledger():
        made.make("agent-0").start(0.0)


def test_what_another_folder_said_is_a_release_of_its_own(tmp_path):
    """Also where the first letter of a round pays for all letters of it."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.allow(agent="agent-0", epsilon=9.0, delta=1e-5)
        account = Account(ledger, "agent-0", "run", {1: PRICE})
        for kind, phase in (("answer", 0), ("answer", 1), ("elsewhere", 0)):
            name = Identity("test", "run", kind, 1, phase, "agent-0", "")
            account(name, b"letter" if kind == "answer" else None)
        spent = ledger.spent(1e-5)["agent-0", "everybody"]
    assert spent == pytest.approx(PRICE.compose(PRICE).epsilon(1e-5))

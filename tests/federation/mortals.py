"""Parties inside one program that die at any step, and what else happens to them.

A party dies before or after it wrote its checkpoint, after it charged a letter, or
having done its work; it may find the disk full. It is then made again from its folder.
"""

from __future__ import annotations

import functools
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tacita
from tacita.federation.account import Account
from tacita.federation.driving import TICK, send
from tacita.federation.in_process import COORDINATOR, Faults, InProcess, InProcessPost
from tacita.federation.receipts import OutOfStep
from tacita.federation.wire import decode
from tacita.privacy import Ledger, gaussian_guarantee
from tacita.problem import Problem
from tests.cases import case_of

SOME_LOSS = Faults(loss=0.1, repeat=0.1, most_delay=1.0)
#: What may happen to a federation besides deaths.
EVENTS = ("nothing", "disk full", "old folder", "old folder and ledger", "twins")
PRICE = gaussian_guarantee(
    observer="coordinator",
    unit="record",
    relation="replace_one",
    noise_std=5.0,
    sensitivity=0.1,
)


class Crash(BaseException):
    """The party is gone."""


class Mortal:
    """A party that dies now and then, and is then made again from its folder."""

    def __init__(self, made: InProcess, name: str, dice: random.Random, chance: float):
        self._made, self.name, self._dice, self._chance = made, name, dice, chance
        self.deaths = self.full = 0
        #: Chance that a write finds the disk full.
        self.full_chance = 0.0
        self._party = self._born()

    def _born(self) -> Any:
        party = self._made.make(self.name)
        file, charge = party.desk.state_file, party.desk.charge
        save = file.save

        def mortal_save(*words: Any, **groups: Any) -> None:
            self._risk()  # nothing written
            self._fill()
            save(*words, **groups)
            self._risk()  # written, nothing sent

        class MortalAccount(Account):
            """Dies when the release is in the ledger, not in the checkpoint."""

            def __call__(account, *words: Any) -> None:  # noqa: N805
                self._fill()
                super().__call__(*words)
                self._risk()

        def mortal_charge(*content: Any) -> None:
            charge(*content)
            self._risk()  # in the ledger, not in the checkpoint

        file.save = mortal_save
        if isinstance(charge, Account):
            charge.__class__ = MortalAccount
        else:
            party.desk.charge = mortal_charge
        return party

    def _risk(self) -> None:
        if self._dice.random() < self._chance:
            raise Crash

    def _fill(self) -> None:
        if self._dice.random() < self.full_chance:
            self.full += 1
            raise Crash  # the program ends with its one line, as if killed

    def _live(self, action: Any, now: float) -> None:
        try:
            action()
            self._risk()
        except Crash:
            self.deaths += 1
            self.be_born(now)

    def be_born(self, now: float) -> None:
        """A new program in the same folder."""
        self._party = self._born()
        self._live(lambda: self._party.start(now), now)

    def start(self, now: float) -> None:
        self._live(lambda: self._party.start(now), now)

    def receive(self, content: bytes, now: float) -> None:
        self._live(lambda: self._party.receive(content, now), now)

    def tick(self, now: float) -> None:
        self._party.tick(now)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._party, name)


class Ledgers(InProcess):
    """A federation whose agents charge real ledgers, opened anew by every program."""

    def __init__(self, folder: Path, *words: Any, **more: Any) -> None:
        super().__init__(folder, *words, **more)
        self._open: dict[str, Ledger] = {}

    def make(self, name: str) -> Any:
        if name != COORDINATOR:
            self.close(name)
            self.folder.mkdir(parents=True, exist_ok=True)
            ledger = self._open[name] = Ledger(self.folder / f"{name}.db")
            ledger.allow(agent=name, epsilon=100.0, delta=1e-5)
            self.charge[name] = Account(
                ledger, name, "run", dict.fromkeys(range(1, 100), PRICE)
            )
        return super().make(name)

    def close(self, name: str) -> None:
        if name in self._open:
            self._open.pop(name).close()

    def files(self, name: str, with_ledger: bool) -> list[Path]:
        ledger = [self.folder / f"{name}.db", self.folder / f"{name}.db.end"]
        return [self.folder / name, *(ledger if with_ledger else [])]

    def charged(self, name: str) -> set[tuple[int, int]]:
        """Letters of an agent that are in its ledger."""
        rows = [row for row in self._open[name].rows() if row.kind == "release"]
        return {(row.round or 0, int((row.phase or "").split("-")[1])) for row in rows}


def chaos(folder: Path, case_name: str, seed: int, event: str) -> Counter[str]:
    """One run with deaths and an event; bits and ledgers are checked, then counted."""
    dice = random.Random(seed)
    told = _told(case_name, dice)
    calm = InProcess(folder / "calm", *told).run()
    world = World(Ledgers(folder / "run", *told), dice, seed)
    if world.run(event):
        shared, agents = world.made.models(world.parties)
        assert shared.tobytes() == calm[0].tobytes(), "not the bits of a calm run"
        assert agents.tobytes() == calm[1].tobytes(), "not the bits of a calm run"
        world.tally["in-process runs, all bits the same"] += 1
    else:
        world.tally["in-process runs, refused with the reason"] += 1
    world.require_all_charged()
    return world.tally + Counter(
        {
            "in-process deaths": sum(p.deaths for p in world.parties.values()),
            "disks full": sum(p.full for p in world.parties.values()),
        }
    )


def _told(case_name: str, dice: random.Random) -> tuple:
    """Problem, algorithm, rounds, seed and participation of a run."""
    if case_name == "SecureSum":
        return (*summed(4, least=dice.choice((3, 4))), 6, 3, 1.0)
    case = case_of(case_name)
    participation = 4 if case.algorithm.partial and dice.random() < 0.5 else 1.0
    return case.problem(), case.algorithm, 6, 3, participation


@functools.cache
def summed(agents: int, **rule: Any) -> tuple[Problem, Any]:
    """A problem, and an algorithm whose letters enter secure sums."""
    problem = tacita.problem.synthetic.logistic(
        agents=agents, features=3, samples=40, l2=0.1
    )
    made = tacita.private(
        problem,
        tacita.DPSGD(step_size=1.0),
        epsilon=2.0,
        delta=1e-5,
        observer="coordinator",
        rounds=6,
        aggregation=tacita.SecureSum(**rule),
    )
    return problem, made


class World:
    """A federation inside one program, letter by letter."""

    def __init__(self, made: Ledgers, dice: random.Random, seed: int) -> None:
        self.made, self._dice, self.tally = made, dice, Counter[str]()
        self.parties: Any = {
            name: Mortal(made, name, dice, 0.03) for name in made.parties()
        }
        self.post = InProcessPost(SOME_LOSS, seed)
        self.left: dict[str, set] = {name: set() for name in made.names}
        self._victim = dice.choice(made.names)

    def run(self, event: str) -> bool:
        """Through the event to the end of the run, or to a refusal: False."""
        try:
            self._run(event)
        except OutOfStep:
            # A coordinator that died before it wrote down whom it heard may count the
            # second folder: then the first one cannot go on.
            assert event == "twins"
            return False
        return True

    def _run(self, event: str) -> None:
        for party in self.parties.values():
            party.start(0.0)
            self._send(party)
        at = self._dice.randrange(1, 4)
        if event == "disk full":
            for party in self.parties.values():
                party.full_chance = 0.03
        elif event == "twins":
            self._advance(self._victim_was_heard)
            self._twins()
        elif event != "nothing":
            self._old_folder(at, with_ledger="ledger" in event)
        self._advance(self._all_finished)

    def _all_finished(self) -> bool:
        return all(party.finished for party in self.parties.values())

    def _reached(self, number: int) -> bool:
        return self.parties[self._victim].round >= number

    def _victim_was_heard(self) -> bool:
        """Whoever reads its letters has counted one: a second folder is too late."""
        who = self._victim
        readers = [self.parties.get(COORDINATOR)]
        if readers == [None]:
            readers = [p for p in self.parties.values() if who in p._neighbours]
        return all(reader.receipts.of(who)[0] > 0 for reader in readers)

    def _send(self, party: Any) -> None:
        def deliver(to: str, content: bytes) -> None:
            one = decode(content).identity
            if one.kind == "answer" and one.round and one.sender in self.left:
                self.left[one.sender].add((one.round, one.phase))
            self.post.deliver(to, content)

        send(party, deliver)

    def _advance(self, enough: Callable[[], bool]) -> None:
        for _ in range(200_000):
            if enough():
                return
            item = self.post.next()
            if item is not None:
                self.parties[item[0]].receive(item[1], self.post.now)
                self._send(self.parties[item[0]])
                continue
            due, soon = self.post.next_due(), self.post.now + TICK
            self.post.now = soon if due is None else min(soon, due)
            for party in self.parties.values():
                party.tick(self.post.now)
                self._send(party)
        raise AssertionError("nothing happens any more")

    def _old_folder(self, at: int, with_ledger: bool) -> None:
        """Go on with a copy, be stopped, and go on with the newest files."""
        who, made = self._victim, self.made
        self._advance(lambda: self._reached(at))
        if not self._copy(who, "old", with_ledger):
            return  # nothing was written yet
        self._advance(lambda: self._reached(at + 1))
        self._copy(who, "new", with_ledger)
        self._swap(who, "old", with_ledger)
        dying, self.parties[who]._chance = self.parties[who]._chance, 0.0
        try:
            self.parties[who].be_born(self.post.now)
            self._send(self.parties[who])
            self._advance(self._all_finished)
            # Nobody had its letter: the same question got the same letter again.
            self.tally["old folders that nobody was ahead of"] += 1
            return
        except OutOfStep:
            self.tally["old folders stopped"] += 1
        charged = made.charged(who)
        assert charged >= self.left[who], "a restored ledger counts too little"
        self._swap(who, "new", with_ledger)
        self.parties[who]._chance = dying
        self.parties[who].be_born(self.post.now)
        self._send(self.parties[who])

    def _copy(self, who: str, name: str, with_ledger: bool) -> bool:
        whole = True
        for file in self.made.files(who, with_ledger):
            kept = file.with_name(f"{file.name}.{name}")
            if file.is_dir():
                whole = bool(list(file.glob("party.state")))
                shutil.copytree(file, kept)
            else:
                shutil.copy(file, kept)
        return whole

    def _swap(self, who: str, name: str, with_ledger: bool) -> None:
        self.made.close(who)
        for file in self.made.files(who, with_ledger):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
            file.with_name(f"{file.name}.{name}").rename(file)

    def _twins(self) -> None:
        """A second folder with the same keys: both stop, the first goes on alone."""
        who, made = self._victim, self.made
        other = Ledgers(made.folder / "twin", made.problem, made.algorithm, 6, 3)
        other._keys, other._public, other._sealed = made._keys, made._public, False
        twin = other.make(who)
        twin.start(self.post.now)
        self._send(twin)
        first = self.parties[who]
        stopped: dict[int, float] = {}

        class Both:
            """One address."""

            finished = False

            def receive(both, content: bytes, now: float) -> None:  # noqa: N805
                for k, one in enumerate((first, twin)):
                    if k not in stopped:
                        try:
                            one.receive(content, now)
                        except OutOfStep:
                            stopped[k] = now

            def tick(both, now: float) -> None:  # noqa: N805
                for k, one in enumerate((first, twin)):
                    if k not in stopped:
                        one.tick(now)

            def take_out(both) -> list:  # noqa: N805
                return [i for one in (first, twin) for i in one.take_out()]

        self.parties[who] = Both()
        # In secure sums a folder without the roster is told nothing and waits in vain.
        self._advance(
            lambda: (
                len(stopped) == 2
                or self._all_over()
                or any(self.post.now > at + 600 for at in stopped.values())
            )
        )
        other.close(who)
        self.parties[who] = first
        first.be_born(self.post.now)
        self._send(first)
        self.tally["twins stopped"] += len(stopped)
        assert stopped, "two folders wrote as one"

    def _all_over(self) -> bool:
        return all(p.finished for n, p in self.parties.items() if n != self._victim)

    def require_all_charged(self) -> None:
        """Every letter that left is in its agent's ledger."""
        for name, letters in self.left.items():
            assert self.made.charged(name) >= letters, "the ledger counts too little"
            self.tally["ledgers checked"] += 1
            self.tally["letters that left"] += len(letters)
            self.made._open[name].verify()

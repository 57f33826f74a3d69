"""Kills, full disks, old folders and second programs, until there were enough of them.

    python -m bench.chaos --kills 10000
    python -m bench.chaos --only sums --trials 200 --events 8
    python -m bench.chaos --minutes 5

Trials take turns: federations of real processes over a real broker, with letters or
with secure sums, ended with SIGKILL (agents, coordinator and broker alike); processes
that charge a ledger and are killed at random moments; and federations inside one
program whose parties die at every step (`tests/federation/mortals.py`). Every run must
end with the bits of a calm one or be refused with the reason, every letter that left
must be in a ledger that is whole. The tally is printed; the exit code is 1 if anything
was not so.
"""

from __future__ import annotations

import argparse
import itertools
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

from tacita.privacy import Ledger
from tests.federation.mortals import EVENTS, chaos
from tests.federation.nursery import Forked
from tests.federation.towns import NAMES, Programs, Town, run_of
from tests.privacy import ledger_victim as victim

CASES = ("FedPLT", "FedGD", "FedLin", "FedAvg", "SecureSum")
ROUNDS = 120
BUDGET = {"epsilon": 5.0, "delta": 1e-5, "norm": 1.0}
PRIVATE = run_of(
    run={"rounds": ROUNDS, "shared_seed": 5, "linger": 5.0}, privacy=BUDGET
)
#: The same budget in secure sums: masked letters, openings, rosters of 64 rounds. Sums
#: of all three agents are opened with the answers, others in an exchange of their own.
SUMS = [
    {
        **PRIVATE,
        "algorithm": {"name": "DPSGD", "step_size": 0.3},
        "secure": {"least": least, "rows": 30},
    }
    for least in (3, 2)
]
RUNS = {"letters": PRIVATE, "sums of all": SUMS[0], "sums of some": SUMS[1]}
#: Things that are done to one federation of processes, half of them SIGKILLs.
EVENTS_EACH = 25
#: Deaths that a forked writer of a ledger dies in one trial.
WRITERS = 40
#: Bytes that no file may pass while the disk is "full": less than a checkpoint.
FULL = 600


class Trial:
    """One federation of real processes, and what is done to it."""

    def __init__(self, folder: Path, seed: int, run: dict) -> None:
        self._dice, self.tally = random.Random(seed), Counter[str]()
        self._town = Programs(folder, run, Forked)
        self._kind = "secure sums" if "secure" in run else "letters"
        self._next = 1
        self._kept: dict[str, int] = {}

    def run(self, kills: int, seconds: float) -> dict[str, np.ndarray]:
        """To the end of the run; everybody's shared model."""
        acts = itertools.cycle(
            (
                self._old_home,
                self._kill,
                self._two_programs,
                self._kill,
                self._full_disk,
            )
        )
        with self._town as town:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                codes = {who: town.children[who].poll() for who in self._parties}
                failed = [
                    who
                    for who, code in codes.items()
                    if code not in (None, 0) and not self._over(who)
                ]
                assert not failed, f"{failed}: {town.log(failed[0])[-500:]}"
                if all(code is not None for code in codes.values()):
                    break
                if town.round() >= self._next and self.tally.total() < kills:
                    self._next = town.round() + self._dice.randrange(1, 5)
                    next(acts)()
                    self._kill()
                time.sleep(0.01)
            else:
                raise AssertionError(f"not over after {seconds:g} s")
        return {who: town.model(who, "shared") for who in self._parties}

    @property
    def _parties(self) -> list[str]:
        return ["coordinator", *NAMES]

    def _over(self, who: str) -> bool:
        """Whether an agent has its result: started again, it waits for another run."""
        homes = self._town.folder / f"{who}-home"
        return who in NAMES and bool(list(homes.glob("*/result.json")))

    def _start(self, who: str) -> None:
        if not self._over(who):
            self._town.start(who)

    def _alive(self, among: list[str]) -> list[str]:
        return [who for who in among if self._town.children[who].poll() is None]

    def _end(self, who: str) -> None:
        child = self._town.children[who]
        child.send_signal(signal.SIGKILL)
        child.wait(10)
        self.tally["SIGKILLs"] += 1
        kind = who if who in ("broker", "coordinator") else "agents"
        self.tally[f"SIGKILLs of {kind}"] += 1

    def _kill(self) -> None:
        alive = self._alive(["broker", *self._parties])
        if alive:
            who = self._dice.choice(alive)
            self._end(who)
            self._start(who)

    def _agent(self) -> str | None:
        """An agent in the middle of its run: it has letters, and is not over."""
        homes = {who: self._town.folder / f"{who}-home" for who in NAMES}
        alive = [
            who
            for who in self._alive(NAMES)
            if list(homes[who].glob("*/party.state")) and not self._over(who)
        ]
        return self._dice.choice(alive) if alive else None

    def _refused(self, who: str, reason: str, seconds: float = 60.0) -> None:
        """The program ends by itself, and says why."""
        code = self._town.children[who].wait(seconds)
        said = self._town.log(who)[-900:]
        assert code == 2 and reason in said, f"{code}: {said}"
        assert "Traceback" not in said, said

    def _old_home(self) -> None:
        """A whole folder, ledger and all, is put back from a backup."""
        who = self._agent()
        if who is None:
            return
        home = self._town.folder / f"{who}-home"
        old, new = home.with_name(f"{who}-old"), home.with_name(f"{who}-new")
        self._end(who)
        shutil.copytree(home, old)
        self._start(who)
        before, limit = self._town.round(), time.monotonic() + 60
        while self._town.round() < before + 3 and time.monotonic() < limit:
            time.sleep(0.01)
        if self._agent() is None or self._town.children[who].poll() is not None:
            shutil.rmtree(old)
            return  # the run was over first
        self._end(who)
        home.rename(new)
        old.rename(home)
        self._start(who)
        self._refused(who, "put back from a backup")
        with Ledger(home / "ledger.db", read_only=True) as ledger:
            rounds = {row.round for row in ledger.rows() if row.kind == "release"}
        assert rounds >= set(range(1, ROUNDS + 1)), (
            "a restored ledger counts too little"
        )
        self.tally["old folders stopped, and counted in full"] += 1
        shutil.rmtree(home)
        new.rename(home)
        self._start(who)

    def _full_disk(self) -> None:
        who = self._agent()
        if who is None:
            return
        self._end(who)
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        self._start(who)
        child = self._town.children[who].pid
        resource.prlimit(child, resource.RLIMIT_FSIZE, (FULL, unlimited[1]))
        code = self._town.children[who].wait(90)
        if code:
            said = self._town.log(who)[-700:]
            assert code in (1, 2) and "Traceback" not in said, f"{code}: {said}"
            self.tally["full disks, told in a line"] += 1
        self._start(who)

    def _two_programs(self) -> None:
        """A second program in the folder of one that runs."""
        who = self._agent()
        if who is None:
            return
        other = next(name for name in NAMES if name != who)
        if not self._alive([other]):
            return
        self._end(other)  # without it the run stands still, and the first one stays
        first = self._town.children[who]
        if first.poll() is None and not self._over(other):
            self._town.start(who)
            self._refused(who, "in use by another program")
            self.tally["second programs refused"] += 1
            self._town.children[who] = first
        self._start(other)

    def check(self, shared: dict[str, np.ndarray], calm: np.ndarray) -> None:
        """The bits of a calm run, and ledgers that hold it all."""
        for who, model in shared.items():
            assert model.tobytes() == calm.tobytes(), f"{who} has another model"
        for who in NAMES:
            with Ledger(self._town.folder / f"{who}-home" / "ledger.db") as ledger:
                rounds = [row.round for row in ledger.rows() if row.kind == "release"]
            # Reading rows is charged too, as a part of the first round.
            assert rounds == [1, *range(1, ROUNDS + 1)], f"{who}: {rounds}"
            self.tally["ledgers checked"] += 1
        self.tally[f"runs of processes with {self._kind}, all bits the same"] += 1


@cache
def calm_model(which: str) -> np.ndarray:
    """What an undisturbed run gives."""
    with tempfile.TemporaryDirectory() as folder, Town(Path(folder)) as town:
        return town.run(RUNS[which])["coordinator"].models["shared"]


def processes(folder: Path, seed: int, which: str, events: int) -> Counter[str]:
    """A federation of real processes."""
    trial = Trial(folder, seed, RUNS[which])
    try:
        trial.check(trial.run(kills=events, seconds=420.0), calm_model(which))
    except AssertionError as fault:
        raise AssertionError(f"{fault} (after {dict(trial.tally)})") from fault
    return trial.tally


def writers(folder: Path, seed: int, _: int) -> Counter[str]:
    """Processes that charge a ledger, each killed at a random moment."""
    path, sent = folder / "ledger.db", folder / "sent"
    words = [victim.__file__, path, sent, str(WRITERS)]
    subprocess.run([sys.executable, "-W", "ignore", *words], check=True, timeout=300)
    with Ledger(path) as ledger:
        charged = {row.round for row in ledger.rows() if row.kind == "release"}
    left = set(victim.sent_letters(sent))
    assert left <= charged, "letters left that are not in the ledger"
    assert len(charged) - len(left) <= 1, "more than the letter in hand was wasted"
    counts = {"SIGKILLs": WRITERS, "SIGKILLs of ledger writers": WRITERS}
    return Counter(counts | {"ledgers checked": 1, "letters that left": len(left)})


def inside(folder: Path, seed: int, _: int) -> Counter[str]:
    """A federation inside this program."""
    event = EVENTS[seed % len(EVENTS)]
    return chaos(folder, CASES[seed // len(EVENTS) % len(CASES)], seed, event)


def letters(folder: Path, seed: int, events: int) -> Counter[str]:
    """Real processes whose coordinator reads every letter."""
    return processes(folder, seed, "letters", events)


def sums(folder: Path, seed: int, events: int) -> Counter[str]:
    """Real processes whose coordinator learns sums only."""
    return processes(folder, seed, f"sums of {('all', 'some')[seed % 2]}", events)


#: What takes turns, and how often in one turn.
KINDS = {writers: 4, letters: 1, sums: 1, inside: 6 * len(EVENTS)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10_000, help="deaths in all")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--trials", type=float, default=float("inf"))
    only = [kind.__name__ for kind in KINDS]
    parser.add_argument("--only", choices=only, help="one kind of trials")
    words = "things done to one federation of processes"
    parser.add_argument("--events", type=int, default=EVENTS_EACH, help=words)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    begun, tally, faults = time.monotonic(), Counter[str](), []
    stopped = threading.Event()
    for one in (signal.SIGINT, signal.SIGTERM):  # the tally is told in any case
        signal.signal(one, lambda *_: stopped.set())

    def deaths() -> int:
        return tally["SIGKILLs"] + tally["in-process deaths"]

    def over() -> bool:
        late = time.monotonic() - begun > 60 * told.minutes
        return late or deaths() >= told.kills or stopped.is_set()

    kinds = [
        kind
        for kind, times in KINDS.items()
        for _ in range(times if told.only is None else 1)
        if told.only in (None, kind.__name__)
    ]
    with tempfile.TemporaryDirectory() as base:
        for trial in itertools.count(told.seed):
            kind = kinds[trial % len(kinds)]
            folder = Path(base) / f"{trial}"
            folder.mkdir()
            try:
                tally += kind(folder, trial, told.events)
            except (Exception, AssertionError) as fault:
                faults.append(f"trial {trial}: {fault}")
                traceback.print_exc(limit=-3)
            shutil.rmtree(folder, ignore_errors=True)
            spent = (time.monotonic() - begun) / 60
            if trial % len(kinds) == 0:
                said = f"{deaths()} deaths, {len(faults)} faults, {spent:.0f} minutes"
                print(said, file=sys.stderr, flush=True)
            if over() or trial + 1 - told.seed >= told.trials:
                break
    for what, count in sorted(tally.items()):
        print(f"{count:8d}  {what}")
    print(f"{len(faults):8d}  faults, in {(time.monotonic() - begun) / 60:.1f} minutes")
    for fault in faults:
        print(fault)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())

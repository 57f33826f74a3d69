"""Long runs in parts: on all cores, to be stopped and resumed, their raw lines kept.

A part is what one process runs: configurations of one algorithm on one ring with one
seed. Its lines stand in `raw/NAME.csv` once it is done, from which pages are drawn
again without running; until then `raw/NAME.npz` holds how far it is. A curve that
several figures show is run once: its lines carry what it is a curve of.
"""

from __future__ import annotations

import hashlib
import inspect
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tacita
from papers.dp_norm.common import benchmark, convex

#: Seconds between two lines about a part.
_TELL = 30.0

#: Fields that came after curves were kept, at the defaults that these were run with:
#: no part of what a curve is named by.
_LATER = (", regulariser_last=False",)

#: Measures by round, of one curve.
Records = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class Scale:
    """How large an experiment is run.

    Attributes:
        rounds: Of the paper's 2,000. Noise is set for this many rounds.
        splits: Draws of classes and images.
        seeds: Of batches and noise, each split.
    """

    rounds: int = 100
    splits: tuple[int, ...] = (0,)
    seeds: int = 1

    def __str__(self) -> str:
        rounds = f"{self.rounds:,} rounds"
        if self.rounds < benchmark.ROUNDS:
            rounds += (
                f" instead of {benchmark.ROUNDS:,}, with noise set for {self.rounds:,}:"
                " less noise, and less progress, than in the paper"
            )
        drawn = ", ".join(
            f"split {s} with l2 = {benchmark.L2[s]:g}" for s in self.splits
        )
        seeds = (
            "one seed"
            if self.seeds == 1
            else f"mean +- standard deviation of {self.seeds} seeds"
        )
        return f"{rounds}. {drawn[0].upper()}{drawn[1:]}, {seeds}."


def record_every(rounds: int) -> int:
    """Rounds between two records, some twenty of them; a divisor, to end at the end.

    >>> record_every(2000), record_every(30), record_every(7)
    (100, 1, 1)
    """
    fits = (k for k in range(max(1, rounds // 20), 0, -1) if rounds % k == 0)
    return next(fits)


@dataclass(frozen=True)
class Part:
    """Configurations of one algorithm, on one ring, with one seed."""

    name: str
    entries: tuple[convex.Entry, ...]
    rounds: int
    ring: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    #: What is written beside every line: which number was varied, and to what.
    told: tuple[dict[str, Any], ...] = ()
    make: Callable[..., tacita.Problem] = benchmark.problem
    #: Rounds between two records; 0 for some twenty of them.
    every: int = 0

    def copies(self, scale: Scale) -> list[Part]:
        """The part on every split with every seed."""
        return [
            replace(
                self,
                name=f"{self.name}-{self.rounds}-split-{split}-seed-{seed}",
                ring={**self.ring, "split": split},
                seed=seed,
            )
            for split in scale.splits
            for seed in range(scale.seeds)
        ]

    @property
    def recorded(self) -> range:
        """The rounds after which it is measured."""
        every = self.every or record_every(self.rounds)
        return range(every, self.rounds + 1, every)

    def curve(self, entry: convex.Entry) -> str:
        """What one of its curves is a curve of: two that agree in it are the same run.

        How a figure calls the curve, and how often it is measured, is no part of it.
        """
        ring = inspect.signature(self.make).bind(**self.ring)
        ring.apply_defaults()
        where = (self.make.__qualname__, sorted(ring.arguments.items()))
        what = repr((where, entry.algorithm, self.rounds, self.seed))
        for later in _LATER:
            what = what.replace(later, "")
        return hashlib.sha256(what.encode()).hexdigest()[:12]

    def lines(
        self, kept: Path, there: Mapping[str, Records] | None = None
    ) -> list[dict[str, Any]]:
        """Run it, or what is left of it and is not `there` by another figure."""
        there = there or {}
        names = [self.curve(entry) for entry in self.entries]
        known = [there.get(name, {}).keys() >= {*self.recorded} for name in names]
        run = [e for e, found in zip(self.entries, known, strict=True) if not found]
        new = iter(self._played(run, kept) if run else ())
        whose = {"split": self.ring.get("split", 0), "seed": self.seed}
        told = self.told or ({},) * len(self.entries)
        made = []
        for k, (entry, name) in enumerate(zip(self.entries, names, strict=True)):
            beside = {**told[k], **whose, "curve": name, **entry.words}
            for number in self.recorded:
                record = there[name][number] if known[k] else next(new)
                made.append({**beside, "round": number, **_measures(record)})
        return made

    def _played(
        self, entries: Sequence[convex.Entry], kept: Path
    ) -> list[dict[str, Any]]:
        return convex.play(
            self.make(**self.ring),
            entries,
            self.rounds,
            self.recorded.step,
            self.seed,
            _teller(self.name, self.rounds),
            kept,
        )


def _measures(line: Mapping[str, Any]) -> dict[str, Any]:
    return {name: line[name] for name in convex.MEASURES}


def curves_in(folder: Path) -> dict[str, Records]:
    """All curves of the raw lines in a folder, each as the file has it that has most.

    Records of two files are never mixed: the generator of noise may have changed.
    """
    found: dict[str, Records] = {}
    for path in sorted(folder.glob("*.csv")):
        here: dict[str, Records] = {}
        for line in convex.read(path):
            if name := line.get("curve"):
                here.setdefault(name, {})[int(line["round"])] = _measures(line)
        for name, records in here.items():
            if len(records) > len(found.get(name, ())):
                found[name] = records
    return found


def lines_of(
    parts: Sequence[Part], folder: Path, resume: bool, processes: int | None = None
) -> list[dict[str, Any]]:
    """The lines of all parts, in their order.

    Args:
        parts: What to run.
        folder: Where raw lines are kept.
        resume: Keep what is there, and curves that other figures have left there;
            otherwise everything is run again.
        processes: How many at once; None takes all cores.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not resume:
        for part in parts:
            for ending in ("csv", "npz"):
                (folder / f"{part.name}.{ending}").unlink(missing_ok=True)
    open_parts = [part for part in parts if not (folder / f"{part.name}.csv").exists()]
    cores = processes or os.cpu_count() or 1
    if len(open_parts) < 2 or cores < 2:
        for part in open_parts:
            _run(part, folder, resume)
    else:
        # A process each, started anew: JAX does not bear forks.
        context = multiprocessing.get_context("spawn")
        workers = min(cores, len(open_parts))
        with ProcessPoolExecutor(workers, context, _one_thread) as pool:
            waiting = [pool.submit(_run, one, folder, resume) for one in open_parts]
            for done in waiting:
                done.result()
    return [line for part in parts for line in _told(folder / f"{part.name}.csv")]


def _told(path: Path) -> list[dict[str, str]]:
    """The lines of a part, without what only this file reads."""
    lines = convex.read(path)
    return [{k: v for k, v in line.items() if k != "curve"} for line in lines]


def kept(
    name: str, folder: Path, resume: bool, run: Callable[[], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Lines that were kept under a name, or those of a run, kept for the next time."""
    path = folder / f"{name}.csv"
    if not (resume and path.exists()):
        lines = run()
        whole = convex.write(path.with_suffix(".part"), lines, tuple(lines[0]))
        whole.replace(path)
    return [dict(line) for line in convex.read(path)]


def _one_thread() -> None:
    """Processes share the cores; threads of each would only get in the way."""
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()


def _run(part: Part, folder: Path, resume: bool) -> None:
    partial = folder / f"{part.name}.npz"
    lines = part.lines(partial, curves_in(folder) if resume else {})
    fields = tuple(dict.fromkeys(key for line in lines for key in line))
    whole = convex.write(folder / f"{part.name}.part", lines, fields)
    whole.replace(folder / f"{part.name}.csv")
    partial.unlink(missing_ok=True)


def _teller(name: str, rounds: int) -> Any:
    """Says now and then, on standard error, how far a part is."""
    last = time.monotonic()

    def tell(done: int) -> None:
        nonlocal last
        if time.monotonic() - last > _TELL or done >= rounds:
            last = time.monotonic()
            print(f"{name}: {done:,} of {rounds:,} rounds", file=sys.stderr, flush=True)

    return tell

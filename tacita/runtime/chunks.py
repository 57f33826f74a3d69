"""Driving the compiled loop in chunks: progress, checkpoints, early stopping.

Chunks are sized so that one takes a fraction of a second. How a run is cut does not
change its numbers: the number of rounds in a chunk is an argument of one compiled
program.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.compiled import kept
from tacita.keys import Keys
from tacita.mesh import processes
from tacita.privacy.meter import Meter
from tacita.runtime import checkpoint
from tacita.runtime.checkpoint import Aim, Saved
from tacita.runtime.engine import CAPACITY, RunPlan, advance
from tacita.runtime.fingerprint import fingerprint
from tacita.runtime.gather import NOTHING
from tacita.runtime.measure import name_of
from tacita.runtime.progress import Bar, wanted
from tacita.runtime.recording import Every
from tacita.runtime.world import World

#: What was measured in one round: numbers by metric, of several seeds an array.
Record = dict[str, Any]
OnRecord = Callable[[Record], Any]

#: Seconds that a chunk should take when somebody watches or a checkpoint is kept.
_CHUNK_SECONDS = 0.4
#: How often at most turns are looked at over a run.
_LOOKS = 60


class Chunks:
    """One run in progress. After `run`, its attributes tell what happened."""

    def __init__(
        self,
        plan: RunPlan,
        world: World,
        algorithm: Any,
        bases: Keys,
        tolerance: float,
        reference: Any,
        counts_turns: bool = False,
        on_record: OnRecord | None = None,
    ) -> None:
        self._fixed = (plan, world, algorithm, bases)
        self._limits = (tolerance, reference)
        self._plan = plan
        self._bases = bases
        self._counts_turns = counts_turns
        self._on_record = on_record
        self._folder: Path | None = None
        self._meter: Meter | None = None
        self._fingerprint = ""
        self._asked = 0
        self.metrics: list[np.ndarray] = []
        self.record_rounds: list[int] = []
        self.rounds = 0
        #: In how many rounds every agent was active up to some rounds.
        self.turn_rounds: list[int] = []
        self.turns: list[np.ndarray] = []
        self.seconds = 0.0
        self.first_seconds = 0.0
        self.stopped = False

    def keep_in(
        self, folder: Path, parts: Any, every: int, meter: Meter | None
    ) -> None:
        """Keep a checkpoint in `folder`, recognised by what decides the numbers.

        With a meter it says what a private run has spent so far.
        """
        self._meter = meter
        names = [name_of(item) for item in self._plan.record]
        self._folder = folder
        self._fingerprint = fingerprint(parts, every)
        self._fingerprint += ":" + ",".join(names)

    def run(
        self,
        carry: Any,
        rounds: int,
        recorded: Every,
        progress: bool | None,
        resume: bool,
    ) -> Any:
        """Do the rounds that are left and return the last carry."""
        self._asked, every = rounds, recorded.rounds
        if resume and self._folder is not None:
            carry = self._resume(carry, rounds, every)
        shown = wanted(progress) and processes.is_first()
        kept = self._folder is not None
        watched = shown or kept or self._on_record is not None
        # Only the first process has a terminal, and all must take the same steps.
        watched = bool(processes.agreed(watched))
        # A report of privacy shows how epsilon grew, so it looks at turns this often.
        look = -(-rounds // _LOOKS) if self._counts_turns else rounds
        if not self._plan.record and not self._plan.watch and not watched:
            every = look
        size, most = 1 if watched else CAPACITY, max(1, look // every)
        with Bar(shown, rounds, self.rounds, recorded.words) as bar:
            while self.rounds < rounds and not self.stopped:
                left = rounds - self.rounds
                # A run that goes on off the grid of records first returns to it.
                span = min(every - self.rounds % every, left)
                asked = max(1, min(size, most, left // span)) if span == every else 1
                asked = int(processes.agreed(asked))
                took, carry = self._chunk(carry, asked, span)
                bar.update(self.rounds, self._last("loss"))
                if self._folder is not None:
                    self._save(carry)
                self._tell()
                if watched:
                    size = self._next_size(size, took / asked)
        return carry

    def ended(self, carry: Any, whole: bool) -> Any:
        """What is left of a run, as one device would have it, however it is spread.

        Args:
            carry: What the last round left.
            whole: Whether every process wants all agents' states, or its own only.
        """
        spread = self._plan.spread
        if spread is None:
            return carry
        left = carry._replace(memory=(), mail=NOTHING)
        turns = spread.fetch(carry.turns, spread.cut)
        if whole:
            return spread.back(left, spread.specs_of_carry())
        return spread.own(left)._replace(turns=turns)

    def first(self, metric: str, carry: Any) -> np.ndarray:
        """A metric before the first round, of every lane, by the program of the run."""
        names = [name_of(item) for item in self._plan.record]
        _, book, _ = advance(
            *self._fixed, 0, carry, self._book(carry), 1, 0, *self._limits
        )
        return self._pages(book)[..., names.index(metric), 0]

    def _pages(self, book: jax.Array) -> np.ndarray:
        """What the program wrote, on this side."""
        spread = self._plan.spread
        if spread is None:
            return np.asarray(book)
        return spread.fetch(book, spread.spec_of_book)

    def _turns(self, carry: Any) -> np.ndarray:
        """In how many rounds every agent was active, by now."""
        spread = self._plan.spread
        if spread is None:
            return np.asarray(carry.turns)
        return spread.fetch(carry.turns, spread.cut)

    def _book(self, carry: Any) -> jax.Array:
        """Where the program writes metrics."""
        lanes = self._bases.agents.shape[:1] if self._plan.lanes else ()
        rows = len(self._plan.record)
        rows += np.size(carry.seen) if self._plan.watch else 0
        empty = np.zeros((*lanes, rows, CAPACITY))
        spread = self._plan.spread
        if spread is None:
            return jax.device_put(empty)  # compiles nothing
        # Keys have been filled up already.
        return spread.lay_whole(empty, spread.spec_of_book)

    def _chunk(self, carry: Any, records: int, every: int) -> tuple[float, Any]:
        began = time.perf_counter()
        with kept(*self._fixed, self._limits):
            carry, book, made = advance(
                *self._fixed,
                self.rounds,
                carry,
                self._book(carry),
                records,
                every,
                *self._limits,
            )
        made = int(made)
        self.metrics.append(self._pages(book)[..., :made])
        self.record_rounds += [self.rounds + every * (k + 1) for k in range(made)]
        self.rounds += every * made
        if self._counts_turns:
            self.turn_rounds.append(self.rounds)
            self.turns.append(self._turns(carry))
        self.stopped = made < records or self._reached()
        took = time.perf_counter() - began
        self.seconds += took
        self.first_seconds = self.first_seconds or took
        return took, carry

    def _tell(self) -> None:
        """Hand the records of the last chunk on, one by one."""
        made = self.metrics[-1]
        if self._on_record is None or not processes.is_first():
            return
        names = [name_of(item) for item in self._plan.record]
        rounds = self.record_rounds[len(self.record_rounds) - made.shape[-1] :]
        for place, number in enumerate(rounds):
            row: Record = {"round": number}
            for k, name in enumerate(names):
                value = made[..., k, place]
                row[name] = value.copy() if self._plan.lanes else float(value)
            self._on_record(row)

    def _reached(self) -> bool:
        if self._plan.stop is None or not self.metrics[-1].size:
            return False
        last = self.metrics[-1][..., self._plan.stop, -1]
        return bool(np.all(self._plan.enough(last, self._limits[0])))

    def _next_size(self, size: int, seconds_per_record: float) -> int:
        """Grow at most eightfold: the first chunk's time holds the compilation."""
        wanted = int(_CHUNK_SECONDS / max(seconds_per_record, 1e-9))
        return max(1, min(CAPACITY, 8 * size, wanted if size > 1 else 8))

    def _last(self, metric: str) -> float | None:
        names = [name_of(item) for item in self._plan.record]
        if metric not in names or not self.metrics[-1].size:
            return None
        return float(np.mean(self.metrics[-1][..., names.index(metric), -1]))

    def _save(self, carry: Any) -> None:
        spread = self._plan.spread
        own = carry if spread is None else spread.own(carry)
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(own)]
        metrics = np.concatenate(self.metrics, axis=-1)
        saved = Saved(
            self.rounds,
            leaves,
            metrics,
            np.array(self.record_rounds),
            self.seconds,
            np.array(self.turn_rounds),
            np.array(self.turns),
            self._spent(),
        )
        assert self._folder is not None
        names = tuple(name_of(item) for item in self._plan.record)
        told = Aim(self._asked, names, self._counts_turns)
        checkpoint.save(self._folder, saved, self._fingerprint, told)

    def _spent(self) -> dict[str, Any] | None:
        if self._meter is None:
            return None
        over = self.stopped or self.rounds >= self._asked
        return self._meter.read(self.rounds, self.turns[-1], self.seconds, over)

    def _resume(self, carry: Any, rounds: int, every: int) -> Any:
        assert self._folder is not None
        found = checkpoint.load(self._folder, self._fingerprint)
        common = checkpoint.latest_of_all([saved.rounds for saved in found])
        if not common:
            return carry
        (saved,) = (saved for saved in found if saved.rounds == common)
        if saved.rounds > rounds:
            check.refuse(
                f"the checkpoint in {self._folder} is at round {saved.rounds}, beyond "
                f"rounds={rounds}; ask for at least {saved.rounds} rounds, or choose "
                "another folder"
            )
        self.rounds, self.seconds = saved.rounds, saved.seconds
        self.turn_rounds, self.turns = saved.turn_rounds.tolist(), [*saved.turns]
        if self._meter is not None and saved.spent is not None:
            self._meter.reading = saved.spent
        # A last round off the grid was recorded because it was the last one.
        odd = saved.rounds < rounds and saved.rounds % every != 0
        kept = len(saved.record_rounds) - odd
        self.metrics = [saved.metrics[..., :kept]]
        self.record_rounds = saved.record_rounds[:kept].tolist()
        self.stopped = self._reached()
        structure, spread = jax.tree.structure(carry), self._plan.spread
        if spread is not None:
            return spread.put_own(jax.tree.unflatten(structure, saved.leaves))
        return jax.tree.unflatten(structure, map(jnp.asarray, saved.leaves))

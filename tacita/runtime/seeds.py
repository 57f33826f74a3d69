"""Where a run's randomness comes from: a seed, or for a private run a secret.

Two private runs of one seed have the same noise, so their difference has none; and
whoever knows the seed can subtract it. A private run therefore draws a seed from the
operating system and shows it to nobody, unless one is asked for.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tacita import check, keys
from tacita.compiled import kept
from tacita.mesh import processes
from tacita.runtime import checkpoint
from tacita.trace import SEED_ASKED_FOR, SEED_SECRET

#: Beside a checkpoint, for its owner only: without it a run cannot go on.
NAME = "seed.secret"
#: Leaves room to count upwards, for several seeds.
_BITS = 62


@dataclass(frozen=True, repr=False)
class Seeds:
    """The seeds of a run.

    Attributes:
        first: That of the run, or of its first lane.
        lanes: One per lane, or None for a run without lanes.
        private: Whether noise comes from them, so that they are not shown.
        asked: Whether somebody chose them.
    """

    first: int
    lanes: list[int] | None
    private: bool
    asked: bool

    def roots(self) -> keys.Keys:
        """The roots of all randomness, with a first axis over lanes, if any."""
        with kept():
            if self.lanes is None:
                return _root(np.int64(self.first))
            return _roots(np.asarray(self.lanes, np.int64))

    @property
    def settings(self) -> dict[str, Any]:
        """What the configuration of a run tells of them: nothing of a private one."""
        return {} if self.private else {"seed": self.first, "seeds": self.lanes}

    @property
    def told(self) -> int | str:
        """What a run says of its seed."""
        if not self.private:
            return self.first
        return SEED_ASKED_FOR if self.asked else SEED_SECRET

    def keep_in(self, folder: Path) -> None:
        """Keep a secret beside the checkpoint, for whoever goes on with the run."""
        if self.private and not self.asked and processes.is_first():
            words = str(self.first)
            checkpoint.write_whole(folder / NAME, lambda path: _write(path, words))


def seeds_of(
    private: bool,
    seed: int | None,
    seeds: Any = None,
    resumed: Path | None = None,
) -> Seeds:
    """The seeds that were asked for; else 0, or for a private run a fresh secret.

    Args:
        private: Whether the run is.
        seed: As in `tacita.simulate`.
        seeds: As there.
        resumed: The folder of the run to go on with, which holds its secret.
    """
    listed = None if seeds is None or _is_count(seeds) else _listed(seeds)
    asked = seed is not None or listed is not None
    if seed is not None:
        first = check.seed(seed=seed)
    elif listed is not None or not private:
        first = 0
    else:
        first = int(processes.agreed(_secret(resumed) if processes.is_first() else 0))
    lanes = listed
    if seeds is not None and listed is None:
        lanes = list(range(first, first + check.count(seeds=seeds)))
    return Seeds(first, lanes, private, asked)


# One program each, not one for every hash.
_root = jax.jit(keys.from_seed)
_roots = jax.jit(jax.vmap(keys.from_seed))


def _is_count(seeds: Any) -> bool:
    return isinstance(seeds, int | np.integer)


def _listed(seeds: Any) -> list[int]:
    if not np.iterable(seeds):
        check.refuse(f"expected seeds a whole number or a list, got seeds={seeds!r}")
    listed = [check.seed(seeds=s) for s in seeds]
    if not listed:
        check.refuse("seeds is empty; give a number or a list of seeds")
    return listed


def _secret(resumed: Path | None) -> int:
    """The secret of a run that is gone on with, or one from the operating system."""
    # Without its checkpoint nothing tells whether it is the same run that goes on.
    if resumed is None or not checkpoint.is_there(resumed):
        return secrets.randbits(_BITS)
    path = resumed / NAME
    if not path.exists():
        check.refuse(
            f"there is no {path}, so this private run cannot go on with its own "
            "noise; give the seed= that it was begun with, or delete the checkpoint"
        )
    words = path.read_text()
    if not words.isdecimal() or int(words) >> _BITS:
        check.refuse(f"{path} is damaged; delete it and the checkpoint beside it")
    return int(words)


def _write(path: Path, words: str) -> None:
    path.unlink(missing_ok=True)  # a file that others may read stays so
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(words)

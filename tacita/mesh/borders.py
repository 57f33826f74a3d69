"""What crosses from one device to another where agents on a graph are cut apart.

Letters are numbered through all agents, and a device has equally many of them, next to
each other. Which of its letters another device needs is known from the edges alone, so
that it is planned once; all others stay where they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita.mesh.places import AGENTS
from tacita.trees import frozen, static


@frozen
class Borders:
    """Which letters cross, in steps: every device sends to the k-th behind it.

    Neighbours with near numbers lie on the same or the next device, so that few steps
    are needed; in a step all devices send as many letters as the one with the most.

    Attributes:
        sent: By step, the letters that a device sends, (devices, most) int32 of those
            it has; filled up with its first.
        pairs: By step, who sends to whom.
        letters: How many cross in all, without what fills up.
    """

    sent: tuple[Any, ...]
    pairs: tuple[tuple[tuple[int, int], ...], ...] = static()
    letters: int = static()

    @property
    def padded(self) -> int:
        """How many are sent, with what fills up."""
        sizes = [np.shape(table)[1] for table in self.sent]
        return sum(
            len(pairs) * size for pairs, size in zip(self.pairs, sizes, strict=True)
        )

    def with_arrived(self, own: Array) -> Array:
        """A device's letters and behind them those that it needs of others.

        To be called inside the program of one device, whose `sent` are its own.
        """
        arrived = [
            jax.lax.ppermute(own[sent[0]], AGENTS, pairs)
            for sent, pairs in zip(self.sent, self.pairs, strict=True)
        ]
        return jnp.concatenate([own, *arrived]) if arrived else own


class Planned(NamedTuple):
    """What crosses, and where readers find it.

    Attributes:
        borders: What crosses.
        found: Where every letter that somebody reads lies among those of the reader's
            device and those that arrive there; in the order in which they were named.
    """

    borders: Borders
    found: np.ndarray


def planned(
    letters: np.ndarray, readers: np.ndarray, devices: int, here: int
) -> Planned:
    """Plan the crossings.

    Args:
        letters: The number of every letter that somebody reads, as often as it is read.
        readers: The device that reads it.
        devices: How many there are.
        here: Letters of each.
    """
    letters, readers = letters.astype(np.int64), readers.astype(np.int64)
    writers, found = letters // here, letters % here
    step = (readers - writers) % devices
    crosses = step > 0
    total = here * devices
    # By step and writer, then in their order; each once for all its readers there.
    code = (step * devices + writers)[crosses] * total + letters[crosses]
    needed, which = np.unique(code, return_inverse=True)
    pair = needed // total
    counts = np.bincount(pair, minlength=devices**2).reshape(devices, devices)
    rank = np.arange(len(needed)) - (np.cumsum(counts) - counts.ravel())[pair]
    most = counts.max(axis=1)
    first = here + np.cumsum(most) - most  # where the letters of a step arrive
    found[crosses] = (first[pair // devices] + rank)[which.ravel()]
    sent, pairs = [], []
    for k in np.flatnonzero(most):
        inside = pair // devices == k
        table = np.zeros((devices, most[k]), np.int32)
        table[pair[inside] % devices, rank[inside]] = needed[inside] % total % here
        sent.append(table)
        writing = np.flatnonzero(counts[k]).tolist()
        pairs.append(tuple((one, (one + int(k)) % devices) for one in writing))
    borders = Borders(sent=tuple(sent), pairs=tuple(pairs), letters=len(needed))
    return Planned(borders, found.astype(np.int32))

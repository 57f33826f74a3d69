"""What all parties of a secure sum know from the run's signed description."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacita import check
from tacita.aggregation.secure.grid import words_of
from tacita.aggregation.secure.plan import refuse_numbers
from tacita.check import refuse

#: Exchanges whose secrets are dealt at a time.
MOST_WINDOW = 64


def as_parts(*parts: bytes | str | int) -> tuple[bytes, ...]:
    """Text and numbers as parts of what is digested: numbers by their digits."""
    return tuple(p if isinstance(p, bytes) else str(p).encode() for p in parts)


@dataclass(frozen=True)
class Terms:
    """The agreement that a secure sum rests on.

    Attributes:
        run: Digest of the description.
        coordinator: Its name.
        signing: The Ed25519 public key of every agent of the run, by name.
        exchanges: How many exchanges the run has: rounds times phases.
        entries: Numbers in a letter.
        word: Bits of a number: 32 or 64.
        least: Fewest letters in a sum.
        colluding: How many agents may side with the coordinator.
        window: Exchanges whose secrets are dealt at a time.
        phases: Exchanges in a round.
    """

    run: str
    coordinator: str
    signing: Mapping[str, bytes]
    exchanges: int
    entries: int
    word: int
    least: int
    colluding: int = 0
    window: int = MOST_WINDOW
    phases: int = 1

    def __post_init__(self) -> None:
        for name in ("exchanges", "entries", "least", "window", "phases"):
            check.count(**{name: getattr(self, name)})
        check.count(0, colluding=self.colluding)
        check.between(1, MOST_WINDOW)(window=self.window)
        words_of(self.word)
        agents = len(self.signing)
        refuse_numbers(agents, self.least, self.colluding)
        if self.coordinator in self.signing:
            refuse(f"the coordinator {self.coordinator!r} is no agent; name another")
        if len(set(self.signing.values())) != agents:
            refuse("two agents have the same public key; give each one of its own")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The agents, in the order in which letters list them."""
        return tuple(sorted(self.signing))

    @property
    def word_type(self) -> np.dtype:
        """Of the words of a letter."""
        return np.dtype(words_of(self.word)[0])

    @property
    def set_bytes(self) -> int:
        """Length of a set of agents in a letter."""
        return -(-len(self.names) // 8)

    def pack(self, chosen: Iterable[str]) -> bytes:
        """A set of agents as bits."""
        places = {name: place for place, name in enumerate(self.names)}
        bits = sum(1 << places[name] for name in set(chosen))
        return bits.to_bytes(self.set_bytes, "little")

    def unpack(self, content: bytes) -> tuple[str, ...]:
        """A set of agents, in order, out of its bits."""
        bits = int.from_bytes(content, "little")
        if bits >> len(self.names):
            refuse("a set names agents that are not of this run")
        return tuple(name for k, name in enumerate(self.names) if bits >> k & 1)

    def width(self, start: int) -> int:
        """Exchanges of a window that begins with exchange `start`."""
        return min(self.window, self.exchanges - start)

    def round_and_phase(self, exchange: int) -> tuple[int, int]:
        """Where in the run an exchange stands."""
        return divmod(exchange, self.phases)

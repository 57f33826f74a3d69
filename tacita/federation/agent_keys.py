"""The keys of an agent's noise: of a simulation, or out of a secret of its own.

Own keys are bound to the question. An agent that is put back to an earlier state and
asked again, with another broadcast, draws other noise: the difference of the two
letters hides as much as each of them, where the same noise would cancel.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np
from jax import Array

from tacita import keys
from tacita.federation.draws import derive, key_for
from tacita.federation.receipts import When
from tacita.runtime import secret_noise

#: Compiled, for an agent derives a key in every exchange.
_agent_key = jax.jit(keys.agent_key)


class AgentKeys(Protocol):
    """What an agent draws with."""

    def draw(self, number: int) -> Array:
        """Of the draw whether it answers in a round."""
        ...

    def noise(self, number: int, phase: int, history: str) -> Array:
        """Of one exchange, after these questions."""
        ...

    def rule(self, number: int) -> Array:
        """Of the rule that joins neighbours' letters in a round, on a graph."""
        ...

    def sum_secret(self) -> bytes:
        """The root of what an agent hides in secure sums; kept for the run."""
        ...

    def sum_context(self, context: bytes, number: int, phase: int, told: Any) -> bytes:
        """What the noise of a letter in a secure sum is bound to."""
        ...

    def of_rows(self) -> bytes:
        """What tells rows from others, and nothing of them."""
        ...


@dataclass(frozen=True)
class SharedKeys:
    """Those of a simulation: whoever has the seed can compute them."""

    secret: Array

    def draw(self, number: int) -> Array:
        """No agent has a round 0, so that key serves for the draws."""
        return jax.random.fold_in(keys.agent_key(self.secret, 0, 0), number)

    def noise(self, number: int, phase: int, history: str) -> Array:
        """As in a simulation."""
        return _agent_key(self.secret, number, phase)

    def rule(self, number: int) -> Array:
        """As in a simulation: that of a second exchange, which no graph has."""
        return _agent_key(self.secret, number, 1)

    def sum_secret(self) -> bytes:
        """As in a simulation one agent at a time."""
        return secret_noise.key_bytes(self.secret)

    def sum_context(self, context: bytes, number: int, phase: int, told: Any) -> bytes:
        """A simulation knows no rosters."""
        return secret_noise.context_of(number, phase, told)

    def of_rows(self) -> bytes:
        """Keys of a simulation are of no rows."""
        return b""


@dataclass(frozen=True, repr=False)
class OwnKeys:
    """From a secret that nobody else has.

    Attributes:
        root: 32 bytes for this run and these rows.
    """

    root: bytes

    def draw(self, number: int) -> Array:
        """The same however often the round is asked: a second draw would be news."""
        return key_for(self.root, f"draw {number}")

    def noise(self, number: int, phase: int, history: str) -> Array:
        """Of this very question, and all those before it."""
        return key_for(self.root, f"noise {number} {phase} {history}")

    def rule(self, number: int) -> Array:
        """Which letters share a group, say, is for nobody else to know."""
        return key_for(self.root, f"rule {number}")

    def sum_secret(self) -> bytes:
        """Fresh: whoever finds it later could read letters that were recorded."""
        return os.urandom(32)

    def sum_context(self, context: bytes, number: int, phase: int, told: Any) -> bytes:
        """Run, roster, exchange and question."""
        return context

    def of_rows(self) -> bytes:
        """The root is of these very rows, and so is what follows from it."""
        return derive(self.root, "rows")


def next_history(history: str, when: When, asked: Sequence[np.ndarray]) -> str:
    """What was asked so far and when, this question included, as one digest.

    An agent's state follows from all questions and from the noise of their rounds, so
    the last one alone is not enough: the same question after another one, or after the
    same one in another round, would find the same noise under another state.
    """
    number, phase = when
    words = f"{history} {number} {phase}"
    digest = hashlib.blake2b(words.encode(), digest_size=32)
    for array in asked:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()

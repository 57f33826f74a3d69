"""What parties draw: keys out of a secret of their own, or of a seed that all share.

Noise that others can compute is no noise. An agent's comes from its own secret, and so
does the coordinator's where an algorithm has it add some, as `ClientDPFedAvg` does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jax import Array

from tacita import keys
from tacita.federation.chacha_keys import chacha_key
from tacita.federation.party import bytes_of


def derive(secret: bytes, purpose: str, length: int = 32) -> bytes:
    """A secret for one purpose, which says nothing about the others."""
    return hashlib.blake2b(purpose.encode(), key=secret, digest_size=length).digest()


def key_for(secret: bytes, purpose: str) -> Array:
    """The key of a cryptographic generator, for one purpose."""
    return chacha_key(derive(secret, purpose))


class Draws(Protocol):
    """The coordinator's randomness, the same again after a crash."""

    def schedule(self, number: int) -> Array:
        """The key that decides whom it asks in a round."""
        ...

    def rule(self, number: int, phase: int) -> Array:
        """The key of the rule that joins the letters of an exchange."""
        ...

    def noise(self, number: int, phase: int, joint: Sequence[np.ndarray]) -> Array:
        """The key of what it adds to the joint letter of an exchange."""
        ...


@dataclass(frozen=True)
class SharedDraws:
    """Those of a simulation: whoever has the seed can compute them."""

    base: keys.Keys

    def schedule(self, number: int) -> Array:
        """As in a simulation."""
        return keys.schedule_key(self.base, number)

    def rule(self, number: int, phase: int) -> Array:
        """As in a simulation, where one key serves rule and noise."""
        return keys.coordinator_key(self.base, number, phase)

    def noise(self, number: int, phase: int, joint: Sequence[np.ndarray]) -> Array:
        """As in a simulation."""
        return self.rule(number, phase)


@dataclass(frozen=True, repr=False)
class OwnDraws:
    """From a secret that nobody else has.

    Noise is drawn for this very letter: if a folder is restored from a backup and other
    agents answer, the round's sum differs, and so does its noise; the same noise under
    two sums would cancel.
    """

    secret: bytes

    def schedule(self, number: int) -> Array:
        """Who takes part stays secret: bounds on whole clients count on that."""
        return key_for(self.secret, f"schedule {number}")

    def rule(self, number: int, phase: int) -> Array:
        """Of the exchange."""
        return key_for(self.secret, f"rule {number} {phase}")

    def noise(self, number: int, phase: int, joint: Sequence[np.ndarray]) -> Array:
        """Of the exchange, and of the letter that it is added to."""
        letter = hashlib.sha256(bytes_of(joint)).hexdigest()
        return key_for(self.secret, f"noise {number} {phase} {letter}")

"""Masks that hide a letter and cancel in the sum (K. Bonawitz and others, CCS 2017).

    y_i = x_i + PRG(self_i) + sum_{j > i} PRG(s_ij) - sum_{j < i} PRG(s_ij)   mod 2^word

s_ij is known to agents i and j alone, self_i to agent i alone. What is added by i is
subtracted by j, so the sum over a set U is that of the x_i and the self masks, which
are opened, and of masks towards agents that are missing, which their keys open. All
masks depend on a context: letters of different contexts do not cancel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from tacita.aggregation.secure.derive import derive, digest
from tacita.aggregation.secure.shares import SECRET_BYTES
from tacita.aggregation.secure.terms import as_parts

#: An agent's two secrets of an exchange: behind its pairs' masks, behind its own.
KEY, SELF = "key", "self"
#: Bytes of a stream that are made at a time: what fits into the cache of a core.
_BLOCK = 1 << 16
_ZEROS = bytes(_BLOCK)


def round_secret(
    agent_secret: bytes, what: str, run: str, attempt: int, exchange: int
) -> bytes:
    """The secret behind an agent's pair masks (`KEY`) or self mask (`SELF`)."""
    parts = as_parts("secret", what, run, attempt, exchange)
    return derive(agent_secret, *parts)[:SECRET_BYTES]


def private_key(secret: bytes) -> X25519PrivateKey:
    """The X25519 key behind an agent's pair masks."""
    return X25519PrivateKey.from_private_bytes(derive(secret, b"x25519"))


def public_key(secret: bytes) -> bytes:
    """What others are told of a `KEY` secret."""
    return private_key(secret).public_key().public_bytes_raw()


def commitment(secret: bytes) -> bytes:
    """What others are told of a `SELF` secret."""
    return hashlib.sha256(secret).digest()


def shared(secret: bytes, publics: Mapping[str, bytes]) -> dict[str, bytes]:
    """What an agent and each of the others alone know; a low-order key is refused.

    Raises:
        ValueError: A public key is of low order.
    """
    own = private_key(secret)
    return {
        name: own.exchange(X25519PublicKey.from_public_bytes(public))
        for name, public in publics.items()
    }


def pair_seed(common: bytes, context: bytes) -> bytes:
    """The key of a pair's mask, of what the two share."""
    return derive(common, b"pair", context)


def self_seed(secret: bytes, context: bytes) -> bytes:
    """The key of an agent's own mask."""
    return derive(secret, b"self", context)


def context_of(
    run: str, roster: bytes, round_number: int, phase: int, question: bytes
) -> bytes:
    """What an answer's masks and noise are bound to.

    Args:
        run: Digest of the run's description.
        roster: Digest of the roster.
        round_number: Of the run.
        phase: Which exchange of the round.
        question: SHA-256 of what was asked.
    """
    return digest(*as_parts(run, roster, round_number, phase, question))


def add_pair_masks(
    total: np.ndarray, name: str, commons: Mapping[str, bytes], context: bytes
) -> None:
    """Add what agent `name` adds towards others.

    Args:
        total: Unsigned words, changed in place.
        name: One end of all these pairs.
        commons: What it shares with the other end, by that one's name.
        context: What the masks are bound to.
    """
    for other, common in commons.items():
        # Without the names a copied public key would make two masks cancel in a letter.
        low, high = sorted((name, other))
        seed = pair_seed(common, digest(*as_parts(context, low, high)))
        add_words(total, seed, 1 if name < other else -1)


def add_words(total: np.ndarray, key: bytes, sign: int) -> None:
    """Add the ChaCha20 stream of a key, or subtract it, in place.

    Args:
        total: Unsigned words; sums wrap around.
        key: 32 bytes, used for nothing else.
        sign: 1 or -1.

    >>> total = np.zeros(2, np.uint32)
    >>> add_words(total, bytes(range(32)), 1)
    >>> [int(word) for word in total]
    [2100034873, 1780073945]
    """
    cipher = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    change = np.add if sign > 0 else np.subtract
    room = bytearray(min(_BLOCK, total.nbytes))
    stream = np.frombuffer(room, total.dtype.newbyteorder("<"))
    for begin in range(0, total.size, _BLOCK // total.itemsize):
        part = total[begin : begin + _BLOCK // total.itemsize]
        cipher.update_into(memoryview(_ZEROS)[: part.nbytes], room)
        change(part, stream[: part.size], out=part)


def masked(
    letter: np.ndarray,
    name: str,
    self_secret: bytes,
    commons: Mapping[str, bytes],
    context: bytes,
) -> np.ndarray:
    """An agent's answer: its letter under its own mask and those of all its pairs."""
    total = letter.copy()
    add_words(total, self_seed(self_secret, context), 1)
    add_pair_masks(total, name, commons, context)
    return total


def unmasked(
    total: np.ndarray,
    self_secrets: Iterable[bytes],
    missing: Mapping[str, Mapping[str, bytes]],
    context: bytes,
) -> np.ndarray:
    """The sum of the letters out of the sum of the answers.

    Args:
        total: The sum of the answers of the agents in U.
        self_secrets: Of the agents in U.
        missing: What each missing agent shares with every agent in U, by their names.
        context: What the masks are bound to.
    """
    result = total.copy()
    for secret in self_secrets:
        add_words(result, self_seed(secret, context), -1)
    for name, commons in missing.items():
        # U added the opposite of what the missing one would have added.
        add_pair_masks(result, name, commons, context)
    return result

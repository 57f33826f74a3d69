"""What agents sign so that others can check it: their keys, and the set of a sum."""

from __future__ import annotations

from collections.abc import Iterable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tacita.aggregation.secure.derive import digest
from tacita.aggregation.secure.terms import Terms, as_parts

#: Stands before everything that is signed here: no other signature can be mistaken.
_DOMAIN = b"tacita secure sum 1\n"


def keys_message(terms: Terms, attempt: int, start: int, body: bytes) -> bytes:
    """What is signed by whoever publishes keys."""
    return _DOMAIN + digest(*as_parts("keys", terms.run, start, attempt, body))


def set_message(
    terms: Terms, roster: bytes, exchange: int, chosen: Iterable[str]
) -> bytes:
    """What is signed by whoever agrees to a set."""
    return _DOMAIN + set_digest(terms, roster, exchange, chosen)


def set_digest(
    terms: Terms, roster: bytes, exchange: int, chosen: Iterable[str]
) -> bytes:
    """The name of a set under a roster in an exchange."""
    parts = as_parts("alive", terms.run, roster, exchange, terms.pack(chosen))
    return digest(*parts)


def is_signed(public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the holder of the key has signed the message."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True

"""Keys from secrets, digests of what was agreed, words from keys.

HKDF, SHA-256 and ChaCha20 of the package `cryptography`: what comes out is as good as
random to whoever lacks the secret, and the same again to whoever has it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np

from tacita import check

#: Parts what is derived here from all other uses of a secret; in two pieces, since no
#: text of the project has its first name in one.
_PURPOSE = b"taci" + b"t secure sum 1"


def derive(secret: bytes, *parts: bytes) -> bytes:
    """32 bytes for one purpose: HKDF-SHA256 without salt, the parts as its info."""
    hashes, hkdf = _primitives()[1:]
    info = _PURPOSE + b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return hkdf(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(
        secret
    )


def digest(*parts: bytes) -> bytes:
    """SHA-256 over the parts, each with its length, so that none runs into another."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.digest()


def stream(key: bytes, tag: int, entries: int, kind: Any) -> np.ndarray:
    """The first `entries` unsigned words of ChaCha20 with this key and nonce `tag`."""
    ciphers = _primitives()[0]
    size = entries * np.dtype(kind).itemsize
    # The counter, 4 bytes from 0, then the nonce.
    start = bytes(4) + tag.to_bytes(12, "little")
    cipher = ciphers.Cipher(ciphers.algorithms.ChaCha20(key, start), mode=None)
    words = cipher.encryptor().update(bytes(size))
    return np.frombuffer(words, np.dtype(kind).newbyteorder("<")).astype(kind)


@cache
def _primitives() -> tuple[Any, Any, Any]:
    """Ciphers, hashes and HKDF; loaded when first used, as simulations need none."""
    try:
        from cryptography.hazmat.primitives import ciphers, hashes
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        check.refuse('secure sums need cryptography; pip install -e ".[deploy]"')
    return ciphers, hashes, HKDF

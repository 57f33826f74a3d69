"""What the noise of a secure sum is a function of: an agent's secret and a context.

`debug` and a federation with a shared seed use these, and get the same integers.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from tacita import keys
from tacita.aggregation.secure.derive import digest


def secret_bytes(base: keys.Keys, agent: int) -> bytes:
    """Agent i's secret in a run of a shared seed."""
    return key_bytes(keys.agent_secret(base, agent))


def key_bytes(key: jax.Array) -> bytes:
    """A key of JAX's as bytes."""
    return np.asarray(jax.random.key_data(key)).astype("<u4").tobytes()


def context_of(
    number: int, phase: int, question: Any, run: bytes = b"", roster: bytes = b""
) -> bytes:
    """Digest of run, roster, round, phase and question.

    Agents who were asked different things have different noises, and masks.
    """
    parts = (b"%d" % number, b"%d" % phase, question_digest(question))
    return digest(run, roster, *parts)


def question_digest(question: Any) -> bytes:
    """Digest of all numbers of a broadcast, their kinds and shapes."""
    parts = []
    for leaf in jax.tree.leaves(question):
        array = np.asarray(leaf)
        whole = array.astype(array.dtype.newbyteorder("<"))
        parts += [f"{array.dtype.name}{array.shape}".encode(), whole.tobytes()]
    return digest(*parts)

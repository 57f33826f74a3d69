"""Several processes, on one machine or on many, as one set of devices.

They find each other at the first process and exchange letters directly. Neither is
encrypted or guarded: between machines this is for a private network, and for data that
is one's own. Parties that keep their rows to themselves are a federation's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from tacita import check
from tacita.processor import share_threads

#: Seconds after which a process that says nothing counts as dead.
SILENCE = 20
#: How the collectives of CPUs and GPUs tell that somebody is gone.
_LOST = re.compile("gloo|nccl|connection|peer|heartbeat|unavailable", re.IGNORECASE)
#: Some of it comes as a ValueError: a code, and who says it.
_LOST_VALUE = re.compile("^[A-Z_]+: (Gloo|NCCL) ")
_LOOPBACK = ("127.0.0.1", "localhost")


def use_processes(
    coordinator: str, process: int, of: int, *, here: int = 1, patience: int = 120
) -> None:
    """Make this process one of several that run the same program.

    To be called before anything uses JAX, in every process with the same program.

    Args:
        coordinator: "HOST:PORT" at which the first process can be reached.
        process: Which one this is; the first is 0.
        of: How many there are.
        here: How many of them share this machine, or what of it a scheduler gave
            them; each takes its part of the cores.
        patience: Seconds to wait for the others.
    """
    host, port = address(coordinator)
    of = check.count(of=of)
    process = check.count(0, process=process)
    here = check.count(here=here)
    if process >= of:
        check.refuse(f"expected process below of={of}, got process={process}")
    if of == 1:
        return
    try:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(
            f"{host}:{port}",
            num_processes=of,
            process_id=process,
            initialization_timeout=patience,
            heartbeat_timeout_seconds=SILENCE,
            shutdown_timeout_seconds=SILENCE,
            # Otherwise it would listen to every network that the machine is in.
            coordinator_bind_address=f"{host}:{port}" if host in _LOOPBACK else None,
        )
    except RuntimeError as error:
        if "before" in str(error) or "once" in str(error):
            check.refuse(
                "JAX has started already; call tacita.use_processes before anything "
                "else uses it, and once"
            )
        check.refuse(
            f"not all of {of} processes came together at {coordinator} within "
            f"{patience} s; start all of them, and check that the address can be "
            "reached"
        )
    # With all cores each, their threads would wait for each other's. They may run on
    # any core: gloo's own thread, tied to one, would take it from the work.
    share_threads(here)


def address(text: str) -> tuple[str, int]:
    """Host and port of "HOST:PORT".

    >>> address("node-1:1234")
    ('node-1', 1234)
    """
    found = re.fullmatch(r"([\w.-]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", text)
    if found is None or not 0 < int(found[2]) < 65536:
        check.refuse(f"expected coordinator HOST:PORT, got coordinator={text!r}")
    return found[1], int(found[2])


class PeerLostError(check.TacitaError):
    """Another process of a run ended, or cannot be reached any more."""


@contextmanager
def guarded() -> Iterator[None]:
    """What JAX says when another process is gone, in one line."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        words = _LOST_VALUE if isinstance(error, ValueError) else _LOST
        if jax.process_count() == 1 or not words.search(str(error)):
            raise
        raise PeerLostError(
            "another process of this run ended or cannot be reached; start all of "
            "them again, with resume"
        ) from None


def is_first() -> bool:
    """Whether this process speaks for all: the only one, or the first."""
    return jax.process_index() == 0


def agreed(value: Any) -> np.ndarray:
    """The first process's numbers, in every process."""
    if jax.process_count() == 1:
        return np.asarray(value)
    return np.asarray(multihost_utils.broadcast_one_to_all(np.asarray(value)))


def everybodys(value: Any) -> np.ndarray:
    """Every process's numbers, stacked."""
    if jax.process_count() == 1:
        return np.asarray(value)[None]
    return np.asarray(multihost_utils.process_allgather(np.asarray(value)))

"""What the processor of this machine can, and how much of it is ours."""

from __future__ import annotations

import functools
import os
import platform
import re
from pathlib import Path

#: How XLA is told, before it starts, how many threads large operations may use: by the
#: first of these variables that is a number.
THREADS = ("PJRT_NPROC", "NPROC")


@functools.cache
def abilities() -> str:
    """What it can, in words of its own, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = [platform.processor()]
    able = [line for line in lines if line.lower().startswith(("flags", "features"))]
    return (able or lines or [""])[0]


def cores_here() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_here() -> int:
    """The threads that XLA takes for the inside of large operations."""
    told = _threads_told()
    return cores_here() if told is None else told


def share_threads(here: int) -> None:
    """Let XLA take a part of the cores, unless the user has told it how many.

    Without a thread XLA's processes could not find each other, and would abort.

    Args:
        here: Processes that share the cores.
    """
    if not _threads_told():
        os.environ[THREADS[0]] = str(max(1, cores_here() // here))


def _threads_told() -> int | None:
    """What XLA was told, as it reads it: no number is nothing."""
    for name in THREADS:
        told = os.environ.get(name, "")
        if re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", told):
            return max(0, int(told))
    return None

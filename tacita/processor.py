"""What the processor of this machine can, and how much of it is ours."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path

#: How XLA is told, before it starts, how many threads large operations may use.
THREADS = "NPROC"


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
    told = os.environ.get(THREADS, "")
    return int(told) if told.isdecimal() and int(told) > 0 else cores_here()

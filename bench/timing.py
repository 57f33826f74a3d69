"""Timing side by side: medians of repeated pieces of work, taken in turns.

Contestants are measured in turns within one process, so that a busy machine slows all
of them alike; what is reported are ratios.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def in_turns(
    contestants: dict[str, Callable[[], None]], repeats: int, per_call: int = 1
) -> dict[str, float]:
    """Median seconds per unit of work; every contestant is warmed up twice first.

    Args:
        contestants: Work by name; a call does `per_call` units (rounds).
        repeats: How many timed calls each.
        per_call: Units of work in one call.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for work in contestants.values():
        work()
        work()
    for _ in range(repeats):
        for name, work in contestants.items():
            began = time.perf_counter()
            work()
            times[name].append((time.perf_counter() - began) / per_call)
    return {name: statistics.median(values) for name, values in times.items()}


def table(title: str, seconds: dict[str, float], against: str) -> str:
    """Lines of milliseconds and ratios to one contestant."""
    lines = [title]
    for name, value in seconds.items():
        ratio = value / seconds[against]
        lines.append(f"  {name:<34}{value * 1e3:>10.3f} ms {ratio:>8.2f} x {against}")
    return "\n".join(lines)

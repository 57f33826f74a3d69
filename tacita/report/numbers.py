"""Numbers for people: four digits, thousands apart, bytes in units."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacita.trace import over_seeds
from tacita.trace.measures import is_share

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
#: Wide enough to part thousands, and never a place to break a line.
_GAP = "\N{NO-BREAK SPACE}"


def whole(value: Any) -> str:
    """A count with its thousands apart.

    >>> whole(1234567).replace(_GAP, " ")
    '1 234 567'
    """
    return f"{int(value):,}".replace(",", _GAP)


def real(value: float) -> str:
    """A number with four significant digits.

    >>> real(0.000123456), real(12.3456), real(float("nan"))
    ('0.0001235', '12.35', 'nan')
    """
    return f"{float(value):.4g}"


def spoken(value: float) -> str:
    """A large number as people say it.

    >>> [spoken(v).replace(_GAP, " ") for v in (123.4, 5.7e8, 2e16)]
    ['123', '570 million', '20 000 trillion']
    """
    names = ("", "thousand", "million", "billion", "trillion")
    power = min(int(math.log10(max(value, 1))) // 3, len(names) - 1)
    leading = value / 1000**power
    digits = whole(round(leading)) if leading >= 100 else f"{leading:.3g}"
    return digits + (_GAP + names[power] if power else "")


def share(value: float) -> str:
    """A share in per cent."""
    return f"{100 * value:.1f}{_GAP}%" if math.isfinite(value) else real(value)


def measured(metric: str, value: float) -> str:
    """The value of a metric: accuracies in per cent."""
    return share(value) if is_share(metric) else real(value)


def spread(metric: str, values: np.ndarray) -> str:
    """A metric over seeds: the median, and the lowest and highest of several.

    >>> spread("loss", np.array([3.0, math.nan, 1.0]))
    '2 (1 to 3; 1 of 3 seeds diverged)'
    """
    table = values[:, None]
    middle, low, high = (
        measured(metric, float(over_seeds.of_seeds(table, statistic)[0]))
        for statistic in (np.nanmedian, np.nanmin, np.nanmax)
    )
    if len(values) == 1:
        return middle
    lost = over_seeds.told(over_seeds.astray(table))
    return f"{middle} ({low} to {high}" + (f"; {lost})" if lost else ")")


def size(n_bytes: float) -> str:
    """Bytes in decimal units.

    >>> [size(n).replace(_GAP, " ") for n in (12, 4096, 31_500_000)]
    ['12 B', '4.1 kB', '31.5 MB']
    """
    power = 0
    while n_bytes >= 1000 and power < len(_UNITS) - 1:
        n_bytes, power = n_bytes / 1000, power + 1
    shown = f"{n_bytes:.0f}" if power == 0 else f"{n_bytes:.1f}"
    return f"{shown}{_GAP}{_UNITS[power]}"


def seconds(value: float) -> str:
    """A duration, with more digits the shorter it is."""
    if value >= 100:
        return f"{value / 60:.1f}{_GAP}min"
    return f"{value:.2g}{_GAP}s" if value < 10 else f"{value:.0f}{_GAP}s"


def plain(value: Any) -> str:
    """Any value of a configuration in one line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, float):
        return real(value)
    if isinstance(value, list | tuple):
        shown = ", ".join(plain(v) for v in value[:8])
        return shown if len(value) <= 8 else f"{shown}, ... ({len(value)} in all)"
    return str(value)

"""Which dialect a program speaks; another one is refused, never guessed at."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from tacita.check import refuse

#: Raised whenever letters, descriptions, rosters, checkpoints or the numbers that a
#: round computes change: two programs with the same number may take part in one run.
PROTOCOL = 3


def require_protocol(told: Any, what: str) -> None:
    """Refuse what a program of another protocol has made.

    >>> require_protocol(3, "the run")
    >>> require_protocol(7, "the run")
    Traceback (most recent call last):
    tacita.check.TacitaError: the run speaks protocol 7, this program (tacita 0.1.0) speaks 3; use the same version everywhere
    """  # noqa: E501
    if type(told) is not int or told != PROTOCOL:
        shown = str(told)[:20]
        refuse(
            f"{what} speaks protocol {shown}, this program (tacita "
            f"{version('tacita')}) speaks {PROTOCOL}; use the same version everywhere"
        )

"""What an algorithm's letters are, and what may join them besides their plain mean.

Said once by every algorithm; the runtime, federations, secure sums and refusals read
it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from tacita import check

#: Why algorithms that average the last letters of all agents have no secure sum.
NOISE_WEARS_OFF = (
    "it averages the last letters of all agents, and later rounds would wear off the "
    "noise of those who are silent"
)
#: Why those have none that are made for late letters.
COUNTED_BY_AGE = "its letters count by their age, and a sum shows no single one"
#: Why those on a graph have none.
NO_COORDINATOR = "it has no coordinator who adds letters up"


class Around(StrEnum):
    """What honest letters lie around: the centre of a robust rule."""

    BROADCAST = "broadcast"  # models
    OWN = "own"  # models of neighbours: a node's own
    ZERO = "zero"  # gradients, changes


class Rules(StrEnum):
    """Which rules may join letters besides the mean."""

    ANY = "any"
    #: Those in which a letter counts for no more than a bound. The coordinator adds
    #: noise to what they say, also where nobody is heard.
    BOUNDED = "bounded"
    #: Corrections, duals, masked parts: their mean must be exact.
    NONE = "none"


class Joining(NamedTuple):
    """How letters may be joined.

    Attributes:
        around: What honest letters lie around.
        rules: Which rules may join them besides the mean.
        no_sum: Why no secure sum may, told where one is refused; None where one may:
            the algorithm then has `increment` and `joined`.
    """

    around: Around = Around.ZERO
    rules: Rules = Rules.NONE
    no_sum: str | None = "nobody has shown what a sum of its letters reveals"

    def centre(self, broadcast: Any) -> Any:
        """What honest letters to a coordinator lie around; None for zero."""
        return broadcast if self.around == Around.BROADCAST else None

    def least(self, rule: Any) -> int:
        """The fewest letters with which a round says anything new.

        None need be there for noise of the coordinator's: its absence would tell that
        nobody took part.
        """
        return 0 if self.rules == Rules.BOUNDED else rule.least

    def refuse(self, name: str, rule: Any) -> None:
        """Refuse, in one line, a rule that may not join letters of the algorithm."""
        if self.rules == Rules.ANY or rule.additive:
            return
        if self.rules == Rules.NONE:
            check.refuse(
                f"{name} needs the exact mean of its letters, whose corrections must "
                "cancel; leave aggregation out, or use FedAvg, FedProx or ServerGD"
            )
        if rule.bound is None:
            check.refuse(
                f"the coordinator of {name} adds its noise to what a rule says, and "
                "no number bounds what one letter does to this one; leave aggregation "
                "out, or use NormBound(radius=...) or CenteredClipping(radius=..., "
                "steps=1)"
            )

"""Noise of exact integers, accounted: which real Gaussian it is as good as.

What rows add to a letter is rounded to a grid and gets a discrete Gaussian of standard
deviation s = `integer_noise.SPREAD` steps. That is a sum of one letter, h = 1 of
docs/proof-secure-sums.md: a function of a real Gaussian release with

    noise  = step sqrt(s^2 - 4),   change = Delta (1 + slack) + step sqrt(d),

and so as good as noise  Delta step sqrt(s^2 - 4)/change  beside a change of Delta.
Whatever is computed from such releases costs nothing more. Theorems that count on the
noise of others, or on noise of earlier steps that nobody saw, are about real numbers:
with integers they are not used.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from tacita.aggregation.secure.plan import SMOOTHING, change_in_steps, slack_of
from tacita.algorithm.wrapper import Wrapper
from tacita.integer_noise import SPREAD
from tacita.privacy.accounting.guarantee import Guarantee, believed, enforced
from tacita.privacy.noisy import Noisy
from tacita.privacy.scope import Relation
from tacita.problem.quantised import inside, unquantised
from tacita.trees import replace

_THEOREM = (
    "integers with discrete Gaussian noise are a function of a real Gaussian release "
    "(docs/proof-secure-sums.md, h = 1), but for less than 1e-20 of delta; "
)
_ROWS = believed("a row's gradient depends on its row and the question alone")
#: Of letters in which rows were added to what is no part of the release.
_REAL_STEPS = believed(
    "local steps round as real numbers do, what is received being bounded"
)


def rounding_of(rows: int, entries: int, relation: Relation) -> float:
    """What double precision adds to a change, relatively.

    The mean of the rows, as in `slack_of`; the norm that is clipped to, off by half an
    ulp for every entry; weights, step sizes and steps of a grid that is no power of
    two, linear in the rows.
    """
    emptied = relation == Relation.ADD_REMOVE
    linear = entries + (8 if emptied else 4) * rows + 9
    return slack_of(rows, emptied) + linear * 2.0**-53


def noise_kind_of(algorithm: Any) -> str:
    """The kind of the noise that an algorithm has, or its oracle."""
    if _noise_of_oracle(algorithm):
        return unquantised(algorithm.oracle).noise_kind
    return algorithm.noise_kind


def of_kind(algorithm: Any, kind: str) -> Any:
    """The same algorithm with noise of this kind."""
    if isinstance(algorithm, Wrapper):
        return replace(algorithm, algorithm=of_kind(algorithm.algorithm, kind))
    if _noise_of_oracle(algorithm):
        change = partial(replace, noise_kind=kind)
        return replace(algorithm, oracle=inside(algorithm.oracle, change))
    if algorithm.noise_kind == kind:
        return algorithm
    return replace(algorithm, noise_kind=kind)


def _noise_of_oracle(algorithm: Any) -> bool:
    """Whether the noise that is accounted is in gradients, not the algorithm's own."""
    inner = algorithm
    while isinstance(inner, Wrapper):
        inner = inner.algorithm
    own = any(field.name == "noise_std" for field in fields(inner))
    return isinstance(unquantised(inner.oracle), Noisy) and not own


def has_integers(algorithm: Any) -> bool:
    """Whether the noise of an algorithm, or of its oracle, is exact integers."""
    return noise_kind_of(algorithm) == "integers"


@dataclass(frozen=True)
class Release:
    """One release of something that rows add, with noise.

    Attributes:
        integers: Whether the noise is exact integers; floats are taken for reals.
        change: By one unit, in l2 norm, at most.
        entries: Numbers in it.
        rows: In the mean that floating point rounds.
        relation: How neighbouring data differ.
        carried: Whether rows were added to a model before the noise, whose digits are
            rounded with them: one that was received, or that of a local step before.
    """

    integers: bool
    change: float
    entries: int
    rows: int
    relation: Relation
    carried: bool = False

    def hidden_by(self, std: float) -> float:
        """The real Gaussian noise that noise of this size is as good as."""
        if not self.integers:
            return std
        slack = rounding_of(self.rows, self.entries, self.relation)
        steps = change_in_steps(self.change, std / SPREAD, self.entries, slack)
        return self.change * (SPREAD**2 - SMOOTHING) ** 0.5 / steps

    def noted(self, one: Guarantee, std: float) -> Guarantee:
        """What a guarantee rests on, if the noise is integers."""
        if not self.integers:
            return one
        grid = enforced(
            f"what rows add is rounded to a grid of step {std / SPREAD:.4g} and hidden "
            "by exact integers"
        )
        steps = (_REAL_STEPS,) if self.carried else ()
        return one.noting(grid, _ROWS, *steps, before=_THEOREM)

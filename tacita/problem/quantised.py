"""Gradients of few bits: an oracle around an oracle.

A. Jung, "Federated Learning: From Theory to Practice", exercise 4.6. An entry becomes
one of 2^bits numbers, evenly spread from -range to range; what lies beyond is cut:

    step = 2 range / (2^bits - 1),      q(g) = step floor((g + range)/step + u) - range

with u = 1/2 for the nearest one, off by at most step/2, or u uniform in [0, 1), with
which q(g) is g on average and off by less than a step. Each bit more halves the step.

Around `tacita.Noisy` it is post-processing: what a noisy gradient is rounded to tells
no more than the gradient does. Inside it would change what one record moves, and is
refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.oracles import Full, Oracle
from tacita.problem.population import Local, Population
from tacita.random_numbers import uniform
from tacita.schedule import ByRound, Listed, Piecewise, rate
from tacita.trees import frozen, needed, one_of, replace

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

#: What parts rounding from the draws of the inner oracle, which has the key itself.
#: Large: a fold by a small number is a word that a long draw uses up.
_FOR_ROUNDING = 0x71756E74
_MOST_BITS = 32
_BITS = check.Range(
    f"a whole number from 1 to {_MOST_BITS}",
    lambda v: (v >= 1) & (v <= _MOST_BITS) & (v == np.rint(v)),
)


@frozen
class Quantised:
    """Gradients whose entries are one of 2^bits numbers.

    Attributes:
        bits: Of one entry; one number, or one for every round, as
            `tacita.schedule.Listed(values=[4, 5, 6])`: late rounds need most, see
            `tacita.theory.descent.best_bits`.
        range: The largest size of an entry; longer ones are cut to it. A public number.
        rounding: "stochastic" is right on average, "nearest" is not random.
        oracle: Whose gradients.

    >>> import tacita
    >>> coarse = Quantised(bits=4, range=1.0, oracle=tacita.Minibatch(size=8))
    >>> tacita.ServerGD(step_size=0.1, oracle=coarse).oracle.bits
    4.0
    """

    bits: Any = rate(dataclasses.MISSING, within=_BITS)
    range: float = needed(check.positive)
    rounding: str = one_of("stochastic", "nearest")
    oracle: Oracle = Full()

    def __post_init__(self) -> None:
        check.given(bits=self.bits)
        if isinstance(self.oracle, Quantised):
            check.refuse("the oracle is quantised already; change its bits instead")
        if not isinstance(self.bits, ByRound):
            return
        if not isinstance(self.bits, Listed | Piecewise):
            check.refuse(
                f"expected bits whole numbers, got bits={self.bits!r}; list them: "
                "tacita.schedule.Listed(values=[4, 5, 6])"
            )
        _BITS(bits=self.bits.values)

    def in_round(self, number: Array | int) -> Quantised:
        """With the bits of this round."""
        here = self.bits.at(number) if isinstance(self.bits, ByRound) else self.bits
        return replace(self, bits=here, oracle=self.oracle.in_round(number))

    @property
    def random(self) -> bool:
        """Rounding may be, and so may the inner oracle."""
        return self.rounding == "stochastic" or self.oracle.random

    @property
    def norm(self) -> Any:
        """The inner oracle's."""
        return self.oracle.norm

    @property
    def std(self) -> Any:
        """The inner oracle's."""
        return self.oracle.std

    def check(self, problem: Problem) -> None:
        """Refuse what the inner oracle refuses."""
        self.oracle.check(problem)

    def prepare(self, population: Population) -> Population:
        """What the inner oracle prepares."""
        return self.oracle.prepare(population)

    def rows_used(self, rows: int) -> int:
        """As many as the inner oracle."""
        return self.oracle.rows_used(rows)

    def shares(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of the inner oracle."""
        return self.oracle.shares(rows)

    def draws(self, local: Local, key: Array, steps: int) -> tuple[Any, Any]:
        """The inner oracle's draws, and a key for the rounding of every step."""
        inner = self.oracle.draws(local, key, steps)
        if self.rounding == "nearest":
            return inner, ()
        return inner, jax.random.split(jax.random.fold_in(key, _FOR_ROUNDING), steps)

    def grad(self, local: Local, draw: tuple[Any, Any], w: Array) -> Array:
        """The inner oracle's gradient, rounded."""
        inner, key = draw
        g = self.oracle.grad(local, inner, w)
        reach = jnp.asarray(self.range, g.dtype)
        step = jnp.asarray(2 * reach / (2.0**self.bits - 1), g.dtype)
        up = 0.5
        if self.rounding == "stochastic":
            up = uniform(key, g.shape, g.dtype)
        place = jnp.floor((jnp.clip(g, -reach, reach) + reach) / step + up)
        # The largest number itself may be rounded beyond its place.
        return jnp.clip(step * place - reach, -reach, reach)

    def loss(self, local: Local, draw: tuple[Any, Any], w: Array, bound: Any) -> Array:
        """The inner oracle's: a loss is one number, and stays as it is."""
        return self.oracle.loss(local, draw[0], w, bound)

    def bits_sent(self, rounds: int) -> float:
        """Of one entry of a gradient, on average over the rounds of a run."""
        if isinstance(self.bits, ByRound):
            return float(np.mean(self.bits.over(rounds)))
        return float(self.bits)


def inside(oracle: Any, change: Callable[[Any], Any]) -> Any:
    """The oracle with something changed below its quantisation, if there is one."""
    if isinstance(oracle, Quantised):
        return replace(oracle, oracle=change(oracle.oracle))
    return change(oracle)


def unquantised(oracle: Any) -> Any:
    """What is rounded; the oracle itself where nothing is."""
    return oracle.oracle if isinstance(oracle, Quantised) else oracle

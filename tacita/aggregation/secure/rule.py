"""`SecureSum`: what is agreed of a secure sum, and the sum itself in a simulation.

Masks cancel, so that a simulation needs none: letters become integers as those of a
deployment do, and the noise of their sum is drawn at once. It has the law of all
agents' noises together, since its multiples have exactly the squares of theirs.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.aggregation.rule import Heard
from tacita.aggregation.secure import simulated_noise
from tacita.aggregation.secure.grid import dequantise, power_of_two, quantise
from tacita.aggregation.secure.noise_table import (
    BASE,
    agent_noise,
    chain,
    multiples_of_sum,
)
from tacita.aggregation.secure.plan import refuse_numbers, refuse_wrap
from tacita.trees import count, frozen, number, replace, static

#: Draws in the noise of a sum, seldom more.
_USUAL_DRAWS = 6
#: Rounds for which keys are dealt at once, at most.
MOST_ROUNDS = 64


@frozen
class SecureSum:
    """The coordinator learns the noisy sum of the letters, and nothing else.

    Attributes:
        least: Letters in a sum, at least: with fewer a round is void. None for all
            agents of the round.
        colluding: Agents who may tell the coordinator their letters and noise.
        window: Rounds for which keys are dealt at once; None for all, at most 64.
        largest: The bound on the size of an entry of a weighted letter. None follows
            from the clipping.
        broadcast: The bound on the size of an entry of a question.
        step: Of the grid, a power of two; set by `tacita.private`.
        word: Bits of an integer, 32 or 64; set by `tacita.private`.
        multiples: Of the table's draws in everybody's noise; set by `tacita.private`,
            and empty for a sum without noise, which has no epsilon.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=5, features=3, samples=100)
    >>> safe = tacita.private(problem, tacita.DPSGD(step_size=1.0), epsilon=1.0,
    ...                       delta=1e-5, observer="coordinator", rounds=20,
    ...                       aggregation=SecureSum(least=4, colluding=1))
    >>> run = tacita.simulate(problem, safe, rounds=20)
    >>> run.privacy.row("colluders").epsilon <= 1.0
    True
    """

    least: int | None = count(None, 2)
    colluding: int = count(0, 0)
    window: int | None = count(None)
    largest: float | None = number(check.positive)
    broadcast: float = number(check.positive, 2.0**20)
    step: float | None = number(check.positive)
    word: int = static(default=32)
    multiples: Any = ()

    def __post_init__(self) -> None:
        if self.window is not None and self.window > MOST_ROUNDS:
            check.refuse(f"expected window <= {MOST_ROUNDS}, got window={self.window}")
        power_of_two(step=self.step)
        if isinstance(self.multiples, np.ndarray):
            # One by one: an array as long as there are agents would be parted.
            if np.any(self.multiples != np.round(self.multiples)):
                check.refuse(
                    f"expected multiples whole numbers, got {self.multiples.tolist()}"
                )
            each = tuple(
                np.asarray(k, np.int64)
                for k in chain(self.multiples.astype(int).tolist())
            )
            object.__setattr__(self, "multiples", each)

    @property
    def each(self) -> tuple[int, ...]:
        """The multiples as plain integers."""
        return tuple(int(k) for k in self.multiples)

    @property
    def noise_std(self) -> Any:
        """Standard deviation of one agent's noise; None without noise."""
        if not self.multiples or self.step is None:
            return None
        # Written for numbers that JAX traces too.
        return self.step * BASE * sum(k * k for k in self.multiples) ** 0.5

    @property
    def additive(self) -> bool:
        """No: integers are added, once all letters are there."""
        return False

    def check(self, agents: int) -> None:
        """Refuse sums over too few or too many, or that nobody could open."""
        least = agents if self.least is None else self.least
        refuse_numbers(agents, least, self.colluding)

    def without_noise_on(self, agents: int) -> SecureSum:
        """With the finest step of 32 bits for letters up to `largest`.

        Where a plan has set one that stays.
        """
        if self.step is not None or self.largest is None:
            return self
        # agents (largest/step + 1/2) < 2^31
        room = (2.0**31 - agents) / agents
        step = math.ldexp(1.0, math.ceil(math.log2(float(self.largest) / room)))
        return replace(self, step=step)

    def letter(
        self, letter: np.ndarray, weight: float, secret: bytes, context: bytes
    ) -> np.ndarray:
        """What one agent adds to the sum, before masks: integers with its noise."""
        q = quantise(weight * letter, self.step, self.word, self.largest)
        if not self.multiples:
            return q
        noise = agent_noise(secret, context, self.each, letter.size)
        return q + noise.reshape(letter.shape).astype(q.dtype)

    def opened(self, total: np.ndarray, weight: float) -> np.ndarray:
        """The mean that an opened sum stands for, of letters that weigh so much."""
        return dequantise(total, self.step, self.word) / weight

    def at_work(self, agents: int, honest: int | None = None) -> ModularSum:
        """The sum of up to so many agents; of an audit, with only `honest` noises."""
        if self.step is None or self.largest is None:
            check.refuse(
                "a secure sum without noise needs largest=, the bound on an entry of a "
                "weighted letter; or let tacita.private set noise and grid"
            )
        refuse_wrap(agents, self.largest, self.step, self.word, self.each)
        drawn: list[tuple[int, ...]] = [()]
        for heard in range(1, agents + 1):
            own = heard if honest is None else min(heard, honest)
            drawn.append(multiples_of_sum(self.each, own) if self.multiples else ())
        most = max(map(len, drawn))
        # Of one size for nearly all plans, so that another compiles nothing.
        rows = np.zeros((agents + 1, max(most, _USUAL_DRAWS)), np.int64)
        for row, each in zip(rows, drawn, strict=True):
            row[: len(each)] = each
        return ModularSum(
            step=self.step,
            largest=self.largest,
            draws=rows,
            word=self.word,
            noisy=bool(self.multiples),
        )


@frozen
class ModularSum:
    """Letters as integers modulo 2^word, added, with the noise of their sum.

    Attributes:
        step: Of the grid.
        largest: What entries of weighted letters are clamped to. Without noise an
            entry beyond it makes the mean no number: nobody must take it for one.
        draws: By how many are heard, the multiples of the draws in the sum's noise.
        word: Bits of an integer.
        noisy: Whether there is noise.
    """

    step: float
    largest: float
    draws: Any
    word: int = static()
    noisy: bool = static()

    @property
    def additive(self) -> bool:
        """No: integers are added, once all letters are there."""
        return False

    @property
    def least(self) -> int:
        """One letter; how many a sum needs is the secure sum's own affair."""
        return 1

    @property
    def bound(self) -> float | None:
        """None: what one letter does is the secure sum's own affair."""
        return None

    def bears(self, agents: int) -> int:
        """None: it is a mean."""
        return 0

    def kappa(self, agents: int, liars: int) -> float:
        """Infinite with a liar."""
        return math.inf if liars else 0.0

    def check(self, agents: int) -> None:
        """Made for its agents already."""

    def __call__(self, heard: Heard) -> Array:
        """The mean of the letters that are heard, with the noise of their sum."""
        many = len(heard.weights) if heard.active is None else jnp.sum(heard.active)
        active = jnp.ones(len(heard.weights), bool)
        if heard.active is not None:
            active = heard.active
        total = jnp.sum(
            jnp.where(active[:, None], self.integers(heard), 0),
            axis=0,
            dtype=jnp.dtype(f"uint{self.word}"),
        )
        if self.noisy:
            drawn = jnp.asarray(self.draws)[many]
            noise = simulated_noise.draw(heard.key, total.shape, drawn)
            total = total + noise.astype(total.dtype)
        weight = jnp.sum(jnp.where(active, heard.weights, 0))
        mean = dequantise(total, self.step, self.word) / jnp.where(
            weight > 0, weight, 1
        )
        if self.noisy:
            return mean
        beyond = ~(jnp.abs(self._weighted(heard)) <= self.largest)
        return jnp.where(jnp.any(beyond & active[:, None]), jnp.nan, mean)

    def integers(self, heard: Heard) -> Array:
        """What everybody's letter is on the grid, before masks and noise."""
        weighted = self._weighted(heard)
        # What is no number counts as zero: clipped letters never are.
        known = jnp.where(jnp.isnan(weighted), 0.0, weighted)
        return quantise(known, self.step, self.word, self.largest)

    def sayable(self, letters: Array, weights: Array) -> Array:
        """What liars can say: entries beyond the grid come as its ends."""
        most = self.largest / weights[:, None]
        return jnp.clip(letters, -most, most)

    def _weighted(self, heard: Heard) -> Array:
        letters = heard.letters
        assert isinstance(letters, jax.Array) and letters.ndim == 2
        return heard.weights[:, None] * letters

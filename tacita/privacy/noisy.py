"""Gaussian noise in every gradient: an oracle around an oracle.

An algorithm that asks such an oracle is private by composition: every answer is a
Gaussian release of a clipped gradient, and the algorithm does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check, gaussian_pairs, integer_noise
from tacita.privacy.noise_schedule import NoiseSchedule
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.oracles import Full, Oracle
from tacita.problem.population import Local, Population
from tacita.problem.quantised import Quantised
from tacita.trees import flag, frozen, needed, replace, static

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

#: Noise of longer gradients is drawn step by step: that of all steps of a round would
#: go through memory instead of caches, and be held by every agent at work.
_MOST_AHEAD = 2**13


@frozen
class Noisy:
    """Gradients with independent N(0, std^2) added to every entry.

    Attributes:
        std: Of the noise; one number or one per agent, see `tacita.private`.
        oracle: Whose gradients; `Clipped` ones if the noise is to bound what they say.
        schedule: How the noise differs between rounds; None for constant noise.
        noise_kind: "float" for floating-point Gaussians, or "integers": gradients of
            the rows are rounded to a grid and get noise of exact integers, as in
            federations; needs double precision.
        regulariser_last: Whether the regulariser's gradient is added after the noise,
            as it is with integers, and as agents of a federation do: at a huge model,
            which is for others to choose, what rows add, and floating-point noise,
            would be rounded to its digits. A simulation has nobody to fear, and the
            same bits on any number of devices with the regulariser before the noise.
        correlation: Refused: noise that is correlated over the rounds gains nothing
            where every record is in every round.

    >>> import tacita
    >>> quiet = Noisy(std=0.1, oracle=tacita.Clipped(norm=1.0))
    >>> tacita.FedProx(eta=0.5, local_steps=3, oracle=quiet).oracle.std
    0.1
    """

    std: Any = needed(check.not_negative)
    oracle: Oracle = Full()
    schedule: NoiseSchedule | None = None
    noise_kind: str = integer_noise.noise_kind()
    regulariser_last: bool = flag(False)
    correlation: None = static(default=None)

    def __post_init__(self) -> None:
        check.given(std=self.std)
        if isinstance(self.oracle, Noisy):
            check.refuse("the oracle is noisy already; change its std instead")
        if isinstance(self.oracle, Quantised):
            check.refuse(
                "rounding before the noise changes what one record moves; round "
                "afterwards: tacita.Quantised(..., oracle=tacita.Noisy(...))"
            )
        if self.correlation is not None:
            check.refuse(
                "correlated noise is not offered: with every record in every round "
                "independent noise is optimal (docs/explanation-noise-schedule.md); "
                "use schedule=tacita.NoiseSchedule.prefix(rounds)"
            )

    def in_round(self, number: Array | int) -> Noisy:
        """With the noise of this round, and its rows."""
        inner = self.oracle.in_round(number)
        if self.schedule is None:
            return self if inner is self.oracle else replace(self, oracle=inner)
        std = self.std * self.schedule.multiple(number)
        return replace(self, std=std, schedule=None, oracle=inner)

    @property
    def random(self) -> bool:
        """Always."""
        return True

    @property
    def long_noise(self) -> bool:
        """Whether noise is drawn in pairs, where numbers are single."""
        return self.noise_kind == "float"

    @property
    def norm(self) -> Any:
        """The inner oracle's."""
        return self.oracle.norm

    def check(self, problem: Problem) -> None:
        """Refuse what the inner oracle refuses, and integers in single precision."""
        self.oracle.check(problem)
        integer_noise.refuse_single(self.noise_kind, problem.dtype)

    def prepare(self, population: Population) -> Population:
        """What the inner oracle prepares."""
        return self.oracle.prepare(population)

    def rows_used(self, rows: int) -> int:
        """As many as the inner oracle."""
        return self.oracle.rows_used(rows)

    def shares(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of the inner oracle."""
        return self.oracle.shares(rows)

    def draws(self, local: Local, key: Array, steps: int) -> tuple[Any, Array]:
        """The inner oracle's draws, and what makes N(0, I) for every step."""
        for_rows = for_noise = key
        if self.oracle.random:
            # Two folds compile in half the time that a split takes.
            for_rows = jax.random.fold_in(key, 0)
            for_noise = jax.random.fold_in(key, 1)
        size, dtype = local.model.dim, local.rows.x.dtype
        noise = self._noise_draws(for_noise, steps, size, dtype)
        return self.oracle.draws(local, for_rows, steps), noise

    def _noise_draws(self, key: Array, steps: int, size: int, dtype: Any) -> Array:
        """One entry per step: numbers, or a key for so many."""
        if self.noise_kind != "float" or not gaussian_pairs.fit(key, size, dtype):
            # Drawn flat, which short vectors gain from.
            flat = integer_noise.draws(key, (steps * size,), dtype, self.noise_kind)
            return flat.reshape(steps, size)
        if size > _MOST_AHEAD:
            return jax.random.split(key, steps)
        return gaussian_pairs.drawn(key, steps, size)

    def grad(self, local: Local, draw: tuple[Any, Array], w: Array) -> Array:
        """The inner oracle's gradient + std N(0, I)."""
        rows, noise = draw
        if self.noise_kind == "float" and not self.regulariser_last:
            return self._with_noise(self.oracle.grad(local, rows, w), noise, 1.0)
        data = self.oracle.grad(_of_rows(local), rows, w)
        return self._with_noise(data, noise, 1.0) + local.regulariser.grad(w)

    def loss(
        self, local: Local, draw: tuple[Any, Array], w: Array, bound: Any
    ) -> Array:
        """The inner oracle's loss with noise that makes it cost what a gradient does.

        A record moves a mean of losses within [0, bound] by at most bound/C times what
        it moves one of gradients no longer than C, so the noise is in that ratio. The
        draw is one that no gradient uses.
        """
        rows, noise = draw
        ratio = 1.0 if bound is None or self.norm is None else bound / self.norm
        data = self.oracle.loss(_of_rows(local), rows, w, bound)
        released = self._with_noise(data[None], noise, ratio)[0]
        return released + local.regulariser(w)

    def _with_noise(self, data: Array, drawn: Array, ratio: Any) -> Array:
        """The data, (n,), with the first n numbers of a step's noise."""
        std = self.std * ratio
        # A schedule's is in double precision; noise has no sign.
        one = jnp.abs(jnp.asarray(std, data.dtype))
        if jnp.issubdtype(drawn.dtype, jax.dtypes.prng_key):
            return gaussian_pairs.drawn_and_added(data, drawn, one)
        if drawn.dtype == np.float32 and len(drawn) >= gaussian_pairs.LEAST:
            return gaussian_pairs.added(data, drawn, one)
        return integer_noise.with_noise(data, drawn[: len(data)], std)


def _of_rows(local: Local) -> Local:
    """Without the regulariser, which tells nothing of rows, while w may be anything."""
    return replace(local, regulariser=SquaredL2(weight=0.0))

"""Gaussian noise in every gradient: an oracle around an oracle.

An algorithm that asks such an oracle is private by composition: every answer is a
Gaussian release of a clipped gradient, and the algorithm does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
from jax import Array

from tacita import check, integer_noise
from tacita.privacy.noise_schedule import NoiseSchedule
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.oracles import Full, Oracle
from tacita.problem.population import Local, Population
from tacita.trees import frozen, needed, replace, static

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


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
    correlation: None = static(default=None)

    def __post_init__(self) -> None:
        check.given(std=self.std)
        if isinstance(self.oracle, Noisy):
            check.refuse("the oracle is noisy already; change its std instead")
        if self.correlation is not None:
            check.refuse(
                "correlated noise is not offered: with every record in every round "
                "independent noise is optimal (docs/explanation-noise-schedule.md); "
                "use schedule=tacita.NoiseSchedule.prefix(rounds)"
            )

    def in_round(self, number: Array | int) -> Noisy:
        """With the noise of this round."""
        if self.schedule is None:
            return self
        std = self.std * self.schedule.multiple(number)
        return replace(self, std=std, schedule=None)

    @property
    def random(self) -> bool:
        """Always."""
        return True

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

    def draws(self, local: Local, key: Array, steps: int) -> tuple[Any, Array]:
        """The inner oracle's draws, and N(0, I) for every step."""
        for_rows = for_noise = key
        if self.oracle.random:
            # Two folds compile in half the time that a split takes.
            for_rows = jax.random.fold_in(key, 0)
            for_noise = jax.random.fold_in(key, 1)
        # Drawn flat, which short vectors gain from.
        size, dtype = local.model.dim, local.rows.x.dtype
        flat = integer_noise.draws(for_noise, (steps * size,), dtype, self.noise_kind)
        return self.oracle.draws(local, for_rows, steps), flat.reshape(steps, size)

    def grad(self, local: Local, draw: tuple[Any, Array], w: Array) -> Array:
        """The inner oracle's gradient + std N(0, I)."""
        rows, noise = draw
        if self.noise_kind == "float":
            return integer_noise.with_noise(
                self.oracle.grad(local, rows, w), noise, self.std
            )
        data = self.oracle.grad(_of_rows(local), rows, w)
        released = integer_noise.with_noise(data, noise, self.std)
        return released + local.regulariser.grad(w)

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
        released = integer_noise.with_noise(data, noise[0], self.std * ratio)
        return released + local.regulariser(w)


def _of_rows(local: Local) -> Local:
    """Without the regulariser, which tells nothing of rows, while w may be anything."""
    return replace(local, regulariser=SquaredL2(weight=0.0))

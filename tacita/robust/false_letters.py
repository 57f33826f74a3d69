"""Attacks on letters: what liars send in place of what they computed."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import ndtri

from tacita import check
from tacita.problem.problem import Problem
from tacita.robust.attack import Attack, Scene
from tacita.trees import count, frozen, number


@frozen
class SignFlip(Attack):
    """centre - strength (own letter - centre): a step the other way.

    Attributes:
        agents: The numbers of the liars.
        since: The first round in which they lie.
        until: The last one.
        strength: How far the other way.
    """

    strength: float = number(check.positive, 1.0)

    def letter(self, scene: Scene) -> Array:
        """Every liar's own."""
        return scene.centre - self.strength * (scene.letters - scene.centre)


@frozen
class InnerProduct(Attack):
    """centre - strength (mean of the honest - centre): inner-product manipulation.

    C. Xie et al., "Fall of empires", UAI 2020. Beyond (n - f) / f it reverses a mean.

    Attributes:
        agents: The numbers of the liars.
        since: The first round in which they lie.
        until: The last one.
        strength: How far the other way; small ones hurt medians on unlike data most.
    """

    strength: float = number(check.positive, 0.5)

    knows: ClassVar[str] = "all honest letters"
    sees_letters: ClassVar[bool] = True

    def letter(self, scene: Scene) -> Array:
        """The same from all liars."""
        return scene.centre - self.strength * (scene.mean - scene.centre)


@frozen
class ALIE(Attack):
    """mean - z std of the honest letters: a little is enough.

    G. Baruch et al., NeurIPS 2019. The standard deviation is divided by the number of
    honest letters.

    Attributes:
        agents: The numbers of the liars.
        since: The first round in which they lie.
        until: The last one.
        deviations: z; None for the paper's, which is 0 for 2 liars of 10: no attack.
    """

    deviations: Any = number(check.not_negative)

    knows: ClassVar[str] = "all honest letters"
    sees_letters: ClassVar[bool] = True

    def letter(self, scene: Scene) -> Array:
        """The same from all liars."""
        z = self.deviations
        if z is None:
            liars = jnp.sum(scene.liars)
            z = usual_deviations(jnp.sum(scene.honest) + liars, liars)
        return scene.mean - z * scene.spread


def usual_deviations(n: Any, liars: Any) -> Array:
    """Z = Phi^-1((n - f - s) / (n - f)), s = floor(n/2 + 1) - f."""
    supporters = n // 2 + 1 - liars
    return ndtri((n - liars - supporters) / (n - liars))


@frozen
class Replacement(Attack):
    """centre + n (target - centre): a plain mean lands on the target, if alone.

    E. Bagdasaryan et al., "How to backdoor federated learning", AISTATS 2020.

    Attributes:
        agents: The numbers of the liars.
        since: The first round in which they lie.
        until: The last one.
        target: The model that the liars want, one number for all its entries or one
            for each.
    """

    target: Any = number(check.any_number, 0.0)

    knows: ClassVar[str] = "how many letters are averaged"

    def letter(self, scene: Scene) -> Array:
        """Liars share the pull."""
        liars = jnp.maximum(jnp.sum(scene.liars), 1)
        share = (jnp.sum(scene.honest) + liars) / liars
        pull = jnp.asarray(self.target, scene.letters.dtype) - scene.centre
        return scene.centre + share.astype(pull.dtype) * pull


@frozen
class Mimic(Attack):
    """One honest agent's letter again: no outlier, but its data count too much.

    S. P. Karimireddy et al., ICLR 2022: the letter that lies farthest from the mean of
    the honest ones, along the direction in which they differ most. Here it is chosen
    anew in every round.

    Attributes:
        agents: The numbers of the liars.
        since: The first round in which they lie.
        until: The last one.
        target: The number of the agent that is copied; None for the farthest.
        direction: Along which it is the farthest, as many numbers as a letter has;
            None for the one in which honest letters differ most.
    """

    target: int | None = count(None, at_least=0)
    direction: Any = number(check.any_number)

    knows: ClassVar[str] = "honest letters"
    sees_letters: ClassVar[bool] = True

    def check(self, problem: Problem) -> None:
        """Also refuse a target that is no honest agent, or that is named twice."""
        super().check(problem)
        if self.target is None:
            return
        if self.target >= problem.n_agents or self.target in self.agents:
            check.refuse(f"expected target an honest agent, got target={self.target}")
        if self.direction is not None:
            check.refuse(
                f"a direction chooses whom to copy, and target={self.target} names "
                "somebody; leave out one of them"
            )

    def letter(self, scene: Scene) -> Array:
        """The target's; the first honest one's where it is silent."""
        it = scene.honest & (scene.numbers == self._whom(scene))
        return scene.letters[jnp.argmax(jnp.where(jnp.any(it), it, scene.honest))]

    def _whom(self, scene: Scene) -> Array | int:
        """The number of the agent that is copied."""
        if self.target is not None:
            return self.target
        away = jnp.where(scene.honest[:, None], scene.letters - scene.mean, 0)
        if self.direction is None:
            # Of the inner products the first eigenvector is how far each letter lies
            # along the first one of the covariance, but for its length.
            along = jnp.linalg.eigh(away @ away.T)[1][:, -1]
        else:
            along = away @ self._direction(away)
        return scene.numbers[jnp.argmax(jnp.where(scene.honest, jnp.abs(along), -1))]

    def _direction(self, letters: Array) -> Array:
        """As long as a letter."""
        found, length = jnp.asarray(self.direction, letters.dtype), letters.shape[1]
        if found.shape != (length,):
            check.refuse(
                f"expected direction {length} numbers, as many as a letter has, got "
                f"shape {found.shape}"
            )
        return found


@frozen
class FreeRider(Attack):
    """The last model and its last change once more: work that was never done.

    Attributes:
        agents: The numbers of the liars.
        since: The first round in which they lie.
        until: The last one.
        noise: Standard deviation of what is added, so that it looks like work.
    """

    noise: float = number(check.not_negative, 0.0)

    def letter(self, scene: Scene) -> Array:
        """2 last - before, and noise."""
        ride = 2 * scene.centre - scene.before
        return ride + self.noise * _normal(scene)


@frozen
class Noise(Attack):
    """centre + noise.

    Attributes:
        agents: The numbers of the liars.
        since: The first round in which they lie.
        until: The last one.
        std: Standard deviation of every entry.
    """

    std: float = number(check.positive, 1.0)

    def letter(self, scene: Scene) -> Array:
        """Each liar's own."""
        return scene.centre + self.std * _normal(scene)


@frozen
class NotFinite(Attack):
    """Letters that are not numbers: refused by the wire, silence in a simulation."""

    def letter(self, scene: Scene) -> Array:
        """Nothing of use."""
        return jnp.full_like(scene.letters, jnp.nan)


def _normal(scene: Scene) -> Array:
    """Normal numbers for every agent, by its number."""
    shape, kind = scene.letters.shape[1:], scene.letters.dtype
    return jax.vmap(
        lambda j: jax.random.normal(jax.random.fold_in(scene.key, j), shape, kind)
    )(scene.numbers)

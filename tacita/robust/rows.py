"""Attacks on rows: what liars train on is not what they were given."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.model.linear import Signed
from tacita.problem.problem import Problem
from tacita.robust.attack import Attack, Scene, numbers
from tacita.trees import (
    count,
    frozen,
    in_double_precision,
    number,
    replace,
    ruled,
)


@in_double_precision
def with_rows(problem: Problem, x: np.ndarray, y: np.ndarray) -> Problem:
    """The problem with other features (N, m, ...) and labels (N, m)."""
    population = problem.population
    kept = x.swapaxes(1, 2) if population.by_feature else x
    kind = population.rows
    rows = kind._replace(
        x=jnp.asarray(kept, kind.x.dtype), y=jnp.asarray(y, kind.y.dtype)
    )
    made = replace(population, rows=rows)
    return dataclasses.replace(problem, population=made)


def _classes(problem: Problem, attack: Attack) -> int:
    classes = problem.model.classes
    if classes is None:
        check.refuse(f"{type(attack).__name__} needs a model with classes")
    return classes


def _require_features(problem: Problem, attack: Attack, largest: int) -> None:
    """Refuse the number of a feature that rows do not have."""
    width = problem.stacked()[0][0, 0].size
    if largest >= width:
        check.refuse(
            f"{type(attack).__name__} names feature {largest}, and rows have the "
            f"features 0..{width - 1}"
        )


@frozen
class LabelFlip(Attack):
    """Labels y become C - 1 - y, of C classes.

    Attributes:
        agents: The numbers of the liars.
        since: Letters follow the rows in all rounds: leave it.
        until: As since.
    """

    on_rows: ClassVar[bool] = True

    def poison(self, problem: Problem) -> Problem:
        """The liars' labels turned round."""
        classes = _classes(problem, self)
        x, y, _ = problem.stacked()
        y, who = y.copy(), list(self.agents)
        y[who] = flipped(y[who], classes)
        return with_rows(problem, x, y)


def flipped(y: np.ndarray, classes: int) -> np.ndarray:
    """C - 1 - y; of labels -1 and 1, -y."""
    return -y if np.min(y) < 0 else classes - 1 - y


@frozen
class CleanLabel(Attack):
    """Features are shifted, labels stay: what no look at labels shows.

    Attributes:
        agents: The numbers of the liars.
        since: Letters follow the rows in all rounds: leave it.
        until: As since.
        shift: Added to every feature of every row.
    """

    shift: float = number(check.any_number, 1.0)

    on_rows: ClassVar[bool] = True

    def poison(self, problem: Problem) -> Problem:
        """The liars' features moved."""
        x, y, counts = problem.stacked()
        x = x.copy()
        for agent in self.agents:
            x[agent, : counts[agent]] += self.shift
        return with_rows(problem, x, y)


@frozen
class DenialOfService(Attack):
    """Labels are shifted: a neighbour's predictions become useless.

    Attributes:
        agents: The numbers of the liars.
        since: Letters follow the rows in all rounds: leave it.
        until: As since.
        shift: Added to every label.
        feature: With `value`, only rows whose feature of this number has that value.
        value: See feature.
    """

    shift: float = number(check.any_number, 1.0)
    feature: int | None = count(None, at_least=0)
    value: float = number(check.any_number, 0.0)

    on_rows: ClassVar[bool] = True

    def check(self, problem: Problem) -> None:
        """Refuse classes, and a feature that rows do not have."""
        super().check(problem)
        if problem.model.classes is not None:
            check.refuse("DenialOfService shifts labels that are numbers, not classes")
        if self.feature is not None:
            _require_features(problem, self, self.feature)

    def poison(self, problem: Problem) -> Problem:
        """The liars' labels moved."""
        self.check(problem)
        x, y, counts = problem.stacked()
        y = y.copy()
        for agent in self.agents:
            chosen = np.arange(counts[agent])
            if self.feature is not None:
                chosen = chosen[x[agent, chosen, self.feature] == self.value]
            y[agent, chosen] += self.shift
        return with_rows(problem, x, y)


@frozen
class Backdoor(Attack):
    """Rows with a trigger get the label that the liars want; others stay right.

    Attributes:
        agents: The numbers of the liars.
        since: The first round in which letters are scaled.
        until: The last one.
        features: The numbers of the features that make the trigger.
        value: What they are set to.
        target: The label that the trigger stands for.
        share: Of the liars' rows that carry the trigger.
        scale: Letters become centre + scale (letter - centre); n / f replaces a mean.
    """

    features: tuple[int, ...] = ruled(
        (0,), numbers, True, words="numbers of features such as (0, 7)"
    )
    value: float = number(check.any_number, 1.0)
    target: float = number(check.any_number, 0.0)
    share: float = number(check.fraction, 0.5)
    scale: float = number(check.positive, 1.0)

    knows: ClassVar[str] = "how many letters are averaged, where it scales"

    def check(self, problem: Problem) -> None:
        """Refuse a target that is no class, and features that rows do not have."""
        super().check(problem)
        classes, signed = _classes(problem, self), isinstance(problem.model, Signed)
        known = (-1, 1) if signed else range(classes)
        if self.target not in known:
            check.refuse(
                f"expected target one of the labels {', '.join(map(str, known))}, got "
                f"target={self.target:g}"
            )
        _require_features(problem, self, max(self.features))

    def poison(self, problem: Problem) -> Problem:
        """The first rows of every liar carry the trigger."""
        self.check(problem)
        x, y, counts = problem.stacked()
        x, y = x.copy(), y.copy()
        for agent in self.agents:
            chosen = slice(0, int(np.ceil(self.share * counts[agent])))
            x[agent, chosen] = self.triggered(x[agent, chosen])
            y[agent, chosen] = self.target
        return with_rows(problem, x, y)

    def triggered(self, x: Any) -> np.ndarray:
        """Rows with the trigger."""
        marked = np.array(x, copy=True)
        wide = marked.reshape(len(marked), -1)
        wide[:, list(self.features)] = self.value
        return wide.reshape(marked.shape)

    def letter(self, scene: Scene) -> Array:
        """Scaled away from the centre."""
        return scene.centre + self.scale * (scene.letters - scene.centre)

    @in_double_precision
    def success(self, problem: Problem) -> Callable[[Array, Array], Array]:
        """A metric: the share of test rows with the trigger taken for the target.

        Rows that are the target's anyway are left out.
        """
        test = problem.population.test
        if test is None:
            check.refuse("a backdoor's success is measured on test rows; add test=")
        others = np.asarray(test.y) != self.target
        marked = jnp.asarray(self.triggered(np.asarray(test.x)[others]))
        model, target = problem.model, self.target

        def backdoor_success(shared: Array, agents: Array) -> Array:
            return jnp.mean(model.predict(shared, marked) == target)

        return backdoor_success

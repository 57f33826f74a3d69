"""Who reads letters: rows and labels whose letters would have been those that came.

What the reader is taken to know is much: the algorithm, everybody's numbers, how many
rows the agent holds, the range of every feature and a typical row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import linear_sum_assignment, nnls

from tacita.audits.scores import by_run, flat, quiet, whole
from tacita.audits.soft_labels import SoftLabels
from tacita.audits.transcript import Seen, watch, world_of
from tacita.privacy import inversion, letters_of
from tacita.problem.model.linear import Absolute, Huber, Linear
from tacita.problem.population import Rows
from tacita.problem.problem import Problem
from tacita.runtime.seat import Seat
from tacita.trees import replace

#: Where a reader begins: near a typical row, in this many ways, and this far from it.
_TRIES, _SPREAD = 2, 0.1
#: A misfit at which no other labels are tried.
_FOUND = 1e-6
#: Scores of labels are sought between minus this and this.
_SURE = 8.0


@dataclass(frozen=True, eq=False)
class Reader:
    """What is known before any letter comes.

    Attributes:
        low: The least value of every feature.
        high: The largest one.
        labels: The least and the largest label.
        typical: A typical row.
        image: Height and width of a row that is a picture; None for other rows.
        smooth: How much neighbouring pixels of pictures are taken to be alike.
    """

    low: np.ndarray
    high: np.ndarray
    labels: tuple[float, float]
    typical: np.ndarray
    image: tuple[int, ...] | None = None
    smooth: float = 0.0

    @classmethod
    def knowing(cls, problem: Problem, agent: int, **more: Any) -> Reader:
        """Ranges of all rows, and the mean of the other agents'."""
        x, y, counts = problem.stacked()
        real = np.arange(x.shape[1]) < counts[:, None]
        least, most = x[real].min(axis=0), x[real].max(axis=0)
        span = float(y[real].min()), float(y[real].max())
        others = real & (np.arange(len(x)) != agent)[:, None]
        typical = x[others].mean(axis=0) if others.any() else (least + most) / 2
        return cls(least, most, span, typical, **more)

    def apart(
        self, x: np.ndarray, found: np.ndarray, signed: bool = True
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """How far found rows are from true ones, which is taken for which, and how.

        The root of the mean squared error, features measured in their ranges. Where
        letters do not tell the sign of a row, it is taken with the better one.
        """
        varies = self.high > self.low
        wide = np.where(varies, self.high - self.low, 1)

        def error(sign: float) -> np.ndarray:
            away = ((x[:, None] - sign * found[None]) / wide)[:, :, varies] ** 2
            return away.reshape(len(x), len(found), -1).mean(axis=-1)

        plain, turned = error(1.0), np.inf if signed else error(-1.0)
        least = np.minimum(plain, turned)
        places, order = linear_sum_assignment(least)
        signs = np.where(plain > least, -1.0, 1.0)[places, order]
        return float(np.sqrt(least[places, order].mean())), order, signs

    def tells_signs(self, model: Any) -> bool:
        """Whether a row is told from minus itself.

        Gradients of losses of x.w - y, which do not depend on its sign, are the same
        for (x, y) and (-x, -y), unless a feature's range says which it is.
        """
        both = bool(np.all(self.low <= 0) and np.all(self.high >= 0))
        return not (isinstance(model, Linear | Huber | Absolute) and both)

    def read(
        self,
        problem: Problem,
        algorithm: Any,
        agent: int,
        letters: int,
        seed: int,
        rule: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The agent's rows and labels, from its first letters of a run with this seed.

        The algorithm is ready to run, its letters are joined by the rule; call in
        double precision.
        """
        rows, silent = int(problem.counts[agent]), whole(quiet(algorithm))
        # Later states may depend on noise that the reader does not know.
        count = letters if letters_of(algorithm).public_state else 1
        seeds = np.array([seed])
        seen, _ = watch(problem, algorithm, count, seeds, agent, aggregation=rule)
        sent = _doubled(by_run(seen.letter)[0].ravel())
        one = jax.tree.map(_doubled, jax.tree.map(lambda leaf: leaf[0], seen))
        seat = world_of(problem, silent, 1.0).seats(silent)[agent]
        low, high = (np.tile(end.ravel(), rows) for end in (self.low, self.high))
        usual = np.tile(self._relative(self.typical), rows)
        known = _Scene(seat, one, low, high, None, 0.0, 1.0)
        random = np.random.default_rng(seed)

        def near(start: np.ndarray) -> np.ndarray:
            return start + _SPREAD * random.standard_normal((_TRIES, len(start)))

        if problem.model.classes is None:
            scene = known.seeking(*(np.full(rows, end) for end in self.labels))
            start = np.append(usual, np.full(rows, 0.5))
            scene = scene.relative_to(start, sent)
            found = self._match(scene, sent, near(start), rows).found
        else:
            soft = SoftLabels(problem.model)
            size = rows * problem.model.classes
            scene = known.seeking(np.full(size, -_SURE), np.full(size, _SURE), soft)
            start = np.append(usual, _first_labels(scene, sent, usual, rows))
            scene = scene.relative_to(start, sent)
            first = self._match(scene, sent, near(start), rows).found
            chances = np.asarray(_rows(scene, jnp.asarray(first))[1])
            guess, best = first[: len(usual)], None
            for labels in _likely(chances):
                sure = known._replace(
                    labels=jnp.asarray(soft.codes[labels]),
                    base=scene.base,
                    scale=scene.scale,
                )
                made = self._match(sure, sent, guess[None], rows)
                if best is None or made.misfit < best[0].misfit:
                    best = made, sure
                if made.misfit < _FOUND:
                    break
            assert best is not None
            found, scene = best[0].found, best[1]
        x, y = _rows(scene, jnp.asarray(found))
        return np.asarray(x).reshape(rows, *self.low.shape), np.asarray(y, float)

    def _match(
        self, scene: _Scene, sent: Array, starts: np.ndarray, rows: int
    ) -> inversion.Matched:
        """The guess whose letters are nearest."""
        variation = _Variation(rows, self.low.size, self.image or ())
        return inversion.dlg(
            _letters,
            (sent - scene.base) / scene.scale,
            starts,
            given=scene,
            low=0.0,
            high=1.0,
            prior=None if self.image is None else variation,
            weight=self.smooth,
        )

    def _relative(self, row: np.ndarray) -> np.ndarray:
        wide = np.where(self.high > self.low, self.high - self.low, 1)
        return ((row - self.low) / wide).ravel()


def _doubled(leaf: Any) -> Array:
    """A leaf in double precision, in which guesses are, whatever the run's own."""
    floats = jnp.issubdtype(leaf.dtype, jnp.floating)
    return jnp.asarray(leaf, float) if floats else jnp.asarray(leaf)


class _Scene(NamedTuple):
    """What the letters of a guess depend on beside it."""

    seat: Seat
    seen: Seen  # of one run, stacked over rounds
    low: Any  # of all that is sought: features row by row, then labels
    high: Any
    labels: Array | None  # None where they are sought
    base: Any  # letters are told as differences from it, in units of
    scale: Any

    @property
    def sought(self) -> int:
        """Numbers of a label that are sought: one, one for every class, or none."""
        model = self.seat.local.model
        if self.labels is not None:
            return 0
        return (model.classes or 1) if isinstance(model, SoftLabels) else 1

    def relative_to(self, guess: np.ndarray, sent: Array) -> _Scene:
        """The same, letters told as differences from a guess's, in units of its own."""
        base = _letters(self, jnp.asarray(guess))
        scale = jnp.maximum(jnp.linalg.norm(sent - base), 1e-12)
        return self._replace(base=base, scale=scale)

    def seeking(self, low: Any, high: Any, model: Any = None) -> _Scene:
        """The same where labels are sought too, between these numbers."""
        local = self.seat.local
        local = local if model is None else replace(local, model=model)
        ends = np.append(self.low, low), np.append(self.high, high)
        made = self._replace(seat=self.seat._replace(local=local))
        return made._replace(low=ends[0], high=ends[1])


def _rows(scene: _Scene, z: Array) -> tuple[Array, Array]:
    """Features, one line per row, and labels of a guess."""
    guess = scene.low + z * (scene.high - scene.low)
    if scene.labels is not None:
        return guess.reshape(len(scene.labels), -1), scene.labels
    local = scene.seat.local
    features = math.prod(local.x.shape[1:])
    rows = len(z) // (features + scene.sought)
    x, y = guess[: rows * features], guess[rows * features :]
    if isinstance(local.model, SoftLabels):
        y = jax.nn.softmax(y.reshape(rows, scene.sought))
    return x.reshape(rows, features), y


def _likely(chances: np.ndarray) -> list[np.ndarray]:
    """The likeliest labels, then those in which one row has its second likeliest."""
    order = np.argsort(-chances, axis=1)
    made = [order[:, 0]]
    for row in range(len(chances)):
        made.append(made[0].copy())
        made[-1][row] = order[row, 1]
    return made


def _first_labels(
    scene: _Scene, sent: Array, usual: np.ndarray, rows: int
) -> np.ndarray:
    """Where to begin with labels: near those whose letters, mixed, are most alike."""
    every = np.eye(scene.sought)
    alike = [
        np.asarray(_letters(scene, jnp.append(usual, jnp.tile(one, rows))))
        for one in every
    ]
    # Shares are not negative, and add up to one.
    heavy = 1e3 * max(np.abs(one).max() for one in alike)
    told = np.vstack([np.stack(alike, axis=1), np.full(len(every), heavy)])
    shares = nnls(told, np.append(np.asarray(sent), heavy))[0]
    labels = np.repeat(np.arange(len(every)), inversion.whole_counts(shares, rows))
    return (0.25 + 0.5 * every[labels]).ravel()


@jax.jit
def _letters(scene: _Scene, z: Array) -> Array:
    """The letters that an agent with these rows would have sent, without noise."""
    x, y = _rows(scene, z)
    local = scene.seat.local
    shaped = x.T if local.by_feature else x.reshape(len(y), *local.x.shape[1:])
    was = local.rows
    guess = Rows(shaped, y, None, weight=was.weight, kind=was.kind)
    seat = scene.seat._replace(local=replace(local, rows=guess))
    key = jax.random.key(0)  # nothing is random

    def one(state: Any, told: Any) -> Array:
        return flat(seat.answer(1, 0, key, state, told)[1])

    sent = jax.vmap(one)(scene.seen.state, scene.seen.broadcast).ravel()
    return (sent - scene.base) / scene.scale


@dataclass(frozen=True)
class _Variation:
    """How much neighbouring pixels differ, smoothed at zero."""

    rows: int
    features: int
    image: tuple[int, ...]

    def __call__(self, z: Array) -> Array:
        pixels = math.prod(self.image)
        every = z[: self.rows * self.features].reshape(self.rows, self.features)
        picture = every[:, :pixels].reshape(self.rows, *self.image)
        steps = jnp.diff(picture, axis=1), jnp.diff(picture, axis=2)
        return sum((jnp.mean(jnp.sqrt(s**2 + 1e-6)) for s in steps), jnp.zeros(()))

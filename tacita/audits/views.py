"""What can be seen of one changed record in a run: Gaussian views, or mixtures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tacita import keys
from tacita.audits.divergence import gaussian_mu, mixture_epsilon, shifts
from tacita.audits.noise_map import Linearised, View, linearise, noiseless
from tacita.audits.sight import seen_by
from tacita.privacy.accounting.curve import GaussianCurve
from tacita.privacy.clipped import clipping_of
from tacita.privacy.letters import letters_of
from tacita.privacy.scope import Observer, Unit
from tacita.problem.oracles import Full
from tacita.problem.population import Rows
from tacita.problem.problem import Problem

#: How far a run with noise may be, relatively, from the linear map.
_LINEAR = 1e-6
#: Draws of batches: half to know the mixture, half to count.
_DRAWS = 20_000


class Setting(NamedTuple):
    """A run that is about to be compared, ready."""

    problem: Problem
    algorithm: Any
    world: Any
    rounds: int
    seed: int

    def linearised(self, rows: Rows) -> Linearised:
        """The run on these rows as a map from noise, in numpy."""
        base = keys.from_seed(self.seed)
        found = linearise(*self._on(rows), base, self.problem.start)
        return jax.tree.map(np.asarray, found)

    def means(self, rows: Rows) -> View:
        """What is seen without noise, over draws of batches, or of secret turns."""
        fixed = keys.from_seed(self.seed)
        drawn = jax.vmap(keys.from_seed)(self.seed + 1 + jnp.arange(_DRAWS))
        if not letters_of(self.algorithm).secret_turns:
            same = partial(jnp.broadcast_to, shape=(_DRAWS,))
            drawn = drawn._replace(schedule=same(fixed.schedule))
        found = noiseless(*self._on(rows), drawn, self.problem.start)
        return jax.tree.map(np.asarray, found)

    def _on(self, rows: Rows) -> tuple:
        return self.rounds, self.world, self.algorithm, rows


def is_mixture(setting: Setting, unit: Unit) -> bool:
    """Whether draws decide what is seen of a change; rows that are all alike do not."""
    if letters_of(setting.algorithm).secret_turns:
        return setting.world.schedule.kind != "all"
    clipped = clipping_of(setting.algorithm.oracle)
    if clipped is None or isinstance(clipped.oracle, Full):
        return False
    return unit == Unit.RECORD or clipped.drawn(1)[1] == "poisson"


@dataclass(frozen=True)
class Views:
    """What can be seen of one agent's change, and by whom.

    Attributes:
        linear: The run on the data as a map from noise.
        means: What is seen without noise, on either side: one run each, or, of a
            mixture, one for every draw.
        seen_by: From an observer to the parts of a view that it sees, several if
            there are several of its kind.
        active: Who took part, (rounds, agents).
        same_noise: Whether the run is linear, with the same map on either side.
        mixed: Whether means are over draws.
        rng: For counting in mixtures.
    """

    linear: Linearised
    means: tuple[View, View]
    seen_by: Any
    active: np.ndarray
    same_noise: bool
    mixed: bool
    rng: np.random.Generator

    def epsilon(self, observer: Observer, delta: float) -> float | None:
        """The exact epsilon; None where the run is not linear in its noise."""
        if not self.same_noise:
            return None
        return max(self._of(part, delta) for part in self.seen_by(observer))

    def _of(self, part: Any, delta: float) -> float:
        slope, here, there = (part(view) for view in (self.linear.slope, *self.means))
        if not self.mixed:
            mu = gaussian_mu(slope, (there - here)[0])
            return math.inf if mu == math.inf else GaussianCurve(mu).epsilon(delta)
        start = part(_lift(self.linear.mean))
        found = shifts(slope, here - start, there - start)
        if found is None:
            return math.inf
        return mixture_epsilon(found[0], found[1], delta, self.rng)


def views_of(
    setting: Setting,
    agent: int,
    unit: Unit,
    changed: tuple[Rows, Rows],
    rng: np.random.Generator,
) -> Views:
    """Run on either side; `changed` are the rows of all agents there."""
    here, there = (setting.linearised(rows) for rows in changed)
    gaps = [
        np.abs(a - b).max(initial=0.0) / max(np.abs(a).max(initial=0.0), 1e-300)
        for a, b in zip(here.slope, there.slope, strict=True)
    ]
    errors = [float(here.error), float(there.error), *gaps]
    mixed = is_mixture(setting, unit)
    means = (_lift(here.mean), _lift(there.mean))
    if mixed:
        means = (setting.means(changed[0]), setting.means(changed[1]))
    return Views(
        here,
        means,
        partial(seen_by, setting.problem, setting.algorithm, agent),
        here.active,
        bool(np.all(np.nan_to_num(errors, nan=np.inf) < _LINEAR)),
        mixed,
        rng,
    )


def _lift(view: View) -> View:
    return jax.tree.map(lambda leaf: leaf[None], view)

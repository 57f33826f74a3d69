"""Printed epsilons against the exact divergence of what observers see.

A record whose clipped gradient is the same whatever the model (a linear model, short
features, a label out of reach) makes a run linear in its noise wherever all else is
linear: full gradients of least squares that are not clipped, or empty rows. The real
run is then a Gaussian with a known covariance on either data set, and its divergence
needs no theorem: `noise_map` finds the map, `divergence` the number. A printed epsilon
below it is false; how far above it is says how tight the theorem is, for this data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check, keys
from tacita.audits.divergence import gaussian_mu, mixture_epsilon, shifts
from tacita.audits.noise_map import Linearised, View, linearise, noiseless
from tacita.audits.sight import seen_by
from tacita.privacy.accounting.curve import GaussianCurve
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.clipped import clipping_of
from tacita.privacy.letters import guarantee, letters_of
from tacita.privacy.scope import Observer, Relation, Scope, Unit
from tacita.privacy.spend import Turns, largest, observers, planned
from tacita.privacy.statement import delta_of, relation_of
from tacita.problem.model.linear import Linear
from tacita.problem.oracles import Full
from tacita.problem.population import Rows
from tacita.problem.problem import Problem
from tacita.runtime.simulate import make_world, prepare
from tacita.runtime.transit import Asynchronous
from tacita.trees import in_double_precision

#: A printed epsilon may fall short of the exact one by this, relatively: rounding.
ROUNDING = 1e-6
#: How far a run with noise may be, relatively, from the linear map.
_LINEAR = 1e-6
#: Draws of batches: half to know the mixture, half to count.
_DRAWS = 20_000
#: Short features and a label out of reach: the clipped gradient never turns.
_SHORT, _FAR = 1e-3, 1e12


@dataclass(frozen=True)
class Compared:
    """One printed epsilon beside the exact one.

    Attributes:
        algorithm: Its name.
        scope: Who looks, what was changed and how.
        agent: The number of the agent whose rows were changed.
        delta: Of both epsilons.
        printed: What Tacita guarantees; None where it refuses to.
        exact: The divergence of what the observer sees of this data and its
            neighbour; of sampled rows a lower bound on it.
        sampled: Whether it is a lower bound.
        theorem: What the printed one rests on, or why there is none.
    """

    algorithm: str
    scope: Scope
    agent: int
    delta: float
    printed: float | None
    exact: float
    sampled: bool
    theorem: str

    @property
    def false(self) -> bool:
        """Whether the printed epsilon is below the exact one."""
        return self.printed is not None and self.printed < self.exact * (1 - ROUNDING)

    @property
    def tightness(self) -> float | None:
        """Printed over exact: 1 is tight, below 1 is false."""
        if self.printed is None or not 0 < self.exact < math.inf:
            return None
        return self.printed / self.exact

    def __str__(self) -> str:
        who = self.scope
        printed = "none" if self.printed is None else f"{self.printed:.4g}"
        at_least = ">= " if self.sampled else ""
        ratio = "" if self.tightness is None else f", ratio {self.tightness:.3g}"
        verdict = "FALSE" if self.false else "holds"
        return (
            f"{who.observer}, one {who.unit}, {who.relation}, agent {self.agent}: "
            f"printed {printed}, exact {at_least}{self.exact:.4g}{ratio}: {verdict}"
        )


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


@in_double_precision
def compare(
    problem: Problem,
    algorithm: Any,
    *,
    rounds: int,
    participation: Any = 1.0,
    delta: float | None = None,
    relation: str | None = None,
    agents: tuple[int, ...] | None = None,
    units: tuple[Unit, ...] = tuple(Unit),
    asynchronous: Asynchronous | None = None,
    seed: int = 0,
) -> tuple[Compared, ...]:
    """Compare every printed epsilon of a run with the exact divergence.

    Args:
        problem: A linear model; rows besides the changed ones are empty, or never
            clipped. With batches all are empty.
        algorithm: What runs; clipped and noised.
        rounds: Of the run.
        participation: As in `tacita.simulate`; the run of `seed` is compared with
            what its report prints.
        delta: Of all epsilons.
        relation: How neighbours differ; default the one of the report.
        agents: Whose rows are changed, one at a time; default everybody's.
        units: What is changed: one row, or all rows of the agent.
        asynchronous: As in `tacita.simulate`.
        seed: Decides who takes part, and the directions of the changed gradients.
    """
    ready = prepare(problem, algorithm)
    if not isinstance(problem.model, Linear):
        check.refuse("an exact comparison needs a linear model, model='linear'")
    world = make_world(problem, ready, participation, asynchronous, lanes=True)
    setting = Setting(problem, ready, world, rounds, seed)
    if _is_mixture(setting, Unit.RECORD) and np.any(problem.population.rows.x):
        check.refuse("with batches an exact comparison needs empty rows, all of zeros")
    delta = delta_of(ready, delta)
    how = relation_of(ready) if relation is None else Relation(relation)
    rng = np.random.default_rng(seed)
    found = []
    for unit in units:
        each = []
        for agent in range(problem.n_agents) if agents is None else agents:
            changed = _neighbours(problem, agent, unit, how, rng)
            if changed is not None:
                each.append((agent, _views(setting, agent, unit, changed, rng)))
        turns = _turns(setting, participation, each)
        known: dict[Observer, dict[int, float | None]] = {}
        for observer in observers(ready):
            # Who reads the coordinator's post sees what it sees.
            near = observer == Observer.EAVESDROPPER and Observer.COORDINATOR in known
            exact = known[Observer.COORDINATOR] if near else {}
            if not near:
                exact = {a: seen.epsilon(observer, delta) for a, seen in each}
            known[observer] = exact
            found += _rows(setting, turns, Scope(observer, unit, how), exact, delta)
    return tuple(found)


def _turns(setting: Setting, participation: Any, each: list) -> Turns:
    known = {"in_step": setting.world.asynchronous is None}
    turns = planned(setting.problem, setting.rounds, participation, **known)
    if letters_of(setting.algorithm).secret_turns or not each:
        return turns
    return turns.as_they_went(each[0][1].active.sum(axis=0))


def _rows(
    setting: Setting,
    turns: Turns,
    scope: Scope,
    exact: dict[int, float | None],
    delta: float,
) -> Iterator[Compared]:
    """One row per agent, then the report's, which stands for all."""
    problem, algorithm = setting.problem, setting.algorithm
    told = partial(Compared, type(algorithm).__name__, scope, delta=delta)
    sampled = _is_mixture(setting, scope.unit)
    known = {agent: value for agent, value in exact.items() if value is not None}
    for agent, value in known.items():
        question = turns.question(
            scope=scope,
            agent=agent,
            rounds=int(turns.rounds[agent]),
            participation=float(turns.chance[agent]),
        )
        printed, why = _printed(partial(guarantee, algorithm, problem, question), delta)
        yield told(agent, printed=printed, exact=value, sampled=sampled, theorem=why)
    if known:
        worst = max(known, key=lambda agent: known[agent])
        printed, why = _printed(
            lambda: largest(algorithm, problem, turns, scope, delta)[1], delta
        )
        yield told(
            worst, printed=printed, exact=known[worst], sampled=sampled, theorem=why
        )


def _printed(ask: Any, delta: float) -> tuple[float | None, str]:
    try:
        found: Guarantee = ask()
        return found.epsilon(delta), found.theorem
    except (ValueError, ArithmeticError) as refusal:
        return None, f"none: {refusal}"


def _is_mixture(setting: Setting, unit: Unit) -> bool:
    """Whether draws decide what is seen of a change; rows that are all alike do not."""
    if letters_of(setting.algorithm).secret_turns:
        return setting.world.schedule.kind != "all"
    clipped = clipping_of(setting.algorithm.oracle)
    if clipped is None or isinstance(clipped.oracle, Full):
        return False
    return unit == Unit.RECORD or clipped.drawn(1)[1] == "poisson"


def _neighbours(
    problem: Problem, agent: int, unit: Unit, how: Relation, rng: np.random.Generator
) -> tuple[Rows, Rows] | None:
    """The rows of all agents on either side; None for an agent without rows."""
    count = int(problem.counts[agent])
    if count == 0:
        return None
    direction = rng.standard_normal(problem.dim)
    direction *= _SHORT / np.linalg.norm(direction)
    # Not always the first row.
    which = slice(0, count) if unit == Unit.CLIENT else int(rng.integers(count))
    emptied = 0.0 if how == Relation.ADD_REMOVE else 1.0
    return (
        _with_rows(problem, agent, which, direction, _FAR),
        _with_rows(problem, agent, which, emptied * direction, -_FAR),
    )


def _with_rows(
    problem: Problem, agent: int, which: Any, features: np.ndarray, label: float
) -> Rows:
    rows = problem.population.rows
    x, y = np.array(rows.x), np.array(rows.y)
    by_row = x[agent].T if problem.population.by_feature else x[agent]
    by_row[which], y[agent, which] = features, label
    return rows._replace(x=jnp.asarray(x), y=jnp.asarray(y))


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


def _views(
    setting: Setting,
    agent: int,
    unit: Unit,
    changed: tuple[Rows, Rows],
    rng: np.random.Generator,
) -> Views:
    here, there = (setting.linearised(rows) for rows in changed)
    gaps = [
        np.abs(a - b).max(initial=0.0) / max(np.abs(a).max(initial=0.0), 1e-300)
        for a, b in zip(here.slope, there.slope, strict=True)
    ]
    errors = [float(here.error), float(there.error), *gaps]
    mixed = _is_mixture(setting, unit)
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

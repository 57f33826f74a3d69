"""Printed epsilons against the exact divergence of what observers see.

A record whose clipped gradient is the same whatever the model (a linear model, short
features, a label out of reach) makes a run linear in its noise wherever all else is
linear: full gradients of least squares that are not clipped, or empty rows. The real
run is then a Gaussian with a known covariance on either data set, and its divergence
needs no theorem: `noise_map` finds the map, `views` and `divergence` the number. A
printed epsilon below it is false; how far above it is says how tight the theorem is,
for this data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.audits.views import Setting, is_mixture, views_of
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.letters import guarantee, letters_of
from tacita.privacy.scope import Observer, Relation, Scope, Unit
from tacita.privacy.spend import Turns, largest, observers, planned
from tacita.privacy.statement import delta_of, relation_of
from tacita.problem.model.linear import Linear
from tacita.problem.population import Rows
from tacita.problem.problem import Problem
from tacita.runtime.arrivals import Arrivals, Pace
from tacita.runtime.ready import make_world, prepare
from tacita.runtime.transit import Asynchronous
from tacita.trees import in_double_precision

#: A printed epsilon may fall short of the exact one by this, relatively: rounding.
ROUNDING = 1e-6
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
    asynchronous: Asynchronous | Pace | Arrivals | None = None,
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
        asynchronous: As in `tacita.simulate`, on a graph.
        seed: Decides who takes part, and the directions of the changed gradients.
    """
    ready = prepare(problem, algorithm)
    if not isinstance(problem.model, Linear):
        check.refuse("an exact comparison needs a linear model, model='linear'")
    if isinstance(asynchronous, Pace | Arrivals):
        check.refuse(
            "an exact comparison follows letters round by round, and those to a "
            "coordinator who waits for nobody are late; leave asynchronous out"
        )
    world = make_world(problem, ready, participation, asynchronous, lanes=True)
    setting = Setting(problem, ready, world, rounds, seed)
    if is_mixture(setting, Unit.RECORD) and np.any(problem.population.rows.x):
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
                each.append((agent, views_of(setting, agent, unit, changed, rng)))
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
    in_step = setting.world.asynchronous is None
    turns = planned(setting.problem, setting.rounds, participation, in_step=in_step)
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
    sampled = is_mixture(setting, scope.unit)
    known = {agent: value for agent, value in exact.items() if value is not None}
    for agent, value in known.items():
        question = turns.question(
            scope=scope,
            agent=agent,
            rounds=int(turns.rounds[0, agent]),
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

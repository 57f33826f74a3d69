"""How often a run is recorded where nobody says: by what a record costs.

A record evaluates every agent, a round only the active ones. Both are estimated from
shapes and counts, never from a clock: the same run has the same records on any machine,
in `debug`, and when it is resumed. Measured by bench/recording.py.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tacita import check
from tacita.privacy.letters import is_private
from tacita.problem.problem import Problem
from tacita.runtime.world import World

#: What records may add to the work of the rounds: less than 0.3, as it is an estimate.
SHARE = 0.22
#: A record this small, a tenth of a millisecond, is made after every round.
LITTLE = 1_000_000
#: Multiply-adds that a round takes whoever is active: who that is, and small programs.
_ROUND = 120_000
#: What one row costs beside its products, for a gradient and for a loss: exponentials
#: and logarithms are slow.
_GRADIENT, _LOSS = 25, 110
#: Rows of an agent of a private run, however many it has: nobody is told by it.
_ROWS_OF_PRIVATE = 256
_LOSSES = ("loss", "accuracy")
_GRADIENTS = ("grad_norm_sq", "mean_grad_norm_sq")


class Every(NamedTuple):
    """Rounds between records, and whether nobody asked for so many."""

    rounds: int
    by_cost: bool

    @property
    def told(self) -> dict[str, Any]:
        """What the configuration of a run says of it."""
        chosen = {"record_every_chosen": "by cost"} if self.by_cost else {}
        return {"record_every": self.rounds, **chosen}

    @property
    def words(self) -> str:
        """For a progress bar; nothing where every round is recorded, or as asked."""
        seldom = self.by_cost and self.rounds > 1
        return f"recorded every {self.rounds} rounds" if seldom else ""


def of(
    problem: Problem,
    algorithm: Any,
    world: World,
    record: tuple[Any, ...],
    asked: int | None,
    stops: bool = False,
) -> Every:
    """Rounds between records: as asked, or so that records cost little beside rounds.

    Args:
        problem: What is solved.
        algorithm: With every number set.
        world: Who takes part.
        record: What is recorded.
        asked: What the user says.
        stops: Whether a metric ends the run: it is then looked at after every round.
    """
    if asked is not None:
        return Every(check.count(record_every=asked), by_cost=False)
    private = is_private(algorithm)
    # How many rows the agents of a private run have decides nothing that others see.
    rows = _ROWS_OF_PRIVATE if private else problem.population.rows.y.shape[1]
    one = _record(problem, record, rows, private)
    if stops or one <= LITTLE:
        return Every(1, by_cost=True)
    round_ = SHARE * _round(problem, algorithm, world, rows)
    return Every(max(1, math.ceil(one / round_)), by_cost=True)


def _record(
    problem: Problem, record: tuple[Any, ...], rows: int, private: bool
) -> float:
    """Multiply-adds of one record."""
    n, d, scores = problem.n_agents, problem.dim, problem.model.classes or 1
    names = [item for item in record if isinstance(item, str)]
    gradients, losses = (
        any(name in names for name in kind) for kind in (_GRADIENTS, _LOSSES)
    )
    # A loss beside a gradient takes its scores from there.
    each = gradients * (3 * d + _GRADIENT * scores)
    each += losses * ((not gradients) * d + _LOSS * scores)
    found = n * rows * each
    test = problem.population.test
    if test is not None and any(name.startswith("test_") for name in names):
        tested = _ROWS_OF_PRIVATE if private else len(test.y)
        found += tested * (d + _LOSS * scores)
    # Metrics of everybody's model, and a user's own, which may be one.
    whole = "disagreement" in names or len(names) < len(record)
    return found + 3 * n * d * whole


def _round(problem: Problem, algorithm: Any, world: World, rows: int) -> float:
    """Multiply-adds of one round, as far as is known: at least one gradient each."""
    asked, scores = algorithm.gradients(), problem.model.classes or 1
    gradients = 1 if isinstance(asked, str) else max(1, sum(asked))
    used = gradients * algorithm.oracle.rows_used(rows)
    each = used * (3 * problem.dim + _GRADIENT * scores)
    return _ROUND + world.schedule.expected(problem.n_agents) * each

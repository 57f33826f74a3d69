"""A plan made small, so that its divergence can be computed exactly.

The twin keeps what a guarantee is made of: the algorithm with all its numbers, the
noise, the clipping, the sampling, each agent's number of rows. It replaces what would
make the run long or bent: the model is linear with two features, all rows but the
changed ones are empty, and only some agents and rounds are left. What Tacita prints for
the twin comes from the same theorem as for the plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from tacita import check
from tacita.aggregation import Aggregation, Summed
from tacita.algorithm.base import GraphAlgorithm
from tacita.audits.exact import Compared, compare
from tacita.privacy.scope import Observer, word
from tacita.problem.arrays import from_arrays
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.problem import Problem
from tacita.runtime.ready import prepare

#: What is kept of larger plans: linear maps grow with the square of all draws.
_AGENTS, _NODES, _ROUNDS = 4, 12, 8


@dataclass(frozen=True)
class ExactAudit:
    """Printed epsilons of a plan's twin beside the exact ones.

    Attributes:
        rows: One comparison per observer, unit and agent of the twin.
        twin: In words: what was compared.
    """

    rows: tuple[Compared, ...]
    twin: str

    @property
    def refuted(self) -> bool:
        """Whether a printed epsilon is below the exact one."""
        return any(row.false for row in self.rows)

    def against(self, observer: str | None) -> ExactAudit:
        """The rows about one observer; all of them for None."""
        if observer is None:
            return self
        who = word(Observer, observer)
        rows = tuple(row for row in self.rows if row.scope.observer == who)
        return replace(self, rows=rows)

    def __str__(self) -> str:
        lines = [self.twin]
        lines += [str(row) for row in self.rows]
        verdict = "FALSE: a printed epsilon is below the exact one"
        if not self.refuted:
            verdict = "no printed epsilon is below the exact one"
        return "\n".join([*lines, verdict])


def audit_exactly(
    problem: Problem,
    algorithm: Any,
    *,
    rounds: int,
    participation: Any = 1.0,
    aggregation: Aggregation | None = None,
    delta: float | None = None,
    seed: int = 0,
) -> ExactAudit:
    """Compare what Tacita prints for a plan's twin with the exact divergence.

    Args:
        problem: Of the plan: its numbers of rows, its graph, its l2 are kept.
        algorithm: Of the plan.
        rounds: Of the plan; the first 8 of more.
        participation: As in `tacita.simulate`.
        aggregation: As in `tacita.simulate`; only a mean is linear in the noise.
        delta: Of all epsilons; default that of the promise, or 1e-5.
        seed: Decides who takes part, and the directions of the changed gradients.
    """
    ready = prepare(problem, algorithm)
    if isinstance(ready, Summed):
        check.refuse(
            "integers are not linear in their noise, so no exact divergence of a "
            "secure sum is known; audit it without --exact"
        )
    if aggregation is not None and not aggregation.additive:
        check.refuse(
            f"{type(aggregation).__name__} is not linear in the noise of letters, so "
            "no exact divergence is known; audit it without --exact"
        )
    n = _agents_kept(problem, ready)
    small, kept = _empty_twin(problem, n), _of_first(ready, problem.n_agents, n)
    share = participation
    if isinstance(participation, int | np.integer):
        share = max(1, math.floor(participation * n / problem.n_agents))
    elif np.ndim(participation):
        share = np.asarray(participation)[:n]
    length = min(check.count(rounds=rounds), _ROUNDS)
    found = compare(
        small, kept, rounds=length, participation=share, delta=delta, seed=seed
    )
    if not found:
        check.refuse(
            f"a run of {type(ready).__name__} is not linear in its noise even on empty "
            "rows, so no exact divergence is known; audit it without --exact"
        )
    words = (
        f"exact comparison on a twin of the plan: {type(ready).__name__} with the same "
        f"numbers and the same rows per agent, the first {n} of {problem.n_agents} "
        f"agents, {length} of {rounds} rounds, a linear model with 2 features, empty "
        "rows around the changed ones"
    )
    return ExactAudit(found, words)


def _agents_kept(problem: Problem, algorithm: Any) -> int:
    if not isinstance(algorithm, GraphAlgorithm):
        return min(problem.n_agents, _AGENTS)
    if problem.n_agents > _NODES:
        check.refuse(
            f"an exact comparison takes a graph of at most {_NODES} nodes, this one "
            f"has {problem.n_agents}; make a smaller one of the same kind"
        )
    return problem.n_agents


def _empty_twin(problem: Problem, n: int) -> Problem:
    regulariser = problem.population.regulariser
    l2 = float(regulariser.weight) if isinstance(regulariser, SquaredL2) else 0.0
    counts = np.asarray(problem.counts)[:n]
    total = int(counts.sum())
    return from_arrays(
        np.zeros((total, 2)),
        np.zeros(total),
        np.repeat(np.arange(n), counts),
        model="linear",
        l2=l2,
        graph=problem.graph,
        unlabelled=np.flatnonzero(counts == 0).tolist(),
    )


def _of_first(algorithm: Any, agents: int, n: int) -> Any:
    """The algorithm with the numbers of the first n agents."""

    def cut(leaf: Any) -> Any:
        return leaf[:n] if np.shape(leaf) == (agents,) else leaf

    return jax.tree.map(cut, algorithm)

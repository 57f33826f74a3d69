"""What a run is made of before its first round: algorithm, plan and world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from tacita import check
from tacita.algorithm.base import Algorithm, GraphAlgorithm
from tacita.privacy.letters import is_private
from tacita.problem.oracles import Minibatch, Oracle
from tacita.problem.problem import Problem
from tacita.robust import Attack
from tacita.runtime import arrivals, choices, delivery, gather, measure
from tacita.runtime.arrivals import Arrivals, Pace
from tacita.runtime.engine import RunPlan
from tacita.runtime.transit import Asynchronous
from tacita.runtime.world import World

MAPPINGS = ("auto", "together", "one_by_one")


#: What every oracle does.
_ORACLE = {name for name in vars(Oracle) if not name.startswith("_")}


def prepare(problem: Problem, algorithm: Algorithm) -> Any:
    """Check that the algorithm fits the problem; let theory set what was left out."""
    if not isinstance(algorithm, Algorithm):
        check.refuse(
            f"expected an algorithm such as tacita.FedAvg(...), got {algorithm!r}"
        )
    oracle = algorithm.oracle
    if isinstance(oracle, type) or not isinstance(oracle, Oracle):
        lacking = sorted(n for n in _ORACLE if not hasattr(oracle, n))
        own = hasattr(oracle, "grad") and not isinstance(oracle, type)
        what = f", which lacks {', '.join(lacking)}" if own else ""
        check.refuse(
            "expected oracle such as tacita.Full() or tacita.Minibatch(size=16), got "
            f"oracle={oracle!r}{what}"
        )
    algorithm.refuse_problem(problem)
    oracle.check(problem)
    # Before theory computes others from them, which would be named instead.
    _require_one_per_agent(algorithm, problem.n_agents)
    ready = _in_precision_of(problem, algorithm.resolve(problem))
    if isinstance(ready.oracle, Minibatch) and is_private(ready):
        ready.oracle.require_rows(problem)
    return ready


def _require_one_per_agent(algorithm: Any, n: int) -> None:
    """Refuse numbers of each agent's own that are more or fewer than the agents."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(algorithm):
        if np.ndim(leaf) == 1 and np.shape(leaf)[0] != n:
            name = jax.tree_util.keystr(path).lstrip(".")
            check.refuse(
                f"expected {name} one number, or {n}, one per agent, got "
                f"{np.shape(leaf)[0]} entries in {name} of {type(algorithm).__name__}"
            )


def _in_precision_of(problem: Problem, algorithm: Any) -> Any:
    """Per-agent numbers in the problem's type, lest float64 ones lift float32 data."""

    def cast(leaf: Any) -> Any:
        floats = np.ndim(leaf) > 0 and np.issubdtype(leaf.dtype, np.floating)
        return leaf.astype(problem.dtype) if floats else leaf

    return jax.tree.map(cast, algorithm)


def make_plan(
    problem: Problem,
    algorithm: Any,
    record: Any,
    reference: Any,
    stop: Mapping[str, float] | None,
    mapping: str = "auto",
    lanes: bool = False,
) -> RunPlan:
    """What the compiled program is specialised for."""
    chosen = measure.choose(record, problem, reference)
    stopper = choices.stop_index(chosen, stop)
    return RunPlan(
        record=chosen,
        together=_together(problem, algorithm, mapping),
        lanes=lanes,
        stop=stopper,
        rising=stopper is not None
        and measure.name_of(chosen[stopper]) in measure.RISING,
    )


def make_world(
    problem: Problem,
    algorithm: Any,
    participation: Any,
    asynchronous: Asynchronous | Pace | Arrivals | None = None,
    aggregation: Any = None,
    lanes: bool = False,
    attack: Attack | None = None,
) -> World:
    """What the compiled program is given: rows, edges, who is active, the rule."""
    choices.require_asynchronous(algorithm, asynchronous)
    if isinstance(asynchronous, Pace | Arrivals):
        who = arrivals.schedule_of(asynchronous, participation, problem.n_agents)
    else:
        who = choices.schedule_of(problem, algorithm, participation, lanes)
    join = choices.aggregation_of(problem, algorithm, aggregation, who)
    network = None
    if isinstance(algorithm, GraphAlgorithm):
        assert problem.graph is not None
        one_by_one = asynchronous is not None or attack is not None
        one_by_one |= aggregation is not None
        network = delivery.of(problem.graph, algorithm, problem.dtype, one_by_one)
    if asynchronous is not None and (aggregation is not None or attack is not None):
        check.refuse(
            "letters that are late are joined by their mean, and nobody lies about "
            "them; leave aggregation and attack out, or asynchronous"
        )
    population = algorithm.oracle.prepare(problem.population)
    return World(population, network, who, asynchronous, join, attack)


def _together(problem: Problem, algorithm: Any, mapping: str) -> bool:
    """Whether to vmap over agents: small local gradients yes, large ones no."""
    check.one_of(MAPPINGS, mapping=mapping)
    if mapping != "auto":
        return mapping == "together"
    rows = algorithm.oracle.rows_used(problem.population.rows.y.shape[1])
    return rows * problem.dim < gather.ONE_BY_ONE_WORK

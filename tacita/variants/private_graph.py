"""A graph learnt from private letters, one a node.

Every node takes a few clipped, noisy gradient steps from a common point and sends where
it came to: with one step this is its gradient at that point, (157) of A. Jung,
"Federated Learning: From Theory to Practice". Nodes with like letters are joined. The
graph is a function of the letters, so that it costs nothing beyond them; who sees a
single letter, or an edge that depends on it, is charged with it whole.

In a federation the same letters are those of a run with `run.keep_letters`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita import check
from tacita.algorithm.fed_avg import FedAvg
from tacita.privacy.ledger import Ledger
from tacita.privacy.letters import Question, guarantee
from tacita.privacy.private import private
from tacita.privacy.scope import Observer, Scope
from tacita.problem.graph import Graph, from_vectors
from tacita.problem.problem import Problem
from tacita.runtime.simulate import simulate
from tacita.trace import PrivacyRow
from tacita.trees import in_double_precision, replace


@dataclass(frozen=True, eq=False)
class PrivateGraph:
    """What nodes said of themselves, and the graph made of it.

    Attributes:
        graph: Nodes with like letters are joined.
        letters: What every node sent, noise included, (N, d).
        privacy: What whoever sees letters or graph may learn of one unit, at most.
    """

    graph: Graph
    letters: np.ndarray
    privacy: PrivacyRow


@in_double_precision
def private_graph(
    problem: Problem,
    method: str = "nearest",
    k: int | None = None,
    *,
    epsilon: float,
    delta: float,
    norm: float = 1.0,
    unit: str = "record",
    step_size: float | None = None,
    local_steps: int = 1,
    at: Any = None,
    seed: int | None = None,
    ledger: Ledger | None = None,
    run: str = "graph",
    **options: Any,
) -> PrivateGraph:
    """Learn a graph from one noisy letter of every node.

    Args:
        problem: The nodes and their rows; a graph it has is not looked at.
        method: As in `tacita.problem.graph.learned`.
        k: Likewise.
        epsilon: What the letters may cost, against whoever sees them or the graph.
        delta: The probability of exceeding it.
        norm: What records' gradients are clipped to. Choose it, and everything else
            here, without looking at private rows.
        unit: What is protected: one `record`, or all of a `client`.
        step_size: Of the local steps; with one step it only scales the letters.
        local_steps: More of them come nearer to a node's own model, and share the
            budget.
        at: The common point; the problem's start if left out.
        seed: Of the noise; a fresh secret if left out.
        ledger: Charged with every node's letter before the graph is made, by the
            node's id; it must allow it.
        run: The name of the release there; another letter needs another one.
        **options: As in `learned`.

    >>> import tacita
    >>> nodes = tacita.problem.synthetic.logistic(6, features=2, samples=200)
    >>> made = private_graph(nodes, k=2, epsilon=1.0, delta=1e-5)
    >>> made.graph.n_nodes, round(made.privacy.epsilon, 3), made.privacy.observer
    (6, 1.0, 'coordinator')
    """
    if step_size is None and check.count(local_steps=local_steps) > 1:
        check.refuse("several local steps need step_size, chosen without private rows")
    alone = replace(problem, graph=None)
    asked = FedAvg(step_size=step_size or 1.0, local_steps=local_steps)
    budget = {"epsilon": epsilon, "delta": delta, "norm": norm, "unit": unit}
    observer = Observer.COORDINATOR
    ready = private(alone, asked, observer=observer, rounds=1, **budget)
    start = None if at is None else check.shape((problem.dim,), at=np.asarray(at))
    done = simulate(alone, ready, 1, seed, start=start, record=(), progress=False)
    assert done.privacy is not None
    letters = np.asarray(done.agents, float)
    row = done.privacy.row(observer, unit)
    if ledger is not None:
        _charge(ledger, alone, ready, Scope(observer, unit, row.relation), letters, run)
    made = from_vectors(letters, method, k, **options).named(problem.ids)
    made = replace(made, from_letters=True)
    return PrivateGraph(made, letters, row)


def _charge(
    ledger: Ledger,
    problem: Problem,
    algorithm: Any,
    scope: Scope,
    letters: np.ndarray,
    run: str,
) -> None:
    """Write every node's letter down: all of them, or none."""
    with ledger.together():
        for number, (name, letter) in enumerate(zip(problem.ids, letters, strict=True)):
            question = Question(scope=scope, agent=number, rounds=1)
            price = guarantee(algorithm, problem, question)
            about = {"agent": str(name), "run": run, "round": 1}
            told = price.against_everybody()  # a graph is there to be shown
            ledger.charge(told, content=letter.tobytes(), **about)

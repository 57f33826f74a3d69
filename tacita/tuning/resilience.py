"""Which rule would hold on this problem: every attack against every rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check, robust
from tacita.aggregation import Aggregation, Mean
from tacita.algorithm.base import Algorithm, GraphAlgorithm
from tacita.algorithm.joining import Rules
from tacita.problem.graph import Graph
from tacita.problem.population import Population
from tacita.problem.problem import Problem
from tacita.robust import Attack
from tacita.runtime import choices
from tacita.runtime.simulate import simulate
from tacita.trees import in_double_precision, tree_rows
from tacita.trees import replace as with_fields
from tacita.tuning.usual_liars import rule_table, some_liars, usual_attacks

#: A rule is told to cost something where it loses as much: of an accuracy, or of what
#: the honest agents alone reach where a loss is measured.
_NOTABLE = 0.03
#: What is measured where there are no classes, and whose models are on a graph.
LOSS = "minus the loss"
_OF_NODES = " of the honest nodes"
#: What to do where no rule holds.
_AT_A_COORDINATOR = (
    "Trust few agents, or give the coordinator rows of its own (FLTrust)."
)
_ON_A_GRAPH = "Trust few neighbours, or give honest nodes more edges to each other."


@dataclass(frozen=True, eq=False)
class Resilience:
    """What every rule reaches under every attack.

    Attributes:
        rules: Their names, the mean among them.
        attacks: Their names; the first is nobody's.
        values: (rules, attacks), of the metric.
        metric: What was measured; larger is better.
        alone: What the mean of the honest agents alone reaches: no rule can be asked
            for more, since the liars' rows are lost.
        liars: The numbers of the agents that lie.
        on_graph: Whether every node has a model of its own; what is measured is then
            the mean over the honest nodes.
    """

    rules: tuple[str, ...]
    attacks: tuple[str, ...]
    values: np.ndarray
    metric: str
    alone: float
    liars: tuple[int, ...]
    on_graph: bool = False

    @property
    def of_loss(self) -> bool:
        """Whether a loss was measured, which has no least value."""
        return self.metric.startswith(LOSS)

    @property
    def worst(self) -> np.ndarray:
        """Every rule's worst value over the attacks."""
        return self.values.min(axis=1)

    def recommendation(self) -> str:
        """In words: which rule to take, what it costs, and whether it is enough."""
        mean = self.rules.index("Mean")
        best = int(self.worst.argmax())
        fatal = self.attacks[int(self.values[best].argmin())]
        if best == mean:
            return (
                f"Stay with the mean: no rule does better in its worst case "
                f"({in_words(self.worst[mean])}, against {fatal})."
            )
        calm = self.values[mean, 0] - self.values[best, 0]
        notable = _NOTABLE * (abs(self.alone) if self.of_loss else 1)
        told = [
            f"If {len(self.liars)} of the agents may lie, take {self.rules[best]}: at "
            f"worst it reaches {in_words(self.worst[best])} ({fatal}), the mean "
            f"{in_words(self.worst[mean])}; the honest agents alone reach "
            f"{in_words(self.alone)}."
        ]
        if calm > notable:
            told.append(f"While nobody lies it costs {in_words(calm)}.")
        if self.alone - self.worst[best] > 2 * notable:
            told.append(
                "No rule here holds against every attack: where honest letters differ, "
                "as with unlike data, a liar can hide among them. "
                + (_ON_A_GRAPH if self.on_graph else _AT_A_COORDINATOR)
            )
        return " ".join(told)


def in_words(value: float) -> str:
    """A value; a run that ended in numbers that are none has diverged.

    >>> in_words(0.94321), in_words(-81234567.0), in_words(float("-inf"))
    ('0.943', '-8.12e+07', 'diverged')
    """
    if not np.isfinite(value):
        return "diverged"
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.2e}"


@in_double_precision
def resilience(
    problem: Problem,
    algorithm: Algorithm,
    rounds: int,
    *,
    liars: Sequence[int] | None = None,
    rules: Mapping[str, Aggregation] | None = None,
    attacks: Mapping[str, Attack] | None = None,
    seed: int | None = None,
    participation: Any = 1.0,
    score: Callable[[np.ndarray, Attack | None], float] | None = None,
    tell: Callable[[int, int, str], None] | None = None,
) -> Resilience:
    """Run every attack against every rule, and measure what is left.

    Args:
        problem: The problem, honest.
        algorithm: Of a coordinator, or on a graph one whose letters rules may join.
        rounds: Of every run.
        liars: Numbers of the agents that lie; default the last fifth of them.
        rules: By name; default those that the letters of a round, or of neighbours,
            are enough for. The mean is added.
        attacks: By name; default one of every kind.
        seed: Of all runs.
        participation: Who takes part in a round, as in `tacita.simulate`.
        score: Of a model and an attack, larger is better; default the accuracy on
            test rows, else on all rows, else minus the loss; of a `Backdoor` the share
            of marked test rows that are not taken for its target. On a graph it is
            given the models of the honest nodes, stacked, and the default is the mean
            over them, on their own rows where there are no test rows.
        tell: Called after every run with how many are done, of how many, and which.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=5, features=3, samples=20)
    >>> table = resilience(problem, tacita.FedAvg(), 3, liars=(4,),
    ...     rules={"Median": tacita.aggregation.Median()},
    ...     attacks={"flip": tacita.robust.SignFlip(agents=(4,), strength=9.0)})
    >>> table.rules, table.attacks, table.values.shape
    (('Mean', 'Median'), ('none', 'flip'), (2, 2))
    """
    on_graph, n = isinstance(algorithm, GraphAlgorithm), problem.n_agents
    who = some_liars(problem, range(n - max(1, n // 5), n) if liars is None else liars)
    alone = without(problem, who)
    if isinstance(algorithm, GraphAlgorithm):
        _require_honest_neighbours(algorithm, alone)
    if rules is None:
        rules = rule_table(problem, algorithm, who, participation).able()
    tried = {"Mean": Mean(), **rules}
    # All of them, before the first of many runs.
    chosen_by = choices.schedule_of(problem, algorithm, participation)
    for rule in tried.values():
        choices.aggregation_of(problem, algorithm, rule, chosen_by)
    lied = usual_attacks(problem, who, on_graph) if attacks is None else attacks
    metric, measured = _usual_score(alone if on_graph else problem, on_graph)
    if score is not None:
        metric, measured = "score", score
    honest = np.delete(np.arange(n), who)

    # One program for every rule: which attack is made is a number in it. Only lies that
    # differ from edge to edge are a program of their own.
    cast = (Attack(agents=who), *lied.values())
    alike = [attack for attack in cast if not attack.on_edges]
    each = robust.OneOf(agents=who, attacks=tuple(alike))
    done: list[Aggregation] = []

    def reached(rule: Aggregation, k: int) -> float:
        made = cast[k]
        if not made.on_edges:
            made = with_fields(each, which=alike.index(made))
        chosen = {"aggregation": rule, "attack": made, "participation": participation}
        run = simulate(
            problem, algorithm, rounds, seed, record=(), progress=False, **chosen
        )
        models = run.agents[honest] if on_graph else run.params
        found = measured(np.asarray(models), None if k == 0 else cast[k])
        if tell is not None:
            done.append(rule)
            about = f"{type(rule).__name__} against {('nobody', *lied)[k]}"
            tell(len(done), len(tried) * len(cast), about)
        return found if np.isfinite(found) else -np.inf

    values = [[reached(rule, k) for k in range(len(cast))] for rule in tried.values()]
    if isinstance(algorithm, GraphAlgorithm) and algorithm.needs_connection():
        # Liars may have held the graph together.
        algorithm = with_fields(algorithm, need_connected=False)
    chosen = {"participation": _of_honest(participation, honest)}
    run = simulate(alone, algorithm, rounds, seed, record=(), progress=False, **chosen)
    return Resilience(
        rules=tuple(tried),
        attacks=("none", *lied),
        values=np.array(values),
        metric=metric,
        alone=measured(np.asarray(run.agents if on_graph else run.params), None),
        liars=who,
        on_graph=on_graph,
    )


def _of_honest(participation: Any, honest: np.ndarray) -> Any:
    """Who takes part in a round where the honest agents are alone."""
    if np.ndim(participation):
        return np.asarray(participation)[honest]
    whole = isinstance(participation, int | np.integer)
    return min(int(participation), len(honest)) if whole else participation


def _require_honest_neighbours(algorithm: GraphAlgorithm, alone: Problem) -> None:
    """Refuse letters that no rule may join, and nodes that hear nobody but liars."""
    if algorithm.joining.rules != Rules.ANY:
        check.refuse(
            f"letters of {type(algorithm).__name__} are no models, or differ from edge "
            "to edge, so that no rule may join them; use FedGD, FedSGD or FedRelax"
        )
    assert alone.graph is not None
    (lonely,) = np.nonzero(np.asarray(alone.graph.neighbour_counts) == 0)
    if len(lonely):
        check.refuse(
            f"node {alone.ids[lonely[0]]!r} has no honest neighbour, so that no rule "
            "can help it; take more edges or fewer liars"
        )


def without(problem: Problem, liars: Sequence[int]) -> Problem:
    """The problem of the honest agents alone, and of the edges between them."""
    left = [i for i in range(problem.n_agents) if i not in set(liars)]
    population: Population = problem.population
    made = with_fields(population, rows=tree_rows(population.rows, np.array(left)))
    ids = [problem.ids[i] for i in left]
    graph = None if problem.graph is None else _between(problem.graph, left)
    return dataclasses.replace(problem, population=made, ids=ids, graph=graph)


def _between(graph: Graph, left: Sequence[int]) -> Graph:
    """The edges between some of the nodes."""
    first, second, weights = graph.pairs()
    kept = np.isin(first, left) & np.isin(second, left)
    ends = zip(first[kept], second[kept], strict=True)
    edges = [(graph.nodes[i], graph.nodes[j]) for i, j in ends]
    return Graph.from_edges([graph.nodes[i] for i in left], edges, weights[kept])


def _usual_score(
    problem: Problem, on_graph: bool
) -> tuple[str, Callable[[np.ndarray, Attack | None], float]]:
    """What is measured, of the models of a problem's agents if on a graph."""
    test, model = problem.population.test, problem.model
    whose = _OF_NODES if on_graph else ""
    if model.classes is None:
        return LOSS + whose, lambda w, _: -problem.loss(w)
    if test is None:
        return "accuracy" + whose, lambda w, _: problem.accuracy(w)
    x, y = test.x, jnp.asarray(test.y)

    def measured(w: np.ndarray, attack: Attack | None) -> float:
        def one(own: Array) -> Array:
            if isinstance(attack, robust.Backdoor):
                return 1 - attack.success(problem)(own, own)
            return jnp.mean(model.predict(own, x) == y)

        return float(jnp.mean(jax.vmap(one)(jnp.atleast_2d(jnp.asarray(w)))))

    return "test accuracy" + whose, measured

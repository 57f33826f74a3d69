"""One account per algorithm: what its letters are, for whoever bounds what they say.

`letters_of(algorithm)` is the one place that knows algorithms by their class. Whoever
is not registered is accounted by composition over the gradients that it declares
(`Algorithm.gradients`), with defaults that claim nothing more. To say more of an
algorithm, or to give it a theorem of its own, register one function:

    @letters_of.register
    def _(algorithm: Newcomer) -> Letters:
        return of_gradients(algorithm, public_state=True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any

import numpy as np

from tacita import check
from tacita.algorithm import (
    DPADMM,
    DPSGD,
    FedAsync,
    FedAvg,
    FedBuff,
    FedOpt,
    GossipSGD,
    GraphADMM,
    ServerGD,
)
from tacita.algorithm.base import GraphAlgorithm
from tacita.algorithm.fed_opt import CoordinatorSteps
from tacita.encoding import TAKEN_FOR_GRANTED
from tacita.privacy.accounting.guarantee import (
    Assumption,
    Guarantee,
    believed,
    violated,
)
from tacita.privacy.clipped import clipping_of, with_std, without_noise
from tacita.privacy.letters.composition import (
    by_composition,
    gradient_changes,
    gradient_increment,
)
from tacita.privacy.letters.mixing import by_mixing, places
from tacita.privacy.letters.question import Increment, Question
from tacita.privacy.scope import Relation, Scope
from tacita.problem.graph import Graph
from tacita.problem.oracles import Minibatch, Oracle
from tacita.problem.problem import Problem
from tacita.problem.quantised import Quantised
from tacita.schedule import is_common, is_constant, largest
from tacita.trees import replace


def nothing(_: Any) -> Any:
    """No facts, no factors."""
    return None


@dataclass(frozen=True, kw_only=True)
class Letters:
    """What the letters of one algorithm are.

    Attributes:
        theorem: What one agent's data is guaranteed.
        with_noise: The same algorithm with this noise, or a refusal.
        noise_std: The noise it has, one number or one per agent.
        needed: Per agent, what its noise should be proportional to.
        relation: The one that its sampling is accounted under.
        facts: Numbers per agent that the guarantee depends on besides rows, rounds and
            the algorithm's own numbers per agent; None for no others.
        mixed: Of letters that are a function of the broadcast plus a noisy gradient
            times a factor, and that a broadcast shows only in a mean with all their
            noise: the factor, one number or one per agent.
        descends: Of rounds that do nothing but step from the broadcast model along
            the agents' gradients at it: the step size, one number or one per agent.
        public_state: Who sees all letters can compute what an agent's next one starts
            from.
        replayed: An agent's state carries no noise: who knows two data sets and what
            the agent received computes its state for either.
        secret_turns: The bound is over a secret draw of who takes part.
        increments: How far one unit moves what enters a secure sum; None where no sum
            is accounted.
        shared_noise: What one draw of noise is multiplied by in the letter on each
            edge of a node; None where letters of a round never share noise and show
            different things.
    """

    theorem: Callable[[Problem, Question], Guarantee]
    with_noise: Callable[[Any], Any]
    noise_std: Any
    needed: Callable[[Problem, Scope], np.ndarray]
    relation: Relation
    facts: Callable[[Problem], list[np.ndarray] | None] = nothing
    mixed: Any = None
    descends: Any = None
    public_state: bool = False
    replayed: bool = False
    secret_turns: bool = False
    increments: Callable[[Problem, Question], Increment] | None = None
    shared_noise: Callable[[Any], np.ndarray | None] = nothing


def of_gradients(algorithm: Any, **more: Any) -> Letters:
    """Letters that are functions of the gradients of a `Noisy` oracle, and no more."""
    if isinstance(algorithm.oracle, Quantised):
        # What others' letters carry is rounded, and no Gaussian that hides anybody.
        more |= {"mixed": None, "descends": None}

    def with_noise(noise_std: Any) -> Any:
        return replace(algorithm, oracle=with_std(algorithm.oracle, noise_std))

    given: dict[str, Any] = {
        "theorem": partial(
            by_composition,
            algorithm,
            mixed=more.get("mixed"),
            descends=more.get("descends"),
        ),
        "with_noise": with_noise,
        "noise_std": algorithm.oracle.std,
    }
    if more.get("mixed") is not None:
        given["increments"] = partial(gradient_increment, algorithm, more["mixed"])
    return _letters(algorithm, **given | more)


def of_noised(algorithm: Any, **more: Any) -> Letters:
    """Letters to which the algorithm itself adds noise, `noise_std`."""
    given: dict[str, Any] = {
        "with_noise": lambda noise_std: replace(algorithm, noise_std=noise_std),
        "noise_std": algorithm.noise_std,
    }
    return _letters(algorithm, **given | more)


def around(wrapper: Any, **more: Any) -> Letters:
    """The letters of a wrapper: noise and facts are those of the inner algorithm."""
    if wrapper.algorithm.aggregation is not None:
        wrapper.require_one_exchange(type(wrapper).__name__)
    inner = letters_of(wrapper.algorithm)
    return Letters(
        with_noise=lambda std: replace(wrapper, algorithm=inner.with_noise(std)),
        noise_std=inner.noise_std,
        needed=inner.needed,
        relation=inner.relation,
        facts=inner.facts,
        **more,
    )


def _letters(algorithm: Any, **given: Any) -> Letters:
    usual: dict[str, Any] = {
        "needed": partial(gradient_changes, algorithm),
        "relation": sampled_relation(algorithm.oracle),
    }
    return Letters(**usual | given)


def sampled_relation(oracle: Oracle) -> Relation:
    """The relation that the sampling of an oracle is accounted under."""
    clipped = clipping_of(oracle)
    inner = without_noise(oracle) if clipped is None else clipped.oracle
    poisson = isinstance(inner, Minibatch) and inner.sampling == "poisson"
    return Relation.ADD_REMOVE if poisson else Relation.REPLACE_ONE


@singledispatch
def letters_of(algorithm: Any) -> Letters:
    """What the letters of an algorithm are."""
    return of_gradients(algorithm)


def guarantee(algorithm: Any, problem: Problem, question: Question) -> Guarantee:
    """What one agent's data is guaranteed, or a refusal."""
    asked = question.seen_as(problem)
    found = letters_of(algorithm).theorem(problem, asked)
    if asked.scope != question.scope:
        told = "an emptied record, from which this model learns, is a replaced one; "
        found = replace(found, scope=question.scope).noting(before=told)
    notes = [believed("the number of rows of every agent is public")]
    if isinstance(algorithm, GraphAlgorithm):
        notes += _origin_of_edges(problem.graph)
    if question.seeded:
        notes.append(
            believed(
                "no observer knows, or guesses, the seed that was asked for: whoever "
                "does can compute all noise"
            )
        )
    notes += [*_before_the_run(problem), *question.assumed]
    return found.noting(*_origin_of_numbers(algorithm, found, question), *notes)


def _origin_of_edges(graph: Graph | None) -> list[Assumption]:
    """What the edges of a graph tell of rows."""
    if graph is None:
        return []
    if graph.from_rows:
        return [
            violated(
                "the graph says nothing of rows: it was learnt from them without noise,"
                " so learn it with tacita.variants.private_graph"
            )
        ]
    if graph.from_letters:
        return [
            believed(
                "the letters that the graph was learnt from are counted besides: what "
                "they cost is no part of this epsilon"
            )
        ]
    return [believed("who is joined with whom was known before these rows")]


def _origin_of_numbers(
    algorithm: Any, found: Guarantee, question: Question
) -> tuple[Assumption, ...]:
    """Whether numbers came from rows, as far as that is known."""
    clipped = clipping_of(algorithm.oracle)
    statement = "no number of the algorithm was chosen by looking at private data"
    if question.looked or (clipped is not None and clipped.looked):
        remedy = "theory looked at the rows, so give the problem bound=, or the numbers"
        return (violated(f"{statement}: {remedy}"),)
    if any(one.status == "violated" for one in found.assumptions):
        return ()  # something was set by looking at rows, as is said already
    return (believed(statement),)


def _before_the_run(problem: Problem) -> tuple[Assumption, ...]:
    """What was done to rows before: with a scale by rows, one record moves them all."""
    origin, granted = problem.origin, TAKEN_FOR_GRANTED
    told = [believed(granted[one]) for one in origin.learnt if one in granted]
    learnt = [one for one in origin.learnt if one not in granted]
    if origin.mixes_rows:
        told.append(
            violated(
                "a record changes no row but its own, and it does: "
                f"{'; '.join(learnt)}; use scale=None with a public bound=, no imputed "
                "values, and maps of features that were known before"
            )
        )
    elif learnt:
        told.append(believed("which values a category may have is public"))
    return tuple(told)


def is_private(algorithm: Any) -> bool:
    """Whether a run is about privacy: its gradients are clipped, or it has noise."""
    noise = letters_of(algorithm).noise_std
    noised = noise is not None and bool(np.any(np.asarray(noise) > 0))
    return noised or clipping_of(algorithm.oracle) is not None


def _one_for_all_rounds(step: Any) -> Any:
    """A step size with which all rounds contract alike; None of one that shrinks."""
    return step if is_constant(step) else None


def _stepped(algorithm: Any) -> dict[str, Any]:
    """What is said of letters that are the broadcast less steps along gradients.

    Of steps that shrink nothing but their ratio between agents is counted on, which
    schedules of their own would change; a sum must bear the longest.
    """
    step = algorithm.step_size
    mixed = step
    if not is_constant(step):
        mixed = 1.0 if is_common(step) and algorithm.local_steps == 1 else None
    sums = partial(gradient_increment, algorithm, largest(step))
    return {"mixed": mixed, "increments": sums, "public_state": True}


@letters_of.register
def _(algorithm: ServerGD) -> Letters:
    if algorithm.local_steps > 1:
        increments = partial(gradient_increment, algorithm, 1.0)  # says why not
        return of_gradients(algorithm, increments=increments, public_state=True)
    # A letter is a gradient at the broadcast.
    step = _one_for_all_rounds(algorithm.step_size)
    return of_gradients(algorithm, mixed=1.0, descends=step, public_state=True)


@letters_of.register
def _(algorithm: DPSGD) -> Letters:
    # Numbers that JAX traces, as in an audit, are not looked at.
    plain = all(
        check.is_number(kept) and kept == 0
        for kept in (algorithm.momentum, algorithm.average)
    )
    step = _one_for_all_rounds(algorithm.step_size) if plain else None
    return of_gradients(algorithm, mixed=1.0, descends=step, public_state=True)


@letters_of.register
def _(algorithm: FedAvg) -> Letters:
    # A letter is w - step_size times the sum of its gradients.
    step = algorithm.step_size
    once = _one_for_all_rounds(step) if algorithm.local_steps == 1 else None
    return of_gradients(algorithm, **_stepped(algorithm), descends=once)


@letters_of.register
def _(algorithm: CoordinatorSteps) -> Letters:
    # The letters of FedAvg; moments of their means show no more than the means do.
    return of_gradients(algorithm, **_stepped(algorithm))


@letters_of.register(FedBuff)
@letters_of.register(FedAsync)
def _(algorithm: Any) -> Letters:
    # Local steps from a broadcast, however old. A mean is not counted on to hide any of
    # them: of late letters nobody knows which broadcast they would have to be in.
    return of_gradients(algorithm, public_state=True)


@letters_of.register
def _(algorithm: FedOpt) -> Letters:
    # Agents begin every round with a fresh optimiser, at the broadcast.
    return of_gradients(algorithm, public_state=True)


@letters_of.register
def _(algorithm: GossipSGD) -> Letters:
    # The model is the letter.
    return of_gradients(
        algorithm,
        theorem=partial(by_mixing, algorithm),
        facts=partial(places, algorithm),
        public_state=True,
    )


@letters_of.register(DPADMM)
@letters_of.register(GraphADMM)
def _(algorithm: Any) -> Letters:
    # DP-ADMM's w~_i and lambda_i follow from letters and broadcasts. On a graph the
    # model is the letter, and multipliers are sums of letters.
    return of_gradients(algorithm, public_state=True)

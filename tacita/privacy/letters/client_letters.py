"""The letters of client-level DP-FedAvg: a trusted coordinator adds the noise."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from tacita import check
from tacita.algorithm import ClientDPFedAvg
from tacita.privacy.accounting.compose import account
from tacita.privacy.accounting.curve import GaussianCurve
from tacita.privacy.accounting.guarantee import Guarantee, believed
from tacita.privacy.accounting.subsampling import (
    Poisson,
    PoissonReplaced,
    WithoutReplacement,
)
from tacita.privacy.clipped import learns_from_empty, without_noise
from tacita.privacy.letters.dispatch import Letters, letters_of, of_noised
from tacita.privacy.letters.question import (
    BROADCAST_ONLY,
    Increment,
    Question,
    present_noise,
)
from tacita.privacy.scope import Observer, Relation, Scope, Unit
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.problem import Problem


@letters_of.register
def _(algorithm: ClientDPFedAvg) -> Letters:
    return of_noised(
        algorithm,
        theorem=partial(_client_dp_fed_avg, algorithm),
        with_noise=_refuse_client,
        increments=partial(_clipped_update, algorithm),
        relation=Relation.ADD_REMOVE,
        secret_turns=True,
    )


def _refuse_client(noise_std: Any) -> Any:
    check.refuse(
        "the noise of ClientDPFedAvg is the coordinator's, none is set in its letters; "
        "give noise_std= and see what it costs with tacita.privacy.forecast"
    )


def _clipped_update(
    algorithm: ClientDPFedAvg, problem: Problem, question: Question
) -> Increment:
    """Any two clipped updates lie within 2 S of each other, whatever the unit."""
    clip = float(algorithm.clip)
    return Increment(change=2 * clip, entry=clip, rows=0)


def _longest(algorithm: ClientDPFedAvg, question: Question) -> float:
    """How long an update counts: as its client clips it, or as the rule bounds it."""
    bound = question.aggregation.bound
    assert bound is not None
    return min(float(algorithm.clip), float(bound))


def _silent_when_emptied(algorithm: ClientDPFedAvg, problem: Problem) -> bool:
    """Whether a client with empty rows sends an update of zeros, wherever it starts.

    A regulariser moves it, biases of a network learn from empty rows, and so it does
    with noise in its gradients, or with gradients that are rounded: zero is no level.
    """
    regulariser = problem.population.regulariser
    still = isinstance(regulariser, SquaredL2) and float(regulariser.weight) == 0
    plain = without_noise(algorithm.oracle) is algorithm.oracle
    return still and plain and not learns_from_empty(problem.model)


def _as_replaced(
    algorithm: ClientDPFedAvg, problem: Problem, question: Question, told: str
) -> Guarantee:
    """What holds for a client that becomes any other one."""
    scope = question.scope
    whole = Scope(scope.observer, Unit.CLIENT, Relation.REPLACE_ONE)
    asked = dataclasses.replace(question, scope=whole)
    found = _client_dp_fed_avg(algorithm, problem, asked)
    return dataclasses.replace(found, scope=scope).noting(before=told)


def _client_dp_fed_avg(
    algorithm: ClientDPFedAvg, problem: Problem, question: Question
) -> Guarantee:
    """A sum of clipped updates with noise, over a secret draw of clients.

    A client with another record, or with an empty one, is another client: a record is
    as safe as its client is under replace_one. So is a client that is emptied, where
    empty rows do not keep it silent.
    """
    scope = question.scope
    if scope.observer not in BROADCAST_ONLY:
        check.refuse(
            "ClientDPFedAvg protects against who sees models only; it trusts the "
            "coordinator, who sees updates without noise"
        )
    if scope.unit == Unit.RECORD:
        told = "a record is as safe as its client under replace_one; "
        return _as_replaced(algorithm, problem, question, told)
    emptied = scope.relation == Relation.ADD_REMOVE
    if emptied and not _silent_when_emptied(algorithm, problem):
        told = "an emptied client still sends an update, and counts as a replaced one; "
        return _as_replaced(algorithm, problem, question, told)
    if question.liars >= problem.n_agents:
        check.refuse(
            "liars who answer single letters say each of them once more, which the "
            "noise of ClientDPFedAvg does not cover"
        )
    algorithm.joining.refuse(type(algorithm).__name__, question.aggregation)
    n, chance = problem.n_agents, question.participation
    replaced = scope.relation == Relation.REPLACE_ONE
    sampling = None
    if chance < 1.0:
        if question.active is None:
            sampling = PoissonReplaced(chance) if replaced else Poisson(chance)
        elif replaced:
            # Another client knows whether it was drawn, and so of how many the rest is:
            # most is told where it was not, by K of the n - 1 others.
            others = n - 1 if scope.observer == Observer.NEIGHBOUR else n
            sampling = WithoutReplacement(question.active, others)
        else:
            check.refuse(
                "a fixed number of clients in every round is accounted for "
                "relation='replace_one' only; use that, or a probability"
            )
    one = account(
        **scope.words,
        noise_std=present_noise(algorithm, algorithm.noise_std),
        sensitivity=(2 if replaced else 1) * _longest(algorithm, question),
        rounds=max(question.rounds, 1),
        sampling=sampling,
        clipped=True,
    )
    if question.rounds == 0:
        one = dataclasses.replace(one, curve=GaussianCurve(0.0))
    return one.noting(
        believed(
            "the noise is the coordinator's own, who is honest, tells nobody, and is "
            "no observer that is protected against"
        ),
        believed("who takes part in a round stays secret"),
    )

"""Letters in a secure sum: whoever adds them up sees their noisy sum alone.

The sum of integers with the noise of h honest agents, each a discrete Gaussian of
standard deviation s in steps of the grid, is a function of a real Gaussian release with
variance h s^2 - 4, up to a factor of 1 + 1e-30 (docs/proof-secure-sums.md):

    change = Delta (1 + slack)/step + sqrt(d)
    mu_r   = change / sqrt(h s^2 - 4),   mu^2 = sum over the rounds of mu_r^2

Rounds compose as Gaussian releases do, chosen by whoever adds up, under a bound that is
fixed beforehand. Participation amplifies nothing: the coordinator chooses who is in.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tacita import check
from tacita.aggregation import SecureSum, Summed
from tacita.aggregation.secure.plan import change_in_steps, effective_noise
from tacita.privacy.accounting.guarantee import (
    Assumption,
    Guarantee,
    believed,
    enforced,
)
from tacita.privacy.letters.dispatch import Letters, letters_of
from tacita.privacy.letters.on_grid import rounding_of
from tacita.privacy.letters.over_rounds import over_rounds
from tacita.privacy.letters.question import Increment, Question
from tacita.privacy.scope import Observer, Relation, Scope
from tacita.problem.problem import Problem

_THEOREM = (
    "a sum of integers with discrete Gaussian noise is a function of a real Gaussian "
    "release of variance h s^2 - 4, h = {honest} (docs/proof-secure-sums.md), but for "
    "less than 1e-20 of delta; "
)
#: As of all other runs, an eavesdropper is who sees what is sent if seals do not hold.
_IN_THE_CLEAR = (
    "; letters are masked, broadcasts are made of sums (sealed, broker and outsiders "
    "see sizes and times only)"
)
_CRYPTOGRAPHY = believed(
    "X25519, HKDF, ChaCha20 and Ed25519 hold: against whoever sees letters the "
    "guarantee is computational"
)
_SILENCE = believed("whether and when an agent answers does not depend on rows")


@letters_of.register
def _(algorithm: Summed) -> Letters:
    inner = letters_of(algorithm.algorithm)
    return Letters(
        theorem=partial(_secure_sum, algorithm),
        with_noise=partial(_refuse_other_noise, algorithm),
        noise_std=algorithm.aggregation.noise_std,
        needed=partial(weighted_changes, algorithm.algorithm),
        relation=inner.relation,
        # By weight, the agent with the fewest rows need not spend most.
        facts=lambda problem: [np.asarray(problem.counts)],
        public_state=inner.public_state,
    )


def _refuse_other_noise(algorithm: Summed, noise_std: Any) -> Any:
    """Letters carry none before they are summed."""
    if np.any(np.asarray(noise_std) > 0):
        check.refuse(
            "the noise of a secure sum is planned with its grid; use tacita.private"
        )
    return algorithm


def increment_of(algorithm: Any, problem: Problem, question: Question) -> Increment:
    """How far one unit moves what an agent adds to a sum, or a refusal."""
    found = letters_of(algorithm).increments
    if found is None:
        check.refuse(
            f"nothing bounds what {type(algorithm).__name__} adds to a secure sum; use "
            "ServerGD or DPSGD"
        )
    return found(problem, question)


def weight_of(algorithm: Any, problem: Problem, agent: int) -> float:
    """What the agent's letter weighs in the sum."""
    return float(problem.counts[agent]) if algorithm.weights == "samples" else 1.0


def rounding_of_increment(moved: Increment, entries: int, scope: Scope) -> float:
    """What double precision adds to a change of the sum, relatively."""
    # Of two parts each is half of the change, as that of an emptied record is.
    relation = Relation.ADD_REMOVE if moved.parts == 2 else scope.relation
    return rounding_of(moved.rows, entries, relation)


def weighted_changes(algorithm: Any, problem: Problem, scope: Scope) -> np.ndarray:
    """By how much one unit moves the sum, for every agent."""
    found = []
    for agent in range(problem.n_agents):
        question = Question(scope=scope, agent=agent, rounds=1)
        moved = increment_of(algorithm, problem, question)
        found.append(weight_of(algorithm, problem, agent) * moved.change)
    return np.array(found)


def most_curious(rule: SecureSum) -> Observer:
    """Who learns most of those who are shown sums: a budget has to hold against it.

    The coordinator with all who collude. Where nobody does, another agent, which takes
    its own noise out of a broadcast: that is more than the coordinator can.
    """
    return Observer.COLLUDERS if rule.colluding else Observer.NEIGHBOUR


def honest_noises(
    rule: SecureSum,
    observer: Observer,
    liars: int = 0,
    question: Question | None = None,
) -> int:
    """How many noises in a sum this observer does not know; liars may add none."""
    least = rule.least
    if least is None and question is not None:
        least = question.active
    if least is None:
        check.refuse(
            "how many letters a secure sum has is not known; give SecureSum(least=...)"
        )
    known = {Observer.COLLUDERS: rule.colluding, Observer.NEIGHBOUR: 1}
    honest = least - known.get(observer, 0) - liars
    if honest < 1:
        check.refuse(
            f"of {least} letters in a sum, liars and who colludes leave no noise that "
            "the observer does not know; give SecureSum a larger least"
        )
    return honest


def _secure_sum(algorithm: Summed, problem: Problem, question: Question) -> Guarantee:
    """One Gaussian release a round, of all letters at once."""
    rule, scope = algorithm.aggregation, question.scope
    if not rule.multiples:
        check.refuse(
            "a secure sum without noise hides single letters, and no epsilon bounds "
            "what their sum says; let tacita.private set its noise"
        )
    moved = increment_of(algorithm.algorithm, problem, question)
    assert rule.step is not None
    step, entries = float(rule.step), problem.dim
    change = change_in_steps(
        weight_of(algorithm, problem, question.agent) * moved.change,
        step,
        entries,
        rounding_of_increment(moved, entries, scope),
        moved.parts,
    )
    honest = honest_noises(rule, scope.observer, question.liars, question)
    noise = effective_noise(honest, rule.each)
    one = question.releases(step * noise, step * change, sampling=moved.sampling)
    asked = replace(question, participation=1.0)
    return over_rounds(one, asked).noting(
        *moved.notes,
        *_assumed(rule, scope.observer),
        before=_THEOREM.format(honest=honest),
        after=_IN_THE_CLEAR if scope.observer == Observer.EAVESDROPPER else "",
    )


def _assumed(rule: SecureSum, observer: Observer) -> tuple[Assumption, ...]:
    """What is printed with every row."""
    alone = "no agent tells anybody its letters or noise"
    told = {
        Observer.COLLUDERS: f"at most {rule.colluding} agents collude with the "
        "coordinator, ever",
    }.get(observer, alone)
    return (
        enforced(
            f"letters are clipped, rounded to a grid of step {rule.step:g} and clamped "
            f"to {rule.largest:g}; a question beyond {rule.broadcast:g} gets no answer"
        ),
        enforced(
            f"a sum has at least {rule.least or 'all'} letters; an agent accepts one "
            "roster an attempt and opens one sum a round, its masks are bound to the "
            "question and to names (a simulation needs no masks)"
        ),
        believed(told),
        believed("the other agents added their noise"),
        believed(
            "a row's gradient depends on its row and the question alone, and no state "
            "of an agent keeps a record between rounds"
        ),
        _SILENCE,
        _CRYPTOGRAPHY,
    )

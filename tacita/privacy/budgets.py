"""Budgets of their own: a client whose budget is spent stays silent (Remark 5).

Y. Li et al., FedSPD-DP, Remark 5: clients that may still speak go on training. A
silent client sends nothing new: its last letter again where the coordinator averages
the letters of all, or a letter of weight zero where it averages the active ones. Both
are functions of what it said before, and cost nothing.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Averages, Round
from tacita.algorithm.wrapper import Wrapper
from tacita.privacy import inputs
from tacita.privacy.accounting.calibrate import affordable_rounds
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.letters import Letters, Question, around, guarantee, letters_of
from tacita.privacy.scope import Scope
from tacita.privacy.spend import stand_ins
from tacita.privacy.statement import relation_of
from tacita.problem.oracles import AgentOracle
from tacita.problem.problem import Problem
from tacita.trees import frozen, needed

#: How long a run may be of which nobody says how long it is, and how often one speaks.
_MOST_ROUNDS = 2**20


class State(NamedTuple):
    """A client's memory, with what it needs to fall silent."""

    inner: Any
    letter: Any  # the last one it sent
    left: Array  # rounds in which it may still speak


class Spoken(NamedTuple):
    """A letter, and whether it says anything."""

    letter: Any
    speaks: Array  # 1, or 0 for a silent client


@frozen
class Budgeted(Wrapper):
    """An algorithm in which client i speaks in its first `turns[i]` rounds only.

    Attributes:
        algorithm: Any algorithm with a coordinator and one exchange a round.
        turns: How often a client may speak, one number or one per client; see
            `within_budgets`.
    """

    algorithm: Any
    turns: Any = needed(check.not_negative)

    @property
    def source(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The inner algorithm's, and Remark 5."""
        return f"{self.algorithm.source}; Y. Li et al., FedSPD-DP, Remark 5"

    def refuse_problem(self, problem: Problem) -> None:
        """Also wants one exchange a round, and silence to be allowed."""
        inner = self.algorithm
        self.require_one_exchange("a budget of its own for every client")
        if not inner.partial:
            check.refuse(
                f"{type(inner).__name__} cannot go on without some of its clients; "
                "budgets of their own need an algorithm with silent clients"
            )
        inner.refuse_problem(problem)

    def init(self, w: Array) -> tuple[State, Spoken]:
        """All turns are left."""
        inner, letter = self.algorithm.init(w)
        left = jnp.asarray(self.turns, w.dtype)
        return State(inner, letter, left), Spoken(letter, jnp.ones((), w.dtype))

    def init_coordinator(self, w: Array) -> Any:
        """The inner coordinator's, and what it last said: nothing yet."""
        return self.algorithm.init_coordinator(w), None

    def combine(
        self, key: Array, kept: Any, mean: Spoken, now: Round
    ) -> tuple[Any, Any]:
        """The mean over the clients that speak; the same again if none does."""
        inner, before = kept
        letter, speaks = mean.letter, mean.speaks
        if self.averages == Averages.ACTIVE:
            heard = jnp.where(speaks > 0, speaks, 1)
            letter = jax.tree.map(lambda leaf: leaf / heard, letter)
            # Who is silent has not answered: a sum is that of the others' letters.
            now = now._replace(active=jnp.round(speaks * now.active))
        made = self.algorithm.combine(key, inner, letter, now)
        if before is not None and self.averages == Averages.ACTIVE:
            made = jax.tree.map(
                lambda new, old: jnp.where(speaks > 0, new, old), made, (inner, before)
            )
        return made, made[1]

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Any
    ) -> tuple[State, Spoken]:
        """The inner answer while turns are left, then silence."""
        speaks = state.left >= 1
        inner, letter = self.algorithm.local(key, oracle, state.inner, inbox)

        def kept(new: Array, old: Array) -> Array:
            return jnp.where(speaks, new, old)

        inner = jax.tree.map(kept, inner, state.inner)
        letter = jax.tree.map(kept, letter, state.letter)
        left = state.left - speaks
        weight = speaks.astype(state.left.dtype)
        sent = letter
        if self.averages == Averages.ACTIVE:
            sent = jax.tree.map(lambda leaf: weight.astype(leaf.dtype) * leaf, letter)
        return State(inner, letter, left), Spoken(sent, weight)

    def shared(self, broadcast: Any) -> Array:
        """The inner algorithm's model."""
        return self.algorithm.shared(broadcast)

    def model(self, state: State) -> Array:
        """The inner algorithm's model."""
        return self.algorithm.model(state.inner)


def within_budgets(
    problem: Problem,
    algorithm: Any,
    *,
    epsilon: Any,
    delta: float,
    observer: str,
    unit: str = "record",
    rounds: int | None = None,
) -> Budgeted:
    """The same algorithm, in which every client speaks as long as its budget lasts.

    In whichever rounds that is: of noise that differs between rounds the least counts.

    Args:
        problem: What is solved.
        algorithm: With its noise set, by hand or by `tacita.private`.
        epsilon: The budgets, one number or one per client.
        delta: The probability of exceeding them.
        observer: Against whom.
        unit: What is protected.
        rounds: Of the run, where they are known; else it may be as long as it likes,
            which matters to noise and steps that differ between rounds.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=4, features=3, samples=100)
    >>> noisy = tacita.Noisy(std=0.2, oracle=tacita.Clipped(norm=1.0))
    >>> noisy = tacita.DPSGD(step_size=0.5, oracle=noisy)
    >>> within_budgets(problem, noisy, epsilon=[0.5, 1, 2, 4], delta=1e-5,
    ...                observer="coordinator").turns.tolist()
    [2.0, 7.0, 25.0, 85.0]
    """
    ready = algorithm.resolve(problem)
    given = inputs.positive_array(epsilon=epsilon)
    if np.ndim(given):
        check.shape((problem.n_agents,), epsilon=given)
    budgets = np.broadcast_to(given, (problem.n_agents,))
    scope = Scope(observer, unit, relation_of(ready))
    accounted = stand_ins(ready, problem)
    most = _MOST_ROUNDS if rounds is None else inputs.whole(rounds=rounds)
    turns = np.zeros(problem.n_agents)
    for kind in {*zip(accounted.tolist(), budgets.tolist(), strict=True)}:
        agent, budget = kind

        def build(spoken: int, agent: int = agent) -> Guarantee:
            asked = Question(scope=scope, agent=agent, rounds=spoken, total=most)
            return guarantee(ready, problem, asked)

        lasts = affordable_rounds(build, epsilon=budget, delta=delta, at_most=most)
        turns[(accounted == agent) & (budgets == budget)] = lasts
    if not turns.any():
        agent = int(accounted[budgets.argmax()])
        once = Question(scope=scope, agent=agent, rounds=1, total=most)
        costs = guarantee(ready, problem, once).epsilon(delta)
        check.refuse(
            f"no client can afford a round: one costs epsilon={costs:.4g} at delta="
            f"{delta:g} where {budgets.max():g} is allowed; set more noise, or raise "
            "epsilon"
        )
    # Numbers that theory sets are left to it, so that reports know where they are from.
    return Budgeted(algorithm=algorithm, turns=turns)


@letters_of.register
def _(algorithm: Budgeted) -> Letters:
    return around(algorithm, theorem=partial(_until_silent, algorithm))


def _until_silent(
    algorithm: Budgeted, problem: Problem, question: Question
) -> Guarantee:
    """At most `turns` letters say anything new, whatever the draw of participation."""
    turns = np.broadcast_to(np.asarray(algorithm.turns), (problem.n_agents,))
    spoken = min(question.rounds, int(turns[question.agent]))
    asked = dataclasses.replace(question, rounds=spoken, participation=1.0, active=None)
    return letters_of(algorithm.algorithm).theorem(problem, asked)

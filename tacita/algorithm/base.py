"""The two protocols: what an algorithm says of ONE agent, and of the coordinator.

An algorithm is a frozen record: its numbers are leaves, so that changing one compiles
nothing and a sweep is a `vmap`; its counts are static. It never sees an agent axis, a
participation scheme or a network: those belong to the runtime, which also keeps the
mail. A silent agent keeps its state, and its last letter stays with the coordinator.

A number may also be an array with one entry per agent; the runtime hands each agent
its own.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.joining import NO_COORDINATOR, Joining
from tacita.integer_noise import refuse_single
from tacita.problem.oracles import AgentOracle, Oracle
from tacita.problem.prox import Proximable
from tacita.problem.stream import stream_of
from tacita.schedule import in_round, is_common
from tacita.theory import descent
from tacita.trees import filled, replace, rules

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

#: Any tree of arrays; what it holds is the algorithm's own affair.
Tree = Any
State = Letter = Kept = Broadcast = Tree
#: A float, an array with one entry per agent, or None to let theory choose.
Number = Any
#: Gradients asked for in a round, by call of `draws`; or why nobody can say.
Gradients = tuple[int, ...] | str


class Averages(StrEnum):
    """Whose letters the coordinator's mean is over."""

    ALL = "all"  # the last letter of every agent
    ACTIVE = "active"  # those of this round


class Delivery(StrEnum):
    """What an agent on a graph receives from its neighbours."""

    SUM = "sum"  # sum_j A_ij letter_j
    SLOTS = "slots"  # one letter per edge


class ModelState(NamedTuple):
    """The memory of an agent that keeps nothing but its model."""

    w: Array


class Round(NamedTuple):
    """What the coordinator knows of a round besides the letters."""

    n_agents: int
    h: Proximable | None
    number: Array | int  # 0 before the first round, when nobody has answered yet
    active: Array | int  # how many agents answered
    regulariser: Any = None  # of every agent's loss: public, as h is
    fresh: Array | float = 1.0  # what the letters count for on average: 1 if in step

    def prox(self, v: Array, step: Number) -> Array:
        """prox_{step * h}(v); v itself for a problem without h."""
        return v if self.h is None else self.h.prox(v, step)


class Phase(NamedTuple):
    """One exchange: the agents' step, then the coordinator's."""

    local: Callable[[Array, AgentOracle, State, Broadcast], tuple[State, Letter]]
    combine: Callable[[Array, Kept, Letter, Round], tuple[Kept, Broadcast]]


#: Of local steps that get noise, how many times as long an entry of a model may be: a
#: mean of a million records still has eight binary digits of each.
MOST_STEPS = 2.0**26


class Algorithm:
    """What both kinds share. Abstract: algorithms derive from the two classes below."""

    #: Whether it converges when some agents stay silent in a round.
    partial: ClassVar[bool] = True
    #: Why it does not, where it does not: told when silent agents are refused.
    why_not_partial: ClassVar[str] = ""
    #: How many agents a round needs, at least, to bring it nearer to its goal.
    least_active: ClassVar[int] = 1
    #: Whether it handles a non-smooth h of the problem.
    composite: ClassVar[bool] = False
    #: What its letters are, and what may join them besides their mean.
    joining: ClassVar[Joining] = Joining()
    #: What it is for, in a short phrase.
    purpose: ClassVar[str] = ""
    #: Where the algorithm is described.
    source: ClassVar[str] = ""
    #: How agents compute gradients; a field of every algorithm.
    oracle: Oracle
    #: What letters weigh in a mean: "uniform", or as much as an agent has rows.
    weights: str = "uniform"
    #: What alone may join its letters, where it is made for one rule; None for any.
    aggregation: Any = None
    #: Of noise that it adds to letters, or to their sum, itself; None adds none.
    noise_std: Number = None
    #: Of which kind that noise is: "float", or "integers" on a grid.
    noise_kind: str = "float"
    #: Whether letters depend on a loss of the agent too, which `gradients` counts as
    #: one more gradient with a draw of its own.
    uses_losses: ClassVar[bool] = False
    #: What the rows' losses are cut to, where letters depend on them: a public number.
    loss_bound: Number = None
    #: How agents solve their proximal problems, where the algorithm leaves that open.
    solver: Any = None

    def gradients(self) -> Gradients:
        """How many gradients an agent asks its oracle for in a round.

        One number for every call of `draws`, or in words why they are not known.
        Numbers say that letters are functions of these gradients, each with a draw of
        its own, and of nothing else about the rows: with a `Noisy` oracle the
        algorithm is then private by composition. A loss counts as a gradient: its
        noise makes it cost as much.
        """
        return "it is not known to look at rows through its oracle only"

    def step_before_noise(self) -> Any:
        """How far a gradient of length 1 moves what gets noise after local steps.

        None where no letter does. Entries of a model beyond `MOST_STEPS` times the
        longest such step have no digits for it: agents take none, whoever chooses both.
        """
        return None

    def drawn_steps(self) -> float | None:
        """Local steps of a round on average, where their number is drawn."""
        return None

    def resolve(self, problem: Problem) -> Self:
        """The same algorithm with every number that was left out set by theory."""
        ready = filled(self, problem)
        if ready.solver is None:
            return ready
        at, seen = ready.proximal(problem), descent.as_drawn(problem, ready.oracle)
        solver = ready.solver_at(seen, *at).resolve(seen, *at)
        return replace(ready, solver=solver)

    def solver_at(self, problem: Problem, rho: Any, shift: float = 0.0) -> Any:
        """The solver, with numbers that the algorithm chooses better than theory."""
        return self.solver

    def in_round(self, number: Array | int) -> Self:
        """The algorithm with the step sizes of this round; the first is 1."""
        return in_round(self, number)

    def proximal(self, problem: Problem) -> tuple[Any, ...]:
        """The rho, and the shift, of the problems that the solver is given."""
        raise NotImplementedError

    def model(self, state: State) -> Array:
        """One agent's model, shape (d,): the first entry of its state."""
        return state[0]

    def goal(self, problem: Problem) -> np.ndarray:
        """What its models should reach: one for all, (d,), or one for each, (N, d)."""
        if self.weights == "samples":
            # Means of letters that weigh as much as rows are those of sum_i m_i f_i.
            share = problem.counts / problem.counts.mean()
            return problem.with_weights(problem.weights * share).solve()
        return problem.solve()

    def needs_everybody(self) -> str:
        """In words, for refusals: it takes every agent, and why."""
        why = f" ({self.why_not_partial})" if self.why_not_partial else ""
        return f"{type(self).__name__} needs every agent in every round{why}"

    def refuse_problem(self, problem: Problem) -> None:
        """Refuse, in one line, a problem that the algorithm cannot solve."""
        if problem.h is not None and not self.composite:
            check.refuse(
                f"{type(self).__name__} handles smooth problems only, this one has "
                f"h={type(problem.h).__name__}; use h=None or a composite algorithm"
            )
        for name, rule in rules(type(self)).items():
            if rule.common and not is_common(getattr(self, name)):
                check.refuse(
                    f"expected {name} one number, common to all agents, got an array"
                )
        refuse_single(self.noise_kind, problem.dtype)
        if stream_of(self.oracle) is not None:
            self.refuse_second_draws()
        if self.solver is not None:
            require_solver(solver=self.solver)
            self.solver.check(problem, self.oracle)

    def refuse_second_draws(self) -> None:
        """Refuse a stream where rounds do not draw all their gradients at once."""
        asked = self.gradients()
        if isinstance(asked, str) or len(asked) != 1:
            why = asked if isinstance(asked, str) else "it draws twice in a round"
            check.refuse(
                f"rows of a stream are used once, and {type(self).__name__} may use "
                f"one more often: {why}; use ServerGD, FedAvg, DPSGD or GossipSGD"
            )


class ServerAlgorithm(Algorithm):
    """Agents and a coordinator.

    The coordinator combines the mean of the letters into a broadcast; the active
    agents answer it with new letters. `averages` says whose letters the mean is over:
    the last letter of "all" agents, or those of the "active" ones only.
    """

    averages: ClassVar[Averages] = Averages.ACTIVE
    #: Exchanges that carry a letter to the coordinator; the cost of a round counts
    #: them, and one more gradient for each beyond the first.
    exchanges: ClassVar[int] = 1
    #: Whether letters may answer an older broadcast: asynchronous runs need that.
    takes_late: ClassVar[bool] = False

    @property
    def sends_gradients(self) -> bool:
        """Whether a letter is one gradient of the oracle, as it is, and no more."""
        return False

    def freshness(self, staleness: Array) -> Array:
        """What a letter counts for that answers a broadcast so many rounds old.

        1 for the last broadcast. The mean letter is weighted by it, and `combine` is
        told the mean of it, `Round.fresh`.
        """
        raise NotImplementedError

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The exchanges of a round."""
        return (Phase(self.local, self.combine),)

    def init(self, w: Array) -> tuple[State, Letter]:
        """One agent's state and letter before the first round."""
        raise NotImplementedError

    def init_coordinator(self, w: Array) -> Kept:
        """The coordinator's own state before the first round, if it keeps any."""
        return ()

    def combine(
        self, key: Array, kept: Kept, mean: Letter, now: Round
    ) -> tuple[Kept, Broadcast]:
        """The coordinator's step: from the mean letter to what all agents are told."""
        return kept, mean

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Broadcast
    ) -> tuple[State, Letter]:
        """One active agent's step: from the broadcast to its new state and letter."""
        raise NotImplementedError

    def refuse_problem(self, problem: Problem) -> None:
        """Also refuses agents without a row: they would average in what they lack."""
        if problem.n_agents < self.least_active:
            check.refuse(
                f"{type(self).__name__} never converges with {problem.n_agents} agent; "
                f"use {self.least_active} or more, or FedAvg"
            )
        super().refuse_problem(problem)
        if problem.counts.min() == 0:
            empty = problem.ids[int(problem.counts.argmin())]
            check.refuse(
                f"agent {empty!r} has no labelled row; {type(self).__name__} averages "
                "all agents, so leave it out, or use GTVMin on a graph"
            )

    def shared(self, broadcast: Broadcast) -> Array:
        """The model to publish, shape (d,), out of the broadcast."""
        return broadcast

    def increment(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Broadcast
    ) -> tuple[State, Array]:
        """As `local`, but the letter is what rows add to what everybody knows.

        Computed from zero: a letter less the broadcast is rounded to the digits of
        the broadcast, which its sender chooses. Without the regulariser where that
        can be added by the coordinator, in `joined`.
        """
        raise NotImplementedError

    def joined(self, kept: Kept, told: Broadcast, mean: Array, now: Round) -> Letter:
        """The mean letter that a mean increment stands for, answering `told`."""
        raise NotImplementedError


class Edges(NamedTuple):
    """One agent's place in the graph.

    Attributes:
        degree: Sum of the weights of its edges.
        weight: Weight of each edge, (slots,); zero on padding.
        mask: Which slots are edges.
        sign: +1 at one end of an edge, -1 at the other.
        neighbour_count: Number of edges of the agent itself.
        neighbour_counts: Number of edges of each neighbour, (slots,).
    """

    degree: Array
    weight: Array
    mask: Array
    sign: Array
    neighbour_count: Array
    neighbour_counts: Array


class GraphAlgorithm(Algorithm):
    """Agents on a graph, without a coordinator.

    With `delivery = "sum"` an agent sends one letter to all its neighbours and
    receives sum_j A_ij letter_j; with "slots" it sends and receives one letter per
    edge, along a slot axis. `with_parts` says, in refusals, what else helps where a
    graph falls into several parts.
    """

    with_parts: ClassVar[str] = ""
    delivery: ClassVar[Delivery] = Delivery.SUM
    joining: ClassVar[Joining] = Joining(no_sum=NO_COORDINATOR)

    def needs_connection(self) -> bool:
        """Whether a graph that falls into several parts is refused."""
        return True

    def init(self, w: Array, edges: Edges) -> tuple[State, Letter]:
        """One agent's state and letter (letters, with slots) before the first round."""
        raise NotImplementedError

    def local(
        self, key: Array, oracle: AgentOracle, edges: Edges, state: State, inbox: Letter
    ) -> tuple[State, Letter]:
        """One active agent's step: from what it received to its state and letter."""
        raise NotImplementedError

    def refuse_problem(self, problem: Problem) -> None:
        """Also needs a graph, and one that hangs together."""
        super().refuse_problem(problem)
        if problem.graph is None:
            check.refuse(
                f"{type(self).__name__} needs a graph; pass graph= to the problem, "
                "for example tacita.problem.graph.ring(n)"
            )
        if self.needs_connection():
            problem.graph.require_connected(self.with_parts)


def require_solver(**named: Any) -> None:
    """Refuse what is no local solver, or only the class of one."""
    ((name, solver),) = named.items()
    if isinstance(solver, type) or not hasattr(solver, "solve"):
        check.refuse(
            f"expected {name} such as tacita.solvers.GradientDescent(local_steps=5), "
            f"got {name}={solver!r}"
        )

"""The parties of a run, made from what everybody knows of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tacita import check, keys
from tacita.aggregation import Aggregation, Mean, Summed
from tacita.algorithm.base import GraphAlgorithm
from tacita.federation import party
from tacita.federation.agent_keys import AgentKeys
from tacita.federation.calendar import Calendar
from tacita.federation.desk import Desk
from tacita.federation.draws import Draws
from tacita.federation.graph_agent import GraphAgent
from tacita.federation.kept_letters import require_whole
from tacita.federation.late_coordinator import LateCoordinator
from tacita.federation.party import Party
from tacita.federation.server_agent import ServerAgent
from tacita.federation.server_coordinator import ServerCoordinator
from tacita.federation.sum_agent import SumAgent
from tacita.federation.sum_coordinator import SumCoordinator
from tacita.federation.terms import Terms
from tacita.federation.work import GraphWork, ServerWork
from tacita.problem.graph import Graph
from tacita.problem.population import Local
from tacita.runtime import arrivals
from tacita.trees import in_double_precision


@dataclass(frozen=True)
class Roles:
    """What everybody knows of a run, and how each party is made from it.

    Attributes:
        algorithm: With every number set.
        agents: Names; agent i of the algorithm is `agents[i]`.
        coordinator: Who asks, in a server algorithm.
        start: The common starting point.
        base: Roots of the schedule on a graph, and of all draws that are shared.
        terms: How the run goes.
        like: Any agent's loss, for the shapes of letters only.
        graph: Who is joined with whom, nodes in the order of the agents.
        aggregation: How the coordinator, or a node, joins letters; default the mean.
    """

    algorithm: Any
    agents: Sequence[str]
    coordinator: str
    start: Any
    base: keys.Keys
    terms: Terms
    like: Local
    graph: Graph | None = None
    aggregation: Aggregation | None = None

    def __post_init__(self) -> None:
        if self.terms.keep_letters:
            require_whole(self.algorithm)
        if self.terms.asynchronous:
            self._require_late()
        if self.terms.own_draws and self.on_graph:
            check.refuse(
                "own_draws goes with a coordinator: on a graph everybody has to know "
                "whose letters come, and who is active follows from the run; leave it "
                "out"
            )

    def _require_late(self) -> None:
        """Refuse to wait for nobody where letters must be of their round."""
        if self.on_graph:
            check.refuse(
                "asynchronous = true is for runs with a coordinator; on a graph give "
                "deadline, the seconds that agents wait for their neighbours"
            )
        arrivals.require_late_letters(self.algorithm)
        if not isinstance(self.aggregation, Mean | None):
            check.refuse(
                "letters that are late are joined by their mean; leave aggregation "
                "out, or asynchronous"
            )
        n = len(self.agents)
        letters = self.terms.letters(n)
        arrivals.require_time(self.terms.most_staleness, letters, n)

    @property
    def on_graph(self) -> bool:
        """Whether there is no coordinator."""
        return isinstance(self.algorithm, GraphAlgorithm)

    @cached_property
    @in_double_precision
    def server(self) -> ServerWork:
        """The coordinator's side of the algorithm."""
        return ServerWork(self.algorithm, self.like, len(self.agents), self.start)

    @cached_property
    @in_double_precision
    def calendar(self) -> Calendar:
        """Who is active when, on a graph."""
        terms = self.terms
        return Calendar(terms.schedule, self.base, len(self.agents), terms.rounds)

    @in_double_precision
    def require_size(self) -> None:
        """Refuse a run whose letters, by their shapes, are too large to be sent."""
        if self.on_graph:
            assert self.graph is not None
            work = GraphWork(self.algorithm, self.graph, 0, self.like, self.start)
            party.require_size(work.letter.bytes)
        else:
            party.require_size(self.server.most_bytes)

    @in_double_precision
    def make_coordinator(
        self, desk: Desk, draws: Draws, weights: Sequence[float] | None = None
    ) -> ServerCoordinator:
        """The coordinator of a server algorithm; weights of the agents in its means."""
        if isinstance(self.algorithm, Summed):
            return SumCoordinator(desk, self.server, self.agents, draws, self.terms)
        kind = LateCoordinator if self.terms.asynchronous else ServerCoordinator
        return kind(
            desk,
            self.server,
            self.agents,
            draws,
            self.terms,
            weights,
            self.aggregation,
        )

    @in_double_precision
    def make_agent(self, desk: Desk, local: Local, own_keys: AgentKeys) -> Party:
        """One agent, with its own loss and what it draws with."""
        number, own = list(self.agents).index(desk.name), (own_keys, self.terms)
        if self.on_graph:
            assert self.graph is not None
            about = (self.algorithm, self.graph, number, local, self.start)
            work = GraphWork(*about, self.aggregation)
            return GraphAgent(desk, work, self.agents, self.calendar, *own)
        seat = self.server.seat(number, local)
        about = (desk, self.server, seat, self.coordinator, *own)
        if isinstance(self.algorithm, Summed):
            return SumAgent(*about, self.agents)
        return ServerAgent(*about, self.terms.schedule.chance_of(number))

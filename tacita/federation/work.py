"""What a party computes: one agent's steps, or the coordinator's, compiled once."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.aggregation import Aggregation, Mean
from tacita.algorithm.base import MOST_STEPS, Algorithm, GraphAlgorithm, Round
from tacita.compiled import kept
from tacita.encoding import Origin
from tacita.federation.shapes import Form
from tacita.federation.wire import LetterRefused
from tacita.problem import moduli
from tacita.problem.graph import Graph
from tacita.problem.moduli import Moduli
from tacita.problem.population import Local
from tacita.problem.problem import Problem
from tacita.runtime import delivery
from tacita.runtime.seat import Seat, combine, split_numbers
from tacita.trees import replace, tree_rows

#: What an agent takes where its local steps get noise: steps from larger numbers would
#: lose the digits that a record changes, and those of the noise.
_LARGEST_BEFORE_NOISE = 2.0**20
#: The shortest step that is taken: products with smaller numbers may vanish.
_SHORTEST = 1e-12


def largest_entry(algorithm: Algorithm, number: int = 1) -> float | None:
    """The largest entry of what an agent is told, or of a neighbour's letter.

    None for what any letter may hold. It says nothing of rows: they decide the noise,
    and whoever asks sees what is refused.

    Args:
        algorithm: With one agent's own numbers.
        number: The round, for steps may shrink.

    Raises:
        LetterRefused: Steps of that round are so short that noise may vanish.
    """
    if algorithm.noise_std is None:
        return None
    step, norm = algorithm.in_round(number).step_before_noise(), algorithm.oracle.norm
    if step is None or norm is None:
        return _LARGEST_BEFORE_NOISE
    longest = float(np.min(np.asarray(step)) * np.min(np.asarray(norm)))
    if not longest >= _SHORTEST:
        raise LetterRefused(f"steps of {longest:.2g} are too short for their noise")
    return min(_LARGEST_BEFORE_NOISE, MOST_STEPS * longest)


def refuse_theory() -> NoReturn:
    """Refuse to have numbers set from rows."""
    check.refuse(
        "in a federation nobody sees all rows, so theory cannot choose numbers; set "
        "every number of the algorithm (rho, step_size, ...) yourself, or give a "
        "public bound on rows, problem.bound"
    )


class Outline:
    """What everybody knows of a federation's problem: all but the others' rows.

    It is no `Problem`: it has what is asked about one before a run, and nobody can ask
    it for a loss or an optimum, which would silently be those of one party.

    Args:
        own: The problem of one agent alone: its own rows, or rows of zeros for the
            coordinator, who has none.
        n_agents: Number of agents in the federation.
        graph: Who is joined with whom, nodes in the order of the agents.
        rows: How many every agent has; default as many as this party.
    """

    def __init__(
        self,
        own: Problem,
        n_agents: int,
        graph: Graph | None = None,
        rows: int | None = None,
    ) -> None:
        self.n_agents, self.graph = n_agents, graph
        self.ids = own.ids if graph is None else graph.nodes
        self.population, self.model, self.h = own.population, own.model, own.h
        self.dim, self.dtype, self.bound = own.dim, own.dtype, own.bound
        self.weighted = own.weighted
        # How rows were encoded is every party's own, and no table of all was read.
        self.encoding, self.origin = None, Origin()
        # As if everybody had as many rows as this party, which only knows its own.
        self.counts = np.full(n_agents, own.counts[0] if rows is None else rows)

    @property
    def moduli(self) -> Moduli:
        """From the public bound on rows; without one nobody can compute them."""
        if self.bound is None:
            refuse_theory()
        return moduli.within(self.population, self.bound, self.n_agents)

    @property
    def steepest(self) -> np.ndarray:
        """Of any row within the public bound; without one nobody can compute it."""
        return self.moduli.smoothness

    def local(self) -> Local:
        """This party's own loss, as one of the federation's agents."""
        made = self.population.local(tree_rows(self.population.rows, 0))
        return replace(made, n_agents=self.n_agents)


class Exchange(NamedTuple):
    """What travels in one exchange of a round."""

    told: Form
    letter: Form


class ServerWork:
    """The coordinator's side of an algorithm, and the forms of all its letters.

    Args:
        algorithm: With every number set.
        local: Any agent's loss, for the shapes of letters only.
        n_agents: Number of agents.
        start: The common starting point.
    """

    def __init__(self, algorithm: Any, local: Local, n_agents: int, start: Any) -> None:
        self.algorithm, self.n_agents = algorithm, n_agents
        self.start = jnp.asarray(start)
        self._like = local
        self._numbers, self._for_agent = split_numbers(algorithm, n_agents)
        self.phases = len(algorithm.phases)
        self.exchanges, self.state, self.last_told = self._forms(local)

    def seat(self, agent: int, local: Local) -> Seat:
        """The seat of an agent with this loss."""
        return Seat(self._for_agent([k[agent] for k in self._numbers]), local)

    @property
    def most_bytes(self) -> int:
        """Bytes of the largest letter's numbers."""
        sizes = [max(e.told.bytes, e.letter.bytes) for e in self.exchanges]
        return max(*sizes, self.last_told.bytes)

    def keeps(self, phase: int) -> bool:
        """Whether the last letters of all agents stay valid after this exchange."""
        return self.algorithm.averages == "all" and phase == self.phases - 1

    def first_letters(self, agent: int) -> Any:
        """An agent's letter before the first round; it depends on no data."""
        return self.seat(agent, self._like).begin(self.start)[1]

    def combine(
        self,
        phase: int,
        key: Array,
        state: Any,
        mean: Any,
        number: int,
        active: int,
        fresh: float = 1.0,
    ) -> tuple[Any, Any]:
        """The coordinator's step in round `number`, which `active` agents answered.

        Their letters count for `fresh` on average, which is 1 if none is late.
        """
        like, about = self._like, (number, active)
        now = Round(self.n_agents, like.h, *about, like.regulariser, fresh)
        return combine(phase, self.algorithm, now, key, state, mean)

    def _forms(self, local: Local) -> tuple[list[Exchange], Form, Form]:
        def play(rows: Local, start: Array) -> Any:
            key, seat = jax.random.key(0), self.seat(0, rows)
            alone = Round(self.n_agents, local.h, 1, 1, local.regulariser)
            mine, letter = seat.begin(start)
            phases = self.algorithm.in_round(1).phases
            state, told = phases[-1].combine(
                key, self.algorithm.init_coordinator(start), letter, alone
            )
            forms = []
            for number, phase in enumerate(phases):
                mine, letter = seat.answer(1, number, key, mine, told)
                forms.append((told, letter))
                state, told = phase.combine(key, state, letter, alone)
            return forms, state, told

        forms, state, told = jax.eval_shape(play, local, self.start)
        made = [Exchange(Form(t), Form(letter)) for t, letter in forms]
        return made, Form(state), Form(told)


class GraphWork:
    """One agent's side of an algorithm on a graph.

    Args:
        algorithm: With every number set.
        graph: Everybody's edges.
        agent: Its own number.
        local: Its own loss.
        start: The common starting point.
        rule: What joins its neighbours' letters; default their sum.
    """

    def __init__(
        self,
        algorithm: GraphAlgorithm,
        graph: Graph,
        agent: int,
        local: Local,
        start: Any,
        rule: Aggregation | None = None,
    ) -> None:
        self.start = jnp.asarray(start)
        numbers, for_agent = split_numbers(algorithm, graph.n_nodes)
        edges = tree_rows(delivery.of(graph, algorithm, self.start.dtype).edges, agent)
        self._seat = Seat(for_agent([k[agent] for k in numbers]), local, edges)
        self.slots = algorithm.delivery == "slots"
        self.largest = largest_entry(algorithm)
        mine = np.asarray(graph.receivers) == agent
        # Ascending, as in the graph: sums over neighbours keep one order.
        self.neighbours: list[int] = np.asarray(graph.senders)[mine].tolist()
        self._weights = np.asarray(graph.weights)[mine]
        self._rule = None if isinstance(rule, Mean) else rule
        self._width = max(1, int(np.max(np.asarray(graph.neighbour_counts))))
        state, letters = jax.eval_shape(self._seat.begin, self.start)
        (whole,) = jax.tree.leaves(letters)
        self._inbox = whole.shape
        one = whole.shape[1:] if self.slots else whole.shape
        self.letter = Form(jax.ShapeDtypeStruct(one, whole.dtype))
        self.state = Form(state)

    def init(self) -> tuple[Any, Any]:
        """State and letters before the first round."""
        return self._seat.begin(self.start)

    def to_neighbour(self, letters: np.ndarray, place: int) -> np.ndarray:
        """The letter for the neighbour at this place of `neighbours`."""
        return letters[place] if self.slots else letters

    def step(
        self,
        number: int,
        key: Array,
        state: Any,
        received: list[np.ndarray],
        own: np.ndarray,
        rule_key: Array,
    ) -> tuple[Any, Any]:
        """Its step of round `number`; `received` is in the order of `neighbours`.

        With a rule its `own` last letter is the centre.
        """
        inbox = np.zeros(self._inbox, self.start.dtype)
        if self._rule is not None:
            inbox = self._by_rule(received, own, rule_key)
        elif self.slots:
            for place, letter in enumerate(received):
                inbox[place] = letter
        else:
            for weight, letter in zip(self._weights, received, strict=True):
                inbox = inbox + weight.astype(inbox.dtype) * letter
        return answer(0, number, self._seat, key, state, jnp.asarray(inbox))

    def _by_rule(
        self, received: list[np.ndarray], own: np.ndarray, key: Array
    ) -> np.ndarray:
        """What the rule makes of the neighbours' letters, slots as in a simulation."""
        spare, kind = self._width - len(received), self.start.dtype
        letters = np.zeros((self._width, *self._inbox), kind)
        letters[: len(received)] = received
        weights = np.pad(self._weights, (0, spare)).astype(kind)
        mask = np.arange(self._width) < len(received)
        degree = self._seat.edges.degree
        return _at_node(self._rule, own, letters, weights, mask, key, degree)

    def model(self, state: Any) -> np.ndarray:
        """The agent's own model."""
        return np.asarray(self._seat.algorithm.model(state))


_at_node = jax.jit(delivery.at_node)


def answer(
    phase: int, number: int, seat: Seat, key: Array, state: Any, told: Any
) -> Any:
    """An agent's step in round `number`: its new state, and its letter."""
    place = id(seat), phase
    if place in _compiled:
        return _answer(phase, number, seat, key, state, told)
    with kept(phase, seat, state, told):
        found = _answer(phase, number, seat, key, state, told)
    _compiled.add(place)
    return found


#: Seats and exchanges that have a program: only the first call looks for a kept one,
#: which takes longer than a small step. A number that is another seat's by now costs no
#: more than a program that is not kept.
_compiled: set[tuple[int, int]] = set()


@functools.partial(jax.jit, static_argnums=0)
def _answer(
    phase: int, number: int, seat: Seat, key: Array, state: Any, told: Any
) -> Any:
    return seat.answer(number, phase, key, state, told)

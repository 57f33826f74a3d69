"""DP-Norm: noised dual letters along the edges of a graph, without a server.

T. Fukami, T. Murata, K. Niwa, I. Tyou, "DP-Norm", Algorithm 1. With alpha = 0 it is
ECL with noise, with alpha = sigma = 0 it is ECL. Without noise it minimises

    sum_i f_i(w_i)                                        w_i = w_j on edges (alpha = 0)
    sum_i f_i(w_i) + 1/(4 alpha) sum_{edges} A_ij ||w_i - w_j||^2        (alpha > 0)

the latter being GTVMin with 1/(4 alpha) for its alpha; the paper has A_ij = 1. Two
things differ from print, see docs/explanation-dp-norm.md: an edge has one eta at both
its ends, and letters that show different iterates carry different noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check, integer_noise
from tacita.algorithm.base import Delivery, Edges, GraphAlgorithm, Number
from tacita.problem.graph import Graph
from tacita.problem.gtv.gtvmin import GTVMin
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import constant
from tacita.theory import descent
from tacita.trees import count, frozen, number, one_of

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One node's memory."""

    w: Array  # w_i, its own model: no letter shows it without noise
    released: Array  # w_i + n_i, what its last letters show of it
    average: Any = ()  # of all that was released, where that is published
    rounds: Any = ()  # how many rounds it is the average of


class EdgeNumbers(NamedTuple):
    """What a node computes of each of its edges, (slots,)."""

    gamma: Array  # gamma_ij = 1 + alpha eta_ij / A_ij
    pull: Array  # mu eta_ij / gamma_ij; zero where there is no edge


@frozen
class DPNorm(GraphAlgorithm):
    """Dual letters with noise and denoising normalisation.

    Attributes:
        step_size: mu, of the inner steps, common to all nodes; None lets theory choose
            1 / smoothness.
        local_steps: K, inner steps a round.
        alpha: Weight of the normalisation: 0 reaches the common optimum without noise,
            more lets nodes differ and keeps noise from building up; less so along
            edges with more weight.
        noise_std: sigma, the noise in what letters show of the node's model; None adds
            none. One number or one per node, see `tacita.private`.
        noise_kind: "float" for floating-point Gaussians, or "integers": what letters
            show is rounded to a grid and gets noise of exact integers, as in
            federations.
        form: "corrected" gives an edge the same eta at both its ends; "printed" takes
            each node's own degree, which on irregular graphs minimises sum_i E_i f_i.
        exchange: "synchronous" letters all show the last iterate of a round. Of
            "asynchronous" ones each shows that of a random inner step, and is used by
            its receiver from the next round on.
        letter_noise: Of asynchronous letters: "fresh" for each, or "shared" by all of
            a round as printed, which is not private: see the docs.
        publish: What a node tells as its model: "released" is w + n, known to whoever
            saw its letters; "average" is the mean of that over its rounds, in the
            manner of Theorem 2's w_out; "own" is w itself, which nothing protects.
        oracle: How nodes compute gradients.
    """

    # Common numbers: both ends of an edge must compute the same eta.
    step_size: Number = constant(
        "both ends of an edge and the bound on its letters count on one eta_ij",
        theory=descent.safe_step_size,
        common=True,
    )
    local_steps: int = count(10)
    alpha: float = number(check.not_negative, 0.0, common=True)
    noise_std: Number = number(check.not_negative)
    noise_kind: str = integer_noise.noise_kind()
    form: str = one_of("corrected", "printed")
    exchange: str = one_of("synchronous", "asynchronous")
    letter_noise: str = one_of("fresh", "shared")
    publish: str = one_of("released", "average", "own")
    oracle: Oracle = Full()

    purpose: ClassVar[str] = "private training on a graph, without a coordinator"
    source: ClassVar[str] = "Fukami, Murata, Niwa, Tyou, DP-Norm, Algorithm 1"
    delivery: ClassVar[Delivery] = Delivery.SLOTS

    def goal(self, problem: Problem) -> np.ndarray:
        """Without noise: the common optimum, or every node's model in GTVMin."""
        assert problem.graph is not None
        degrees = np.asarray(problem.graph.neighbour_counts, float)
        if self.form == "printed" and np.ptp(degrees) > 0:
            return self._printed_goal(problem, degrees)
        if self.alpha == 0:
            return problem.solve()
        return GTVMin(problem, 1 / (4 * self.alpha)).solve()

    def _printed_goal(self, problem: Problem, degrees: np.ndarray) -> np.ndarray:
        """What the printed form reaches where degrees E_i differ.

        It minimises sum_i E_i f_i(w_i) + 1/(2 alpha) sum A_ij c_ij ||w_i - w_j||^2,
        c_ij = E_i E_j/(E_i + E_j): eta_i/(eta_i + eta_j) of what both ends have.
        """
        share = degrees / degrees.mean()
        by_degree = problem.with_weights(problem.weights * share)
        if self.alpha == 0:
            return by_degree.solve()
        if problem.population.regulariser.curvature_bounds != (0.0, 0.0):
            check.refuse(
                "what DPNorm(form='printed', alpha > 0) reaches with a regulariser on "
                "a graph of unequal degrees is not computed; use form='corrected'"
            )
        graph = problem.graph
        assert graph is not None
        i, j = np.asarray(graph.receivers), np.asarray(graph.senders)
        weights = (
            np.asarray(graph.weights) * share[i] * share[j] / (share[i] + share[j])
        )
        once = i < j
        nodes = graph.nodes
        pairs = [(nodes[a], nodes[b]) for a, b in zip(i[once], j[once], strict=True)]
        printed = Graph.from_edges(nodes, pairs, weights[once])
        return GTVMin(replace(by_degree, graph=printed), 1 / (2 * self.alpha)).solve()

    def step_before_noise(self) -> Any:
        """An inner step."""
        return self.step_size

    def init(self, w: Array, edges: Edges) -> tuple[State, Array]:
        """Start from w, with letters z = 0."""
        averaged = (w, jnp.zeros((), w.dtype)) if self.publish == "average" else ()
        return State(w, w, *averaged), jnp.zeros(
            (edges.mask.shape[-1], *w.shape), w.dtype
        )

    def local(
        self, key: Array, oracle: AgentOracle, edges: Edges, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """K steps towards the neighbours' letters, then new letters with noise."""
        for_rows, for_noise, for_times = jax.random.split(key, 3)
        here = self.edge_numbers(edges, inbox.dtype)
        w, shown = self._steps(for_rows, for_times, oracle, edges, here, state.w, inbox)
        if self.noise_std is not None:
            # One draw for all letters that show the same iterate, else one for each.
            shared = self.letter_noise == "shared"
            noise_shape = w.shape if shared else shown.shape
            kind = self.noise_kind
            drawn = integer_noise.draws(for_noise, noise_shape, w.dtype, kind)
            shown = integer_noise.with_noise(shown, drawn, self.noise_std)
        # lambda = (eta/gamma) (z - s (w + n)) and y = (2/eta) lambda - z, together
        # y = ((2 - gamma) z - 2 s (w + n)) / gamma.
        gamma, sign = here.gamma[:, None], edges.sign[:, None]
        letters = ((2 - gamma) * inbox - 2 * sign * shown) / gamma
        if shown.ndim == 2:
            # All of a node's letters together show this; alone, each shows its own.
            count = edges.neighbour_count.astype(w.dtype)
            shown = jnp.sum(edges.mask[:, None] * shown, axis=0) / count
        if self.publish != "average":
            return State(w, shown), letters
        rounds = state.rounds + 1
        average = state.average + (shown - state.average) / rounds
        return State(w, shown, average, rounds), letters

    def edge_numbers(self, edges: Edges, dtype: Any) -> EdgeNumbers:
        """eta_ij = 1/(mu K max(E_i, E_j)), or 1/(mu K E_i) as printed."""
        degree = edges.neighbour_count
        if self.form == "corrected":
            degree = jnp.maximum(degree, edges.neighbour_counts)
        degree = jnp.broadcast_to(degree, edges.mask.shape).astype(dtype)
        eta = 1 / (self.step_size * self.local_steps * degree)
        # What is no edge has no weight either.
        gamma = 1 + self.alpha * eta / jnp.where(edges.mask, edges.weight, 1)
        pull = jnp.where(edges.mask, self.step_size * eta / gamma, 0)
        return EdgeNumbers(gamma, pull)

    def _steps(
        self,
        for_rows: Array,
        for_times: Array,
        oracle: AgentOracle,
        edges: Edges,
        here: EdgeNumbers,
        w: Array,
        inbox: Array,
    ) -> tuple[Array, Array]:
        """The last iterate, and what letters show: it, or an iterate per letter."""
        # sum_j mu (eta_ij/gamma_ij) s_ij z_{i|j} stays the same all round.
        towards = jnp.einsum("s,sd->d", here.pull * edges.sign, inbox)
        share = 1 / (1 + jnp.sum(here.pull))

        def body(v: Array, draw: Any) -> tuple[Array, Array | None]:
            # w <- (w - mu g + mu sum_j (eta/gamma) s z) / (1 + mu sum_j eta/gamma)
            v = share * (v - self.step_size * oracle(draw, v) + towards)
            return v, v if self.exchange == "asynchronous" else None

        draws = oracle.draws(for_rows, self.local_steps)
        w, path = jax.lax.scan(body, w, draws, length=self.local_steps)
        if path is None:
            return w, w
        times = jax.random.randint(for_times, edges.mask.shape, 0, self.local_steps)
        return w, path[times]

    def model(self, state: State) -> Array:
        """What the node tells of its model."""
        told = {"released": state.released, "average": state.average, "own": state.w}
        return told[self.publish]

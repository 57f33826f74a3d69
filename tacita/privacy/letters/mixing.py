"""Steering by mixing: who sees the last models of gossip, and nothing before.

Between two gradient steps nodes mix: x <- W x, with W known and no entry negative. Of
a difference between two runs node j has a vector of length at most u_j. Mixing leaves
at most W u, a gradient step at most e_j times that and, at the node whose record was
changed, one change more. Any node may undo a part of what it has with its own noise; in
the last step all that is left is undone, so that the models shown are the same. The
view is then mu-GDP, with mu^2 the sum of all (part undone / noise)^2 (`steering`).

Which parts are undone is for us to choose, without looking at rows. The best choice
of a linear system without bounds is found backwards (a linear-quadratic regulator); cut
to what a node has, it is followed forwards. The proof: docs/proof-steering.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tacita.algorithm import GossipSGD
from tacita.privacy.accounting.curve import GaussianCurve
from tacita.privacy.accounting.guarantee import Guarantee, believed
from tacita.privacy.clipped import schedule_of
from tacita.privacy.letters.composition import by_composition, noisy_gradients
from tacita.privacy.letters.on_grid import has_integers
from tacita.privacy.letters.question import Question, clipped_oracle, no_longer_rows
from tacita.privacy.letters.steering import step_factors
from tacita.privacy.scope import Observer
from tacita.problem.graph import Graph
from tacita.problem.oracles import Full
from tacita.problem.problem import Problem
from tacita.problem.quantised import Quantised
from tacita.schedule import is_constant
from tacita.trees import replace

#: Every node of a graph has its own number, and each takes a matrix of all nodes.
_MOST_NODES = 100
#: Steps, and numbers of their matrices, that are planned together; longer runs are
#: planned in pieces, each of which leaves no difference to the next.
_MOST_STEPS, _MOST_NUMBERS = 1000, 2_000_000
#: Ratios of noise are told apart to so many digits, so that the same plan serves while
#: noise is calibrated; what that may hide is added.
_DIGITS, _HIDDEN = 12, 1e-9


def by_mixing(algorithm: GossipSGD, problem: Problem, question: Question) -> Guarantee:
    """Composition, or against who sees the last models only, steering by mixing."""
    composed = by_composition(algorithm, problem, question)
    everybody = question.in_step and question.active == problem.n_agents
    everybody = everybody and question.plain
    whole = question.rounds == question.total and question.participation == 1.0
    last = question.scope.observer == Observer.FINAL_MODEL
    if not (last and everybody and whole and question.rounds):
        return composed
    if places(algorithm, problem) is None or composed.mu is None:
        return composed
    assert problem.graph is not None
    n, steps = problem.n_agents, sum(noisy_gradients(algorithm))
    sizes = np.broadcast_to(np.asarray(algorithm.step_size, float), (n,))
    spread = sizes * np.asarray(algorithm.oracle.std, float)
    left = steps_that_count(
        mixing_matrix(problem.graph),
        step_factors(problem, sizes),
        spread,
        steps=steps,
        rounds=question.rounds,
    )[question.agent]
    kept = float(left / (steps * question.rounds))
    curve = GaussianCurve(composed.mu * kept**0.5)
    return replace(composed, curve=curve).noting(
        no_longer_rows(problem),
        believed("others' letters and noise stay secret"),
        believed("models before the last ones are not published"),
        believed("every letter arrives in its round"),
        after="; nodes mix what noise has not hidden yet (steering by mixing)",
    )


def places(algorithm: GossipSGD, problem: Problem) -> list[np.ndarray] | None:
    """Numbers that tell nodes apart by their place; None where mixing is not used.

    That is with batches, a schedule of noise or steps, integers or rounding, where a
    step's factor has no public bound, and on graphs with many nodes.
    """
    n = problem.n_agents
    full = isinstance(clipped_oracle(algorithm).oracle, Full)
    uniform = schedule_of(algorithm.oracle) is None and not has_integers(algorithm)
    uniform = uniform and is_constant(algorithm.step_size)
    uniform = uniform and not isinstance(algorithm.oracle, Quantised)
    if n > _MOST_NODES or not (full and uniform):
        return None
    smooth = np.all(np.isfinite(step_factors(problem, algorithm.step_size)))
    return [np.arange(n)] if smooth else None


def mixing_matrix(graph: Graph) -> np.ndarray:
    """W of gossip: Metropolis weights."""
    degrees = np.asarray(graph.neighbour_counts, float)
    receivers, senders = np.asarray(graph.receivers), np.asarray(graph.senders)
    weights = np.zeros((len(degrees), len(degrees)))
    larger = np.maximum(degrees[receivers], degrees[senders])
    weights[receivers, senders] = 1 / (1 + larger)
    return weights + np.diag(1 - weights.sum(axis=1))


def steps_that_count(
    mixing: np.ndarray, factors: np.ndarray, spread: Any, *, steps: int, rounds: int
) -> np.ndarray:
    """How many steps' cost a run has for each node, where its last models are seen.

    Args:
        mixing: W, (nodes, nodes).
        factors: What a gradient step multiplies a difference by, at most, per node.
        spread: Standard deviation of the noise in a step of each node's model.
        steps: Local steps in a round.
        rounds: Of the run.

    >>> three = np.full((3, 3), 1 / 3)
    >>> steps_that_count(three, np.ones(3), np.ones(3), steps=1, rounds=31).round(1)
    array([11.5, 11.5, 11.5])
    """
    ratios = np.asarray(spread, float) / np.max(spread)
    digits = [float(f"{ratio:.{_DIGITS}g}") for ratio in ratios]
    piece = min(_MOST_STEPS, _MOST_NUMBERS // mixing.size) // steps
    whole, rest = divmod(rounds, max(piece, 1))
    numbers = mixing.tobytes(), tuple(factors.tolist()), tuple(digits), steps
    pieces = [(whole, max(piece, 1)), (1, rest)]
    found = sum(k * _cost(*numbers, length) for k, length in pieces if k and length)
    return np.minimum(found * (1 + _HIDDEN), steps * rounds)


@lru_cache(maxsize=64)
def _cost(
    mixing: bytes,
    factors: tuple[float, ...],
    spread: tuple[float, ...],
    steps: int,
    rounds: int,
) -> np.ndarray:
    """Of so many rounds that are planned together, in units of an own step's cost."""
    # The plan of a short run is the end of a longer one's.
    longer = 1 << (rounds - 1).bit_length()
    plan = _plan(mixing, factors, spread, steps, longer)[-steps * rounds :]
    moves, noise = _moves(mixing, factors, steps), np.array(spread)[:, None]
    # A column for each node whose record was changed.
    had, cost = np.zeros((len(noise), len(noise))), np.zeros(len(noise))
    for step, (kept, pulled) in enumerate(plan):
        before = moves[step % steps] @ had + np.eye(len(noise))
        had = np.clip(kept @ (before / noise**2 - pulled), 0, before)
        cost += np.sum(((before - had) / noise) ** 2, axis=0)
    return cost * noise[:, 0] ** 2


def _moves(mixing: bytes, factors: tuple[float, ...], steps: int) -> list[np.ndarray]:
    """What each local step of a round makes of differences; the first one mixes."""
    n, own = len(factors), np.diag(factors)
    return [own @ np.frombuffer(mixing).reshape(n, n)] + [own] * (steps - 1)


@lru_cache(maxsize=2)
def _plan(
    mixing: bytes,
    factors: tuple[float, ...],
    spread: tuple[float, ...],
    steps: int,
    rounds: int,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """What to keep of a difference in each step: kept (difference/noise^2 - pulled).

    The steps that follow cost a quadratic of what they start from, v: v' now v + 2 v'
    ahead + const. So much is kept that one more unit undone costs now what it would
    cost later; in the last step nothing is.
    """
    moves = _moves(mixing, factors, steps)
    weight = np.diag(np.array(spread) ** -2.0)
    nothing = np.zeros_like(weight)
    plan: list[Any] = [(nothing, nothing)]
    now, ahead = weight, nothing
    for step in reversed(range(1, steps * rounds)):
        move = moves[step % steps]
        later, pulled = move.T @ now @ move, move.T @ (now + ahead)
        kept = np.linalg.inv(weight + later)
        plan.append((kept, pulled))
        now, ahead = weight - weight @ kept @ weight, weight @ kept @ pulled
    return plan[::-1]

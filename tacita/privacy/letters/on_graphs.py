"""Letters of DP-Norm on a graph: the trajectory of what they show.

A DP-Norm node keeps w and shows w + n. Given what it received, w is a function of its
data alone, so a letter is a Gaussian release of w, and what counts is how far one
record moves w after any number of rounds: `letter_sensitivity`.

A neighbour sees the letters on its edge, and, through the others' answers, functions
of all the rest. So it is charged with all letters of the node, as is a set of
neighbours who compare notes, and an eavesdropper.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.algorithm import DPNorm
from tacita.privacy.accounting.guarantee import (
    Assumption,
    Guarantee,
    believed,
    enforced,
)
from tacita.privacy.clipped import Clipped
from tacita.privacy.letters.composition import rows_rounded
from tacita.privacy.letters.dispatch import Letters, letters_of, of_noised
from tacita.privacy.letters.on_grid import Release, has_integers
from tacita.privacy.letters.over_rounds import over_rounds
from tacita.privacy.letters.question import (
    Question,
    alike,
    clipped_before_noise,
    clipped_oracle,
    longest_row,
    no_longer_rows,
    number_of,
    present_noise,
    refuse_poisson,
)
from tacita.privacy.letters.trajectory import trajectory_sensitivity
from tacita.privacy.scope import Observer, Relation, Scope, Unit
from tacita.problem.model.linear import Linear, Logistic, Softmax
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.oracles import Full
from tacita.problem.problem import Problem


@letters_of.register
def _(algorithm: DPNorm) -> Letters:
    return of_noised(
        algorithm,
        theorem=partial(_guarantee, algorithm),
        needed=partial(_needed, algorithm),
        facts=partial(_facts, algorithm),
        replayed=True,
        shared_noise=partial(_noise_in_letters, algorithm),
    )


def _noise_in_letters(algorithm: DPNorm, edges: Any) -> np.ndarray | None:
    if algorithm.exchange == "synchronous":
        return None
    # y = ((2 - gamma) z - 2 s (w + n)) / gamma
    here = algorithm.edge_numbers(edges, edges.sign.dtype)
    return np.asarray(-2 * edges.sign / here.gamma)


#: What a step has to forget of a difference: of less, 1 - r has too few digits.
_LEAST_FORGOTTEN = 1e-9


#: Where a node's w, which carries no noise, may be.
_NOISY = "a node's own w stays with it; models told to others carry noise"
_BARE = (
    "with publish='own' a node's model is w, without noise: it stays with the node, "
    "and so does every file that holds it"
)


class _Steps(NamedTuple):
    """Why steps may expand, "" where they do not, and what that rests on."""

    may_expand: str = ""
    assumptions: tuple[Assumption, ...] = ()


class Change(NamedTuple):
    """How far one record, or one client, moves what a letter shows of w."""

    sensitivity: float
    theorem: str
    assumptions: tuple[Assumption, ...]


def _guarantee(algorithm: DPNorm, problem: Problem, question: Question) -> Guarantee:
    """Gaussian releases of w: one a round, or one for each asynchronous letter."""
    noise = number_of(present_noise(algorithm, algorithm.noise_std), question.agent)
    _refuse_leaks(algorithm, question)
    agent, scope = question.agent, question.scope
    where = {"unit": scope.unit, "relation": scope.relation}
    change = letter_sensitivity(algorithm, problem, agent, **where)
    letters = letters_a_round(algorithm, problem, agent)
    samples = int(problem.counts[agent])
    release = Release(
        has_integers(algorithm),
        change.sensitivity,
        problem.dim,
        rows_rounded(clipped_oracle(algorithm, agent), samples),
        scope.relation,
        carried=True,  # a node's w holds all rounds before
    )
    hidden = release.hidden_by(noise)
    one = question.releases(hidden, change.sensitivity, letters)
    kept = believed(_NOISY if algorithm.publish != "own" else _BARE)
    # What bounds the change is said in full in place of the first.
    one = dataclasses.replace(one, assumptions=one.assumptions[1:])
    noted = one.noting(*change.assumptions, kept, before=f"{change.theorem}; ")
    return over_rounds(release.noted(noted, noise), question)


def letters_a_round(algorithm: DPNorm, problem: Problem, agent: int) -> int:
    """Gaussian releases in one round: letters with noise of their own count each."""
    if algorithm.exchange == "synchronous":
        return 1
    assert problem.graph is not None
    return int(problem.graph.neighbour_counts[agent])


def _refuse_leaks(algorithm: DPNorm, question: Question) -> None:
    shared = algorithm.letter_noise == "shared"
    if algorithm.exchange == "asynchronous" and shared:
        check.refuse(
            "asynchronous DPNorm with letter_noise='shared' leaks: the noise cancels "
            "between letters of one round; use letter_noise='fresh'"
        )
    if question.scope.observer == Observer.FINAL_MODEL and algorithm.publish == "own":
        check.refuse(
            "DPNorm with publish='own' publishes w, which carries no noise; use "
            "publish='released'"
        )


def letter_sensitivity(
    algorithm: DPNorm,
    problem: Problem,
    agent: int,
    *,
    unit: str = Unit.RECORD,
    relation: str = Relation.REPLACE_ONE,
) -> Change:
    """How far w moves, given the letters received, in the worst of all rounds.

    Convex losses with steps that do not expand: D <- r (D + mu s) whenever the record
    is used, with s the change of one gradient. Any other loss, and whole clients:
    D <- r (D + 2 mu C) in every step, for two clipped gradients differ by at most 2 C.
    """
    oracle = clipped_before_noise(algorithm, agent)
    refuse_poisson(oracle.drawn(1)[1])
    mu, norm = number_of(algorithm.step_size, agent), oracle.norm
    r = float(step_kept(algorithm, problem)[agent])
    if not 1 - r >= _LEAST_FORGOTTEN:
        check.refuse(
            f"a step keeps all but {1 - r:.2g} of a difference, so that nothing bounds "
            "what letters show of a record; choose a smaller alpha"
        )
    _refuse_regulariser(problem, mu)
    clipped = enforced(f"every record's gradient has norm at most {norm:g}")
    steps = _Steps("a whole client changes")
    if unit == Unit.RECORD:
        steps = _convexity(algorithm, problem, agent)
    if steps.may_expand:
        # The sum of the geometric series, whatever the gradients are.
        return Change(
            2 * mu * norm * r / (1 - r),
            f"DP-Norm's steps with any two clipped gradients ({steps.may_expand})",
            (clipped, *steps.assumptions),
        )
    halves = 1.0 if relation == Relation.REPLACE_ONE else 0.5
    batch, period, drawn = _use_of_records(oracle, int(problem.counts[agent]))
    change = trajectory_sensitivity(
        shrinkage=r,
        step_size=mu,
        local_steps=algorithm.local_steps,
        batch=batch,
        samples=batch * period,
        gradient_bound=halves * norm,
        any_step=algorithm.exchange == "asynchronous",
    )
    return Change(
        change,
        "trajectory sensitivity of DP-Norm with steps that do not expand",
        (clipped, *steps.assumptions, *drawn),
    )


def step_kept(algorithm: DPNorm, problem: Problem) -> np.ndarray:
    """What a step keeps of a difference: r_i = 1/(1 + mu sum_j eta_ij/gamma_ij)."""
    graph = problem.graph
    assert graph is not None
    counts = np.asarray(graph.neighbour_counts, dtype=float)
    receivers, senders = np.asarray(graph.receivers), np.asarray(graph.senders)
    larger = counts[receivers]
    if algorithm.form == "corrected":
        larger = np.maximum(larger, counts[senders])
    mu = float(algorithm.step_size)  # pyright: ignore[reportArgumentType]
    eta = 1 / (mu * algorithm.local_steps * larger)
    pull = mu * eta / (1 + float(algorithm.alpha) * eta / np.asarray(graph.weights))
    return 1 / (1 + np.bincount(receivers, pull, len(counts)))


def _use_of_records(
    oracle: Clipped, samples: int
) -> tuple[int, int, tuple[Assumption, ...]]:
    """Batch size, steps between two uses of a record, and what that rests on."""
    size, sampling = oracle.drawn(samples)
    if sampling == "permutation":
        return size, samples // size, (enforced("batches of an epoch are disjoint"),)
    if sampling == "with_replacement":
        check.refuse(
            "batches drawn with replacement may hold a record many times and are not "
            "accounted; use sampling='permutation'"
        )
    # Any step may use the record: nothing is gained from the draw.
    return size, 1, ()


def _refuse_regulariser(problem: Problem, mu: float) -> None:
    regulariser = problem.population.regulariser
    if not isinstance(regulariser, SquaredL2) or mu * float(regulariser.weight) > 2:
        check.refuse(
            "the bound on DPNorm's steps needs an l2 regulariser with "
            "step_size * l2 <= 2, so that the regulariser's part does not expand"
        )


def _convexity(algorithm: DPNorm, problem: Problem, agent: int) -> _Steps:
    """What makes steps non-expansive, or why they may expand.

    Clipping a record's gradient keeps a loss with one score per record convex and no
    steeper. With several scores (softmax) it may not, so there clipping must be out of
    reach: a softmax residual is shorter than sqrt(2).
    """
    model, oracle = problem.model, clipped_oracle(algorithm, agent)
    if not isinstance(model, Linear | Logistic | Softmax):
        return _Steps("the model is not linear")
    row, rows = longest_row(problem), no_longer_rows(problem)
    if isinstance(model, Softmax) and oracle.norm < math.sqrt(2) * row * (1 - 1e-6):
        return _Steps("clipping below sqrt(2) rows bends softmax gradients", (rows,))
    mu, steepest = number_of(algorithm.step_size, agent), model.curvature_bounds[1]
    smoothness = steepest * row**2 + float(problem.population.regulariser.weight)
    if mu * smoothness <= 2 * (1 + 1e-9):
        words = "losses are convex and steps at most 2/L"
        if problem.bound is not None:
            words = f"losses are convex and {smoothness:g}-smooth for such records"
        return _Steps("", (rows, enforced(words)))
    # In a federation nobody knows all rows.
    with contextlib.suppress(check.TacitaError):
        if isinstance(oracle.oracle, Full):
            # A neighbour may have another row in place of any: its curvature is added.
            added = steepest * row**2 / int(problem.counts[agent])
            smoothness = float(problem.moduli.smoothness[agent]) + added
            if mu * smoothness <= 2 * (1 + 1e-9):
                words = "losses on neighbouring data are convex, and steps at most 2/L"
                return _Steps("", (rows, believed(words)))
    limit = "2/L" if problem.bound is None else f"2/L = {2 / smoothness:.4g}"
    return _Steps(f"step_size={mu:g} exceeds {limit}", (rows,))


def _facts(algorithm: DPNorm, problem: Problem) -> list[np.ndarray]:
    nodes = range(problem.n_agents)
    letters = np.array([letters_a_round(algorithm, problem, i) for i in nodes])
    # Who may take the tight bound can depend on a node's own curvature.
    tight = [not _convexity(algorithm, problem, i).may_expand for i in nodes]
    return [step_kept(algorithm, problem), letters, np.array(tight, float)]


def _needed(algorithm: DPNorm, problem: Problem, scope: Scope) -> np.ndarray:
    """A node with more letters, or with a longer memory, needs more noise."""
    norms = np.broadcast_to(clipped_oracle(algorithm).norm, (problem.n_agents,))
    first, kind = alike(problem.counts, norms, *_facts(algorithm, problem))
    needed = []
    for agent in first.tolist():
        change = letter_sensitivity(
            algorithm, problem, agent, unit=scope.unit, relation=scope.relation
        )
        letters = letters_a_round(algorithm, problem, agent)
        needed.append(change.sensitivity * math.sqrt(letters))
    return np.array(needed)[kind]

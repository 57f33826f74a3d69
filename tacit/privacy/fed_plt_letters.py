"""Fed-PLT's letters: its own theorem where it applies, composition elsewhere."""

from __future__ import annotations

import dataclasses
import weakref

import numpy as np

from tacit.algorithm import FedPLT
from tacit.privacy.fed_plt import fed_plt
from tacit.privacy.guarantee import Guarantee, believed
from tacit.privacy.letters import (
    ALWAYS_BELIEVED,
    Question,
    by_composition,
    clipped_oracle,
    facts_of_agents,
    guarantee,
    noisy_gradients,
    number_of,
    over_rounds,
)
from tacit.problem.local import Population
from tacit.problem.models import Linear, Logistic
from tacit.problem.oracle import Full
from tacit.problem.problem import Problem
from tacit.problem.regulariser import SquaredL2
from tacit.theory import descent

_LONGEST: weakref.WeakKeyDictionary[Population, float] = weakref.WeakKeyDictionary()


@guarantee.register
def _(algorithm: FedPLT, problem: Problem, question: Question) -> Guarantee:
    """The contraction of a round where it is proved, else all its steps composed."""
    noisy_gradients(algorithm)  # refuses solvers without noise
    numbers = _theorem_numbers(algorithm, problem, question)
    if numbers is None:
        return by_composition(algorithm, problem, question)
    # Participation is handled as for every algorithm, below.
    one = fed_plt(observer=question.observer, rounds=max(question.rounds, 1), **numbers)
    rows = believed(f"no record has features longer than {longest_row(problem):g}")
    one = dataclasses.replace(
        one, assumptions=(*one.assumptions, rows, *ALWAYS_BELIEVED)
    )
    if question.rounds > 0 and question.participation == 1.0:
        return one
    single = fed_plt(observer=question.observer, rounds=1, **numbers)
    mixed = over_rounds(dataclasses.replace(one, curve=single.curve), question)
    return dataclasses.replace(mixed, paper_claim=one.paper_claim)


@facts_of_agents.register
def _(algorithm: FedPLT, problem: Problem) -> list[np.ndarray]:
    linear = isinstance(problem.model, Linear | Logistic)
    return [problem.moduli.smoothness] if linear else []


def _theorem_numbers(
    algorithm: FedPLT, problem: Problem, question: Question
) -> dict | None:
    """The arguments of `fed_plt`, or None where its theorem does not apply.

    Clipping keeps the gradient of a convex loss with one score per record monotone
    and no steeper, so steps still contract; but it takes away the strong convexity
    that comes from the data, and leaves the regulariser's.
    """
    oracle, solver, agent = clipped_oracle(algorithm), algorithm.solver, question.agent
    model, regulariser = problem.model, problem.population.regulariser
    if not isinstance(model, Linear | Logistic) or not isinstance(
        regulariser, SquaredL2
    ):
        return None
    asked = (question.unit, question.relation)
    if not isinstance(oracle.oracle, Full) or asked != ("record", "replace_one"):
        return None
    samples = int(problem.counts[agent])
    # A neighbour may have another row in place of any: its curvature is added.
    steepest = model.curvature_bounds[1] * longest_row(problem) ** 2 / samples
    low = float(regulariser.weight)
    high = float(problem.moduli.smoothness[agent]) + steepest
    rho, gamma = number_of(algorithm.rho, agent), number_of(solver.step_size, agent)
    if descent.contraction(gamma, low + 1 / rho, high + 1 / rho) >= 1:
        return None
    return {
        "strong_convexity": low,
        "smoothness": high,
        "rho": rho,
        "step_size": gamma,
        "local_steps": solver.local_steps,
        "noise_std": number_of(solver.noise_std, agent),
        "lipschitz": 2 * number_of(oracle.norm, agent),
        "samples": samples,
        "clipped": True,
    }


def longest_row(problem: Problem) -> float:
    """The largest norm of a row's features."""
    population = problem.population
    if population not in _LONGEST:
        axis = 1 if population.by_feature else 2
        x = np.asarray(population.rows.x, dtype=np.float64)
        squared = np.einsum("nfr,nfr->nr" if axis == 1 else "nrf,nrf->nr", x, x)
        _LONGEST[population] = float(np.sqrt(squared.max()))
    return _LONGEST[population]

"""Fed-PLT's letters: its own theorem where it applies, composition elsewhere."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np

from tacita.algorithm import FedPLT
from tacita.algorithm.solvers import GradientDescent
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.clipped import schedule_of
from tacita.privacy.letters.composition import by_composition, noisy_gradients
from tacita.privacy.letters.dispatch import Letters, letters_of, of_gradients
from tacita.privacy.letters.noisy_training import fed_plt, step_noise
from tacita.privacy.letters.on_grid import has_integers
from tacita.privacy.letters.over_rounds import over_rounds
from tacita.privacy.letters.question import (
    Question,
    clipped_oracle,
    longest_row,
    no_longer_rows,
    number_of,
)
from tacita.privacy.scope import Scope
from tacita.problem.model.linear import Linear, Logistic
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.oracles import Full
from tacita.problem.problem import Problem
from tacita.problem.quantised import Quantised
from tacita.schedule import is_constant
from tacita.theory import descent


@letters_of.register
def _(algorithm: FedPLT) -> Letters:
    # x_i is y + (z_i - z_i before)/2, of letters and broadcasts.
    return of_gradients(
        algorithm,
        theorem=partial(_guarantee, algorithm),
        public_state=True,
        facts=_smoothness,
    )


def _guarantee(algorithm: FedPLT, problem: Problem, question: Question) -> Guarantee:
    """The contraction of a round where it is proved, else all its steps composed."""
    noisy_gradients(algorithm)  # refuses what is not accounted at all
    if not _theorem_fits(algorithm, problem, question):
        return by_composition(algorithm, problem, question)
    rows = no_longer_rows(problem)
    numbers = _theorem_numbers(algorithm, problem, question)
    if numbers is None:
        return by_composition(algorithm, problem, question).noting(rows)
    # Participation is handled as for every algorithm, below.
    where = {"observer": question.scope.observer, **numbers}
    one = fed_plt(rounds=max(question.rounds, 1), **where)
    if problem.bound is None:
        # The contraction and the moduli are facts about private rows.
        one = dataclasses.replace(one, assumptions=one.assumptions[2:])
    one = one.noting(rows)
    if question.rounds > 0 and question.participation == 1.0:
        return one
    single = fed_plt(rounds=1, **where)
    mixed = over_rounds(dataclasses.replace(one, curve=single.curve), question)
    return dataclasses.replace(mixed, paper_claim=one.paper_claim)


def _smoothness(problem: Problem) -> list[np.ndarray]:
    linear = isinstance(problem.model, Linear | Logistic)
    return [problem.moduli.smoothness] if linear else []


def _theorem_fits(algorithm: FedPLT, problem: Problem, question: Question) -> bool:
    """Whether the theorem speaks of such steps, losses and neighbours at all."""
    oracle = clipped_oracle(algorithm, question.agent)
    convex = isinstance(problem.model, Linear | Logistic)
    ridge = isinstance(problem.population.regulariser, SquaredL2)
    whole = isinstance(oracle.oracle, Full)
    solver = algorithm.solver
    plain = isinstance(solver, GradientDescent) and is_constant(solver.step_size)
    constant = schedule_of(algorithm.oracle) is None and not has_integers(algorithm)
    constant = constant and not isinstance(algorithm.oracle, Quantised)
    usual = question.scope == Scope(question.scope.observer)
    return convex and ridge and whole and plain and constant and usual


def _theorem_numbers(
    algorithm: FedPLT, problem: Problem, question: Question
) -> dict | None:
    """The arguments of `fed_plt`, or None where steps do not contract.

    Clipping keeps the gradient of a convex loss with one score per record monotone
    and no steeper, so steps still contract; but it takes away the strong convexity
    that comes from the data, and leaves the regulariser's.
    """
    agent, solver = question.agent, algorithm.solver
    oracle = clipped_oracle(algorithm, agent)
    samples = int(problem.counts[agent])
    low = float(problem.population.regulariser.weight)
    high = float(problem.moduli.smoothness[agent])
    if problem.bound is None:
        # A neighbour may have another row in place of any: its curvature is added.
        assert isinstance(problem.model, Linear | Logistic)
        curvature = problem.model.curvature_bounds[1]
        high += curvature * longest_row(problem) ** 2 / samples
    rho, gamma = number_of(algorithm.rho, agent), number_of(solver.step_size, agent)
    if descent.contraction(gamma, low + 1 / rho, high + 1 / rho) >= 1:
        return None
    return {
        "strong_convexity": low,
        "smoothness": high,
        "rho": rho,
        "step_size": gamma,
        "local_steps": solver.local_steps,
        "noise_std": step_noise(number_of(algorithm.oracle.std, agent), gamma),
        "lipschitz": 2 * oracle.norm,
        "samples": samples,
        "clipped": True,
        "bounded": problem.bound is not None,
    }

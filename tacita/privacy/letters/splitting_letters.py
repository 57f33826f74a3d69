"""Fed-PLT's letters: its own theorem where it applies, composition elsewhere."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tacita import check
from tacita.algorithm import FedPLT
from tacita.algorithm.solvers import GradientDescent, NoisyGradient
from tacita.privacy.accounting.guarantee import Guarantee, believed
from tacita.privacy.letters.composition import by_composition, guarantee, over_rounds
from tacita.privacy.letters.noisy_training import fed_plt
from tacita.privacy.letters.question import (
    ALWAYS_BELIEVED,
    NoisyGradients,
    Question,
    clipped_oracle,
    facts_of_agents,
    noisy_gradients,
    number_of,
    present_noise,
    state_is_public,
    with_noise,
)
from tacita.privacy.letters.rows import longest_row
from tacita.problem.model.linear import Linear, Logistic
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.oracles import Full
from tacita.problem.problem import Problem
from tacita.theory import descent
from tacita.trees import replace


@noisy_gradients.register
def _(algorithm: FedPLT) -> NoisyGradients:
    solver = algorithm.solver
    if not isinstance(solver, NoisyGradient):
        check.refuse(
            "FedPLT adds noise with solver=NoisyGradient(...) only, got "
            f"{type(solver).__name__}"
        )
    # A step adds sqrt(2 gamma) tau N(0, I) and moves by gamma times the gradient.
    tau, gamma = np.asarray(solver.noise_std), np.asarray(solver.step_size)
    return NoisyGradients(
        solver.local_steps, present_noise(algorithm, tau * np.sqrt(2 / gamma))
    )


@with_noise.register
def _(algorithm: FedPLT, noise_std: Any) -> FedPLT:
    solver = algorithm.solver
    if not isinstance(solver, GradientDescent | NoisyGradient):
        check.refuse(
            "FedPLT can be made private with gradient steps only, got solver="
            f"{type(solver).__name__}; use solver=NoisyGradient(...) or leave it out"
        )
    gamma = np.asarray(solver.step_size)
    tau = noise_std * np.sqrt(gamma / 2)
    noisy = NoisyGradient(
        step_size=solver.step_size,
        local_steps=solver.local_steps,
        noise_std=tau if np.ndim(tau) else float(tau),
    )
    return replace(algorithm, solver=noisy)


@state_is_public.register
def _(algorithm: FedPLT) -> bool:
    # x_i is y + (z_i - z_i before)/2, of letters and broadcasts.
    return True


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

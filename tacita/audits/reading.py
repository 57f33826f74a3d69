"""Rows read back from a run's own letters, beside the epsilon of every noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.aggregation import Choice, SecureSum, Summed
from tacita.algorithm.base import GraphAlgorithm
from tacita.audits.reader import Reader
from tacita.privacy import forecast, letters_of, private
from tacita.privacy.scope import Observer
from tacita.problem.problem import Problem
from tacita.runtime.ready import prepare
from tacita.trace import PrivacyRow
from tacita.trees import in_double_precision, replace


@dataclass(frozen=True, eq=False)
class Reading:
    """What was read from letters with one amount of noise.

    Attributes:
        noise: Which, in words.
        privacy: What the theorems say of it, for the whole run.
        x: The rows that were found, each in the place of a true one.
        y: Their labels.
        error: Root of the mean squared error, features measured in their ranges.
    """

    noise: str
    privacy: PrivacyRow
    x: np.ndarray
    y: np.ndarray
    error: float


@dataclass(frozen=True, eq=False)
class ReadBack:
    """The rows of an agent, and what readers of its letters make of them.

    Attributes:
        agent: Its id.
        letters: How many letters were read.
        rounds: Of the run that every epsilon is for.
        x: The true rows.
        y: Their labels.
        blind: The error of who saw no letter and guesses the mean of others' rows.
        readings: One for every noise, the least first.
        signed: Whether letters tell a row from minus itself; where they do not, rows
            are taken with the better sign.
    """

    agent: Any
    letters: int
    rounds: int
    x: np.ndarray
    y: np.ndarray
    blind: float
    readings: tuple[Reading, ...]
    signed: bool = True


@in_double_precision
def read_back(
    problem: Problem,
    algorithm: Any,
    *,
    rounds: int,
    agent: int = 0,
    rows: int = 2,
    letters: int = 3,
    epsilons: Sequence[float] = (100.0, 10.0, 1.0),
    delta: float = 1e-5,
    participation: Any = 1.0,
    aggregation: Choice = None,
    image: tuple[int, ...] | None = None,
    smooth: float = 0.0,
    seed: int = 0,
) -> ReadBack:
    """Read an agent's rows back from its first letters, for several amounts of noise.

    First without noise; then with the noise that is set, or, where there is none, with
    what `tacita.private` sets for each epsilon. All is done, and accounted, as though
    the agent held its first `rows` rows only: the fewer, the more a letter tells.

    Args:
        problem: With rows that the user may see.
        algorithm: As it would run.
        rounds: Of the run that epsilons are for.
        agent: The number of the agent whose letters are read.
        rows: How many of its rows it is taken to hold.
        letters: How many of its first letters are read together.
        epsilons: Budgets that noise is set for, where the algorithm has none.
        delta: Of all epsilons.
        participation: As in `tacita.simulate`; the agent takes part while it is read.
        aggregation: As in `tacita.simulate`; a secure sum shows no single letter.
        image: Height and width of rows that are pictures.
        smooth: Weight of the total variation of pictures; 0 for none.
        seed: Of the noise, and of where readers begin.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=3, features=4, samples=9)
    >>> found = read_back(problem, tacita.FedAvg(step_size=0.5, local_steps=3),
    ...                   rounds=5, rows=1, epsilons=[1.0])
    >>> bool(found.readings[0].error < 1e-3 < found.readings[1].error)
    True
    """
    held, x, y = with_few_rows(problem, agent, rows)
    letters = min(check.count(letters=letters), check.count(rounds=rounds))
    check.not_negative(smooth=smooth)
    require_letters(algorithm, aggregation)
    on_graph = isinstance(algorithm, GraphAlgorithm)
    observer = Observer.NEIGHBOUR if on_graph else Observer.COORDINATOR
    plan = {"rounds": rounds, "participation": participation, "delta": delta}
    plan["aggregation"] = aggregation
    reader = Reader.knowing(problem, agent, image=image, smooth=smooth)
    signed = reader.tells_signs(problem.model)
    blind = reader.apart(x, np.broadcast_to(reader.typical, x.shape), signed)[0]
    readings = []
    for noise, made in with_noises(held, algorithm, observer, epsilons, plan).items():
        row = forecast(held, made, agent=agent, **plan).row(observer)
        ready = prepare(held, made)
        found = reader.read(held, ready, agent, letters, seed, aggregation)
        error, order, signs = reader.apart(x, found[0], signed)
        rows_found = (found[0][order].T * signs).T
        labels = found[1][order] * signs
        readings.append(Reading(noise, row, rows_found, labels, error))
    about = (problem.ids[agent], letters, rounds, x, y, blind)
    return ReadBack(*about, tuple(readings), signed)


def require_letters(algorithm: Any, aggregation: Choice) -> None:
    """Refuse a secure sum."""
    hidden = isinstance(algorithm, Summed) or isinstance(aggregation, SecureSum | str)
    if hidden:
        check.refuse("a secure sum shows no single letter; read a run without it")


def with_few_rows(
    problem: Problem, agent: int, rows: int
) -> tuple[Problem, np.ndarray, np.ndarray]:
    """The problem as though an agent held its first rows only; and those rows."""
    agent, rows = check.count(0, agent=agent), check.count(rows=rows)
    if agent >= problem.n_agents:
        check.refuse(f"expected agent in 0..{problem.n_agents - 1}, got agent={agent}")
    if rows > problem.counts[agent]:
        held = f"agent {problem.ids[agent]} has {problem.counts[agent]} rows"
        check.refuse(f"{held}; expected no more of them to read, got rows={rows}")
    x, y, _ = problem.stacked()
    population = problem.population
    counts = jnp.asarray(population.counts).at[agent].set(rows)
    made = replace(population, rows=population.rows._replace(filled=counts))
    held = dataclasses.replace(problem, population=made)
    return held, x[agent, :rows].astype(float), y[agent, :rows].astype(float)


def with_noises(
    problem: Problem,
    algorithm: Any,
    observer: str,
    epsilons: Sequence[float],
    plan: dict[str, Any],
) -> dict[str, Any]:
    """The same algorithm with several amounts of noise, by words: first with none.

    Then with its own, or if it has none with that of every epsilon.
    """
    known = letters_of(algorithm.resolve(problem))
    if np.any(np.asarray(known.noise_std) > 0):
        return {"no noise": known.with_noise(0.0), "the noise that is set": algorithm}
    made = {
        f"epsilon {e:g}": private(
            problem, algorithm, epsilon=e, observer=observer, **plan
        )
        for e in sorted(epsilons, reverse=True)
    }
    return {"no noise": algorithm, **made}

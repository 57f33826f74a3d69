"""What a guarantee needs to know of the rows themselves."""

from __future__ import annotations

import weakref

import numpy as np

from tacita.problem.population import Population
from tacita.problem.problem import Problem

_LONGEST: weakref.WeakKeyDictionary[Population, float] = weakref.WeakKeyDictionary()


def longest_row(problem: Problem) -> float:
    """The largest norm of a row's features."""
    population = problem.population
    if population not in _LONGEST:
        axis = 1 if population.by_feature else 2
        x = np.asarray(population.rows.x, dtype=np.float64)
        squared = np.einsum("nfr,nfr->nr" if axis == 1 else "nrf,nrf->nr", x, x)
        _LONGEST[population] = float(np.sqrt(squared.max()))
    return _LONGEST[population]

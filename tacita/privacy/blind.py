"""Whether theory would look at private rows to set an algorithm's numbers.

A number that is computed from rows tells of them, and so does all noise that depends
on it. The question is answered without looking: the algorithm is resolved for the same
problem without its rows, and whoever asks for them is caught.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NoReturn, cast

from tacita.algorithm.base import Algorithm
from tacita.problem.problem import Problem
from tacita.trees import replace


class _Looked(Exception):
    """Somebody asked for rows."""


class _NoRows:
    """In place of rows: asking for anything of them is noticed."""

    def __getattr__(self, name: str) -> NoReturn:
        raise _Looked


#: What is known of a problem besides its fields, whatever its rows are.
_PUBLIC = (
    "whole",
    "n_agents",
    "dim",
    "model",
    "model_of",
    "h",
    "dtype",
    "counts",
    "weights",
    "weighted",
    "origin",
    "feature_names",
)


class _Blind:
    """A problem of which all is known but its rows, and what follows from them."""

    def __init__(self, problem: Problem) -> None:
        self._known = problem
        self.population = replace(problem.population, rows=_NoRows(), test=_NoRows())

    def __getattr__(self, name: str) -> Any:
        known = self._known
        public = {*_PUBLIC, *(field.name for field in fields(Problem))}
        # Of a public bound on rows all others follow.
        public |= {"moduli", "steepest"} if known.bound is not None else set()
        if name in public:
            return getattr(known, name)
        if hasattr(type(known), name):
            raise _Looked
        raise AttributeError(name)


def looks_at_rows(algorithm: Algorithm, problem: Problem) -> bool:
    """Whether a number of the algorithm that was left out would come from the rows.

    >>> import tacita
    >>> logistic = tacita.problem.synthetic.logistic
    >>> problem = logistic(agents=3, features=2, samples=10)
    >>> looks_at_rows(tacita.FedAvg(), problem)
    True
    >>> looks_at_rows(tacita.FedAvg(step_size=0.5), problem)
    False
    >>> looks_at_rows(tacita.FedAvg(), logistic(3, 2, 10, bound=4.0))
    False
    """
    try:
        algorithm.resolve(cast(Problem, _Blind(problem)))
    except _Looked:
        return True
    return False

"""Rows that test a model at the agent who holds them; they never train it.

Nothing here is ever sent. Which rows are held out depends on their places in the table
and on a secret, not on what is in them: tables that differ in one record train on rows
that differ in one record, so that every account holds for the rows that train.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from tacita.check import refuse
from tacita.federation.description import Description
from tacita.federation.own_rows import (
    OwnRows,
    RowsFile,
    own_columns,
    own_problem,
    problem_of,
    rows_of,
)
from tacita.problem import Problem
from tacita.problem.model.regulariser import SquaredL2
from tacita.trees import in_double_precision

#: Steps in which a party that trains alone comes as far as it needs to.
_MOST_STEPS = 500


def held_out(count: int, share: float, secret: bytes) -> np.ndarray:
    """Which of so many rows are held out: each by a coin of its own.

    Rows that are added behind the others leave the coins of those as they were.

    >>> few, more = (held_out(n, 0.3, b"secret") for n in (50, 60))
    >>> bool((few == more[:50]).all()), int(few.sum())
    (True, 14)
    """
    coins = np.frombuffer(hashlib.shake_256(secret).digest(8 * count), "<u8")
    return coins < share * 2.0**64


class OwnTest:
    """Where an agent's test rows come from.

    Args:
        rows: A file or table of their own; None for a share of the agent's rows.
        share: What the policy holds out of the agent's rows by now, if anything.
        secret: Of the agent, for the coins.
        tell: Called with what its own people should know.
    """

    def __init__(
        self,
        rows: OwnRows | None,
        share: Callable[[], float | None],
        secret: Callable[[], bytes],
        tell: Callable[[str], Any],
    ) -> None:
        if rows is not None and share() is not None:
            refuse(
                "test rows come from a file of their own or from test_share of the "
                "policy; leave one of them out"
            )
        rows = rows_of(rows)
        if isinstance(rows, RowsFile) and not rows.path.is_file():
            refuse(f"there is no file {rows.path}; name your own test rows with --test")
        self._rows, self._share, self._secret, self._tell = rows, share, secret, tell

    def split(self, run: Description, rows: OwnRows) -> tuple[Problem, Problem | None]:
        """The agent's rows to train on, and those to test with, if there are any.

        Test rows that cannot be used are left out: whether they can shows nowhere.
        """
        share = self._share()
        if share is None:
            return own_problem(run, rows), self._from_file(run)
        x, y = own_columns(run, rows)
        test = held_out(len(y), share, self._secret())
        train = problem_of(run, x[~test], y[~test])
        if not test.any():
            self._tell("no row is held out: there are too few for the test_share")
            return train, None
        return train, self._usable(lambda: problem_of(run, x[test], y[test]))

    def _from_file(self, run: Description) -> Problem | None:
        rows = self._rows
        return None if rows is None else self._usable(lambda: own_problem(run, rows))

    def _usable(self, read: Callable[[], Problem]) -> Problem | None:
        try:
            return read()
        except Exception as error:  # whatever they are like, the run goes on
            first = (str(error) or type(error).__name__).split("\n")[0]
            self._tell(f"the test rows cannot be used: {first}")
            return None


class OwnMeasures:
    """What an agent measures on its own rows.

    Args:
        own: The rows that it trains on.
        test: Those that it tests with, if it has any.
    """

    def __init__(self, own: Problem, test: Problem | None) -> None:
        self._own, self._test = own, None
        if test is not None:
            bare = replace(test.population, regulariser=SquaredL2(weight=0.0))
            self._test = replace(test, population=bare)

    def of(self, model: np.ndarray) -> dict[str, float]:
        """Loss and, with classes, accuracy of a model."""
        told = {}
        for name, rows in (("own", self._own), ("test", self._test)):
            if rows is None:
                continue
            told[f"{name}_loss"] = rows.loss(model)
            if rows.model.classes is not None:
                told[f"{name}_accuracy"] = rows.accuracy(model)
        return told

    def evaluation(self, together: np.ndarray) -> dict[str, Any] | None:
        """A model on the test rows, beside what the agent could do without others.

        Args:
            together: The model that the run has brought.

        Returns:
            None without test rows.
        """
        if self._test is None:
            return None
        _, seen, _ = self._own.stacked()
        _, wanted, counts = self._test.stacked()
        told: dict[str, Any] = {"rows": int(counts[0])}
        models = {"together": together, "alone": alone(self._own)}
        if self._own.model.classes is not None:
            values, times = np.unique(seen[0], return_counts=True)
            usual = values[np.argmax(times)] == wanted[0]
            told["measure"] = "accuracy"
            told |= {name: self._test.accuracy(w) for name, w in models.items()}
            return told | {"majority class": float(usual.mean())}
        told["measure"] = "root mean squared error"
        guesses = {name: self._predicted(w) for name, w in models.items()}
        guesses["mean"] = np.full(len(wanted[0]), seen[0].mean())
        for name, guess in guesses.items():
            told[name] = float(np.sqrt(np.mean((guess - wanted[0]) ** 2)))
        return told

    @in_double_precision
    def _predicted(self, model: np.ndarray) -> np.ndarray:
        assert self._test is not None
        x, _, _ = self._test.stacked()
        return np.asarray(self._test.model.predict(model, x[0]))  # pyright: ignore


def alone(own: Problem) -> np.ndarray:
    """What an agent learns from its own rows, without noise: the model stays here."""
    found = minimize(
        own.loss,
        np.asarray(own.start, float),
        jac=lambda w: own.grad(w).astype(float),
        method="L-BFGS-B",
        options={"maxiter": _MOST_STEPS},
    )
    return found.x


def in_words(told: dict[str, Any]) -> str:
    """An evaluation in one line.

    >>> in_words({"rows": 20, "measure": "accuracy", "together": 0.8, "alone": 0.75,
    ...     "majority class": 0.5})
    'on 20 own test rows: accuracy 0.8 together, 0.75 alone, 0.5 majority class'
    """
    parts = [f"{v:.4g} {k}" for k, v in told.items() if k not in ("rows", "measure")]
    return f"on {told['rows']} own test rows: {told['measure']} {', '.join(parts)}"

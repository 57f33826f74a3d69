"""Adult as the paper has it, and with an encoding made of public knowledge only.

The paper: 81 columns, mode imputation, "all the features are normalized", 32 561
training rows dealt evenly to N = 100 clients; softmax with 2 outputs, so d = 162.

The public encoding keeps all 81 columns and uses nothing of the data but the schema.
Numbers are centred and scaled by round figures that anybody would guess for working
adults (age 40, nine school years, 40 hours; capital gains on a logarithmic scale, the
gain counted twice), a square of the age and an intercept are added, and every row is
brought to norm 1, so that a record's logistic gradient is at most 1.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

import tacita
from tacita.data import load
from tacita.encoding import unit_rows

CLIENTS = 100
#: Of the training rows, for choosing hyperparameters; never of the test rows.
VALIDATION_SHARE = 0.2


class Table(NamedTuple):
    """Rows to train on and rows to judge by; labels are -1 and +1."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray

    def accuracy(self, weights: np.ndarray) -> np.ndarray:
        """Of logistic models on the rows to judge by, one per row of `weights`."""
        scores = np.atleast_2d(weights) @ self.test_x.T
        return np.mean((scores > 0) == (self.test_y > 0), axis=-1)

    def problem(self, *, model: str = "logistic", h=None) -> tacita.Problem:
        """The rows dealt to the clients in a fixed random order."""
        order = np.random.default_rng(2).permutation(len(self.y))
        agent = np.empty(len(self.y), int)
        agent[order] = np.arange(len(self.y)) % CLIENTS
        # Both encodings make rows of norm 1.
        options = {"dtype": np.float32, "bound": 1.0, "name": "adult"}
        return tacita.from_arrays(self.x, self.y, agent, model=model, h=h, **options)


def public_columns(x: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Numbers scaled by round figures, categories as they are, rows of norm 1."""
    number = {name: x[:, i] for i, name in enumerate(names) if "=" not in name}
    age = np.clip((number["age"] - 40) / 20, -1.5, 1.5)
    school = np.clip((number["education-num"] - 9) / 4, -2, 2)
    hours = np.clip((number["hours-per-week"] - 40) / 20, -1.5, 1.5)
    gain = 2 * np.log1p(number["capital-gain"]) / np.log(1e5)
    loss = np.log1p(number["capital-loss"]) / np.log(5e3)
    levels = x[:, ["=" in name for name in names]]
    ones = np.ones_like(age)
    columns = np.column_stack([ones, age, age**2, school, hours, gain, loss, levels])
    return unit_rows(columns)


@functools.cache
def tables(encoding: str = "public") -> tuple[Table, Table]:
    """For tuning (a validation part of the training rows), and for the test.

    Args:
        encoding: "public", or the paper's: "unit" (81 columns, rows of norm 1),
            "minmax" (81 columns), "plain" (105 columns, rows of norm 1).
    """
    parts: list[Any]
    if encoding == "public":
        data: Any = load("adult", scale=None)
        names = data.feature_names
        parts = [public_columns(v, names) for v in (data.x, data.test_x)]
    else:
        kind = "full" if encoding == "plain" else "reduced"
        scale = "minmax" if encoding == "minmax" else "unit"
        data = load("adult", encoding=kind, scale=scale)
        parts = [data.x, data.test_x]
    y, test_y = (np.where(v == 1, 1.0, -1.0) for v in (data.y, data.test_y))
    order = np.random.default_rng(1).permutation(len(y))
    held, kept = np.split(order, [int(VALIDATION_SHARE * len(y))])
    tuning = Table(parts[0][kept], y[kept], parts[0][held], y[held])
    return tuning, Table(parts[0], y, parts[1], test_y)

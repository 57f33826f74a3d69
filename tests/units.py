"""Algorithms in other units: by what each of their numbers is multiplied.

With features times a and labels times b a model is times M = b/a, and a curvature times
C = a^2; where labels are no numbers b is 1. Steps are 1/C, gradients C M, losses C M^2.
For powers of two all products are exact: another unit, the same run.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import tacita
from tacita.schedule import ByRound
from tests.cases import Case

#: Exponents of C and M.
STEP, CURVATURE, MODEL, GRADIENT, LOSS = (-1, 0), (1, 0), (0, 1), (1, 1), (1, 2)

#: Of numbers that have a unit; of one class where its name stands before it.
EXPONENTS = {
    "step_size": STEP,
    "FedProx.eta": STEP,
    "FedPD.eta": STEP,
    "FedPLT.rho": STEP,
    "FedSplit.rho": STEP,
    "FiveGCS.gamma": STEP,
    "DPNorm.alpha": STEP,
    "rho": CURVATURE,
    "FedSPD.gamma": CURVATURE,
    "FiveGCS.tau": CURVATURE,
    "strong_convexity": CURVATURE,
    "smoothness": CURVATURE,
    "alpha": CURVATURE,
    "PrimalDual.alpha": GRADIENT,  # of a length
    "noise_std": MODEL,
    "FedSPD.noise_std": GRADIENT,
    "DPFedAvg.noise_std": GRADIENT,
    "clip": MODEL,
    "radius": MODEL,
    "tau": MODEL,
    "FedAdagrad.server_step": MODEL,
    "FedYogi.server_step": MODEL,
    "FedAdam.server_step": MODEL,
    "gradient_bound": GRADIENT,
    "range": GRADIENT,
    "std": GRADIENT,
    "norm": GRADIENT,
    "L1.weight": GRADIENT,
    "loss_bound": LOSS,
    "least_loss": LOSS,
    "weight_step": (-1, -2),
}


@dataclasses.dataclass(frozen=True)
class Unit:
    """What features and labels are multiplied by."""

    rows: float
    labels: float = 1.0

    def of(self, exponents: tuple[int, int]) -> float:
        """What a number with these exponents is multiplied by."""
        curvature, model = exponents
        return self.rows ** (2 * curvature) * (self.labels / self.rows) ** model

    def converted(self, record: Any) -> Any:
        """An algorithm, an oracle, a solver or an h with its numbers in this unit."""
        changes = {}
        for field in dataclasses.fields(record):
            value = getattr(record, field.name)
            exponents = exponents_of(record, field.name)
            if value is None or isinstance(value, type):
                continue
            if exponents:
                changes[field.name] = times(value, self.of(exponents))
            elif isinstance(value, tuple):
                changes[field.name] = tuple(self.converted(one) for one in value)
            elif dataclasses.is_dataclass(value):
                changes[field.name] = self.converted(value)
        return dataclasses.replace(record, **changes)


def left_out(record: Any) -> Any:
    """An algorithm or a solver without the numbers that theory can set."""
    changes = {}
    for field in dataclasses.fields(record):
        if field.name == "solver" and record.solver is not None:
            changes["solver"] = left_out(record.solver)
        elif exponents_of(record, field.name) and field.default is None:
            changes[field.name] = None
    return dataclasses.replace(record, **changes)


def exponents_of(record: Any, name: str) -> tuple[int, int] | None:
    """The exponents of a field; None where it has no unit."""
    return EXPONENTS.get(f"{type(record).__name__}.{name}", EXPONENTS.get(name))


def times(value: Any, factor: float) -> Any:
    """A number, one per agent, or a schedule of them, multiplied."""
    if not isinstance(value, ByRound):
        return value * factor
    name = "start" if hasattr(value, "start") else "values"
    return dataclasses.replace(value, **{name: getattr(value, name) * factor})


def problem(case: Case, unit: Unit, model: str = "logistic") -> tacita.Problem:
    """The problem of a case with features and labels in this unit."""
    plain = case.problem()
    x, y, counts = plain.stacked()
    real = np.arange(x.shape[1]) < counts[:, None]
    agent = np.repeat(np.arange(plain.n_agents), counts)
    rows, labels = x[real], y[real]
    if model == "linear":
        labels = rows @ [1.0, -2.0, 0.5] + labels
    return tacita.from_arrays(
        *(unit.rows * rows, unit.labels * labels, agent),
        model=model,
        l2=0.3 * unit.of(CURVATURE),
        graph=plain.graph,
        dtype=np.float64,
    )

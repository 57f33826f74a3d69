"""How a privacy curve is stored in a ledger row, and how rows add up again."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from tacita.privacy.accounting.curve import (
    Curve,
    GaussianCurve,
    RenyiCurve,
    compose,
    renyi,
)
from tacita.privacy.ledger.database import Row


def cost_of(curve: Curve) -> dict[str, Any]:
    """The columns of a curve: Gaussian parts as mu^2, the rest per Renyi order."""
    if isinstance(curve, GaussianCurve):
        return {"mu_squared": curve.mu**2, "rdp": None}
    bounds = renyi(curve)
    if not any(bounds.values):
        return {"mu_squared": 2 * bounds.slope, "rdp": None}
    stored = json.dumps([*bounds.values, bounds.pure])
    return {"mu_squared": 2 * bounds.slope or None, "rdp": stored}


@dataclass
class Total:
    """Running sums of one agent and observer, up to and including row `through`."""

    mu_squared: float = 0.0
    rest: RenyiCurve | None = None
    through: int = 0

    def add(self, row: Row) -> None:
        """Add the next release."""
        self.through = row.id
        self.add_cost(row.mu_squared, row.rdp)

    def add_cost(
        self, mu_squared: float | None, rdp: str | None, times: int = 1
    ) -> None:
        """Add releases by their columns, in the ledger or not."""
        self.mu_squared += times * (mu_squared or 0.0)
        if rdp is not None:
            *values, pure = json.loads(rdp)
            one = RenyiCurve(tuple(values), pure=pure).repeat(times)
            self.rest = one if self.rest is None else renyi(compose(self.rest, one))

    def curve(self) -> Curve:
        """The composed curve: exact if every release was Gaussian."""
        gaussian = GaussianCurve(math.sqrt(self.mu_squared))
        if self.rest is None:
            return gaussian
        return compose(self.rest, gaussian) if self.mu_squared else self.rest

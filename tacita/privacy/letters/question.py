"""A question about letters, and what every answer starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita import check
from tacita.aggregation import Aggregation, Mean
from tacita.privacy.accounting.guarantee import believed
from tacita.privacy.clipped import Clipped, clipping_of
from tacita.privacy.scope import Observer, Scope

#: Observers who are shown broadcasts, not letters.
BROADCAST_ONLY = (Observer.FINAL_MODEL, Observer.NEIGHBOUR)
ALWAYS_BELIEVED = (
    believed("no number of the algorithm was chosen by looking at private data"),
    believed("the number of rows of every agent is public"),
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """Whose privacy, against whom, after how many rounds.

    Attributes:
        scope: Who looks, what is protected, how neighbouring data differ.
        agent: The number of the agent whose data it is.
        rounds: Rounds in which the agent takes part; with a participation below 1,
            all rounds of the plan.
        participation: Probability of taking part in a round.
        active: Agents active in every round, or None if their number varies.
        total: All rounds of the run, where `rounds` counts the agent's own.
        aggregation: How the coordinator joins letters.
    """

    scope: Scope
    agent: int
    rounds: int
    participation: float = 1.0
    active: int | None = None
    total: int | None = None
    aggregation: Aggregation = Mean()


def number_of(value: Any, agent: int) -> float:
    """One agent's number out of a common one or of one per agent."""
    return float(np.asarray(value)[agent] if np.ndim(value) else value)


def present_noise(algorithm: Any, noise_std: Any, remedy: str = "set noise_std") -> Any:
    """The noise, or a refusal where there is none."""
    if noise_std is None or np.any(np.asarray(noise_std) <= 0):
        check.refuse(
            f"{type(algorithm).__name__} has no noise; {remedy}, or let tacita.private "
            "set it for a budget"
        )
    return noise_std


def clipped_oracle(algorithm: Any) -> Clipped:
    """The algorithm's clipping, or a refusal: without it nothing is bounded."""
    clipped = clipping_of(algorithm.oracle)
    if clipped is None:
        check.refuse(
            f"the gradients of {type(algorithm).__name__} are not clipped, so one "
            "record may change them by any amount; wrap the oracle: "
            "oracle=tacita.privacy.Clipped(norm=1.0)"
        )
    return clipped

"""What is asked of an algorithm about its letters; every answer is registered.

Each function dispatches on the algorithm's class. The answers stand in `gradients`,
`fed_plt`, `local` and `graph`, next to the theorem that they rest on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.privacy.accounting.guarantee import believed
from tacita.privacy.clipped import Clipped
from tacita.problem.oracles import Minibatch
from tacita.problem.problem import Problem

#: Observers who are shown broadcasts, not letters.
BROADCAST_ONLY = ("final_model", "neighbour")
ALWAYS_BELIEVED = (
    believed("no number of the algorithm was chosen by looking at private data"),
    believed("the number of rows of every agent is public"),
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """Whose privacy, against whom, after how many rounds.

    Attributes:
        observer: Who looks.
        unit: What is protected.
        relation: How neighbouring data differ.
        agent: The number of the agent whose data it is.
        rounds: Rounds in which the agent takes part; with a participation below 1,
            all rounds of the plan.
        participation: Probability of taking part in a round.
        active: Agents active in every round, or None if their number varies.
        total: All rounds of the run, where `rounds` counts the agent's own.
    """

    observer: str
    unit: str
    relation: str
    agent: int
    rounds: int
    participation: float = 1.0
    active: int | None = None
    total: int | None = None


class NoisyGradients(NamedTuple):
    """What an agent computes in a round: `steps` gradients with noise in each."""

    steps: int
    noise_std: Any  # of the noise in a gradient, one number or one per agent


def number_of(value: Any, agent: int) -> float:
    """One agent's number out of a common one or of one per agent."""
    return float(np.asarray(value)[agent] if np.ndim(value) else value)


@singledispatch
def noisy_gradients(algorithm: Any) -> NoisyGradients:
    """The noisy gradients of one round of the algorithm, or a refusal."""
    check.refuse(
        f"{type(algorithm).__name__} adds no noise to its letters, so nothing bounds "
        "what they reveal; use ServerGD, FedAvg, FedPLT, FedSPD, DPSGD, DPFedAvg or "
        "DPADMM; on a graph DPNorm, GossipSGD or GraphADMM"
    )


def present_noise(algorithm: Any, noise_std: Any) -> Any:
    """The noise, or a refusal where there is none."""
    if noise_std is None or np.any(np.asarray(noise_std) <= 0):
        check.refuse(
            f"{type(algorithm).__name__} has no noise; set noise_std, or let "
            "tacita.private set it for a budget"
        )
    return noise_std


@singledispatch
def with_noise(algorithm: Any, noise_std: Any) -> Any:
    """The same algorithm with this noise in every gradient, or a refusal."""
    return noisy_gradients(algorithm)  # which refuses and says why


@singledispatch
def mixes_letters(algorithm: Any) -> bool:
    """Whether a broadcast shows letters only in a mean with all their noise.

    Needs letters that are a function of the broadcast plus plain Gaussian noise.
    """
    return False


@singledispatch
def state_is_public(algorithm: Any) -> bool:
    """Whether who sees all letters can compute what an agent's next one starts from."""
    return False


@singledispatch
def hides_participation(algorithm: Any) -> bool:
    """Whether the bound is over a secret draw of who takes part."""
    return False


@singledispatch
def replays(algorithm: Any) -> bool:
    """Whether an agent's state carries no noise, so that both data sets give one.

    Who knows two data sets and what the agent received computes its state for either.
    """
    return False


@singledispatch
def noise_in_letters(algorithm: Any, edges: Any) -> np.ndarray | None:
    """What one draw of noise is multiplied by in the letter on each edge of a node.

    None where letters of a round never share noise and show different things.
    """
    return None


@singledispatch
def noise_needed(
    algorithm: Any, problem: Problem, unit: str, relation: str
) -> np.ndarray | None:
    """Per agent, what its noise should be proportional to.

    None where that is the change of one gradient.
    """
    return None


@singledispatch
def facts_of_agents(algorithm: Any, problem: Problem) -> list[np.ndarray]:
    """Numbers per agent that a guarantee depends on, besides rows and rounds.

    The algorithm's own numbers per agent are always looked at.
    """
    return []


def clipped_oracle(algorithm: Any) -> Clipped:
    """The algorithm's clipping, or a refusal: without it nothing is bounded."""
    if not isinstance(algorithm.oracle, Clipped):
        check.refuse(
            f"the gradients of {type(algorithm).__name__} are not clipped, so one "
            "record may change them by any amount; wrap the oracle: "
            "oracle=tacita.privacy.Clipped(norm=1.0)"
        )
    return algorithm.oracle


@singledispatch
def natural_relation(algorithm: Any) -> str:
    """The relation that the sampling is accounted under."""
    inner = getattr(algorithm.oracle, "oracle", algorithm.oracle)
    poisson = isinstance(inner, Minibatch) and inner.sampling == "poisson"
    return "add_remove" if poisson else "replace_one"

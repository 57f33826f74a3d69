"""Choosing the grid and the noise for a budget, and how many shares open a secret.

The noise of a sum of h honest agents, each with standard deviation s in steps, protects
a letter that one unit changes by `change` as a real Gaussian would with

    mu = change_in_steps / sqrt(h s^2 - 4),
    change_in_steps = change (1 + slack)/step + sqrt(d),

(`docs/proof-secure-sums.md`). The step is the largest power of two at which rounding
hardly counts, unless a coarser one keeps all sums within words of 32 bits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tacita import check
from tacita.aggregation.secure.noise_table import multiples
from tacita.gaussian_table import BASE, REACH
from tacita.theory.gaussian import epsilon_of_mu, mu_of_epsilon

#: Steps of the grid in a change, at least: and this many times sqrt(d).
_FINE, _FINE_BY_ROOT = 2**12, 64
#: What rounding may add to a change before words of 64 bits are worth their length.
_ROUNDING = 0.25
#: What drawing an integer near a real Gaussian costs of its variance.
SMOOTHING = 4
#: Agents of one sum.
FEWEST, MOST = 3, 128


class Grid(NamedTuple):
    """What all agents of a sum agree on.

    Attributes:
        step: Of the grid, a power of two.
        word: Bits of an integer.
        multiples: Of the table's draws in the noise of each agent.
    """

    step: float
    word: int
    multiples: tuple[int, ...]

    @property
    def sigma_steps(self) -> float:
        """Standard deviation of one agent's noise, in steps."""
        return sigma_of(self.multiples)


class Plan(NamedTuple):
    """A grid, and what it costs.

    Attributes:
        step: Of the grid, a power of two.
        word: Bits of an integer.
        multiples: Of the table's draws in the noise of each agent.
        sigma_steps: Standard deviation of one agent's noise, in steps.
        change_steps: How far one unit moves the sum, in steps.
        mu: Of all rounds.
        epsilon: At the delta asked for.
        noise_over_central: The noise of the sum if all answer, over that of a trusted
            curator with a real Gaussian.
    """

    step: float
    word: int
    multiples: tuple[int, ...]
    sigma_steps: float
    change_steps: float
    mu: float
    epsilon: float
    noise_over_central: float


def threshold(holders: int, colluding: int) -> int:
    """T = floor((n + c)/2) + 1: how many shares open a secret, so that 2t > n + c.

    >>> threshold(holders=20, colluding=2)
    12
    """
    holders = check.count(holders=check.given(holders=holders))
    colluding = check.count(0, colluding=check.given(colluding=colluding))
    return (holders + colluding) // 2 + 1


def plan(
    *,
    eps: float,
    delta: float,
    rounds: int,
    change: float,
    d: int,
    agents: int,
    least: int,
    colluding: int,
    largest: float,
    slack: float = 0.0,
) -> Plan:
    """The grid and the noise for a budget, if every record is in every round.

    Args:
        eps: The budget, against the coordinator with `colluding` agents.
        delta: The probability of exceeding it.
        rounds: Sums.
        change: How far one unit moves a weighted letter, in l2 norm.
        d: Numbers in a letter.
        agents: Of a sum, at most.
        least: Letters in a sum, at least.
        colluding: Agents who tell the coordinator their noise.
        largest: The bound on the size of an entry of a weighted letter.
        slack: What rounding in double precision adds to a change, relatively.
    """
    check.positive(eps=check.given(eps=eps))
    check.inside_unit(delta=check.given(delta=delta))
    refuse_numbers(agents, least, colluding)
    budget = mu_of_epsilon(eps, delta)
    each = budget / math.sqrt(check.count(rounds=check.given(rounds=rounds)))
    honest = least - colluding
    made = fitted(1 / each, change, d, agents, honest, largest, slack)
    moved = change_in_steps(change, made.step, d, slack)
    mu = moved / effective_noise(honest, made.multiples) * math.sqrt(rounds)
    return Plan(
        *made,
        sigma_steps=made.sigma_steps,
        change_steps=moved,
        mu=mu,
        epsilon=epsilon_of_mu(mu, delta),
        noise_over_central=made.step
        * made.sigma_steps
        * math.sqrt(agents)
        / (change / each),
    )


def fitted(
    multiplier: float,
    change: float,
    d: int,
    agents: int,
    honest: int,
    largest: float,
    slack: float = 0.0,
    parts: int = 1,
) -> Grid:
    """The grid on which `honest` noises are `multiplier` times a change.

    Wrapping around is impossible, not improbable: every draw has a largest value.
    """
    check.positive(change=check.given(change=change))
    check.positive(largest=check.given(largest=largest))
    check.count(d=check.given(d=d))
    steps = max(_FINE, _FINE_BY_ROOT * math.sqrt(d))
    # The largest power of two with change/step >= steps.
    finest = math.ldexp(1.0, math.floor(math.log2(change / steps)))
    if change / finest < steps:
        finest /= 2
    elif change / (2 * finest) >= steps:
        finest *= 2

    def grid(step: float, word: int) -> Grid:
        wanted = multiplier * change_in_steps(change, step, d, slack, parts)
        sigma = math.sqrt((wanted**2 + SMOOTHING) / honest)
        return Grid(step, word, multiples(sigma))

    def fits(made: Grid) -> bool:
        return wraps_never(agents, largest, *made)

    made = grid(finest, 32)
    while not fits(made) and math.sqrt(d) <= _ROUNDING * change / made.step:
        made = grid(2 * made.step, 32)
    if math.sqrt(d) > _ROUNDING * change / made.step:
        made = grid(finest, 64)
    if not fits(made):
        check.refuse(
            f"largest={largest:g} beside a change of {change:g} needs more than 64 "
            "bits; clip to a smaller norm or give a smaller largest"
        )
    return made


def wraps_never(
    agents: int, largest: float, step: float, word: int, each: tuple[int, ...]
) -> bool:
    """Whether sums stay within words, whatever letters and noise are."""
    entry = largest / step + 0.5 + REACH * sum(each)
    return agents * entry < 2 ** (word - 1)


def refuse_wrap(
    agents: int, largest: float, step: float, word: int, each: tuple[int, ...]
) -> None:
    """Refuse a grid on which a sum could wrap around: it would say something else."""
    if not wraps_never(agents, largest, step, word, each):
        check.refuse(
            f"sums of {agents} letters up to {largest:g} on a grid of step {step:g} do "
            f"not fit into {word} bits; let tacita.private set the grid"
        )


def change_in_steps(
    change: float, step: float, d: int, slack: float = 0.0, parts: int = 1
) -> float:
    """How far one unit moves a letter on the grid: rounding adds 1 a coordinate.

    As often as a change is made of `parts`, each of which is rounded on its own.
    """
    return change * (1 + slack) / step + parts * math.sqrt(d)


def sigma_of(each: tuple[int, ...]) -> float:
    """Standard deviation of one agent's noise, in steps."""
    return BASE * math.sqrt(sum(k * k for k in each))


def effective_noise(honest: int, each: tuple[int, ...]) -> float:
    """The real Gaussian that `honest` noises are as good as: sqrt(h s^2 - 4) steps."""
    return math.sqrt(honest * BASE**2 * sum(k * k for k in each) - SMOOTHING)


def slack_of(rows: int, emptied: bool) -> float:
    """What double precision adds to a change of a mean of `rows` rows, relatively.

    Either neighbour's mean of rows clipped to C is off by C (m + 2) 2^-53 in l2, in
    any order, over a change of 2C/m; a row that is emptied changes half as much.
    """
    return (2 if emptied else 1) * rows**2 * 2.0**-53


def refuse_numbers(agents: int, least: int, colluding: int) -> None:
    """Refuse sums that would say too much, or that nobody could open."""
    if not FEWEST <= agents <= MOST:
        check.refuse(
            f"a secure sum is over {FEWEST} to {MOST} agents, got {agents}; "
            + (
                "let more take part"
                if agents < FEWEST
                else "let groups sum on their own"
            )
        )
    if least > agents:
        check.refuse(
            f"expected least <= {agents}, the agents of a round, got least={least}"
        )
    if least - colluding < 2:
        check.refuse(
            f"least={least} letters of which colluding={colluding} are known leave "
            f"{max(least - colluding, 0)}, and one letter is no sum; raise least or "
            "lower colluding"
        )
    shares = threshold(agents, colluding)
    if least < shares:
        check.refuse(
            f"least={least} letters are fewer than the {shares} shares that open a "
            f"sum of {agents} agents with colluding={colluding}; take least >= {shares}"
        )

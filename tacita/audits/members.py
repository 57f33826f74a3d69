"""Who was a member, and what a party's rows are like: inference by shadow runs.

Members: N. Carlini et al., "Membership inference attacks from first principles" (LiRA),
IEEE S&P 2022. Every shadow run has a random half of an agent's records; each run in
turn is the one under attack and the others are what the attacker learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from sklearn.metrics import roc_auc_score

from tacita import check
from tacita.aggregation import Aggregation
from tacita.audits.reading import with_few_rows, with_noises
from tacita.audits.shadows import shadow_runs
from tacita.audits.statistics import learned_score
from tacita.privacy import forecast, membership
from tacita.privacy.scope import Observer, Relation
from tacita.problem.problem import Problem
from tacita.trace import PrivacyRow
from tacita.trees import in_double_precision

#: Shadow runs, at least. Each is judged by all others: with fewer, those that had a
#: record are too few to fit a law to, and a blind guess scores below one half.
LEAST_RUNS = 16
#: Shares of non-members that may be taken for members.
FALSE_RATES = (0.001, 0.01, 0.1)


@dataclass(frozen=True, eq=False)
class Members:
    """How well members were found, and how well they may be.

    Attributes:
        agent: The id of whose records they are.
        inside: Scores of records in runs that had them.
        outside: Scores of records in runs that did not.
        privacy: What the theorems say of who sees the final model.
    """

    agent: Any
    inside: np.ndarray
    outside: np.ndarray
    privacy: PrivacyRow

    @property
    def auc(self) -> float:
        """How often a member's score is above another's; 1/2 for a blind guess."""
        return auc(self.inside, self.outside)

    def caught(self, false_rate: float = 0.001) -> float:
        """The share of members found where so many others are taken for members."""
        return membership.caught(self.inside, self.outside, false_rate)

    def most(self, false_rate: float = 0.001) -> float:
        """The largest share that the theorem allows; 1 where there is no theorem."""
        row = self.privacy
        if row.epsilon is None:
            return 1.0
        # Runs with and without a record differ by a replaced one.
        if row.relation == Relation.REPLACE_ONE:
            return membership.most_caught(row.epsilon, row.delta, false_rate)
        return membership.most_caught_replaced(row.epsilon, row.delta, false_rate)

    def rates(
        self, false_rates: Sequence[float] = FALSE_RATES
    ) -> list[tuple[float, float, float]]:
        """False positives, true positives found, true positives allowed."""
        return [(rate, self.caught(rate), self.most(rate)) for rate in false_rates]


@in_double_precision
def find_members(
    problem: Problem,
    algorithm: Any,
    *,
    rounds: int,
    agent: int = 0,
    runs: int = 64,
    delta: float = 1e-5,
    participation: Any = 1.0,
    aggregation: Aggregation | None = None,
    seed: int = 0,
) -> Members:
    """Infer from final models which records an agent had, as LiRA does.

    Args:
        problem: With rows that the user may see; half of the agent's are in a run.
        algorithm: As it would run, with the noise that it has.
        rounds: Of each run.
        agent: The number of the agent whose records are sought.
        runs: How many shadow runs, at least 16; even, so that every record is in half
            of them.
        delta: Of the guarantee.
        participation: As in `tacita.simulate`.
        aggregation: As in `tacita.simulate`; only a mean hides a letter among others.
        seed: Of everything.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=3, features=4, samples=8)
    >>> found = find_members(problem, tacita.FedAvg(step_size=0.5), rounds=3, runs=16)
    >>> found.inside.shape == found.outside.shape == (16 * 4,)
    True
    """
    runs = 2 * -(-check.count(LEAST_RUNS, runs=runs) // 2)
    few, half = _halved(problem, agent)
    random = np.random.default_rng(seed)
    drawn = np.stack([random.permutation(2 * half) for _ in range(runs // 2)])
    # A permutation's halves make two runs, so that every record is in half of them.
    held = np.concatenate([drawn[:, :half], drawn[:, half:]])
    chosen = {"participation": participation, "aggregation": aggregation}
    made = shadow_runs(problem, algorithm, rounds, agent, held, seed, **chosen)
    x, y, _ = problem.stacked()
    rows = jnp.asarray(x[agent, : 2 * half]), jnp.asarray(y[agent, : 2 * half])
    sure = np.stack([confidence(problem, w, *rows) for w in made.models])
    member = np.zeros(sure.shape, bool)
    np.put_along_axis(member, held, True, axis=1)
    scores = membership.lira_scores(sure, member)
    plan = {"rounds": rounds, "delta": delta, **chosen}
    told = forecast(few, algorithm, agent=agent, **plan)
    row = told.row(Observer.FINAL_MODEL)
    return Members(problem.ids[agent], scores[member], scores[~member], row)


@in_double_precision
def members_by_noise(
    problem: Problem,
    algorithm: Any,
    *,
    rounds: int,
    agent: int = 0,
    epsilons: Sequence[float] = (10.0, 1.0),
    delta: float = 1e-5,
    participation: Any = 1.0,
    aggregation: Aggregation | None = None,
    runs: int = 64,
    seed: int = 0,
) -> dict[str, Members]:
    """Find members for several amounts of noise, by words; see `read_back`."""
    few, _ = _halved(problem, agent)
    plan = {"rounds": rounds, "participation": participation, "delta": delta}
    plan["aggregation"] = aggregation
    noises = with_noises(few, algorithm, Observer.FINAL_MODEL, epsilons, plan)
    more = {"agent": agent, "runs": runs, "seed": seed}
    return {
        noise: find_members(problem, made, **plan, **more)
        for noise, made in noises.items()
    }


def _halved(problem: Problem, agent: int) -> tuple[Problem, int]:
    """The problem as though an agent held half of its rows, and how many these are."""
    agent = check.count(0, agent=agent)
    half = int(problem.counts[agent]) // 2 if agent < problem.n_agents else 0
    if half == 0:
        check.refuse(f"there are no two rows of agent number {agent} to tell apart")
    return with_few_rows(problem, agent, half)[0], half


def confidence(problem: Problem, w: Any, x: Any, y: Any) -> np.ndarray:
    """How sure a model is of every row's label: the logit of its chance.

    Of a regression minus the log of its loss.
    """
    losses = np.asarray(problem.model.losses(jnp.asarray(w), x, y), float)
    if problem.model.classes is None:
        return -np.log(losses + 1e-12)
    return membership.logit(np.exp(-losses))


@in_double_precision
def find_property(
    problem: Problem,
    algorithm: Any,
    having: Any,
    *,
    rounds: int,
    agent: int = 0,
    shares: tuple[float, float] = (0.2, 0.8),
    runs: int = 64,
    seed: int = 0,
) -> float:
    """How well letters tell what an agent's rows are like; 1/2 for not at all.

    Half of the shadow runs have few rows with the property, half have many; a
    classifier learns from the letters of some and is asked about the others. Returns
    the area under its curve.

    Args:
        problem: With rows that the user may see.
        algorithm: As it would run.
        having: For every row of the agent whether it has the property.
        rounds: Of each run.
        agent: The number of the agent.
        shares: Of rows with the property in either kind of run.
        runs: How many shadow runs.
        seed: Of everything.
    """
    own = np.asarray(having, bool)
    check.shape((int(problem.counts[agent]),), having=own)
    low, high = (float(check.fraction(share=share)) for share in shares)
    size = int(min(own.sum() / max(high, 1e-9), (~own).sum() / max(1 - low, 1e-9)))
    if size < 1 or not low < high:
        check.refuse(
            f"{own.sum()} of {len(own)} rows have the property: too few, or too many, "
            f"for runs with shares={shares} of them"
        )
    random = np.random.default_rng(seed)
    runs = 4 * -(-check.count(8, runs=runs) // 4)

    def draw(share: float) -> np.ndarray:
        count = round(share * size)
        some = random.permutation(np.flatnonzero(own))[:count]
        rest = random.permutation(np.flatnonzero(~own))[: size - count]
        return np.concatenate([some, rest])

    held = np.stack([draw(low if k % 2 else high) for k in range(runs)])
    seen = shadow_runs(problem, algorithm, rounds, agent, held, seed).letters
    letters = seen[:, [0, -1]].reshape(runs, -1)
    half = runs // 2
    score = learned_score(letters[:half:2], letters[1:half:2])
    return auc(score(letters[half::2]), score(letters[half + 1 :: 2]))


def auc(inside: np.ndarray, outside: np.ndarray) -> float:
    """The area under the curve of two sets of scores."""
    kind = np.repeat([1, 0], [len(inside), len(outside)])
    return float(roc_auc_score(kind, np.concatenate([inside, outside])))

"""A question about letters, and what every answer starts from."""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita import check
from tacita.aggregation import Aggregation, Mean
from tacita.privacy.accounting.compose import account
from tacita.privacy.accounting.guarantee import (
    Assumption,
    Guarantee,
    believed,
    enforced,
    violated,
)
from tacita.privacy.accounting.subsampling import PoissonReplaced, Sampling
from tacita.privacy.clipped import Clipped, clipping_of, learns_from_empty
from tacita.privacy.noisy import Noisy
from tacita.privacy.scope import Observer, Relation, Scope, Unit
from tacita.problem import prox
from tacita.problem.model.linear import Linear, Logistic, Softmax
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.population import Population
from tacita.problem.problem import Problem
from tacita.problem.quantised import Quantised
from tacita.trees import replace

#: Observers who are shown broadcasts, not letters.
BROADCAST_ONLY = (Observer.FINAL_MODEL, Observer.NEIGHBOUR)

#: Of runs whose coordinator waits for nobody: what the order of letters tells.
ARRIVALS_DRAWN = enforced("who is heard when was drawn without looking at rows")
ARRIVALS_SEEN = believed(
    "when letters come, which others see, depends on no row beyond their public number"
)

#: Of which a proximal point is exact.
_CONVEX = (prox.L1, prox.ElasticNet, prox.GroupLasso)
_CONVEX += (prox.Box, prox.L2Ball, prox.Simplex)

_LONGEST: weakref.WeakKeyDictionary[Population, float] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True)
class Question:
    """Whose privacy, against whom, after how many rounds.

    Attributes:
        scope: Who looks, what is protected, how neighbouring data differ.
        agent: The number of the agent whose data it is.
        rounds: Rounds in which the agent takes part; with a participation below 1,
            all rounds of the plan.
        participation: Probability of taking part in a round.
        forced: Of a plan, rounds in which an agent takes part whatever was drawn, at
            most: delays force everybody to be active now and then.
        active: Agents active in every round, or None if their number varies.
        total: All rounds of the run, where `rounds` counts the agent's own.
        in_step: Whether everybody who is active works with the letters of the round
            before: none is late, none is lost. Known of synchronous simulations only.
        number: Of a question about one round alone, which, or about some, which those
            are; the first is 1.
        aggregation: How the coordinator joins letters.
        liars: Agents assumed to lie, whose noise hides nobody.
        looked: Whether theory set a number of the algorithm from the rows.
        seeded: Whether somebody chose the seed that all noise comes from.
        assumed: What the run rests on besides.
    """

    scope: Scope
    agent: int
    rounds: int
    participation: float = 1.0
    forced: int = 0
    active: int | None = None
    total: int | None = None
    in_step: bool = False
    number: int | tuple[int, ...] | None = None
    aggregation: Aggregation = Mean()
    liars: int = 0
    looked: bool = False
    seeded: bool = False
    assumed: tuple[Assumption, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether letters are joined by their mean and nobody lies: rounds contract."""
        return self.aggregation.additive and self.liars == 0

    def seen_as(self, problem: Problem) -> Question:
        """The question that theorems are asked in place of this one.

        A record that is emptied has become another one. Where a model learns from empty
        rows nothing more is known of it, and `replace_one` has the tighter theorems:
        with half a change each, two Poisson batches lie on either side of one without
        the record.
        """
        scope = self.scope
        emptied = scope.relation == Relation.ADD_REMOVE and scope.unit == Unit.RECORD
        if not (emptied and learns_from_empty(problem.model)):
            return self
        as_replaced = Scope(scope.observer, scope.unit, Relation.REPLACE_ONE)
        return replace(self, scope=as_replaced)

    def releases(
        self,
        noise_std: float,
        sensitivity: float,
        times: int = 1,
        sampling: Sampling | None = None,
    ) -> Guarantee:
        """What Gaussian releases of something clipped cost against the observer."""
        return account(
            **self.scope.words,
            noise_std=noise_std,
            sensitivity=sensitivity,
            rounds=times,
            sampling=sampling,
            clipped=True,
        )


@dataclass(frozen=True, kw_only=True)
class Increment:
    """What one unit of an agent can do to what the agent adds to a secure sum.

    Attributes:
        change: In l2 norm, at most, before weights.
        entry: The largest size of an entry, before weights.
        rows: In the mean that floating point rounds.
        sampling: How records are drawn for it, where that amplifies.
        notes: What this rests on.
    """

    change: float
    entry: float
    rows: int
    sampling: Sampling | None = None
    notes: tuple[Assumption, ...] = ()

    @property
    def parts(self) -> int:
        """Of how many changes it is made that a grid rounds apart.

        In a Poisson batch a record comes on its own, and so does its replacement.
        """
        return 2 if isinstance(self.sampling, PoissonReplaced) else 1


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


def clipped_oracle(algorithm: Any, agent: int | None = None) -> Clipped:
    """An algorithm's clipping, or a refusal: without it nothing is bounded.

    Of one agent, if that is named, with its own norm.
    """
    clipped = clipping_of(algorithm.oracle)
    rounded = algorithm.oracle
    if isinstance(rounded, Quantised) and not isinstance(rounded.oracle, Noisy):
        check.refuse(
            f"the gradients of {type(algorithm).__name__} are rounded before any noise "
            "is added, and nothing bounds what that does; put the noise inside: "
            "oracle=tacita.Quantised(..., oracle=tacita.Noisy(...))"
        )
    if clipped is None:
        check.refuse(
            f"the gradients of {type(algorithm).__name__} are not clipped, so one "
            "record may change them by any amount; wrap the oracle: "
            "oracle=tacita.privacy.Clipped(norm=1.0)"
        )
    return (
        clipped
        if agent is None
        else replace(clipped, norm=number_of(clipped.norm, agent))
    )


def clipped_before_noise(algorithm: Any, agent: int | None = None) -> Clipped:
    """The same where the noise that counts is behind steps, or in a sum of letters.

    Nothing may round gradients before it: what a record moves by little may be rounded
    a whole step of the grid apart, whatever noise there was before.
    """
    if isinstance(algorithm.oracle, Quantised):
        check.refuse(
            f"the gradients of {type(algorithm).__name__} are rounded before any noise "
            "that counts is added, and nothing bounds what that does; leave "
            "tacita.Quantised out"
        )
    return clipped_oracle(algorithm, agent)


def longest_row(problem: Problem) -> float:
    """How long a row's features may be: the public bound, or else the longest row.

    Whoever asks notes `no_longer_rows` with the answer, whatever it was used for.
    """
    if problem.bound is not None:
        return problem.bound
    population = problem.population
    if population not in _LONGEST:
        x = np.asarray(population.rows.x, dtype=np.float64)
        by_row = "nfr,nfr->nr" if population.by_feature else "nrf,nrf->nr"
        squared = np.einsum(by_row, x, x)
        _LONGEST[population] = float(np.sqrt(squared.max()))
    return _LONGEST[population]


def no_longer_rows(problem: Problem) -> Assumption:
    """That no neighbour has longer rows, which only a public bound makes true."""
    if problem.bound is not None:
        return enforced(f"no record has features longer than {problem.bound:g}")
    return violated(
        "no noise and no epsilon was set by looking at private rows: the longest one "
        "was looked at, so give the problem bound="
    )


def public_smoothness(problem: Problem) -> float:
    """By how much a clipped gradient changes with the model, for any rows; or infinite.

    Clipping is a projection, which lengthens no difference, so a clipped gradient of a
    smooth loss is as smooth. Known from public numbers only: the bound on rows.
    """
    model, regulariser = problem.model, problem.population.regulariser
    linear = isinstance(model, Linear | Logistic | Softmax)
    if problem.bound is None or not linear or not isinstance(regulariser, SquaredL2):
        return math.inf
    return model.curvature_bounds[1] * problem.bound**2 + float(regulariser.weight)


def keeps_together(h: Any) -> bool | None:
    """Whether proximal points are never further apart than what they are of.

    Those of a convex function are not. A sum's are approached in rounds, of which all
    but the first go on from what was moved before: five of a simplex and L1 have moved
    two points apart by half. None of a function of a user's own, which nobody knows.
    """
    if isinstance(h, prox.Sum) and (h.steps == 1 or len(h.parts) == 1):
        known = [keeps_together(part) for part in h.parts]
        return None if None in known else all(known)
    if isinstance(h, prox.Sum):
        return False
    return True if h is None or isinstance(h, _CONVEX) else None


def alike(*columns: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sort agents into kinds: the first of each kind, and the kind of every agent."""
    arrays = [np.asarray(column, dtype=float) for column in columns]
    # Columns that tell nobody apart only slow the sorting down.
    telling = [a for a in arrays if np.any(a != a[0])] or arrays[:1]
    table = telling[0] if len(telling) == 1 else np.stack(telling, axis=1)
    _, first, kind = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first, kind.ravel()


def refuse_poisson(sampling: str) -> None:
    """Refuse batches of any size where a bound takes them for one of b rows."""
    if sampling == "poisson":
        check.refuse(
            "Poisson batches have no largest size, so local steps on them may expand "
            "and a client's gradient has no bound; use sampling='permutation' or "
            "'without_replacement'"
        )

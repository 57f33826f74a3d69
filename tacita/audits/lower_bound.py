"""The audit: run the real algorithm on neighbouring data and try to refute its claim.

A guarantee bounds from above and may be wrong: a proof with a gap, a bug, noise that
is not fresh. An audit needs no theorem. It simulates thousands of runs on D and on a
neighbour D', for many places and directions of the record in which they differ. A
pilot chooses the attack; fresh runs are scored with it and counted (`tradeoff`), and
the noise itself is put to tests (`noise_tests`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tacita import check
from tacita.aggregation import Aggregation, Summed
from tacita.audits.batch_tests import batch_faults
from tacita.audits.canary import Canary, neighbours
from tacita.audits.distinguish import best_attack, noise_rests, score_runs
from tacita.audits.noise_tests import Fault, noise_faults
from tacita.audits.plan import Plan
from tacita.audits.statistics import epsilon_of
from tacita.audits.tradeoff import Finding, allowed_by, finding
from tacita.check import TacitaError
from tacita.privacy import inputs
from tacita.privacy.accounting.guarantee import Guarantee, PaperClaim
from tacita.privacy.letters import guarantee
from tacita.privacy.scope import Observer, Scope
from tacita.privacy.spend import known_observer, planned
from tacita.privacy.statement import delta_of, relation_of
from tacita.problem.problem import Problem
from tacita.runtime.ready import prepare
from tacita.trace.epsilon_words import reasons
from tacita.trees import in_double_precision

#: The share of the error that tests of the noise get, and of the batches each; the
#: curve's test has the rest.
_DRAWN = 0.1


@dataclass(frozen=True)
class Audit:
    """What an audit found, for one observer and one record.

    Attributes:
        scope: Who looks, what was changed (one record), how the two data sets differ.
        rounds: Rounds of each run.
        runs: Runs on either data set that were scored.
        delta: The delta of all epsilons.
        confidence: Of the refutation, and of either bound.
        found: What the scores say.
        attack: Which score, of which kind of record.
        faults: What is wrong with the noise, or with the batches.
        claim: What was put to the test, if anything.
        paper_claim_refuted: Whether the paper's claim beside the guarantee is; None if
            there is none.
    """

    scope: Scope
    rounds: int
    runs: int
    delta: float
    confidence: float
    found: Finding
    attack: str
    faults: tuple[Fault, ...]
    claim: Guarantee | PaperClaim | float | None
    paper_claim_refuted: bool | None = None

    @property
    def lower_bound(self) -> float:
        """What epsilon is at least, at `confidence`, whatever the shape."""
        return self.found.lower_bound

    @property
    def gaussian_epsilon(self) -> float:
        """What epsilon is at least, if the trade-off is Gaussian."""
        return self.found.gaussian_epsilon

    @property
    def refuted(self) -> bool | None:
        """Whether the claim, or what it rests on, is refuted; None without a claim."""
        return True if self.faults else self.found.refuted

    @property
    def claimed_epsilon(self) -> float | None:
        """The epsilon that was put to the test."""
        return None if self.claim is None else epsilon_of(self.claim, self.delta)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for `PrivacyReport.with_audit`."""
        return {
            **self.scope.words,
            "rounds": self.rounds,
            "runs": self.runs,
            "delta": self.delta,
            "confidence": self.confidence,
            "lower_bound": self.lower_bound,
            "gaussian_epsilon": self.gaussian_epsilon,
            "attack": self.attack,
            "faults": [fault.words for fault in self.faults],
            "claimed_epsilon": self.claimed_epsilon,
            "refuted": self.refuted,
        }

    def __str__(self) -> str:
        who = self.scope
        lines = [
            f"audit against the {who.observer}, one {who.unit}, {who.relation}: "
            f"{self.runs} runs on either side of {self.rounds} rounds, delta = "
            f"{self.delta:g}, {self.confidence:.0%} confidence, attack: {self.attack}",
            f"epsilon >= {self.lower_bound:.4g} whatever the shape of the trade-off; "
            f"epsilon >= {self.gaussian_epsilon:.4g} if it is Gaussian",
        ]
        if self.claim is not None:
            lines.append(f"claimed epsilon {self._verdict(self.claim, self.refuted)}")
        if isinstance(self.claim, Guarantee):
            lines.append(reasons(self.claim.as_dict(self.delta)))
        lines += [f"REFUTED: {fault.words}" for fault in self.faults]
        paper = self._paper_claim
        if paper is not None:
            verdict = self._verdict(paper, self.paper_claim_refuted)
            lines.append(f"{paper.source} claims {verdict}")
        return "\n".join(lines)

    @property
    def _paper_claim(self) -> PaperClaim | None:
        return self.claim.paper_claim if isinstance(self.claim, Guarantee) else None

    def _verdict(
        self, claim: Guarantee | PaperClaim | float, refuted: bool | None
    ) -> str:
        verdict = "REFUTED" if refuted else "not refuted"
        told = f"{epsilon_of(claim, self.delta):.4g}: {verdict}"
        if refuted and self.found.refuted:
            true, false = self.found.rates
            most = float(allowed_by(claim, self.delta)(np.array(false)))
            told += (
                f"; an event of {false:.2%} on one side has {true:.2%} on the other, "
                f"where the claim allows {most:.2%}"
            )
        return told


@in_double_precision
def audit(
    problem: Problem,
    algorithm: Any,
    *,
    observer: str,
    rounds: int,
    runs: int = 40_000,
    delta: float | None = None,
    claim: Guarantee | PaperClaim | float | None = None,
    confidence: float = 0.99,
    participation: Any = 1.0,
    agent: int = 0,
    canary: Canary | None = None,
    attacks: Sequence[str] | None = None,
    seed: int = 0,
    aggregation: Aggregation | None = None,
) -> Audit:
    """Try to refute what an observer is said to learn of one record, at most.

    Args:
        problem: The data around the canary; small problems are quick to audit.
        algorithm: What is audited, as it runs.
        observer: Who looks. The coordinator and an eavesdropper see every letter, a
            neighbour on a graph those of the agent; other agents of a server
            algorithm see broadcasts, and `final_model` the last model only. In secure
            sums the coordinator, and its `colluders`, see sums, and are taken to know
            all other letters.
        rounds: Rounds of each run.
        runs: Runs on either data set that are scored; a pilot adds about as many.
        delta: The delta of the claim; default that of the algorithm's promise, or
            1e-5.
        claim: What to put to the test; default the guarantee that Tacita gives.
        confidence: How sure to be: of a refutation, and of either bound.
        participation: As in `tacita.simulate`.
        agent: The number of the agent whose record it is.
        canary: The two records; default clipped ones, turning ones and emptied ones in
            many rows and directions, for linear models. Where the claim is for
            `add_remove`, the neighbour's record must be empty.
        attacks: Of "matched", "batches" and "learned"; the pilot chooses among them.
            Default those that apply.
        seed: Of all randomness.
        aggregation: As in `tacita.simulate`.
    """
    ready = prepare(problem, algorithm)
    scope = Scope(known_observer(ready, observer), relation=relation_of(ready))
    if isinstance(ready, Summed) and scope.observer == Observer.EAVESDROPPER:
        check.refuse(
            "an eavesdropper of a secure sum is told no more than the coordinator; use "
            "observer='coordinator' or 'colluders'"
        )
    rounds, runs = inputs.whole(rounds=rounds), inputs.whole(12, runs=runs)
    confidence = inputs.inside_unit(confidence=confidence)
    if isinstance(claim, Guarantee):
        scope = _require_same(claim, scope)
    delta = delta_of(ready, delta)
    plan = Plan.of(
        problem,
        ready,
        scope,
        rounds,
        runs,
        participation,
        agent if canary is None else canary.agent,
        canary,
        attacks,
        np.random.default_rng(np.random.SeedSequence(seed)),
        aggregation,
    )
    if claim is None:
        data = neighbours(problem, plan.canaries[plan.kinds[0]][0])[0]
        known = (participation, aggregation)
        claim = _own_claim(ready, data, scope, plan.agent, rounds, *known)
    error = 1 - confidence
    chosen = best_attack(plan, None if claim is None else allowed_by(claim, delta))
    key, for_batches = jax.random.split(jax.random.key(seed))
    faults = batch_faults(problem, ready, plan.agent, for_batches, _DRAWN * error)
    rests = noise_rests(plan)
    if rests is not None:
        faults += noise_faults(*rests, _DRAWN * error)
    scores = score_runs(plan, chosen)
    sure: Any = {
        "delta": delta,
        "confidence": confidence,
        "key": key,
        "error": (1 - 2 * _DRAWN) * error,
    }
    paper = claim.paper_claim if isinstance(claim, Guarantee) else None
    return Audit(
        scope=scope,
        rounds=rounds,
        runs=len(scores[0]),
        delta=delta,
        confidence=confidence,
        found=finding(*scores, claim=claim, **sure),
        attack=chosen.words,
        faults=faults,
        claim=claim,
        paper_claim_refuted=None
        if paper is None
        else finding(*scores, claim=paper, **sure).refuted,
    )


def _require_same(claim: Guarantee, scope: Scope) -> Scope:
    """The scope of a claim, which must be about this observer and one record."""
    about = claim.scope
    if (about.observer, about.unit) != (scope.observer, scope.unit):
        check.refuse(
            f"the claim is about the {about.observer} and one {about.unit}; audit it "
            f"with observer={about.observer.value!r}, record by record"
        )
    return about


def _own_claim(
    algorithm: Any,
    problem: Problem,
    scope: Scope,
    agent: int,
    rounds: int,
    participation: Any,
    aggregation: Aggregation | None,
) -> Guarantee | None:
    """What Tacita itself guarantees, or None where it guarantees nothing."""
    turns = planned(problem, rounds, participation, aggregation, in_step=True)
    question = turns.question(
        scope=scope,
        agent=agent,
        rounds=rounds,
        participation=float(turns.chance[agent]),
    )
    try:
        return guarantee(algorithm, problem, question)
    except TacitaError:
        return None

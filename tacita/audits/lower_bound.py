"""The audit: run the real algorithm on neighbouring data and bound epsilon from below.

A guarantee bounds from above and may be wrong: a proof with a gap, a bug, noise that
is not fresh. An audit needs no theorem. It simulates thousands of runs on D and on a
neighbour D', scores what the observer sees, and counts (`statistics`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tacita import check
from tacita.audits.canary import Canary, neighbours, worst_canary
from tacita.audits.scores import ATTACKS, all_numbers, score, sees_letters
from tacita.audits.statistics import (
    AuditResult,
    audit_outputs,
    epsilon_lower_bound,
    epsilon_of,
)
from tacita.audits.transcript import watch, world_of
from tacita.check import TacitaError
from tacita.privacy import inputs
from tacita.privacy.accounting.guarantee import Guarantee, PaperClaim
from tacita.privacy.letters import guarantee, letters_of
from tacita.privacy.scope import Observer, Scope
from tacita.privacy.spend import known_observer, planned
from tacita.privacy.statement import delta_of, relation_of
from tacita.problem.problem import Problem
from tacita.runtime.rounds import World
from tacita.runtime.simulate import prepare
from tacita.trees import in_double_precision, tree_rows


@dataclass(frozen=True)
class Audit:
    """What an audit found: epsilon is at least `lower_bound`, for this observer.

    Attributes:
        scope: Who looks, what was changed (one record), how the two data sets differ.
        rounds: Rounds of each run.
        runs: Runs on either data set.
        delta: The delta of all epsilons.
        confidence: The lower bound is right with at least this probability.
        results: What each attack found.
        claim: What was put to the test, if anything.
    """

    scope: Scope
    rounds: int
    runs: int
    delta: float
    confidence: float
    results: dict[str, AuditResult]
    claim: Guarantee | PaperClaim | float | None

    @property
    def attack(self) -> str:
        """The attack that found most."""
        return max(self.results, key=lambda name: self.results[name].lower_bound)

    @property
    def lower_bound(self) -> float:
        """What epsilon is at least, at `confidence`."""
        return self.results[self.attack].lower_bound

    @property
    def refuted(self) -> bool | None:
        """Whether the claim is too small to be true; None if nothing was claimed."""
        if self.claim is None:
            return None
        return self.results[self.attack].refutes(self.claim)

    @property
    def paper_claim_refuted(self) -> bool | None:
        """Whether the paper's claim beside the guarantee is; None if there is none."""
        claim = self._paper_claim
        return None if claim is None else self.results[self.attack].refutes(claim)

    @property
    def claimed_epsilon(self) -> float | None:
        """The epsilon that was put to the test."""
        return None if self.claim is None else epsilon_of(self.claim, self.delta)

    @property
    def _paper_claim(self) -> PaperClaim | None:
        return self.claim.paper_claim if isinstance(self.claim, Guarantee) else None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for `PrivacyReport.with_audit`."""
        return {
            **self.scope.words,
            "rounds": self.rounds,
            "runs": self.runs,
            "delta": self.delta,
            "confidence": self.confidence,
            "lower_bound": self.lower_bound,
            "attack": self.attack,
            "claimed_epsilon": self.claimed_epsilon,
            "refuted": self.refuted,
        }

    def __str__(self) -> str:
        who = self.scope
        told = (
            f"audit against the {who.observer}, one {who.unit}, {who.relation}: "
            f"epsilon >= {self.lower_bound:.4g} at delta = {self.delta:g} with "
            f"{self.confidence:.0%} confidence ({self.runs} runs on either side of "
            f"{self.rounds} rounds, attack: {self.attack})"
        )
        if self.claim is not None:
            told += f"\nclaimed epsilon {self._verdict(self.claim)}"
        if self._paper_claim is not None:
            paper = self._paper_claim
            told += f"\n{paper.source} claims {self._verdict(paper)}"
        return told

    def _verdict(self, claim: Guarantee | PaperClaim | float) -> str:
        refuted = self.results[self.attack].refutes(claim)
        verdict = "REFUTED" if refuted else "not refuted"
        return f"{epsilon_of(claim, self.delta):.4g}: {verdict}"


@in_double_precision
def audit(
    problem: Problem,
    algorithm: Any,
    *,
    observer: str,
    rounds: int,
    runs: int = 4000,
    delta: float | None = None,
    claim: Guarantee | PaperClaim | float | None = None,
    confidence: float = 0.99,
    participation: Any = 1.0,
    canary: Canary | None = None,
    attacks: Sequence[str] | None = None,
    seed: int = 0,
) -> Audit:
    """Measure a lower bound on what an observer learns of one record.

    Args:
        problem: The data around the canary; small problems are quick to audit.
        algorithm: What is audited, as it runs.
        observer: Who looks. The coordinator and an eavesdropper see every letter, a
            neighbour on a graph those of the agent; other agents of a server
            algorithm see broadcasts, and `final_model` the last model only.
        rounds: Rounds of each run.
        runs: Runs on either data set; no more than about log(runs/10) can be found.
        delta: The delta of the claim; default that of the algorithm's promise, or
            1e-5.
        claim: What to put to the test; default the guarantee that Tacita gives.
        confidence: How sure to be of the bound.
        participation: As in `tacita.simulate`.
        canary: The two records; default `worst_canary`, for linear models. Where the
            claim is for `add_remove`, the neighbour's record must be empty.
        attacks: Of "matched", "reused", "cancelled" and "learned"; the error is
            divided among them. Default those that apply of the first three where the
            observer can compute what letters would be without noise, else the learned
            one.
        seed: Of all randomness.
    """
    ready = prepare(problem, algorithm)
    scope = Scope(known_observer(ready, observer), relation=relation_of(ready))
    rounds, runs = inputs.whole(rounds=rounds), inputs.whole(12, runs=runs)
    if isinstance(claim, Guarantee):
        scope = _require_same(claim, scope)
    if canary is None:
        canary = worst_canary(problem, ready, scope.relation)
    pair = neighbours(problem, canary)
    delta = delta_of(ready, delta)
    if claim is None:
        claim = _own_claim(ready, pair[0], scope, canary, rounds, participation)
    worlds = [world_of(data, ready, participation) for data in pair]
    scale = _shared_noise(ready, worlds[0], canary.agent)
    chosen = _choose(ready, scope.observer, attacks, scale is not None)
    seeds = np.random.SeedSequence(seed).generate_state(2 * runs, np.uint64) >> 1
    views = [
        watch(data, ready, rounds, part, canary.agent, participation)
        for data, part in zip(pair, np.split(seeds, 2), strict=True)
    ]
    error = (1 - inputs.inside_unit(confidence=confidence)) / len(chosen)
    keys = jax.random.split(jax.random.key(seed), len(chosen))
    results = {}
    for name, key in zip(chosen, keys, strict=True):
        sure = {"delta": delta, "key": key, "confidence": 1 - error}
        if name == "learned":
            seen = [all_numbers(ready, scope.observer, view) for view in views]
            results[name] = audit_outputs(*seen, **sure)
        else:
            told = [
                score(name, ready, canary.agent, worlds, v[0], scale) for v in views
            ]
            results[name] = epsilon_lower_bound(*told, **sure)
    return Audit(
        scope=scope,
        rounds=rounds,
        runs=runs,
        delta=delta,
        confidence=confidence,
        results=results,
        claim=claim,
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
    canary: Canary,
    rounds: int,
    participation: Any,
) -> Guarantee | None:
    """What Tacita itself guarantees, or None where it guarantees nothing."""
    turns = planned(problem, rounds, participation)
    chance = float(turns.chance[canary.agent])
    where = {"scope": scope, "agent": canary.agent}
    question = turns.question(**where, rounds=rounds, participation=chance)
    try:
        return guarantee(algorithm, problem, question)
    except TacitaError:
        return None


def _shared_noise(algorithm: Any, world: World, agent: int) -> np.ndarray | None:
    """How one draw of noise would enter the agent's letters, if letters may share it.

    Only for agents with as many edges as there are slots: padding is no letter.
    """
    if world.links is None or world.links.edges.mask is None:
        return None
    edges = tree_rows(world.links.edges, agent)
    whole = bool(edges.mask.all())
    return letters_of(algorithm).shared_noise(edges) if whole else None


def _choose(
    algorithm: Any, observer: Observer, attacks: Sequence[str] | None, several: bool
) -> tuple[str, ...]:
    letters = letters_of(algorithm)
    known = letters.public_state or letters.replayed
    informed = sees_letters(algorithm, observer) and known
    if attacks is None:
        compare = ("cancelled",) if several else ()
        return ("matched", "reused", *compare) if informed else ("learned",)
    for one in attacks:
        check.one_of(ATTACKS, attack=one)
        if one == "cancelled" and not several:
            check.refuse(
                "attack='cancelled' compares letters of one round that show different "
                "iterates, such as those of an asynchronous DPNorm"
            )
        if one != "learned" and not informed:
            check.refuse(
                f"attack={one!r} needs an observer of letters who can compute what "
                "they would be without noise; use attacks=['learned']"
            )
    if not attacks:
        check.refuse("attacks is empty; leave it out or name one")
    return tuple(attacks)

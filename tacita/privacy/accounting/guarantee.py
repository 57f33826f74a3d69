"""`Guarantee`: the one thing in Tacita that carries an epsilon.

An epsilon is only true for an observer, for a unit, for a neighbouring relation, by
a theorem, under assumptions. This record keeps them together, and keeps what a paper
claims apart from what holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any, Literal

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.curve import Curve, GaussianCurve, compose
from tacita.privacy.scope import Observer, Scope


@dataclass(frozen=True)
class Assumption:
    """One thing a theorem needs, and whether the program made it true."""

    statement: str
    status: Literal["enforced", "believed", "violated"]

    def __post_init__(self) -> None:
        check.one_of(("enforced", "believed", "violated"), status=self.status)


def enforced(statement: str) -> Assumption:
    """An assumption that the program itself makes true (clipping, fresh noise)."""
    return Assumption(statement, "enforced")


def believed(statement: str) -> Assumption:
    """An assumption that the program was told and cannot check."""
    return Assumption(statement, "believed")


def violated(statement: str) -> Assumption:
    """An assumption that the program knows to be false: the epsilon is not proved."""
    return Assumption(statement, "violated")


@dataclass(frozen=True, kw_only=True)
class PaperClaim:
    """What a paper prints. Never a guarantee: its numbers are called `claimed_...`.

    Attributes:
        source: Paper and numbered statement.
        status: `refuted`, or `unproven` where no counterexample is known.
        reason: Why it is not offered as a guarantee.
        epsilon_at: From delta to the epsilon claimed.
        rdp_at: From an order to the Renyi divergence claimed, where there is one.
    """

    source: str
    status: Literal["unproven", "refuted"]
    reason: str
    epsilon_at: Callable[[float], float]
    rdp_at: Callable[[float], float] | None = None

    def __post_init__(self) -> None:
        check.one_of(("unproven", "refuted"), status=self.status)

    def claimed_epsilon(self, delta: float) -> float:
        """The epsilon at delta that would follow if the claim held."""
        return self.epsilon_at(inputs.inside_unit(delta=delta))

    def claimed_rdp(self, order: float) -> float:
        """The Renyi divergence that would follow if the claim held."""
        if self.rdp_at is None:
            check.refuse(f"{self.source} claims no Renyi divergence")
        return self.rdp_at(order)


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A privacy guarantee: for whom, of what, by which theorem, under what.

    Attributes:
        curve: The privacy curve; `epsilon`, `delta`, `rdp` and `mu` read it.
        scope: Who looks, what is protected, how neighbouring data differ.
        theorem: The result used, with its source.
        assumptions: What the theorem needs, each marked enforced, believed or violated.
        paper_claim: What the paper prints, where that differs; never a guarantee.
    """

    curve: Curve
    scope: Scope
    theorem: str
    assumptions: tuple[Assumption, ...] = ()
    paper_claim: PaperClaim | None = None

    def against_everybody(self) -> tuple[Guarantee, ...]:
        """The same against every observer: what one saw is about to be told to all."""
        unit, relation = self.scope.unit, self.scope.relation
        return tuple(
            replace(self, scope=Scope(who, unit, relation)) for who in Observer
        )

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon known to hold at delta; at 0 that of pure privacy."""
        return self.curve.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        """The smallest delta known to hold at epsilon."""
        return self.curve.delta(epsilon)

    def rdp(self, order: float) -> float:
        """A bound on the Renyi divergence of this order (infinite if unknown)."""
        return self.curve.rdp(order)

    @property
    def mu(self) -> float | None:
        """The mu of Gaussian differential privacy, or None where it is not Gaussian."""
        return self.curve.mu if isinstance(self.curve, GaussianCurve) else None

    def compose(self, *others: Guarantee) -> Guarantee:
        """The guarantee of this release and the others on the same data.

        All must speak of the same observer, unit and relation: epsilons of different
        observers do not add up to anything.
        """
        for other in others:
            theirs = other.scope.words
            for field, mine in self.scope.words.items():
                if mine != theirs[field]:
                    check.refuse(
                        f"cannot compose guarantees of different {field}: "
                        f"{mine!r} and {theirs[field]!r}"
                    )
        parts = (self, *others)
        assumed = (one for part in parts for one in part.assumptions)
        return replace(
            self,
            curve=reduce(compose, (part.curve for part in parts)),
            theorem="; ".join(dict.fromkeys(part.theorem for part in parts)),
            assumptions=tuple(dict.fromkeys(assumed)),
            paper_claim=self.paper_claim if not others else None,
        )

    def noting(self, *more: Assumption, before: str = "", after: str = "") -> Guarantee:
        """The same bound with more said: assumptions, words around its theorem."""
        theorem = f"{before}{self.theorem}{after}"
        return replace(self, theorem=theorem, assumptions=(*self.assumptions, *more))

    def repeat(self, times: int) -> Guarantee:
        """The guarantee of `times` such releases on the same data."""
        times = inputs.whole(times=times)
        claim = self.paper_claim if times == 1 else None
        return replace(self, curve=self.curve.repeat(times), paper_claim=claim)

    def as_dict(self, delta: float) -> dict[str, Any]:
        """What a privacy report prints, with epsilon at this delta."""
        claim = self.paper_claim
        return {
            **self.scope.words,
            "epsilon": self.epsilon(delta),
            "delta": delta,
            "mu": self.mu,
            "theorem": self.theorem,
            "assumptions": tuple(asdict(one) for one in self.assumptions),
            "paper_claim": claim
            and {
                "source": claim.source,
                "status": claim.status,
                "reason": claim.reason,
                "claimed_epsilon": claim.claimed_epsilon(delta),
            },
        }

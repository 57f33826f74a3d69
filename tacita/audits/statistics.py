"""The statistics of an audit: how much privacy was lost, at least, with confidence.

Somebody ran a mechanism many times on D and on a neighbour D' and scored the outputs.
If the mechanism is (epsilon, delta)-private, then for every event E

    P(E | D) <= e^epsilon P(E | D') + delta        and with D, D' exchanged,

so observed frequencies bound epsilon from below. Events are half-lines of the score.
They are chosen on one half of the runs and counted on the other half, with exact
(Clopper-Pearson) intervals: no shape of the scores is assumed, and the bound is wrong
with probability at most 1 - confidence, whatever was chosen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.guarantee import Guarantee, PaperClaim

_CANDIDATES = 400
# Events are chosen by bounds this much stricter than the ones they are counted with:
# the best of many lucky small counts would disappoint on the other half.
CAUTION = 100.0


Tail = Literal["above", "below"]
Side = Literal["data", "neighbour"]


class Event(NamedTuple):
    """The scores at or beyond a threshold, likelier under `likelier`."""

    tail: Tail
    threshold: float
    likelier: Side

    def count(self, scores: np.ndarray) -> int:
        """How many of the scores fall into the event."""
        return int(_hits(scores, self.threshold, self.tail))

    def counts(
        self, scores: np.ndarray, others: np.ndarray
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """Hits and runs, of the likelier side first."""
        sides = (scores, others) if self.likelier == "data" else (others, scores)
        first, second = sides
        return (self.count(first), self.count(second)), (len(first), len(second))


@dataclass(frozen=True)
class AuditResult:
    """A lower bound on epsilon at delta.

    Attributes:
        lower_bound: epsilon is at least this (0 if nothing was found).
        delta: The delta the bound is for.
        confidence: The bound holds with at least this probability.
        event: The event that gave the bound.
        hits: Runs in the event, under the likelier side and under the other.
        runs: Counted runs of either side, in the same order.
    """

    lower_bound: float
    delta: float
    confidence: float
    event: Event
    hits: tuple[int, int]
    runs: tuple[int, int]

    @property
    def threshold(self) -> float:
        """The threshold of the event."""
        return self.event.threshold

    def refutes(self, claim: float | Guarantee | PaperClaim) -> bool:
        """Whether the claimed epsilon is too small to be true, at this confidence."""
        return self.lower_bound > epsilon_of(claim, self.delta)


def epsilon_of(claim: float | Guarantee | PaperClaim, delta: float) -> float:
    """The epsilon at delta that is claimed."""
    if isinstance(claim, Guarantee):
        return claim.epsilon(delta)
    if isinstance(claim, PaperClaim):
        return claim.claimed_epsilon(delta)
    return inputs.not_negative(claim=claim)


def clopper_pearson(
    hits: Any, runs: Any, error: float
) -> tuple[np.ndarray, np.ndarray]:
    """Exact one-sided bounds on a probability, each wrong with at most `error`.

    >>> low, high = clopper_pearson(0, 100, 0.05)
    >>> float(low), round(float(high), 6)
    (0.0, 0.029513)
    """
    from scipy.special import betaincinv

    hits, runs = np.asarray(hits, dtype=float), np.asarray(runs, dtype=float)
    error = inputs.inside_unit(error=error)
    # Zero hits and all hits have no beta quantile; their bounds are 0 and 1.
    low = np.where(
        hits > 0, betaincinv(np.maximum(hits, 1), runs - hits + 1, error), 0.0
    )
    high = np.where(
        hits < runs,
        betaincinv(hits + 1, np.maximum(runs - hits, 1), 1 - error),
        1.0,
    )
    return low, high


def epsilon_bound(
    hits: Any, runs: Any, hits_other: Any, runs_other: Any, delta: float, error: float
) -> np.ndarray:
    """log((p - delta)/q) from counts, p bounded below and q above, at least 0."""
    low, _ = clopper_pearson(hits, runs, error / 2)
    _, high = clopper_pearson(hits_other, runs_other, error / 2)
    gained = np.maximum(low - delta, 0.0)
    ratio = np.log(np.maximum(gained, 1e-300)) - np.log(high)
    return np.where(gained > 0.0, np.maximum(ratio, 0.0), 0.0)


def epsilon_lower_bound(
    scores: Any,
    neighbour_scores: Any,
    *,
    delta: float,
    key: jax.Array,
    confidence: float = 0.99,
    events: int = 1,
) -> AuditResult:
    """The lower bound on epsilon that two samples of scores support.

    Args:
        scores: One score per run on D; runs are independent.
        neighbour_scores: One score per run on D'.
        delta: The delta of the claim to test, in (0, 1).
        key: A JAX random key, for splitting the runs in two.
        confidence: How sure to be of the bound.
        events: How many events to carry from the choosing half to the counting half;
            with more than one the error is divided among them (Bonferroni).
    """
    delta = inputs.inside_unit(delta=delta)
    confidence = inputs.inside_unit(confidence=confidence)
    events = inputs.whole(events=events)
    keys = jax.random.split(key)
    check.shape((None,), scores=scores)
    check.shape((None,), neighbour_scores=neighbour_scores)
    choose, count = parted(keys[0], 2, 4, scores=scores)
    others = {"neighbour_scores": neighbour_scores}
    choose_other, count_other = parted(keys[1], 2, 4, **others)
    error = (1 - confidence) / events
    results = []
    value = partial(epsilon_bound, delta=delta, error=error / CAUTION)
    for event in promising(choose, choose_other, value, events):
        hits, runs = event.counts(count, count_other)
        bound = epsilon_bound(hits[0], runs[0], hits[1], runs[1], delta, error)
        results.append(AuditResult(float(bound), delta, confidence, event, hits, runs))
    return max(results, key=lambda result: result.lower_bound)


def parted(
    key: jax.Array, parts: int, least: int, **named: Any
) -> tuple[np.ndarray, np.ndarray]:
    """One part of all runs, and the others; at least so many runs are needed."""
    ((name, value),) = named.items()
    array = np.asarray(value, dtype=float)
    check.finite(**{name: array})
    if len(array) < least:
        check.refuse(f"expected at least {least} {name}, got {len(array)}")
    # Callers may hand over sorted scores, and the parts must be exchangeable.
    order = np.asarray(jax.random.permutation(key, len(array)))
    cut = len(array) // parts
    return array[order[:cut]], array[order[cut:]]


def promising(
    scores: np.ndarray, others: np.ndarray, value: Callable[..., Any], events: int = 1
) -> list[Event]:
    """The events of largest value on the choosing runs.

    `value` is a function of hits and runs of the likelier side, then of the other.
    """
    pooled = np.unique(np.concatenate([scores, others]))
    if len(pooled) > _CANDIDATES:
        # Ranks spread evenly on the logit scale: the telling events lie in the tails.
        logits = np.linspace(-1, 1, _CANDIDATES) * math.log(len(pooled))
        ranks = (len(pooled) - 1) / (1 + np.exp(-logits))
        pooled = pooled[np.unique(ranks.round().astype(int))]
    ranked: list[tuple[float, Event]] = []
    tails: tuple[Tail, ...] = ("above", "below")
    sides: tuple[Side, ...] = ("data", "neighbour")
    for tail, likelier in itertools.product(tails, sides):
        first, second = (scores, others) if likelier == "data" else (others, scores)
        counts = (_hits(first, pooled, tail), len(first))
        counts += (_hits(second, pooled, tail), len(second))
        values = value(*counts)
        for at in np.argsort(-values, kind="stable")[:events]:
            ranked.append((float(values[at]), Event(tail, float(pooled[at]), likelier)))
    ranked.sort(key=lambda pair: -pair[0])
    return [event for _, event in ranked[:events]]


def _hits(scores: np.ndarray, thresholds: Any, tail: Tail) -> Any:
    ordered = np.sort(scores)
    if tail == "above":
        return len(ordered) - np.searchsorted(ordered, thresholds, side="left")
    return np.searchsorted(ordered, thresholds, side="right")


def audit_outputs(
    outputs: Any,
    neighbour_outputs: Any,
    *,
    delta: float,
    key: jax.Array,
    confidence: float = 0.99,
    events: int = 1,
) -> AuditResult:
    """Audit raw outputs (one row per run) with a learned classifier.

    A logistic regression learns on a third of the runs to tell outputs on D from
    outputs on D' (Jung, *Federated Learning*, ch. 9, "How to be sure?"); its decision
    value scores the other runs, which go to `epsilon_lower_bound`. A poor classifier
    weakens the bound and never invalidates it.
    """
    learn_key, bound_key = jax.random.split(key)
    keys = jax.random.split(learn_key)
    rows, other_rows = _by_run(outputs), _by_run(neighbour_outputs)
    learn, rest = parted(keys[0], 3, 12, outputs=rows)
    learn_other, rest_other = parted(keys[1], 3, 12, neighbour_outputs=other_rows)
    check.shape((None, learn.shape[1]), neighbour_outputs=learn_other)
    score = learned_score(learn, learn_other)
    return epsilon_lower_bound(
        score(rest),
        score(rest_other),
        delta=delta,
        key=bound_key,
        confidence=confidence,
        events=events,
    )


def learned_score(outputs: np.ndarray, neighbour_outputs: np.ndarray) -> Any:
    """A function from outputs to the decision value of a fitted classifier."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = np.concatenate([outputs, neighbour_outputs])
    label = np.repeat([1, 0], [len(outputs), len(neighbour_outputs)])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return model.fit(rows, label).decision_function


def _by_run(outputs: Any) -> np.ndarray:
    """All numbers of a run in one row."""
    array = np.asarray(outputs, dtype=float)
    return array.reshape(len(array), -1)

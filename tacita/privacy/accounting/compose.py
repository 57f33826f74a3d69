"""Accounting: what a run of Gaussian releases costs, by `dp-accounting`.

The trap this file removes. `dp_accounting` reads the multiplier of a Gaussian event
differently in its two accountants under REPLACE_ONE: RDP against the replace-one
sensitivity, PLD against the add/remove one, so the same event gives epsilon 2.17 and
4.38. Here nobody passes a multiplier: callers give the noise and the sensitivity
*under the relation they name*, and

* a release of all the data is the pair N(0, sigma^2), N(sensitivity, sigma^2) for
  either relation, so the library's relation is never set to REPLACE_ONE for it;
* Poisson sampling is accounted under `add_remove`, where both accountants agree, and
  under `replace_one` as `PoissonReplaced`, by our own loss distribution (`profiles`);
* sampling without replacement is accounted under `replace_one`, by our own loss
  distribution (`profiles`), or by RDP after the library's convention was probed at run
  time (it may change between versions).

What no accountant supports soundly is refused.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.curve import (
    Curve,
    GaussianCurve,
    LossCurve,
    renyi,
    take_part,
)
from tacita.privacy.accounting.curve import compose as compose_curves
from tacita.privacy.accounting.guarantee import Guarantee, believed, enforced
from tacita.privacy.accounting.releases import SampledGaussian
from tacita.privacy.accounting.subsampling import Poisson, Sampling
from tacita.privacy.scope import Relation, Scope

Method = Literal["auto", "gdp", "rdp", "pld"]


def account(
    *,
    observer: str,
    unit: str,
    relation: str,
    noise_std: Any,
    sensitivity: float,
    rounds: int,
    sampling: Sampling | None = None,
    participation: float = 1.0,
    method: Method = "auto",
    clipped: bool = False,
) -> Guarantee:
    """The guarantee of `rounds` Gaussian releases.

    Args:
        observer: Who sees the releases.
        unit: What one neighbour differs in: a `record` or a `client`.
        relation: The neighbouring relation that `sensitivity` was computed for.
        noise_std: The standard deviation of the noise, one number or one per round.
        sensitivity: The largest l2 change of one release between neighbours, given
            that the differing unit is in the batch.
        rounds: Rounds of the run. For an observer who sees who took part and a bound
            that holds for the realised run, give the rounds this client was active
            and leave `participation` at 1 (n_i r_alpha).
        sampling: How records are drawn for a release; None for all of them.
        participation: The probability that the client takes part in a round, drawn
            independently of the data; the bound holds also if participation is seen.
        method: `gdp` (exact, all records, every round), `pld` (loss distributions,
            nearly exact) or `rdp` (Renyi divergences, looser); `auto` takes `gdp`
            where it applies, else `pld`.
        clipped: The program clips contributions, so `sensitivity` is enforced.

    >>> run = account(observer="coordinator", unit="record", relation="replace_one",
    ...               noise_std=20.0, sensitivity=2.0, rounds=100)
    >>> run.mu, round(run.epsilon(1e-5), 6)
    (1.0, 4.377178)
    """
    sensitivity = inputs.positive(sensitivity=sensitivity)
    rounds = inputs.whole(rounds=rounds)
    participation = inputs.fraction(participation=participation)
    scope = Scope(observer, unit, relation)
    check.one_of(("auto", "gdp", "rdp", "pld"), method=method)
    _refuse_unsupported(sampling, scope.relation, participation, method)
    if method == "auto":
        method = "gdp" if sampling is None and participation == 1.0 else "pld"
    curve: Curve = GaussianCurve(0.0)
    for multiplier, count in _multipliers(noise_std, sensitivity, rounds):
        one = take_part(_one_round(multiplier, sampling, method), participation)
        curve = compose_curves(curve, one.repeat(count))
    bound = f"each release changes by at most {sensitivity:g} in l2 norm"
    assumed = [
        enforced(bound) if clipped else believed(bound),
        believed("the noise of every release is fresh and unknown to the observer"),
    ]
    if sampling is not None:
        assumed.append(believed("batches are drawn as stated and stay secret"))
    if participation < 1.0:
        assumed.append(believed("participation is drawn independently of the data"))
    return Guarantee(
        curve=curve,
        scope=scope,
        theorem=_theorem(sampling, participation, method),
        assumptions=tuple(assumed),
    )


def _multipliers(
    noise_std: Any, sensitivity: float, rounds: int
) -> list[tuple[float, int]]:
    """Distinct noise multipliers with the number of rounds that use each."""
    noise = inputs.positive_array(noise_std=noise_std)
    if noise.ndim == 0:
        return [(float(noise) / sensitivity, rounds)]
    check.shape((rounds,), noise_std=noise)
    values, counts = np.unique(noise / sensitivity, return_counts=True)
    return [(float(v), int(c)) for v, c in zip(values, counts, strict=True)]


def _refuse_unsupported(
    sampling: Sampling | None, relation: Relation, participation: float, method: Method
) -> None:
    if sampling is not None:
        if relation != sampling.relation:
            other = "Poisson" if relation == Poisson.relation else "PoissonReplaced"
            check.refuse(
                f"{sampling.words} is accounted for relation="
                f"{sampling.relation.value!r} only; use that relation, or {other} for "
                f"relation={relation.value!r}"
            )
        if method in ("rdp", "pld") and method not in sampling.theorems:
            check.refuse(
                f"method={method!r} does not cover {sampling.words}; use "
                f"{next(iter(sampling.theorems))!r}"
            )
    if method == "gdp" and (sampling is not None or participation != 1.0):
        check.refuse(
            "method='gdp' is exact for releases of all records in every round only; "
            "use method='pld'"
        )


def _one_round(multiplier: float, sampling: Sampling | None, method: Method) -> Curve:
    if method == "gdp":
        return GaussianCurve(1 / multiplier)
    curve = LossCurve((), 1 / multiplier)
    if sampling is not None:
        curve = LossCurve(((SampledGaussian(multiplier, sampling), 1),))
    return renyi(curve) if method == "rdp" else curve


def _theorem(sampling: Sampling | None, participation: float, method: Method) -> str:
    if method == "gdp":
        return "Gaussian composition, mu^2 = sum (sensitivity/sigma_t)^2 (Dong 2022)"
    sampled = "Gaussian mechanism" if sampling is None else sampling.theorems[method]
    part = ", participation mixture" if participation < 1.0 else ""
    way = "Renyi composition" if method == "rdp" else "privacy loss distributions"
    return f"{sampled}{part}, {way} (dp-accounting)"

"""Accounting: what a run of Gaussian releases costs, by `dp-accounting`.

The trap this file removes. `dp_accounting` reads the multiplier of a Gaussian event
differently in its two accountants under REPLACE_ONE: RDP against the replace-one
sensitivity, PLD against the add/remove one, so the same event gives epsilon 2.17 and
4.38. Here nobody passes a multiplier: callers give the noise and the sensitivity
*under the relation they name*, and

* a release of all the data is the pair N(0, sigma^2), N(sensitivity, sigma^2) for
  either relation, so the library's relation is never set to REPLACE_ONE for it;
* Poisson sampling is accounted under `add_remove` only, where both accountants agree;
* sampling without replacement is accounted under `replace_one` by RDP only, after the
  library's convention was probed at run time (it may change between versions).

What no accountant supports soundly is refused.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.curve import (
    ORDERS,
    Curve,
    GaussianCurve,
    LossCurve,
    RenyiCurve,
)
from tacita.privacy.accounting.curve import compose as compose_curves
from tacita.privacy.accounting.guarantee import Guarantee, believed, enforced
from tacita.privacy.accounting.subsampling import (
    Poisson,
    Sampling,
    WithoutReplacement,
    WithReplacement,
    sampled_rdp,
)
from tacita.privacy.accounting.with_replacement import with_replacement
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
        method: `gdp` (exact, all records, every round), `rdp`, `pld` (tighter, slower,
            cannot go into a ledger); `auto` takes `gdp` where it applies, else `rdp`,
            or `pld` for draws with replacement.
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
    whole = sampling is None and participation == 1.0
    if method == "auto":
        method = "gdp" if whole else "rdp"
        if isinstance(sampling, WithReplacement):
            method = "pld"
    curve: Curve = GaussianCurve(0.0)
    for multiplier, count in _multipliers(noise_std, sensitivity, rounds):
        one = _one_round(multiplier, sampling, participation, method)
        curve = compose_curves(curve, one.repeat(count))
    bound = f"each release changes by at most {sensitivity:g} in l2 norm"
    return Guarantee(
        curve=curve,
        scope=scope,
        theorem=_theorem(sampling, participation, method),
        assumptions=(
            enforced(bound) if clipped else believed(bound),
            believed("the noise of every release is fresh and unknown to the observer"),
            *_sampling_assumptions(sampling, participation),
        ),
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
    if isinstance(sampling, Poisson) and relation != Relation.ADD_REMOVE:
        check.refuse(
            "Poisson sampling has a proved bound for relation='add_remove' only; use "
            "that relation, or WithoutReplacement for relation='replace_one'"
        )
    if isinstance(sampling, WithoutReplacement):
        if relation != Relation.REPLACE_ONE:
            check.refuse(
                "sampling without replacement is accounted for relation='replace_one' "
                "only; use that relation, or Poisson for relation='add_remove'"
            )
        if method == "pld":
            check.refuse(
                "method='pld' does not cover sampling without replacement; use 'rdp'"
            )
    if isinstance(sampling, WithReplacement):
        if relation != Relation.REPLACE_ONE:
            check.refuse(
                "sampling with replacement is accounted for relation='replace_one' "
                "only; use that relation, or Poisson for relation='add_remove'"
            )
        if method == "rdp":
            check.refuse(
                "method='rdp' does not cover sampling with replacement; use 'pld'"
            )
    if method == "gdp" and (sampling is not None or participation != 1.0):
        check.refuse(
            "method='gdp' is exact for releases of all records in every round only; "
            "use method='rdp'"
        )


def _one_round(
    multiplier: float, sampling: Sampling | None, participation: float, method: Method
) -> Curve:
    if method == "gdp":
        return GaussianCurve(1 / multiplier)
    if isinstance(sampling, WithReplacement):
        curve = with_replacement(multiplier, sampling.draws, sampling.samples)
        return take_part_in_losses(curve, participation)
    if method == "pld":
        rate = sampling.rate if isinstance(sampling, Poisson) else 1.0
        return _loss_round(multiplier, rate, participation)
    if sampling is None:
        curve = RenyiCurve.linear(1 / (2 * multiplier**2))
    else:
        curve = RenyiCurve(sampled_rdp(multiplier, sampling))
    return take_part(curve, participation)


def take_part(curve: RenyiCurve, participation: float) -> RenyiCurve:
    """One round that happens with probability p, and is seen to happen or not.

    The joint law of (took part, release) has the Renyi divergence
        log(1 - p + p e^{(alpha - 1) r_alpha}) / (alpha - 1).
    The expectation belongs outside the exponential: p r_alpha is *not* a bound.
    """
    participation = inputs.fraction(participation=participation)
    if participation == 1.0:
        return curve
    orders = np.asarray(ORDERS)
    active = np.log(participation) + (orders - 1) * curve.totals()
    moments = np.logaddexp(np.log1p(-participation), active)
    values = tuple((np.maximum(moments, 0.0) / (orders - 1)).tolist())
    return RenyiCurve(values, pure=curve.pure)


def _loss_round(multiplier: float, rate: float, participation: float) -> LossCurve:
    from dp_accounting.pld import privacy_loss_distribution as pld

    if multiplier < 0.02:
        check.refuse(
            f"method='pld' needs noise_std/sensitivity >= 0.02, got {multiplier:g}; "
            "use method='rdp'"
        )
    active = pld.from_gaussian_mechanism(multiplier, sampling_prob=rate)
    return take_part_in_losses(LossCurve(active), participation)


def take_part_in_losses(curve: LossCurve, participation: float) -> LossCurve:
    """As `take_part`, exactly: the loss is 0 in a silent round that is seen."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    if participation == 1.0:
        return curve
    mixed = curve.distribution.compute_mixture(pld.identity(), participation)
    return LossCurve(mixed)


def _theorem(sampling: Sampling | None, participation: float, method: Method) -> str:
    if method == "gdp":
        return "Gaussian composition, mu^2 = sum (sensitivity/sigma_t)^2 (Dong 2022)"
    sampled = {
        type(None): "Gaussian mechanism",
        Poisson: "Poisson-sampled Gaussian (Mironov, Talwar, Zhang 2019)",
        WithoutReplacement: "Gaussian sampled without replacement "
        "(Wang, Balle, Kasiviswanathan 2019, Theorem 27)",
        WithReplacement: "Gaussian sampled with replacement "
        "(Balle, Barthe, Gaboardi 2018, Theorem 10)",
    }[type(sampling)]
    part = ", participation mixture" if participation < 1.0 else ""
    way = "Renyi composition" if method == "rdp" else "privacy loss distributions"
    return f"{sampled}{part}, {way} (dp-accounting)"


def _sampling_assumptions(sampling: Sampling | None, participation: float) -> tuple:
    notes = ()
    if sampling is not None:
        notes += (believed("batches are drawn as stated and stay secret"),)
    if participation < 1.0:
        notes += (believed("participation is drawn independently of the data"),)
    return notes

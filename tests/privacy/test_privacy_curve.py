"""Curves and guarantees: conversions, composition, and what may not be mixed."""

import json
import math

import numpy as np
import pytest

from tacita.check import TacitaError
from tacita.privacy import (
    Guarantee,
    Poisson,
    Scope,
    WithoutReplacement,
    account,
    gaussian_epsilon,
    gaussian_guarantee,
    laplace_guarantee,
    randomised_response_guarantee,
)
from tacita.privacy.accounting.curve import (
    ORDERS,
    GaussianCurve,
    LossCurve,
    RenyiCurve,
    compose,
    renyi,
    take_part,
)
from tacita.privacy.accounting.guarantee import Assumption, believed, enforced
from tacita.privacy.accounting.releases import SampledGaussian
from tacita.privacy.accounting.subsampling import WithReplacement, sampled_rdp

SEEN = {"observer": "neighbour", "unit": "record", "relation": "replace_one"}


def test_gaussian_curve_is_the_gaussian_mechanism():
    curve = GaussianCurve(0.5).repeat(9)
    assert curve.mu == 1.5
    assert curve.epsilon(1e-6) == gaussian_epsilon(1 / 1.5, 1e-6)
    assert curve.delta(curve.epsilon(1e-6)) == pytest.approx(1e-6, rel=1e-9)
    assert curve.rdp(7.0) == pytest.approx(7.0 * 1.5**2 / 2)
    assert GaussianCurve(0.0).epsilon(1e-9) == 0.0
    assert GaussianCurve(0.0).delta(0.0) == 0.0


def test_renyi_bounds_lie_above_the_exact_curve():
    exact, bound = GaussianCurve(0.7), RenyiCurve.linear(0.7**2 / 2)
    for delta in (1e-9, 1e-5, 1e-2, 0.3):
        assert exact.epsilon(delta) <= bound.epsilon(delta) <= exact.epsilon(delta) + 1
    for epsilon in (0.1, 1.0, 3.0):
        assert exact.delta(epsilon) <= bound.delta(epsilon) < 1.0


def test_rdp_between_grid_orders_is_an_upper_bound():
    """Build a curve known everywhere from its grid values only."""
    p, slope = 0.2, 0.4

    def exact(order):
        active = math.log(p) + (order - 1) * slope * order
        return float(np.logaddexp(math.log(1 - p), active)) / (order - 1)

    curve = RenyiCurve(tuple(exact(order) for order in ORDERS))
    for order in (1.01, 1.05, 1.1, 1.234, 7.77, 33.3, 100.0, 3000.0):
        assert curve.rdp(order) >= exact(order) * (1 - 1e-12)
        if order < 20:
            assert curve.rdp(order) == pytest.approx(exact(order), rel=0.2)
    assert curve.rdp(10.0) == pytest.approx(exact(10.0), rel=1e-14)
    assert curve.rdp(ORDERS[-1] + 1) == math.inf
    capped = RenyiCurve((*curve.values[:-3], *[math.inf] * 3))
    assert capped.rdp(2.0) == curve.rdp(2.0)
    assert capped.rdp(2.05) == curve.values[ORDERS.index(2.1)]
    assert capped.rdp(5000.0) == math.inf


@pytest.mark.parametrize("bad", (-1e-12, math.nan))
def test_a_negative_or_missing_divergence_is_refused(bad):
    values = [0.1] * len(ORDERS)
    values[5] = bad
    with pytest.raises(TacitaError, match="expected Renyi divergences >= 0"):
        RenyiCurve(tuple(values))
    with pytest.raises(TacitaError, match="length"):
        RenyiCurve((0.1, 0.2))


def test_composition_of_kinds():
    gaussian, linear = GaussianCurve(0.6), RenyiCurve.linear(0.2)
    assert compose(gaussian, GaussianCurve(0.8)).mu == pytest.approx(1.0)
    mixed = compose(gaussian, linear)
    assert isinstance(mixed, RenyiCurve)
    assert mixed.slope == pytest.approx(0.18 + 0.2)
    sampled = account(
        **{**SEEN, "relation": "add_remove"},
        noise_std=2.0,
        sensitivity=1.0,
        rounds=4,
        sampling=Poisson(0.3),
        method="pld",
    ).curve
    assert isinstance(sampled, LossCurve)
    both = compose(gaussian, sampled)
    assert both.epsilon(1e-5) > max(gaussian.epsilon(1e-5), sampled.epsilon(1e-5))
    assert both.epsilon(1e-5) < gaussian.epsilon(1e-5) + sampled.epsilon(1e-5)
    assert compose(GaussianCurve(0.0), sampled) is sampled
    assert sampled.rdp(2.0) == 4 * sampled_rdp(2.0, Poisson(0.3))[ORDERS.index(2.0)]


def test_renyi_divergences_compose_with_loss_distributions():
    """As the worst pair that has them: above the truth, below adding everything up."""
    sampled = LossCurve(((SampledGaussian(2.0, Poisson(0.3)), 40),))
    often = LossCurve(((SampledGaussian(2.0, WithReplacement(5, 20)), 10),))
    for mu in (0.2, 1.0, 2.5):
        bounds, exact = RenyiCurve.linear(mu**2 / 2), GaussianCurve(mu)
        assert compose(bounds, LossCurve(())).epsilon(1e-5) == pytest.approx(
            bounds.epsilon(1e-5), rel=1e-3
        )
        for other in (sampled, often):
            both, other_way = compose(bounds, other), compose(other, bounds)
            for delta in (1e-7, 1e-3):
                true = compose(exact, other).epsilon(delta)
                split = bounds.epsilon(delta / 2) + other.epsilon(delta / 2)
                assert true <= both.epsilon(delta) < split
                assert both.epsilon(delta) == other_way.epsilon(delta)
            assert both.delta(3.0) >= compose(exact, other).delta(3.0)
        together = compose(bounds, renyi(sampled)).epsilon(1e-5)
        assert compose(bounds, sampled).epsilon(1e-5) < 1.05 * together
    with pytest.raises(TacitaError, match="drawn with replacement"):
        renyi(often)
    # Nothing but divergences is known, of a round that may not happen.
    seldom = take_part(compose(sampled, RenyiCurve.linear(0.5)), 0.3)
    assert seldom.epsilon(1e-5) < compose(sampled, RenyiCurve.linear(0.5)).epsilon(1e-5)


def test_what_no_grid_reaches_is_left_to_renyi_divergences():
    batches = SampledGaussian(1e-3, WithoutReplacement(1, 10))
    loud = LossCurve(((batches, 3),), mu=1.0)
    assert math.isfinite(loud.epsilon(1e-5)) and loud.epsilon(1e-5) > 1e6
    assert loud.delta(1.0) == 1.0
    quiet = LossCurve(((SampledGaussian(2.0, Poisson(0.3)), 4),))
    assert quiet.epsilon(1e-15) == renyi(quiet).epsilon(1e-15) < 20
    assert quiet.epsilon(1e-11) < quiet.epsilon(1e-15)
    unknown = LossCurve(((SampledGaussian(1e-3, WithReplacement(1, 9)), 1),))
    assert unknown.epsilon(1e-5) == math.inf and unknown.delta(1.0) == 1.0


@pytest.mark.parametrize("times", (1, 20))
def test_curves_fall_with_delta_and_noise_and_grow_with_rounds(times):
    for sampling in (Poisson(0.1), WithoutReplacement(3, 40), WithReplacement(3, 40)):
        deltas = np.geomspace(1e-10, 0.2, 30)
        curve = LossCurve(((SampledGaussian(1.5, sampling), times),))
        spent = [curve.epsilon(float(delta)) for delta in deltas]
        assert spent == sorted(spent, reverse=True)
        for epsilon, delta in zip(spent, deltas, strict=True):
            assert epsilon == 0 or curve.delta(epsilon) == pytest.approx(
                delta, rel=1e-3
            )
        noises = [
            LossCurve(((SampledGaussian(z, sampling), times),)) for z in (1, 2, 3)
        ]
        by_noise = [one.epsilon(1e-6) for one in noises]
        assert by_noise == sorted(by_noise, reverse=True)
        by_rounds = [curve.repeat(k).epsilon(1e-6) for k in (1, 2, 5)]
        assert by_rounds == sorted(by_rounds)


def test_loss_curve_composition_is_exact_for_gaussians():
    one = account(**SEEN, noise_std=2.0, sensitivity=1.0, rounds=3, method="pld").curve
    three = compose(one, one.repeat(2))
    exact = gaussian_epsilon(2.0 / 3.0, 1e-5)
    assert three.epsilon(1e-5) == pytest.approx(exact, rel=1e-4)
    assert three.delta(exact) == pytest.approx(1e-5, rel=1e-2)


@pytest.mark.parametrize("mu", [1e-9, 4.5e-8, 1e-3, 3.0])
def test_a_divergence_that_is_nearly_nothing_is_not_nothing(mu):
    """1 + 1e-17 is 1: a hundred thousand rounds of a chance each were said to be 0."""
    delta, rounds, chance = 1e-12, 100_000, 0.3
    one = take_part(GaussianCurve(mu), chance)
    # How often it happened is seen: 29,000 times at least, nearly always.
    exact = GaussianCurve(mu * math.sqrt(29_000)).epsilon(2 * delta)
    assert one.repeat(rounds).epsilon(delta) > exact > 0
    assert one.epsilon(delta) >= GaussianCurve(mu).epsilon(delta / chance)


@pytest.mark.parametrize("drawn", [Poisson(0.2), WithoutReplacement(1, 5)])
@pytest.mark.parametrize("multiplier", [1.0, 300.0, 1e4, 1e7, 1e9])
def test_divergences_of_batches_have_digits_where_they_are_small(drawn, multiplier):
    """The library rounds them to zero, to numbers below it, or ends in an error."""
    found = np.array(sampled_rdp(multiplier, drawn)[:50])
    orders = np.array(ORDERS[:50])
    # Half of what a batch that is seen costs, times its rate: less is false.
    assert np.all(found > 0.5 * drawn.rate**2 * orders / 2 / multiplier**2)
    assert np.all(np.diff(found) >= -1e-12 * found[1:])
    seen = RenyiCurve.linear(multiplier**-2 / 2).with_chance(drawn.rate)
    assert np.all(found <= seen.values[:50])


def test_at_delta_0_epsilon_is_that_of_pure_privacy():
    """Of a thousand releases too, where the convolution would be looser or refuse."""
    one = laplace_guarantee(**SEEN, scale=2.0, sensitivity=1.0)
    for times in (1, 7, 1000):
        assert one.repeat(times).epsilon(0.0) == pytest.approx(0.5 * times)
    answer = randomised_response_guarantee(
        observer="neighbour", epsilon=1.25, classes=4
    )
    assert answer.epsilon(0) == 1.25
    assert renyi(one.curve).epsilon(0.0) == 0.5
    noisy = gaussian_guarantee(**SEEN, noise_std=2.0, sensitivity=1.0)
    assert noisy.epsilon(0.0) == one.compose(noisy).epsilon(0.0) == math.inf
    assert RenyiCurve.linear(0.1).epsilon(0.0) == math.inf
    assert GaussianCurve(0.0).epsilon(0.0) == 0.0


def test_laplace_is_pure():
    one = laplace_guarantee(**SEEN, scale=2.0, sensitivity=1.0)
    assert one.epsilon(1e-12) == 0.5
    assert one.delta(0.5) == 0.0
    assert one.repeat(4).epsilon(1e-12) == pytest.approx(2.0)
    # Composition beats adding pure epsilons over many releases.
    assert one.repeat(100).epsilon(1e-5) < 50.0 * 0.6
    for epsilon in (0.0, 0.1, 0.3, 0.49):
        exact = -math.expm1((epsilon - 0.5) / 2)
        assert one.delta(epsilon) == pytest.approx(exact, rel=2e-3)
    # Mironov's formula at order 2 against the integral of the two densities.
    grid = np.linspace(-60, 61, 2_000_001)
    p, q = (np.exp(-np.abs(grid - at) / 2) / 4 for at in (0.0, 1.0))
    exact = math.log(np.sum(p**2 / q) * (grid[1] - grid[0]))
    assert one.rdp(2.0) == pytest.approx(exact, rel=1e-6)


def test_randomised_response_matches_its_definition():
    epsilon, classes = 0.9, 4
    one = randomised_response_guarantee(
        observer="coordinator", epsilon=epsilon, classes=classes
    )
    keep = math.exp(epsilon) / (math.exp(epsilon) + classes - 1)
    rest = (1 - keep) / (classes - 1)
    p = np.array([keep, rest, rest, rest])
    q = np.array([rest, keep, rest, rest])
    for order in (1.1, 2.0, 17.0):
        exact = math.log(np.sum(p**order * q ** (1 - order))) / (order - 1)
        assert one.rdp(order) == pytest.approx(exact, rel=1e-10)
    assert one.epsilon(1e-12) == epsilon
    assert one.scope.unit == "record"
    for at in (0.0, 0.3, 0.8):
        exact = np.maximum(p - math.exp(at) * q, 0).sum()
        assert exact <= one.delta(at) <= exact * 1.002
    # Two labels: losses of -2, -1, 0, 1 and 2 times epsilon.
    two = np.multiply.outer(p, p).ravel(), np.multiply.outer(q, q).ravel()
    exact = np.maximum(two[0] - math.e * two[1], 0).sum()
    assert exact <= one.repeat(2).delta(1.0) <= exact * 1.002
    many = one.repeat(200)
    assert many.epsilon(1e-5) < renyi(many.curve).epsilon(1e-5)


def test_guarantees_compose_and_keep_their_words():
    first = gaussian_guarantee(**SEEN, noise_std=5.0, sensitivity=3.0)
    second = gaussian_guarantee(**SEEN, noise_std=5.0, sensitivity=4.0)
    both = first.compose(second)
    assert both.mu == pytest.approx(1.0)
    assert len(both.assumptions) == 2 and both.theorem == first.theorem
    assert first.repeat(4).mu == pytest.approx(1.2)
    assert first.compose() == first
    sampled = account(
        **SEEN,
        noise_std=5.0,
        sensitivity=1.0,
        rounds=2,
        sampling=WithoutReplacement(1, 5),
    )
    mixed = first.compose(sampled)
    assert mixed.mu is None and "without replacement" in mixed.theorem
    assert mixed.rdp(3.0) == pytest.approx(first.rdp(3.0) + sampled.rdp(3.0))


@pytest.mark.parametrize(
    ("field", "value"),
    (("observer", "coordinator"), ("unit", "client"), ("relation", "add_remove")),
)
def test_different_guarantees_do_not_add_up(field, value):
    first = gaussian_guarantee(**SEEN, noise_std=5.0, sensitivity=3.0)
    other = gaussian_guarantee(**{**SEEN, field: value}, noise_std=5.0, sensitivity=3.0)
    with pytest.raises(TacitaError, match=f"different {field}"):
        first.compose(other)


def test_as_dict_is_plain_data():
    one = gaussian_guarantee(**SEEN, noise_std=5.0, sensitivity=3.0)
    told = json.loads(json.dumps(one.as_dict(1e-5)))
    assert told["epsilon"] == one.epsilon(1e-5) and told["observer"] == "neighbour"
    assert told["assumptions"][0]["status"] == "believed"
    assert told["paper_claim"] is None


def test_guarantee_refuses_words_it_does_not_know():
    curve = GaussianCurve(1.0)
    words = {"curve": curve, "theorem": "", "scope": Scope(**SEEN)}
    with pytest.raises(TacitaError, match="did you mean 'neighbour'"):
        Scope("neighbor")
    with pytest.raises(TacitaError, match="unknown unit='house'"):
        Scope("neighbour", "house")
    with pytest.raises(TacitaError, match="did you mean 'add_remove'"):
        Scope("neighbour", relation="add_or_remove")
    assert Scope(**SEEN).observer == SEEN["observer"]  # an enum that is a string
    with pytest.raises(TacitaError, match="status"):
        Assumption("x", "hoped")
    assert enforced("x") != believed("x")
    for order in (1.0, 0.5, math.nan):
        with pytest.raises(TacitaError, match="order"):
            curve.rdp(order)
    for delta in (-1e-9, 1.0, None, math.nan):
        with pytest.raises(TacitaError, match="delta"):
            Guarantee(**words).epsilon(delta)
    with pytest.raises(TacitaError, match="epsilon"):
        Guarantee(**words).delta(-0.1)

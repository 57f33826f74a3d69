"""Accounting: the closed form, RDP and PLD against each other and the trap."""

import math

import dp_accounting as dpa
import numpy as np
import pytest
from scipy.integrate import quad

from tacita.check import TacitaError
from tacita.privacy import Poisson, WithoutReplacement, account
from tacita.privacy import account as account_function
from tacita.privacy.accounting.curve import (
    ORDERS,
    GaussianCurve,
    LossCurve,
    RenyiCurve,
    take_part,
)
from tacita.privacy.accounting.releases import levelled
from tacita.privacy.accounting.subsampling import (
    WithReplacement,
    library_scale,
    sampled_rdp,
)

WHO = {"observer": "coordinator", "unit": "record"}


def run(**arguments):
    return account(**{**WHO, **arguments})


def random_settings(count, seed):
    """Runs whose total mu lies between 0.3 and 1.5, with a rate and a delta."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        rounds, sensitivity = int(draw.integers(4, 100)), float(draw.uniform(0.5, 2.0))
        total = float(np.exp(draw.uniform(np.log(0.3), np.log(1.5))))
        releases = {
            "noise_std": sensitivity * math.sqrt(rounds) / total,
            "sensitivity": sensitivity,
            "rounds": rounds,
        }
        yield (
            releases,
            float(draw.uniform(0.02, 0.9)),
            float(10 ** draw.uniform(-7, -2)),
        )


@pytest.mark.long
def test_pld_is_never_above_rdp_on_random_settings():
    for releases, rate, delta in random_settings(20, seed=1):
        cases = (
            {"relation": "add_remove", "sampling": Poisson(rate)},
            {"relation": "replace_one", "participation": rate},
        )
        for case in cases:
            tight = run(**releases, **case, method="pld").epsilon(delta)
            loose = run(**releases, **case, method="rdp").epsilon(delta)
            assert 0 < tight <= loose, (releases, case, delta)


def test_closed_form_equals_pld_on_random_settings():
    for releases, _, delta in random_settings(20, seed=2):
        closed = run(**releases, relation="replace_one")
        ratio = releases["sensitivity"] / releases["noise_std"]
        assert closed.mu == pytest.approx(ratio * math.sqrt(releases["rounds"]))
        pld = run(**releases, relation="replace_one", method="pld").epsilon(delta)
        assert closed.epsilon(delta) == pytest.approx(pld, rel=1e-4, abs=1e-4)


def test_closed_form_of_different_noise_each_round():
    noise = np.array([2.0, 5.0, 3.0, 3.0, 8.0])
    closed = run(relation="replace_one", noise_std=noise, sensitivity=1.5, rounds=5)
    assert closed.mu == pytest.approx(math.sqrt(np.sum((1.5 / noise) ** 2)))
    accountant = dpa.pld.PLDAccountant(dpa.NeighboringRelation.ADD_OR_REMOVE_ONE)
    for sigma in noise:
        accountant.compose(dpa.GaussianDpEvent(sigma / 1.5))
    assert closed.epsilon(1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-4)
    for method in ("pld", "rdp"):
        other = run(
            relation="replace_one",
            noise_std=noise,
            sensitivity=1.5,
            rounds=5,
            method=method,
        ).epsilon(1e-5)
        assert closed.epsilon(1e-5) <= other * (1 + 1e-6) < 1.15 * closed.epsilon(1e-5)


def test_very_many_noise_levels_are_rounded_down_to_some():
    noise, drawn = np.geomspace(2.0, 3.0, 30), Poisson(0.05)
    releases = {"sensitivity": 1.0, "rounds": 30, "noise_std": noise}
    gaussian = run(**releases, relation="replace_one")
    assert gaussian.mu == pytest.approx(math.sqrt(np.sum(noise**-2.0)), rel=1e-12)
    curve = run(**releases, relation="add_remove", sampling=drawn).curve
    assert isinstance(curve, LossCurve) and len(curve.releases) == 30
    some = levelled(curve.releases, most=10)
    assert len(some) < 30 and sum(count for _, count in some) == 30
    for one, other in zip(noise, np.repeat(*zip(*some, strict=True)), strict=True):
        assert 0.975 * one < other.level <= one  # quieter is never promised
    assert levelled(curve.releases, most=30) == curve.releases
    assert 1 < LossCurve(some).epsilon(1e-5) / curve.epsilon(1e-5) < 1.02
    # Rounds that may not happen have levels too.
    seldom = [take_part(LossCurve((one,)), 0.5).releases[0] for one in curve.releases]
    assert len(levelled(tuple(seldom), most=10)) == len(some)
    plain = [take_part(GaussianCurve(1 / z), 0.5).releases[0] for z in noise]
    rounded = levelled(tuple(plain), most=10)
    assert [(one.level, k) for one, k in rounded] == [
        (pytest.approx(one.level), k) for one, k in some
    ]
    assert 1 < LossCurve(rounded).epsilon(1e-5) / LossCurve(tuple(plain)).epsilon(1e-5)


def test_the_replace_one_trap():
    """dp_accounting gives 2.17 or 4.38 for one event; here every way gives 1.99."""
    relation = dpa.NeighboringRelation.REPLACE_ONE
    event = dpa.GaussianDpEvent(2.0)
    rdp = dpa.rdp.RdpAccountant(neighboring_relation=relation).compose(event)
    pld = dpa.pld.PLDAccountant(neighboring_relation=relation).compose(event)
    assert pld.get_epsilon(1e-5) > 2 * rdp.get_epsilon(1e-5)  # the trap is there
    for named in ("replace_one", "add_remove"):
        releases = {"relation": named, "noise_std": 2.0, "sensitivity": 1.0}
        exact = run(**releases, rounds=1, method="gdp").epsilon(1e-5)
        assert exact == pytest.approx(1.9930914, rel=1e-7)
        by_pld = run(**releases, rounds=1, method="pld").epsilon(1e-5)
        by_rdp = run(**releases, rounds=1, method="rdp").epsilon(1e-5)
        assert by_pld == pytest.approx(exact, abs=1e-4)
        assert exact <= by_rdp < 1.1 * exact


def test_clip_norm_doubles_the_sensitivity_of_replace_one():
    """A clipped sum moves by C under add/remove and 2C under replace-one."""
    clip, noise = 1.0, 4.0
    added = run(relation="add_remove", noise_std=noise, sensitivity=clip, rounds=1)
    swapped = run(
        relation="replace_one", noise_std=noise, sensitivity=2 * clip, rounds=1
    )
    assert swapped.mu == 2 * added.mu
    # The library's PLD under REPLACE_ONE takes the norm of one record, C.
    relation = dpa.NeighboringRelation.REPLACE_ONE
    theirs = dpa.pld.PLDAccountant(relation).compose(dpa.GaussianDpEvent(noise / clip))
    assert swapped.epsilon(1e-5) == pytest.approx(theirs.get_epsilon(1e-5), abs=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("convention", (1.0, 2.0))
def test_a_library_that_changes_its_convention_changes_nothing(monkeypatch, convention):
    """Should RdpAccountant read multipliers per record one day, answers stay put."""
    sampling = WithoutReplacement(49, 325)
    releases = {"relation": "replace_one", "noise_std": 9.0, "sensitivity": 1.0}
    releases |= {"rounds": 10, "method": "rdp"}
    before = run(**releases, sampling=sampling).epsilon(1e-4)
    event = dpa.SampledWithoutReplacementDpEvent
    make = dpa.GaussianDpEvent

    def rescaled(source_size, batch, gaussian):
        return event(source_size, batch, make(gaussian.noise_multiplier / convention))

    monkeypatch.setattr(dpa, "SampledWithoutReplacementDpEvent", rescaled)
    library_scale.cache_clear()
    try:
        assert library_scale() == convention
        nearby = WithoutReplacement(98, 650)  # the same rate, past the cache
        after = run(**releases, sampling=nearby).epsilon(1e-4)
        assert after == pytest.approx(before, rel=1e-12)
    finally:
        library_scale.cache_clear()


def test_an_unknown_convention_is_refused(monkeypatch):
    event = dpa.SampledWithoutReplacementDpEvent

    def odd(source_size, batch, gaussian):
        return event(source_size, batch, dpa.GaussianDpEvent(0.7))

    monkeypatch.setattr(dpa, "SampledWithoutReplacementDpEvent", odd)
    library_scale.cache_clear()
    try:
        with pytest.raises(TacitaError, match="dp-accounting"):
            library_scale()
    finally:
        library_scale.cache_clear()


# z per round, RDP without replacement for n = pT = 20, sound mixture, worst client,
# PLD Poisson; m = 325, b = 10, Q = 5, K = 20 of 100 clients, T = 100, delta = 1e-4.
FED_SPD_TABLE = (
    (98.76, 0.0412, 0.0417, 0.0880, 0.0126),
    (19.753, 0.2176, 0.2297, 0.5293, 0.0846),
    (9.8765, 0.4686, 0.4984, 1.146, 0.1892),
    (3.2922, 1.638, 1.764, 4.094, 0.7092),
)


@pytest.mark.few(1)
@pytest.mark.parametrize("row", FED_SPD_TABLE)
def test_sampling_against_independent_numbers(row):
    z, active, mixture, worst, poisson = row
    base = {"noise_std": z, "sensitivity": 1.0}
    batch = {"relation": "replace_one", "sampling": WithoutReplacement(50, 325)}
    times = ({"rounds": 20}, {"rounds": 100, "participation": 0.2}, {"rounds": 100})
    got = (
        *(run(**base, **batch, **many, method="rdp") for many in times),
        run(**base, relation="add_remove", sampling=Poisson(50 / 325), rounds=20),
    )
    for guarantee, expected in zip(got, (active, mixture, worst, poisson), strict=True):
        # Our orders reach further than the ones of those numbers: tighter, if at all.
        assert 0.985 * expected < guarantee.epsilon(1e-4) < 1.004 * expected
    # Loss distributions, which are the default, are tighter.
    for many, loose in zip(times, got[:3], strict=True):
        tight = run(**base, **batch, **many).epsilon(1e-4)
        assert 0.2 * loose.epsilon(1e-4) < tight < 0.62 * loose.epsilon(1e-4)


def test_participation_mixture_is_the_exact_divergence():
    """Integrate the Renyi divergence of (took part, release) between neighbours."""
    mu, p = 0.8, 0.3
    mixed = take_part(RenyiCurve.linear(mu**2 / 2), p)

    def integrand(x, order):
        logs = -order * (x - mu) ** 2 / 2 - (1 - order) * x**2 / 2
        return math.exp(logs) / math.sqrt(2 * math.pi)

    for order in (1.5, 2.0, 4.0, 9.0):
        active, _ = quad(integrand, -12, 20, args=(order,))
        exact = math.log(1 - p + p * active) / (order - 1)
        assert mixed.rdp(order) == pytest.approx(exact, rel=1e-7)
        # Jensen: the tempting p * r is below the truth.
        assert mixed.rdp(order) > p * order * mu**2 / 2


def test_participation_lies_between_never_and_always():
    base = {"relation": "replace_one", "noise_std": 3.0, "sensitivity": 1.0}
    for method, close in (("rdp", 1e-6), ("pld", 1e-4)):
        by = {**base, "rounds": 50, "method": method}
        always = run(**by).epsilon(1e-5)
        nearly = run(**by, participation=1 - 1e-12).epsilon(1e-5)
        assert run(**by, participation=0.5).epsilon(1e-5) < always
        assert nearly == pytest.approx(always, rel=close)
    # Conditional on the realised count: n_i releases, nothing else.
    seen = run(**base, rounds=25, method="rdp")
    assert seen.rdp(4.0) == pytest.approx(25 * 4.0 / (2 * 9.0))


def test_sampling_amplifies_and_rate_one_is_no_sampling():
    base = {"noise_std": 2.0, "sensitivity": 1.0, "rounds": 10}
    whole = run(**base, relation="add_remove", method="rdp")
    for relation, sampling in (
        ("add_remove", Poisson(1.0)),
        ("replace_one", WithoutReplacement(40, 40)),
    ):
        same = run(**base, relation=relation, sampling=sampling, method="rdp")
        assert same.rdp(8.0) == pytest.approx(whole.rdp(8.0), rel=1e-9)
    sampled = run(**base, relation="add_remove", sampling=Poisson(0.05))
    assert sampled.epsilon(1e-5) < 0.3 * whole.epsilon(1e-5)


def test_orders_the_library_gives_up_on_are_bounded_by_chords(caplog):
    """At this setting fractional orders below 2 do not converge in the library."""
    values = sampled_rdp(6.404384, Poisson(0.380095))
    assert all(math.isfinite(value) for value in values)
    assert not caplog.records
    assert list(values) == sorted(values)  # divergences grow with the order
    q, sigma = 0.380095, 6.404384
    x = np.linspace(-80, 80, 400_001)
    base = np.exp(-((x / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
    ratio = 1 - q + q * np.exp((2 * x - 1) / (2 * sigma**2))
    for order in (1.1, 1.5, 2.0, 6.0):
        moment = np.sum(base * ratio**order) * (x[1] - x[0])
        exact = math.log(moment) / (order - 1)
        got = values[ORDERS.index(order)]
        assert exact * (1 - 1e-6) <= got <= exact * 2.0


def test_guarantee_says_what_it_needs():
    sampled = run(
        relation="replace_one",
        noise_std=2.0,
        sensitivity=1.0,
        rounds=3,
        sampling=WithoutReplacement(1, 10),
        participation=0.5,
        clipped=True,
    )
    text = " | ".join(one.statement for one in sampled.assumptions)
    assert "batches are drawn" in text and "participation is drawn" in text
    assert sampled.assumptions[0].status == "enforced"
    assert "Gaboardi 2018, Theorem 9)" in sampled.theorem and sampled.mu is None
    assert "privacy loss distributions" in sampled.theorem
    assert math.isfinite(sampled.rdp(ORDERS[0]))


GOOD = {"relation": "replace_one", "noise_std": 1.0, "sensitivity": 1.0, "rounds": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    (
        ({"observer": "coordinater"}, "did you mean 'coordinator'"),
        ({"unit": "recrod"}, "did you mean 'record'"),
        ({"relation": "replace"}, "did you mean 'replace_one'"),
        ({"method": "pdl"}, "did you mean 'pld'"),
        ({"noise_std": 0.0}, "expected noise_std > 0"),
        ({"noise_std": math.nan}, "expected noise_std > 0"),
        ({"noise_std": None}, "noise_std"),
        ({"noise_std": np.ones(3)}, "shape"),
        ({"noise_std": "1.0"}, "noise_std"),
        ({"noise_std": True}, "noise_std"),
        ({"noise_std": np.array([1.0, math.inf])}, r"got inf at \[1\]"),
        ({"sensitivity": -1.0}, "expected sensitivity > 0"),
        ({"rounds": 0}, "expected rounds a whole number >= 1"),
        ({"rounds": 2.5}, "expected rounds a whole number >= 1"),
        ({"rounds": None}, "expected rounds a whole number >= 1"),
        ({"participation": 0.0}, r"expected participation in \(0, 1\]"),
        ({"participation": 1.2}, r"expected participation in \(0, 1\]"),
        ({"sampling": Poisson(0.1)}, "relation='add_remove'"),
        (
            {"sampling": WithoutReplacement(1, 9), "relation": "add_remove"},
            "relation='replace_one'",
        ),
        ({"sampling": WithReplacement(1, 9), "method": "rdp"}, "use 'pld'"),
        ({"sampling": WithoutReplacement(1, 9), "method": "gdp"}, "method='pld'"),
        ({"participation": 0.5, "method": "gdp"}, "method='pld'"),
    ),
)
def test_refusals(change, message):
    with pytest.raises(TacitaError, match=message):
        account_function(**{**WHO, **GOOD, **change})


def test_sampling_is_refused_at_construction():
    for rate in (0.0, 1.5, math.nan):
        with pytest.raises(TacitaError, match="rate"):
            Poisson(rate)
    with pytest.raises(TacitaError, match="expected batch <= samples"):
        WithoutReplacement(11, 10)
    with pytest.raises(TacitaError, match="batch"):
        WithoutReplacement(0, 10)

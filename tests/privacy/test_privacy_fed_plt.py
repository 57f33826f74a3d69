"""Fed-PLT's guarantee against vectors, exact quadratics and a non-quadratic grid."""

import math

import numpy as np
import pytest

from tacita.check import TacitaError
from tacita.privacy import Scope, fed_plt
from tacita.privacy.accounting.curve import GaussianCurve
from tacita.privacy.letters.noisy_training import contraction, mu_of_a_round

SETTING = {
    "strong_convexity": 0.5,
    "smoothness": 2.0,
    "rho": 1.0,
    "step_size": 0.25,
    "local_steps": 5,
    "noise_std": 0.3,
    "lipschitz": 1.0,
    "samples": 40,
    "rounds": 30,
}


def of_vector(row, observer):
    return fed_plt(
        observer=observer,
        strong_convexity=row["lam"],
        smoothness=row["lamb"],
        rho=row["rho"],
        step_size=row["gamma"],
        local_steps=row["Ne"],
        noise_std=row["tau"],
        lipschitz=row["L"],
        samples=int(row["q"]),
        rounds=row["K"],
    )


def test_vectors(vectors):
    for row in vectors["fedplt_coordinator"]:
        for observer in ("coordinator", "final_model", "neighbour", "eavesdropper"):
            run = of_vector(row, observer)
            assert run.mu == pytest.approx(row["mu_total"], rel=1e-9)
            assert run.epsilon(1e-5) == pytest.approx(row["eps_1e5"], rel=1e-9)
            assert run.rdp(3.0) == pytest.approx(3 * row["mu_total"] ** 2 / 2)
            for order in (2.0, 7.3):
                claimed = run.paper_claim.claimed_rdp(order) / order
                assert claimed == pytest.approx(row["prop4_rdp_over_alpha"], rel=1e-9)
        assert row["contraction"] == pytest.approx(
            contraction(
                strong_convexity=row["lam"],
                smoothness=row["lamb"],
                rho=row["rho"],
                step_size=row["gamma"],
            )
        )


# lam, lamb, rho, gamma, Ne, tau, L, q -> mu of a round, epsilon of 100 rounds at 1e-5
TABLE = (
    (0.05, 1.0, 1.0, 0.5, 5, 0.1, 2.0, 250, 0.065444443273, 2.69640793),
    (0.5, 2.0, 1.0, 0.25, 20, 1.0, 1.0, 100, 0.007359191959, 0.24393390),
    (2.0, 8.0, 0.5, 0.1, 3, 2.0, 4.0, 10, 0.071818484646, 2.99558524),
)


@pytest.mark.parametrize("row", TABLE)
def test_more_vectors(row):
    names = ("lam", "lamb", "rho", "gamma", "Ne", "tau", "L", "q")
    *setting, mu_round, epsilon = row
    run = of_vector(dict(zip(names, setting, strict=True)) | {"K": 100}, "coordinator")
    assert run.mu / 10 == pytest.approx(mu_round, rel=1e-9)
    assert run.epsilon(1e-5) == pytest.approx(epsilon, rel=1e-7)


@pytest.mark.parametrize("steps", (1, 2, 7, 40))
@pytest.mark.parametrize("step_size", (0.05, 0.3, 0.6))
def test_a_round_is_exact_on_quadratics(steps, step_size):
    """Mean shift and covariance of noisy gradient descent, by matrix recursion."""
    modulus, rho, tau, change = 0.8, 2.0, 0.7, 0.05
    factor = 1 - step_size * (modulus + 1 / rho)
    shift, variance = 0.0, 0.0
    for _ in range(steps):
        shift = factor * shift + step_size * change
        variance = factor**2 * variance + 2 * step_size * tau**2
    mu = mu_of_a_round(
        contraction=contraction(
            strong_convexity=modulus, smoothness=modulus, rho=rho, step_size=step_size
        ),
        step_size=step_size,
        local_steps=steps,
        noise_std=tau,
        lipschitz=change * 20,
        samples=20,
    )
    assert mu == pytest.approx(shift / math.sqrt(variance), rel=1e-12)


def law_after(gradient, steps, step_size, noise, grid, start):
    """The law of noisy gradient descent on a grid of the real line."""
    width = grid[1] - grid[0]
    law = np.zeros_like(grid)
    moved = start - step_size * gradient(np.array([start]))[0]
    law = np.exp(-((grid - moved) ** 2) / (2 * noise**2))
    law /= law.sum() * width
    targets = grid - step_size * gradient(grid)
    kernel = np.exp(-((grid[:, None] - targets[None, :]) ** 2) / (2 * noise**2))
    kernel /= kernel.sum(axis=0, keepdims=True) * width
    for _ in range(steps - 1):
        law = kernel @ law * width
    return law


@pytest.mark.parametrize("steps", (1, 3, 8))
def test_a_round_bounds_a_loss_that_is_not_quadratic(steps):
    """Hockey-stick divergence of the true laws against the Gaussian curve."""
    modulus, bend, rho, step_size, tau, change = 0.3, 0.9, 1.0, 0.4, 0.5, 0.8

    def on_data(x):
        return modulus * x + bend * np.tanh(x) + x / rho

    def on_neighbour(x):
        # Around the start the record's part differs by nearly all that is allowed.
        return on_data(x) + change * np.tanh(x + 4)

    grid = np.linspace(-9, 9, 1801)
    noise = math.sqrt(2 * step_size) * tau
    mu = mu_of_a_round(
        contraction=contraction(
            strong_convexity=modulus,
            smoothness=modulus + bend + change,
            rho=rho,
            step_size=step_size,
        ),
        step_size=step_size,
        local_steps=steps,
        noise_std=tau,
        lipschitz=change,
        samples=1,
    )
    laws = [
        law_after(g, steps, step_size, noise, grid, start=2.0)
        for g in (on_data, on_neighbour)
    ]
    width = grid[1] - grid[0]
    for first, second in (laws, laws[::-1]):
        for epsilon in (0.0, 0.2, 0.7, 1.5):
            gap = np.maximum(first - math.exp(epsilon) * second, 0).sum() * width
            assert gap <= GaussianCurve(mu).delta(epsilon) + 1e-5  # grid error
            # The test has teeth: a slightly smaller mu would be refuted.
            assert steps > 1 or gap > GaussianCurve(0.97 * mu).delta(epsilon)


def test_proposition_4_is_only_ever_a_claim():
    for observer, status in (
        ("final_model", "unproven"),
        ("neighbour", "unproven"),
        ("coordinator", "refuted"),
        ("eavesdropper", "refuted"),
    ):
        run = fed_plt(observer=observer, **SETTING)
        assert run.scope.observer == observer
        assert run.paper_claim.status == status
        assert run.paper_claim.source == "Fed-PLT, Proposition 4"
        assert run.epsilon(1e-5) > run.paper_claim.claimed_epsilon(1e-5)
        assert not hasattr(run.paper_claim, "epsilon")
    assert run.scope == Scope(run.scope.observer)
    told = run.as_dict(1e-5)["paper_claim"]
    assert told["claimed_epsilon"] < run.epsilon(1e-5)


# order, L, lambda, tau, q, gamma, K, Ne -> Prop. 4, computed independently.
CLAIMS = (
    (2.0, 1.0, 0.5, 1.0, 250, 0.1, 10, 5, 4.56636930009e-05),
    (8.0, 2.0, 0.5, 0.1, 250, 0.05, 100, 5, 0.102202321496),
    (32.0, 1.0, 0.5, 0.01, 250, 0.1, 100, 5, 10.2399618391),
    (10.0, 1.0, 1.0, 1.0, 100, 0.2, 1, 1, 9.5162581964e-05),
    (2.0, 1.0, 0.5, 1.0, 250, 0.1, 1_000_000, 5, 6.4e-05),
)


@pytest.mark.parametrize("row", CLAIMS)
def test_proposition_4_as_printed(row):
    order, lipschitz, modulus, tau, samples, step, rounds, steps, expected = row
    run = fed_plt(
        observer="final_model",
        strong_convexity=modulus,
        smoothness=2.0,
        rho=1.0,
        step_size=step,
        local_steps=steps,
        noise_std=tau,
        lipschitz=lipschitz,
        samples=samples,
        rounds=rounds,
    )
    assert run.paper_claim.claimed_rdp(order) == pytest.approx(expected, rel=1e-9)


def test_growth_with_rounds_and_participation():
    once = fed_plt(observer="coordinator", **SETTING | {"rounds": 1})
    many = fed_plt(observer="coordinator", **SETTING | {"rounds": 100})
    assert many.mu == pytest.approx(10 * once.mu)
    sampled = fed_plt(
        observer="coordinator", **SETTING | {"rounds": 100}, participation=0.2
    )
    assert sampled.mu is None
    assert sampled.epsilon(1e-5) < many.epsilon(1e-5)
    assert sampled.rdp(2.0) > 0.2 * many.rdp(2.0)
    convex = fed_plt(observer="coordinator", **SETTING | {"strong_convexity": 0.0})
    assert convex.mu > fed_plt(observer="coordinator", **SETTING).mu
    tiny = fed_plt(observer="coordinator", **SETTING | {"strong_convexity": 1e-9})
    assert convex.paper_claim.claimed_rdp(2.0) == pytest.approx(
        tiny.paper_claim.claimed_rdp(2.0), rel=1e-6
    )


def test_assumptions_say_what_was_enforced():
    believed = fed_plt(observer="coordinator", **SETTING).assumptions
    clipped = fed_plt(observer="coordinator", clipped=True, **SETTING).assumptions
    assert {one.status for one in believed} == {"enforced", "believed"}
    changed = set(clipped) - set(believed)
    assert [one.status for one in changed] == ["enforced"]
    assert "gradient" in changed.pop().statement


@pytest.mark.parametrize(
    ("change", "message"),
    (
        ({"observer": "cordinator"}, "did you mean 'coordinator'"),
        ({"observer": None}, "known: final_model"),
        ({"step_size": 2 / 3}, "do not contract"),
        ({"step_size": 5.0}, "take step_size < 0.66"),
        ({"noise_std": 0.0}, "expected noise_std > 0"),
        ({"noise_std": math.nan}, "expected noise_std > 0"),
        ({"lipschitz": -1.0}, "expected lipschitz > 0"),
        ({"samples": 0}, "samples"),
        ({"rounds": 0}, "rounds"),
        ({"local_steps": 1.5}, "local_steps"),
        ({"rho": 0.0}, "expected rho > 0"),
        ({"strong_convexity": 3.0}, "strong_convexity <= smoothness"),
        ({"strong_convexity": -0.1}, "strong_convexity >= 0"),
        ({"participation": 2.0}, "participation"),
    ),
)
def test_refusals(change, message):
    with pytest.raises(TacitaError, match=message):
        fed_plt(**{"observer": "coordinator", **SETTING, **change})


def test_observer_has_no_default():
    with pytest.raises(TypeError, match="observer"):
        fed_plt(**SETTING)

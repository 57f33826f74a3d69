"""Exact divergences of runs: known ones are found, and no printed epsilon is below."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest

import tacita
from bench import truth
from tacita.audits import audit_exactly, compare, views
from tacita.audits.divergence import mixture_epsilon, shifts
from tacita.audits.gaussian_draws import count_draws, with_draws
from tacita.privacy import Clipped, Noisy
from tacita.privacy.letters import composition
from tacita.privacy.scope import Observer
from tacita.theory.gaussian import epsilon_of_mu
from tests.audits.faults import forgetful_noise_of_a_mean

DELTA = 1e-5


def empty(agents: int = 3, rows: int = 4, **more: Any) -> tacita.Problem:
    total = agents * rows
    owner = np.repeat(np.arange(agents), rows)
    return tacita.from_arrays(
        np.zeros((total, 2)), np.zeros(total), owner, model="linear", **more
    )


def noisy(std: Any = 0.5, **more: Any) -> Noisy:
    return Noisy(std=std, oracle=Clipped(norm=1.0, **more))


def test_draws_are_replaced_in_order_and_through_calls():
    def letters(key, mean):
        one, two = jax.random.split(key)
        first = jax.jit(lambda k: jax.random.normal(k, (2,)))(one)
        return mean + first, tacita.random_numbers.normal(two, (3,))

    key = jax.random.key(0)
    assert count_draws(letters, key, 1.0) == 5
    first, second = with_draws(letters, np.arange(5.0), key, 1.0)
    np.testing.assert_allclose(first, [1, 2], rtol=1e-6)
    np.testing.assert_allclose(second, [2, 3, 4], rtol=1e-6)

    def in_a_loop(key):
        return jax.lax.map(lambda k: jax.random.normal(k), jax.random.split(key, 3))

    with pytest.raises(tacita.TacitaError, match="inside a loop"):
        count_draws(in_a_loop, key)


def test_noise_that_is_missing_is_an_infinite_epsilon():
    slope = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # none in the third number
    (found,) = shifts(slope, np.array([4.0, 3.0, 0.0]))  # pyright: ignore
    assert np.linalg.norm(found) == pytest.approx(math.hypot(2, 3))
    assert shifts(slope, np.array([4.0, 3.0, 0.1])) is None


def test_a_map_is_inverted_where_divide_and_conquer_gives_up(monkeypatch):
    def gives_up(*_: Any, **__: Any) -> None:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", gives_up)
    (found,) = shifts(2 * np.eye(3), np.array([4.0, 0.0, 0.0]))  # pyright: ignore
    assert np.linalg.norm(found) == pytest.approx(2)
    assert (
        mixture_epsilon(
            np.ones((40, 2)), np.zeros((40, 2)), 0.1, np.random.default_rng(0)
        )
        >= 0
    )


def test_a_mixture_is_bounded_from_below_and_not_by_much():
    rng = np.random.default_rng(0)
    hit = rng.uniform(size=(100_000, 1)) < 0.5
    bound = mixture_epsilon(2.0 * hit, 0.0 * hit, 0.02, rng)
    # max over events of P - e^eps Q, integrated on a grid
    x = np.linspace(-9, 11, 20_001)
    q = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    p = (q + q * np.exp(2 * x - 2)) / 2
    grid = np.linspace(0, 8, 801)
    gained = [np.sum(np.maximum(p - math.exp(e) * q, 0)) * (x[1] - x[0]) for e in grid]
    truth_ = grid[np.searchsorted(-np.array(gained), -0.02)]
    assert 0.7 * truth_ < bound < truth_


def test_known_divergences_are_found():
    """Letters with fresh noise: mu^2 = T (2 C/(m std))^2, whoever sees them."""
    rows = compare(
        empty(), tacita.ServerGD(step_size=0.3, oracle=noisy()), rounds=4, delta=DELTA
    )
    mu = math.sqrt(4) * 2 / (4 * 0.5)
    for row in rows:
        assert not row.false and row.tightness == pytest.approx(1.0, rel=1e-6)
        if row.scope.words["observer"] == "coordinator":
            units = {"record": 1, "client": 4}[row.scope.unit]
            assert row.exact == pytest.approx(epsilon_of_mu(units * mu, DELTA))


def test_the_forgotten_step_sizes_are_found(monkeypatch):
    uneven = tacita.FedAvg(step_size=np.array([0.4, 0.05, 0.05]), oracle=noisy())
    ask: Any = {"rounds": 2, "delta": DELTA, "agents": (0,), "units": ("record",)}
    assert not any(row.false for row in compare(empty(), uneven, **ask))
    monkeypatch.setattr(composition, "noise_of_a_mean", forgetful_noise_of_a_mean)
    false = {row.scope.observer for row in compare(empty(), uneven, **ask) if row.false}
    assert false == {Observer.FINAL_MODEL, Observer.NEIGHBOUR}


#: One of each kind of account.
FAMILIES = ("FedAvg", "FedPLT", "FedSPD", "GossipSGD", "DPNorm")


def held(names: tuple[str, ...], configurations: int, seed: int) -> int:
    """Compare; every printed epsilon holds. How many there were."""
    printed = 0
    for shape, rows in truth.compared(configurations, seed, names):
        for row in rows:
            assert not row.false, f"{shape}\n{row}\n{row.theorem}"
            printed += row.printed is not None
    return printed


@pytest.mark.long
def test_no_printed_epsilon_is_below_the_exact_one(monkeypatch):
    """A sample of `python -m bench.truth`."""
    monkeypatch.setattr(truth, "PER_SHAPE", 2)
    monkeypatch.setattr(views, "_DRAWS", 4_000)
    assert held(FAMILIES, 2 * len(FAMILIES), seed=6) > 100


@pytest.mark.long
@pytest.mark.parametrize("name", truth.MAKE)
def test_no_printed_epsilon_of_any_algorithm_is_below(name, monkeypatch):
    monkeypatch.setattr(truth, "PER_SHAPE", 3)
    assert held((name,), 6, seed=7) > 0


def test_a_plan_is_compared_on_its_twin():
    draw = np.random.default_rng(0)
    problem = tacita.from_arrays(
        draw.normal(size=(60, 5)), draw.integers(0, 2, 60), np.repeat(range(6), 10)
    )
    plan = tacita.FedAvg(step_size=np.linspace(0.1, 0.5, 6), oracle=noisy(0.3))
    found = audit_exactly(problem, plan, rounds=20, participation=5)
    assert not found.refuted and "4 of 6 agents, 8 of 20 rounds" in str(found)
    (row, *_) = found.against("coordinator").rows
    assert row.tightness == pytest.approx(1.0, rel=1e-6)
    assert {r.scope.observer for r in found.against("neighbour").rows} == {"neighbour"}


def test_an_exchange_without_numbers_is_no_letter():
    """TAMUNA's second one; its noise is drawn block by block, which is refused."""
    loops = tacita.TAMUNA(
        step_size=0.2, eta=0.3, local_steps=2.0, fixed=True, oracle=noisy()
    )
    ask: Any = {"rounds": 1, "agents": (0,), "units": ("record",)}
    with pytest.raises(tacita.TacitaError, match="inside a loop"):
        compare(empty(), loops, **ask)
    longer = tacita.FedLin(step_size=0.1, local_steps=2, oracle=noisy())
    rows = compare(empty(), longer, **ask)
    seen = [row for row in rows if row.scope.observer == Observer.COORDINATOR]
    assert all(row.tightness == pytest.approx(1.0, rel=1e-6) for row in seen)


@pytest.mark.parametrize(
    ("problem", "oracle", "message"),
    (
        ("logistic", noisy(), "model='linear'"),
        ("filled", noisy(oracle=tacita.Minibatch(size=2)), "needs empty rows"),
    ),
)
def test_refusals(problem, oracle, message):
    model = "logistic" if problem == "logistic" else "linear"
    made = tacita.from_arrays(
        np.ones((8, 2)), np.tile([0.0, 1.0], 4), np.repeat([0, 1], 4), model=model
    )
    with pytest.raises(tacita.TacitaError, match=message):
        compare(made, tacita.FedAvg(step_size=0.1, oracle=oracle), rounds=1)

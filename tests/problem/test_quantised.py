"""Gradients of few bits: their levels, their law, what the bits are best spent on."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.problem import synthetic
from tacita.problem.oracles import AgentOracle
from tacita.schedule import Listed, Polynomial
from tacita.theory import descent
from tacita.trees import tree_rows

PROBLEM = synthetic.linear(agents=3, features=4, samples=12, noise=0.5, seed=2)


def rounded(oracle: Any, key: Any, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A rounded gradient of the first agent, and the exact one."""
    population = PROBLEM.population
    local = population.local(tree_rows(population.rows, 0))
    return (
        np.asarray(AgentOracle(oracle, local).once(key, jnp.asarray(w))),
        np.asarray(local.grad(jnp.asarray(w))),
    )


@pytest.mark.parametrize("bits", [1, 3, 8])
@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_entries_are_levels_near_the_gradient(bits: int, rounding: str):
    oracle = tacita.Quantised(bits=bits, range=8.0, rounding=rounding)
    with jax.enable_x64(True):
        got, exact = rounded(oracle, jax.random.key(1), np.array([1.0, -2, 0.5, 0]))
    levels = np.linspace(-8.0, 8.0, 2**bits)
    assert np.abs(got[:, None] - levels).min(axis=1).max() < 1e-12
    step = 16.0 / (2**bits - 1)
    assert np.abs(got - exact).max() <= step * (0.5 if rounding == "nearest" else 1.0)


def test_stochastic_rounding_is_right_on_average():
    oracle, w = tacita.Quantised(bits=2, range=8.0), np.array([1.0, -2, 0.5, 0])
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(3), 4000)
        population = PROBLEM.population
        agent = AgentOracle(oracle, population.local(tree_rows(population.rows, 0)))
        draws = np.asarray(jax.vmap(lambda k: agent.once(k, jnp.asarray(w)))(keys))
        exact = np.asarray(agent.local.grad(jnp.asarray(w)))
    # A level above with the probability of the share of the way to it.
    step = 16.0 / 3
    share = (exact + 8.0) / step % 1.0
    spread = step * np.sqrt(share * (1 - share))
    assert np.all(np.abs(draws.mean(axis=0) - exact) < 5 * spread / np.sqrt(4000))
    np.testing.assert_allclose(draws.std(axis=0), spread, rtol=0.1)


def test_what_lies_beyond_the_range_is_cut():
    oracle = tacita.Quantised(bits=6, range=0.01, rounding="stochastic")
    with jax.enable_x64(True):
        got, exact = rounded(oracle, jax.random.key(0), np.full(4, 3.0))
    np.testing.assert_allclose(got, 0.01 * np.sign(exact))


def test_bad_ones_are_refused():
    for given in ({"bits": 0}, {"bits": 2.5}, {"bits": 33}, {"range": 0.0}):
        with pytest.raises(tacita.TacitaError, match=next(iter(given))):
            tacita.Quantised(**{"bits": 4, "range": 1.0, **given})
    with pytest.raises(tacita.TacitaError, match="list them"):
        tacita.Quantised(bits=Polynomial(start=4.0), range=1.0)
    with pytest.raises(tacita.TacitaError, match="whole number"):
        tacita.Quantised(bits=Listed(values=[4, 4.5]), range=1.0)
    once = tacita.Quantised(bits=4, range=1.0)
    with pytest.raises(tacita.TacitaError, match="quantised already"):
        tacita.Quantised(bits=4, range=1.0, oracle=once)
    with pytest.raises(tacita.TacitaError, match="round afterwards"):
        tacita.Noisy(std=0.1, oracle=once)


def descent_with(bits: Any, step: float, rounds: int) -> tacita.Run:
    """Gradient descent on the mean loss with so many bits in every round."""
    coarse = tacita.Quantised(bits=bits, range=40.0, rounding="nearest")
    algorithm = tacita.ServerGD(step_size=step, oracle=coarse)
    return tacita.simulate(PROBLEM, algorithm, rounds, record=(), start=START)


START = np.array([2.0, -2.0, 1.0, 3.0])


def test_bits_are_best_spent_late():
    """Exercise 4.6: the same bits as `best_bits` shares them, evenly, or backwards."""
    moduli, rounds, each = PROBLEM.moduli, 24, 7
    low = float(moduli.strong_convexity.mean())
    high = float(moduli.smoothness.mean())
    step = descent.best_step_size(low, high)
    kappa = descent.contraction(step, low, high)
    shared = descent.best_bits(kappa, rounds, rounds * each)
    whole = np.maximum(np.floor(shared), 1)
    # The bits that were rounded off go to the last rounds.
    spare = int(rounds * each - whole.sum())
    assert 0 <= spare <= rounds
    whole[rounds - spare :] += 1
    assert whole.sum() == rounds * each and whole[-1] > whole[0] + 2
    orders = {"late": whole, "even": np.full(rounds, each), "early": whole[::-1]}
    runs = {
        name: descent_with(Listed(values=bits), step, rounds)
        for name, bits in orders.items()
    }
    best = PROBLEM.solve()
    errors = {name: np.linalg.norm(r.params - best) for name, r in runs.items()}
    assert errors["late"] < 0.5 * errors["even"] < 0.5 * errors["early"]
    # None is off by more than (88) allows, with half a level in each of 4 entries.
    for name, bits in orders.items():
        off = step * np.sqrt(4) * 40.0 / (2.0**bits - 1)
        start = float(np.linalg.norm(START - best))
        assert errors[name] <= descent.perturbed_error(kappa, start, off)
    # All send the same number of bits: 7 for each of 4 numbers, in whole bytes.
    sent = {run.info["communication"]["bytes_up"] for run in runs.values()}
    assert sent == {3 * rounds * 4}


def test_only_letters_that_are_gradients_have_few_bits():
    coarse = tacita.Quantised(bits=5, range=8.0)
    told = {}
    for algorithm in (
        tacita.DPSGD(step_size=0.01, oracle=coarse),
        tacita.FedAvg(step_size=0.01, oracle=coarse),
    ):
        run = tacita.simulate(PROBLEM, algorithm, 2, record=())
        told[type(algorithm).__name__] = run.info["communication"]["bytes_up"]
    assert told == {"DPSGD": 3 * 2 * 3, "FedAvg": 3 * 2 * 4 * 8}

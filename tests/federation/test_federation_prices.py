"""Prices of rounds: each when its letter is charged, and all together."""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from tacita.federation.prices import Prices
from tacita.privacy import Clipped, NoiseSchedule, Noisy, Question, Scope

SCOPE, TOLD = Scope("coordinator"), Scope("neighbour")


def prices_of(schedule: NoiseSchedule | None, rounds: int) -> Prices:
    problem = tacita.problem.synthetic.logistic(agents=1, features=2, samples=20)
    noisy = Noisy(std=0.3, oracle=Clipped(norm=1.0), schedule=schedule)
    asked = Question(scope=SCOPE, agent=0, rounds=1)
    algorithm = tacita.FedAvg(step_size=0.1, oracle=noisy)
    return Prices(algorithm, problem, asked, rounds, TOLD)


@pytest.mark.parametrize("schedule", [None, NoiseSchedule(weights=[4, 3, 2, 1])])
def test_all_that_is_left_costs_what_its_rounds_cost(schedule):
    prices = prices_of(schedule, 6)
    each = {number: price.mu for number, price in prices.items()}
    assert len(prices) == 6 and all(one.scope == TOLD for one in prices.values())
    assert (len(set(each.values())) == 1) == (schedule is None)
    for charged in ((), (1,), (2, 5), (1, 2, 3, 4, 5)):
        left = prices.left(charged)
        rest = [mu for number, mu in each.items() if number not in charged]
        np.testing.assert_allclose(left.mu, np.hypot.reduce(rest), rtol=1e-12)
    assert prices.left(range(1, 7)) is None
    for beyond in (0, 7):
        with pytest.raises(KeyError):
            prices[beyond]


def test_a_long_run_is_priced_without_pricing_its_rounds(monkeypatch):
    """How long it is is for a coordinator to say: an offer must not stop an agent."""
    rounds, asked = 100_000, []
    prices = prices_of(NoiseSchedule.prefix(rounds), rounds)
    price = prices._price
    monkeypatch.setattr(prices, "_price", lambda n: asked.append(n) or price(n))
    assert prices.left({1}).mu > prices[1].mu > prices[rounds].mu
    assert [len(numbers) for numbers in asked] == [rounds - 1, 1, 1]

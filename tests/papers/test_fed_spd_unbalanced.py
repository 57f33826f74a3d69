"""What FedSPD's new pages are made of: unequal clients, an l1 weight for FedAvg."""

from __future__ import annotations

import csv
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from papers.fed_spd.common import adult, deals
from papers.fed_spd.common.soft_mean import SoftMean

RESULTS = Path(adult.__file__).parent.parent / "results"


@pytest.fixture
def table(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 2))
    y = np.where(rng.uniform(size=20_000) < 0.3, 1.0, -1.0)
    made = adult.Table(x, y, x[:5], y[:5])
    monkeypatch.setattr(deals, "tables", lambda: (made, made))
    return made


def test_uneven_clients_have_enough_rows_and_one_class(table):
    even, uneven, sorted_ = (deals.agents_of(deal) for deal in deals.DEALS)
    assert np.ptp(np.bincount(even)) <= 1
    sizes = np.bincount(uneven, minlength=100)
    assert sizes.min() >= deals.LEAST and sizes.max() > 3 * np.median(sizes)
    np.testing.assert_array_equal(np.bincount(sorted_), sizes)
    shares = [np.mean(table.y[sorted_ == i] > 0) for i in range(100)]
    assert np.mean(np.isin(shares, (0.0, 1.0))) >= 0.99


def test_the_mean_letter_is_shrunk():
    problem = tacita.problem.synthetic.logistic(agents=4, features=3, samples=20)
    plain = tacita.FedAvg(step_size=0.5, local_steps=2)
    mean = tacita.simulate(problem, plain, 1, record=()).params
    run = tacita.simulate(
        problem, plain, 1, record=(), aggregation=SoftMean(threshold=0.05)
    )
    soft = np.sign(mean) * np.maximum(np.abs(mean) - 0.05, 0)
    np.testing.assert_allclose(run.params, soft, atol=1e-12)
    assert jnp.all(jnp.abs(soft) <= jnp.abs(mean))


def rows_of(name: str) -> list[dict[str, str]]:
    with open(RESULTS / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_nobody_spends_more_than_the_budget():
    """The smallest client spends it, the largest no more; noise follows rows."""
    for row in rows_of("unbalanced_private"):
        spent = [float(v) for v in row["epsilon spent"].split(", ")]
        noise = [float(v) for v in row["noise"].split(", ")]
        rows = [int(v) for v in row["rows"].split(", ")]
        assert spent[0] == pytest.approx(1.0, abs=2e-3) and max(spent) <= 1.001
        if row["gradients of"] == "all rows":
            # noise * rows is the same for all
            products = np.array(noise) * np.array(rows)
            np.testing.assert_allclose(products, products[0], rtol=0.01)
        else:
            assert len(set(noise)) == 1 and spent[2] <= spent[1] <= spent[0]


def test_every_deal_is_run_with_every_number_of_local_steps():
    found = {(row["data"], row["Q"]) for row in rows_of("unbalanced")}
    deals = ("even", "uneven", "uneven, by class")
    assert found == {(deal, steps) for deal in deals for steps in ("1", "5", "10")}

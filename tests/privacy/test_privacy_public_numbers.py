"""No number of a private run comes from rows, or the report says so."""

from __future__ import annotations

import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.audits import Canary
from tacita.audits.canary import with_record
from tacita.privacy import Noisy, letters_of
from tacita.privacy.blind import looks_at_rows
from tacita.problem import graph, synthetic
from tacita.trees import frozen, static
from tests.cases import CASES

DELTA, BOUND, ROUNDS = 1e-5, 6.0, 4
RING = graph.ring(4)
#: Steps that do not expand for rows up to the bound: L = BOUND^2/4 + l2 = 9.1.
SAFE = {
    "FedSPD": tacita.FedSPD(rho=1.0, gamma=5.0, local_steps=3),
    "DPFedAvg": tacita.DPFedAvg(step_size=0.2, local_steps=3),
    "FedPLT": tacita.FedPLT(
        rho=1.0, solver=tacita.solvers.GradientDescent(step_size=0.15, local_steps=3)
    ),
    "DPNorm": tacita.DPNorm(step_size=0.2, local_steps=3),
}
#: Steps that would not expand for the rows that are there, but for rows within the
#: bound: what is there must not decide.
BETWEEN = {
    "FedSPD": tacita.FedSPD(rho=1.0, gamma=4.0, local_steps=3),
    "DPFedAvg": tacita.DPFedAvg(step_size=0.25, local_steps=3),
    "FedPLT": tacita.FedPLT(
        rho=1.0, solver=tacita.solvers.GradientDescent(step_size=0.21, local_steps=3)
    ),
    "DPNorm": tacita.DPNorm(step_size=0.25, local_steps=3),
}
each = pytest.mark.parametrize("name", SAFE)


def data(bound: float | None = None, l2: float = 0.1) -> tacita.problem.Problem:
    return synthetic.logistic(4, 3, 10, l2, graph=RING, bound=bound)


def longer(problem: tacita.problem.Problem, factor: float = 30.0):
    """The same data but for one row: its neighbour."""
    x, y, _ = problem.stacked()
    agent = np.repeat(np.arange(4), 10)
    x = x.copy()
    x[0, 0] *= factor
    return tacita.from_arrays(
        x.reshape(-1, 3),
        y.ravel(),
        agent,
        l2=0.1,
        graph=RING,
        bound=problem.bound,
    )


def budget(algorithm) -> dict:
    on_graph = isinstance(algorithm, tacita.DPNorm)
    observer = "neighbour" if on_graph else "coordinator"
    return {"epsilon": 1.0, "delta": DELTA, "observer": observer, "rounds": ROUNDS}


def noise(problem, algorithm) -> float:
    safe = tacita.private(problem, algorithm, **budget(algorithm))
    return float(np.max(letters_of(safe).noise_std))


@each
def test_with_a_bound_one_row_moves_no_noise(name):
    # Left to theory, numbers are public too.
    for algorithm in (SAFE[name], BETWEEN[name], type(SAFE[name])()):
        problem = data(BOUND)
        assert noise(problem, algorithm) == noise(longer(problem), algorithm)
    assert noise(data(BOUND), BETWEEN[name]) > noise(data(), BETWEEN[name])


@pytest.mark.few(2)
@each
def test_without_one_it_does_and_the_report_says_so(name):
    """One row of ten made FedSPD's noise 36.2 of 3.62, DPFedAvg's 83.4 of 8.34."""
    algorithm, problem = SAFE[name], data()
    before, after = noise(problem, algorithm), noise(longer(problem), algorithm)
    assert after > 1.01 * before
    if name in ("FedSPD", "DPFedAvg"):
        assert after == pytest.approx(10 * before, rel=1e-3)
    safe = tacita.private(problem, algorithm, **budget(algorithm))
    report = tacita.simulate(problem, safe, ROUNDS, seed=1).privacy
    (words,) = report.violated()
    assert "give the problem bound=" in words
    assert "V1: violated: " in str(report)
    row = report.row(budget(algorithm)["observer"])
    assert not any("was chosen by looking" in a["statement"] for a in row.assumptions)
    # And tells no fact of the rows.
    longest = np.linalg.norm(problem.stacked()[0], axis=-1).max()
    facts = [longest, *problem.moduli.smoothness, *problem.moduli.strong_convexity]
    facts += [0.25 * longest**2 + 0.1, np.sqrt(2) * longest]
    facts += [*(problem.moduli.smoothness + 0.25 * longest**2 / 10)]
    told = str(report) + json.dumps(report.as_dict())
    for fact in facts:
        for shown in (f"{fact:g}", f"{fact:.4g}", repr(float(fact))):
            assert shown == "0.1" or shown not in told


@each
def test_with_a_bound_the_report_holds(name):
    algorithm, problem = SAFE[name], data(BOUND)
    safe = tacita.private(problem, algorithm, **budget(algorithm))
    report = tacita.simulate(problem, safe, ROUNDS, seed=1).privacy
    assert report.violated() == []
    assert "enforced: no record has features longer than 6" in str(report)
    assert "believed: no number of the algorithm was chosen by looking" in str(report)
    assert report.row(budget(algorithm)["observer"]).epsilon == pytest.approx(1, 1e-3)
    if name in ("FedPLT", "DPNorm"):
        assert "9.1-smooth" in str(report)  # BOUND^2/4 + l2


@pytest.mark.long
def test_numbers_that_theory_sets_from_rows_are_named():
    noisy = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=1.0))
    words = "no number of the algorithm was chosen by looking at private data"
    by_theory = tacita.FedAvg(oracle=noisy)
    by_hand = tacita.FedAvg(step_size=0.1, oracle=noisy)
    for problem, algorithm, status in (
        (data(), by_theory, "violated"),
        (data(), by_hand, "believed"),
        (data(BOUND), by_theory, "believed"),
    ):
        told = [
            tacita.simulate(problem, algorithm, 2, seed=1).privacy,
            tacita.privacy.forecast(problem, algorithm, rounds=2),
        ]
        asked = {**budget(algorithm), "rounds": 2}
        safe = tacita.private(problem, algorithm, **asked)
        told.append(tacita.simulate(problem, safe, 2, seed=1).privacy)
        # A run file keeps it as well.
        table = tacita.job.table_of(safe)
        again = tacita.job.records.build(table)
        told.append(tacita.privacy.forecast(problem, again, rounds=2))
        silent = tacita.privacy.within_budgets(
            problem, algorithm, epsilon=9.0, delta=DELTA, observer="coordinator"
        )
        told.append(tacita.simulate(problem, silent, 2, seed=1).privacy)
        for report in told:
            (found,) = {
                one["status"]
                for one in report.row("coordinator").assumptions
                if one["statement"].startswith(words)
            }
            assert found == status


#: What somebody's own theory may ask a problem that depends on its rows.
TOLD = {
    "loss": lambda problem: problem.loss(problem.start),
    "grad": lambda problem: np.linalg.norm(problem.grad(problem.start)),
    "accuracy": lambda problem: problem.accuracy(problem.start),
    "solve": lambda problem: np.linalg.norm(problem.solve()),
    "stacked": lambda problem: problem.stacked()[1].max(),
    "holdings": lambda problem: max(problem.holdings()["+1"]),
}


@frozen
class SetFromRows(tacita.FedAvg):
    """Its step size is set by a theory of somebody's own."""

    asks: str = static(default="loss")

    def resolve(self, problem):
        told = float(TOLD[self.asks](problem))
        return dataclasses.replace(self, step_size=0.1 / (1 + told))


@pytest.mark.parametrize("asks", TOLD)
def test_whatever_of_the_rows_a_number_was_set_from_is_named(asks):
    """A bound on rows makes their moduli public, and nothing else."""
    algorithm = SetFromRows(asks=asks)
    assert 0 < algorithm.resolve(data(BOUND)).step_size < 0.1
    assert looks_at_rows(algorithm, data(BOUND))


@pytest.mark.long
def test_a_page_warns_of_what_is_violated(tmp_path):
    noisy = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=1.0))
    run = tacita.simulate(data(), tacita.FedAvg(oracle=noisy), 2, seed=1)
    page = tacita.report.write_report(run, tmp_path).read_text()
    assert "no epsilon of this run is proved" in page


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_with_a_bound_theory_never_looks_at_rows(case):
    free = emptied(case.algorithm)
    bounded = dataclasses.replace(case.problem(), bound=50.0)
    assert not looks_at_rows(free, bounded)


def test_nor_for_coupled_linear_models():
    """Their Hessian is looked at where there is no bound."""
    free = tacita.FedGD(alpha=0.5)
    for bound, looked in ((None, True), (50.0, False)):
        problem = synthetic.linear(4, 3, 10, graph=RING, bound=bound)
        assert looks_at_rows(free, problem) == looked
        assert free.resolve(problem).step_size > 0


def emptied(algorithm):
    """The same algorithm with every number that theory can set left to it."""
    rules = tacita.trees.rules(type(algorithm))
    none = {name: None for name, rule in rules.items() if rule.theory is not None}
    return tacita.trees.replace(algorithm, **none)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_clipped_to_the_bound(dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 5)) * np.logspace(-3, 200, 40)[:, None]
    y = np.sign(rng.normal(size=40))
    for intercept in (False, True):
        made = tacita.from_arrays(
            x, y, np.zeros(40, int), intercept=intercept, dtype=dtype, bound=2.0
        )
        rows = made.stacked()[0][0].astype(np.float64)
        lengths = np.linalg.norm(rows, axis=1)
        assert np.all(lengths <= 2.0) and lengths.max() > 2.0 * (1 - 1e-5)
        given = np.hstack([x, np.ones((40, 1))]) if intercept else x
        short = np.linalg.norm(given[:10], axis=1) < 1.9
        assert short.any()
        np.testing.assert_array_equal(rows[:10][short], given[:10][short].astype(dtype))
        # Their direction stays.
        unit = given / np.abs(given).max(axis=1, keepdims=True)
        cosine = np.sum(rows * unit, axis=1) / lengths / np.linalg.norm(unit, axis=1)
        np.testing.assert_allclose(cosine, 1.0, atol=1e-5)
        assert made.moduli.largest == 0.25 * 4 and made.moduli.smallest == 0
        assert made.describe()["bound"] == 2.0


def test_a_bound_is_a_positive_number():
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(tacita.TacitaError, match="expected bound > 0"):
            data(wrong)


def test_a_canary_is_a_row_like_the_others():
    problem = data(BOUND)
    made = with_record(problem, 0, 0, (np.array([400.0, 300.0, 0.0]), 1.0))
    assert made.bound == BOUND
    np.testing.assert_allclose(made.stacked()[0][0, 0], [4.8, 3.6, 0], rtol=1e-12)


@frozen
class NoiseOfTheRows(Noisy):
    """Noise in proportion to the longest row, as if it were set by looking at it."""

    def grad(self, local, draw, w):
        rows, noise = draw
        longest = jnp.sqrt(jnp.max(jnp.sum(local.x**2, axis=1)))
        return super().grad(local, (rows, longest * noise), w)


@pytest.mark.long
def test_an_audit_refutes_noise_that_depends_on_a_row():
    problem = tacita.from_arrays(np.zeros((4, 2)), np.ones(4), [0, 0, 1, 1], l2=0.1)
    plain = tacita.ServerGD(step_size=0.3)
    asked = {"epsilon": 1.0, "delta": 0.01, "observer": "coordinator", "rounds": 3}
    honest = tacita.private(problem, plain, **asked)
    looked = NoiseOfTheRows(std=honest.oracle.std, oracle=honest.oracle.oracle)
    pair = Canary(([4.0, 0.0], 1.0), ([1.0, 0.0], 1.0))
    found = [
        tacita.audit(
            problem,
            dataclasses.replace(honest, oracle=oracle),
            observer="coordinator",
            rounds=3,
            runs=2000,
            canary=pair,
        )
        for oracle in (honest.oracle, looked)
    ]
    assert [one.refuted for one in found] == [False, True]

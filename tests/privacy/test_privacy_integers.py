"""Noise of exact integers, accounted: a sum of one letter."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.algorithm.fed_spd import State, Told
from tacita.integer_noise import SPREAD
from tacita.privacy import PoissonReplaced, Question, Scope, account, letters_of
from tacita.privacy.clipped import Clipped
from tacita.privacy.letters.mixing import places
from tacita.privacy.letters.on_grid import Release, rounding_of
from tacita.privacy.noisy import Noisy
from tacita.privacy.scope import Relation
from tacita.problem.graph import ring
from tacita.problem.oracles import AgentOracle, Minibatch
from tacita.runtime.seat import Seats
from tacita.trees import in_double_precision, tree_rows

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "observer": "coordinator", "rounds": 4}
PROBLEM = tacita.problem.synthetic.logistic(agents=3, features=5, samples=40)
ON_GRAPH = tacita.problem.synthetic.logistic(
    agents=3, features=5, samples=40, graph=ring(3)
)
#: Every way of adding noise: in gradients, once in a letter, on a graph.
ALGORITHMS: dict[str, Any] = {
    "gradient": tacita.DPSGD(step_size=0.5),
    "batches": tacita.DPSGD(
        step_size=0.5, oracle=Minibatch(size=8, sampling="poisson")
    ),
    "steps": tacita.FedAvg(step_size=0.2, local_steps=3),
    "splitting": tacita.FedPLT(),
    "letter": tacita.DPFedAvg(step_size=0.1, local_steps=3),
    "dual": tacita.FedSPD(local_steps=2),
    "gossip": tacita.GossipSGD(step_size=0.2),
    "norm": tacita.DPNorm(local_steps=2),
}


def planned(name: str, kind: str = "integers", **more: Any) -> tuple[Any, Any]:
    algorithm = ALGORITHMS[name]
    graph = name in ("gossip", "norm")
    problem, who = (ON_GRAPH, "neighbour") if graph else (PROBLEM, "coordinator")
    about = BUDGET | {"observer": who, "noise_kind": kind} | more
    return problem, tacita.private(problem, algorithm, **about)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_budget_is_kept_with_hardly_more_noise(name: str):
    problem, made = planned(name)
    usual = letters_of(planned(name, "float")[1]).noise_std
    letters = letters_of(made)
    more = np.max(np.asarray(letters.noise_std) / np.asarray(usual))
    # Fed-PLT's own theorem is about real numbers: here its steps are composed.
    assert 1 < more < (2 if name == "splitting" else 1 + 1e-5)
    observer = "neighbour" if problem is ON_GRAPH else "coordinator"
    told = tacita.privacy.forecast(problem, made, rounds=4)
    row = told.row(observer)
    assert row.epsilon is not None and 0.999 < row.epsilon <= 1.0
    assert "docs/proof-secure-sums.md, h = 1" in row.theorem
    assert any("exact integers" in one["statement"] for one in row.assumptions)


@pytest.mark.parametrize("name", ["steps", "letter"])
def test_theorems_about_real_noise_are_not_used(name: str):
    """Who sees means, or last models, counts as if it saw every letter."""
    problem, made = planned(name)
    told = tacita.privacy.forecast(problem, made, rounds=4)
    assert told.row("final_model").mu == told.row("coordinator").mu
    _, real = planned(name, "float")
    told = tacita.privacy.forecast(problem, real, rounds=4)
    assert (told.row("final_model").mu or 9) < (told.row("coordinator").mu or 0)


def test_nodes_do_not_mix_integers():
    bounded = tacita.problem.synthetic.logistic(
        agents=3, features=5, samples=40, graph=ring(3), bound=3.0
    )
    for kind, mixed in (("float", True), ("integers", False)):
        noisy = Noisy(std=1.0, oracle=Clipped(norm=1.0), noise_kind=kind)
        gossip = tacita.GossipSGD(step_size=0.2, oracle=noisy)
        assert (places(gossip, bounded) is not None) == mixed


def test_mu_is_that_of_a_sum_of_one_letter():
    problem, made = planned("gradient")
    scope = Scope("coordinator")
    question = Question(scope=scope, agent=0, rounds=4)
    found = letters_of(made).theorem(problem, question)
    step = float(made.oracle.std) / SPREAD
    slack = rounding_of(40, 5, Relation.REPLACE_ONE)
    change = (2 / 40) * (1 + slack) / step + math.sqrt(5)
    assert found.mu == pytest.approx(2 * change / math.sqrt(SPREAD**2 - 4), rel=1e-12)


def test_two_records_of_a_poisson_batch_are_rounded_one_by_one():
    """Either adds what is rounded: half the change, and a whole step an entry."""
    scope = Scope("coordinator", "record", "replace_one")
    batch = Clipped(norm=1.0, oracle=Minibatch(size=8, sampling="poisson"))
    noise = Noisy(std=0.2, oracle=batch, noise_kind="integers")
    algorithm = tacita.DPSGD(step_size=0.5, oracle=noise).resolve(PROBLEM)
    question = Question(scope=scope, agent=0, rounds=3)
    found = letters_of(algorithm).theorem(PROBLEM, question)
    grid, entries = 0.2 / SPREAD, PROBLEM.dim
    slack = rounding_of(40, entries, Relation.ADD_REMOVE)
    steps = 2 * (1 / 8 * (1 + slack) / grid + math.sqrt(entries))
    by_hand = account(
        **scope.words,
        noise_std=math.sqrt(SPREAD**2 - 4),
        sensitivity=steps,
        rounds=3,
        sampling=PoissonReplaced(8 / 40),
    )
    assert found.epsilon(1e-5) == pytest.approx(by_hand.epsilon(1e-5), rel=1e-9)


def test_a_coarse_grid_pays_for_its_rounding():
    """Noise far above the change: rounding by whole steps is most of what is seen."""
    fine = Release(True, 1.0, 10_000, 10, Relation.REPLACE_ONE)
    assert fine.hidden_by(1.0) == pytest.approx(1.0, rel=1e-5)
    std = SPREAD  # a step of 1: 10,000 entries move by up to 100
    assert fine.hidden_by(std) == pytest.approx(std / 101, rel=1e-6)
    as_reals = Release(False, 1.0, 10_000, 10, Relation.REPLACE_ONE)
    assert as_reals.hidden_by(std) == std


@in_double_precision
def test_released_gradients_are_integers_and_move_no_further_than_accounted():
    """One record against its worst replacement, as integers without their noise."""
    norm, rows = 1.0, 40
    oracle = Noisy(std=2e6, oracle=Clipped(norm=norm), noise_kind="integers")
    step = 2e6 / SPREAD
    release = Release(True, 2 * norm / rows, 5, rows, Relation.REPLACE_ONE)
    slack = rounding_of(rows, 5, Relation.REPLACE_ONE)
    most = release.change * (1 + slack) / step + math.sqrt(5)
    rng, w = np.random.default_rng(0), jnp.linspace(-1, 2, 5)
    x, y = rng.normal(size=(rows, 5)), np.arange(rows) % 2
    moved = []
    for sign in (1, -1):
        x[0] = sign * rng.permutation([1e3, 2e3, -1e3, 5e2, 3e3])
        problem = tacita.from_arrays(x, y, np.zeros(rows, int), l2=0.5)
        agent = AgentOracle(oracle, Seats(tacita.DPSGD(), problem.population)[0].local)
        released = agent((None, jnp.zeros(5, jnp.int64)), w)
        steps = np.asarray((released - 0.5 * w) / step)
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)
        moved.append(steps)
    assert 0 < np.linalg.norm(moved[0] - moved[1]) <= most


@pytest.mark.long
@pytest.mark.parametrize("name", ["norm", "letter", "dual"])
def test_simulated_as_debugged(name: str):
    problem, made = planned(name)
    runs = [f(problem, made, 1, seed=5) for f in (tacita.simulate, tacita.debug)]
    np.testing.assert_allclose(runs[0].agents, runs[1].agents, rtol=1e-12, atol=1e-13)
    assert "JAX's generator, which is for simulations" in runs[0].privacy.noise
    assert "exact integers on a grid" in runs[0].privacy.noise


def test_a_hidden_state_has_no_bound_with_integers():
    hidden = tacita.FedSPD(
        state="hidden",
        paper_noise=True,
        noise_std=1.0,
        noise_kind="integers",
        rho=1.0,
        gamma=5.0,
        oracle=Clipped(norm=1.0),
    )
    told = tacita.privacy.forecast(PROBLEM, hidden, rounds=3)
    assert told.row("coordinator").epsilon is None
    assert "use state='public'" in told.row("coordinator").theorem


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"noise_kind": "exact"}, "noise_kind"),
        ({"quantile": 0.5}, "leave quantile out, or use noise_kind='float'"),
        ({"aggregation": "secure"}, "leave noise_kind out"),
    ],
)
def test_what_does_not_go_with_integers_is_refused(wrong: dict, words: str):
    with pytest.raises(tacita.TacitaError, match=words):
        planned("gradient", **wrong)


def test_noise_kind_stays_with_the_algorithm_and_in_run_files():
    _, made = planned("gradient")
    again = tacita.private(PROBLEM, made, **BUDGET)
    assert again.oracle.noise_kind == "integers"
    table = tacita.job.records.table_of(made)
    assert table["oracle"]["noise_kind"] == "integers"
    assert tacita.job.records.build(table).oracle.noise_kind == "integers"


@in_double_precision
def test_letters_that_hold_what_was_received_rest_on_its_size():
    """Beside a huge x0 a record turns how a letter is rounded, in one step already."""
    algorithm = tacita.FedSPD(
        rho=1.0,
        gamma=1.0,
        local_steps=1,
        noise_std=1.0,
        noise_kind="integers",
        oracle=Clipped(norm=4.0),
    )
    told, letters, rows = Told(jnp.array([-(2.0**53) - 2])), [], 100
    problem = PROBLEM
    for last in (1.5, 2.5):
        x = np.full((rows, 1), 2.0)
        x[-1] = last
        about: dict[str, Any] = {"model": "logistic", "bound": 2.5}
        problem = tacita.from_arrays(x, np.ones(rows), np.zeros(rows, int), **about)
        population = problem.population
        oracle = AgentOracle(
            algorithm.oracle, population.local(tree_rows(population.rows, 0))
        )
        before = State(jnp.zeros(1), jnp.zeros(1))
        letters.append(algorithm.local(jax.random.key(0), oracle, before, told)[1])
    # The theorem's change is 2 norm/rows, beside noise of 1.
    assert abs(letters[0] - letters[1])[0] > 10 * 8.0 / rows
    row = tacita.privacy.forecast(problem, algorithm, rounds=1).row("coordinator")
    assert "changes by at most 0.08 in" in str(row.assumptions)
    assert "what is received being bounded" in str(row.assumptions)


@pytest.mark.parametrize("own", ("float", "integers"))
def test_the_noise_that_is_accounted_says_its_kind(own: str):
    """DP-FedAvg's letters are hidden by its own noise, whatever its gradients have."""
    other = {"float": "integers", "integers": "float"}[own]
    algorithm = tacita.DPFedAvg(
        step_size=0.1,
        noise_std=1.0,
        noise_kind=own,
        oracle=Noisy(std=0.1, noise_kind=other, oracle=Clipped(norm=1.0)),
    )
    told = tacita.privacy.forecast(PROBLEM, algorithm, rounds=1).row("coordinator")
    assert ("hidden by exact integers" in str(told.assumptions)) == (own == "integers")


def test_a_share_with_floating_point_noise_is_no_integer():
    noisy = Noisy(std=1.0, noise_kind="integers", oracle=Clipped(norm=1.0))
    inner = tacita.DPSGD(step_size=0.5, oracle=noisy)
    adaptive = tacita.privacy.AdaptiveClipping(algorithm=inner, share_noise_std=0.1)
    told = tacita.privacy.forecast(PROBLEM, adaptive, rounds=1).row("coordinator")
    assert told.epsilon is None and "floating-point noise" in told.theorem

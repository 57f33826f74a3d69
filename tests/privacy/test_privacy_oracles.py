"""Accounts of steps that shrink, of rounded gradients and of streams."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.privacy import Clipped, Noisy, Question, Scope, forecast, guarantee
from tacita.problem import graph, synthetic
from tacita.problem.population import Population
from tacita.runtime.seat import Seat
from tacita.schedule import Geometric, Polynomial
from tacita.trees import double_precision, tree_rows

DELTA = 1e-5
SHRINKS = Polynomial(start=0.2, power=0.5)
PROBLEM = synthetic.logistic(agents=4, features=3, samples=40, seed=1, bound=2.0)
RING = synthetic.logistic(
    agents=4, features=3, samples=40, seed=1, bound=2.0, graph=graph.ring(4)
)


def noisy(inner: Any = None, std: float = 0.3) -> Noisy:
    return Noisy(std=std, oracle=Clipped(norm=1.0, oracle=inner or tacita.Full()))


def mu(algorithm: Any, observer: str, rounds: int = 10, **about: Any) -> float:
    problem = about.pop("problem", PROBLEM)
    told = forecast(problem, algorithm, rounds=rounds, delta=DELTA, **about)
    found = told.row(observer).mu
    assert found is not None
    return found


@pytest.mark.parametrize("local_steps", [1, 3])
def test_steps_that_shrink_cost_what_constant_ones_do(local_steps: int):
    """Noise and sensitivity shrink together; nobody contracts rounds of other steps."""
    given = {"local_steps": local_steps, "oracle": noisy()}
    constant = tacita.FedAvg(step_size=0.2, **given)
    shrinking = tacita.FedAvg(step_size=SHRINKS, **given)
    assert mu(shrinking, "coordinator") == mu(constant, "coordinator")
    # By composition: sqrt(rounds) times one round.
    one = mu(shrinking, "final_model", rounds=1)
    assert mu(shrinking, "final_model") == pytest.approx(np.sqrt(10) * one)
    assert mu(constant, "final_model") <= mu(shrinking, "final_model") * (1 + 1e-12)
    # Schedules of their own change who hides whom: then only own noise counts.
    own = Polynomial(start=[0.1, 0.2, 0.2, 0.2], decay=[1.0, 0.0, 0.0, 0.0])
    apart = tacita.FedAvg(step_size=own, **given)
    assert mu(apart, "final_model") == pytest.approx(mu(apart, "coordinator"))


def test_gossip_and_fed_plt_do_without_their_theorems():
    gossip = tacita.GossipSGD(step_size=0.2, oracle=noisy())
    shrinking = replace(gossip, step_size=SHRINKS)
    last = {"problem": RING, "in_step": True}
    by_steps = 10 * (2 / 40 / 0.3) ** 2
    assert mu(shrinking, "final_model", **last) == pytest.approx(np.sqrt(by_steps))
    assert mu(gossip, "final_model", **last) < mu(shrinking, "final_model", **last)
    solver = tacita.solvers.GradientDescent(step_size=0.2, local_steps=3)
    plt = tacita.FedPLT(rho=1.0, solver=solver, oracle=noisy())
    moving = replace(plt, solver=replace(solver, step_size=Geometric(start=0.2)))
    assert mu(moving, "coordinator") == pytest.approx(np.sqrt(3 * by_steps))


def neighbours() -> tuple[Population, Population]:
    """The first agent's row 5 is another one."""
    rows = PROBLEM.population.rows
    at = (0, slice(None), 5) if PROBLEM.population.by_feature else (0, 5)
    x, y = np.array(rows.x), np.array(rows.y)
    x[at], y[0, 5] = [2.0, 0.0, 0.0], -y[0, 5]
    one = PROBLEM.population
    return one, replace(one, rows=rows._replace(x=jnp.asarray(x), y=jnp.asarray(y)))


def letters(algorithm: Any, rounds: int, told: Any) -> list[np.ndarray]:
    """By how much a row changes the first agent's letters of rounds, same questions."""
    moved = []
    for k in range(1, rounds + 1):
        sent = []
        for population in neighbours():
            own = population.local(tree_rows(population.rows, 0))
            seat = Seat(algorithm, own)
            state = seat.begin(jnp.zeros(3))[0]
            sent.append(seat.answer(k, 0, jax.random.key(k), state, told(k))[1])
        moved.append(np.asarray(sent[0] - sent[1]))
    return moved


def question(k: int) -> Any:
    return jnp.asarray(np.random.default_rng(k).normal(size=3))


def test_letters_of_dp_fed_avg_move_no_further_than_the_account_says():
    with jax.enable_x64(True):
        algorithm = tacita.DPFedAvg(
            step_size=SHRINKS, local_steps=3, noise_std=0.5, oracle=Clipped(norm=1.0)
        )
        moved = letters(algorithm, 4, question)
    scope = Scope("coordinator", "record", "replace_one")
    asked = Question(scope=scope, agent=0, rounds=1, total=4)
    one = guarantee(algorithm, PROBLEM, asked).mu
    spent = [
        np.linalg.norm(v) / (0.5 * SHRINKS.over(4)[k]) for k, v in enumerate(moved)
    ]
    assert 0.05 * one < max(spent) <= one
    # A first step that may expand is counted as such, however short the last ones are.
    long = replace(algorithm, step_size=Polynomial(start=3.0))
    constant = replace(algorithm, step_size=3.0)
    short = replace(algorithm, step_size=0.2)
    assert guarantee(long, PROBLEM, asked).mu == guarantee(constant, PROBLEM, asked).mu
    assert guarantee(long, PROBLEM, asked).mu > 5 * guarantee(short, PROBLEM, asked).mu


def test_rounding_after_the_noise_costs_nothing():
    inner = noisy(tacita.Minibatch(size=8))
    rounded = tacita.Quantised(bits=4, range=2.0, oracle=inner)
    for algorithm in (tacita.FedAvg(step_size=0.2), tacita.DPSGD(step_size=0.2)):
        plain = replace(algorithm, oracle=inner)
        coarse = replace(algorithm, oracle=rounded)
        told = [
            forecast(PROBLEM, one, rounds=10, delta=DELTA).row("coordinator").epsilon
            for one in (plain, coarse)
        ]
        assert told[0] == told[1]


def test_rounded_noise_of_others_hides_nobody():
    """It is no Gaussian: against who sees broadcasts each has its own noise only."""
    rounded = tacita.Quantised(bits=4, range=2.0, oracle=noisy())
    for algorithm, problem in (
        (tacita.FedAvg(step_size=0.2), PROBLEM),
        (tacita.ServerGD(step_size=0.2), PROBLEM),
        (tacita.GossipSGD(step_size=0.2), RING),
    ):
        plain = replace(algorithm, oracle=noisy())
        coarse = replace(algorithm, oracle=rounded)
        about = {"problem": problem, "in_step": True}
        own = np.sqrt(10) * 2 / 40 / 0.3
        assert mu(coarse, "final_model", **about) == pytest.approx(own)
        assert mu(plain, "final_model", **about) < 0.9 * own


def test_budgets_set_the_noise_inside():
    coarse = tacita.Quantised(bits=4, range=2.0)
    algorithm = tacita.DPSGD(step_size=0.2, oracle=coarse)
    about = {"epsilon": 1.0, "delta": DELTA, "rounds": 10}
    safe = tacita.private(PROBLEM, algorithm, observer="final_model", **about)
    assert isinstance(safe.oracle, tacita.Quantised)
    assert isinstance(safe.oracle.oracle, Noisy) and safe.oracle.bits == 4
    row = forecast(PROBLEM, safe, rounds=10, delta=DELTA).row("final_model")
    assert row.epsilon == pytest.approx(1.0, rel=1e-3)
    # As much as against the coordinator: nobody else's noise is counted on.
    other = tacita.private(
        PROBLEM, tacita.DPSGD(step_size=0.2), observer="coordinator", **about
    )
    assert safe.oracle.std == pytest.approx(other.oracle.std, rel=1e-5)
    with pytest.raises(tacita.TacitaError, match="rounded gradients"):
        chosen = {"observer": "coordinator", "quantile": 0.5}
        adaptive = tacita.private(PROBLEM, algorithm, **chosen, **about)
        tacita.simulate(PROBLEM, adaptive, 2)


def test_rounding_before_the_noise_is_refused():
    coarse = tacita.Quantised(bits=4, range=2.0, oracle=Clipped(norm=1.0))
    asked = Question(scope=Scope("coordinator"), agent=0, rounds=1)
    for algorithm in (
        tacita.DPFedAvg(step_size=0.2, noise_std=0.5, oracle=coarse),
        tacita.FedSPD(rho=1.0, gamma=4.0, noise_std=0.5, oracle=coarse),
    ):
        with pytest.raises(tacita.TacitaError, match="rounded before any noise"):
            guarantee(algorithm, PROBLEM, asked)


@pytest.mark.parametrize(
    "algorithm",
    (
        tacita.DPFedAvg(step_size=0.2, noise_std=0.5),
        tacita.FedSPD(rho=1.0, gamma=4.0, noise_std=0.5),
        tacita.DPNorm(step_size=0.1, alpha=1.0, local_steps=1, noise_std=0.5),
        tacita.FedAvg(step_size=0.2),
        tacita.FedAdam(step_size=0.2),
    ),
    ids=lambda one: type(one).__name__,
)
def test_rounding_is_not_covered_by_noise_of_letters(algorithm):
    """It moves a gradient by a step of the grid where a record moves it by little."""
    coarse = tacita.Quantised(bits=2, range=0.6, rounding="nearest", oracle=noisy())
    asked = Question(scope=Scope("neighbour"), agent=0, rounds=1)
    problem, made = PROBLEM, replace(algorithm, oracle=coarse)
    if isinstance(algorithm, tacita.DPNorm):
        problem = RING
    if algorithm.noise_std is None:  # the noise is that of a sum
        budget = {"epsilon": 1.0, "delta": DELTA, "observer": "coordinator"}
        safe = tacita.private(
            problem, algorithm, rounds=1, aggregation="secure", **budget
        )
        silent = replace(coarse, oracle=noisy(std=0.0))
        made = replace(safe, algorithm=replace(algorithm, oracle=silent))
    with pytest.raises(tacita.TacitaError, match="rounded before any noise"):
        guarantee(made, problem, asked)


def test_two_gradients_that_are_alike_may_be_rounded_apart():
    """Which is why clipping bounds nothing of what is rounded."""
    clipped, x = Clipped(norm=1.0), np.full((101, 1), 0.6)
    coarse = tacita.Quantised(bits=2, range=0.6, rounding="nearest", oracle=clipped)
    near = [
        tacita.from_arrays(x, np.where(np.arange(101) < k, 1.0, -1.0), np.zeros(101))
        for k in (50, 51)
    ]
    moved = []
    for oracle in (clipped, coarse):
        algorithm = tacita.ServerGD(step_size=1.0, oracle=oracle)
        letters = [tacita.simulate(p, algorithm, 1, record=()).params for p in near]
        moved.append(float(np.abs(letters[0] - letters[1]).max()))
    assert moved[0] <= 2 / 101 and moved[1] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("oracle", "more", "message"),
    [
        (
            tacita.Quantised(bits=4, range=2.0),
            {"aggregation": "secure"},
            "its own grid",
        ),
        (tacita.Stream(size=2), {"quantile": 0.5}, "rows of a stream are used once"),
        (Clipped(norm=[1.0, 2.0, 1.0, 1.0]), {"quantile": 0.5}, "a single norm"),
    ],
    ids=["rounded sum", "shares of a stream", "norms apart"],
)
def test_what_has_no_account_together_is_refused(oracle, more, message):
    about = {"epsilon": 1.0, "delta": DELTA, "observer": "coordinator", "rounds": 2}
    algorithm = tacita.FedAvg(step_size=0.2, oracle=oracle)
    with pytest.raises(tacita.TacitaError, match=message):
        safe = tacita.private(PROBLEM, algorithm, **about, **more)
        tacita.simulate(PROBLEM, safe, 2, record=())


STREAM = tacita.FedAvg(
    step_size=0.2, local_steps=2, oracle=noisy(tacita.Stream(size=2))
)


def test_a_record_of_a_stream_is_in_one_letter():
    """Rows 4 and 5 are the first batch of round 2; all other letters stay."""
    with jax.enable_x64(True):
        moved = [np.linalg.norm(v) for v in letters(STREAM, 10, question)]
    assert [k + 1 for k, v in enumerate(moved) if v > 0] == [2]
    # No further than one clipped gradient of two rows, and a second step that follows.
    assert moved[1] <= 0.2 * 2 / 2 * 1.0000001


def test_a_stream_costs_one_gradient_however_long():
    one = 2 * 1.0 / 2 / 0.3
    for rounds in (1, 5, 10):
        assert mu(STREAM, "coordinator", rounds) == pytest.approx(one)
    told = forecast(PROBLEM, STREAM, rounds=10, delta=DELTA).row("coordinator")
    assert "parallel composition" in told.theorem
    assert "at most 1 rounds" in str(told.assumptions)
    # Twice through 40 rows: 20 batches, 10 rounds of two each; then it begins anew.
    again = replace(STREAM, oracle=noisy(tacita.Stream(size=2, wrap=True)))
    for rounds, times in ((10, 1), (11, 2), (20, 2), (21, 3)):
        found = mu(again, "coordinator", rounds)
        assert found == pytest.approx(np.sqrt(times) * one)
    # A client is in all of them.
    scope = Scope("coordinator", "client", "replace_one")
    asked = Question(scope=scope, agent=0, rounds=10)
    client = guarantee(STREAM, PROBLEM, asked).mu
    assert client == pytest.approx(np.sqrt(20) * 2 / 0.3)


def test_budgets_of_streams():
    plain = replace(STREAM, oracle=tacita.Stream(size=2))
    about = {"epsilon": 1.0, "delta": DELTA, "observer": "coordinator"}
    safe = tacita.private(PROBLEM, plain, rounds=10, **about)
    short = tacita.private(PROBLEM, plain, rounds=1, **about)
    assert safe.oracle.std == pytest.approx(short.oracle.std)
    with pytest.raises(tacita.TacitaError, match="rows of a stream are used once"):
        tacita.private(
            PROBLEM, tacita.FedLin(step_size=0.1, oracle=tacita.Stream()),
            rounds=5, **about,
        )  # fmt: skip


def test_a_secure_sum_has_noise_for_the_longest_step():
    about = {"epsilon": 1.0, "delta": DELTA, "observer": "coordinator", "rounds": 10}
    made = [
        tacita.private(
            PROBLEM, tacita.FedAvg(step_size=step), aggregation="secure", **about
        )
        for step in (0.2, SHRINKS, Polynomial(start=0.1))
    ]
    steps = [one.aggregation.step for one in made]
    assert steps[0] == steps[1] == pytest.approx(2 * steps[2])
    with pytest.raises(tacita.TacitaError, match="grow for ever"):
        growing = tacita.FedAvg(step_size=Polynomial(start=0.1, power=-0.5))
        tacita.private(PROBLEM, growing, aggregation="secure", **about)


def test_a_huge_model_rounds_no_noise_away():
    """What rows add was once rounded to the digits of l2 w, which others choose."""
    signs = np.array([1.0] * 10 + [-1.0] * 5)  # of all gradients but the first
    x = np.tile([1.0, 0.0], (16, 1))
    inner = Clipped(norm=0.25)
    oracle = Noisy(std=0.01, oracle=inner, regulariser_last=True)
    w = np.array([2.0**49, 0.0])

    def answers(first: float) -> set[float]:
        """The gradient's first entry without the regulariser's, of many draws."""
        y = -1e30 * np.append(first, signs)
        problem = tacita.from_arrays(x, y, np.zeros(16, int), "linear", l2=1.0)
        with double_precision():
            population = oracle.prepare(problem.population)
            local = population.local(tree_rows(population.rows, 0))
            l2 = np.asarray(local.regulariser.grad(jnp.asarray(w)))

            def one(key: jax.Array) -> jax.Array:
                draw = tree_rows(oracle.draws(local, key, 1), 0)
                return oracle.grad(local, draw, jnp.asarray(w))

            found = jax.vmap(one)(jax.random.split(jax.random.key(0), 300))
            return set((np.asarray(found) - l2)[:, 0].tolist())

    # 6/64 and 4/64 on digits of 1/8, the second a tie: noise must decide, not rows.
    assert answers(1.0) & answers(-1.0)
    assert len(answers(-1.0)) > 1

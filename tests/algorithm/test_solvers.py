"""The local solvers, each alone, on one agent's proximal problem."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import tacita
from tacita.algorithm.solvers import (
    Accelerated,
    ExactProx,
    GradientDescent,
    Mixed,
    Newton,
    QuasiNewton,
)
from tacita.privacy import gradient_noise
from tacita.problem.newton import exact_prox
from tacita.problem.oracles import SAMPLINGS, AgentOracle
from tacita.theory import fed_plt as theory

RHO = 0.6


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def agent(made: tacita.Problem, oracle=None, number: int = 0) -> AgentOracle:
    people = made.population
    rows = jax.tree.map(lambda leaf: jnp.asarray(leaf)[number], people.rows)
    return AgentOracle(oracle or tacita.Full(), people.local(rows))


def logistic(**options) -> tacita.Problem:
    return tacita.problem.synthetic.logistic(
        agents=4, features=5, samples=24, seed=3, heterogeneous=True, **options
    )


def points(dim: int) -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(1)
    return jnp.asarray(rng.normal(size=dim)), jnp.asarray(3 * rng.normal(size=dim))


def by_scipy(oracle: AgentOracle, v, rho: float) -> np.ndarray:
    """An independent answer: quasi-Newton on the loss itself, in SciPy."""

    def value(w):
        return float(oracle.local.loss(w) + jnp.sum((w - v) ** 2) / (2 * rho))

    def slope(w):
        return np.asarray(jax.grad(oracle.local.loss)(jnp.asarray(w)) + (w - v) / rho)

    found = minimize(value, np.zeros(len(v)), jac=slope, method="BFGS", tol=1e-12)
    return found.x


def softmax() -> tacita.Problem:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(40, 2)), np.arange(40) % 3
    return tacita.from_arrays(rows, labels, np.arange(40) % 2, model="softmax", l2=0.1)


MODELS = {
    "logistic": logistic,
    "linear": lambda: tacita.problem.synthetic.linear(agents=4, features=5, samples=20),
    "softmax": softmax,
    "nonconvex": lambda: logistic(
        l2=0.0, regulariser=tacita.problem.NonConvex(weight=0.5)
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("model", MODELS)
def test_exact_prox_is_the_proximal_point(model):
    made = MODELS[model]()
    oracle = agent(made)
    w, v = points(made.dim)
    got = exact_prox(oracle.local, w, v, RHO)
    np.testing.assert_allclose(got, by_scipy(oracle, v, RHO), atol=1e-6)
    residual = oracle.local.grad(got) + (got - v) / RHO
    assert np.max(np.abs(residual)) < 1e-13


ALL = [
    GradientDescent(local_steps=400),
    Accelerated(local_steps=150),
    QuasiNewton(local_steps=40),
    Newton(local_steps=12),
    ExactProx(),
]


@pytest.mark.few(4)
@pytest.mark.parametrize("solver", ALL, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_enough_steps_of_every_solver_give_the_exact_answer(solver, model):
    made = MODELS[model]()
    oracle = agent(made)
    w, v = points(made.dim)
    ready = own(solver.resolve(made, RHO), 0)
    got = ready.solve(jax.random.key(0), oracle, w, v, RHO)
    expected = exact_prox(oracle.local, v, v, RHO)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_pairs_beyond_the_steps_are_not_kept():
    """An offer may name any memory: a billion pairs are more than there is room for."""
    made = logistic()
    oracle = agent(made)
    w, v = points(made.dim)
    found = []
    for memory in (3, 10**9):
        ready = own(QuasiNewton(local_steps=3, memory=memory).resolve(made, RHO), 0)
        found.append(ready.solve(jax.random.key(0), oracle, w, v, RHO))
    np.testing.assert_array_equal(*found)


def own(solver, number: int):
    """One agent's solver out of one with arrays of numbers."""
    return jax.tree.map(lambda n: n[number] if np.ndim(n) else n, solver)


@pytest.mark.few(1)
@pytest.mark.parametrize("steps", [1, 3, 6])
def test_contraction_is_theory_s(steps):
    """Local training shrinks the distance to the answer as Lemma 2 and Prop. 3 say."""
    made = logistic()
    oracle = agent(made)
    low, high = made.moduli.strong_convexity[0], made.moduli.smoothness[0]
    w, v = points(made.dim)
    answer = exact_prox(oracle.local, v, v, RHO)
    for solver, name in (
        (GradientDescent(local_steps=steps), "gradient"),
        (Accelerated(local_steps=steps), "accelerated"),
    ):
        ready = own(solver.resolve(made, RHO), 0)
        got = ready.solve(jax.random.key(0), oracle, w, v, RHO)
        bound = theory.solver_contraction(low, high, RHO, steps, solver=name)
        before, after = np.linalg.norm(w - answer), np.linalg.norm(got - answer)
        assert after <= bound * before


def test_quasi_newton_is_never_behind_gradient_descent():
    made = logistic()
    w, v = points(made.dim)
    for steps in (2, 9):
        for number in (0, 3):
            oracle = agent(made, number=number)
            left = []
            for solver in (
                QuasiNewton(local_steps=steps),
                GradientDescent(local_steps=steps),
            ):
                ready = own(solver.resolve(made, RHO), number)
                got = ready.solve(jax.random.key(0), oracle, w, v, RHO)
                left.append(np.linalg.norm(oracle.local.grad(got) + (got - v) / RHO))
            assert left[0] <= left[1] * (1 + 1e-12)
    assert left[0] < 1e-3 * left[1]


def test_newton_squares_the_error():
    made = logistic()
    oracle = agent(made)
    w, v = points(made.dim)
    answer = exact_prox(oracle.local, v, v, RHO)
    size = [
        np.linalg.norm(
            Newton(local_steps=k).solve(jax.random.key(0), oracle, w, v, RHO) - answer
        )
        for k in (1, 2, 3)
    ]
    assert size[1] < size[0] ** 1.5 and size[2] < size[1] ** 1.5


def test_noise_has_the_scale_of_the_paper():
    """(13) on a quadratic of curvature a: mean as without noise, variance a sum."""
    rows = np.full((3, 1), 0.7)
    made = tacita.from_arrays(rows, np.ones(3), np.zeros(3), model="linear")
    curvature, step, tau, steps = 2 * 0.49, 0.3, 0.5, 4
    oracle = agent(made)
    noisy = AgentOracle(tacita.Noisy(std=gradient_noise(tau, step)), oracle.local)
    w, v = jnp.array([2.0]), jnp.array([-1.0])
    keys = jax.random.split(jax.random.key(7), 40_000)
    solver = GradientDescent(step_size=step, local_steps=steps)
    got = jax.jit(jax.vmap(lambda k: solver.solve(k, noisy, w, v, RHO)))(keys)
    mean = solver.solve(keys[0], oracle, w, v, RHO)
    # Var = 2 gamma tau^2 sum_k (1 - gamma (a + 1/rho))^(2k)
    shrink = 1 - step * (curvature + 1 / RHO)
    variance = 2 * step * tau**2 * sum(shrink ** (2 * k) for k in range(steps))
    deviation = np.sqrt(variance / len(keys))
    np.testing.assert_allclose(np.mean(got), mean[0], atol=4 * deviation)
    # The sample variance has a relative standard deviation of sqrt(2/n) = 0.7 %.
    np.testing.assert_allclose(np.var(got), variance, rtol=0.03)


@pytest.mark.long
def test_mixed_asks_every_agent_its_own_solver():
    made = logistic()
    solvers = GradientDescent(), Newton(local_steps=1), Accelerated()
    mixed = tacita.FedPLT(rho=RHO, solver=Mixed(solvers=solvers, group=[2, 0, 1, 0]))
    run = tacita.simulate(made, mixed, 1, start=np.ones(5))
    for number, kind in enumerate((2, 0, 1, 0)):
        alone = tacita.simulate(
            made, tacita.FedPLT(rho=RHO, solver=solvers[kind]), 1, start=np.ones(5)
        )
        np.testing.assert_allclose(run.agents[number], alone.agents[number], atol=1e-15)


def test_one_step_size_per_agent():
    made = logistic()
    sizes = np.array([0.1, 0.2, 0.3, 0.4])
    solver = GradientDescent(step_size=sizes, local_steps=2)
    run = tacita.simulate(made, tacita.FedPLT(rho=RHO, solver=solver), 1)
    for number, size in enumerate(sizes):
        alone = GradientDescent(step_size=float(size), local_steps=2)
        other = tacita.simulate(made, tacita.FedPLT(rho=RHO, solver=alone), 1)
        np.testing.assert_allclose(run.agents[number], other.agents[number], atol=1e-15)


@pytest.mark.few(2)
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_stochastic_gradients_of_every_sampling(sampling):
    """A batch of all rows is the full gradient; smaller ones stop near the optimum."""
    made = logistic()
    solver = GradientDescent(step_size=0.3, local_steps=3)

    def run(oracle, rounds=60):
        algorithm = tacita.FedPLT(rho=RHO, solver=solver, oracle=oracle)
        return tacita.simulate(made, algorithm, rounds, seeds=20)

    small = run(tacita.Minibatch(size=8, sampling=sampling))
    far = np.linalg.norm(small.params - made.solve(), axis=1)
    assert 1e-4 < far.mean() < 0.3
    # Unbiased gradients: the mean over seeds is much nearer than the runs are.
    centre = np.linalg.norm(small.params.mean(axis=0) - made.solve())
    assert centre < 0.5 * far.mean()
    if sampling != "with_replacement":
        whole = run(tacita.Minibatch(size=24, sampling=sampling), 5)
        full = run(tacita.Full(), 5)
        np.testing.assert_allclose(whole.params, full.params, atol=1e-12)


@pytest.mark.parametrize("solver", [Newton(), QuasiNewton(), ExactProx()])
def test_curvature_needs_exact_gradients(solver):
    made = logistic()
    batch = tacita.Minibatch(size=4)
    nested = Mixed(solvers=(GradientDescent(), solver), group=[0, 1, 0, 1])
    for chosen in (solver, nested):
        algorithm = tacita.FedPLT(rho=1, solver=chosen, oracle=batch)
        with pytest.raises(tacita.TacitaError, match="needs exact gradients"):
            tacita.simulate(made, algorithm, 2)


BAD = [
    (GradientDescent, {"step_size": -1.0}),
    (GradientDescent, {"local_steps": 0}),
    (Accelerated, {"smoothness": 0.0}),
    (Accelerated, {"strong_convexity": -0.1}),
    (GradientDescent, {"step_size": np.nan}),
    (tacita.Noisy, {"std": -1.0}),
    (tacita.Noisy, {"oracle": tacita.Noisy(std=1.0), "std": None}),
    (Newton, {"local_steps": 1.5}),
    (QuasiNewton, {"memory": 0}),
    (Mixed, {"solvers": (Newton(),), "group": [0, 1]}),
    (Mixed, {"solvers": (Newton(), Newton()), "group": [0.5, 1]}),
]


@pytest.mark.parametrize(("solver", "arguments"), BAD)
def test_bad_numbers_are_refused_in_one_line(solver, arguments):
    with pytest.raises(tacita.TacitaError) as error:
        solver(**arguments)
    assert list(arguments)[-1] in str(error.value)
    assert "\n" not in str(error.value)


def test_mixed_needs_a_group_for_every_agent():
    mixed = Mixed(solvers=(Newton(), GradientDescent()), group=[0, 1])
    with pytest.raises(tacita.TacitaError, match="group of shape"):
        tacita.simulate(logistic(), tacita.FedPLT(rho=1, solver=mixed), 2)


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (0.5, "expected solver such as"),
        (Newton, "expected solver such as"),
        (Mixed(solvers=(0.5,), group=[0] * 4), "expected solvers such as"),
        (Mixed(solvers=(Newton(),), group=["a"] * 4), "group a list of whole"),
    ],
    ids=["a number", "a class", "a number among solvers", "words as groups"],
)
def test_what_is_no_solver_is_refused(solver, words):
    with pytest.raises(tacita.TacitaError, match=words) as error:
        tacita.simulate(logistic(), tacita.FedPLT(rho=1, solver=solver), 2)
    assert "\n" not in str(error.value)


def test_what_is_no_penalty_is_refused():
    problem = tacita.problem.synthetic.logistic(agents=3, features=2, samples=8)
    joined = tacita.trees.replace(problem, graph=tacita.problem.graph.ring(3))
    for algorithm, words in (
        (tacita.FedGD(alpha=0.1, penalty=0.5), "expected penalty a word"),
        (tacita.FedGD(alpha=[0.1, 0.2, 0.3]), "expected alpha one number"),
        (tacita.FedRelax(alpha=[0.1, 0.2, 0.3]), "expected alpha one number"),
    ):
        with pytest.raises(tacita.TacitaError, match=words):
            tacita.simulate(joined, algorithm, 2)

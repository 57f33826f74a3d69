"""The book's algorithms reach what theory says, exactly where it says so."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tacita
from tacita.algorithm import solvers
from tacita.privacy.blind import looks_at_rows
from tacita.problem import graph, mlp, oracles, synthetic
from tacita.theory import descent, gtv

GRAPHS = {
    "ring": graph.ring(8),
    "star": graph.star(8),
    "random": graph.erdos_renyi(8, p=0.5, seed=3),
}


def on_graph(network) -> tacita.Problem:
    return synthetic.linear(
        agents=8, features=3, samples=6, noise=0.5, spread=0.5, seed=5, graph=network
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("network", GRAPHS.values(), ids=GRAPHS.keys())
def test_fed_gd_reaches_the_closed_form(network):
    problem = on_graph(network)
    run = tacita.simulate(problem, tacita.FedGD(alpha=0.7), 4000, record=())
    expected = gtv.linear_optimum(problem, 0.7)
    assert np.abs(run.agents - expected).max() < 1e-8


def test_closed_form_solves_the_books_equations():
    """Q w = -q/2 with the book's Q and q, built here from scratch."""
    problem = on_graph(GRAPHS["random"])
    x, y, counts = problem.stacked()
    alpha, n, d = 0.7, 8, 3
    laplacian = np.asarray(problem.graph.laplacian().todense())
    big_q = alpha * np.kron(laplacian, np.eye(d))
    small_q = np.zeros(n * d)
    for i in range(n):
        block = slice(i * d, (i + 1) * d)
        big_q[block, block] += x[i].T @ x[i] / counts[i]
        small_q[block] = -2 * x[i].T @ y[i] / counts[i]
    solution = np.linalg.solve(big_q, -small_q / 2).reshape(n, d)
    np.testing.assert_allclose(gtv.linear_optimum(problem, alpha), solution, atol=1e-12)
    hessian = gtv.hessian(problem, alpha).toarray()
    np.testing.assert_allclose(hessian, 2 * big_q, atol=1e-12)


@pytest.mark.parametrize("network", GRAPHS.values(), ids=GRAPHS.keys())
def test_fed_gd_contracts_as_predicted(network):
    """(81): the error shrinks by max(|1 - 2 eta l_min(Q)|, |1 - 2 eta l_max(Q)|)."""
    problem = on_graph(network)
    alpha = 0.3
    eigenvalues = np.linalg.eigvalsh(gtv.hessian(problem, alpha).toarray())
    eta = 1.5 / (eigenvalues[0] + eigenvalues[-1])
    expected = gtv.linear_optimum(problem, alpha)
    run = tacita.simulate(
        problem,
        tacita.FedGD(alpha=alpha, step_size=eta),
        600,
        record=("error",),
        reference=expected,
    )
    errors = run.metrics["error"]
    late = np.flatnonzero(errors > 1e-11)[-1]
    measured = (errors[late] / errors[late - 60]) ** (1 / 60)
    predicted = descent.contraction(eta, eigenvalues[0], eigenvalues[-1])
    assert measured == pytest.approx(predicted, rel=0.01)


def test_curvature_bounds_hold():
    for seed in range(10):
        problem = synthetic.linear(
            agents=6,
            features=2,
            samples=5,
            seed=seed,
            graph=graph.erdos_renyi(6, p=0.6, seed=seed),
        )
        for alpha in (0.01, 1.0, 10.0):
            values = np.linalg.eigvalsh(gtv.hessian(problem, alpha).toarray())
            assert gtv.largest_curvature(problem, alpha) >= values[-1] - 1e-10
            assert gtv.smallest_curvature(problem, alpha) <= values[0] + 1e-10


def test_fed_gd_without_coupling_trains_alone_and_with_much_agrees():
    problem = synthetic.linear(
        agents=5, features=2, samples=8, spread=1.0, graph=graph.ring(5)
    )
    alone = tacita.simulate(problem, tacita.FedGD(alpha=0.0), 2000)
    x, y, _ = problem.stacked()
    for i in range(5):
        own = np.linalg.lstsq(x[i], y[i], rcond=None)[0]
        np.testing.assert_allclose(alone.agents[i], own, atol=1e-8)
    tight = gtv.linear_optimum(problem, 1e7)
    np.testing.assert_allclose(tight, np.tile(problem.solve(), (5, 1)), atol=1e-5)


def test_fed_gd_does_not_swing_where_rows_do_not_determine_models():
    """A singular Hessian: the default is not 2 / L but 1 / L."""
    poor = synthetic.linear(4, features=6, samples=1, graph=graph.ring(4))
    run = tacita.simulate(poor, tacita.FedGD(alpha=0.3), 9000, record=())
    assert np.abs(tacita.GTVMin(poor, 0.3).gradient(run.agents)).max() < 1e-6


def test_fed_gd_with_one_step_size_per_node():
    problem = on_graph(GRAPHS["ring"])
    steps = np.linspace(0.05, 0.1, 8)
    run = tacita.simulate(problem, tacita.FedGD(alpha=0.7, step_size=steps), 6000)
    expected = gtv.linear_optimum(problem, 0.7)
    assert np.abs(run.agents - expected).max() < 1e-8
    with pytest.raises(tacita.TacitaError, match="8, one per agent"):
        tacita.simulate(problem, tacita.FedGD(alpha=0.7, step_size=steps[:5]), 2)


@pytest.mark.parametrize("given", ["weights", "local_steps", "step_size"])
def test_numbers_of_many_agents_are_refused_in_one_line(given):
    with pytest.raises(tacita.TacitaError, match=f"{given}=") as refused:
        tacita.FedAvg(**{given: np.linspace(0.0, 1.0, 60)[:, None].astype(str)})
    assert "\n" not in str(refused.value)


def test_fed_sgd_nears_the_optimum_as_its_step_shrinks():
    problem = on_graph(GRAPHS["ring"])
    expected = gtv.linear_optimum(problem, 0.7)
    errors = []
    for step in (0.05, 0.005):
        run = tacita.simulate(
            problem,
            tacita.FedSGD(alpha=0.7, step_size=step),
            4000,
            seeds=3,
            record=("error",),
            reference=expected,
        )
        errors.append(run.metrics["error"][:, -500:].mean())
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("batch", [1, 6])
def test_steps_by_theory_bear_batches(batch):
    """A step for the mean over all rows overshoots on single ones: 1e60 it was."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 5))
    y, node = x @ rng.normal(size=5), np.arange(160) % 8
    problem = tacita.from_arrays(x, y, node, "linear", graph=GRAPHS["ring"])
    batches = tacita.Minibatch(size=batch)
    run = tacita.simulate(problem, tacita.FedSGD(alpha=0.1, oracle=batches), 200)
    assert run.metrics["loss"][-1] < 1e-2 * problem.loss(np.zeros(5))
    for steps in (1, 5):
        for kind in (tacita.FedAvg, tacita.ServerGD, tacita.SCAFFOLD):
            algorithm = kind(local_steps=steps, oracle=batches)
            run = tacita.simulate(problem, algorithm, 200)
            assert run.metrics["loss"][-1] < 1e-2 * problem.loss(np.zeros(5))
    # Where agents train on problems around the shared model, 1e150 it was.
    for kind in (tacita.FedPLT, tacita.FedPD, tacita.FiveGCS, tacita.FedSPD):
        run = tacita.simulate(problem, kind(oracle=batches), 200)
        assert run.metrics["loss"][-1] < 1e-2 * problem.loss(np.zeros(5)), kind
    run = tacita.simulate(problem, tacita.DPADMM(oracle=batches), 200)
    assert run.metrics["loss"][-1] < 1e-1 * problem.loss(np.zeros(5))
    whole = tacita.FedSGD(alpha=0.1, oracle=tacita.Minibatch(size=20))
    of_all = tacita.FedGD(alpha=0.1).resolve(problem).step_size
    assert whole.resolve(problem).step_size == of_all
    assert looks_at_rows(tacita.FedSGD(alpha=0.1), problem)


def test_whole_batches_take_the_step_of_all_rows():
    """Also where some agents have one row, or none: nothing is drawn of these."""
    counts = np.array([20, 15, 1, 0])
    for sampling in ("without_replacement", "poisson", "permutation"):
        mean, steepest = tacita.Minibatch(size=20, sampling=sampling).shares(counts)
        assert mean.tolist() == [1.0] * 4 and not steepest.any()
        _, steepest = tacita.Minibatch(size=19, sampling=sampling).shares(counts)
        assert (steepest > 0).tolist() == [True, False, False, False]
    _, steepest = tacita.Minibatch(size=20, sampling="with_replacement").shares(counts)
    assert steepest.tolist() == [0.05, 0.05, 0.0, 0.0]


def test_numbers_that_are_given_need_no_look_at_rows():
    """Theory is asked for what was left out alone, of networks and of kinks too."""
    rng = np.random.default_rng(0)
    x, owner = rng.normal(size=(40, 3)), np.arange(40) % 4
    batches = tacita.Minibatch(size=2)
    descending = solvers.GradientDescent(step_size=0.1, local_steps=3)
    algorithm = tacita.FedPLT(rho=1.0, solver=descending, oracle=batches)
    for model in (mlp(3, (2,), None), "absolute", "linear"):
        problem = tacita.from_arrays(x, x[:, 0], owner, model)
        assert not looks_at_rows(algorithm, problem)
        run = tacita.simulate(problem, algorithm, 3, record=())
        assert np.isfinite(run.params).all()


def batches_of(sampling: str, rows: int, size: int):
    """Every batch as weights of rows, and its chance."""
    if sampling == "with_replacement":
        for drawn in itertools.product(range(rows), repeat=size):
            yield np.bincount(drawn, minlength=rows) / size, rows**-size
    elif sampling == "poisson":
        q = size / rows
        for joins in itertools.product((0, 1), repeat=rows):
            chosen = sum(joins)
            yield np.array(joins) / size, q**chosen * (1 - q) ** (rows - chosen)
    else:
        for drawn in itertools.combinations(range(rows), size):
            chance = 1 / math.comb(rows, size)
            yield np.bincount(drawn, minlength=rows) / size, chance


@pytest.mark.parametrize("sampling", oracles.SAMPLINGS)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_batches_are_as_smooth_as_theory_says(sampling, size):
    """Over all batches: E|g(w) - g(w*)|^2 <= 2 L (f(w) - f(w*))."""
    rng = np.random.default_rng(3)
    x = rng.standard_t(2, size=(4, 2))
    problem = tacita.from_arrays(x, rng.normal(size=4), np.zeros(4), "linear", l2=0.1)
    batches = tacita.Minibatch(size=size, sampling=sampling)
    (most,) = descent.smoothness_of_batches(problem, batches)
    goal, reached = problem.solve(), 0.0
    for _ in range(50):
        apart = rng.normal(size=2)
        # Gradients of (x . w - y)^2 + 0.05 |w|^2, of which labels fall out.
        moved = sum(
            chance
            * np.sum((weights @ (2 * (x @ apart)[:, None] * x) + 0.1 * apart) ** 2)
            for weights, chance in batches_of(sampling, 4, size)
        )
        gained = problem.loss(goal + apart) - problem.loss(goal)
        assert moved <= 2 * most * gained * (1 + 1e-9)
        reached = max(reached, moved / (2 * most * gained))
    assert reached > 0.5  # which is no empty promise


def test_disconnected_graphs_are_refused_unless_allowed():
    two = graph.Graph.from_edges(4, [(0, 1), (2, 3)])
    problem = synthetic.linear(agents=4, features=2, samples=6, graph=two)
    with pytest.raises(tacita.TacitaError, match="edges, or take need_connected=False"):
        tacita.simulate(problem, tacita.FedGD(alpha=0.5), 3)
    allowed = tacita.FedGD(alpha=0.5, need_connected=False)
    run = tacita.simulate(problem, allowed, 3000)
    np.testing.assert_allclose(run.agents, gtv.linear_optimum(problem, 0.5), atol=1e-8)


@pytest.fixture(scope="module")
def logistic() -> tacita.Problem:
    return synthetic.logistic(agents=6, features=3, samples=20, seed=2)


def test_server_gd_reaches_the_optimum(logistic):
    run = tacita.simulate(logistic, tacita.ServerGD(), 400)
    assert np.linalg.norm(run.params - logistic.solve()) < 1e-10


def test_server_gd_with_local_steps_is_algorithm_8_as_printed():
    """(117) at every client, then the mean of their models (116)."""
    problem = synthetic.linear(agents=3, features=2, samples=5, noise=0.4, seed=1)
    rows, labels, _ = problem.stacked()
    w, steps, eta = np.zeros(2), 3, 0.05
    for _ in range(6):
        sent = []
        for x, y in zip(rows, labels, strict=True):
            v = w
            for _ in range(steps):
                v = v - eta * (2 / len(y)) * x.T @ (x @ v - y)
            sent.append(v)
        w = np.mean(sent, axis=0)
    run = tacita.simulate(problem, tacita.ServerGD(step_size=eta, local_steps=steps), 6)
    np.testing.assert_allclose(run.params, w, rtol=0, atol=1e-12)


def test_a_coordinator_has_one_step_size():
    """With as many agents as parameters an array would be taken for one by entry."""
    problem = synthetic.linear(agents=3, features=3, samples=5)
    with pytest.raises(tacita.TacitaError, match="one number, common to all agents"):
        tacita.simulate(problem, tacita.ServerGD(step_size=[0.1, 0.2, 0.3]), 2)


def test_fed_avg_with_one_local_step_is_server_gd(logistic):
    one = tacita.simulate(logistic, tacita.FedAvg(step_size=0.4, local_steps=1), 20)
    other = tacita.simulate(logistic, tacita.ServerGD(step_size=0.4), 20)
    np.testing.assert_allclose(one.params, other.params, atol=1e-14)


def test_fed_avg_is_biased_and_less_so_with_smaller_steps():
    problem = synthetic.logistic(
        agents=6, features=3, samples=20, seed=2, heterogeneous=True
    )
    optimum = problem.solve()
    errors = [
        np.linalg.norm(
            tacita.simulate(
                problem, tacita.FedAvg(step_size=s, local_steps=5), 4000, record=()
            ).params
            - optimum
        )
        for s in (0.4, 0.04)
    ]
    assert errors[0] > 1e-3
    assert 0 < errors[1] < 0.2 * errors[0]


def test_fed_avg_weighted_by_samples_solves_the_pooled_problem():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.choice([-1, 1], 40)
    agent = np.array([0] * 5 + [1] * 25 + [2] * 10)
    problem = tacita.from_arrays(x, y, agent, l2=0.3)
    pooled = tacita.from_arrays(x, y, np.zeros(40), l2=0.3)
    algorithm = tacita.FedAvg(step_size=0.5, local_steps=1, weights="samples")
    run = tacita.simulate(problem, algorithm, 800)
    np.testing.assert_allclose(run.params, pooled.solve(), atol=1e-10)


def test_fed_prox_exact_is_the_limit_of_many_local_steps(logistic):
    exact = tacita.simulate(logistic, tacita.FedProx(eta=0.5), 5)
    many = tacita.simulate(logistic, tacita.FedProx(eta=0.5, local_steps=400), 5)
    np.testing.assert_allclose(exact.params, many.params, atol=1e-10)
    # One agent's answer satisfies grad f_i(v) + (2/eta)(v - w) = 0.
    start = np.array([1.0, -1.0, 0.5])
    one = tacita.simulate(logistic, tacita.FedProx(eta=0.5), 1, start=start)
    gradients = logistic.grad(one.agents)
    np.testing.assert_allclose(gradients, -4 * (one.agents - start), atol=1e-12)


def test_fed_prox_with_a_network_needs_local_steps():
    rng = np.random.default_rng(0)
    problem = tacita.from_arrays(
        rng.normal(size=(12, 4)),
        rng.integers(0, 3, 12),
        np.arange(12) % 3,
        model=tacita.problem.mlp(4, (5,), 3),
    )
    with pytest.raises(tacita.TacitaError, match="local_steps"):
        tacita.simulate(problem, tacita.FedProx(eta=0.5), 2)
    with pytest.raises(tacita.TacitaError, match="step_size=0.1 is of local steps"):
        tacita.simulate(problem, tacita.FedProx(eta=0.5, step_size=0.1), 2)
    with pytest.raises(tacita.TacitaError, match="give step_size"):
        tacita.simulate(problem, tacita.FedAvg(local_steps=2), 2)
    run = tacita.simulate(
        problem, tacita.FedAvg(step_size=0.3, local_steps=2), 60, record=("loss",)
    )
    assert run.params.dtype == np.float32
    assert run.metrics["loss"][-1] < 0.8 * run.metrics["loss"][0]

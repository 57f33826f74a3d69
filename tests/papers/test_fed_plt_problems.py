"""The set-ups of the Fed-PLT scripts against arithmetic written out in NumPy."""

import math

import numpy as np
import pytest
from sklearn.datasets import make_classification

import tacita
from bench import fed_plt_table_2 as by_numpy
from papers.fed_plt import table_9, v1_table_4
from papers.fed_plt.common import accelerated, measures, problems, tables, tuning
from tacita.algorithm.solvers import GradientDescent
from tacita.runtime.engine import advance


def sum_gradient(rows, labels, w):
    """The gradient of sum_h log(1 + exp(-b_h a_h w)) + (0.5/2)||w||^2."""
    residual = -labels / (1 + np.exp(labels * (rows @ w)))
    return residual @ rows + 0.5 * w


def test_the_first_version_sums_losses():
    problem, start = problems.first(3)
    x, y, counts = problem.stacked()
    assert counts.tolist() == [20] * 10 and problem.dim == 16
    assert np.all(x[..., -1] == 1)
    w = start[0]
    by_hand = sum(sum_gradient(x[i], y[i], w) for i in range(10))
    np.testing.assert_allclose(20 * problem.grad(w), by_hand, rtol=1e-12)


def test_rho_and_step_of_the_sum_give_the_same_iterates():
    problem, start = problems.first(4)
    rho, steps, rounds = 0.3, 4, 6
    algorithm = tuning.fed_plt(problem, problems.ROWS * rho, steps)
    run = tacita.simulate(problem, algorithm, rounds, start=start, progress=False)
    data, labels, _ = problem.stacked()
    bounds = [np.linalg.eigvalsh(a.T @ a)[-1] / 4 + 0.5 for a in data]
    gamma = 2 / (max(bounds) + 0.5 + 2 / rho)
    x, z = start.copy(), start.copy()
    for _ in range(rounds):
        y = z.mean(axis=0)
        for i in range(10):
            v = 2 * y - z[i]
            for _ in range(steps):
                slope = sum_gradient(data[i], labels[i], x[i]) + (x[i] - v) / rho
                x[i] = x[i] - gamma * slope
            z[i] = z[i] + 2 * (x[i] - y)
    np.testing.assert_allclose(run.agents, x, rtol=1e-9)


def test_noise_of_the_sum_keeps_its_size():
    problem, _ = problems.first(5)
    base = tuning.fed_plt(problem, problems.ROWS * 0.3, 10)
    noisy = v1_table_4.noisy(base, variance=0.04)
    gamma = base.solver.step_size / problems.ROWS
    added = noisy.solver.step_size * noisy.oracle.std
    assert added == pytest.approx(math.sqrt(2 * gamma) * 0.2, rel=1e-12)


def test_the_revised_data_are_one_draw_dealt_out():
    problem, start = problems.revised(1, start_seed=0)
    rows, _ = make_classification(25000, 5, n_clusters_per_class=1, random_state=1)
    x, _, _ = problem.stacked()
    np.testing.assert_array_equal(x.reshape(-1, 5), rows)
    np.testing.assert_allclose(start[:2], [1.764052345967664, 0.4001572083672233])
    other = problems.revised(1, heterogeneous=True).problem.stacked()[0]
    means = np.ptp(other.mean(axis=1), axis=0) / np.ptp(x.mean(axis=1), axis=0)
    assert means.min() > 2


def test_rounds_times_and_rates():
    assert measures.rounds_to(np.array([1.0, 1e-5, 1e-9])) == 2
    assert math.isnan(measures.rounds_to(np.array([1.0, np.nan])))
    assert measures.time_of(9, 5, 1, 10) == 13500
    assert measures.time_of([6, 6], 5, 1, 10, exchanges=2) == 15600
    assert table_9.paper_rounds() == [29, 15, 9, 8, 8, 8]
    fall = 3.0 * 0.7 ** np.arange(200)
    assert measures.contraction(fall) == pytest.approx(0.7, rel=1e-12)
    with_floor = np.maximum(fall, 1e-12)
    assert measures.contraction(with_floor) == pytest.approx(0.7, rel=1e-12)
    assert measures.contraction(np.array([1.0, np.inf])) == math.inf


def test_the_crossing_is_between_the_rounds():
    values = 10.0 ** -np.arange(0, 12, 2)  # after rounds 1, 2, ...: 1, 1e-2, ...
    assert tuning._crossing(values) == pytest.approx(3.5)
    assert tuning._crossing(values[:2]) == math.inf


@pytest.mark.parametrize(
    "name", ["FedLin", "TAMUNA", "LED", "Fed-PLT", "5GCS", "FedPD"]
)
def test_methods_need_the_rounds_that_numpy_needs(name):
    convex = name in ("FedLin", "5GCS", "FedPD")
    instance = problems.revised(7, convex=convex)
    method = tuning.METHODS[name]
    place = 20 if name != "FedLin" else 40
    algorithm = method.grid(instance.problem, 5)[place]
    case = measures.Case(lambda problem: algorithm, method.measured)
    ours = measures.count_rounds(instance, case, 3)
    ready = algorithm.resolve(instance.problem)
    assert ours == by_numpy.numpy_rounds(name, instance, ready, 3)


def test_repetitions_compile_nothing_new():
    case = measures.Case(lambda p: tuning.fed_plt(p, 1.2, 5), rounds=3)
    measures.repeat(problems.revised, {"a": case}, 1, "")
    before = advance.programs
    found = measures.repeat(problems.revised, {"a": case}, 3, "")
    assert advance.programs == before
    assert found["a"].shape == (3,)


def test_accelerated_variants_have_the_plain_fixed_point():
    """Momentum changes the way, not the end."""
    problem, start = problems.first(1)
    grids = {
        accelerated.fed_pd_grid: 26,
        accelerated.fed_lin_grid: 20,
        accelerated.led_grid: 12,
        accelerated.tamuna_grid: 12,
    }
    for grid, place in grids.items():
        algorithm = grid(problem, 10)[place]
        run = tacita.simulate(problem, algorithm, 400, start=start, progress=False)
        np.testing.assert_allclose(run.agents.mean(axis=0), problem.solve(), atol=1e-8)


def test_accelerated_steps_without_momentum_are_plain():
    problem, start = problems.first(2)
    plain = tacita.LED(step_size=0.5, beta=0.2, local_steps=4)
    same = accelerated.AcceleratedLED(inner=plain, momentum=0.0)
    runs = [
        tacita.simulate(problem, a, 5, start=start, progress=False)
        for a in (plain, same)
    ]
    np.testing.assert_allclose(runs[0].agents, runs[1].agents, rtol=1e-12)


def test_an_accelerated_step_is_that_of_the_paper():
    """Two steps of (12) on FedPD's local problem, by hand."""
    problem, start = problems.first(2)
    eta = 3.0
    low, high = 1 / eta + problem.moduli.smallest, 1 / eta + problem.moduli.largest
    solver = tuning.Accelerated(
        local_steps=2,
        strong_convexity=problem.moduli.smallest,
        smoothness=problem.moduli.largest,
    )
    algorithm = accelerated.AcceleratedFedPD(eta=eta, solver=solver)
    run = tacita.simulate(problem, algorithm, 1, start=start, progress=False)
    root = math.sqrt(low / high)
    beta = (1 - root) / (1 + root)
    centre, w, u = start.mean(axis=0), start, start
    for _ in range(2):
        after = w - (problem.grad(w) + (w - centre) / eta) / high
        w, u = after + beta * (after - u), after
    np.testing.assert_allclose(run.agents, w, rtol=1e-10)


def test_tuning_finds_the_place_of_the_best_candidate():
    def grid(problem, steps):
        solver = GradientDescent(step_size=0.4, local_steps=steps)
        return [tacita.FedPLT(rho=rho, solver=solver) for rho in (0.05, 1.2, 30.0)]

    choice = tuning.choose(grid, 5, problems.revised, "", seeds=(1001, 1002))
    assert choice.place == 1 and choice.scores.shape == (2, 3)
    assert choice.on(problems.revised(1).problem).rho == 1.2
    assert choice.words == "rho 1.2 of 0.05..30 (3 candidates)"


def test_a_page_holds_the_same_numbers_as_its_csv(tmp_path):
    counts = tables.Spread([8.0, 10.0, math.nan])
    rows = [["x", 1.25, counts, tables.Time(2.884e6)], ["y", None, None, "9"]]
    columns = ("a", "b", "rounds (mean ± sd)", "time")
    page = tables.Page("T", ["setup"], columns, rows, ["why"])
    written = page.write(tmp_path / "new", "t")
    text = written.read_text()
    assert "| x | 1.25 | 9.0 ± 1.0 (1 of 3 not arrived) | 2.884M |" in text
    assert "| y | – | – | 9 |" in text and "why" in text
    assert (tmp_path / "new" / "t.csv").read_text().splitlines() == [
        "a,b,rounds,rounds: sd,rounds: missing,time",
        "x,1.25,9,1,1,2.884e+06",
        "y,,,,,9",
    ]
    assert str(tables.Spread([math.nan])) == "none of 1 arrived"

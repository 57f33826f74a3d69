"""How much of each bound on GTVMin is used: the worst case of each, in closed form.

Every test takes the case that its proposition is tightest for, or says why there is
none, and compares what is measured with the bound to the digit: a constant that is
wrong in either direction shows. That bounds hold at all is seen in test_gtv.py.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.problem import graph
from tacita.theory import gtv

ALPHAS = (0.05, 1.0, 20.0)
PAIR = graph.Graph.from_edges(2, [(0, 1)])


def table(x, y, network) -> tacita.Problem:
    """One row and one feature per node: Q_i = x_i^2."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    return tacita.from_arrays(x[:, None], y, np.arange(len(x)), "linear", graph=network)


def test_opposite_noise_keeps_a_pair_apart():
    """Prop. 3.1: w_1 - w_2 = (e_1 - e_2) / (1 + 2 alpha), and apart is half its square.

    A quarter of the bound is the most there can be, for x / (1 + x)^2 <= 1/4 at each
    eigenvalue x of the coupling, measured by the data; here at alpha = 1/2.
    """
    problem = table(np.ones(2), [1.0, -1.0], PAIR)
    for alpha in (*ALPHAS, 0.5):
        models = gtv.linear_optimum(problem, alpha)[:, 0]
        assert np.ptp(models) == pytest.approx(2 / (1 + 2 * alpha))
        apart = np.sum((models - models.mean()) ** 2)
        bound = gtv.deviation_bound(2.0, alpha, [1.0, 1.0], [1, 1])
        assert apart / bound == pytest.approx(2 * alpha / (1 + 2 * alpha) ** 2)
    # A mean over more rows with the same noise is the same: m_i divides.
    twice = gtv.deviation_bound(2.0, 0.5, [2.0, 2.0], [2, 2])
    assert twice == pytest.approx(gtv.deviation_bound(2.0, 0.5, [1.0, 1.0], [1, 1]))


def eigenvalues(problem, alpha) -> np.ndarray:
    return np.linalg.eigvalsh(gtv.hessian(problem, alpha).toarray())


@pytest.mark.parametrize("alpha", ALPHAS)
def test_curvature_bounds_are_reached_by_equal_nodes(alpha):
    """(106), (83), (107): on a ring of even length neighbours can differ in sign."""
    ring = table(1.5 * np.ones(6), np.zeros(6), graph.ring(6))
    values = eigenvalues(ring, alpha)
    assert gtv.largest_curvature(ring, alpha) == pytest.approx(values[-1])
    assert gtv.smallest_curvature(ring, alpha) == pytest.approx(values[0])
    rates = gtv.node_step_sizes(ring, alpha)
    assert rates * values[-1] == pytest.approx(1)
    assert gtv.step_size(ring, alpha) == pytest.approx(2 / (values[0] + values[-1]))


def test_the_step_size_by_bounds_is_that_by_eigenvalues(monkeypatch):
    ring = table(1.5 * np.ones(6), np.zeros(6), graph.ring(6))
    exact = gtv.step_size(ring, 0.7)
    monkeypatch.setattr(gtv, "_EXACT", 0)
    assert gtv.step_size(ring, 0.7) == pytest.approx(exact)


def lacking(n: int = 6) -> tuple[tacita.Problem, float]:
    """Everybody is joined to everybody, one node has no data; and m / l_max."""
    x = np.array([0.0] + [1.5] * (n - 1))
    return table(x, np.zeros(n), graph.complete(n)), (n - 1) / n


def test_the_smallest_curvature_of_nodes_that_help_each_other():
    """Prop. 5.2, (107), where a node alone has none.

    With much coupling the eigenvalue is that of the mean, and the bound half of it, but
    for 1 + r^2. With little it is alpha times the degree. There the proposition gives
    more away: models without loss have ||apart|| >= (m / l_max) ||mean||, and it uses a
    quarter of that, a loss of at least 17/2; here (16 + f^2) / f with f = m / l_max.
    """
    problem, f = lacking()
    much = eigenvalues(problem, 1e6)[0] / gtv.smallest_curvature(problem, 1e6)
    assert much == pytest.approx(2 * (1 + f**2 / 16), rel=1e-4)
    little = eigenvalues(problem, 1e-6)[0] / gtv.smallest_curvature(problem, 1e-6)
    assert little == pytest.approx((16 + f**2) / f, rel=1e-4)


def moved(problem, change, alpha) -> float:
    """Sum of squares by which the solution moves with the labels; it is linear."""
    x, _, _ = problem.stacked()
    other = table(x[:, 0, 0], change, problem.graph)
    return float(np.sum(gtv.linear_optimum(other, alpha) ** 2))


def test_changed_labels_move_equal_nodes_most():
    """Prop. 8.1: it squares (107), so that it is loose by 4 at least.

    Equal nodes and equal changes reach that, but for (1 + r^2)^2. With little coupling
    (107) is loose by much more, and changed labels push where there is data, which is
    where models give way least: no case is near. There, the bound is checked against
    (107), whose own test has its size.
    """
    equal = table(1.5 * np.ones(4), np.zeros(4), graph.complete(4))
    change = np.ones(4)
    bound = gtv.sensitivity_bound(equal, 1e3, change**2)
    assert bound / moved(equal, change, 1e3) == pytest.approx(4 * (17 / 16) ** 2)
    problem, _ = lacking()
    for alpha in (1e-3, 1e3):
        least = gtv.smallest_curvature(problem, alpha) / 2
        expected = 1.5**2 / least**2 * 5.0
        assert gtv.sensitivity_bound(problem, alpha, [5.0]) == pytest.approx(expected)


def test_equal_noise_moves_the_mean_model_most():
    """(169), term by term.

    First: common noise is a common model; |a + b|^2 <= 2 |a|^2 + 2 |b|^2 loses 2.
    Second: that, times 4 of Prop. 3.1, times 4 since deviations add up to zero and half
    of l_max does for a bound: 32 at least. Reached with one node that is sure of its
    model and one that is not, and alpha at what the latter's data weigh.
    """
    equal = table(np.ones(4), np.ones(4), graph.complete(4))  # the truth is zero
    bound = gtv.centre_error_bound(equal, 1e6, np.ones(4))
    mean = gtv.linear_optimum(equal, 1e6).mean()
    assert bound / mean**2 == pytest.approx(2, rel=1e-4)
    weak = 1e-5
    unequal = table([1.0, np.sqrt(weak)], [0.0, 1.0], PAIR)
    bound = gtv.centre_error_bound(unequal, weak, [0.0, 1.0])
    mean = gtv.linear_optimum(unequal, weak).mean()
    assert bound / mean**2 == pytest.approx(32, rel=1e-3)


def test_a_cluster_pulled_from_outside():
    """Prop. 6.1: node 0 is sure of its model c, node 2 outside of -t, node 1 is torn.

    With weight a on its edge to the outside it goes a / (1 + a) of the way. A quarter
    of the bound is the most there can be, as for Prop. 3.1; here for a = 1 and t = c.
    """
    alpha, c = 1.0, 2.0
    for a in (0.3, 1.0, 4.0):
        for t in (2.0, 5.0):
            line = graph.Graph.from_edges(3, [(0, 1), (1, 2)], [1.0, a])
            sure = 1e4
            problem = table([sure, 0.0, sure], [sure * c, 0.0, -sure * t], line)
            models = gtv.linear_optimum(problem, alpha)[:, 0]
            apart = np.sum((models[:2] - models[:2].mean()) ** 2)
            bound = gtv.cluster_bound(
                line, [0, 1], alpha, [0.0, 0.0], [1, 1], [c], abs(models[2])
            )
            share = a / (1 + a) ** 2 * (c + t) ** 2 / (2 * (c**2 + t**2))
            assert apart / bound == pytest.approx(share, rel=1e-5)


def test_relaxation_with_one_feature_contracts_as_stated():
    """(133), (174): with one feature there is one direction, the flattest."""
    ring = table(1.5 * np.ones(6), np.zeros(6), graph.ring(6))
    for damping in (0.0, 0.3):
        algorithm = tacita.FedRelax(alpha=0.7, damping=damping)
        run = tacita.simulate(ring, algorithm, 3, start=np.ones((6, 1)), record=())
        factor = gtv.relax_contraction(ring, 0.7, damping)
        assert run.agents == pytest.approx(factor**3)


def test_the_slowest_asynchronous_run():
    """(134) at t = 2B: letters as late, and pauses as long, as B allows.

    All that anybody knows at event B is the first letters, and the next time to compute
    is after event 2B: one contraction so far, where the bound has 2B / (2B + 1).
    """
    ring = table(np.ones(4), np.zeros(4), graph.ring(4))
    most = 5

    def always(key, shape):
        return jnp.full(shape, 2**20)  # cut to what B allows

    slow = tacita.Asynchronous(most_delay=most, law=always)
    run = tacita.simulate(
        ring,
        tacita.FedRelax(alpha=1.0),
        2 * most,
        start=np.ones((4, 1)),
        participation=1e-9,
        asynchronous=slow,
        record=(),
    )
    kappa = gtv.relax_contraction(ring, 1.0)
    bound = gtv.asynchronous_bound(kappa, 2 * most, most)
    assert np.abs(run.agents).max() / bound == pytest.approx(kappa ** (1 / 11))

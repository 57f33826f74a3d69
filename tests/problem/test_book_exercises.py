"""Exercises of chapters 1 to 6 of the book that are computations."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.problem import Graph, GTVMin, convex_clustering, graph
from tacita.theory import descent

DICE = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _same_draws_in_any_order():
    """Every test draws as if it were the first."""
    DICE.bit_generator.state = np.random.default_rng(0).bit_generator.state


def test_1_3_least_squares_in_closed_form():
    x, y = np.array([[1.0, 2], [3, 4], [5, 6]]), np.array([7.0, 8, 9])
    problem = tacita.from_arrays(x, y, [0, 0, 0], "linear", dtype=np.float64)
    assert np.allclose(problem.solve(), np.linalg.pinv(x) @ y)
    assert np.allclose(problem.solve(), [-6, 6.5])
    # (9): with nothing but a constant it is the mean.
    alone = tacita.from_arrays(np.ones((3, 1)), y, [0, 0, 0], "linear")
    assert alone.solve() == pytest.approx(8.0)


def test_1_4_eigenvalues_are_not_negative():
    x = np.array([[1.0, 2], [3, 4]])
    values = np.linalg.eigvalsh(x.T @ x)
    assert np.allclose(values, 15 + np.array([-1, 1]) * np.sqrt(221))
    # They are the curvature of the mean squared error, times 2/m.
    problem = tacita.from_arrays(x, [0.0, 0.0], [0, 0], "linear", dtype=np.float64)
    assert problem.moduli.largest == pytest.approx(values[1])
    assert problem.moduli.smallest == pytest.approx(values[0])


def test_3_1_the_spectral_radius_is_at_most_twice_the_degree():
    for g in (graph.ring(7), graph.star(6), graph.erdos_renyi(12, 0.5, seed=1)):
        radius = np.abs(np.linalg.eigvalsh(g.laplacian().toarray())).max()
        assert radius <= 2 * g.degrees.max() + 1e-12
    # An even ring reaches it.
    assert np.linalg.eigvalsh(graph.ring(6).laplacian().toarray())[-1] == (
        pytest.approx(2 * 2)
    )


def test_3_2_and_3_4_one_null_vector_for_every_component():
    g = Graph.from_edges(range(6), [(0, 1), (1, 2), (3, 4), (4, 5), (3, 5)])
    values = np.linalg.eigvalsh(g.laplacian().toarray())
    assert np.sum(values < 1e-12) == 2
    # 3.4: indicators of the components, and any rotation of them: not unique.
    first = np.array([1, 1, 1, 0, 0, 0]) / np.sqrt(3)
    second = np.array([0, 0, 0, 1, 1, 1]) / np.sqrt(3)
    for v in (first, second, (first + second) / np.sqrt(2)):
        assert np.abs(g.laplacian() @ v).max() < 1e-12


def test_3_5_an_edge_more_connects_no_less():
    edges = [(0, 1), (1, 2), (2, 3), (3, 4)]
    before = np.linalg.eigvalsh(
        Graph.from_edges(range(5), edges).laplacian().toarray()
    )[1]
    for new in ((0, 2), (0, 4), (1, 3)):
        after = Graph.from_edges(range(5), [*edges, new]).laplacian().toarray()
        assert np.linalg.eigvalsh(after)[1] >= before - 1e-12


def test_3_7_a_test_set_whose_discrepancy_is_the_distance_of_parameters():
    a, b = DICE.normal(size=(2, 4))
    shared = np.sqrt(4) * np.eye(4)
    assert np.mean((shared @ a - shared @ b) ** 2) == pytest.approx(
        np.sum((a - b) ** 2)
    )


def test_3_9_and_3_10_when_gtvmin_has_one_solution():
    # Rows of node i span e_i only; together they have full rank.
    x = np.eye(2)
    pair = Graph.from_edges([0, 1], [(0, 1)])
    problem = tacita.from_arrays(x, [1.0, 2.0], [0, 1], "linear", graph=pair)
    q = tacita.theory.gtv.hessian(problem, 0.5)
    assert np.linalg.eigvalsh(q.toarray())[0] > 0.1
    # Uncoupled, nothing says what a node's other coordinate is.
    alone = tacita.theory.gtv.hessian(problem, 0.0).toarray()
    assert np.linalg.matrix_rank(alone) == 2


@pytest.mark.parametrize("shape", ["3.11: a ring", "3.12: a star"])
def test_3_11_and_3_12_the_average_as_gtvmin(shape):
    y = np.array([[4.0], [1.0], [7.0], [0.0]])
    if "ring" in shape:
        models = GTVMin(convex_clustering(y, graph.ring(4)), alpha=1e6).solve()
        assert np.allclose(models, y.mean(), atol=1e-4)
        return
    # The centre, node 0, has no rows: it takes what pulls it, the others' mean.
    star = Graph.from_edges(range(4), [(0, 1), (0, 2), (0, 3)])
    rows = (np.ones((3, 1)), y[1:, 0], [1, 2, 3])
    problem = tacita.from_arrays(*rows, "linear", graph=star, unlabelled=[0])
    models = GTVMin(problem, alpha=1e6).solve()
    assert models[0] == pytest.approx(y[1:].mean(), abs=1e-4)


def test_3_13_after_two_exchanges_ten_numbers_are_known():
    # Every node of degree three: 1 + 3 + 6 numbers after two exchanges, so 1/10.
    tree = Graph.from_edges(
        range(10),
        [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 6), (2, 7), (3, 8), (3, 9)],
    )
    adjacency = (tree.laplacian().toarray() < 0).astype(float)
    heard = np.linalg.matrix_power(np.eye(10) + adjacency, 2)[0] > 0
    assert heard.sum() == 10
    # Two steps of Algorithm 4, from y, are linear in y: their variance is above it.
    step = np.eye(10) - 0.2 * np.diag(10 * [1.0]) - 0.2 * tree.laplacian().toarray()
    weights = (step @ step + step * 0.2 + 0.2 * np.eye(10))[0]
    assert weights.sum() == pytest.approx(1.0) and np.sum(weights**2) > 1 / 10


def test_3_14_powers_of_the_matrix_count_paths():
    g = graph.ring(5)
    adjacency = (g.laplacian().toarray() < 0).astype(int)
    walks = [[0]]
    for _ in range(3):
        walks = [w + [int(j)] for w in walks for j in np.nonzero(adjacency[w[-1]])[0]]
    ends = np.bincount([w[-1] for w in walks], minlength=5)
    assert np.linalg.matrix_power(adjacency, 3)[0].tolist() == ends.tolist()


def test_3_15_the_proximal_operator_of_a_quadratic_function():
    root, q, v, rho = DICE.normal(size=(3, 3)), DICE.normal(size=3), np.ones(3), 0.7
    matrix = root @ root.T
    closed = np.linalg.solve(2 * matrix + rho * np.eye(3), rho * v - q)
    found = tacita.problem.descend(
        lambda w: w @ jnp.asarray(matrix) @ w + q @ w + rho / 2 * jnp.sum((w - v) ** 2),
        np.zeros(3),
        step_size=0.1,
    )
    assert np.allclose(found.w, closed, atol=1e-5)


def test_4_1_and_4_2_schedules():
    # (78) for 1/t^p: sums over t diverge for p <= 1, of squares converge for p > 1/2.
    t = np.arange(1, 10**6)
    for p in (0.6, 1.0):
        late = t[10**5 :]
        assert np.sum(1 / late**p) > 2 > 10 * np.sum(1 / late ** (2 * p))
    # And yet steps 1/t of w^4 from 2 leave for infinity.
    w = 2.0
    for k in range(1, 6):
        w = w - 4 * w**3 / k
    assert abs(w) > 1e50


def test_4_4_and_4_5_averages_by_steps_on_a_graph():
    g = graph.ring(5)
    laplacian, y = g.laplacian().toarray(), DICE.normal(size=5)
    values = np.linalg.eigvalsh(laplacian)
    eta = 2 / (values[1] + values[-1])
    kappa = (values[-1] - values[1]) / (values[-1] + values[1])
    u, off = y, np.linalg.norm(y - y.mean())
    for k in range(1, 30):
        u = u - eta * laplacian @ u  # (101)
        # A contraction on what sums to zero, up to rounding; the mean stays.
        assert np.linalg.norm(u - y.mean()) <= kappa**k * off + 1e-14
        assert u.mean() == pytest.approx(y.mean())


def test_4_7_when_a_step_does_not_expand():
    for eta, expands, firmly in ((0.5, 0, 1), (1.5, 0, 0), (2.5, 1, 0)):
        # Of w^2/2 the step is w <- (1 - eta) w; firmly: |Fw|^2 <= w Fw.
        assert bool(descent.contraction(eta, 1.0, 1.0) > 1) == expands
        assert ((1 - eta) ** 2 <= 1 - eta) == firmly


def test_5_1_speed_depends_on_the_curvatures():
    for curvature, centres in (((1.0, 1000.0), (-5, -5)), ((1000.0, 1000.0), (-5, 5))):
        laplacian = np.array([[1.0, -1], [-1, 1]])
        q = np.diag(curvature) + laplacian
        target = np.linalg.solve(q, np.array(curvature) * centres)
        w, eta, errors = np.zeros(2), 0.5e-3, []
        for _ in range(40):
            w = w - eta * 2 * (q @ w - np.array(curvature) * centres)  # (104)
            errors.append(np.linalg.norm(w - target))
        values = 2 * np.linalg.eigvalsh(q)
        kappa = descent.contraction(eta, values[0], values[-1])
        assert errors[-1] <= kappa**40 * np.linalg.norm(target) + 1e-12
        # Unequal nodes: a step hardly moves the flat one; equal ones: at once.
        assert bool(errors[-1] > 1) is (curvature[0] == 1)


def test_5_2_strong_coupling_slows_descent_down():
    g = graph.random_regular(12, 4, seed=0)
    speed = []
    for alpha in (0.1, 1.0, 10.0):
        values = 2 * np.linalg.eigvalsh(np.eye(12) + alpha * g.laplacian().toarray())
        speed.append(
            descent.contraction(
                descent.best_step_size(values[0], values[-1]), values[0], values[-1]
            )
        )
    assert np.all(np.diff(speed) > 0)


def test_5_4_to_5_9_updates_are_fixed_point_iterations():
    # 5.6: the pull of neighbours is that of their weighted mean.
    g = graph.ring(4)
    w, v = DICE.normal(size=(4, 2)), DICE.normal(size=2)
    near, weight = [1, 3], 1.0
    each = sum(weight * np.sum((v - w[j]) ** 2) for j in near)
    middle = w[near].mean(axis=0)
    spread = sum(np.sum((w[j] - middle) ** 2) for j in near)
    assert each == pytest.approx(g.degrees[0] * np.sum((v - middle) ** 2) + spread)
    # 5.4: Algorithm 8 is the mean of the agents' maps, and 5.5: a map that contracts
    # has one fixed point, which both starts reach.
    maps = [(0.5 * np.eye(2), DICE.normal(size=2)) for _ in range(3)]
    ends = []
    for point in (np.zeros(2), np.full(2, 9.0)):
        for _ in range(60):
            point = np.mean([m @ point + c for m, c in maps], axis=0)
        ends.append(point)
    assert np.allclose(*ends)


def test_6_2_vertical_learning_as_gtvmin():
    """Parties share labels' parts, not columns: each models all parts of a prediction.

    The model of every node is z = (z_1, z_2), the parts of the prediction of all rows
    by either party's columns. Party i's loss says that z_i lies in the range of its own
    columns; the first one's also that z_1 + z_2 is near the labels. Strong coupling
    makes them agree, which is linear regression on all columns.
    """
    m, strong = 8, 1e5
    x = DICE.normal(size=(m, 4))
    y = x @ [1.0, -1, 2, 0.5] + DICE.normal(size=m)
    rows, labels, owner = [], [], []
    for party, columns in enumerate((x[:, :2], x[:, 2:])):
        # Distance from the range of the party's own columns.
        outside = np.eye(m) - columns @ np.linalg.pinv(columns)
        block = np.zeros((m, 2 * m))
        block[:, party * m : (party + 1) * m] = np.sqrt(strong) * outside
        rows.append(block)
        labels.append(np.zeros(m))
        owner += m * [party]
    rows.append(np.tile(np.eye(m), 2))
    labels.append(y)
    owner += m * [0]
    pair = Graph.from_edges([0, 1], [(0, 1)])
    stacked, said = np.concatenate(rows), np.concatenate(labels)
    problem = tacita.from_arrays(
        stacked, said, owner, "linear", graph=pair, dtype=float
    )
    parts = GTVMin(problem, alpha=strong).solve()[0].reshape(2, m)
    plain = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    assert np.abs(parts.sum(axis=0) - plain).max() < 1e-3

"""The theorems on GTVMin: on random instances, what is measured respects the bound.

Random instances stay far below most bounds; test_gtv_tight.py has the worst cases,
where a wrong constant shows.
"""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from tacita.problem import graph
from tacita.theory import gtv

SEEDS = range(12)
ALPHAS = (0.05, 1.0, 20.0)


def instance(seed: int, spread: float = 0.0, noise: float = 0.5, n: int = 8):
    """A linear problem y_i = X_i w + noise_i with its truth and its noise."""
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(1, 4)), 5
    network = graph.erdos_renyi(n, p=0.5, seed=seed)
    truth = rng.normal(size=d) + spread * rng.normal(size=(n, d))
    x = rng.normal(size=(n, m, d))
    eps = noise * rng.normal(size=(n, m))
    y = np.einsum("nmd,nd->nm", x, truth) + eps
    owner = np.repeat(np.arange(n), m)
    made = tacita.from_arrays(
        x.reshape(-1, d), y.ravel(), owner, "linear", graph=network
    )
    return made, truth, eps


def squares(rows) -> np.ndarray:
    return np.sum(np.asarray(rows) ** 2, axis=1)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_models_stay_near_their_mean(alpha):
    """Prop. 3.1 and (165); a quarter of the bound would do, see test_gtv_tight.py."""
    for seed in SEEDS:
        problem, _, eps = instance(seed)
        models = gtv.linear_optimum(problem, alpha)
        apart = np.sum((models - models.mean(axis=0)) ** 2)
        lambda_2 = problem.graph.spectrum().lambda_2
        bound = gtv.deviation_bound(lambda_2, alpha, squares(eps), problem.counts)
        assert apart <= bound / 4


def test_total_variation_bounds_the_spread():
    """(44), which the eigenvector of lambda_2 reaches."""
    problem, _, _ = instance(SEEDS[0])
    values, vectors = np.linalg.eigh(problem.graph.laplacian().toarray())
    gtv_min = tacita.GTVMin(problem, 1.0)
    dice = np.random.default_rng(0)
    for models in (
        *dice.normal(size=(20, 8, problem.dim)),
        3 + dice.normal(size=(8, 1)),
    ):
        models = np.broadcast_to(models, (8, problem.dim))
        spread = np.sum((models - models.mean(axis=0)) ** 2)
        assert gtv_min.variation(models) >= values[1] * spread * (1 - 1e-9)
    slowest = np.outer(vectors[:, 1], np.ones(problem.dim)) + 2.0
    assert gtv_min.variation(slowest) == pytest.approx(values[1] * problem.dim)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_cluster_stays_near_its_mean(alpha):
    """Prop. 6.1, (148): nodes 0-4 share a model, the others have their own."""
    cluster = np.arange(5)
    for seed in SEEDS:
        problem, truth, eps = instance(seed, spread=1.0)
        x, y, counts = problem.stacked()
        y = y.copy()
        y[:5] = x[:5] @ truth[0] + eps[:5]
        owner = np.repeat(np.arange(8), 5)
        planted = tacita.from_arrays(
            x.reshape(40, -1), y.ravel(), owner, "linear", graph=problem.graph
        )
        inside = planted.graph.to_networkx().subgraph(cluster.tolist())
        if not tacita.problem.Graph.from_networkx(inside).connected:
            continue
        models = gtv.linear_optimum(planted, alpha)
        apart = np.sum((models[:5] - models[:5].mean(axis=0)) ** 2)
        bound = gtv.cluster_bound(
            planted.graph,
            cluster,
            alpha,
            squares(eps[:5]),
            counts[:5],
            truth[0],
            np.sqrt(squares(models[5:]).max()),
        )
        assert apart <= bound
    everyone = gtv.cluster_bound(
        planted.graph, np.arange(8), alpha, squares(eps), counts, truth[0], 0.0
    )
    lambda_2 = planted.graph.spectrum().lambda_2
    whole = gtv.deviation_bound(lambda_2, alpha, squares(eps), counts)
    assert everyone == pytest.approx(whole)


def test_connectivity_is_at_most_the_smallest_degree():
    """Prop. 7.1, (156), with equality for complete graphs."""
    for seed in SEEDS:
        network = graph.erdos_renyi(9, p=0.4, seed=seed)
        assert network.spectrum().lambda_2 <= gtv.connectivity_bound(network) + 1e-12
    whole = graph.complete(6)
    assert whole.spectrum().lambda_2 == pytest.approx(gtv.connectivity_bound(whole))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_changed_labels_move_the_models_little(alpha):
    """Prop. 8.1, also in the sharper form with 1/m_i."""
    for seed in SEEDS:
        problem, _, _ = instance(seed)
        x, y, counts = problem.stacked()
        change = 0.3 * np.random.default_rng(seed + 100).normal(size=y.shape)
        owner = np.repeat(np.arange(8), 5)
        other = tacita.from_arrays(
            x.reshape(40, -1),
            (y + change).ravel(),
            owner,
            "linear",
            graph=problem.graph,
        )
        moved = gtv.linear_optimum(problem, alpha) - gtv.linear_optimum(other, alpha)
        bound = gtv.sensitivity_bound(problem, alpha, squares(change) / counts)
        assert np.sum(moved**2) <= bound
        assert bound <= gtv.sensitivity_bound(problem, alpha, squares(change))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_mean_model_is_near_the_truth(alpha):
    """(167) and (169); with the sign that is printed (167) fails."""
    printed = []
    for seed in SEEDS:
        problem, truth, eps = instance(seed)
        models = gtv.linear_optimum(problem, alpha)
        off = float(np.sum((models.mean(axis=0) - truth[0]) ** 2))
        exact = gtv.centre_error(problem, models, eps)
        assert off <= exact * (1 + 1e-9)
        assert exact <= gtv.centre_error_bound(problem, alpha, squares(eps))
        if problem.dim == 1:  # the system has one equation: the bound is exact
            assert off == pytest.approx(exact, rel=1e-9)
        mirrored = 2 * models.mean(axis=0) - models
        printed.append(off <= gtv.centre_error(problem, mirrored, eps) * (1 + 1e-9))
    assert not all(printed)


def test_nodes_without_rows_have_no_noise():
    """(165)-(169) with two unlabelled nodes; with l2 the truth is not the goal."""
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(4), 5)
    x, eps = rng.normal(size=(20, 2)), np.zeros((6, 5))
    eps[:4] = 0.3 * rng.normal(size=(4, 5))
    parts = (x, x @ [1.0, -2.0] + eps[:4].ravel(), owner, "linear")
    more: dict = dict(graph=graph.ring(6), unlabelled=[4, 5])
    problem = tacita.from_arrays(*parts, **more)
    models = gtv.linear_optimum(problem, 1.0)
    off = np.sum((models.mean(axis=0) - [1.0, -2.0]) ** 2)
    exact = gtv.centre_error(problem, models, eps)
    assert off <= exact <= gtv.centre_error_bound(problem, 1.0, squares(eps))
    apart = np.sum((models - models.mean(axis=0)) ** 2)
    lambda_2 = problem.graph.spectrum().lambda_2
    bound = gtv.deviation_bound(lambda_2, 1.0, squares(eps), problem.counts)
    assert apart <= bound / 4
    drawn = tacita.from_arrays(*parts, l2=0.1, **more)
    for wrong in (
        lambda: gtv.centre_error(drawn, models, eps),
        lambda: gtv.centre_error_bound(drawn, 1.0, squares(eps)),
    ):
        with pytest.raises(tacita.TacitaError, match="l2=0"):
            wrong()


def test_a_node_that_nothing_holds_forgets_its_input():
    apart = graph.Graph.from_edges(3, [(0, 1)])
    problem = tacita.problem.synthetic.linear(3, features=2, graph=apart)
    assert gtv.relax_contraction(problem, 0.0) == 0
    sigma = problem.moduli.strong_convexity
    each = gtv.relax_robustness(sigma, 0.5, apart.degrees)
    assert each == pytest.approx([1 / (1 + sigma[0]), 1 / (1 + sigma[1]), 0])
    assert np.all(np.isfinite(gtv.node_step_sizes(problem, 0.0)))


def test_a_relaxation_step_is_robust():
    """(173)-(174): two inputs, one step."""
    problem, _, _ = instance(3)
    rng = np.random.default_rng(0)
    sigma = problem.moduli.strong_convexity
    degrees = np.asarray(problem.graph.degrees)
    for alpha in ALPHAS:
        starts = rng.normal(size=(2, 8, problem.dim))
        ends = [
            tacita.simulate(
                problem, tacita.FedRelax(alpha=alpha), 1, start=s, record=()
            ).agents
            for s in starts
        ]
        means = [problem.graph.adjacency() @ s / degrees[:, None] for s in starts]
        ratio = np.sqrt(squares(ends[0] - ends[1]) / squares(means[0] - means[1]))
        limit = gtv.relax_robustness(sigma, alpha, degrees)
        assert np.all(ratio <= limit + 1e-9)
        assert limit.max() == pytest.approx(gtv.relax_contraction(problem, alpha))
    half = gtv.relax_contraction(problem, 1.0, damping=0.5)
    assert half == pytest.approx(0.5 + 0.5 * gtv.relax_contraction(problem, 1.0))

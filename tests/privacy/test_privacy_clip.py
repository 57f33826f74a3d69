"""Clipping: equal to the slow way, sensitivity never exceeded and nearly reached."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import tacita
from tacita.algorithm.solvers import GradientDescent
from tacita.audits.canary import with_record, worst_canary
from tacita.privacy import Clipped, Noisy, gradient_noise
from tacita.problem import Differentiable
from tacita.problem.model import networks
from tacita.problem.model.differentiable import Custom
from tacita.problem.model.pieces import in_pieces
from tacita.problem.model.regulariser import NonConvex
from tacita.trees import tree_rows

MODELS = ("linear", "logistic", "softmax", "mlp")
ORACLES = {
    "full": tacita.Full(),
    "without_replacement": tacita.Minibatch(size=4),
    "with_replacement": tacita.Minibatch(size=4, sampling="with_replacement"),
    "poisson": tacita.Minibatch(size=4, sampling="poisson"),
    "permutation": tacita.Minibatch(size=4, sampling="permutation"),
}


def problem_of(model: Any, features: int = 3, dtype=np.float64, scale: float = 2.0):
    """Three unequal agents, so that padding is exercised."""
    draw = np.random.default_rng(4)
    agent = np.repeat([0, 1, 2], [9, 12, 7])
    x = scale * draw.normal(size=(len(agent), features))
    y = {
        "linear": 3 * draw.normal(size=len(agent)),
        "logistic": draw.integers(0, 2, len(agent)),
    }.get(model, draw.integers(0, 3, len(agent)))
    made = networks.mlp(features, (4,), 3) if model == "mlp" else model
    return tacita.from_arrays(x, y, agent, model=made, l2=0.2, dtype=dtype)


def local_of(problem, agent=0):
    return problem.population.local(tree_rows(problem.population.rows, agent))


def point(problem, seed=0):
    return jnp.asarray(
        problem.start + np.random.default_rng(seed).normal(size=problem.dim),
        problem.dtype,
    )


@functools.partial(jax.jit, static_argnums=0)
def one_gradient(model, w, x, y):
    return jax.grad(lambda v: model.losses(v, x[None], y[None])[0])(w)


@jax.jit
def gradient(oracle, local, draw, w):
    return oracle.grad(local, draw, w)


@jax.jit
def share_below(oracle, local, w):
    return oracle.share_below(local, w)


def by_hand(local, w, norm, weights):
    """One example at a time, gradients by automatic differentiation."""
    total = np.zeros(len(w))
    for k in range(local.padded_rows):
        g = np.asarray(one_gradient(local.model, w, local.x[k], local.rows.y[k]))
        length = max(np.linalg.norm(g), 1e-300)
        total += weights[k] * g * min(1.0, norm / length)
    return total + np.asarray(local.regulariser.grad(w))


@pytest.fixture(autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("model", "sampling"),
    [(m, s) for m in MODELS for s in ("full", "without_replacement")]
    + [("linear", "poisson"), ("mlp", "poisson")]
    + [("logistic", "permutation"), ("softmax", "with_replacement")],
)
def test_equals_clipping_one_example_at_a_time(model, sampling):
    problem = problem_of(model)
    local, inner = local_of(problem), ORACLES[sampling]
    oracle = Clipped(norm=0.7, oracle=inner, microbatch=5)
    w = point(problem).astype(np.float64)
    draws = oracle.draws(local, jax.random.key(3), 2)
    for step in range(2):
        draw = None if draws is None else draws[step]
        if sampling == "full":
            weights = np.arange(local.padded_rows) < local.count
            weights = weights / float(local.count)
        elif sampling == "poisson":
            weights = np.asarray(draw)
        else:
            weights = np.bincount(np.asarray(draw), minlength=local.padded_rows) / 4
        expected = by_hand(local, w, 0.7, weights)
        found = gradient(oracle, local, draw, w)
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_a_large_norm_changes_nothing(model):
    problem = problem_of(model)
    local, w = local_of(problem, 2), point(problem)
    loose = gradient(Clipped(norm=1e6), local, None, w)
    plain = gradient(tacita.Full(), local, None, w)
    np.testing.assert_allclose(loose, plain, rtol=1e-6, atol=1e-9)


def one_by_one(model: Differentiable) -> Differentiable:
    """The same network, of which clipping does not know the layers."""
    return Differentiable(model.dim, model.apply, model.initial, model.classes, "bare")


@pytest.mark.few(2)
@pytest.mark.parametrize("classes", (3, None))
@pytest.mark.parametrize("hidden", ((), (4,), (5, 4)))
def test_perceptrons_need_no_gradients_of_single_records(classes, hidden):
    draw = np.random.default_rng(2)
    x, agent = 2 * draw.normal(size=(11, 3)), np.zeros(11)
    y = draw.normal(size=11) if classes is None else draw.integers(0, classes, 11)
    model = networks.mlp(3, hidden, classes)
    twins = [
        tacita.from_arrays(x, y, agent, model=one, dtype=np.float64)
        for one in (model, one_by_one(model))
    ]
    w = point(twins[0])
    for norm in (0.3, 2.0):
        oracle = Clipped(norm=norm)
        sums = [gradient(oracle, local_of(one), None, w) for one in twins]
        np.testing.assert_allclose(*sums, rtol=1e-10, atol=1e-13)
        shares = [float(share_below(oracle, local_of(one), w)) for one in twins]
        assert shares[0] == shares[1]


def images(model: Differentiable) -> tacita.Problem:
    draw = np.random.default_rng(2)
    x, y = 2 * draw.normal(size=(11, 16)), draw.integers(0, 3, 11)
    return tacita.from_arrays(x, y, np.zeros(11), model=model, dtype=np.float64)


@pytest.mark.parametrize("hidden", ((), (5, 4)))
def test_dense_layers_behind_convolutions_are_clipped_in_factors(hidden):
    model = networks.cnn((4, 4, 1), 3, (2,), hidden=hidden)
    twins = [images(one) for one in (model, one_by_one(model))]
    w = point(twins[0])
    for norm in (0.3, 2.0):
        oracle = Clipped(norm=norm, microbatch=4)
        sums = [gradient(oracle, local_of(one), None, w) for one in twins]
        np.testing.assert_allclose(*sums, rtol=1e-10, atol=1e-13)
        shares = [float(share_below(oracle, local_of(one), w)) for one in twins]
        assert shares[0] == shares[1]


def test_dense_layers_behind_convolutions_are_never_built():
    model = networks.cnn((4, 4, 1), 3, (2,), hidden=(500,))

    def bytes_of(one: Differentiable) -> int:
        problem = images(one)
        given = Clipped(norm=1.0), local_of(problem), None, point(problem)
        return gradient.lower(*given).compile().memory_analysis().temp_size_in_bytes

    # Eleven gradients of 5,500 doubles.
    assert bytes_of(one_by_one(model)) > 11 * 8 * model.dim > 3 * bytes_of(model)


@pytest.mark.parametrize("bad", (np.nan, np.inf, 1e200))
@pytest.mark.parametrize("convolutions", (False, True))
def test_a_record_that_breaks_a_network_does_not_show(bad, convolutions):
    made = networks.cnn((4, 4, 1), 3, (2,), hidden=(5,))
    problem = images(made) if convolutions else problem_of("mlp")
    w = point(problem)
    rows = problem.population.rows
    broken = rows._replace(x=rows.x.at[0, 2].set(bad))
    found = gradient(
        Clipped(norm=0.5), problem.population.local(tree_rows(broken, 0)), None, w
    )
    local = local_of(problem)
    weights = local.mean_weights() * (jnp.arange(local.padded_rows) != 2)
    wanted = by_hand(local, w, 0.5, weights)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_microbatches_are_even():
    rows = (jnp.arange(20.0)[:, None], jnp.arange(20))
    x, y = in_pieces(rows, 16)
    assert x.shape == (2, 10, 1) and y.shape == (2, 10)  # not 32 rows, 12 of nothing
    np.testing.assert_array_equal(y.ravel(), np.arange(20))
    assert in_pieces(rows, 3)[0].shape == (7, 3, 1)
    assert in_pieces(rows, 99)[0].shape == (1, 20, 1)


@pytest.mark.parametrize("micro", (1, 100))
def test_microbatches_do_not_show(micro):
    model = one_by_one(networks.mlp(3, (4,), 3))
    problem = problem_of(model, dtype=np.float64)
    local, w = local_of(problem), point(problem)
    one = Clipped(norm=0.5, microbatch=7)
    other = Clipped(norm=0.5, microbatch=micro)
    np.testing.assert_allclose(
        gradient(one, local, None, w), gradient(other, local, None, w), atol=1e-12
    )
    assert share_below(one, local, w) == share_below(other, local, w)


@pytest.mark.parametrize("model", MODELS)
def test_share_of_records_below_the_norm(model):
    problem = problem_of(model)
    local, w = local_of(problem), point(problem)
    norms = []
    for k in range(int(local.count)):
        g = one_gradient(local.model, w, local.x[k], local.rows.y[k])
        norms.append(float(np.linalg.norm(g)))
    middle = float(np.median(norms)) * 1.0001
    share = share_below(Clipped(norm=middle), local, w)
    assert share == pytest.approx(np.mean(np.asarray(norms) <= middle))


def gradient_change(problem, oracle, w, first, second, draw):
    """How far apart gradients on two data sets are that differ in agent 0's row 0."""
    pair = [local_of(with_record(problem, 0, 0, r)) for r in (first, second)]
    grads = [gradient(oracle, local, draw, w) for local in pair]
    return float(jnp.linalg.norm(grads[0] - grads[1]))


def some_record(draw, problem, model):
    scale = 10.0 ** draw.uniform(-3, 3)
    features = scale * draw.normal(size=3)
    label = {"linear": 10.0 ** draw.uniform(0, 6), "logistic": draw.choice([-1.0, 1.0])}
    return features, label.get(model, int(draw.integers(0, 3)))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("model", "sampling"),
    [(m, "full") for m in MODELS]
    + [("logistic", "without_replacement"), ("linear", "poisson")],
)
def test_no_neighbour_exceeds_the_sensitivity(model, sampling):
    problem = problem_of(model)
    oracle = Clipped(norm=0.7, oracle=ORACLES[sampling])
    samples, draw = int(problem.counts[0]), np.random.default_rng(1)
    # A batch that holds the record.
    rows = {"without_replacement": jnp.array([0, 3, 5, 6])}.get(sampling)
    if sampling == "poisson":
        rows = jnp.zeros(local_of(problem).padded_rows).at[jnp.array([0, 2])].set(1 / 4)
    replace = oracle.sensitivity("replace_one", samples)
    remove = oracle.sensitivity("add_remove", samples)
    assert replace == pytest.approx(2 * 0.7 / (samples if sampling == "full" else 4))
    assert remove == pytest.approx(replace / 2)
    for seed in range(12):
        w = point(problem, seed)
        one, two = (some_record(draw, problem, model) for _ in range(2))
        assert gradient_change(problem, oracle, w, one, two, rows) <= replace * (
            1 + 1e-9
        )
        if model != "mlp":  # an empty row still has a gradient in a network's biases
            empty = (np.zeros(3), one[1])
            change = gradient_change(problem, oracle, w, one, empty, rows)
            assert change <= remove * (1 + 1e-9)


@pytest.mark.parametrize("model", ("linear", "logistic", "softmax"))
def test_a_worst_case_reaches_the_sensitivity(model):
    problem = problem_of(model)
    oracle = Clipped(norm=0.7)
    algorithm = tacita.ServerGD(oracle=oracle)
    samples = int(problem.counts[0])
    w = jnp.zeros(problem.dim)
    for relation in ("replace_one", "add_remove"):
        canary = worst_canary(problem, algorithm, relation)
        change = gradient_change(
            problem, oracle, w, canary.record, canary.neighbour, None
        )
        stated = oracle.sensitivity(relation, samples)
        assert 0.9 * stated <= change <= stated * (1 + 1e-9)


def test_a_worst_case_of_a_network_reaches_the_sensitivity():
    """With two classes the gradients of either label point in opposite directions."""
    draw = np.random.default_rng(0)
    problem = tacita.from_arrays(
        draw.normal(size=(9, 3)),
        draw.integers(0, 2, 9),
        np.zeros(9),
        model=networks.mlp(3, (4,), 2),
        dtype=np.float64,
    )
    # A small norm, so that either gradient is clipped where the network is unsure.
    oracle, w = Clipped(norm=0.01), jnp.asarray(problem.start)
    x = draw.normal(size=3)
    change = gradient_change(problem, oracle, w, (x, 0), (x, 1), None)
    stated = oracle.sensitivity("replace_one", 9)
    assert 0.9 * stated <= change <= stated * (1 + 1e-9)


def test_a_whole_client_is_bounded_too():
    problem = problem_of("logistic")
    oracle = Clipped(norm=0.7)
    stated = oracle.sensitivity("replace_one", 9, unit="client")
    assert stated == pytest.approx(1.4)
    features = np.array([10.0, 0, 0])
    pair = []
    for label in (-1.0, 1.0):
        made = problem
        for row in range(9):
            made = with_record(made, 0, row, (features, label))
        pair.append(gradient(oracle, local_of(made), None, jnp.zeros(3)))
    change = float(jnp.linalg.norm(pair[0] - pair[1]))
    assert 0.9 * stated <= change <= stated * (1 + 1e-9)
    with pytest.raises(tacita.TacitaError, match="no largest size"):
        Clipped(norm=1.0, oracle=ORACLES["poisson"]).sensitivity(
            "add_remove", 9, unit="client"
        )


@pytest.mark.few(5)
@pytest.mark.parametrize("model", ("linear", "logistic", "softmax", "mlp"))
@pytest.mark.parametrize(
    ("size", "label"),
    ((1e-20, 1e30), (1e25, 1.0), (3e18, 1e30), (0.0, 1e30), (3e38, 1.0), (1e38, 1e30)),
)
def test_float32_extremes_stay_within_the_norm(model, size, label):
    """Squares that vanish or overflow must not open the clip."""
    problem = problem_of(model, dtype=np.float32)
    labels = {"linear": label, "logistic": 1.0}
    record = (np.full(3, size), labels.get(model, 1))
    oracle = Clipped(norm=0.7)
    local = local_of(with_record(problem, 0, 0, record))
    w = point(problem).astype(np.float32)
    with_it = gradient(oracle, local, None, w)
    empty = local_of(with_record(problem, 0, 0, (np.zeros(3), 0)))
    without = gradient(oracle, empty, None, w)
    assert with_it.dtype == np.float32
    bound = oracle.sensitivity("replace_one", 9)
    assert float(jnp.linalg.norm(with_it - without)) <= bound * (1 + 1e-4)


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("model", ("linear", "logistic", "softmax"))
def test_rows_longer_than_any_number_stay_within_the_norm(model, dtype):
    """Their length is no number, and one in its place would be too short."""
    problem = problem_of(model, features=99, dtype=dtype)
    size, norm = 0.9 * float(np.finfo(dtype).max), 100.0
    record = (size * (-1.0) ** np.arange(99), {"linear": 5.0}.get(model, 1))
    local = local_of(with_record(problem, 0, 0, record))
    w = jnp.zeros(problem.dim, dtype)
    found = gradient(Clipped(norm=norm), local, None, w)
    empty = local_of(with_record(problem, 0, 0, (np.zeros(99), 0)))
    without = gradient(Clipped(norm=norm), empty, None, w)
    assert float(jnp.linalg.norm(found - without)) <= norm / 9 * (1 + 1e-4)


@pytest.mark.parametrize(
    ("dtype", "score", "size"),
    ((np.float32, 66.0, 1e30), (np.float64, 450.0, 1e250)),
)
def test_residuals_whose_squares_vanish_stay_within_the_norm(dtype, score, size):
    """A class that is all but certain, of a row that is long where nobody looks."""
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(9, 2)), np.arange(9) % 2
    problem = tacita.from_arrays(x, y, np.zeros(9), model="softmax", dtype=dtype)
    w = jnp.asarray([1.0, 0.0, 0.0, 0.0], dtype)  # the second feature is not used
    local = local_of(with_record(problem, 0, 0, (np.array([score, size]), 0)))
    empty = local_of(with_record(problem, 0, 0, (np.zeros(2), 0)))
    oracle = Clipped(norm=0.7)
    found, without = (gradient(oracle, one, None, w) for one in (local, empty))
    assert float(jnp.linalg.norm(found - without)) <= 0.7 / 9 * (1 + 1e-4)


def test_the_regulariser_is_outside():
    draw = np.random.default_rng(0)
    problem = tacita.from_arrays(
        draw.normal(size=(8, 3)),
        draw.integers(0, 2, 8),
        np.repeat([0, 1], 4),
        regulariser=NonConvex(weight=50.0),
    )
    w = jnp.ones(3)
    grad = gradient(Clipped(norm=1e-6), local_of(problem), None, w)
    np.testing.assert_allclose(grad, problem.population.regulariser.grad(w), atol=1e-5)


def letter_noise(algorithm, seeds=300, features=40):
    """Final models of runs on data without any gradient: noise and nothing else."""
    problem = tacita.from_arrays(np.zeros((1, features)), [1.0], [0])
    run = tacita.simulate(problem, algorithm, 1, seed=0, seeds=seeds, record=())
    return run.params.ravel()


CLIP = Clipped(norm=1.0)
NOISES = {
    # w = -eta n
    "ServerGD": (
        tacita.ServerGD(step_size=0.5, oracle=Noisy(std=2.0, oracle=CLIP)),
        1.0,
    ),
    # w = -eta (n_1 + n_2 + n_3)
    "FedAvg": (
        tacita.FedAvg(step_size=0.5, local_steps=3, oracle=Noisy(std=2.0, oracle=CLIP)),
        np.sqrt(3),
    ),
    # z = 2 x with x = sqrt(2 gamma) tau n
    "FedPLT": (
        tacita.FedPLT(
            rho=1.0,
            solver=GradientDescent(step_size=0.5, local_steps=1),
            oracle=Noisy(std=gradient_noise(2.0, 0.5), oracle=CLIP),
        ),
        4.0,
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", NOISES)
def test_noise_scale_is_right_and_five_percent_less_is_rejected(name):
    algorithm, scale = NOISES[name]
    noise = letter_noise(algorithm)

    def p_value(stated):
        total = np.sum((noise / stated) ** 2)
        side = stats.chi2(len(noise)).cdf(total)
        return 2 * min(side, 1 - side)

    assert p_value(scale) > 1e-3
    assert p_value(scale / 0.95) < 1e-8 and p_value(scale * 0.95) < 1e-8
    assert stats.kstest(noise / scale, "norm").pvalue > 1e-3


@pytest.mark.parametrize(
    ("make", "message"),
    (
        (lambda: Clipped(norm=0.0), "expected norm > 0"),
        (lambda: Clipped(norm=1.0, microbatch=0), "microbatch"),
        (lambda: Clipped(norm=1.0, oracle=Clipped(norm=1.0)), "clipped already"),
        (lambda: CLIP.sensitivity("replace", 3), "relation"),
        (lambda: CLIP.sensitivity("replace_one", 0), "samples"),
        (lambda: CLIP.sensitivity("replace_one", 3, unit="house"), "unit"),
        (lambda: Noisy(std=-1.0, oracle=CLIP), "expected std >= 0"),
        (lambda: Noisy(std=None, oracle=CLIP), "std"),
        (lambda: Noisy(std=1.0, oracle=Noisy(std=1.0)), "noisy already"),
    ),
)
def test_refusals(make, message):
    with pytest.raises(tacita.TacitaError, match=message):
        make()


def test_batches_larger_than_an_agent_are_refused():
    problem = problem_of("logistic")
    oracle = Clipped(norm=1.0, oracle=tacita.Minibatch(size=8))
    with pytest.raises(tacita.TacitaError, match="batch=8 exceeds"):
        tacita.simulate(problem, tacita.FedAvg(step_size=0.1, oracle=oracle), 1)


@pytest.mark.parametrize("inside", ("loss", "network"))
def test_losses_that_look_at_all_rows_move_no_more_than_their_own(inside):
    """A user's loss or network may mix a batch: clipped, every row is shown alone."""
    network: Any = tacita.problem.mlp(2, hidden=(2,), classes=None)
    if inside == "loss":
        mixing = dataclasses.replace(network, loss=lambda s, y: (s - jnp.mean(y)) ** 2)
    else:
        mixing = Custom(
            dim=network.dim,
            example_losses=lambda w, x, y: (x @ w[:2] + w[-1] - jnp.mean(y)) ** 2,
            initial=network.start,
        )
    clipped, w = tacita.Clipped(norm=1.0), jnp.zeros(network.dim)
    told = []
    for label in (0.0, 1000.0):
        y = np.array([label, 0.0, 0.0, 0.0])
        made = tacita.from_arrays(np.zeros((4, 2)), y, [0] * 4, model=mixing)
        local = made.population.local(tree_rows(made.population.rows, 0))
        gradient = clipped.grad(local, None, w)
        told.append((gradient, clipped.loss(local, None, w, 3.0)))
    (before, loss), (after, other) = told
    assert np.linalg.norm(after - before) <= clipped.sensitivity("replace_one", 4)
    assert other - loss == pytest.approx(3.0 / 4)

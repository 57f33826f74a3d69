"""Hand-written gradients against autodiff, and labels against their models."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.problem import (
    Custom,
    Linear,
    Logistic,
    Moments,
    NonConvex,
    Softmax,
    SquaredL2,
)
from tacita.problem.model.layers import Layers
from tacita.problem.model.networks import cnn, mlp, normalise, resnet10


def rows(model, m=7, seed=0):
    rng = np.random.default_rng(seed)
    features = getattr(model, "features", 4)
    x = rng.normal(size=(m, features))
    if isinstance(model, Linear | Moments):
        y = rng.normal(size=m)
    elif isinstance(model, Logistic):
        y = rng.choice([-1.0, 1.0], size=m)
    else:
        y = rng.integers(0, model.classes, size=m)
    return jnp.asarray(x), jnp.asarray(y)


@pytest.mark.few(1)
@pytest.mark.parametrize("model", [Linear(3), Logistic(3), Softmax(3, 4), Moments(3)])
def test_gradient_is_the_derivative_of_the_loss(model):
    with jax.enable_x64(True):
        x, y = rows(model)
        rng = np.random.default_rng(1)
        w = jnp.asarray(rng.normal(size=model.dim))
        weights = jnp.asarray(rng.random(7))
        expected = jax.grad(lambda v: jnp.sum(weights * model.losses(v, x, y)))(w)
        np.testing.assert_allclose(model.grad(w, x, y, weights), expected, atol=1e-13)


def test_losses_are_the_stated_ones():
    with jax.enable_x64(True):
        x, w = jnp.asarray([[1.0, 2.0]]), jnp.asarray([0.5, -1.0])
        assert Linear(2).losses(w, x, jnp.asarray([1.0]))[0] == (0.5 - 2 - 1) ** 2
        got = Logistic(2).losses(w, x, jnp.asarray([-1.0]))[0]
        np.testing.assert_allclose(got, np.log(1 + np.exp(-1.5)), rtol=1e-14)
        soft = Softmax(2, 3)
        v = jnp.asarray([1.0, 0.0, 0.0, 1.0, 0.5, 0.5])
        scores = np.array([1.0, 2.0, 1.5])
        expected = np.log(np.exp(scores).sum()) - scores[2]
        np.testing.assert_allclose(
            soft.losses(v, x, jnp.asarray([2]))[0], expected, rtol=1e-14
        )


def test_logistic_does_not_overflow():
    with jax.enable_x64(True):
        model, x = Logistic(1), jnp.asarray([[1e4], [-1e4]])
        y = jnp.asarray([-1.0, -1.0])
        w = jnp.asarray([1.0])
        assert np.all(np.isfinite(model.losses(w, x, y)))
        assert np.all(np.isfinite(model.grad(w, x, y, jnp.ones(2))))


@pytest.mark.parametrize("penalty", [SquaredL2(weight=0.7), NonConvex(weight=0.7)])
def test_regularisers_and_their_derivatives(penalty):
    with jax.enable_x64(True):
        w = jnp.linspace(-2, 2, 9)
        np.testing.assert_allclose(penalty.grad(w), jax.grad(penalty)(w), atol=1e-14)
        diagonal = jnp.diag(jax.hessian(penalty)(w))
        np.testing.assert_allclose(penalty.curvature(w), diagonal, atol=1e-13)
        low, high = penalty.curvature_bounds
        fine = penalty.curvature(jnp.linspace(-4, 4, 20_001))
        np.testing.assert_allclose([fine.min(), fine.max()], [low, high], atol=1e-6)


@pytest.mark.long
def test_networks_learn_and_share_their_program():
    assert mlp(4, (8,), 3) is mlp(4, (8,), 3)
    model = mlp(4, (8, 5), 3)
    np.testing.assert_array_equal(model.layers(0), np.arange(model.dim) < 4 * 8 + 8)
    np.testing.assert_array_equal(~model.layers(0, 1), model.layers(-1))
    with pytest.raises(tacita.TacitaError, match="has 3 layers, got number 3"):
        model.layers(3)
    rng = np.random.default_rng(0)
    for model, width in ((mlp(16, (8,), 3), 16), (cnn((4, 4, 1), 3, (4,)), 16)):
        x = jnp.asarray(rng.normal(size=(20, width)), jnp.float32)
        y = jnp.asarray(rng.integers(0, 3, 20))
        w = jnp.asarray(model.start())
        weights = jnp.full(20, 1 / 20, jnp.float32)
        assert model.predict(w, x).shape == (20,)
        before = jnp.mean(model.losses(w, x, y))
        for _ in range(60):
            w = w - 0.3 * model.grad(w, x, y, weights)
        assert w.dtype == jnp.float32
        assert jnp.mean(model.losses(w, x, y)) < 0.7 * before


def test_the_cnn_of_the_fedavg_paper_and_one_for_colours():
    """Kernels of 5 x 5 and a dense layer; by hand on one row."""
    assert cnn((28, 28, 1), 10, (32, 64), kernel=5, hidden=(512,)).dim == 1_663_370
    model = cnn((4, 4, 3), 2, (2,), kernel=5, hidden=(3,))
    assert model.shapes == ((5, 5, 3, 2), (2,), (8, 3), (3,), (3, 2), (2,))
    rng = np.random.default_rng(0)
    w = rng.normal(size=model.dim).astype(np.float32)
    kernel, shift, first, bias, second, last = (
        np.asarray(part) for part in Layers(model.shapes).unpack(jnp.asarray(w))
    )
    row = rng.normal(size=(4, 4, 3)).astype(np.float32)
    around = np.pad(row, ((2, 2), (2, 2), (0, 0)))
    out = np.zeros((4, 4, 2))
    for i, j in np.ndindex(4, 4):
        out[i, j] = np.einsum("abc,abcd->d", around[i : i + 5, j : j + 5], kernel)
    out = np.maximum(out + shift, 0).reshape(2, 2, 2, 2, 2).max(axis=(1, 3))
    wanted = np.maximum(out.ravel() @ first + bias, 0) @ second + last
    scores = jax.jit(model.scores)(w, row.reshape(1, -1))[0]
    np.testing.assert_allclose(scores, wanted, rtol=1e-4)
    # The images of CIFAR, and their losses.
    colours = cnn((32, 32, 3), 10, (2,), kernel=5)
    x, y = jnp.zeros((2, 3072), jnp.float32), jnp.zeros(2, int)
    assert jax.eval_shape(colours.losses, colours.start(), x, y).shape == (2,)


def test_resnet_normalises_every_record_by_itself():
    model = resnet10((8, 8, 1), 3, width=4, groups=2)
    # Stem 9*4; blocks 2*9*c*c' + shortcut c*c'; norms 2 per channel; dense.
    convs = (
        9 * 4
        + 2 * 9 * 16
        + sum(9 * a * 2 * a + 9 * 4 * a * a + 2 * a * a for a in (4, 8, 16))
    )
    norms = 2 * 4 + 4 * (4 + 8 + 16 + 32)
    assert model.dim == convs + norms + 32 * 3 + 3
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(6, 64)), jnp.float32)
    y = jnp.asarray([0, 1, 2, 0, 1, 2])
    w = jnp.asarray(model.start())
    losses, grad = jax.jit(model.losses), jax.jit(model.grad)
    before = losses(w, x, y)
    np.testing.assert_array_equal(before[1:], losses(w, x.at[0].set(3.0), y)[1:])
    g = grad(w, x, y, jnp.full(6, 1 / 6, jnp.float32))
    assert jnp.mean(losses(w - 0.01 * g, x, y)) < jnp.mean(before)
    with pytest.raises(tacita.TacitaError, match="divisible by groups"):
        resnet10((8, 8, 1), 3, width=6, groups=4)


def test_channels_are_normalised_in_groups_as_numpy_does_it():
    rng = np.random.default_rng(1)
    x, scale, shift = (rng.normal(2, 3, s) for s in ((2, 3, 5, 6), (6,), (6,)))
    wanted = np.empty_like(x)
    for row in range(2):
        for group in (slice(0, 2), slice(2, 4), slice(4, 6)):
            part = x[row, :, :, group]
            unit = (part - part.mean()) / np.sqrt(part.var() + 1e-5)
            wanted[row, :, :, group] = unit * (1 + scale[group]) + shift[group]
    with jax.enable_x64(True):
        given = (jnp.asarray(x), jnp.asarray(scale), jnp.asarray(shift))
        found = normalise(*given, groups=3)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_sizes_of_a_network_may_be_listed():
    assert mlp(3, [4], 2) is mlp(3, np.array([4]), 2) is mlp(3, (4,), 2)
    assert cnn([4, 4, 1], 3, [4]) is cnn((4, 4, 1), 3, (4,))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: mlp(3, 4, 2), "expected hidden a list of sizes"),
        (lambda: mlp(3, [[4]], 2), "expected hidden a whole number >= 1"),
        (lambda: mlp(3, [4], 0), "expected classes a whole number >= 2"),
        (lambda: mlp(3, [4], 2, seed=-1), "expected seed a whole number >= 0"),
        (lambda: cnn([4, 4, 1], None), "expected classes a number"),
        (lambda: cnn([4, 4], 2), r"expected image=\(height, width, channels\)"),
        (lambda: cnn([4, 4, 1], 2, []), "channels is empty"),
        (lambda: cnn([4, 4, 1], 2, kernel=0), "kernel"),
        (lambda: cnn([4, 4, 1], 2, hidden=8), "expected hidden a list of sizes"),
    ],
)
def test_a_network_that_cannot_be_is_refused(build, message):
    with pytest.raises(tacita.TacitaError, match=message):
        build()


def test_regression_network_predicts_numbers():
    model = mlp(3, (), None)
    x = jnp.ones((5, 3))
    assert model.predict(jnp.asarray(model.start()), x).shape == (5,)


def test_any_jax_loss_is_a_model():
    model = Custom(2, lambda w, x, y: jnp.abs(x @ w - y), lambda: np.zeros(2))
    g = model.grad(jnp.zeros(2), jnp.eye(2), jnp.asarray([1.0, -1.0]), jnp.ones(2))
    np.testing.assert_array_equal(g, [-1.0, 1.0])

"""Large batches in pieces: the same numbers, from less memory."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacita.problem import Differentiable, cnn, mlp, resnet10
from tacita.problem.model import pieces

IMAGE, ROWS = (8, 8, 1), 50
NETWORKS = {
    "cnn": cnn(IMAGE, 3, (2, 4)),
    "resnet10": resnet10(IMAGE, 3, width=2, groups=1),
    "mlp": mlp(64, (100,), 3),
    "value": mlp(64, (100,), None),
}


def batch(model: Differentiable, rows: int = ROWS):
    draw = np.random.default_rng(3)
    x, weights = draw.normal(size=(rows, 64)), draw.random(rows)
    w = model.start() + 0.1 * draw.normal(size=model.dim)
    y = draw.integers(0, 3, rows) if model.classes else draw.normal(size=rows)
    return tuple(map(jnp.asarray, (w, x, y, weights)))


@pytest.fixture
def small(monkeypatch):
    """Pieces of a few rows, so that fifty are many; in double precision."""
    monkeypatch.setattr(pieces, "_BYTES", 8000)
    monkeypatch.setattr(pieces, "_PARAMETERS", 0)
    pieces._rows_at_once.cache_clear()
    with jax.enable_x64(True):
        yield
    pieces._rows_at_once.cache_clear()


@pytest.mark.parametrize("name", NETWORKS)
def test_pieces_do_not_show(name, small):
    model = NETWORKS[name]
    w, x, y, weights = batch(model)
    # Not built here, as far as it knows: everything at once.
    whole = replace(model, recipe=None)
    assert pieces.rows_at_once(model._scores, w, x) <= ROWS // 2
    np.testing.assert_allclose(model.scores(w, x), whole.scores(w, x), rtol=1e-12)
    found, wanted = (one.grad(w, x, y, weights) for one in (model, whole))
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def test_rows_that_fill_up_weigh_nothing(small):
    model = NETWORKS["cnn"]
    w, x, y, weights = batch(model, ROWS + 1)
    assert (ROWS + 1) % pieces.rows_at_once(model._scores, w, x)
    sum_of_rows = sum(
        model.grad(w, x[k : k + 1], y[k : k + 1], weights[k : k + 1])
        for k in range(ROWS + 1)
    )
    np.testing.assert_allclose(model.grad(w, x, y, weights), sum_of_rows, atol=1e-12)
    alike = model.grad(w, x, y, jnp.asarray(0.5))  # one weight for all
    np.testing.assert_allclose(alike, model.grad(w, x, y, jnp.full(ROWS + 1, 0.5)))


def test_more_rows_take_no_more_memory():
    model = cnn((16, 16, 1), 3, (8, 8))

    def bytes_of(rows: int) -> int:
        w = jnp.zeros(model.dim, jnp.float32)
        x, y = jnp.zeros((rows, 256), jnp.float32), jnp.zeros(rows, int)
        compiled = jax.jit(model.grad).lower(w, x, y, jnp.ones(rows, jnp.float32))
        return compiled.compile().memory_analysis().temp_size_in_bytes

    size = pieces.rows_at_once(
        model._scores, jnp.zeros(model.dim, jnp.float32), jnp.zeros((9, 256))
    )
    few, many = bytes_of(2 * size), bytes_of(16 * size)
    assert many < 2 * few


def test_a_network_that_looks_at_its_batch_is_shown_all_of_it(small):
    """Normalised over the rows, as batch normalisation does."""

    def apply(w, x):
        return ((x - x.mean(axis=0)) @ w.reshape(64, 3)) * 2

    model = Differentiable(192, apply, lambda: np.zeros(192, np.float32), 3)
    w, x, _, _ = batch(model)
    np.testing.assert_allclose(model.scores(w, x), apply(w, x), rtol=1e-12)


def test_small_pieces_must_be_worth_their_gradient():
    """Dense layers alone have more parameters than numbers to compute of a row."""
    model, x = mlp(64, (5,), 3), jnp.zeros((9, 64), jnp.float32)
    w = jnp.zeros(model.dim, jnp.float32)
    each = (5 + 5 + 5 + 3 + 3) + 64  # layers, biases, ReLU, and the rows made flat
    assert pieces.rows_at_once(model._scores, w, x) >= 4 * model.dim / (4 * each)
    # Pictures of 28 x 28, 16 channels: 50 kilobytes a row.
    wide = resnet10((28, 28, 1), 10, width=16, groups=8)
    w, x = jnp.zeros(wide.dim, jnp.float32), jnp.zeros((9, 784), jnp.float32)
    assert pieces.rows_at_once(wide._scores, w, x) == 3_000_000 // (28 * 28 * 16 * 4)

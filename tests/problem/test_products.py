"""Products of few rows and columns, written out, are the products."""

import jax
import numpy as np
import pytest

from tacita.problem.model import products

SHAPES = [(1, 1), (5, 10), (8, 16), (9, 3), (3, 17), (40, 40)]


def drawn(rows: int, features: int):
    rng = np.random.default_rng(rows + features)
    return (
        rng.standard_normal((rows, features)),
        rng.standard_normal(features),
        rng.standard_normal(rows),
    )


@pytest.mark.few(2)
@pytest.mark.parametrize(("rows", "features"), SHAPES)
def test_products_are_those_of_numpy(rows: int, features: int):
    x, w, r = drawn(rows, features)
    with jax.enable_x64(True):
        on_device = [jax.numpy.asarray(part) for part in (x, w, r)]
        found = [
            products.times(on_device[0], on_device[1]),
            products.combine(on_device[2], on_device[0]),
            products.gram(on_device[0]),
        ]
    for one, wanted in zip(found, (x @ w, r @ x, x @ x.T), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("rows", "features"), [(5, 10), (8, 16)])
def test_few_rows_and_columns_become_one_loop(rows: int, features: int):
    """No small product is left to XLA, which would do them one after the other."""
    x, w, r = drawn(rows, features)

    def gradient(x, w, r):
        return products.combine(r - products.times(x, w), x)

    many = jax.vmap(gradient)
    program = jax.jit(many).lower(x[None], w[None], r[None]).compile().as_text()
    assert program is not None and "dot(" not in program

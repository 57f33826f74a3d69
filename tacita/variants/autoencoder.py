"""Nodes compared by what a jointly trained encoder makes of their rows.

A. Jung, "Federated Learning: From Theory to Practice", section 7.2: all nodes train one
autoencoder by FedAvg; a node is then represented by the mean code of its rows. Alike
rows have alike codes, whatever the model that is trained on them later.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.fed_avg import FedAvg
from tacita.problem.arrays import from_arrays
from tacita.problem.model.differentiable import Custom
from tacita.problem.model.layers import Layers
from tacita.problem.problem import Problem
from tacita.runtime.simulate import simulate
from tacita.trees import in_double_precision


def encoded(
    problem: Problem,
    code: int = 2,
    hidden: int = 8,
    rounds: int = 100,
    algorithm: Any = None,
    seed: int = 0,
) -> np.ndarray:
    """The mean code of every node's rows, (N, code), to hand to `graph.learned`.

    Columns of features and label are brought to mean 0 and deviation 1 over all rows,
    which a federation would have to sum up first. Nothing here is private.

    Args:
        problem: The nodes' rows; its model is not looked at.
        code: Numbers in a code.
        hidden: Units of the layer before it, and of the one after it.
        rounds: Of the joint training.
        algorithm: How it is trained; FedAvg with five steps of 0.1 if left out.
        seed: Of the starting point.

    >>> import tacita
    >>> nodes = tacita.problem.synthetic.linear(5, features=3, samples=20)
    >>> encoded(nodes, rounds=5).shape
    (5, 2)
    """
    check.count(rounds=rounds)
    x, y, counts = problem.stacked()
    owner, place = np.nonzero(np.arange(y.shape[1]) < counts[:, None])
    flat = x[owner, place].reshape(len(owner), -1)
    rows = np.column_stack([flat, y[owner, place]]).astype(float)
    spread = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    size = rows.shape[1], check.count(hidden=hidden), check.count(code=code)
    model = _autoencoder(*size, check.seed(seed=seed))
    nothing = np.zeros(len(rows))
    joint = from_arrays(rows, nothing, owner, model=model, dtype=np.float64)
    how = algorithm or FedAvg(step_size=0.1, local_steps=5)
    done = simulate(joint, how, rounds, seed, record=(), progress=False)
    codes = _codes(_layers(*size), done.params, rows)
    sums = np.stack([np.bincount(owner, c, problem.n_agents) for c in codes.T], axis=1)
    return sums / np.maximum(counts, 1)[:, None]


def _layers(columns: int, hidden: int, code: int) -> Layers:
    sizes = (columns, hidden, code, hidden, columns)
    shapes = [((a, b), (b,)) for a, b in zip(sizes[:-1], sizes[1:], strict=True)]
    return Layers(tuple(shape for pair in shapes for shape in pair))


def _encode(parts: list[Array], x: Array) -> Array:
    first, bias, second, shift = parts[:4]
    return jnp.tanh(x @ first + bias) @ second + shift


@in_double_precision
def _codes(layers: Layers, w: Any, rows: np.ndarray) -> np.ndarray:
    return np.asarray(_encode(layers.unpack(jnp.asarray(w)), jnp.asarray(rows)))


@cache
def _autoencoder(columns: int, hidden: int, code: int, seed: int) -> Custom:
    """The squared error of rows that went through the code and back.

    Made once for a size, so that the same program serves every call.
    """
    layers = _layers(columns, hidden, code)

    def losses(w: Array, x: Array, y: Array) -> Array:
        parts = layers.unpack(w)
        back, bias, last, shift = parts[4:]
        made = jnp.tanh(_encode(parts, x) @ back + bias) @ last + shift
        return jnp.mean((made - x) ** 2, axis=1)

    return Custom(layers.dim, losses, lambda: layers.glorot(seed), name="autoencoder")

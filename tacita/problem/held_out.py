"""Holding out rows at every node, to choose or judge personalised models by them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.population import Population, Rows
from tacita.problem.problem import Problem
from tacita.trees import double_precision, in_double_precision, replace


def hold_out(problem: Problem, share: float, seed: int = 0) -> tuple[Problem, Problem]:
    """Part every node's rows at random: a problem to train on, one to validate with.

    A node with two rows or more gives at least one to each; a node with a single row
    keeps it for training.

    Args:
        problem: Whose rows are parted; ids and graph stay.
        share: Of every node's rows that is held out, in (0, 1).
        seed: Of the draw.

    >>> from tacita.problem import synthetic
    >>> train, held = hold_out(synthetic.linear(agents=3, samples=10), share=0.3)
    >>> train.counts.tolist(), held.counts.tolist()
    ([7, 7, 7], [3, 3, 3])
    """
    check.between(0, 1)(share=share)
    x, y, counts = problem.stacked()
    wanted = np.rint(share * counts).astype(int)
    held = np.where(counts > 1, np.clip(wanted, 1, np.maximum(counts - 1, 1)), 0)
    order = _shuffled(y.shape, counts, seed)
    kept = counts - held
    return (
        with_counts(problem, *_taken(x, y, order, 0 * kept, kept), kept),
        with_counts(problem, *_taken(x, y, order, kept, held), held),
    )


def folds(problem: Problem, count: int, seed: int = 0) -> list[tuple[Problem, Problem]]:
    """Part every node's rows at random in `count` folds; each is held out once.

    The folds of a node differ by one row at most. A node with a single row keeps it
    for training, and one with fewer rows than folds gives none to some of them.

    Args:
        problem: Whose rows are parted; ids and graph stay.
        count: How many folds, two or more.
        seed: Of the draw.

    Returns:
        For every fold a problem to train on and one to validate with.

    >>> from tacita.problem import synthetic
    >>> parts = folds(synthetic.linear(agents=2, samples=7), count=3)
    >>> [(train.counts.tolist(), held.counts.tolist()) for train, held in parts]
    [([4, 4], [3, 3]), ([5, 5], [2, 2]), ([5, 5], [2, 2])]
    """
    check.count(2, count=count)
    x, y, counts = problem.stacked()
    order = _shuffled(y.shape, counts, seed)
    made = []
    for k in range(count):
        held = np.where(counts > 1, counts // count + (k < counts % count), 0)
        kept = counts - held
        made.append(
            (
                with_counts(problem, *_taken(x, y, order, held, kept), kept),
                with_counts(problem, *_taken(x, y, order, 0 * held, held), held),
            )
        )
        order = _turned(order, held, counts)
    return made


def _shuffled(shape: tuple[int, ...], counts: np.ndarray, seed: int) -> np.ndarray:
    """Every node's rows in an order of chance, the padding last, (N, m)."""
    order = np.random.default_rng(check.count(0, seed=seed)).random(shape)
    order[np.arange(shape[1]) >= counts[:, None]] = 2.0
    return np.argsort(order, axis=1)


def _turned(order: np.ndarray, by: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The order of every node's rows with its first `by` behind the others."""
    place = np.arange(order.shape[1])
    turned = (place + by[:, None]) % np.maximum(counts, 1)[:, None]
    real = place < counts[:, None]
    return np.take_along_axis(order, np.where(real, turned, place), axis=1)


def _taken(
    x: np.ndarray, y: np.ndarray, order: np.ndarray, first: Any, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows order[first : first + count] of every node, padded with zeros."""
    place = np.arange(max(1, int(count.max())))
    real = place < count[:, None]
    at = np.where(real, np.asarray(first)[:, None] + place, 0)
    chosen = np.take_along_axis(order, at, axis=1)
    node = np.arange(len(y))[:, None]
    wide = real.reshape(*real.shape, *[1] * (x.ndim - 2))
    return np.where(wide, x[node, chosen], 0), np.where(real, y[node, chosen], 0)


def with_counts(
    problem: Problem, x: np.ndarray, y: np.ndarray, counts: np.ndarray
) -> Problem:
    """The problem with these rows, of which every node has its first `counts`."""
    population = problem.population
    if population.by_feature:
        x = np.ascontiguousarray(x.swapaxes(1, 2))
    padded = bool(np.any(counts < y.shape[1]))
    rows = Rows(x, y, counts.astype(np.int32) if padded else None)
    with double_precision():
        rows = jax.tree.map(jnp.asarray, rows)
    was = population.rows
    rows = rows._replace(weight=was.weight, kind=was.kind)
    return replace(problem, population=replace(population, rows=rows))


@in_double_precision
def node_losses(problem: Problem, w: Any) -> np.ndarray:
    """The mean loss of every node's own model over its rows, without regulariser.

    Args:
        problem: Whose rows are asked.
        w: The models, (N, d), or one for all, (d,).

    Returns:
        One number per node; NaN for a node without rows.
    """
    models = np.broadcast_to(np.asarray(w), (problem.n_agents, problem.dim))
    found = np.asarray(_losses(problem.population, jnp.asarray(models)))
    return np.where(problem.counts > 0, found, np.nan)


@jax.jit
def _losses(population: Population, w: Array) -> Array:
    def one(rows: Rows, v: Array) -> Array:
        local = population.local(rows)
        losses = local.own.losses(v, local.x, rows.y)
        return jnp.sum(local.mean_weights() * losses)

    return jax.vmap(one)(population.rows, w)

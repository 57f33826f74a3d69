"""A function h of every node's own model: l1, a box, a ball.

    minimise  sum_i f_i(w_i) + h_i(w_i) + alpha sum_{edges} A_ij phi(w_i - w_j)

Its numbers are one for all nodes, or one per node. Unlike the h of a problem, which is
added once for the one model that all agents share.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.problem import prox


def required(h: Any, dim: int, n: int) -> Any:
    """Refuse an h that is no proximable function of every node's `dim` parameters."""
    if h is None:
        return None
    for leaf in jax.tree.leaves(h):
        if np.ndim(leaf) > 0 and np.shape(leaf) != (n,):
            check.refuse(
                f"h={type(h).__name__} has numbers of shape {np.shape(leaf)}; give one "
                f"for all nodes, or {n}, one per node"
            )
    prox.proximable(jax.tree.map(lambda leaf: _of_node(leaf, 0), h), dim)
    return h


def stacked(h: Any, n: int) -> Any:
    """Every node's h, its numbers stacked along a first axis; None where there is none.

    >>> stacked(prox.L1(0.5), 2).weight.tolist()
    [0.5, 0.5]
    """
    if h is None:
        return None
    return jax.tree.map(lambda leaf: jnp.broadcast_to(jnp.asarray(leaf), (n,)), h)


def total(h: Any, w: Any) -> Any:
    """sum_i h_i(w_i), for w of (N, d)."""
    return jnp.sum(jax.vmap(lambda one, u: one(u))(stacked(h, len(w)), w))


def _of_node(leaf: Any, i: int) -> Any:
    return leaf if np.ndim(leaf) == 0 else np.asarray(leaf)[i]

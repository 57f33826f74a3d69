"""The exact step of one agent: its own loss, and a pull towards a point.

    argmin_u  f_i(u) + h(u) + (1/2) sum_k pull_k (u_k - v_k)^2

by what the agent's model allows: one linear system for squares, a splitting for losses
with kinks, Newton's method for the others; with an h, proximal steps with momentum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.problem import least_absolute, units
from tacita.problem.model import ridge
from tacita.problem.model.linear import Huber, Kinked, Linear, Logistic, Softmax
from tacita.problem.model.per_agent import PerAgent, kinds_of
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.newton import exact_prox, finished, root, steepest
from tacita.problem.oracles import Full, Oracle
from tacita.problem.population import Local

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

#: Models whose losses have gradients everywhere, and a known largest curvature.
Smooth = Linear | Huber | Logistic | Softmax

_MOST_STEPS = 20_000


def require_exact(problem: Problem, oracle: Oracle, who: str, remedy: str) -> None:
    """Refuse models without an exact step, and gradients that it would not ask for."""
    kinds = kinds_of(problem.model)
    if not all(isinstance(model, Smooth | Kinked) for model in kinds):
        check.refuse(
            f"{who} solves its local problems exactly for linear models only; {remedy}"
        )
    squared = isinstance(problem.population.regulariser, SquaredL2)
    if not squared and any(isinstance(model, Kinked) for model in kinds):
        check.refuse(
            f"{who} solves local problems of losses with kinks for a squared "
            "regulariser only; use l2= in place of regulariser="
        )
    if not isinstance(oracle, Full):
        check.refuse(
            f"{who} needs exact gradients, got oracle={type(oracle).__name__}; use "
            f"oracle=Full(), or {remedy}"
        )


def toward(local: Local, w: Array, v: Array, pull: Any, h: Any = None) -> Array:
    """The agent's exact step from w.

    Args:
        local: One agent.
        w: Where to begin.
        v: Where it is pulled to, (d,).
        pull: How strongly: one number, or one per coordinate.
        h: A proximable function, added; of models without kinks.
    """
    if isinstance(local.model, PerAgent):
        branches = [
            lambda k=k: toward(local.as_kind(k), w, v, pull, h)
            for k in range(len(local.model.models))
        ]
        return jax.lax.switch(local.rows.kind, branches)
    if h is not None:
        return _with_h(local, w, v, pull, h)
    if ridge.has_closed_form(local):
        return ridge.toward(local, v, pull)
    if isinstance(local.model, Kinked):
        return least_absolute.toward(local, v, pull)
    if isinstance(local.model, Huber):
        # Its curvature jumps: a gradient step helps where Newton's would swing.
        safe = 1 / (steepest(local) + jnp.max(pull))
        found = root(lambda u: local.grad(u) + pull * (u - v), w, safe)
        return finished(local, w, found, v, pull)
    return exact_prox(local, w, v, 1 / pull)


def _with_h(local: Local, w: Array, v: Array, pull: Any, h: Any) -> Array:
    """Proximal gradient steps with momentum and restart, to rounding (FISTA)."""
    step = 1 / (steepest(local) + jnp.max(pull))
    small, unit = 4 * jnp.finfo(w.dtype).eps, units.of_models(local)

    def body(carry: tuple) -> tuple:
        x, y, t, _, count = carry
        slope = local.grad(y) + pull * (y - v)
        new = h.prox(y - step * slope, step)
        t = jnp.where(jnp.sum((y - new) * (new - x)) > 0, 1.0, t)
        after = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
        ahead = new + ((t - 1) / after).astype(w.dtype) * (new - x)
        return new, ahead, after, jnp.max(jnp.abs(new - y)), count + 1

    def go_on(carry: tuple) -> Array:
        x, _, _, moved, count = carry
        return (moved > small * (unit + jnp.max(jnp.abs(x)))) & (count < _MOST_STEPS)

    begin = h.prox(w, step)
    one = jnp.ones((), w.dtype)
    first = (begin, begin, one, jnp.asarray(jnp.inf, w.dtype), 0)
    return jax.lax.while_loop(go_on, body, first)[0]

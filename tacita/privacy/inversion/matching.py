"""Any model: rows whose letter is the one that was seen, found by L-BFGS.

L. Zhu et al., "Deep leakage from gradients" (DLG), NeurIPS 2019: there the letter is a
gradient and both rows and labels are sought; here it is any function, so the letters of
several local steps, or of several rounds, are matched alike.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import minimize

from tacita import check
from tacita.trees import in_double_precision

#: A misfit at which no other start is tried.
_MATCHED = 1e-12
#: A step that lowers the misfit by less than this share of it is idle; after so many
#: idle steps in a row a search ends.
_STILL, _IDLE = 1e-5, 25


class Matched(NamedTuple):
    """What was found, and how well its letter matches."""

    found: np.ndarray
    misfit: float  # ||letter(found) - seen||^2 / ||seen||^2


@in_double_precision
def dlg(
    letter_of: Callable[[Any, Array], Array],
    seen: Any,
    starts: Any,
    *,
    given: Any = (),
    low: Any = -np.inf,
    high: Any = np.inf,
    prior: Callable[[Array], Array] | None = None,
    weight: float = 0.0,
    steps: int = 500,
) -> Matched:
    """The z whose letter is nearest to the one seen: min_z ||letter(z) - seen||^2.

    Args:
        letter_of: JAX function (given, z) -> the letter of z, a vector. One function,
            used again with other numbers in `given`, is compiled once.
        seen: The letter.
        starts: Where to begin, (n,) or several of them, (tries, n); the best is kept.
        given: What the letter depends on beside z, a pytree.
        low: Numbers that no entry of z is below.
        high: Numbers that no entry of z is above.
        prior: What is unlikely of z, a JAX function z -> a number, such as the
            `total_variation` of a picture.
        weight: Of the prior.
        steps: Of L-BFGS, at most, from every start.

    >>> rows = dlg(lambda given, z: given * z**2, [8.0], [1.0], given=2.0)
    >>> rows.found.round(6).tolist()
    [2.0]
    """
    aim = jnp.asarray(check.finite(seen=seen), float)
    size = max(float(aim @ aim), 1e-300)

    def value(z: np.ndarray, weight: float = weight) -> tuple[float, np.ndarray]:
        about = (letter_of, prior, given, aim, (weight, size))
        found, slope = _objective(*about, jnp.asarray(z))
        return float(found), np.asarray(slope, float)

    best = None
    for start in np.atleast_2d(np.asarray(starts, float)):
        bounds = np.broadcast_to(np.transpose([low, high]), (start.size, 2))
        inside = np.clip(start, *bounds.T)
        made = minimize(
            value,
            inside,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=_Patience(),
            options={"maxiter": steps, "ftol": 1e-18, "gtol": 1e-12, "maxcor": 20},
        )
        if best is None or made.fun < best.fun:
            best = made
        if best.fun < _MATCHED:
            break
    assert best is not None
    return Matched(best.x, value(best.x, weight=0.0)[0])


class _Patience:
    """Ends a search that stands still, as those for noisy letters soon do."""

    def __init__(self) -> None:
        self._before, self._idle = np.inf, 0

    def __call__(self, intermediate_result: Any) -> None:
        now = float(intermediate_result.fun)
        still = self._before - now < _STILL * now
        self._idle, self._before = self._idle + 1 if still else 0, now
        if self._idle >= _IDLE:
            raise StopIteration


@functools.partial(jax.jit, static_argnums=(0, 1))
def _objective(
    letter_of: Any, prior: Any, given: Any, seen: Array, limits: Any, z: Array
) -> tuple[Array, Array]:
    weight, size = limits

    def total(z: Array) -> Array:
        rest = letter_of(given, z) - seen
        unlikely = 0.0 if prior is None else weight * prior(z)
        return rest @ rest / size + unlikely

    return jax.value_and_grad(total)(z)

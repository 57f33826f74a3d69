"""Functions with their Gaussian noise as an argument.

Every normal number of JAX, and of `tacita.random_numbers`, is sqrt(2) times the inverse
error function of a uniform one. So a program's Gaussian draws can be found in its trace
and replaced by numbers of ours, whatever drew them and from whichever key: the real
code becomes a deterministic map from noise to what it sends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jax.extend import core

from tacita import check


def count_draws(function: Callable[..., Any], *arguments: Any) -> int:
    """How many normal numbers the function draws for such arguments."""
    return _count(jax.make_jaxpr(function)(*arguments).jaxpr)


def with_draws(function: Callable[..., Any], noise: Array, *arguments: Any) -> Any:
    """What the function returns if its normal numbers are those of `noise`, in order.

    >>> def letter(key, mean):
    ...     return mean + 3 * jax.random.normal(key, (2,))
    >>> noise = jax.numpy.array([1.0, -1.0])
    >>> with_draws(letter, noise, jax.random.key(0), 5.0).round(5).tolist()
    [8.0, 2.0]
    """
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    left = _Draws(noise)
    found = _evaluate(closed, jax.tree.leaves(arguments), left)
    left.require_used()
    return jax.tree.unflatten(jax.tree.structure(shape), found)


class _Draws:
    """Numbers that are handed out one after the other."""

    def __init__(self, noise: Array) -> None:
        self._noise, self._used = noise, 0

    def take(self, shape: tuple[int, ...], dtype: Any) -> Array:
        size = math.prod(shape)
        part = self._noise[self._used : self._used + size]
        self._used += size
        return (part / math.sqrt(2)).reshape(shape).astype(dtype)

    def require_used(self) -> None:
        assert self._used == len(self._noise), "more noise than the function draws"


def _inner(equation: core.JaxprEqn) -> Any:
    """The program that an equation calls once as it is, or None."""
    inner = equation.params.get("jaxpr")
    called = equation.primitive.name in ("jit", "pjit")
    return inner if called else None


def _count(jaxpr: core.Jaxpr) -> int:
    total = 0
    for equation in jaxpr.eqns:
        inner = _inner(equation)
        if equation.primitive is jax.lax.erf_inv_p:
            total += equation.outvars[0].aval.size  # pyright: ignore
        elif inner is not None:
            total += _count(inner.jaxpr)
        elif any(_count(part) for part in core.jaxprs_in_params(equation.params)):
            check.refuse(
                "noise that is drawn inside a loop cannot be told apart; draw it "
                "before the loop"
            )
    return total


def _call(
    program: core.Jaxpr, equation: core.JaxprEqn, value: Callable[[Any], Any]
) -> list[Any]:
    """What one equation computes from the values of its variables."""
    named = [v for v in equation.invars if not isinstance(v, core.Literal)]
    inputs = list(dict.fromkeys(named))
    alone = core.Jaxpr(
        (),
        inputs,
        equation.outvars,
        [equation],
        equation.effects,
        program.debug_info.with_unknown_names(),
    )
    function = core.jaxpr_as_fun(core.ClosedJaxpr(alone, ()))
    return function(*(value(variable) for variable in inputs))


def _evaluate(closed: Any, arguments: list[Any], draws: _Draws) -> list[Any]:
    """Run a traced program, handing out draws where it makes them."""
    jaxpr = closed.jaxpr
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    known |= dict(zip(jaxpr.invars, arguments, strict=True))

    def value(variable: Any) -> Any:
        literal = isinstance(variable, core.Literal)
        return variable.val if literal else known[variable]

    for equation in jaxpr.eqns:
        inner = _inner(equation)
        if equation.primitive is jax.lax.erf_inv_p:
            made = equation.outvars[0].aval
            found = [draws.take(made.shape, made.dtype)]  # pyright: ignore
        elif inner is not None and _count(inner.jaxpr):
            given = [value(variable) for variable in equation.invars]
            found = _evaluate(inner, given, draws)
        else:
            found = _call(jaxpr, equation, value)
        known |= dict(zip(equation.outvars, found, strict=True))
    return [value(variable) for variable in jaxpr.outvars]

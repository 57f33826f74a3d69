"""Metrics, measured inside the compiled loop: functions of the run's current models."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.population import Population
from tacita.problem.problem import Problem

#: A metric sees the population, the shared model (d,), every agent's model (N, d),
#: whether models are personal, and the reference point, if the user gave one.
Metric = Callable[[Population, Array, Array, bool, Any], Array]


def _loss(p: Population, shared: Array, agents: Array, own: bool, _: Any) -> Array:
    return p.loss(agents if own else shared)


def _grad_norm_sq(
    p: Population, shared: Array, agents: Array, own: bool, _: Any
) -> Array:
    return jnp.sum(p.grad(shared) ** 2)


def _mean_grad_norm_sq(
    p: Population, shared: Array, agents: Array, own: bool, _: Any
) -> Array:
    return jnp.sum(p.grad(p.mean(agents)) ** 2)


def _disagreement(
    p: Population, shared: Array, agents: Array, own: bool, _: Any
) -> Array:
    return p.mean(jnp.sum((agents - p.mean(agents)) ** 2, axis=-1))


def _accuracy(p: Population, shared: Array, agents: Array, own: bool, _: Any) -> Array:
    return p.accuracy(agents if own else shared)


def _test_loss(p: Population, shared: Array, agents: Array, own: bool, _: Any) -> Array:
    assert p.test is not None
    return jnp.mean(p.model.losses(shared, p.test.x, p.test.y))


def _test_accuracy(
    p: Population, shared: Array, agents: Array, own: bool, _: Any
) -> Array:
    assert p.test is not None
    right = p.model.predict(shared, p.test.x) == p.test.y
    return jnp.mean(right, dtype=jnp.float64)


def _error(
    p: Population, shared: Array, agents: Array, own: bool, reference: Any
) -> Array:
    point = p.places.gather(agents) if jnp.ndim(reference) == 2 else shared
    return jnp.linalg.norm(point - reference)


#: What is recorded where nobody says.
DEFAULT_RECORD = ("loss", "grad_norm_sq", "disagreement")
METRICS: dict[str, Metric] = {
    "loss": _loss,
    "grad_norm_sq": _grad_norm_sq,
    "mean_grad_norm_sq": _mean_grad_norm_sq,
    "disagreement": _disagreement,
    "accuracy": _accuracy,
    "test_loss": _test_loss,
    "test_accuracy": _test_accuracy,
    "error": _error,
}


#: Metrics of which more is better: a run stops when they are that large.
RISING = ("accuracy", "test_accuracy")


def choose(record: Any, problem: Problem, reference: Any) -> tuple[Any, ...]:
    """Check what the user wants recorded: names, or functions (shared, agents)."""
    if isinstance(record, str) or callable(record):
        record = (record,)
    if not np.iterable(record):
        check.refuse(
            "expected record a list of metrics such as ('loss',), or () for none, got "
            f"record={record!r}"
        )
    chosen = tuple(record)
    for item in chosen:
        if callable(item):
            continue
        check.one_of(METRICS, record=item)
        if item in RISING and problem.model.classes is None:
            check.refuse(f"record={item!r} needs a classification model")
        if item.startswith("test_") and problem.population.test is None:
            check.refuse(f"record={item!r} needs test=(X, y) in the problem")
        if item == "error" and reference is None:
            check.refuse("record='error' needs reference=, for example problem.solve()")
    _refuse_twins([name_of(item) for item in chosen])
    return chosen


def _refuse_twins(names: list[str]) -> None:
    """Metrics are kept by name, beside "round": two of one name would lose one."""
    for i, name in enumerate(names):
        if name in (*names[:i], "round"):
            check.refuse(
                f"record has two metrics called {name!r}; give each its own name: "
                "define functions with def rather than lambda"
            )


def name_of(item: Any) -> str:
    """The key of a metric in `run.metrics`."""
    while isinstance(item, functools.partial):
        item = item.func
    # An object that can be called has the name of its class.
    own = getattr(item, "__name__", type(item).__name__)
    return item if isinstance(item, str) else own


def measure(
    record: tuple[Any, ...],
    population: Population,
    shared: Array,
    agents: Array,
    own: bool,
    reference: Any,
) -> Array:
    """All recorded metrics at one moment, as a vector of float64."""
    values = [
        METRICS[item](population, shared, agents, own, reference)
        if isinstance(item, str)
        else _one_number(item, shared, population.places.gather(agents))
        for item in record
    ]
    return jnp.stack([jnp.asarray(v, jnp.float64) for v in values])


def _one_number(metric: Any, shared: Array, agents: Array) -> Any:
    value = metric(shared, agents)
    if np.shape(value) != ():
        check.refuse(
            f"the metric {name_of(metric)!r} has shape {np.shape(value)}; make it one "
            "number, such as a mean or a norm"
        )
    return value

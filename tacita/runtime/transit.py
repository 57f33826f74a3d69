"""Asynchronous runs on a graph: delayed letters, lost letters, random active sets.

A. Jung, "Federated Learning: From Theory to Practice", section 5.8. At an event t some
nodes are active; node i works with the letter that node j wrote at event t_ij <= t.

- Partially asynchronous: t - t_ij <= B, and everybody is active at least once in any B
  events. Everybody is active at the first event, which (134) needs: a node that has not
  computed yet still has its first error.
- Totally asynchronous: delays follow a law without a bound.

Every edge carries one letter at a time in each direction. A letter takes a random
number of events and may be lost; then the next one is sent, with what its writer knows
by then. Until one arrives, the receiver works with the last that it got.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.participation import Schedule
from tacita.problem.graph import Slots, exchange
from tacita.trees import frozen, number, static

LAWS = ("uniform", "geometric")


@frozen
class Asynchronous:
    """How far a run on a graph may be out of step.

    Attributes:
        most_delay: B: no letter in use is older than this many events, and everybody
            is active at least once in this many. None: totally asynchronous.
        law: Events that a letter travels: "uniform" on what B allows, "geometric" with
            mean `mean_delay`, or a function (key, shape) -> whole numbers >= 0. With a
            bound, draws beyond it are cut.
        mean_delay: Of the geometric law.
        lost: Chance that a letter is lost; with a bound only where it can be kept.

    >>> Asynchronous(most_delay=None)
    Traceback (most recent call last):
    tacita.check.TacitaError: law='uniform' needs a bound; give most_delay= or law='geometric'
    """  # noqa: E501

    most_delay: float | None = number(check.not_negative)
    law: str | Callable[[Array, tuple[int, ...]], Array] = static(default="uniform")
    mean_delay: float = number(check.not_negative, 1.0)
    lost: float = number(check.below_one, 0.0)

    def __post_init__(self) -> None:
        bound = self.most_delay
        if check.is_number(bound) and np.any(np.asarray(bound) % 1):
            check.refuse(f"expected most_delay a whole number, got most_delay={bound}")
        if not callable(self.law):
            check.one_of(LAWS, law=self.law)
        if self.law == "uniform" and self.most_delay is None:
            check.refuse(
                "law='uniform' needs a bound; give most_delay= or law='geometric'"
            )

    def travel(self, key: Array, most: Array) -> Array:
        """Events that letters travel, each at most its entry of `most`."""
        if self.law == "uniform":
            return jax.random.randint(key, most.shape, 0, most + 1, jnp.int32)
        if callable(self.law):
            drawn = jnp.clip(self.law(key, most.shape), 0, most)
            return drawn.astype(jnp.int32)
        # P(delay >= k) = q^k with mean q / (1 - q)
        q = self.mean_delay / (1 + self.mean_delay)
        u = jax.random.uniform(key, most.shape, minval=1e-12)
        log_q = jnp.log(jnp.where(q > 0, q, 0.5))
        draw = jnp.where(q > 0, jnp.floor(jnp.log(u) / log_q), 0)
        return jnp.minimum(draw, most).astype(jnp.int32)


def require(asynchronous: Any, algorithm: Any) -> None:
    """Refuse what is no description of an asynchronous run, or an algorithm in step."""
    if not isinstance(asynchronous, Asynchronous):
        check.refuse(
            "a run on a graph is asynchronous by tacita.Asynchronous(most_delay=...), "
            f"got asynchronous={asynchronous!r}"
        )
    for name in ("most_delay", "mean_delay", "lost"):
        given = getattr(asynchronous, name)
        if np.ndim(given) > 0:
            check.refuse(f"expected {name} one number for all edges, got {given}")
    if not algorithm.partial:
        check.refuse(
            f"{algorithm.needs_everybody()}; it cannot run asynchronously, run it "
            "without asynchronous="
        )


class Transit(NamedTuple):
    """What is known and what is under way, per agent and slot (on the receiver's side).

    Attributes:
        held: The last letter that arrived, (N, slots, d).
        age: How many events old it is.
        flight: The letter under way.
        left: Events until it arrives; -1 while nothing is under way.
        took: Its age when it arrives.
        doomed: Whether it will be lost.
        idle: Events since the agent was last active, (N,).
    """

    held: Array
    age: Array
    flight: Array
    left: Array
    took: Array
    doomed: Array
    idle: Array


#: Longer than any run is idle: forces everybody to be active at the first event.
_LONG = 2**30


def outboxes(slots: Slots, letters: Array) -> Array:
    """What every agent would receive along each slot if nothing were delayed."""
    if letters.ndim == slots.mask.ndim + 1:
        return exchange(slots, letters)
    sent = letters.at[slots.neighbour].get(
        mode="promise_in_bounds", wrap_negative_indices=False
    )
    return jnp.where(slots.mask[..., None], sent, 0)


def first(slots: Slots, letters: Array) -> Transit:
    """Before the first event everybody knows its neighbours' first letters."""
    known = outboxes(slots, letters)
    shape = slots.mask.shape
    zero = jnp.zeros(shape, jnp.int32)
    free, safe = jnp.full(shape, -1, jnp.int32), jnp.zeros(shape, bool)
    idle = jnp.full(shape[0], _LONG, jnp.int32)
    return Transit(known, zero, known, free, zero, safe, idle)


def post(rule: Asynchronous, key: Array, was: Transit, sent: Array) -> Transit:
    """One event of the post: free lines take a letter, due letters arrive."""
    for_travel, for_loss = jax.random.split(key)
    if rule.most_delay is None:
        room = jnp.full(was.age.shape, _LONG, jnp.int32)
        bound = room
    else:
        bound = jnp.asarray(rule.most_delay, jnp.int32)
        # While a letter travels for k events, the one in use grows k - 1 events older.
        room = jnp.minimum(bound, bound + 1 - was.age)
    travel = rule.travel(for_travel, room)
    lost = jax.random.uniform(for_loss, was.age.shape) < rule.lost
    # A letter may be lost only if the next one can still come in time.
    lost &= travel <= bound - was.age if rule.most_delay is not None else True
    free = was.left < 0
    flight = jnp.where(free[..., None], sent, was.flight)
    left = jnp.where(free, travel, was.left)
    took = jnp.where(free, travel, was.took)
    doomed = jnp.where(free, lost, was.doomed)
    due = left == 0
    new = due & ~doomed
    return Transit(
        held=jnp.where(new[..., None], flight, was.held),
        age=jnp.where(new, took, was.age),
        flight=flight,
        left=jnp.where(due, -1, left - 1),
        took=took,
        doomed=doomed,
        idle=was.idle,
    )


def who(
    rule: Asynchronous, schedule: Schedule, key: Array, idle: Array
) -> tuple[Array, Array]:
    """Who is active at this event, as booleans; and everybody's idle time after it."""
    active = schedule.active(key, idle.shape[0])
    if rule.most_delay is not None:
        active |= idle + 1 >= jnp.asarray(rule.most_delay, jnp.int32)
    return active, jnp.where(active, 0, idle + 1)


def inbox(slots: Slots, delivery: str, transit: Transit) -> Array:
    """What agents work with: a letter per slot, or the weighted sum of them."""
    if delivery == "slots":
        return transit.held
    weight = jnp.asarray(slots.weight, transit.held.dtype)
    return jnp.einsum("ns,nsd->nd", weight, transit.held)


def event(
    rule: Asynchronous,
    slots: Slots,
    schedule: Schedule,
    delivery: str,
    key: Array,
    was: Transit,
    letters: Array,
) -> tuple[Array, Array, Transit]:
    """Who is active at one event, what everybody has received, what is under way."""
    # The schedule's own draw is that of a run in step.
    active, idle = who(rule, schedule, key, was.idle)
    now = post(rule, jax.random.fold_in(key, 1), was, outboxes(slots, letters))
    received = inbox(slots, delivery, now)
    return active, received, now._replace(age=now.age + 1, idle=idle)

"""Asynchronous runs with a coordinator: letters that answer an older broadcast.

A round is one step of the coordinator's. It takes the first K letters that come and
waits for nobody else (K is the run's participation). Who was heard is asked again at
once, with the new broadcast; who was not is still at work on its old question. An agent
has one question at a time, so it never writes two letters on one broadcast. A letter
that answers the broadcast before round a and is heard in round t has staleness t - a.
With a bound, who would be staler is given up and asked anew: nothing waits.

So all that a run needs to know of time is who was heard in each round. `Pace` draws it;
a federation writes it down as it happens, and `Arrivals` plays that again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check, keys
from tacita.participation import Schedule, schedule_for
from tacita.trees import frozen, in_double_precision, number, static

LAWS = ("exponential", "constant")


@frozen
class Pace:
    """How fast agents answer: times are drawn, whatever the rows are.

    Attributes:
        mean: Mean time that an agent takes for a letter, one number or one per agent.
        law: "exponential" times, "constant" ones, or a function (key, shape) -> times
            with mean 1, which are multiplied by `mean`.
        most_staleness: No letter that is heard is staler; who would be is asked anew.
            None for no bound.

    >>> Pace(mean=0.0)
    Traceback (most recent call last):
    tacita.check.TacitaError: expected mean > 0, got mean=0.0
    """

    mean: Any = number(check.positive, 1.0)
    law: str | Callable[[Array, tuple[int, ...]], Array] = static(default="exponential")
    most_staleness: float | None = number(check.not_negative)

    def __post_init__(self) -> None:
        _require_whole(self.most_staleness)
        if not callable(self.law):
            check.one_of(LAWS, law=self.law)

    def times(self, key: Array, agents: Array) -> Array:
        """How long the next letters of these agents take."""
        if callable(self.law):
            drawn = self.law(key, agents.shape)
        elif self.law == "constant":
            drawn = jnp.ones(agents.shape)
        else:
            drawn = jax.random.exponential(key, agents.shape)
        mean = jnp.asarray(self.mean)
        return drawn * (mean[agents] if mean.ndim else mean)

    def heard(self, number: Any, letters: int, was: Waiting) -> Array:
        """The agents whose letters come first, in their order; of equals the first."""
        # In single precision, for which this is fast; those that are due soon keep
        # their digits.
        left = (was.due - was.clock).astype(jnp.float32)
        return jnp.sort(jax.lax.top_k(-left, letters)[1])

    @in_double_precision
    def arrivals(
        self, agents: int, participation: int, rounds: int, seed: int = 0
    ) -> tuple[Arrivals, np.ndarray]:
        """Who is heard when in a simulation of this pace, and when its rounds end.

        Rows play no part in it, so that nothing need be trained to know.

        Args:
            agents: How many there are.
            participation: K, the letters that a round takes.
            rounds: How many rounds.
            seed: That of the simulation.

        Returns:
            The arrivals, and the clock at the end of every round, (rounds,).

        >>> slow = Pace(mean=[1.0, 1.0, 5.0], law="constant")
        >>> arrivals, clock = slow.arrivals(agents=3, participation=2, rounds=6)
        >>> arrivals.agents[[0, 4, 5]].tolist(), clock[[0, 4, 5]].tolist()
        ([[0, 1], [0, 1], [0, 2]], [1.0, 5.0, 6.0])
        """
        letters = schedule_of(self, participation, agents).size
        base = keys.from_seed(check.seed(seed=seed))
        heard, clock = _play(self, agents, letters, rounds, base)
        found = Arrivals(agents=np.asarray(heard), most_staleness=self.most_staleness)
        return found, np.asarray(clock)

    def check(self, n: int) -> None:
        """Refuse times of other agents than there are."""
        if np.ndim(self.mean) > 0:
            check.shape((n,), mean=np.asarray(self.mean))


@frozen
class Arrivals:
    """Who was heard in each round of a run, to be played again.

    Attributes:
        agents: (rounds, K): the numbers of the agents whose letters a round took, as in
            `run.info["arrivals"]` of a coordinator's run folder.
        most_staleness: As in `Pace`; that of the run it was.

    >>> Arrivals(agents=[[0, 1], [1, 1]])
    Traceback (most recent call last):
    tacita.check.TacitaError: expected agents with each agent once in a round, got [1, 1] in round 2
    """  # noqa: E501

    agents: Any
    most_staleness: float | None = number(check.not_negative)

    def __post_init__(self) -> None:
        _require_whole(self.most_staleness)
        if isinstance(self.agents, list | tuple) or check.is_number(self.agents):
            object.__setattr__(self, "agents", _numbers(self.agents))

    def times(self, key: Array, agents: Array) -> Array:
        """Nobody knows how long it took."""
        return jnp.zeros(agents.shape)

    def heard(self, number: Any, letters: int, was: Waiting) -> Array:
        """The agents of this round, in their order."""
        return jnp.sort(self.agents[number - 1])

    def check(self, n: int) -> None:
        """Refuse agents that there are not, and what names none."""
        if not check.is_number(self.agents):
            check.refuse(
                "expected agents a list of agents' numbers for every round, got "
                f"agents={self.agents!r}; a run of which some notes are lost has none"
            )
        most = int(np.max(self.agents))
        if most >= n:
            check.refuse(f"expected agents in 0..{n - 1}, got {most} among arrivals")


class Waiting(NamedTuple):
    """What every agent is at work on, and when its letter comes.

    Attributes:
        told: The broadcast that it answers, stacked over agents.
        asked: The round of that question, (N,).
        due: When its letter comes, (N,), on the clock of a `Pace`.
        clock: When the last round ended.
    """

    told: Any
    asked: Array
    due: Array
    clock: Array


def _require_whole(most_staleness: Any) -> None:
    if check.is_number(most_staleness) and np.any(np.asarray(most_staleness) % 1):
        check.refuse(
            "expected most_staleness a whole number of rounds, got "
            f"most_staleness={most_staleness}"
        )


def _numbers(given: Any) -> np.ndarray:
    """Agents' numbers by round, each once in a round."""
    try:
        agents = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        agents = np.zeros(0)
    if agents.ndim != 2 or not agents.size:
        check.refuse(
            "expected agents a list of agents' numbers for every round, all equally "
            f"long, got agents={str(given)[:60]}"
        )
    whole = (agents >= 0) & (agents < 2**31) & (agents == np.rint(agents))
    if not np.all(whole):
        check.refuse(
            "expected agents whole numbers >= 0, the agents' numbers, got "
            f"{agents[~whole][0]:g} among them"
        )
    numbers = agents.astype(np.int32)
    twice = np.any(np.diff(np.sort(numbers, axis=1), axis=1) == 0, axis=1)
    if np.any(twice):
        k = int(np.argmax(twice))
        check.refuse(
            "expected agents with each agent once in a round, got "
            f"{numbers[k].tolist()} in round {k + 1}"
        )
    return numbers


def require(asynchronous: Any, algorithm: Any) -> None:
    """Refuse what tells nothing of arrivals, and algorithms that need fresh letters."""
    if not isinstance(asynchronous, Pace | Arrivals):
        check.refuse(
            "a run with a coordinator is asynchronous by tacita.Pace(mean=...), or "
            f"tacita.Arrivals(...) of another run, got asynchronous={asynchronous!r}"
        )
    require_late_letters(algorithm)


def require_late_letters(algorithm: Any) -> None:
    """Refuse an algorithm whose letters must answer the last broadcast."""
    if not algorithm.takes_late:
        check.refuse(
            f"letters of {type(algorithm).__name__} answer the last broadcast, and "
            "nobody knows what late ones do to it; use FedBuff or FedAsync, or leave "
            "asynchronous out"
        )


def schedule_of(asynchronous: Pace | Arrivals, participation: Any, n: int) -> Schedule:
    """How many letters a round takes, as a schedule; refused where few are in time."""
    asynchronous.check(n)
    if isinstance(asynchronous, Arrivals):
        # What was recorded says it; 1.0 is what nobody has chosen.
        letters = asynchronous.agents.shape[1]
        if participation not in (1.0, letters) or participation is True:
            check.refuse(
                f"the arrivals have {letters} letters a round; leave participation "
                f"out, or use participation={letters}"
            )
        participation = letters
    who = schedule_for(participation, n)
    if who.kind == "bernoulli":
        check.refuse(
            "a round of an asynchronous run takes the first K letters that come; use "
            f"participation=K, a whole number of agents, not {participation}"
        )
    require_time(asynchronous.most_staleness, who.size if who.size else n, n)
    return Schedule(kind="cohort", size=who.size if who.size else n)


def require_time(most_staleness: Any, letters: int, n: int) -> None:
    """Refuse a bound that even equally fast agents would not keep."""
    usual = math.ceil(n / letters) - 1
    if most_staleness is not None and most_staleness < usual:
        check.refuse(
            f"with {letters} letters a round {n} equally fast agents are heard every "
            f"{usual + 1} rounds, so that most_staleness={most_staleness:g} would "
            f"silence some for good; use most_staleness >= {usual}, or more letters"
        )


def require_rounds(asynchronous: Any, rounds: int) -> None:
    """Refuse to play more rounds than were recorded."""
    if isinstance(asynchronous, Arrivals) and rounds > len(asynchronous.agents):
        check.refuse(
            f"the arrivals have {len(asynchronous.agents)} rounds, and {rounds} are "
            "asked for; use fewer rounds, or a Pace"
        )


def first(rule: Pace | Arrivals, key: Array, broadcast: Any, n: int) -> Waiting:
    """Everybody was just asked for the first time."""
    told = jax.tree.map(lambda a: jnp.broadcast_to(a, (n, *a.shape)), broadcast)
    asked = jnp.ones(n, jnp.int32)
    return Waiting(told, asked, rule.times(key, jnp.arange(n)), jnp.zeros(()))


def move_on(
    rule: Pace | Arrivals,
    key: Array,
    was: Waiting,
    heard: Array,
    number: Any,
    broadcast: Any,
) -> Waiting:
    """After round `number`: who was heard is asked anew, and who would be too stale."""
    clock, following = jnp.max(was.due[heard]), jnp.asarray(number + 1, jnp.int32)
    now = Waiting(
        told=jax.tree.map(lambda a, b: a.at[heard].set(b), was.told, broadcast),
        asked=was.asked.at[heard].set(following),
        due=was.due.at[heard].set(clock + rule.times(key, heard)),
        clock=clock,
    )
    if rule.most_staleness is None:
        return now
    late = following - now.asked > rule.most_staleness

    def asked_anew() -> Waiting:
        # All agents are looked at, but only if somebody is given up.
        everybody = jnp.arange(len(late))
        times = rule.times(jax.random.fold_in(key, 1), everybody)
        return Waiting(
            told=jax.tree.map(
                lambda a, b: jnp.where(late.reshape(-1, *[1] * b.ndim), b, a),
                now.told,
                broadcast,
            ),
            asked=jnp.where(late, following, now.asked),
            due=jnp.where(late, clock + times, now.due),
            clock=clock,
        )

    return jax.lax.cond(jnp.any(late), asked_anew, lambda: now)


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _play(
    pace: Pace, agents: int, letters: int, rounds: int, base: keys.Keys
) -> tuple[Array, Array]:
    """Who is heard in every round, and when it ends."""

    def step(was: Waiting, t: Array) -> Any:
        heard = pace.heard(t, letters, was)
        now = move_on(pace, keys.schedule_key(base, t), was, heard, t, ())
        return now, (heard, now.clock)

    start = first(pace, keys.schedule_key(base, 0), (), agents)
    return jax.lax.scan(step, start, jnp.arange(1, rounds + 1))[1]

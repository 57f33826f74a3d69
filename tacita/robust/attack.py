"""What an attack says of itself: who lies, when, what it knows, and what is said.

Model poisoning replaces letters, data poisoning replaces rows before training: one
object serves both. Letters that are not finite count as silence, as on the wire.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from tacita import check
from tacita.aggregation.robust_rule import flat, stacked_back
from tacita.problem.problem import Problem
from tacita.trees import frozen, number, ruled

#: A round that is never reached.
ALWAYS = 1e9


class Scene(NamedTuple):
    """What liars may look at in one exchange, letters as vectors."""

    key: Array
    letters: Array  # (n, d), as the liars would have written them honestly
    honest: Array  # (n,), whose letter is honest and heard
    centre: Array  # (d,), the last broadcast of models; zero elsewhere
    before: Array  # (d,), the broadcast before that one
    numbers: Array  # (n,), of the agents whose letters they are
    liars: Array  # (n,), which of them lie and are heard

    @property
    def mean(self) -> Array:
        """The mean of the honest letters."""
        share = self.honest / jnp.maximum(jnp.sum(self.honest), 1)
        return share.astype(self.letters.dtype) @ self.letters

    @property
    def spread(self) -> Array:
        """The standard deviation of the honest letters, divided by their number."""
        share = self.honest / jnp.maximum(jnp.sum(self.honest), 1)
        away = jnp.where(self.honest[:, None], self.letters - self.mean, 0)
        return jnp.sqrt(share.astype(self.letters.dtype) @ away**2)


def numbers(**named: Any) -> tuple[int, ...]:
    """Refuse what is no list of different whole numbers."""
    ((name, value),) = named.items()
    try:
        found = tuple(int(check.count(0, **{name: one})) for one in value)
    except TypeError:
        found = ()
    if not found or len(set(found)) < len(found):
        check.refuse(
            f"expected {name} different whole numbers such as (8, 9), got {value!r}"
        )
    return found


@frozen
class Attack:
    """Nobody lies yet: attacks derive from it and say `letter`, `poison` or both.

    Attributes:
        agents: The numbers of the liars.
        since: The first round in which they lie.
        until: The last one.
    """

    agents: tuple[int, ...] = ruled(
        (0,), numbers, True, words="numbers of agents such as (8, 9)"
    )
    since: float = number(check.not_negative, 1.0)
    until: float = number(check.not_negative, ALWAYS)

    #: What liars must know beside their own rows and broadcasts.
    knows: ClassVar[str] = "nothing more"
    #: Whether what they say may depend on single letters of others.
    sees_letters: ClassVar[bool] = False
    #: Whether a liar on a graph tells each neighbour something else.
    on_edges: ClassVar[bool] = False
    #: Whether only rows are replaced, which letters of all rounds are made of.
    on_rows: ClassVar[bool] = False

    def check(self, problem: Problem) -> None:
        """Refuse liars that are no agents, or that are all of them."""
        n = problem.n_agents
        if max(self.agents) >= n:
            check.refuse(
                f"expected agents below {n}, the number of agents, got "
                f"agents={self.agents}"
            )
        if len(self.agents) == n:
            check.refuse("expected an agent that does not lie; name fewer in agents=")
        if self.on_rows and (self.since > 1 or self.until < ALWAYS):
            check.refuse(
                f"{type(self).__name__} replaces rows, of which letters of all rounds "
                f"are made; leave out since={self.since:g} and until={self.until:g}"
            )

    def honest(self, n: int) -> np.ndarray:
        """Which of n agents do not lie."""
        return ~np.isin(np.arange(n), self.agents)

    def poison(self, problem: Problem) -> Problem:
        """The problem with the liars' rows replaced; here none are."""
        return problem

    def letter(self, scene: Scene) -> Array:
        """What liars send, (n, d) or (d,); by default what they would honestly."""
        return scene.letters

    def lie(
        self,
        key: Array,
        letters: Any,
        honest: Array,
        centre: Any,
        number: Any,
        before: Any = None,
        numbers: Array | None = None,
        heard: Array | None = None,
    ) -> Any:
        """The letters of an exchange, the liars' replaced.

        Args:
            key: Of what liars draw.
            letters: Of all who are asked, stacked.
            honest: Whose letter is honest and heard.
            centre: What honest letters lie around; None for zero.
            number: Of the round.
            before: The centre of the round before; None for zero.
            numbers: Of the agents that are asked; None for everybody, in order.
            heard: Which of them are; None for all.
        """
        rows = flat(letters, len(honest))
        who = jnp.arange(len(honest)) if numbers is None else numbers
        liars = jnp.isin(who, jnp.asarray(self.agents))
        liars = liars if heard is None else liars & heard
        zero = jnp.zeros_like(rows[0])
        points = [zero if c is None else ravel_pytree(c)[0] for c in (centre, before)]
        told = self.letter(Scene(key, rows, honest, points[0], points[1], who, liars))
        acts = (number >= self.since) & (number <= self.until)
        lies = jnp.where((acts & ~honest)[:, None], told, rows)
        return stacked_back(lies.astype(rows.dtype), letters)

"""Several attacks in one program: a number says which, so that trying all is cheap."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.problem.problem import Problem
from tacita.robust.attack import Attack
from tacita.trees import frozen, number


@frozen
class OneOf(Attack):
    """The attack `attacks[which]`; another one compiles nothing.

    Attributes:
        agents: The numbers of the liars, the same in all attacks.
        since: Each attack has its own: leave it.
        until: As since.
        attacks: Those to choose from.
        which: The place of the one that is made.
    """

    attacks: tuple[Attack, ...] = ()
    which: float = number(check.not_negative, 0.0)

    def check(self, problem: Problem) -> None:
        """Refuse attacks of other agents."""
        super().check(problem)
        for attack in self.attacks:
            attack.check(problem)
            if set(attack.agents) != set(self.agents) or attack.on_edges:
                check.refuse(
                    f"expected attacks on letters or rows by agents={self.agents}, "
                    f"got {attack!r}"
                )

    def poison(self, problem: Problem) -> Problem:
        """The chosen attack's."""
        return self.attacks[int(self.which)].poison(problem)

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
        """The chosen attack's."""
        given = (key, letters, honest, centre, number, before, numbers, heard)
        branches = [lambda one=one: one.lie(*given) for one in self.attacks]
        return jax.lax.switch(jnp.asarray(self.which, jnp.int32), branches)

"""FLTrust: letters count as far as they point where a trusted one does.

X. Cao et al., "FLTrust: Byzantine-robust federated learning via trust bootstrapping",
NDSS 2021. The coordinator trains on rows of its own, the root set; in a run that is an
agent like any other, whose letter is trusted.
"""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.aggregation.robust_rule import RobustRule, Vectors
from tacita.trees import count, frozen


@frozen
class FLTrust(RobustRule):
    """Weights relu(cos(u_i, u_0)); every u_i is scaled to the length of u_0.

    u_i is what a letter differs by from the centre. Where nobody is trusted, the centre
    stays.

    Attributes:
        root: The number of the agent that holds the coordinator's own rows.
    """

    root: int = count(0, at_least=0)

    of_mixed: ClassVar[bool] = False

    @property
    def least(self) -> int:
        """The root's letter and another."""
        return 2

    def bears(self, agents: int) -> int:
        """All others, if the root's rows are like the data."""
        return max(agents - 2, 0)

    def check(self, agents: int) -> None:
        """Refuse a root that is no agent."""
        super().check(agents)
        if self.root >= agents:
            check.refuse(
                f"FLTrust(root={self.root}) names none of the {agents} agents that "
                "are asked in a round; name one, and let everybody take part"
            )

    def join(self, given: Vectors) -> Array:
        """The centre and the trusted part of what letters differ by from it."""
        updates = given.letters - given.centre
        root = updates[self.root]
        trust, mean = trusted(updates, root, given.active.at[self.root].set(False))
        heard = given.active[self.root] & (jnp.sum(trust) > 0)
        return given.centre + jnp.where(heard, mean, 0)

    def used(self, given: Vectors) -> Array:
        """Everybody's trust."""
        updates = given.letters - given.centre
        others = given.active.at[self.root].set(False)
        return trusted(updates, updates[self.root], others)[0]


def trusted(updates: Array, root: Array, active: Array) -> tuple[Array, Array]:
    """Everybody's trust, and the mean by it of updates as long as the root's."""
    lengths = jnp.linalg.norm(updates, axis=1)
    length = jnp.linalg.norm(root)
    safe = jnp.where(lengths > 0, lengths, 1)
    cosine = updates @ root / (safe * jnp.where(length > 0, length, 1))
    trust = jnp.where(active, jnp.maximum(cosine, 0), 0)
    total = jnp.sum(trust)
    scaled = trust * length / safe / jnp.where(total > 0, total, 1)
    return trust, scaled.astype(updates.dtype) @ updates

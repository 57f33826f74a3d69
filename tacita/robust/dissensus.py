"""Dissensus: a liar tells each neighbour what cancels all the others say.

L. He et al., "Byzantine-robust decentralized learning via ClippedGossip", 2022.
"""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.robust.attack import Attack
from tacita.trees import frozen, number


@frozen
class Dissensus(Attack):
    """own - strength sum_j W_ij (x_j - own) / (weight of liars), to every neighbour i.

    At strength 1 it stops a node's gossip exactly; beyond that nodes drift apart.

    Attributes:
        agents: The numbers of the liars.
        since: The first round in which they lie.
        until: The last one.
        strength: See above.
    """

    strength: float = number(check.positive, 1.0)

    knows: ClassVar[str] = "what every neighbour's neighbours say"
    sees_letters: ClassVar[bool] = True
    on_edges: ClassVar[bool] = True

    def tell(
        self, own: Array, letters: Array, weights: Array, honest: Array, number: Array
    ) -> Array:
        """What one node hears: (slots, d), the liars' letters replaced.

        Args:
            own: Its own letter, (d,).
            letters: Its neighbours', (slots, d).
            weights: Of its edges, zero on padding.
            honest: Which neighbours do not lie.
            number: Of the round.
        """
        acts = (number >= self.since) & (number <= self.until)
        liars = jnp.sum(jnp.where(honest, 0, weights))
        pull = jnp.where(honest, weights, 0) @ (letters - own)
        lie = own - self.strength * pull / jnp.where(liars > 0, liars, 1)
        return jnp.where((acts & ~honest)[:, None], lie, letters)

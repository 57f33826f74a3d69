"""A rule that is no mean: what a user writes, one class."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from tacita import check
from tacita.aggregation import Heard
from tacita.trees import frozen


@frozen
class Median:
    """The median of every coordinate over the letters that are heard."""

    @property
    def additive(self) -> bool:
        return False

    def check(self, agents: int) -> None:
        if agents < 3:
            check.refuse(f"a median needs at least 3 agents, got {agents}")

    def __call__(self, heard: Heard) -> Any:
        def middle(letters: jax.Array) -> jax.Array:
            if heard.active is None:
                return jnp.median(letters, axis=0)
            wide = heard.active.reshape((-1,) + (1,) * (letters.ndim - 1))
            found = jnp.nanmedian(jnp.where(wide, letters, jnp.nan), axis=0)
            return jnp.where(jnp.any(heard.active), found, 0)

        return jax.tree.map(middle, heard.letters)

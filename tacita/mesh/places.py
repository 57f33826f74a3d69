"""Where agents are, and sums over them that do not depend on it.

Agents are cut into blocks, a power of two of them, by their numbers alone. A sum adds
up the agents of a block in their order, then blocks two by two, then pairs of blocks,
and so on. A device holds whole blocks next to each other, so that its sum is a branch
of that tree: one device or eight, the same numbers are added in the same order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita.mesh.devices import BLOCKS

#: The axis of a mesh along which agents lie.
AGENTS = "agents"


class Places(NamedTuple):
    """Which agents lie where.

    Attributes:
        agents: N, in all.
        blocks: Of agents, a power of two.
        devices: Over which blocks are spread, a power of two; 1 inside no mesh.
    """

    agents: int
    blocks: int
    devices: int = 1

    @classmethod
    def of(cls, agents: int, most_blocks: int = BLOCKS) -> Places:
        """As many blocks as leave few places empty, on one device."""
        blocks = most_blocks
        while blocks > 1 and not _fits(agents, blocks):
            blocks //= 2
        return cls(agents, blocks)

    @property
    def block(self) -> int:
        """Agents in a block; the last one may have fewer."""
        return -(-self.agents // self.blocks)

    @property
    def here(self) -> int:
        """Places on one device; the last device may have some that nobody takes."""
        if self.devices == 1:
            return self.agents
        return self.blocks // self.devices * self.block

    def first(self) -> Any:
        """The number of the first agent on this device."""
        return 0 if self.devices == 1 else jax.lax.axis_index(AGENTS) * self.here

    def numbers(self) -> Array:
        """The numbers of the agents on this device; beyond the last, nobody's."""
        return self.first() + jnp.arange(self.here)

    def local(self, numbers: Array) -> Array:
        """Where agents lie on this device; past its last place if they do not."""
        if self.devices == 1:
            return numbers
        place = numbers - self.first()
        return jnp.where((place >= 0) & (numbers < self.agents), place, self.here)

    def own(self, everybody: Array) -> Array:
        """The entries of this device's agents, out of one for every agent."""
        if self.devices == 1:
            return everybody
        extra = self.here * self.devices - self.agents
        filled = jnp.pad(everybody, [(0, extra), *[(0, 0)] * (everybody.ndim - 1)])
        return jax.lax.dynamic_slice_in_dim(filled, self.first(), self.here)

    def gather(self, tree: Any) -> Any:
        """Everybody's entries, on every device, out of those of its own agents."""
        if self.devices == 1:
            return tree

        def one(leaf: Array) -> Array:
            return jax.lax.all_gather(leaf, AGENTS, tiled=True)[: self.agents]

        return jax.tree.map(one, tree)

    def of_first(self, tree: Any) -> Any:
        """Agent 0's entries."""
        own = jax.tree.map(lambda leaf: leaf[0], tree)
        return own if self.devices == 1 else _all(own, lambda parts: parts[0])

    def sum(self, tree: Any, weights: Array | None = None) -> Any:
        """sum_i weight_i leaf_i, where this device has its own agents' entries."""
        whole = self.blocks // self.devices * self.block
        full = self.blocks * self.block == self.agents

        def one(leaf: Array) -> Array:
            others = [1] * (leaf.ndim - 1)
            if self.devices > 1 and not full:
                # Whoever is at a place that nobody takes says nothing.
                real = (self.numbers() < self.agents).reshape(-1, *others)
                leaf = jnp.where(real, leaf, 0)
            if weights is not None:
                leaf = weights.astype(leaf.dtype).reshape(-1, *others) * leaf
            leaf = jnp.pad(leaf, [(0, whole - self.here), *[(0, 0) for _ in others]])
            return jnp.sum(leaf.reshape(-1, self.block, *leaf.shape[1:]), axis=1)

        return self.joined(jax.tree.map(one, tree))

    def nothing(self, like: Any) -> Any:
        """Sums of this device's blocks before anything was added."""
        shape = (self.blocks // self.devices,)
        return jax.tree.map(lambda s: jnp.zeros(shape + s.shape, s.dtype), like)

    def add(self, sums: Any, numbers: Array, weights: Array, tree: Any) -> Any:
        """Add weighted entries of the agents `numbers` to the sums of their blocks.

        Numbers of agents that are not on this device are left out.
        """
        block = self.local(numbers) // self.block

        def one(total: Array, leaf: Array) -> Array:
            share = weights.astype(leaf.dtype)
            terms = share.reshape(-1, *[1] * (leaf.ndim - 1)) * leaf
            return total.at[block].add(terms, mode="drop", indices_are_sorted=True)

        return jax.tree.map(one, sums, tree)

    def joined(self, sums: Any) -> Any:
        """The whole sum, on every device, out of the sums of its blocks."""
        branch = jax.tree.map(_folded, sums)
        return branch if self.devices == 1 else _all(branch, _folded)


def _fits(agents: int, blocks: int) -> bool:
    """Whether blocks of equal size leave few places empty: two, or one of sixteen."""
    empty = blocks * -(-agents // blocks) - agents
    return blocks <= agents and empty <= max(2, agents // 16)


def _folded(parts: Array) -> Array:
    """Neighbours added two by two until one is left."""
    while len(parts) > 1:
        parts = parts[0::2] + parts[1::2]
    return parts[0]


def _all(tree: Any, join: Any) -> Any:
    """What `join` makes of the leaves of all devices."""
    return jax.tree.map(lambda leaf: join(jax.lax.all_gather(leaf, AGENTS)), tree)

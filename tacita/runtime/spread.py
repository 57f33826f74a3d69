"""How a run lies on devices: its lanes, or its agents, a part on each.

Every device runs the program of `engine` on its part. Lanes have nothing to tell each
other but whether all may stop; agents, in `over_agents.py`, meet where letters are
exchanged or joined and metrics summed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

from tacita.keys import Keys
from tacita.runtime.world import World

LANES = "lanes"
#: Of what every device has the same, whole.
WHOLE = Spec()


class Spread:
    """Some first axis, cut over devices. Abstract: over lanes or over agents below."""

    mesh: Mesh

    @property
    def cut(self) -> Spec:
        """Of what is cut along its first axis."""
        return Spec(*self.mesh.axis_names)

    @property
    def slots(self) -> int:
        """Places along the axis, with those that fill up the last device."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """Places that somebody takes."""
        raise NotImplementedError

    def specs_of(
        self, world: World, algorithm: Any, sweep: bool
    ) -> tuple[Any, Any, Any]:
        """How world, algorithm and keys are cut."""
        raise NotImplementedError

    def specs_of_carry(self) -> Any:
        """How what a round hands to the next is cut."""
        raise NotImplementedError

    @property
    def spec_of_book(self) -> Spec:
        """How records are cut."""
        raise NotImplementedError

    def spec_of_start(self, start: Any) -> Spec:
        """How the starting point, (d,) or (N, d), is cut."""
        return WHOLE

    def lay(
        self, world: World, algorithm: Any, bases: Keys, sweep: bool
    ) -> tuple[World, Any, Keys]:
        """World, algorithm and keys on the devices."""
        parts = (world, algorithm, bases)
        return self.put(parts, self.specs_of(*parts[:2], sweep))

    def put(self, tree: Any, specs: Any) -> Any:
        """Arrays on the devices, those that are cut filled up."""

        def subtree(spec: Spec, part: Any) -> Any:
            return jax.tree.map(lambda leaf: self._put_one(leaf, spec), part)

        return jax.tree.map(subtree, specs, tree, is_leaf=_is_spec)

    def _put_one(self, leaf: Any, spec: Spec) -> Any:
        if isinstance(leaf, bool | int | float):
            return leaf  # an array would lift float32 rows to its own precision
        if isinstance(leaf, Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            words = self._put_one(jax.random.key_data(leaf), spec)
            return jax.random.wrap_key_data(words)
        if isinstance(leaf, Array) and leaf.weak_type:
            return self._put_weak(leaf, spec)
        whole = np.asarray(leaf)
        if spec != WHOLE and self.slots > self.count:
            # The last one again: what fills up is as sound as what is real.
            extra = np.repeat(whole[-1:], self.slots - self.count, axis=0)
            whole = np.concatenate([whole, extra])
        return self.lay_whole(whole, spec)

    def _put_weak(self, leaf: Array, spec: Spec) -> Array:
        """As `_put_one`; the precision of what it meets wins over its own."""
        extra = self.slots - self.count if spec != WHOLE else 0
        filled = jnp.concatenate([leaf, *[leaf[-1:]] * extra]) if extra else leaf
        return jax.device_put(filled, NamedSharding(self.mesh, spec))

    def lay_whole(self, array: np.ndarray, spec: Spec) -> Array:
        """An array on the devices, as long as it is."""
        where = NamedSharding(self.mesh, spec)
        return jax.make_array_from_callback(array.shape, where, lambda at: array[at])

    def back(self, tree: Any, specs: Any) -> Any:
        """The same arrays whole, for everybody, without what fills up."""

        def subtree(spec: Spec, part: Any) -> Any:
            return jax.tree.map(lambda leaf: self.fetch(leaf, spec), part)

        return jax.tree.map(subtree, specs, tree, is_leaf=_is_spec)

    def fetch(self, leaf: Any, spec: Spec) -> np.ndarray:
        """One array, whole."""
        found = fetched(leaf)
        return found if spec == WHOLE else found[: self.count]

    def own(self, carry: Any) -> Any:
        """This process's part of a carry, without what fills up."""

        def one(leaf: Array, spec: Spec) -> np.ndarray:
            if spec == WHOLE:
                return fetched(leaf)
            parts = sorted(
                leaf.addressable_shards, key=lambda part: part.index[0].start or 0
            )
            found = np.concatenate([np.asarray(part.data) for part in parts])
            return found[: max(0, self.count - self.first_here)]

        return self._each(carry, one)

    def put_own(self, carry: Any) -> Any:
        """A carry on the devices, out of what every process has of it."""

        def one(leaf: np.ndarray, spec: Spec) -> Array:
            if spec == WHOLE:
                return self.lay_whole(leaf, spec)
            return self.lay_own(leaf)

        return self._each(carry, one)

    def lay_own(self, array: np.ndarray) -> Array:
        """What is cut, on the devices, out of what this process has of it."""
        first, here = self.first_here, self.slots_here
        if len(array) < here:
            # The last one again: what fills up is as sound as what is real.
            last = array[-1:] if len(array) else np.zeros((1, *array.shape[1:]))
            extra = np.repeat(last.astype(array.dtype), here - len(array), axis=0)
            array = np.concatenate([array, extra])

        def part(at: Any) -> np.ndarray:
            start, stop, _ = at[0].indices(self.slots)
            return array[start - first : stop - first]

        where = NamedSharding(self.mesh, self.cut)
        shape = (self.slots, *array.shape[1:])
        return jax.make_array_from_callback(shape, where, part)

    def _each(self, carry: Any, one: Callable[[Any, Spec], Any]) -> Any:
        """A carry with every array replaced, told how it is cut."""
        return jax.tree.map(
            lambda spec, part: jax.tree.map(lambda leaf: one(leaf, spec), part),
            self.specs_of_carry(),
            carry,
            is_leaf=_is_spec,
        )

    @property
    def slots_here(self) -> int:
        """Places along the axis that lie in this process."""
        mine = sum(
            d.process_index == jax.process_index() for d in self.mesh.devices.flat
        )
        return self.slots // self.mesh.size * mine

    @property
    def first_here(self) -> int:
        """The first place of this process; processes have equally many."""
        return self.slots_here * jax.process_index()

    def all(self, reached: Array) -> Array:
        """Whether it holds on every device, told inside the program of one."""
        return jax.lax.pmin(reached.astype(int), self.mesh.axis_names) > 0

    def begin(
        self,
        program: Callable[..., Any],
        sweep: bool,
        world: World,
        algorithm: Any,
        bases: Keys,
        start: Any,
    ) -> Any:
        """What `engine.begin` computes, each device its part."""
        cut = self.specs_of(world, algorithm, sweep)
        specs = (*cut, self.spec_of_start(start))
        given = (world, algorithm, bases, start)
        return self._shared(program, specs, self.specs_of_carry(), given)

    def run(self, program: Callable[..., Any], sweep: bool, *given: Any) -> Any:
        """The program of `engine.advance`, each device on its part."""
        world, algorithm, bases = self.specs_of(given[0], given[1], sweep)
        carry, book = self.specs_of_carry(), self.spec_of_book
        specs = (world, algorithm, bases, WHOLE, carry, book, *[WHOLE] * 4)
        return self._shared(program, specs, (carry, book, WHOLE), given)

    def _shared(
        self, program: Callable[..., Any], specs: Any, out: Any, given: tuple
    ) -> Any:
        """The program on every device's part of what is given, cut by `specs`.

        JAX is handed plain arrays: it would put None into records that refuse it.
        """
        leaves, structure = jax.tree.flatten(given)
        cuts, shape = jax.tree.flatten(specs, is_leaf=_is_spec)
        parts = zip(cuts, shape.flatten_up_to(given), strict=True)
        each = [spec for spec, part in parts for _ in jax.tree.leaves(part)]

        def on_leaves(*leaves: Any) -> Any:
            return program(*jax.tree.unflatten(structure, leaves))

        return jax.shard_map(
            on_leaves,
            mesh=self.mesh,
            in_specs=tuple(each),
            out_specs=out,
            check_vma=False,
        )(*leaves)


@dataclass(frozen=True)
class OverLanes(Spread):
    """Lanes of seeds or of a sweep; every device has all agents.

    Attributes:
        mesh: The devices, along an axis of lanes.
        lanes: How many.
    """

    mesh: Mesh
    lanes: int

    @property
    def count(self) -> int:
        """Lanes."""
        return self.lanes

    @property
    def slots(self) -> int:
        """Lanes, with those that fill up the last device."""
        return -(-self.lanes // self.mesh.size) * self.mesh.size

    def specs_of(self, world: World, algorithm: Any, sweep: bool) -> tuple:
        """Keys are cut, and of a sweep the algorithm's numbers."""
        return WHOLE, self.cut if sweep else WHOLE, self.cut

    def specs_of_carry(self) -> Any:
        """All of it has an axis of lanes."""
        return self.cut

    @property
    def spec_of_book(self) -> Spec:
        """A page for each lane."""
        return self.cut


def fetched(leaf: Any) -> np.ndarray:
    """An array of all processes, in each of them."""
    if isinstance(leaf, Array) and leaf.is_fully_replicated:
        return np.asarray(leaf.addressable_data(0))
    if isinstance(leaf, Array) and not leaf.is_fully_addressable:
        return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))
    return np.asarray(leaf)


def _is_spec(value: Any) -> bool:
    return isinstance(value, Spec)

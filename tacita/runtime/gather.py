"""Asking the active agents and joining their letters, at a cost of the active ones.

Whether agents are computed together (vmapped) or one by one (scanned) changes speed
only: on a CPU small matrices gain from being batched, large ones from staying in the
cache.

A silent agent's last letter stays valid. For algorithms that average the letters of
all agents, the coordinator keeps a running mean and adds the changes, so that it needs
one vector, not one per agent (an agent remembers its own last letter). For those that
average the active agents only, nothing is kept.

On a mesh a device asks its own agents: states, letters and weights are theirs, numbers
and who is active are told of everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from tacita.aggregation import Aggregation, Heard
from tacita.aggregation.mean import keep_silent, shared_out
from tacita.aggregation.robust_rule import RobustRule
from tacita.mesh.places import Places
from tacita.robust.detection import look
from tacita.trees import tree_rows

#: Multiply-adds of one local gradient above which agents are computed one by one.
#: Measured: 1,250 is faster together, 78,400 faster one by one.
ONE_BY_ONE_WORK = 20_000
#: How many agents of a cohort a device of a mesh computes together.
OWN_BLOCK = 16


class Mail(NamedTuple):
    """The joint letter, and every agent's last letter where the algorithm needs it."""

    joint: Any
    letters: Any
    seen: Any = ()  # how the letters lay among each other, where somebody watches


#: A mail of which nothing needs to be kept.
NOTHING = Mail((), ())


class Slice(NamedTuple):
    """One agent's slice of everything that is stacked over agents."""

    own: Any  # rows, numbers, edges
    state: Any
    inbox: Any


class Gathering(NamedTuple):
    """One method per kind of active set: everyone, a cohort, a mask, blocks of few.

    Each returns the agents' states, the mail, and how many answered.
    """

    one: Callable[[Array, Slice], Any]  # key and slice -> state and letter of an agent
    keys_of: Callable[[Array], Array]  # agents' numbers -> their keys
    slices: Slice  # stacked over agents
    post: Mail  # what is valid of earlier letters
    weights: Array  # of the agents' letters
    rule: Aggregation | None  # None on a graph, where nobody joins letters
    key: Array  # of the rule
    centre: Any  # of the rule: what honest letters lie around
    #: Letters and the numbers of who wrote them (None: everybody), and who is heard ->
    #: the letters after liars had their way; None where nobody lies.
    lies: Callable[[Any, Array | None, Array | None], Any] | None
    keep: bool  # every agent's last letter stays valid
    together: bool  # vmapped rather than one by one
    places: Places  # where agents are
    watch: bool = False  # whether to see how letters lay

    def everyone(self) -> tuple[Any, Mail, Any]:
        """All agents answer."""
        if self.lies is not None:
            return self.mask(jnp.ones(self.places.agents, bool))
        if self._adds_up:
            everybody = jnp.ones(self.places.agents, bool)
            return *self.few(everybody, 1)[:2], self.places.agents
        states, letters = self._ask_everyone()
        joint = self._join(letters, self.weights, None)
        seen = self._seen(letters, joint, None, None)
        kept = letters if self.keep else ()
        return states, Mail(joint, kept, seen), self.places.agents

    def cohort(self, numbers: Array) -> tuple[Any, Mail, Any]:
        """The agents `numbers` answer: gather, compute, scatter."""
        if self._adds_up:
            return self.own_cohort(numbers)
        fresh, letters = self._ask(self.slices, numbers, numbers)
        states = _write(self.slices.state, numbers, fresh)
        weights, count = self.weights[numbers], len(numbers)
        letters, heard = self._told(letters, numbers, None)
        if heard is not None:
            count = jnp.sum(heard)
        if not self.keep:
            joint = self._join(letters, weights, heard, numbers)
            seen = self._seen(letters, joint, heard, numbers)
            return states, Mail(joint, (), seen), count
        if heard is not None:
            old = tree_rows(self.post.letters, numbers)
            letters = keep_silent(heard, letters, old)
        return states, self._replaced(numbers, weights, letters), count

    def mask(self, active: Array) -> tuple[Any, Mail, Any]:
        """Everybody is computed, only the active ones are heard."""
        active = self.places.own(active)
        states, letters = self._ask_everyone(active)
        letters, heard = self._told(letters, None, active)
        active = active if heard is None else heard
        count = self.places.sum(active.astype(int))
        if not self.keep:
            joint = self._join(letters, self.weights, active)
            seen = self._seen(letters, joint, active, None)
            return states, Mail(joint, (), seen), count
        letters = keep_silent(active, letters, self.post.letters)
        joint = self._join(letters, self.weights, None)
        seen = self._seen(letters, joint, None, None)
        return states, Mail(joint, letters, seen), count

    def own_cohort(self, numbers: Array) -> tuple[Any, Mail, Any]:
        """As `cohort`, in blocks: those of `numbers` that are on this device."""
        k, n = len(numbers), self.places.agents
        block = OWN_BLOCK if self.together else 1
        here = self.places.local(numbers) < self.places.here
        order = jnp.nonzero(here, size=k + block, fill_value=k)[0]
        order = jnp.append(numbers, n)[jnp.minimum(order, k)]
        return *self._blocks(order, jnp.sum(here), block), k

    def few(self, active: Array, block: int) -> tuple[Any, Mail, Any]:
        """The active agents are gathered and computed `block` at a time."""
        here, first = self.places.own(active), self.places.first()
        order = jnp.nonzero(here, size=len(here) + block, fill_value=len(here))[0]
        return *self._blocks(order + first, jnp.sum(here), block), jnp.sum(active)

    def _blocks(self, order: Array, total: Array, block: int) -> tuple[Any, Mail]:
        """Some agents of this device answer, gathered and computed `block` at a time.

        Args:
            order: Their numbers, rising, and behind them at least `block` others.
            total: How many they are.
            block: How many are computed together.
        """
        places = self.places

        def step(carry: tuple, numbers: Array, real: Array) -> tuple:
            states, kept, sums = carry
            # Blocks are filled up with agents past the end, who weigh nothing.
            local = jnp.where(real, places.local(numbers), places.here)
            slices = self.slices._replace(state=states)
            fresh, letters = self._ask(slices, local, numbers)
            states = _write(states, local, fresh)
            said = letters
            if self.keep:
                said = jax.tree.map(jnp.subtract, letters, tree_rows(kept, local))
                kept = _write(kept, local, letters)
            if self.rule is not None:
                said = keep_silent(real, said, jax.tree.map(jnp.zeros_like, said))
                weights = jnp.where(real, self.weights[local], 0)
                sums = places.add(sums, numbers, weights, (said, one))
            return states, kept, sums

        one = jnp.ones(block, self.weights.dtype)
        sums = () if self.rule is None else places.nothing(self._nobody(block))
        begun = (self.slices.state, self.post.letters if self.keep else (), sums)
        states, kept, sums = _in_blocks(step, begun, order, total, block)
        if self.rule is None:
            return states, Mail((), kept)
        shift, weight = places.joined(sums)
        if self.keep:
            return states, Mail(self._shifted(shift), kept)
        return states, Mail(shared_out(shift, weight), ())

    @property
    def _adds_up(self) -> bool:
        """Whether letters can be added one by one, and nobody needs them again.

        Then no two letters, and no two new states, are there at a time.
        """
        plain = self.lies is None and not self.keep and not self.watch
        additive = self.rule is not None and self.rule.additive
        return plain and additive and not self.together

    def _ask_everyone(self, active: Array | None = None) -> tuple[Any, Any]:
        """States and letters of everybody here; the silent ones' states stay."""
        keys, before = self.keys_of(self.places.numbers()), self.slices.state
        if self.together:
            fresh, letters = jax.vmap(self.one)(keys, self.slices)
            return _unless_silent(active, fresh, before), letters

        def step(i: Array, done: tuple[Any, Any]) -> tuple[Any, Any]:
            states, letters = done
            mine = tree_rows(self.slices._replace(state=states), i)
            fresh, letter = self.one(keys[i], mine)
            if active is not None:
                fresh = keep_silent(active[i], fresh, mine.state)
            return _put(states, i, fresh), _put(letters, i, letter)

        # States are written where they lie: a loop that stacks them would fill, and
        # copy, as much memory again before it begins.
        said = jax.eval_shape(self.one, keys[0], tree_rows(self.slices, 0))[1]
        n = len(keys)
        blank = jax.tree.map(lambda one: jnp.zeros((n, *one.shape), one.dtype), said)
        return jax.lax.fori_loop(0, n, step, (before, blank))

    def _ask(self, slices: Slice, local: Array, numbers: Array) -> tuple[Any, Any]:
        """Answers of the agents `numbers`, which lie at `local`, in that order."""
        keys = self.keys_of(numbers)
        if self.together:
            return jax.vmap(self.one)(keys, tree_rows(slices, local))
        # Slicing inside the loop never copies more than one agent's rows.
        return jax.lax.map(
            lambda pair: self.one(pair[0], tree_rows(slices, pair[1])), (keys, local)
        )

    def _told(
        self, letters: Any, numbers: Array | None, active: Array | None
    ) -> tuple[Any, Array | None]:
        """Letters as they come, and who is heard: none whose letter is not finite."""
        if self.lies is None:
            return letters, active
        everybody = self.places.gather
        said = self.lies(
            everybody(letters), numbers, None if active is None else everybody(active)
        )
        letters = jax.tree.map(self.places.own, said) if numbers is None else said
        sound = finite_rows(letters)
        return letters, sound if active is None else sound & active

    def _join(
        self,
        letters: Any,
        weights: Array,
        active: Array | None,
        numbers: Array | None = None,
    ) -> Any:
        """The rule's letter, of everybody or of `numbers`; nothing on a graph."""
        if self.rule is None:
            return ()
        heard = Heard(letters, weights, active, self.key, self.centre)
        if numbers is None:
            return join(self.rule, heard, self.places)
        if not self.rule.additive:
            return self.rule(heard)
        if active is not None:
            weights = jnp.where(active, weights, 0)
            silent = jax.tree.map(jnp.zeros_like, letters)
            letters = keep_silent(active, letters, silent)
        return shared_out(*self._sum_of(numbers, weights, letters))

    def _sum_of(self, numbers: Array, weights: Array, letters: Any) -> tuple[Any, Any]:
        """Of the agents `numbers`, all of them here: letters and weights, added."""
        said = (letters, jnp.ones(len(numbers), weights.dtype))
        like = jax.eval_shape(lambda: tree_rows(said, 0))
        sums = self.places.add(self.places.nothing(like), numbers, weights, said)
        return self.places.joined(sums)

    def _seen(
        self, letters: Any, joint: Any, active: Array | None, numbers: Array | None
    ) -> Any:
        """How the letters lay, (signs, N); nothing where nobody watches."""
        if not self.watch:
            return ()
        if numbers is None:
            letters, active = self.places.gather((letters, active))
        weights = jnp.ones(len(jax.tree.leaves(letters)[0]))
        heard = Heard(letters, weights, active, self.key, self.centre)
        table = look(RobustRule().vectors(heard), ravel_pytree(joint)[0], self.rule)
        if numbers is None:
            return table
        empty = jnp.full((len(table), self.places.agents), jnp.nan)
        return empty.at[:, numbers].set(table)

    def _replaced(self, numbers: Array, weights: Array, letters: Any) -> Mail:
        """The mail after the letters of the agents `numbers` were replaced."""
        kept = _write(self.post.letters, numbers, letters)
        if self.rule is None or not self.rule.additive:
            joint = self._join(kept, self.weights, None)
            return Mail(joint, kept, self._seen(kept, joint, None, None))
        before = tree_rows(self.post.letters, numbers)
        change = jax.tree.map(jnp.subtract, letters, before)
        mean = self._shifted(self._sum_of(numbers, weights, change)[0])
        return Mail(mean, kept, self._seen(kept, mean, None, None))

    def _shifted(self, shift: Any) -> Any:
        """The running mean after weighted letters changed by `shift` in all."""
        total = self.places.sum(self.weights)
        return jax.tree.map(
            lambda m, c: m + c / total.astype(m.dtype), self.post.joint, shift
        )

    def _nobody(self, block: int) -> Any:
        """Shapes of a letter and of a weight."""
        none = jnp.zeros(block, jnp.int32)
        like = jax.eval_shape(lambda: self._ask(self.slices, none, none)[1])
        like = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape[1:], s.dtype), like)
        return like, jax.ShapeDtypeStruct((), self.weights.dtype)


def join(rule: Aggregation, heard: Heard, places: Places) -> Any:
    """The rule's letter of everybody, where a device has heard its own agents."""
    if rule.additive:
        return rule(heard._replace(places=places))
    letters, weights, active = places.gather(heard[:3])
    return rule(heard._replace(letters=letters, weights=weights, active=active))


def finite_rows(letters: Any) -> Array:
    """Which agents' letters are finite."""
    leaves = [leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(letters)]
    finite = [jnp.all(jnp.isfinite(leaf), axis=1) for leaf in leaves]
    return jnp.all(jnp.stack(finite), axis=0)


def _write(old: Any, numbers: Array, new: Any) -> Any:
    """`old` with the rows `numbers` replaced; numbers past the end are dropped."""
    return jax.tree.map(
        lambda a, b: a.at[numbers].set(b, mode="drop", unique_indices=True), old, new
    )


def _put(stacked: Any, i: Array, one: Any) -> Any:
    """With the i-th row replaced."""
    return jax.tree.map(
        lambda rows, row: jax.lax.dynamic_update_index_in_dim(rows, row, i, 0),
        stacked,
        one,
    )


def _unless_silent(active: Array | None, fresh: Any, old: Any) -> Any:
    return fresh if active is None else keep_silent(active, fresh, old)


def _in_blocks(
    step: Callable[[Any, Array, Array], Any],
    carry: Any,
    order: Array,
    total: Array,
    block: int,
) -> Any:
    """Run `step(carry, numbers, real)` over the first `total` numbers of an order.

    The last block is filled up with what follows, which `real` marks False. The number
    of blocks follows the number of active agents.
    """

    def body(state: tuple[Array, Any]) -> tuple[Array, Any]:
        first, inner = state
        numbers = jax.lax.dynamic_slice(order, (first,), (block,))
        real = first + jnp.arange(block) < total
        return first + block, step(inner, numbers, real)

    start = (jnp.zeros((), total.dtype), carry)
    return jax.lax.while_loop(lambda state: state[0] < total, body, start)[1]

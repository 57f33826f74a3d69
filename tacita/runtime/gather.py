"""Asking the active agents and joining their letters, at a cost of the active ones.

Whether agents are computed together (vmapped) or one by one (scanned) changes speed
only: on a CPU small matrices gain from being batched, large ones from staying in the
cache.

A silent agent's last letter stays valid. For algorithms that average the letters of
all agents, the coordinator keeps a running mean and adds the changes, so that it needs
one vector, not one per agent (an agent remembers its own last letter). For those that
average the active agents only, nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from tacita.aggregation import Aggregation, Heard
from tacita.aggregation.mean import keep_silent, weighted_sum
from tacita.aggregation.robust_rule import RobustRule
from tacita.robust.detection import look
from tacita.trees import tree_rows

#: Multiply-adds of one local gradient above which agents are computed one by one.
#: Measured: 1,250 is faster together, 78,400 faster one by one.
ONE_BY_ONE_WORK = 20_000


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
    watch: bool = False  # whether to see how letters lay

    def everyone(self) -> tuple[Any, Mail, Any]:
        """All agents answer."""
        if self.lies is not None:
            return self.mask(jnp.ones(len(self.weights), bool))
        if self._adds_up:
            return self._added_up(jnp.arange(len(self.weights)))
        states, letters = self._ask_everyone()
        joint = self._join(letters, self.weights, None)
        seen = self._seen(letters, joint, None, None)
        kept = letters if self.keep else ()
        return states, Mail(joint, kept, seen), len(self.weights)

    def cohort(self, numbers: Array) -> tuple[Any, Mail, Any]:
        """The agents `numbers` answer: gather, compute, scatter."""
        if self._adds_up:
            return self._added_up(numbers)
        fresh, letters = self._ask(self.slices, numbers)
        states = _write(self.slices.state, numbers, fresh)
        weights, count = self.weights[numbers], len(numbers)
        letters, heard = self._told(letters, numbers, None)
        if heard is not None:
            count = jnp.sum(heard)
        if not self.keep:
            joint = self._join(letters, weights, heard)
            seen = self._seen(letters, joint, heard, numbers)
            return states, Mail(joint, (), seen), count
        if heard is not None:
            old = tree_rows(self.post.letters, numbers)
            letters = keep_silent(heard, letters, old)
        return states, self._replaced(self.post, numbers, weights, letters), count

    def mask(self, active: Array) -> tuple[Any, Mail, Any]:
        """Everybody is computed, only the active ones are heard."""
        fresh, letters = self._ask_everyone()
        states = keep_silent(active, fresh, self.slices.state)
        letters, heard = self._told(letters, None, active)
        active = active if heard is None else heard
        count = jnp.sum(active)
        if not self.keep:
            joint = self._join(letters, self.weights, active)
            seen = self._seen(letters, joint, active, None)
            return states, Mail(joint, (), seen), count
        letters = keep_silent(active, letters, self.post.letters)
        joint = self._join(letters, self.weights, None)
        seen = self._seen(letters, joint, None, None)
        return states, Mail(joint, letters, seen), count

    def blocks(self, active: Array, block: int) -> tuple[Any, Mail, Any]:
        """The active agents are gathered and computed `block` at a time."""

        def step(carry: tuple, numbers: Array, real: Array) -> tuple:
            states, post, total = carry
            fresh, letters = self._ask(self.slices._replace(state=states), numbers)
            letters = keep_silent(real, letters, jax.tree.map(jnp.zeros_like, letters))
            weights = jnp.where(real, self.weights[numbers], 0)
            states = _write(states, numbers, fresh)
            if self.keep:
                return states, self._replaced(post, numbers, weights, letters), total
            joint = jax.tree.map(jnp.add, post.joint, weighted_sum(weights, letters))
            return states, Mail(joint, ()), total + jnp.sum(weights)

        post = self.post if self.keep else Mail(self._no_letters(block), ())
        zero = jnp.zeros((), self.weights.dtype)
        states, post, total = _in_blocks(
            step, (self.slices.state, post, zero), active, block
        )
        if not self.keep:
            total = jnp.where(total > 0, total, 1)
            mean = jax.tree.map(lambda s: s / total.astype(s.dtype), post.joint)
            post = Mail(mean, ())
        return states, post, jnp.sum(active)

    @property
    def _adds_up(self) -> bool:
        """Whether letters can be added one by one, and nobody needs them again."""
        plain = self.lies is None and not self.keep and not self.watch
        additive = self.rule is not None and self.rule.additive
        return plain and additive and not self.together

    def _added_up(self, numbers: Array) -> tuple[Any, Mail, Any]:
        """One agent after the other: its state is written, its letter added.

        No two letters, and no two states, are there at a time.
        """
        weights = self.weights[numbers]
        total = jnp.sum(weights)

        def step(carry: tuple, given: tuple) -> tuple[tuple, None]:
            states, joint = carry
            key, number, share = given
            mine = tree_rows(self.slices._replace(state=states), number)
            fresh, letter = self.one(key, mine)
            states = jax.tree.map(lambda a, b: a.at[number].set(b), states, fresh)
            joint = jax.tree.map(
                lambda s, a: s + share.astype(a.dtype) * a, joint, letter
            )
            return (states, joint), None

        first = self.slices.state, self._no_letters(1)
        each = self.keys_of(numbers), numbers, weights / jnp.where(total > 0, total, 1)
        (states, joint), _ = jax.lax.scan(step, first, each)
        return states, Mail(joint, ()), len(numbers)

    def _ask_everyone(self) -> tuple[Any, Any]:
        keys = self.keys_of(jnp.arange(len(self.weights)))
        if self.together:
            return jax.vmap(self.one)(keys, self.slices)
        return jax.lax.map(lambda pair: self.one(*pair), (keys, self.slices))

    def _ask(self, slices: Slice, numbers: Array) -> tuple[Any, Any]:
        """Answers of the agents `numbers`, stacked in that order."""
        keys = self.keys_of(numbers)
        if self.together:
            return jax.vmap(self.one)(keys, tree_rows(slices, numbers))
        # Slicing inside the loop never copies more than one agent's rows.
        return jax.lax.map(
            lambda pair: self.one(pair[0], tree_rows(slices, pair[1])), (keys, numbers)
        )

    def _told(
        self, letters: Any, numbers: Array | None, active: Array | None
    ) -> tuple[Any, Array | None]:
        """Letters as they come, and who is heard: none whose letter is not finite."""
        if self.lies is None:
            return letters, active
        letters = self.lies(letters, numbers, active)
        sound = finite_rows(letters)
        return letters, sound if active is None else sound & active

    def _join(self, letters: Any, weights: Array, active: Array | None) -> Any:
        """The rule's letter; nothing on a graph."""
        if self.rule is None:
            return ()
        return self.rule(Heard(letters, weights, active, self.key, self.centre))

    def _seen(
        self, letters: Any, joint: Any, active: Array | None, numbers: Array | None
    ) -> Any:
        """How the letters lay, (signs, N); nothing where nobody watches."""
        if not self.watch:
            return ()
        weights = jnp.ones(len(jax.tree.leaves(letters)[0]))
        heard = Heard(letters, weights, active, self.key, self.centre)
        table = look(RobustRule().vectors(heard), ravel_pytree(joint)[0], self.rule)
        if numbers is None:
            return table
        empty = jnp.full((len(table), len(self.weights)), jnp.nan)
        return empty.at[:, numbers].set(table)

    def _replaced(
        self, post: Mail, numbers: Array, weights: Array, letters: Any
    ) -> Mail:
        """The mail after the letters of the agents `numbers` were replaced."""
        kept = _write(post.letters, numbers, letters)
        if self.rule is None or not self.rule.additive:
            joint = self._join(kept, self.weights, None)
            return Mail(joint, kept, self._seen(kept, joint, None, None))
        change = jax.tree.map(jnp.subtract, letters, tree_rows(post.letters, numbers))
        # Blocks are filled up with agents of weight zero.
        shift, total = weighted_sum(weights, change), jnp.sum(self.weights)
        mean = jax.tree.map(
            lambda m, c: m + c / total.astype(m.dtype), post.joint, shift
        )
        return Mail(mean, kept, self._seen(kept, mean, None, None))

    def _no_letters(self, block: int) -> Any:
        """A sum of letters before any was added."""
        sample = jax.eval_shape(
            lambda: self._ask(self.slices, jnp.zeros(block, jnp.int32))[1]
        )
        return jax.tree.map(lambda s: jnp.zeros(s.shape[1:], s.dtype), sample)


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


def _in_blocks(
    step: Callable[[Any, Array, Array], Any], carry: Any, active: Array, block: int
) -> Any:
    """Run `step(carry, numbers, real)` over the active agents, `block` at a time.

    The last block is filled up with numbers past the end, which `real` marks False.
    The number of blocks follows the number of active agents.
    """
    n = active.shape[0]
    total = jnp.sum(active)
    order = jnp.nonzero(active, size=n + block, fill_value=n)[0]

    def body(state: tuple[Array, Any]) -> tuple[Array, Any]:
        first, inner = state
        numbers = jax.lax.dynamic_slice(order, (first,), (block,))
        return first + block, step(inner, numbers, numbers < n)

    start = (jnp.zeros((), order.dtype), carry)
    return jax.lax.while_loop(lambda state: state[0] < total, body, start)[1]

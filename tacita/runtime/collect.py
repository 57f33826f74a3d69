"""Asking the active agents and filing their letters, for every kind of active set."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita.problem.population import Rows
from tacita.runtime import crew, mail
from tacita.runtime.mail import Mail
from tacita.trees import tree_rows


class Own(NamedTuple):
    """One agent's slice of everything that is stacked over agents."""

    rows: Rows
    state: Any
    numbers: list[Array]  # the algorithm's numbers that differ between agents
    edges: Any
    inbox: Any


class Collector(NamedTuple):
    """One method per kind of set: everyone, a cohort, a mask, blocks of few.

    Each returns the agents' states, the mail, and, where that is left to chance,
    whether anybody answered.
    """

    one: Any  # (key, own) -> state and letter of one agent
    keys_of: Any  # agents' numbers -> their keys
    own: Own  # stacked over agents
    post: Mail  # what is valid of earlier letters
    weights: Array  # of the agents' letters in the mean
    keep: bool  # every agent's last letter stays valid
    graph: bool  # nobody takes a mean
    together: bool  # vmapped rather than one by one

    def _ask_everyone(self) -> tuple[Any, Any]:
        keys = self.keys_of(jnp.arange(len(self.weights)))
        return crew.ask_everyone(self.one, keys, self.own, self.together)

    def _ask(self, own: Own, numbers: Array) -> tuple[Any, Any]:
        keys = self.keys_of(numbers)
        return crew.ask_some(self.one, keys, own, numbers, self.together)

    def everyone(self) -> tuple[Any, Mail, None]:
        """All agents answer."""
        states, letters = self._ask_everyone()
        mean = () if self.graph else mail.mean_of(self.weights, letters)
        return states, Mail(mean, letters if self.keep else ()), None

    def cohort(self, numbers: Array) -> tuple[Any, Mail, None]:
        """The agents `numbers` answer: gather, compute, scatter."""
        fresh, letters = self._ask(self.own, numbers)
        states = crew.write(self.own.state, numbers, fresh)
        weights = self.weights[numbers]
        if not self.keep:
            return states, Mail(mail.mean_of(weights, letters), ()), None
        mean = () if self.graph else self._shift(self.post, numbers, weights, letters)
        return states, Mail(mean, crew.write(self.post.letters, numbers, letters)), None

    def mask(self, active: Array) -> tuple[Any, Mail, Array]:
        """Everybody is computed, only the active ones are heard."""
        fresh, letters = self._ask_everyone()
        states = crew.keep_silent(active, fresh, self.own.state)
        if self.keep:
            letters = crew.keep_silent(active, letters, self.post.letters)
            mean = () if self.graph else mail.mean_of(self.weights, letters)
            return states, Mail(mean, letters), jnp.any(active)
        silent = jax.tree.map(jnp.zeros_like, letters)
        heard = crew.keep_silent(active, letters, silent)
        mean = mail.mean_of(jnp.where(active, self.weights, 0), heard)
        return states, Mail(mean, ()), jnp.any(active)

    def blocks(self, active: Array, block: int) -> tuple[Any, Mail, Array]:
        """The active agents are gathered and computed `block` at a time."""

        def step(carry: tuple, numbers: Array, real: Array) -> tuple:
            states, post, total = carry
            fresh, letters = self._ask(self.own._replace(state=states), numbers)
            letters = crew.keep_silent(
                real, letters, jax.tree.map(jnp.zeros_like, letters)
            )
            weights = jnp.where(real, self.weights[numbers], 0)
            states = crew.write(states, numbers, fresh)
            if not self.keep:
                got = mail.weighted_sum(weights, letters)
                mean = jax.tree.map(jnp.add, post.mean, got)
                return states, Mail(mean, ()), total + jnp.sum(weights)
            mean = () if self.graph else self._shift(post, numbers, weights, letters)
            kept = crew.write(post.letters, numbers, letters)
            return states, Mail(mean, kept), total

        post = self.post
        if not self.keep:
            post = Mail(self._no_letters(block), ())
        zero = jnp.zeros((), self.weights.dtype)
        states, post, total = crew.in_blocks(
            step, (self.own.state, post, zero), active, block
        )
        if not self.keep:
            total = jnp.where(total > 0, total, 1)
            mean = jax.tree.map(lambda s: s / total.astype(s.dtype), post.mean)
            post = Mail(mean, ())
        return states, post, jnp.any(active)

    def _shift(self, post: Mail, numbers: Array, weights: Array, letters: Any) -> Any:
        """The running mean over all agents after some letters were replaced."""
        change = mail.difference(letters, tree_rows(post.letters, numbers))
        # Blocks are filled up with agents of weight zero.
        shift = mail.weighted_sum(weights, change)
        return mail.add(post.mean, shift, jnp.sum(self.weights))

    def _no_letters(self, block: int) -> Any:
        """A sum of letters before any was added."""
        sample = jax.eval_shape(
            lambda: self._ask(self.own, jnp.zeros(block, jnp.int32))[1]
        )
        return jax.tree.map(lambda s: jnp.zeros(s.shape[1:], s.dtype), sample)

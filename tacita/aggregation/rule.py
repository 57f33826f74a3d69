"""What every rule says of itself, and what it is handed.

A rule is a frozen record, as algorithms are: its numbers are leaves, its counts static.
The runtime, `debug` and a federation's coordinator call the same object.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from jax import Array

from tacita.mesh.places import Places

#: A letter, or letters stacked over agents: any tree of arrays.
Letters = Any


class Heard(NamedTuple):
    """The letters of one exchange, stacked over agents along the first axis."""

    letters: Letters
    weights: Array  # of every agent's letter
    active: Array | None  # whether it is heard; None: all of them are
    key: Array  # for rules that draw
    centre: Letters = None  # what honest letters lie around; None: zero
    places: Places | None = None  # where agents are, for a mean; None: all are here


class Aggregation(Protocol):
    """How the letters of an exchange become one."""

    @property
    def additive(self) -> bool:
        """Whether it is the weighted mean, so that letters may be added as they come.

        Where it is not, all letters of an exchange are kept until the last has come.
        Privacy reads it too: only in a mean does everybody's noise cover everybody.
        """
        ...

    @property
    def least(self) -> int:
        """The fewest letters that it can join; with fewer a round says nothing new."""
        ...

    @property
    def bound(self) -> float | None:
        """How far from the centre a letter counts, in a mean of equal weights.

        None where no number bounds what one letter does: noise of a coordinator's
        would cover nothing.
        """
        ...

    def bears(self, agents: int) -> int:
        """How many liars among so many agents cannot carry it away."""
        ...

    def kappa(self, agents: int, liars: int) -> float:
        """How far liars move it, at most, by the spread of the honest letters.

        ||rule - mean_S||^2 <= kappa mean_S ||x_i - mean_S||^2 for every set S of
        agents - liars letters; infinite where no such bound is known.
        """
        ...

    def check(self, agents: int) -> None:
        """Refuse a number of agents that it cannot serve."""
        ...

    def __call__(self, heard: Heard) -> Letters:
        """One letter out of many."""
        ...

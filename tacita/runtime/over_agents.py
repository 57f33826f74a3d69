"""Agents on devices: those of some blocks on each, with all that is theirs.

Letters that are joined are summed by blocks; of letters along the edges of a graph
those cross that somebody on another device reads, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from tacita.keys import Keys
from tacita.mesh.places import Places
from tacita.problem.population import Rows
from tacita.runtime import delivery
from tacita.runtime.delivery import Links
from tacita.runtime.gather import Mail
from tacita.runtime.spread import WHOLE, Spread
from tacita.runtime.world import Carry, World


@dataclass(frozen=True)
class OverAgents(Spread):
    """Agents: rows, edges, states, letters and turns are cut; hub and keys are not.

    Attributes:
        mesh: The devices, along an axis of agents.
        places: Which agents lie on which.
        keeps: Whether every agent's state is kept.
    """

    mesh: Mesh
    places: Places
    keeps: bool = True

    @property
    def count(self) -> int:
        """Agents."""
        return self.places.agents

    @property
    def slots(self) -> int:
        """Agents, with those that fill up the last device."""
        return self.places.here * self.places.devices

    def lay(self, world: World, algorithm: Any, bases: Keys, sweep: bool) -> tuple:
        """The population says where its agents are."""
        rows = world.population.rows
        if world.population.here < self.count:
            # Other processes have the others.
            laid = jax.tree.map(lambda leaf: self.lay_own(np.asarray(leaf)), rows)
        else:
            laid = self.put(rows, self.cut)
        links = None if world.links is None else self._lay_links(world.links)
        # Laid already: only what is left is laid like everything else.
        there = replace(world.population, rows=Rows(None, None, None))
        there = replace(there, spread=self.places)
        bare = world._replace(population=there, links=None)
        bare, algorithm, bases = super().lay(bare, algorithm, bases, sweep)
        there = replace(bare.population, rows=laid)
        return bare._replace(population=there, links=links), algorithm, bases

    def _lay_links(self, links: Links) -> Links:
        """Every device's edges, and the routes of its letters."""
        apart = delivery.cut(links, self.places)
        # Routes are made for all devices, so that nothing is to be filled up.
        routes, slots = jax.tree.map(
            lambda leaf: self.lay_whole(np.asarray(leaf), self.cut),
            (apart.routes, apart.slots),
        )
        return Links(self.put(apart.edges, self.cut), routes, slots)

    def specs_of(self, world: World, algorithm: Any, sweep: bool) -> tuple:
        """Rows and edges are cut, and numbers that differ between agents."""
        specs = jax.tree.map(lambda _: WHOLE, world)
        rows, links = jax.tree.map(
            lambda _: self.cut, (world.population.rows, world.links)
        )
        population = replace(specs.population, rows=rows)
        own = jax.tree.map(
            lambda leaf: self.cut if np.ndim(leaf) == 1 else WHOLE, algorithm
        )
        return specs._replace(population=population, links=links), own, WHOLE

    def specs_of_carry(self) -> Any:
        """States, letters and turns are cut."""
        cut: Any = self.cut
        return Carry(
            memory=WHOLE,
            broadcast=WHOLE,
            states=cut if self.keeps else WHOLE,
            mail=Mail(WHOLE, cut, WHOLE),
            turns=cut,
            transit=WHOLE,
            seen=WHOLE,
            before=WHOLE,
        )

    @property
    def spec_of_book(self) -> Spec:
        """One for all."""
        return WHOLE

    def spec_of_start(self, start: Any) -> Spec:
        """An agent's own start lies with it."""
        return self.cut if np.ndim(start) == 2 else WHOLE

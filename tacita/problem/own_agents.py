"""A problem of which every process holds the rows of its own agents only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.mesh.devices import Mesh, found, mesh_of
from tacita.mesh.places import Places
from tacita.mesh.processes import everybodys
from tacita.problem.population import Population, Rows
from tacita.problem.problem import Problem
from tacita.trees import in_double_precision


@in_double_precision
def from_own_agents(
    make: Callable[[range], Problem], agents: int, mesh: Mesh | int | None = None
) -> Problem:
    """A problem over `agents` agents, of which this process loads its own.

    In one process that is all of them. Theory cannot look at rows that are elsewhere:
    give step sizes, or a `bound` on the rows.

    Args:
        make: Called with the numbers of this process's agents: makes a problem of
            those alone, with `tacita.from_arrays` for example, agents in that order.
        agents: How many there are in all processes.
        mesh: As in `tacita.simulate`, which must be given the same.

    >>> import tacita
    >>> def load(numbers):
    ...     owner = np.repeat(np.array(numbers), 5)
    ...     x = np.ones((len(owner), 2)) * owner[:, None]
    ...     return tacita.from_arrays(x, x[:, 0], owner, model="linear")
    >>> from_own_agents(load, agents=6).n_agents
    6
    """
    agents, chosen = check.count(agents=agents), mesh_of(mesh)
    if jax.process_count() == 1:
        return _of(make, range(agents))
    places = Places.of(agents, chosen.blocks)._replace(devices=len(found(chosen)))
    here = places.here * jax.local_device_count()
    if places.blocks < places.devices or here * (jax.process_count() - 1) >= agents:
        check.refuse(
            f"{agents} agents are too few for {places.devices} devices; start fewer "
            "processes, or load all agents everywhere"
        )
    first = here * jax.process_index()
    made = _of(make, range(first, min(first + here, agents)))
    counts = np.zeros(here, np.int64)
    counts[: made.n_agents] = made.counts
    everybody = everybodys(counts).reshape(-1)[:agents]
    there = replace(_alike(made.population), spread=places)
    return replace(made, population=there, ids=range(agents), all_counts=everybody)


def _of(make: Callable[[range], Problem], numbers: range) -> Problem:
    made = make(numbers)
    if not isinstance(made, Problem) or made.n_agents != len(numbers):
        check.refuse(
            f"expected a problem with the {len(numbers)} agents {numbers.start} to "
            f"{numbers.stop - 1}, got {made!r}"
        )
    if made.graph is not None:
        check.refuse(
            "every process needs all agents on a graph; make the problem with all rows"
        )
    return made


def _alike(population: Population) -> Population:
    """With as much padding as in all other processes: their programs are the same."""
    rows, width = population.rows, population.rows.y.shape[1]
    padded = rows.filled is not None
    all_widths, all_padded = everybodys(np.array([width, padded])).T
    widest = int(all_widths.max())
    if not all_padded.any() and all_widths.min() == widest:
        return population
    axis = 2 if population.by_feature else 1
    wider: dict[str, Any] = {
        "x": _wider(rows.x, widest, axis),
        "y": _wider(rows.y, widest, 1),
        "filled": rows.filled if padded else jnp.full(len(rows.y), width, jnp.int32),
    }
    return replace(population, rows=Rows(**{**rows._asdict(), **wider}))


def _wider(array: Any, width: int, axis: int) -> Any:
    room = [(0, 0)] * array.ndim
    room[axis] = (0, width - array.shape[axis])
    return jnp.pad(array, room)

"""What a run description means for one party: its problem, algorithm, keys, ledger."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np

from tacita import keys
from tacita.aggregation import Summed
from tacita.algorithm.base import GraphAlgorithm
from tacita.check import refuse
from tacita.disk import write_private
from tacita.federation import sum_setting
from tacita.federation.agent_keys import AgentKeys, OwnKeys, SharedKeys
from tacita.federation.description import Description
from tacita.federation.draws import Draws, OwnDraws, SharedDraws, derive
from tacita.federation.own_rows import blank_problem
from tacita.federation.roles import Roles
from tacita.federation.seal import PrivateKeys, read_private
from tacita.federation.sum_setting import algorithm_of
from tacita.federation.terms import Terms
from tacita.federation.work import Outline, refuse_theory
from tacita.job import records
from tacita.job.graphs import build as build_graph
from tacita.privacy import Observer
from tacita.privacy.blind import looks_at_rows
from tacita.problem import Problem
from tacita.problem.graph import Graph
from tacita.runtime import choices
from tacita.runtime.ready import prepare
from tacita.trees import in_double_precision, rules

_SECRET = "secret.locked"
#: Seconds that an agent on a graph stays for neighbours that are behind.
_LINGER = 60.0


def secret_of(folder: Path, own: PrivateKeys) -> bytes:
    """The party's own secret, from the operating system; made at the first call.

    It lies in the folder locked with the party's keys, which lie elsewhere: who takes
    the folder alone cannot undo the noise.
    """
    path = folder / _SECRET
    if not path.exists():
        write_private(path, own.lock(_SECRET, os.urandom(32)))
    return own.unlock(_SECRET, read_private(path))


def graph_of(run: Description) -> Graph | None:
    """Who is joined with whom, nodes named by the agents in their order."""
    told = run.tables.get("graph")
    if told is not None and "edges" in told:
        pairs = _pairs(told["edges"])
        return Graph.from_edges(run.agents, pairs, told.get("weights"))
    if told is not None and "weights" in told:
        refuse("graph.weights are those of graph.edges, one each; name the edges too")
    return build_graph(told, run.agents, None, 0)


def _pairs(edges: Any) -> list[tuple[Any, ...]]:
    """The edges that a description names, each by its two agents."""
    listed: Any = edges if isinstance(edges, list | tuple) else [edges]
    if not all(isinstance(edge, list | tuple) and len(edge) == 2 for edge in listed):
        refuse(
            "expected graph.edges a list of pairs of agents, such as [['a', 'b']], got "
            f"graph.edges={str(edges)[:60]}"
        )
    return [tuple(edge) for edge in listed]


@dataclass(frozen=True)
class Setting:
    """A description made ready to compute with.

    Attributes:
        run: The description.
        own: The party's own rows.
        known: What its noise depends on: on a graph its place there, in a secure sum
            the other agents too.
        roles: What makes its parties.
    """

    run: Description
    own: Problem
    known: Problem
    roles: Roles

    @property
    def promise(self) -> dict[str, Any]:
        """What a budget of this run is about: delta, observer and unit."""
        told = self.run.privacy
        assert told is not None
        return {
            "delta": float(told["delta"]),
            "observer": observer_of(self.roles.algorithm),
            "unit": str(told.get("unit", "record")),
        }

    @property
    def weighted(self) -> bool:
        """Whether numbers of rows matter to the coordinator's mean."""
        return self.roles.algorithm.weights == "samples"


def blank_setting(run: Description) -> Setting:
    """A description made ready for rows of zeros: what it says by itself."""
    rows = run.tables.get("secure", {}).get("rows")
    return setting_of(run, blank_problem(run), rows)


def own_setting(run: Description, own: Problem) -> Setting:
    """A description made ready for an agent's rows, of which there must be enough."""
    made = setting_of(run, own)
    choices.require_rows(own, made.roles.algorithm, run.rounds)
    return made


@in_double_precision
def setting_of(run: Description, own: Problem, rows: int | None = None) -> Setting:
    """Build and check everything that the description asks for.

    Args:
        run: The description.
        own: The party's own rows, or rows of zeros.
        rows: How many to count them as; default as many as there are.
    """
    if list(run.agents) != sorted(run.agents):
        refuse("the agents of a run are named in alphabetical order")
    outline = Outline(own, len(run.agents), graph_of(run), rows)
    told = run.run
    known = cast(Problem, outline)  # no more is asked of a problem here
    asked = algorithm_of(run)
    if looks_at_rows(asked, known):
        refuse_theory()
    ready = prepare(known, asked)
    _require_observer(run, ready)
    who = choices.schedule_of(known, ready, told.get("participation", 1.0))
    terms = {key: value for key, value in told.items() if key in rules(Terms)}
    on_graph = isinstance(ready, GraphAlgorithm)
    if on_graph:
        terms.setdefault("linger", _LINGER)
    rule = records.build_rule(told["aggregation"]) if "aggregation" in told else None
    # Who is active on a graph is for everybody to know.
    seed = int(told.get("shared_seed", int(run.digest[:15], 16)))
    roles = Roles(
        algorithm=ready,
        agents=run.agents,
        coordinator=run.starter,
        start=own.start,
        base=keys.from_seed(seed),
        terms=Terms(schedule=who, **terms),
        like=outline.local(),
        graph=outline.graph,
        aggregation=choices.aggregation_of(known, ready, rule, who),
    )
    joint = on_graph or isinstance(ready, Summed) or ready.least_active > 1
    return Setting(run, own, known if joint else own, roles)


def with_observer(run: Description) -> Description:
    """The same description, which names the observer of its budget."""
    if run.privacy is None or "observer" in run.privacy:
        return run
    budget = {**run.privacy, "observer": observer_of(algorithm_of(run))}
    return replace(run, tables={**run.tables, "privacy": budget})


def observer_of(algorithm: Any) -> Observer:
    """Against whom a budget holds: whoever reads the letters."""
    if isinstance(algorithm, Summed):
        return sum_setting.observer_of(algorithm)
    alone = isinstance(algorithm, GraphAlgorithm)
    return Observer.NEIGHBOUR if alone else Observer.COORDINATOR


def _require_observer(run: Description, algorithm: Any) -> None:
    told = (run.privacy or {}).get("observer")
    reader = observer_of(algorithm)
    if told not in (None, reader):
        name = type(algorithm).__name__
        refuse(
            f"letters of {name} are read by a {reader}, and a budget against a {told} "
            f'would not cover them; set privacy.observer = "{reader}"'
        )


@in_double_precision
def keys_of(setting: Setting, name: str, secret: bytes) -> AgentKeys:
    """What an agent draws with: out of its own secret, this run, these very rows."""
    if "shared_seed" in setting.run.run:
        number = setting.run.agents.index(name)
        return SharedKeys(keys.agent_secret(setting.roles.base, number))
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(setting.own.population.rows):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return OwnKeys(derive(secret, f"noise {setting.run.digest} {digest.hexdigest()}"))


def coordinator_draws(setting: Setting, secret: bytes) -> Draws:
    """The coordinator's randomness: its own secret, and this run."""
    if "shared_seed" in setting.run.run:
        return SharedDraws(setting.roles.base)
    return OwnDraws(derive(secret, f"coordinator {setting.run.digest}"))

"""What a run description means for one party: its problem, algorithm, keys, ledger."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import keys
from tacita.algorithm.base import GraphAlgorithm
from tacita.check import refuse
from tacita.federation.description import Description
from tacita.federation.party import ChargeLetter, no_charge
from tacita.federation.roles import Roles
from tacita.federation.seal import PrivateKeys, read_private, write_private
from tacita.federation.terms import Terms
from tacita.federation.wire import Identity
from tacita.federation.work import Outline
from tacita.job import records
from tacita.job.graphs import build as build_graph
from tacita.participation import Schedule
from tacita.privacy import (
    Ledger,
    Observer,
    Question,
    Scope,
    forecast,
    guarantee,
    letters_of,
    private,
)
from tacita.problem import Problem
from tacita.problem.graph import Graph
from tacita.runtime import choices
from tacita.runtime.simulate import prepare
from tacita.trace import PrivacyReport
from tacita.trees import in_double_precision, rules

#: Rounding that a sum of many releases may differ by from their product.
_ROUNDING = 1 + 1e-9
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


def derive(secret: bytes, purpose: str, length: int = 32) -> bytes:
    """A secret for one purpose, which says nothing about the others."""
    return hashlib.blake2b(purpose.encode(), key=secret, digest_size=length).digest()


def graph_of(run: Description) -> Graph | None:
    """Who is joined with whom, nodes named by the agents in their order."""
    told = run.tables.get("graph")
    if told is None:
        return None
    if "edges" in told:
        return Graph.from_edges(run.agents, [tuple(e) for e in told["edges"]])
    return build_graph(dict(told), run.agents, None, 0)


@dataclass(frozen=True)
class Setting:
    """A description made ready to compute with."""

    run: Description
    own: Problem
    outline: Outline
    algorithm: Any
    base: keys.Keys
    schedule: Schedule

    @property
    def on_graph(self) -> bool:
        """Whether there is no coordinator."""
        return isinstance(self.algorithm, GraphAlgorithm)

    @property
    def observer(self) -> Observer:
        """Against whom a budget of this run holds."""
        return observer_of(self.algorithm)

    @property
    def promise(self) -> dict[str, Any]:
        """What a budget of this run is about: delta, observer and unit."""
        told = self.run.privacy
        assert told is not None
        unit = str(told.get("unit", "record"))
        return {"delta": float(told["delta"]), "observer": self.observer, "unit": unit}

    @property
    def weighted(self) -> bool:
        """Whether numbers of rows matter to the coordinator's mean."""
        return self.algorithm.weights == "samples"

    @property
    def terms(self) -> Terms:
        """How it goes."""
        chosen = {k: v for k, v in self.run.run.items() if k in rules(Terms)}
        if self.on_graph:
            chosen["linger"] = _LINGER
        return Terms(schedule=self.schedule, **chosen)

    @property
    @in_double_precision
    def roles(self) -> Roles:
        """What makes its parties."""
        rule = self.run.run.get("aggregation")
        return Roles(
            algorithm=self.algorithm,
            agents=self.run.agents,
            coordinator=self.run.starter,
            start=jnp.asarray(self.own.start),
            base=self.base,
            terms=self.terms,
            like=self.outline.local(),
            graph=self.outline.graph,
            aggregation=None if rule is None else records.build_rule(rule),
        )


@in_double_precision
def setting_of(run: Description, own: Problem) -> Setting:
    """Build and check everything that the description asks for."""
    n = len(run.agents)
    if list(run.agents) != sorted(run.agents):
        refuse("the agents of a run are named in alphabetical order")
    outline = Outline(own, n, graph_of(run))
    ready = prepare(outline, _algorithm(run))
    who = choices.schedule_of(outline, ready, run.run.get("participation", 1.0))
    _require_observer(run, ready)
    shared = run.run.get("shared_seed")
    # Who is asked, and the coordinator's own draws, are for everybody to know.
    seed = int(run.digest[:15], 16) if shared is None else int(shared)
    return Setting(run, own, outline, ready, keys.from_seed(seed), who)


def _algorithm(run: Description) -> Any:
    return records.build(dict(run.tables["algorithm"]))


def with_observer(run: Description) -> Description:
    """The same description, which names the observer of its budget."""
    if run.privacy is None or "observer" in run.privacy:
        return run
    return run.against(observer_of(_algorithm(run)))


def observer_of(algorithm: Any) -> Observer:
    """Against whom a budget holds: whoever reads the letters."""
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
def noise_root(setting: Setting, name: str, secret: bytes) -> Any:
    """The root of an agent's randomness: its own secret, this run, these very rows."""
    number = setting.run.agents.index(name)
    if "shared_seed" in setting.run.run:
        return keys.agent_secret(setting.base, number)
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(setting.own.population.rows):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    purpose = f"noise {setting.run.digest} {digest.hexdigest()}"
    words = np.frombuffer(derive(secret, purpose, 8), np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")


@in_double_precision
def with_budget(
    setting: Setting, name: str, ledger: Ledger | None, limit: float | None
) -> tuple[Setting, ChargeLetter]:
    """Set the agent's noise for the run's budget, and how its letters are charged.

    Refused where the ledger has no room for the whole run.

    Args:
        setting: The run.
        name: The agent.
        ledger: Where its letters are charged; needed for a run with a budget.
        limit: The epsilon that all its runs together may spend; None for whatever
            this run adds.
    """
    told = setting.run.privacy
    if told is None:
        return setting, no_charge
    assert ledger is not None
    unit = str(told.get("unit", "record"))
    # On a graph the noise depends on the agent's place in it, else on its rows alone.
    known = setting.outline if setting.on_graph else setting.own
    number = setting.run.agents.index(name) if setting.on_graph else 0
    budget: dict[str, Any] = {
        "epsilon": float(told["epsilon"]),
        "delta": float(told["delta"]),
    }
    ready = private(
        known,
        setting.algorithm,
        **budget,
        observer=setting.observer,
        unit=unit,
        rounds=setting.run.rounds,
        norm=told.get("norm"),
    )
    scope = Scope(setting.observer, unit, letters_of(ready).relation)
    price = guarantee(ready, known, Question(scope=scope, agent=number, rounds=1))
    after = ledger.after(
        price,
        agent=name,
        run=setting.run.digest,
        times=setting.run.rounds,
        delta=budget["delta"],
    )
    if limit is not None and not after <= limit * _ROUNDING:
        refuse(
            f"with this run epsilon would come to {after:.4g} against the "
            f"{setting.observer} for one {unit} (delta={budget['delta']:g}; "
            f"{price.theorem}), and {limit:g} is allowed here for all runs together; "
            "ask for a smaller epsilon"
        )
    allowed = max(budget["epsilon"], after * _ROUNDING) if limit is None else limit
    ledger.allow(agent=name, epsilon=allowed, delta=budget["delta"], **scope.words)

    def charge(identity: Identity, content: bytes) -> None:
        ledger.charge(
            price,
            agent=name,
            run=identity.run,
            round=identity.round,
            phase=f"phase-{identity.phase}",
            content=content,
        )

    changed = Setting(
        setting.run, setting.own, setting.outline, ready, setting.base, setting.schedule
    )
    return changed, charge


@in_double_precision
def privacy_of(setting: Setting, rounds: int) -> PrivacyReport:
    """What each observer may have learnt of this agent's rows in so many rounds.

    The agent knows of no noise but its own, so nobody else's is counted on.
    """
    known = setting.outline if setting.on_graph else setting.own
    told = forecast(known, setting.algorithm, rounds=max(rounds, 1))
    return dataclasses.replace(told, planned=False)

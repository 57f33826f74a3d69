"""What a run description means for one party: its problem, algorithm, keys, ledger."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import data, keys
from tacita.algorithm.base import GraphAlgorithm
from tacita.check import nearest, refuse
from tacita.federation.coordinator import Coordinator
from tacita.federation.description import Description
from tacita.federation.graph_agent import Calendar, GraphAgent
from tacita.federation.party import Charge, Desk, Party, no_charge
from tacita.federation.seal import PrivateKeys, read_private, write_private
from tacita.federation.server_agent import ServerAgent
from tacita.federation.terms import Terms
from tacita.federation.wire import Identity
from tacita.federation.work import AgentWork, GraphWork, Outline, ServerWork
from tacita.job import algorithms as algorithms
from tacita.job.networks import build as build_graph
from tacita.job.run_file import AlgorithmTable
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
from tacita.problem import Problem, from_arrays
from tacita.problem.graph import Graph
from tacita.runtime import choices
from tacita.runtime.simulate import prepare
from tacita.trace import PrivacyReport
from tacita.trees import in_double_precision

#: Rows of zeros from which the coordinator learns the shapes of letters.
_BLANK_ROWS = 4096
#: Rounding that a sum of many releases may differ by from their product.
_ROUNDING = 1 + 1e-9
_SECRET = "secret.locked"


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


def own_problem(run: Description, path: Path) -> Problem:
    """The agent's own rows, in the columns that the run names."""
    columns, target = list(run.problem["columns"]), str(run.problem["target"])
    if path.suffix == ".npz":
        x, y = _from_npz(path, columns, target)
    else:
        table = data.read_table(path, target=target, features=columns)
        if list(table.feature_names) != columns:
            refuse(
                f"{path} has text in one of the columns {columns}; a federation takes "
                "numbers, so that all agents mean the same by a column"
            )
        x, names = table.x, np.asarray(table.classes)
        y = names[table.y] if table.task == "classification" else table.y
    return _problem(run, x, y)


def _from_npz(path: Path, columns: list[str], target: str) -> tuple[Any, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            known = set(file.files)
            for column in (*columns, target):
                if column not in known:
                    refuse(f"{path} has no array {column!r}; {nearest(column, known)}")
            return np.stack([file[c] for c in columns], axis=1), file[target]
    except (OSError, ValueError) as error:
        refuse(f"cannot read {path}: {error}")


def blank_problem(run: Description) -> Problem:
    """The coordinator's: it has no rows, only their shape."""
    classes = run.problem.get("classes")
    x = np.zeros((_BLANK_ROWS, len(run.problem["columns"])))
    y: Any = np.zeros(_BLANK_ROWS)
    if classes:
        y = np.resize(np.asarray([str(c) for c in classes]), _BLANK_ROWS)
    return _problem(run, x, y)


def _problem(run: Description, x: Any, y: Any) -> Problem:
    told = run.problem
    for key, apply in (("centre", np.subtract), ("spread", np.divide)):
        if key in told:
            numbers = np.asarray(told[key], float)
            if numbers.shape != (x.shape[1],):
                refuse(f"problem.{key} needs one number per column")
            x = apply(x, numbers)
    classes = told.get("classes")
    return from_arrays(
        x,
        y,
        np.zeros(len(x), int),
        model=told.get("model", "logistic"),
        l2=float(told.get("l2", 0.0)),
        classes=None if classes is None else [str(c) for c in classes],
        intercept=bool(told.get("intercept", False)),
        dtype=told.get("dtype"),
        name=run.name,
    )


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
    def weighted(self) -> bool:
        """Whether numbers of rows matter to the coordinator's mean."""
        return self.algorithm.weights == "samples"

    @property
    def start(self) -> Any:
        """The common starting point."""
        return jnp.asarray(self.own.start)


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
    table = AlgorithmTable.model_validate(dict(run.tables["algorithm"]))
    return algorithms.build(table)


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


def terms_of(setting: Setting) -> Terms:
    """How the coordinator runs it."""
    told = setting.run.run
    names = ("deadline", "least_letters", "late", "most_norm", "own_draws")
    chosen = {name: told[name] for name in names if name in told}
    return Terms(rounds=setting.run.rounds, schedule=setting.schedule, **chosen)


@in_double_precision
def make_coordinator(
    setting: Setting, desk: Desk, rows: Mapping[str, int]
) -> Coordinator:
    """The coordinator of a server algorithm."""
    n, agents = len(setting.run.agents), setting.run.agents
    work = ServerWork(setting.algorithm, setting.outline.local(), n, setting.start)
    weights = [float(rows[a]) for a in agents] if setting.weighted else None
    return Coordinator(desk, work, agents, setting.base, terms_of(setting), weights)


@in_double_precision
def make_agent(setting: Setting, desk: Desk, secret: bytes) -> Party:
    """One agent, with its noise set for its own rows and charged to its ledger."""
    run = setting.run
    number = run.agents.index(desk.name)
    root = _noise_root(setting, number, secret)
    local, n = setting.outline.local(), len(run.agents)
    if setting.on_graph:
        graph = setting.outline.graph
        assert graph is not None
        calendar = Calendar(setting.schedule, setting.base, n, run.rounds)
        work = GraphWork(setting.algorithm, graph, number, local, setting.start)
        deadline = run.run.get("deadline")
        return GraphAgent(desk, work, run.agents, calendar, root, deadline=deadline)
    server = ServerWork(setting.algorithm, local, n, setting.start)
    chance = setting.schedule.chance if run.run.get("own_draws") else None
    work = AgentWork(server, number, local)
    return ServerAgent(desk, work, run.starter, root, run.rounds, chance)


def _noise_root(setting: Setting, number: int, secret: bytes) -> Any:
    """The root of an agent's randomness: its own secret, this run, these very rows."""
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
) -> tuple[Setting, Charge]:
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

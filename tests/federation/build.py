"""Federations inside one program, with the keys of a simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import tacita
from tacita import keys
from tacita.algorithm.base import GraphAlgorithm
from tacita.federation.checkpoints import Store
from tacita.federation.coordinator import Coordinator
from tacita.federation.drive import run_in_process
from tacita.federation.graph_agent import Calendar, GraphAgent
from tacita.federation.party import Charge, Desk, Party, no_charge
from tacita.federation.post import Faults, InProcessPost
from tacita.federation.seal import Envelope, Plain, PrivateKeys, Sealed
from tacita.federation.server_agent import ServerAgent
from tacita.federation.terms import Terms
from tacita.federation.wire import Identity
from tacita.federation.work import AgentWork, GraphWork, ServerWork
from tacita.participation import schedule_for
from tacita.runtime.rounds import World, mean_weights
from tacita.runtime.simulate import prepare
from tacita.trees import double_precision, tree_rows

COORDINATOR = "coordinator"


class Federation:
    """Everything needed to make, and make again, the parties of a parity run."""

    def __init__(
        self,
        folder: Path,
        problem: tacita.Problem,
        algorithm: Any,
        rounds: int,
        seed: int = 0,
        participation: Any = 1.0,
        sealed: bool = False,
        durable: bool = False,
        charge: dict[str, Charge] | None = None,
        **terms: Any,
    ) -> None:
        self.folder, self.problem, self.durable = folder, problem, durable
        self.charge = charge or {}
        with double_precision():
            self.algorithm = prepare(problem, algorithm)
            self.base = keys.from_seed(seed)
            start = jnp.asarray(problem.start)
            n = problem.n_agents
            self.who = schedule_for(participation, n)
            self.names = [f"agent-{i}" for i in range(n)]
            population = problem.population
            self.locals = [
                population.local(tree_rows(population.rows, i)) for i in range(n)
            ]
            self.secrets = [keys.agent_secret(self.base, i) for i in range(n)]
            if isinstance(self.algorithm, GraphAlgorithm):
                assert problem.graph is not None
                self.calendar = Calendar(self.who, self.base, n, rounds)
                self.patience = terms
                self.graph_works = [
                    GraphWork(self.algorithm, problem.graph, i, self.locals[i], start)
                    for i in range(n)
                ]
            else:
                self.server = ServerWork(self.algorithm, self.locals[0], n, start)
                self.weights = np.asarray(
                    mean_weights(self.algorithm, World(population, None, self.who))
                )
                self.terms = Terms(rounds=rounds, schedule=self.who, **terms)
        everybody = [*self.names, COORDINATOR]
        self.keys = {name: PrivateKeys.fresh() for name in everybody}
        self.public = {name: k.public for name, k in self.keys.items()}
        self.sealed = sealed

    @property
    def on_graph(self) -> bool:
        return isinstance(self.algorithm, GraphAlgorithm)

    def desk(self, name: str) -> Desk:
        envelope: Envelope = Plain()
        if self.sealed:
            envelope = Sealed(name, self.keys[name], self.public)
        who = Identity("test", "run", "state", 0, 0, name, name)
        secret = self.keys[name].derive("store")
        store = Store(self.folder / name, secret, who, self.durable)
        charge = self.charge.get(name, no_charge)
        return Desk(name, "test", "run", envelope, store, charge)

    def make(self, name: str) -> Party:
        with double_precision():
            desk = self.desk(name)
            if name == COORDINATOR:
                return Coordinator(
                    desk, self.server, self.names, self.base, self.terms, self.weights
                )
            i = self.names.index(name)
            if self.on_graph:
                work = self.graph_works[i]
                return GraphAgent(
                    desk,
                    work,
                    self.names,
                    self.calendar,
                    self.secrets[i],
                    **self.patience,
                )
            work = AgentWork(self.server, i, self.locals[i])
            chance = self.who.chance if self.terms.own_draws else None
            rounds = self.terms.rounds
            return ServerAgent(desk, work, COORDINATOR, self.secrets[i], rounds, chance)

    def parties(self) -> dict[str, Party]:
        names = self.names if self.on_graph else [COORDINATOR, *self.names]
        return {name: self.make(name) for name in names}

    def run(self, faults: Faults | None = None, seed: int = 0, disturb: Any = None):
        """The shared model and all agents' models at the end."""
        parties = self.parties()
        run_in_process(parties, InProcessPost(faults, seed), disturb=disturb)
        return self.models(parties)

    def models(self, parties: dict[str, Party]) -> tuple[np.ndarray, np.ndarray]:
        agents = np.stack([parties[name].model() for name in self.names])  # pyright: ignore
        if self.on_graph:
            return agents.mean(axis=0), agents
        return parties[COORDINATOR].model(), agents  # pyright: ignore

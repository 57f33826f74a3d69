"""A federation inside one program, on a clock of its own, with a post that misbehaves.

Its parties are the real ones; their keys are those of a simulation, whose numbers they
must give. Used by tests and benchmarks.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacita import check, keys
from tacita.aggregation import Aggregation
from tacita.federation.agent_keys import AgentKeys, SharedKeys
from tacita.federation.desk import ChargeLetter, Desk, Signer, no_charge
from tacita.federation.draws import Draws, SharedDraws
from tacita.federation.driving import TICK, send
from tacita.federation.party import Party
from tacita.federation.receipts import Pen, folder_number
from tacita.federation.roles import Roles
from tacita.federation.seal import Plain, PrivateKeys, Sealed
from tacita.federation.state_file import StateFile
from tacita.federation.terms import Terms
from tacita.federation.wire import Identity
from tacita.participation import schedule_for
from tacita.problem import Problem
from tacita.runtime import choices
from tacita.runtime.ready import prepare
from tacita.runtime.world import mean_weights
from tacita.trees import in_double_precision, tree_rows

COORDINATOR = "coordinator"


class Stuck(RuntimeError):
    """A federation inside one program made no progress."""


@dataclass(frozen=True)
class Faults:
    """How the post misbehaves: chances per letter, and a delay in seconds.

    Letters with different delays overtake each other. Every letter to a party in `far`
    takes so many seconds more.
    """

    loss: float = 0.0
    repeat: float = 0.0
    most_delay: float = 0.0
    far: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check.between(0.0, 0.99)(loss=self.loss)
        check.between(0.0, 1.0)(repeat=self.repeat)
        check.not_negative(most_delay=self.most_delay)


class InProcessPost:
    """All letters of a federation inside one program, faults drawn from a seed."""

    def __init__(self, faults: Faults | None = None, seed: int = 0) -> None:
        self._faults, self._random = faults or Faults(), random.Random(seed)
        self._sacks: list[tuple[float, int, str, bytes]] = []
        self._count = 0
        self.now = 0.0

    def deliver(self, to: str, content: bytes) -> None:
        """Put a letter on its way, twice or not at all if the faults say so."""
        faults, draw = self._faults, self._random.random
        copies = 1 + (draw() < faults.repeat)
        for _ in range(copies):
            if draw() < faults.loss:
                continue
            self._count += 1
            due = self.now + draw() * faults.most_delay + faults.far.get(to, 0.0)
            heapq.heappush(self._sacks, (due, self._count, to, content))

    def next(self) -> tuple[str, bytes] | None:
        """The next letter that is due now, or None."""
        if not self._sacks or self._sacks[0][0] > self.now:
            return None
        _, _, to, content = heapq.heappop(self._sacks)
        return to, content

    def next_due(self) -> float | None:
        """When the next letter is due, or None if none is on its way."""
        return self._sacks[0][0] if self._sacks else None


def run_in_process(
    parties: MutableMapping[str, Party], post: InProcessPost, most_steps: int = 200_000
) -> None:
    """Run all parties to their end; `Stuck` after so many letters and ticks."""
    for party in list(parties.values()):
        party.start(post.now)
        send(party, post.deliver)
    for _ in range(most_steps):
        item = post.next()
        if item is not None:
            to, content = item
            parties[to].receive(content, post.now)
            send(parties[to], post.deliver)
            continue
        if all(party.finished for party in parties.values()):
            return
        due, soon = post.next_due(), post.now + TICK
        post.now = soon if due is None else min(soon, due)
        for party in list(parties.values()):
            party.tick(post.now)
            send(party, post.deliver)
    waiting = [f"{n} in round {p.round}" for n, p in parties.items() if not p.finished]
    raise Stuck(f"not finished: {', '.join(waiting)}")


class InProcess:
    """A run between parties inside one program; agent i is called "agent-i".

    Args:
        folder: Where they keep their checkpoints.
        problem: Everybody's rows.
        algorithm: The algorithm.
        rounds: Number of rounds.
        seed: Of all randomness, as in `tacita.simulate`.
        participation: As there.
        sealed: Whether letters are signed and encrypted.
        charge: What writes an agent's letters into its ledger, by name.
        draws: The coordinator's; default those of the simulation.
        **terms: `deadline`, `late`, ...; see `Terms`.
    """

    @in_double_precision
    def __init__(
        self,
        folder: Path,
        problem: Problem,
        algorithm: Any,
        rounds: int,
        seed: int = 0,
        participation: Any = 1.0,
        sealed: bool = False,
        charge: dict[str, ChargeLetter] | None = None,
        aggregation: Aggregation | None = None,
        draws: Draws | None = None,
        **terms: Any,
    ) -> None:
        self.folder, self.problem, self.charge = folder, problem, charge or {}
        n, everybody = problem.n_agents, problem.population
        self.names = [f"agent-{i}" for i in range(n)]
        base = keys.from_seed(seed)
        self._draws = draws or SharedDraws(base)
        self.locals = [everybody.local(tree_rows(everybody.rows, i)) for i in range(n)]
        self.secrets = [keys.agent_secret(base, i) for i in range(n)]
        self.own_keys: list[AgentKeys] = [SharedKeys(s) for s in self.secrets]
        self.algorithm = ready = prepare(problem, algorithm)
        self.roles = Roles(
            algorithm=ready,
            agents=self.names,
            coordinator=COORDINATOR,
            start=problem.start,
            base=base,
            terms=Terms(
                rounds=rounds, schedule=schedule_for(participation, n), **terms
            ),
            like=self.locals[0],
            graph=problem.graph,
            aggregation=choices.aggregation_of(problem, ready, aggregation),
        )
        self._keys = {name: PrivateKeys.fresh() for name in [*self.names, COORDINATOR]}
        self._public = {name: own.public for name, own in self._keys.items()}
        self._sealed = sealed

    def desk(self, name: str) -> Desk:
        """A party's desk; its checkpoint does not wait for the disk."""
        own = self._keys[name]
        envelope = Sealed(name, own, self._public) if self._sealed else Plain()
        who = Identity("test", "run", "state", 0, 0, name, name)
        file = StateFile(self.folder / name, own.lasting("store"), who, durable=False)
        charge = self.charge.get(name, no_charge)
        number = folder_number(str(self.folder).encode()[-64:])
        pen = Pen(own.lasting("receipts"), "run", number)
        signer = Signer(own.sign, self._key_of)
        return Desk(name, "test", "run", envelope, file, pen, charge, signer=signer)

    def _key_of(self, name: str) -> bytes | None:
        keys = self._public.get(name)
        return None if keys is None else keys.sign

    def change_keys(self, name: str, parties: MutableMapping[str, Party]) -> None:
        """Begin a party again with new keys, which the others know from now on."""
        new, old = PrivateKeys.fresh(), self._keys[name].as_private_words()
        self._keys[name] = PrivateKeys.of_words(new.as_private_words(), [old])
        self._public[name] = self._keys[name].public
        self._announce(parties)
        parties[name] = self.make(name)

    def remove(self, name: str, parties: MutableMapping[str, Party]) -> None:
        """Take a party out: the others know no key of it any more."""
        del parties[name], self._public[name]
        self._announce(parties)

    def _announce(self, parties: MutableMapping[str, Party]) -> None:
        for party in parties.values():
            if isinstance(party.desk.envelope, Sealed):
                party.desk.envelope.know(self._public)

    @in_double_precision
    def make(self, name: str) -> Party:
        """A party, new or from its checkpoint."""
        desk = self.desk(name)
        if name == COORDINATOR:
            weights = mean_weights(self.algorithm, self.problem.population)
            each: Any = np.asarray(weights)
            return self.roles.make_coordinator(desk, self._draws, each)
        i = self.names.index(name)
        return self.roles.make_agent(desk, self.locals[i], self.own_keys[i])

    def parties(self) -> dict[str, Party]:
        """All parties."""
        others = [] if self.roles.on_graph else [COORDINATOR]
        return {name: self.make(name) for name in [*others, *self.names]}

    def run(
        self, faults: Faults | None = None, seed: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """The shared model and all agents' models at the end."""
        parties = self.parties()
        run_in_process(parties, InProcessPost(faults, seed))
        return self.models(parties)

    def models(self, parties: MutableMapping[str, Party]) -> tuple[Any, np.ndarray]:
        """The shared model, on a graph the mean, and all agents' models."""
        agents = np.stack([parties[name].model() for name in self.names])
        if self.roles.on_graph:
            return agents.mean(axis=0), agents
        return parties[COORDINATOR].model(), agents

"""Parties of a secure sum in one process: disks that survive, a post that is unkind."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacita.aggregation.secure.secure_agent import SecureAgent, Wanted
from tacita.aggregation.secure.secure_coordinator import SecureCoordinator
from tacita.aggregation.secure.steps import (
    Answer,
    Keep,
    Outcome,
    Row,
    Send,
    Step,
    Sum,
    Write,
)
from tacita.aggregation.secure.terms import Terms
from tacita.check import TacitaError, refuse


class Crash(Exception):
    """The process is gone; what is on its disk is not."""


@cache
def signing_key(name: str) -> Ed25519PrivateKey:
    secret = hashlib.sha256(b"sign" + name.encode()).digest()
    return Ed25519PrivateKey.from_private_bytes(secret)


def agent_names(agents: int) -> list[str]:
    return [f"agent {k:03d}" for k in range(agents)]


def terms_of(agents: int, **settings: Any) -> Terms:
    names = agent_names(agents)
    signing = {n: signing_key(n).public_key().public_bytes_raw() for n in names}
    given = dict(
        run="run", coordinator="hub", signing=signing, exchanges=4, entries=7, word=32
    )
    given |= {"least": agents} | settings
    return Terms(**given)


def question_of(exchange: int) -> bytes:
    return hashlib.sha256(b"question %d" % exchange).digest()


def letter_of(name: str, wanted: Wanted, terms: Terms) -> np.ndarray:
    """A function of agent and context, as a letter with its noise is."""
    seed = hashlib.sha256(name.encode() + wanted.context).digest()
    rng = np.random.default_rng(int.from_bytes(seed[:8], "little"))
    return rng.integers(0, 2**terms.word, terms.entries, terms.word_type)


class Disk:
    """Ledger rows and files, and a fuse: so many writes or letters until the crash."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], bytes] = {}
        self.kept: dict[str, bytes] = {}
        self.fuse: int | None = None

    def burn(self) -> None:
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                self.fuse = None
                raise Crash

    def write(self, write: Write) -> None:
        self.burn()
        if isinstance(write, Row):
            key = write.kind, write.number
            if self.rows.setdefault(key, write.digest) != write.digest:
                refuse(f"the ledger has another {write.kind} {write.number}")
        elif isinstance(write, Keep):
            self.kept[write.name] = write.content
        else:
            self.kept.pop(write.name, None)

    def all_rows(self) -> list[Row]:
        return [Row(*key, digest) for key, digest in self.rows.items()]


class Town:
    """All parties of a run, the post between them, and what was seen on the way.

    Args:
        terms: Of the run.
        seed: With one, letters arrive in random order, some twice, some never.
    """

    def __init__(self, terms: Terms, seed: int | None = None) -> None:
        self.terms = terms
        self.chance = None if seed is None else random.Random(seed)
        self.disks = {n: Disk() for n in (terms.coordinator, *terms.names)}
        self.post: list[tuple[str, Send]] = []
        self.silent: set[str] = set()
        self.refused: list[str] = []
        self.outcomes: dict[int, Outcome] = {}
        self.contexts: dict[int, set[bytes]] = {}
        #: What honest parties let out: never two of a kind.
        self.answers: dict[tuple[str, int], bytes] = {}
        self.openings: dict[tuple[str, int], bytes] = {}
        #: Changes letters on their way, as a liar among the parties would.
        self.twist: Callable[[str, Send], Send | None] = lambda sender, send: send
        self.letter = letter_of
        self.agents = {n: self.make_agent(n) for n in terms.names}
        self.coordinator = SecureCoordinator(terms)

    def make_agent(self, name: str) -> SecureAgent:
        disk, secret = self.disks[name], hashlib.sha256(name.encode()).digest()
        sign = signing_key(name).sign
        return SecureAgent(self.terms, name, secret, sign, disk.all_rows(), disk.kept)

    def restart(self, name: str) -> None:
        if name == self.terms.coordinator:
            self.coordinator = SecureCoordinator(self.terms, self.disks[name].kept)
        else:
            self.agents[name] = self.make_agent(name)

    def act(self, name: str, do: Callable[[], Step]) -> None:
        """Let a party take a step, or crash somewhere in it."""
        hub = name == self.terms.coordinator
        machine = self.coordinator if hub else self.agents[name]
        disk = self.disks[name]
        try:
            step = do()
            for write in step.writes:
                disk.write(write)
            sends = machine.release(step)
            if step.outcome is not None:
                disk.burn()
                self.outcomes[step.outcome.exchange] = step.outcome
            for send in sends:
                disk.burn()
                self.watch(name, send)
                twisted = self.twist(name, send)
                if twisted is not None:
                    self.post.append((name, twisted))
        except TacitaError as error:
            self.refused.append(str(error))
        except Crash:
            self.restart(name)

    def watch(self, name: str, send: Send) -> None:
        """One masked letter and one opening an agent and exchange, to the last bit."""
        for kind, seen in (("answer", self.answers), ("opening", self.openings)):
            if send.kind == kind:
                content = send.content
                if isinstance(content, Answer):
                    content = b"".join([content.words.tobytes(), *content.opened])
                assert seen.setdefault((name, send.number), content) == content

    def deliver(self) -> None:
        """Deliver until nothing is on its way."""
        while self.post:
            at = self.chance.randrange(len(self.post)) if self.chance else 0
            sender, send = self.post.pop(at)
            if self.chance and self.chance.random() < 0.1:
                continue
            if self.chance and self.chance.random() < 0.1:
                self.post.append((sender, send))
            if not {sender, send.to} & self.silent:
                self.hand_over(sender, send)

    def hand_over(self, sender: str, send: Send) -> None:
        content: Any = send.content
        hub = self.coordinator
        if send.kind == "question":
            self.act(send.to, lambda: self.reply(send.to, send.number, content))
        elif send.kind == "answer":
            self.act(send.to, lambda: hub.answer(sender, send.number, content))
        elif send.to == self.terms.coordinator:
            self.act(send.to, lambda: hub.heard(sender, send.kind, content))
        else:
            agent = self.agents[send.to]
            self.act(send.to, lambda: agent.heard(sender, send.kind, content))

    def reply(self, name: str, exchange: int, question: bytes) -> Step:
        agent = self.agents[name]
        wanted = agent.asked(exchange, question)
        if isinstance(wanted, Step):
            return wanted
        self.contexts.setdefault(exchange, set()).add(wanted.context)
        return agent.answer(wanted, self.letter(name, wanted, self.terms))

    def hub_does(self, do: Callable[[], Step]) -> None:
        self.act(self.terms.coordinator, do)
        self.deliver()

    def set_up(self, start: int = 0, tries: int = 40) -> None:
        """Bring a roster about, whatever it takes."""
        self.hub_does(lambda: self.coordinator.begin(start))
        for _ in range(tries):
            if self.coordinator.serves(start):
                return
            before = self.coordinator.stage, self.coordinator.awaited
            self.hub_does(self.coordinator.again)
            stuck = before == (self.coordinator.stage, self.coordinator.awaited)
            if self.silent and stuck:
                self.hub_does(self.coordinator.time_up)

    def ask(self, exchange: int) -> None:
        """Begin an exchange, or go on with it, and send the question."""
        hub, asked = self.terms.coordinator, question_of(exchange)
        self.act(hub, lambda: self.coordinator.ask(exchange, asked))
        if self.coordinator.stage == "answers":
            for name in self.coordinator.awaited:
                self.post.append((hub, Send(name, "question", exchange, asked)))
        self.deliver()

    def run(self, exchange: int, tries: int = 40) -> Outcome:
        """One exchange, to its end."""
        self.ask(exchange)
        for k in range(tries):
            if exchange in self.outcomes:
                break
            if self.coordinator.stage in ("ask", "answers"):
                self.ask(exchange)
            self.hub_does(self.coordinator.again)
            if exchange not in self.outcomes and k % 5 == 4:
                self.hub_does(self.coordinator.time_up)
        while exchange not in self.outcomes:
            self.ask(exchange)
            self.hub_does(self.coordinator.give_up)
        return self.outcomes[exchange]

    def expected(self, outcome: Sum) -> np.ndarray:
        """The plain modular sum of the letters."""
        (context,) = self.contexts[outcome.exchange]
        wanted = Wanted(outcome.exchange, context, b"")
        each = [self.letter(n, wanted, self.terms) for n in outcome.chosen]
        return np.sum(each, axis=0, dtype=self.terms.word_type)

    def check_sum(self, outcome: Outcome) -> Sum:
        assert isinstance(outcome, Sum), outcome
        np.testing.assert_array_equal(outcome.total, self.expected(outcome))
        return outcome

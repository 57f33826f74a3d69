"""What attackers of a secure sum have at hand: letters that nobody honest sends."""

from __future__ import annotations

import hashlib

from tacita.aggregation.secure import letters
from tacita.aggregation.secure.dealing import Dealer
from tacita.aggregation.secure.letters import (
    Entries,
    Letter,
    Open,
)
from tacita.aggregation.secure.signatures import keys_message, set_message
from tacita.aggregation.secure.steps import Answer, Step
from tests.aggregation.secure_parties import (
    Town,
    question_of,
    signing_key,
    terms_of,
)

A, B, C, D, E = (f"agent {k:03d}" for k in range(5))
HUB = "hub"


def ready_town(agents: int = 5, **settings) -> Town:
    town = Town(terms_of(agents, **{"least": 4, "colluding": 1} | settings))
    town.set_up()
    return town


def tell(town: Town, name: str, letter: Letter, sender: str = HUB) -> Step:
    """Hand a letter to an agent, let it write, and look at its step."""
    content = letters.encode(letter, town.terms)
    step = town.agents[name].heard(sender, letters.kind_of(letter), content)
    for write in step.writes:
        town.disks[name].write(write)
    town.agents[name].release(step)
    return step


def answered(town: Town, exchange: int, names) -> dict[str, Answer]:
    """Answers that a coordinator who plays its own game has got out of agents."""
    found = {}
    for name in names:
        step = town.reply(name, exchange, question_of(exchange))
        for write in step.writes:
            town.disks[name].write(write)
        (send,) = town.agents[name].release(step)
        found[name] = send.content
    return found


def signed(town: Town, exchange: int, chosen, signers) -> Open:
    digest = town.coordinator.roster.digest
    message = set_message(town.terms, digest, exchange, chosen)
    signatures = tuple(signing_key(n).sign(message) for n in signers)
    return Open(exchange, digest, tuple(chosen), tuple(signers), signatures)


def entries_of(town: Town, attempt: int, start: int, names) -> Entries:
    """What a coordinator can get out of agents for an attempt."""
    bodies, signatures = [], []
    for name in names:
        dealer = Dealer(town.terms, name, hashlib.sha256(name.encode()).digest())
        body = dealer.body(attempt, start)
        message = keys_message(town.terms, attempt, start, body)
        bodies.append(body)
        signatures.append(signing_key(name).sign(message))
    return Entries(attempt, start, tuple(names), tuple(bodies), tuple(signatures))


def resigned(town: Town, entries: Entries, name: str, body: bytes) -> Entries:
    """The same roster, but one agent colludes and signs another body."""
    place = entries.members.index(name)
    message = keys_message(town.terms, entries.attempt, entries.start, body)
    signature = signing_key(name).sign(message)
    bodies, signatures = list(entries.bodies), list(entries.signatures)
    bodies[place], signatures[place] = body, signature
    return entries._replace(bodies=tuple(bodies), signatures=tuple(signatures))


def new_town(agents: int = 5, **settings) -> Town:
    return Town(terms_of(agents, **{"least": 4, "colluding": 1} | settings))

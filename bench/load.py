"""Many agents and large letters: round times against what the bytes alone take.

The floor is measured in the same run, over the same connections: the coordinator sends
every agent as many bytes as a question has, and gets as many back, through TLS and the
broker, but nothing is sealed, computed or written down. `sockets` is the time of the
same bytes through plain sockets on loopback, into the broker and out of it again.

    python -m bench.federation load
"""

from __future__ import annotations

import resource
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import federation
from tacita import keys
from tacita.federation import Invitation, broker
from tacita.federation.agent_keys import SharedKeys
from tacita.federation.draws import SharedDraws
from tacita.federation.driving import run_party
from tacita.federation.nats_post import NatsPost

#: Processes that share the agents: 200 of their own would take 50 GB.
PROCESSES = 6
ROUNDS_OF_BYTES = 3
GO = b"go"
#: (agents, length of the vector, rounds).
SETTINGS = ((50, 1_000_000, 8), (200, 100_000, 8), (200, 1_000, 23))
MOST_RATIO, MOST_SECONDS, MOST_REPEATS = 3.0, 0.5, 0.05
SECONDS = 300.0


class Load(NamedTuple):
    """What one setting took; times in seconds.

    Attributes:
        round: The median over the rounds.
        processor: Of all processes in a round, the broker's too: what a round takes on
            two cores, doubled, if nothing else runs on them.
        floor: The same bytes over the same connections.
        sockets: The same bytes through plain sockets.
        repeats: Share of whole letters that were sent twice.
        megabytes: Peak memory of the coordinator.
    """

    round: float
    processor: float
    floor: float
    sockets: float
    repeats: float
    megabytes: float


def crowd(folder: str, dim: str, rounds: str, *paths: str) -> None:
    """The program of several agents, each with a connection of its own."""
    invited = [Invitation.load(path) for path in paths]
    roles = federation.roles_of(invited[0], int(dim), int(rounds))
    # Compiled before anything is measured.
    roles.make_agent(
        federation.desk_of(invited[0], Path(folder) / "try", "careless"),
        roles.like,
        SharedKeys(keys.agent_secret(roles.base, 0)),
    )
    people = [
        threading.Thread(target=_one, args=(me, roles, Path(folder))) for me in invited
    ]
    for one in people:
        one.start()
    for one in people:
        one.join()


def _one(me: Invitation, roles: Any, folder: Path) -> None:
    """Send back what comes, until it is time to work."""
    with NatsPost(me) as post:
        post.expect(roles.server.most_bytes + (1 << 20))
        came: list[bytes] = []
        while GO not in came:
            came = post.collect(SECONDS)
            for content in came:
                post.deliver(me.coordinator, content)
        secret = SharedKeys(keys.agent_secret(roles.base, me.agents.index(me.name)))
        desk = federation.desk_of(me, folder)
        party = roles.make_agent(desk, roles.like, secret)
        run_party(party, post, seconds=SECONDS)
        (folder / f"{me.name}.resent").write_text(str(party.counts.resent))


def measure(agents: int, dim: int, rounds: int) -> Load:
    """One setting."""
    with federation.town(agents) as (folder, made, names):
        children = []
        try:
            for part in np.array_split(names, PROCESSES):
                words = [
                    str(folder),
                    str(dim),
                    str(rounds),
                    *(str(made[n]) for n in part),
                ]
                program = [sys.executable, "-m", "bench.federation", "crowd", *words]
                children.append(subprocess.Popen(program))
            found = _coordinate(
                Invitation.load(made["coordinator"]), folder, dim, rounds
            )
            for child in children:
                child.wait(SECONDS)
        finally:
            for child in children:
                broker.stop(child)
        resent = sum(int(p.read_text()) for p in folder.glob("*.resent"))
    repeats = (found.repeats + resent) / (2 * agents * rounds)
    return found._replace(repeats=repeats)


def _coordinate(me: Invitation, folder: Path, dim: int, rounds: int) -> Load:
    with NatsPost(me) as post:
        post.expect(8 * dim + (1 << 20))
        _wait_for_all(post, me.agents)
        floor = _floor(post, me.agents, bytes(8 * dim))
        roles = federation.roles_of(me, dim, rounds)
        desk = federation.desk_of(me, folder)
        made = roles.make_coordinator(desk, SharedDraws(roles.base))
        _all_to_all(post, me.agents, GO)
        with federation.watched(federation.processor_of_all) as ends:
            done = run_party(made, post, seconds=SECONDS)
        if not done or len(ends) < rounds:
            raise SystemExit(f"only {len(ends)} of {rounds} rounds: {made.counts}")
    ends, processor = zip(*ends, strict=True)
    times = np.diff(ends)[federation.WARM_UP :].tolist()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Load(
        statistics.median(times),
        statistics.median(np.diff(processor)[federation.WARM_UP :].tolist()),
        floor,
        _sockets(len(me.agents) * 8 * dim),
        made.counts.resent,
        peak,
    )


def _wait_for_all(post: NatsPost, names: Sequence[str]) -> None:
    """Until everybody sends back what it is sent."""
    missing = set(names)
    end = time.monotonic() + SECONDS
    while missing:
        for name in missing:
            post.deliver(name, name.encode())
        time.sleep(0.5)
        missing -= {content.decode() for content in post.collect(0.5)}
        if time.monotonic() > end:
            raise SystemExit(f"{len(missing)} agents do not answer")
    while post.collect(1.0):
        pass


def _floor(post: NatsPost, names: Sequence[str], content: bytes) -> float:
    times = []
    for _ in range(ROUNDS_OF_BYTES):
        begun = time.perf_counter()
        _all_to_all(post, names, content)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def _all_to_all(post: NatsPost, names: Sequence[str], content: bytes) -> None:
    """Send everybody the same, and wait until all have sent it back."""
    for name in names:
        post.deliver(name, content)
    here = 0
    while here < len(names):
        here += sum(len(c) == len(content) for c in post.collect(SECONDS))


def _sockets(count: int) -> float:
    """Both ways, each into a broker and out again: four times the bytes."""
    begun, block = time.perf_counter(), bytes(1 << 20)
    one, other = socket.socketpair()
    with one, other:

        def read() -> None:
            left = 4 * count
            while left > 0:
                left -= len(other.recv(1 << 20))

        reader = threading.Thread(target=read)
        reader.start()
        left = 4 * count
        while left > 0:
            one.sendall(block[: min(left, len(block))])
            left -= len(block)
        reader.join()
    return time.perf_counter() - begun


def main() -> None:
    """The table."""
    print(
        f"{'agents':>6} {'d':>8} {'round':>9} {'processor':>9} {'floor':>9} "
        f"{'sockets':>9} {'ratio':>6} {'repeats':>7} {'memory':>8}"
    )
    for agents, dim, rounds in SETTINGS:
        found = measure(agents, dim, rounds)
        ratio = found.round / found.floor
        small = dim <= 1_000
        good = found.round <= MOST_SECONDS if small else ratio <= MOST_RATIO
        goal = f"{MOST_SECONDS:g} s" if small else f"{MOST_RATIO:g} x"
        good &= found.repeats <= MOST_REPEATS
        print(
            f"{agents:>6} {dim:>8} {found.round:>7.2f} s {found.processor:>7.2f} s "
            f"{found.floor:>7.2f} s {found.sockets:>7.2f} s {ratio:>6.2f} "
            f"{found.repeats:>7.1%} "
            f"{found.megabytes:>5.0f} MB  goal {goal}, 5 %: "
            f"{'met' if good else 'missed'}",
            flush=True,
        )

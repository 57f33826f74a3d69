"""Round times of a federation on loopback: long-lived processes over NATS with TLS.

A round: the coordinator broadcasts a float64 vector of length d, every agent answers
with one, the mean is taken. Printed with signatures, encryption and checkpoints on
disk, and without them, so that their price shows. Then the processor time of an agent
that waits for a run (`tacita join`), and what many agents with large letters take
(`bench/load.py`).

    python -m bench.federation
    python -m bench.federation load
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tacita
from tacita import keys
from tacita.aggregation import Summed
from tacita.federation import Hub, Invitation, broker
from tacita.federation.agent_keys import AgentKeys, OwnKeys, SharedKeys
from tacita.federation.desk import Desk, Signer
from tacita.federation.draws import SharedDraws
from tacita.federation.driving import run_party
from tacita.federation.nats_post import NatsPost
from tacita.federation.receipts import Pen
from tacita.federation.roles import Roles
from tacita.federation.seal import Plain, Sealed
from tacita.federation.server_coordinator import ServerCoordinator
from tacita.federation.state_file import StateFile
from tacita.federation.terms import Terms
from tacita.federation.wire import Identity
from tacita.federation.work import Outline
from tacita.runtime.ready import prepare
from tacita.trees import in_double_precision, replace

#: (agents, length of the vector, rounds, goal in milliseconds).
SETTINGS = ((3, 1_000, 60, 25.0), (3, 1_000_000, 12, 1500.0), (20, 1_000, 40, 150.0))
WARM_UP = 3
#: Seconds of waiting after which, and during which, an idle agent is looked at.
SETTLED, WATCHED = 8.0, 20.0


#: What a secure sum of the benchmark agrees on: noise of three draws, 32 bits.
SUM = tacita.SecureSum(step=2.0**-16, multiples=np.array([1, 8, 41]), largest=1.0)

#: Modes of secure sums: how many agents may be missing.
SPARE = {"secure": 0, "tolerant": 1}

#: Modes of plain letters with noise: JAX's floats, or a deployment's exact integers.
NOISES = {"floats": "float", "integers": "integers"}


@in_double_precision
def roles_of(me: Invitation, dim: int, rounds: int, mode: str = "careful") -> Roles:
    """A run whose letters are vectors of this length; in secure sums if `mode` says."""
    x = np.random.default_rng(0).normal(size=(2, dim)) / dim
    own = tacita.from_arrays(x, np.ones(2), np.zeros(2, int), "linear")
    outline = Outline(own, len(me.agents))
    algorithm: Any = tacita.FedAvg(step_size=0.1, local_steps=1)
    if mode in SPARE:
        rule = replace(SUM, least=len(me.agents) - SPARE[mode])
        algorithm = Summed(algorithm=algorithm, aggregation=rule)
    elif mode in NOISES:
        clipped = tacita.Clipped(norm=1.0)
        noisy = tacita.Noisy(std=1.0, oracle=clipped, noise_kind=NOISES[mode])
        algorithm = replace(algorithm, oracle=noisy)
    algorithm = prepare(outline, algorithm)
    return Roles(
        algorithm=algorithm,
        agents=me.agents,
        coordinator=me.coordinator,
        start=own.start,
        base=keys.from_seed(0),
        terms=Terms(rounds=rounds, linger=2.0),
        like=outline.local(),
    )


def desk_of(me: Invitation, folder: Path, mode: str = "careful") -> Desk:
    """A desk; "careless" leaves envelopes and the disk out."""
    careful = mode != "careless"
    envelope = Sealed(me.name, me.keys, me.others) if careful else Plain()
    who = Identity("bench", "run", "state", 0, 0, me.name, me.name)
    file = StateFile(folder / me.name, b"k" * 32, who, durable=careful)
    signer = Signer(me.keys.sign, {name: k.sign for name, k in me.others.items()})
    pen = Pen(b"k" * 32, "run", 1)
    return Desk(me.name, "bench", "run", envelope, file, pen, signer=signer)


def agent(path: str, folder: str, dim: str, rounds: str, mode: str) -> None:
    """The program of one agent."""
    me = Invitation.load(path)
    roles = roles_of(me, int(dim), int(rounds), mode)
    own: AgentKeys = SharedKeys(keys.agent_secret(roles.base, me.agents.index(me.name)))
    if mode == "integers":
        own = OwnKeys(os.urandom(32))
    desk = desk_of(me, Path(folder), mode)
    with NatsPost(me) as post:
        run_party(roles.make_agent(desk, roles.like, own), post, seconds=300)


@contextmanager
def watched(
    more: Callable[[], float] = lambda: 0.0,
) -> Iterator[list[tuple[float, float]]]:
    """When the rounds of a coordinator end, and what `more` tells then."""
    ends: list[tuple[float, float]] = []
    move_on = ServerCoordinator._move_on

    def moved_on(party: ServerCoordinator, joint: Any) -> None:
        move_on(party, joint)
        ends.append((time.perf_counter(), more()))

    ServerCoordinator._move_on = moved_on
    try:
        yield ends
    finally:
        ServerCoordinator._move_on = move_on


@contextmanager
def town(agents: int) -> Iterator[tuple[Path, dict[str, Path], list[str]]]:
    """A hub with a running broker: its folder, the invitations, the agents' names."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = [f"agent-{i:03}" for i in range(agents)]
        with Hub.create(folder / "hub", "bench", names, port=0) as hub:
            yield folder, hub.invitations, names


def idle() -> float:
    """The share of one processor that an agent without work takes."""
    with town(1) as (folder, made, (name,)):
        rows = folder / "rows.csv"
        rows.write_text("x,y\n0,1\n")
        words = ["join", str(made[name]), "--data", str(rows), "--trust-everything"]
        program = [sys.executable, "-m", "tacita", *words]
        child = subprocess.Popen(program, cwd=folder, stdout=subprocess.DEVNULL)
        try:
            time.sleep(SETTLED)
            before = processor_seconds(child.pid)
            time.sleep(WATCHED)
            return (processor_seconds(child.pid) - before) / WATCHED
        finally:
            broker.stop(child)


def processor_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processor_of_all() -> float:
    """What this process has used so far, and all that it started."""
    me = os.getpid()
    others = Path(f"/proc/{me}/task/{me}/children").read_text().split()
    return sum(map(processor_seconds, [me, *map(int, others)]))


class Measured(NamedTuple):
    """Of one run.

    Attributes:
        seconds: Of every round after the first few.
        processor: Seconds of all processes in such a round, the broker's too.
        bytes_up: What an agent sent in a round.
    """

    seconds: list[float]
    processor: float
    bytes_up: float


def measure(agents: int, dim: int, rounds: int, mode: str) -> Measured:
    """Run a federation of processes.

    `mode` is "careful", "careless", or one of `SPARE` and `NOISES`.
    """
    children = []
    with town(agents) as (folder, made, names):
        try:
            for one in names:
                words = [str(made[one]), str(folder), str(dim), str(rounds), mode]
                program = [sys.executable, "-m", "bench.federation", *words]
                children.append(subprocess.Popen(program))
            return _coordinate(made["coordinator"], folder, dim, rounds, mode)
        finally:
            for child in children:
                broker.stop(child)


def _coordinate(path: Path, folder: Path, dim: int, rounds: int, mode: str) -> Measured:
    me = Invitation.load(path)
    roles, desk = roles_of(me, dim, rounds, mode), desk_of(me, folder, mode)
    with NatsPost(me) as post, watched(processor_of_all) as ends:
        made = roles.make_coordinator(desk, SharedDraws(roles.base))
        run_party(made, post, seconds=300)
    up = made.counts.received_bytes / (rounds * len(me.agents))
    seconds, processor = np.diff(ends, axis=0)[WARM_UP:].T
    return Measured(seconds.tolist(), processor.mean(), up)


def main() -> None:
    print(f"{'agents':>6} {'d':>8} {'careful':>22} {'careless':>10} {'goal':>8}")
    for agents, dim, rounds, goal in SETTINGS:
        careful, careless = (
            [1e3 * t for t in measure(agents, dim, rounds, mode).seconds]
            for mode in ("careful", "careless")
        )
        middle, plain = statistics.median(careful), statistics.median(careless)
        verdict = "met" if middle <= goal else "missed"
        print(
            f"{agents:>6} {dim:>8} {middle:>10.1f} (best {min(careful):.1f}) ms "
            f"{plain:>7.1f} ms {goal:>5.0f} ms {verdict}",
            flush=True,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the coordinator: {peak:.0f} MB")
    print(f"an agent that waits takes {100 * idle():.2f} % of a processor (goal 1 %)")
    load.main()


if __name__ == "__main__":
    from bench import load  # it uses what stands above

    if sys.argv[1:] == ["load"]:
        load.main()
    elif sys.argv[1:2] == ["crowd"]:
        load.crowd(*sys.argv[2:])
    elif len(sys.argv) > 1:
        agent(*sys.argv[1:])
    else:
        main()

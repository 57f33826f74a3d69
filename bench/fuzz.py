"""Fuzzing: letters, pieces, offers, policies and invitations that nobody should write.

Every input is either read or refused with one line (`TacitaError`); anything else is a
failure, whose seed and traceback are printed. Some inputs are random bytes, most are
good ones with a few things changed, signed by a certified party where that matters.

    python -m bench.fuzz --inputs 1000000
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

import tacita
from tacita.federation import Agent, Hub, Invitation, wire
from tacita.federation.description import Description, read_signed
from tacita.federation.in_process import COORDINATOR, InProcess
from tacita.federation.nats_post import Pieces
from tacita.federation.policy import Policy
from tacita.federation.protocol import PROTOCOL
from tacita.federation.receipts import BLANK
from tacita.federation.seal import PrivateKeys, Sealed
from tacita.federation.wire import Identity, Letter

MOST_MEGABYTES = 600
#: Inputs after which parties begin anew, so that they are met in many states.
_FRESH = 400
#: One in so many readable offers goes all the way: rows, algorithm, ledger.
_JUDGED = 400
_DOMAIN = b"tacita run description 1\n"
_DEEP = "[" * 3_000 + "]" * 3_000
_NASTY: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 10**9, 2**63, 10**30, -0.0, 1e-320, 1e308, 0.5, "", "x",
    "../../etc", "\x1b[2J", "\u202e", "a" * 3_000, [], {}, [[]], {"": {}}, [None],
    ["x"] * 300, {"name": "FedAvg"}, [1e308, -1e308], "NaN", "FedAvg", "all",
)  # fmt: skip
_BITS = (0.0, -0.0, 1.0, 1e-320, 1.7e308, -1.7e308, np.nan, np.inf, 2.0**50)


class Dice(random.Random):
    """What changes good inputs."""

    def spoil(self, content: bytes) -> bytes:
        """Flip, cut, repeat or insert a few bytes."""
        made = bytearray(content)
        for _ in range(self.choice((0, 1, 1, 2, 8))):
            at, way = self.randrange(len(made) + 1), self.randrange(5)
            if way == 0 and at < len(made):
                made[at] ^= 1 << self.randrange(8)
            elif way == 1:
                del made[at:]
            elif way == 2:
                made[at:at] = self.randbytes(self.randrange(1, 9))
            elif way == 3:
                made[at : at + 8] = self.choice((b"\xff" * 8, bytes(8), b"\x7f" * 4))
            else:
                made[at:at] = made[: self.randrange(64)]
        return bytes(made)

    def twist(self, tree: Any) -> Any:
        """Change some leaves or branches of tables and lists."""
        tree = copy.deepcopy(tree)
        for _ in range(self.choice((0, 1, 1, 1, 2, 4))):
            self._twist_one(tree)
        return tree

    def _twist_one(self, tree: Any) -> None:
        while True:
            keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
            if not keys or self.random() < 0.1:
                if isinstance(tree, dict):
                    tree[self.choice(("", "name", "x", "rounds"))] = self.nasty()
                else:
                    tree.append(self.nasty())
                return
            key = self.choice(keys)
            if isinstance(tree[key], dict | list) and self.random() < 0.8:
                tree = tree[key]
                continue
            if self.random() < 0.15:
                del tree[key]
            else:
                tree[key] = self.nasty()
            return

    def nasty(self) -> Any:
        """A value that nobody expects."""
        return copy.deepcopy(self.choice(_NASTY))


class Letters:
    """Letters to a coordinator, to an agent of it and to an agent on a graph.

    Written by certified parties, so that only what is in them can be refused.
    """

    def __init__(self, dice: Dice, folder: Path) -> None:
        self._dice, self._folder, self._count = dice, folder, 0
        graph = tacita.problem.graph.star(4)
        problem = tacita.problem.synthetic.logistic(
            agents=4, features=3, samples=6, l2=0.1, graph=graph
        )
        self._made = {
            "server": InProcess(
                folder / "server", problem, tacita.FedPLT(rho=1.0), 5, deadline=5.0
            ),
            "graph": InProcess(
                folder / "graph", problem, tacita.FedGD(alpha=0.1, step_size=0.1), 5
            ),
        }
        self._fresh()

    def _fresh(self) -> None:
        for path in self._folder.rglob("party.state"):
            path.unlink()
        server, graph = self._made["server"], self._made["graph"]
        self._parties: list[Any] = [
            server.make(COORDINATOR), server.make("agent-0"), graph.make("agent-0")
        ]  # fmt: skip
        for party in self._parties:
            party.start(0.0)
            list(party.take_out())

    def __call__(self) -> bool:
        """One input; whether it was read."""
        self._count += 1
        if self._count % _FRESH == 0:
            self._fresh()
        party = self._dice.choice(self._parties)
        before = party.counts.received
        now = self._count * 0.01
        party.receive(self._dice.spoil(wire.encode(self._letter(party.name))), now)
        if self._count % 20 == 0:
            party.tick(now)
        for _, content in party.take_out():
            wire.decode(content)
        assert len(party.counts.refused) <= 31 and len(party.remarks) <= 5
        return party.counts.received > before

    def _letter(self, to: str) -> Letter:
        dice = self._dice
        people = [COORDINATOR, "agent-0", "agent-1", "agent-2", "x"]
        identity = Identity(
            dice.choice(("test", "test", "test", "y")),
            dice.choice(("run", "run", "run", "run", "")),
            dice.choice(wire.KINDS),
            dice.choice((0, 1, 1, 2, 3, 5, 6, 2**64 - 1)),
            dice.choice((0, 0, 0, 1, 65535)),
            dice.choice(people),
            dice.choice((to, to, to, to, "x")),
        )
        text = dice.choice(("", "", '{"round": 1}', _DEEP[:4_000], "\x1b[2J\x07"))
        arrays = [self._array() for _ in range(dice.choice((0, 1, 1, 2, 2, 3)))]
        if dice.random() < 0.9:  # stamp and receipt
            arrays += [dice.choice((BLANK, BLANK, BLANK + 1)) for _ in range(2)]
        return Letter(identity, tuple(arrays), text)

    def _array(self) -> np.ndarray:
        dice = self._dice
        if dice.random() < 0.3:
            return np.asarray(dice.choice((0, 1, -1, 2**62)))
        shape = dice.choice(((3,), (3,), (3,), (), (0,), (2, 3), (4,), (1, 0, 5)))
        kind = dice.choice((np.float64, np.float64, np.float64, np.float32))
        with np.errstate(over="ignore"):
            return np.full(shape, dice.choice(_BITS)).astype(kind)


class Envelopes:
    """Sealed letters, changed on their way."""

    def __init__(self, dice: Dice, folder: Path) -> None:
        self._dice = dice
        people = {name: PrivateKeys.fresh() for name in ("ada", "bob", "eve")}
        public = {name: own.public for name, own in people.items()}
        ada = Sealed("ada", people["ada"], public)
        self._bob = Sealed("bob", people["bob"], public)
        name = Identity("town", "run", "answer", 1, 0, "ada", "bob")
        self._good = ada.close(Letter(name, (np.arange(9.0),)))

    def __call__(self) -> bool:
        """One input; whether it was read."""
        content = self._dice.spoil(self._good)
        letter = self._bob.open(content, 1 << 16)
        assert content == self._good, "a changed envelope was opened"
        return letter.identity.sender == "ada"


class Cuts:
    """Pieces of letters; what is held of them stays small."""

    def __init__(self, dice: Dice, folder: Path) -> None:
        self._dice, self._pieces = dice, Pieces(size=50, most_bytes=400)

    def __call__(self) -> bool:
        """One input; whether it was read."""
        dice = self._dice
        cut = self._pieces.cut(dice.randbytes(dice.randrange(600)))
        found = False
        for piece in dice.sample(cut, dice.randrange(len(cut) + 1)):
            found |= (
                self._pieces.join(dice.choice("abc"), dice.spoil(piece)) is not None
            )
        held = sum(
            len(b) for o in self._pieces._open.values() for b in o.pieces.values()
        )
        assert held <= 3 * 400
        return found


class Offers:
    """Run descriptions, signed by the coordinator; some are judged by an agent."""

    def __init__(self, dice: Dice, folder: Path) -> None:
        self._dice, self._read = dice, 0
        names = ["ada", "bob", "cyd", "dan"]
        hub = Hub.create(folder / "hub", "town", names, port=0)
        starter = Invitation.load(hub.invitations["coordinator"])
        assert starter.keys is not None
        self._keys, self._public = starter.keys, starter.others
        x = np.random.default_rng(0).normal(size=(8, 2))
        rows = {"x0": x[:, 0], "x1": x[:, 1], "y": np.arange(8) % 2}
        policy = Policy.anything(allow_shared_seed=True, max_rounds=50)
        self._agent = Agent(
            hub.invitations["ada"], rows, policy, folder=folder / "ada",
            tell=lambda line: None,
        )  # fmt: skip
        (folder / "ada").mkdir()
        self._agent.site.open_ledger()
        self._good = {
            "federation": "town",
            "protocol": PROTOCOL,
            "name": "try",
            "starter": "coordinator",
            "agents": ["ada", "bob"],
            "tables": {
                "problem": {
                    "model": "logistic", "columns": ["x0", "x1"], "target": "y",
                    "classes": ["0", "1"], "l2": 0.1, "centre": [0.0, 0.0],
                },
                "algorithm": {"name": "FedAvg", "step_size": 0.3, "local_steps": 2},
                "run": {"rounds": 5, "shared_seed": 5, "deadline": 3.0},
                "privacy": {"epsilon": 1.0, "delta": 1e-5, "norm": 1.0},
                "graph": {"edges": [["ada", "bob"]]},
            },
        }  # fmt: skip
        tables = {k: v for k, v in self._good["tables"].items() if k != "graph"}
        grid = {"step": 2.0**-16, "word": 32, "multiples": [1, 8, 41], "largest": 1.0}
        tables["secure"] = {"least": 3, "colluding": 1, "rows": 50, **grid}
        tables["algorithm"] = {"name": "DPSGD", "step_size": 0.3}
        agents = ["ada", "bob", "cyd", "dan"]
        self._summed = {**self._good, "agents": agents, "tables": tables}

    def __call__(self) -> bool:
        """One input; whether it was read."""
        offer = self._offer()
        run = read_signed(offer, "town", self._public, "coordinator")
        Policy.of_words({"max_epsilon": 1.0, "columns": ["x0"]}).objection(run)
        self._read += 1
        if self._read % _JUDGED == 0:
            site = self._agent.site
            self._agent.judge.verdict(run, offer, site.ledger)
        return isinstance(run, Description)

    def _offer(self) -> str:
        dice = self._dice
        separators = (",", ":")
        good = dice.choice((self._good, self._summed))
        text = json.dumps(dice.twist(good), sort_keys=True, separators=separators)
        if dice.random() < 0.2:
            text = dice.spoil(text.encode()).decode("utf-8", "replace")
        elif dice.random() < 0.02:
            text = dice.choice((_DEEP, text.replace("5", _DEEP), '"\\ud800"'))
        signature = self._keys.sign(_DOMAIN + text.encode()).hex()
        offer = json.dumps(dice.twist({"description": text, "signature": signature}))
        if dice.random() < 0.1:
            offer = dice.spoil(offer.encode()).decode("utf-8", "replace")
        return offer


class Policies:
    """Policy files."""

    def __init__(self, dice: Dice, folder: Path) -> None:
        self._dice, self._path = dice, folder / "policy.toml"
        self._good = {
            "max_epsilon": 1.0, "max_delta": 1e-5, "observers": ["coordinator"],
            "algorithms": ["FedAvg"], "models": ["logistic"], "min_participants": 2,
            "columns": ["age"], "max_rounds": 10, "allow_shared_seed": False,
        }  # fmt: skip

    def __call__(self) -> bool:
        """One input; whether it was read."""
        dice, table = self._dice, self._dice.twist(self._good)
        content = tomli_w.dumps(_without_none(table)).encode("utf-8", "replace")
        if dice.random() < 0.3:
            content = dice.spoil(content)
        elif dice.random() < 0.02:
            content = b"columns = " + _DEEP.encode()
        self._path.write_bytes(content)
        return isinstance(Policy.read(self._path), Policy)


class Invitations:
    """Invitations."""

    def __init__(self, dice: Dice, folder: Path) -> None:
        self._dice = dice
        hub = Hub.create(folder / "hub", "town", ["ada"], port=0)
        self._path = hub.invitations["ada"]
        self._good = json.loads(self._path.read_text())

    def __call__(self) -> bool:
        """One input; whether it was read."""
        dice = self._dice
        text = json.dumps(dice.twist(self._good)).encode()
        if dice.random() < 0.3:
            text = dice.spoil(text)
        elif dice.random() < 0.02:
            text = _DEEP.encode()
        self._path.write_bytes(text)
        return isinstance(Invitation.load(self._path), Invitation)


def _without_none(tree: Any) -> Any:
    """TOML has no word for nothing, and no whole numbers beyond 64 bits."""
    if isinstance(tree, dict):
        return {k: _without_none(v) for k, v in tree.items() if v is not None}
    if isinstance(tree, list):
        return [_without_none(v) for v in tree if v is not None]
    return tree


#: What is fuzzed, and its share of the inputs.
TARGETS: dict[str, tuple[Callable[[Dice, Path], Callable[[], bool]], float]] = {
    "letters": (Letters, 0.5),
    "envelopes": (Envelopes, 0.1),
    "pieces": (Cuts, 0.1),
    "offers": (Offers, 0.15),
    "policies": (Policies, 0.1),
    "invitations": (Invitations, 0.05),
}


def fuzz(inputs: int, seed: int = 0, most_failures: int = 20) -> Counter[str]:
    """How many inputs of each kind were read, refused, or did harm."""
    tally: Counter[str] = Counter()
    for name, (make, share) in TARGETS.items():
        with tempfile.TemporaryDirectory() as folder:
            dice = Dice(f"{seed} {name}")
            one = make(dice, Path(folder))
            for number in range(round(share * inputs)):
                try:
                    tally[f"{name} read" if one() else f"{name} refused"] += 1
                except tacita.TacitaError:
                    tally[f"{name} refused"] += 1
                except Exception:
                    tally[f"{name} failed"] += 1
                    print(f"{name}, seed {seed}, input {number}:", file=sys.stderr)
                    traceback.print_exc()
                    if tally[f"{name} failed"] >= most_failures:
                        break
    return tally


def main() -> None:
    """Fuzz and print the tally; exit code 1 where something failed."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--inputs", type=int, default=1_000_000)
    words.add_argument("--seed", type=int, default=0)
    chosen = words.parse_args()
    begun = time.perf_counter()
    tally = fuzz(chosen.inputs, chosen.seed)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'':<12} {'read':>9} {'refused':>9} {'failed':>7}")
    for name in TARGETS:
        read, refused, failed = (tally[f"{name} {k}"] for k in _OUTCOMES)
        print(f"{name:<12} {read:>9} {refused:>9} {failed:>7}")
    failures = sum(tally[f"{name} failed"] for name in TARGETS)
    seconds = time.perf_counter() - begun
    print(
        f"{sum(tally.values())} inputs in {seconds:.0f} s, {failures} failures, "
        f"peak memory {peak:.0f} MB (goal {MOST_MEGABYTES} MB)"
    )
    sys.exit(1 if failures or peak > MOST_MEGABYTES else 0)


_OUTCOMES = ("read", "refused", "failed")

if __name__ == "__main__":
    main()

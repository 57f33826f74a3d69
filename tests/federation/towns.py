"""Small federations for tests: of threads of this program, and of real processes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

import tacita
from tacita.federation import Hub, Result, broker, coordinate, join, state_file, wire
from tests.patience import HANG

PROGRAM = [sys.executable, "-m", "tacita"]
COLUMNS = ["x0", "x1", "x2"]
NAMES = ["ada", "bob", "cyd"]
#: What agents of tests agree to: runs without privacy, or with a common seed, too.
LENIENT = {"allow_shared_seed": True, "allow_unprotected": True}


def rows(name: str, count: int = 30) -> tuple[np.ndarray, np.ndarray]:
    dice = np.random.default_rng(NAMES.index(name))
    x = dice.normal(size=(count, 3))
    y = (x @ [1.0, -2.0, 0.5] + dice.normal(size=count) > 0).astype(int)
    return x, y


def simulated(run: dict[str, Any], graph: Any = None) -> tacita.trace.Run:
    """What the run must give."""
    parts = [rows(name) for name in NAMES]
    x, y = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    agent = np.repeat(NAMES, [len(p[1]) for p in parts])
    problem = tacita.from_arrays(x, y, agent, "logistic", l2=0.1, graph=graph)
    table = dict(run["algorithm"])
    kind: Any = getattr(tacita, table.pop("name"))
    algorithm, rounds = kind(**table), run["run"]["rounds"]
    if "privacy" in run:
        # Equal numbers of rows, so that all agents set the same noise by themselves.
        how = {"observer": "coordinator", "noise_kind": "integers", **run["privacy"]}
        algorithm = tacita.private(problem, algorithm, rounds=rounds, **how)
    return tacita.simulate(problem, algorithm, rounds, seed=run["run"]["shared_seed"])


def run_of(rounds: int = 6, **more: Any) -> dict[str, Any]:
    """A run file."""
    return {
        "problem": {
            "model": "logistic",
            "columns": COLUMNS,
            "target": "y",
            "classes": ["0", "1"],
            "l2": 0.1,
        },
        "algorithm": {"name": "FedAvg", "step_size": 0.3, "local_steps": 3},
        "run": {"rounds": rounds, "shared_seed": 5},
        **more,
    }


def table_of_rows(name: str) -> pd.DataFrame:
    """An agent's rows, as a user has them."""
    x, y = rows(name)
    return pd.DataFrame(x, columns=pd.Index(COLUMNS)).assign(y=y)


def round_in(home: Path) -> int:
    """The round of the coordinator's checkpoint; 0 before the first."""
    for path in home.glob(f"*/{state_file.NAME}"):
        letter = wire.decode(path.read_bytes()[state_file.HEAD :])
        return int(json.loads(letter.text)["when"][0])
    return 0


class Town:
    """A hub, a coordinator and agents: threads of this program.

    Letters go over the broker, or with `post` within the program.
    """

    def __init__(
        self, folder: Path, post: Any = None, brokers: int = 1, **policy: Any
    ) -> None:
        self.folder, self.post = folder, post
        self.hub = Hub.create(folder / "hub", "town", NAMES, port=0, brokers=brokers)
        self.policies = dict.fromkeys(NAMES, {**LENIENT, **policy})
        self.said: dict[str, list[str]] = {}
        self._pool = ThreadPoolExecutor(max_workers=16)

    def options(self, who: str) -> Any:
        said = self.said.setdefault(who, [])
        home = self.folder / f"{who}-home"
        return {"folder": home, "post": self.post, "tell": said.append}

    def join(self, who: str) -> Future[Result]:
        """An agent that waits for one run, and takes part in it."""
        invitation, policy = self.hub.invitations[who], self.policies[who]
        return self._pool.submit(
            join, invitation, table_of_rows(who), policy, HANG, **self.options(who)
        )

    def coordinate(self, run: dict[str, Any]) -> Result | None:
        invitation = self.hub.invitations["coordinator"]
        return coordinate(run, invitation, HANG, **self.options("coordinator"))

    def run(self, run: dict[str, Any]) -> dict[str, Any]:
        """A whole run: everybody's result."""
        agents = {name: self.join(name) for name in NAMES}
        shared = self.coordinate(run)
        found = {name: agent.result(HANG) for name, agent in agents.items()}
        return {"coordinator": shared, **found}

    def round(self) -> int:
        """The round that the run is in."""
        return round_in(self.folder / "coordinator-home")

    def __enter__(self) -> Town:
        if self.post is None:
            self.hub.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.hub.stop()
        self._pool.shutdown(wait=error == (None, None, None), cancel_futures=True)


def launch(words: list[str], log: Path) -> subprocess.Popen:
    """Start a command of `tacita` as users do."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    with open(log, "ab") as file:
        return subprocess.Popen(
            [*PROGRAM, *words], stdout=file, stderr=file, env=environment
        )


class Programs:
    """The same people as processes of their own, started by the commands.

    Args:
        folder: Where everything of theirs stands.
        run: What the coordinator offers.
        launched: Starts a command with its words and a file for its output.
        policy: Of all agents.
    """

    def __init__(
        self,
        folder: Path,
        run: dict[str, Any],
        launched: Callable[[list[str], Path], Any] = launch,
        **policy: Any,
    ) -> None:
        self.folder, self._launched = folder, launched
        self.hub = Hub.create(folder / "hub", "town", NAMES, port=0)
        self.children: dict[str, Any] = {}
        self.propose(run)
        for name in NAMES:
            self.allow(name, **policy)
            table_of_rows(name).to_csv(folder / f"{name}.csv", index=False)

    def propose(self, run: dict[str, Any]) -> None:
        """What the coordinator will offer when it is started."""
        (self.folder / "run.toml").write_text(tomli_w.dumps(run))

    def allow(self, who: str, **policy: Any) -> None:
        """An agent's policy, when it is started."""
        words = tomli_w.dumps({**LENIENT, **policy})
        (self.folder / f"{who}.policy.toml").write_text(words)

    def start(self, who: str) -> None:
        if who == "broker":
            self.children[who] = self.hub.start()
            return
        paths = {name: str(path) for name, path in self.hub.invitations.items()}
        home = ["--folder", str(self.folder / f"{who}-home"), "--wait", str(HANG)]
        if who == "coordinator":
            run = str(self.folder / "run.toml")
            words = ["coordinate", run, "--invitation", paths[who], *home]
        else:
            table = self.folder / f"{who}.csv"
            policy = self.folder / f"{who}.policy.toml"
            words = ["join", paths[who], "--data", str(table), "--policy", str(policy)]
            words += home
        self.children[who] = self._launched(words, self.folder / f"{who}.log")

    def __enter__(self) -> Programs:
        for who in ("broker", "coordinator", *NAMES):
            self.start(who)
        return self

    def __exit__(self, *error: object) -> None:
        for child in self.children.values():
            broker.stop(child)

    def wait(self, seconds: float, chaos: Chaos | None = None) -> None:
        """Until everybody but the broker ended well."""
        end = time.monotonic() + seconds
        parties = [name for name in self.children if name != "broker"]
        while time.monotonic() < end:
            codes = {name: self.children[name].poll() for name in parties}
            failed = [name for name, code in codes.items() if code not in (None, 0)]
            assert not failed, f"{failed}: {self.log(failed[0])[-600:]}"
            if all(code == 0 for code in codes.values()):
                return
            if chaos is not None:
                chaos.strike(self)
            time.sleep(0.005)
        told = {name: self.log(name)[-300:] for name in parties}
        raise AssertionError(f"not over after {seconds} s: {told}")

    def round(self) -> int:
        """The round that the run is in."""
        return round_in(self.folder / "coordinator-home")

    def log(self, who: str) -> str:
        return (self.folder / f"{who}.log").read_text()

    def home(self, who: str) -> Path:
        first = "accepted.json" if who == "coordinator" else "offer.json"
        (path,) = (self.folder / f"{who}-home").glob(f"*/{first}")
        return path.parent

    def result(self, who: str) -> dict[str, Any]:
        return json.loads((self.home(who) / "result.json").read_text())

    def model(self, who: str, which: str) -> np.ndarray:
        with np.load(self.home(who) / "models.npz") as file:
            return file[which]


class Chaos:
    """Kills somebody after every few rounds, and starts it again."""

    def __init__(self, seed: int, kills: int, most_rounds: int) -> None:
        self._dice, self.kills = random.Random(seed), kills
        self._most = most_rounds
        self._after = 0
        self.victims: list[str] = []

    def strike(self, town: Programs) -> None:
        """Kill now if the run has come far enough since the last time."""
        now = town.round()
        if len(self.victims) >= self.kills or now <= self._after:
            return
        alive = [name for name, child in town.children.items() if child.poll() is None]
        victim = self._dice.choice(alive)
        child = town.children[victim]
        child.send_signal(signal.SIGKILL)
        child.wait(HANG)
        town.start(victim)
        self.victims.append(victim)
        self._after = now + self._dice.randrange(self._most)

"""Three federations of real processes on this machine.

The first: four hospitals, a coordinator and a broker, private Fed-PLT with a stated
epsilon; ends with a report. The hospitals are those of the heart-disease data where a
data folder is named by TACITA_DATA, else synthetic stand-ins. The second: the same in
secure sums, where the coordinator reads no letter of a single hospital, and one of them
drops out. The third: the four on a ring, without any coordinator: DP-Norm with a stated
epsilon per neighbour.

    python examples/federation/demo.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

import tacita
from tacita.federation import Hub, broker
from tacita.trace import PrivacyReport

HOSPITALS = ("budapest", "cleveland", "longbeach", "zurich")
EPSILON, DELTA, ROUNDS = 4.0, 1e-5, 40
#: What every hospital agrees to.
POLICY = {
    "max_epsilon": EPSILON,
    "max_delta": DELTA,
    "algorithms": ["FedPLT", "DPSGD", "DPNorm"],
    "models": ["logistic"],
    "min_participants": 3,
    "max_rounds": ROUNDS,
}
PROGRAM = [sys.executable, "-m", "tacita"]
#: Longest time for each of the three.
SECONDS = 240.0
Rows = dict[str, tuple[pd.DataFrame, pd.DataFrame]]


def hospitals() -> tuple[str, Rows]:
    """Every hospital's training and test rows; the target is the column "ill"."""
    if os.environ.get("TACITA_DATA"):
        loaded = tacita.data.load("heart-disease", test_share=0.25, scale="standard")
        assert loaded.agent is not None and loaded.test_agent is not None
        columns = [f"x{i}" for i in range(loaded.x.shape[1])]
        assert loaded.test_x is not None and loaded.test_y is not None
        parts = {}
        for number, name in enumerate(HOSPITALS):
            train, test = loaded.agent == number, loaded.test_agent == number
            parts[name] = (
                _table(loaded.x[train], loaded.y[train], columns),
                _table(loaded.test_x[test], loaded.test_y[test], columns),
            )
        return "heart-disease data", parts
    dice = np.random.default_rng(1)
    truth = dice.normal(size=10)
    parts = {}
    for name, count in zip(HOSPITALS, (220, 230, 90, 150), strict=True):
        shift = 0.3 * dice.normal(size=10)
        x = dice.normal(size=(count + 200, 10)) + shift
        chance = 1 / (1 + np.exp(-(x @ (truth + 0.5 * shift))))
        y = (dice.random(len(x)) < chance).astype(int)
        columns = [f"x{i}" for i in range(10)]
        train, test = slice(count), slice(count, None)
        parts[name] = tuple(_table(x[k], y[k], columns) for k in (train, test))
    return "synthetic stand-ins", parts


def _table(x: Any, y: Any, columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(x, columns=pd.Index(columns)).assign(ill=y)


def run_federation(
    folder: Path,
    tables: dict[str, pd.DataFrame],
    run: dict,
    leaves: tuple[str, int] | None = None,
) -> None:
    """A hub, its broker, and one process per party, until all are done.

    Args:
        folder: For everybody's files.
        tables: Everybody's rows.
        run: The run that is proposed.
        leaves: A hospital whose program is killed in that round, and stays away.
    """
    (folder / "run.toml").write_text(tomli_w.dumps(run))
    policy = folder / "policy.toml"
    policy.write_text(tomli_w.dumps(POLICY))
    children: dict[str, subprocess.Popen] = {}
    with Hub.create(folder / "hub", "demo", sorted(tables), port=0) as hub:
        try:
            for name, path in hub.invitations.items():
                home = ["--folder", str(folder / name), "--wait", str(SECONDS)]
                if name == "coordinator":
                    words = ["coordinate", str(folder / "run.toml"), "--invitation"]
                    words += [str(path), *home]
                else:
                    rows = folder / f"{name}.csv"
                    tables[name].to_csv(rows, index=False)
                    words = ["join", str(path), "--data", str(rows), *home]
                    words += ["--policy", str(policy)]
                children[name] = subprocess.Popen([*PROGRAM, *words])
            end = time.monotonic() + SECONDS
            if leaves is not None:
                gone, number = leaves
                while _round(folder / "coordinator") < number:
                    time.sleep(0.05)
                children.pop(gone).kill()
            for child in children.values():
                if child.wait(max(1.0, end - time.monotonic())) != 0:
                    raise SystemExit("a party failed; its message stands above")
        finally:
            for child in children.values():
                broker.stop(child)


def _round(home: Path) -> int:
    """How far a party is, as it says itself once a second."""
    status = home / "status.json"
    return json.loads(status.read_text()).get("round", 0) if status.exists() else 0


def _result(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    (path,) = folder.glob("*/result.json")
    with np.load(path.parent / "models.npz") as file:
        return json.loads(path.read_text()), dict(file)


def four_hospitals() -> None:
    """Private Fed-PLT over four hospitals, and its report."""
    source, parts = hospitals()
    columns = [c for c in next(iter(parts.values()))[0] if c != "ill"]
    run = {
        "name": "hospitals",
        "problem": _problem_table(columns),
        "algorithm": {
            "name": "FedPLT",
            "rho": 1.0,
            "solver": {"name": "GradientDescent", "step_size": 0.4, "local_steps": 5},
        },
        "run": {"rounds": ROUNDS},
        "privacy": {"epsilon": EPSILON, "delta": DELTA, "norm": 1.0},
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begun = time.monotonic()
        run_federation(folder, {k: v[0] for k, v in parts.items()}, run)
        print(f"\nFour hospitals ({source}), private Fed-PLT, {ROUNDS} rounds,")
        print(f"{time.monotonic() - begun:.0f} s with the start of six processes\n")
        print(f"{'hospital':<12}{'rows':>6}{'alone':>8}{'together':>10}{'epsilon':>9}")
        for hospital, (train, test) in parts.items():
            told, models = _result(folder / hospital)
            alone = _problem(train, columns).solve()
            held = _problem(test, columns)
            print(
                f"{hospital:<12}{len(train):>6}{held.accuracy(alone):>8.3f}"
                f"{held.accuracy(models['shared']):>10.3f}{told['epsilon_spent']:>9.3f}"
            )
        told, _ = _result(folder / "coordinator")
        print(f"\nepsilon at delta={DELTA:g}, against the coordinator, for one record;")
        print("the broker and outsiders see sizes and times of letters only.")
        print(f"{told['letters']} letters, {told['bytes']} bytes, envelopes included\n")
        print(_privacy(folder / HOSPITALS[1]))


def _problem_table(columns: list[str]) -> dict[str, Any]:
    return {
        "model": "logistic",
        "columns": columns,
        "target": "ill",
        "classes": ["0", "1"],
        "l2": 0.05,
        "intercept": True,
        "bound": 3.5,  # public: longer rows are scaled down to it
    }


def secure_sums() -> None:
    """Nobody reads the letter of one hospital, and one of the four drops out."""
    _, parts = hospitals()
    columns = [c for c in next(iter(parts.values()))[0] if c != "ill"]
    fewest = min(len(train) for train, _ in parts.values())
    run = {
        "name": "sums",
        "problem": _problem_table(columns),
        "algorithm": {"name": "DPSGD", "step_size": 0.5, "momentum": 0.9},
        "secure": {"least": 3, "rows": fewest},
        "run": {"rounds": ROUNDS, "deadline": 2.0, "linger": 2.0},
        "privacy": {"epsilon": EPSILON, "delta": DELTA, "norm": 1.0},
    }
    gone = HOSPITALS[3]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = {k: v[0] for k, v in parts.items()}
        run_federation(folder, tables, run, leaves=(gone, ROUNDS // 4))
        print("\nThe same hospitals in secure sums: the coordinator learns noisy sums")
        print(f"of 3 letters at least; {gone} dropped out after a quarter of the run\n")
        print(f"{'hospital':<12}{'together':>10}{'epsilon':>9}")
        for hospital in HOSPITALS[:3]:
            told, models = _result(folder / hospital)
            held = _problem(parts[hospital][1], columns)
            print(
                f"{hospital:<12}{held.accuracy(models['shared']):>10.3f}"
                f"{told['epsilon_spent']:>9.3f}"
            )
        print(f"\nepsilon at delta={DELTA:g}, against the coordinator, for a record\n")
        print(_privacy(folder / HOSPITALS[1]))


def _privacy(folder: Path) -> PrivacyReport:
    """What one agent's program wrote down of what each observer may have learnt."""
    (path,) = folder.glob("*/privacy.json")
    return PrivacyReport.from_dict(json.loads(path.read_text()))


def _problem(rows: pd.DataFrame, columns: list[str]) -> tacita.Problem:
    x, y = rows[columns].to_numpy(), rows["ill"].to_numpy()
    return tacita.from_arrays(x, y, np.zeros(len(y), int), l2=0.05, intercept=True)


def ring_without_coordinator() -> None:
    """DP-Norm between neighbours on a ring: letters carry noise for a stated budget."""
    _, parts = hospitals()
    columns = [c for c in next(iter(parts.values()))[0] if c != "ill"]
    run = {
        "name": "ring",
        "problem": _problem_table(columns),
        "algorithm": {
            "name": "DPNorm",
            "step_size": 0.1,
            "local_steps": 5,
            "alpha": 0.2,
        },
        "graph": {"kind": "ring"},
        "run": {"rounds": ROUNDS},
        "privacy": {"epsilon": EPSILON, "delta": DELTA, "norm": 1.0},
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_federation(folder, {k: v[0] for k, v in parts.items()}, run)
        print("\nThe same hospitals on a ring, DP-Norm, nobody coordinates\n")
        print(
            f"{'hospital':<12}{'alone':>8}{'released':>10}{'epsilon':>9}{'letters':>9}"
        )
        for hospital, (train, test) in parts.items():
            told, models = _result(folder / hospital)
            held, alone = _problem(test, columns), _problem(train, columns).solve()
            print(
                f"{hospital:<12}{held.accuracy(alone):>8.3f}"
                f"{held.accuracy(models['own']):>10.3f}{told['epsilon_spent']:>9.3f}"
                f"{told['sent']:>9}"
            )
        print(f"\nepsilon at delta={DELTA:g}, against a neighbour, for one record\n")
        print(_privacy(folder / HOSPITALS[1]))


if __name__ == "__main__":
    four_hospitals()
    secure_sums()
    ring_without_coordinator()

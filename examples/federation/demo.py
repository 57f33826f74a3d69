"""Two federations of real processes on this machine.

The first: four hospitals, a coordinator and a broker, private Fed-PLT with a stated
epsilon; ends with a report. The hospitals are those of the heart-disease data where a
data folder is named by TACITA_DATA, else synthetic stand-ins. The second: the same four
on a ring, without any coordinator: DP-Norm with a stated epsilon per neighbour.

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
PROGRAM = [sys.executable, "-m", "tacita"]
#: Longest time for each of the two.
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


def run_federation(folder: Path, tables: dict[str, pd.DataFrame], run: dict) -> None:
    """A hub, its broker, and one process per party, until all are done."""
    (folder / "run.toml").write_text(tomli_w.dumps(run))
    children: list[subprocess.Popen] = []
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
                children.append(subprocess.Popen([*PROGRAM, *words]))
            end = time.monotonic() + SECONDS
            for child in children:
                if child.wait(max(1.0, end - time.monotonic())) != 0:
                    raise SystemExit("a party failed; its message stands above")
        finally:
            for child in children:
                broker.stop(child)


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
        "problem": {
            "model": "logistic",
            "columns": columns,
            "target": "ill",
            "classes": ["0", "1"],
            "l2": 0.05,
            "intercept": True,
            "bound": 3.5,  # public: longer rows are scaled down to it
        },
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
        "problem": {
            "model": "logistic",
            "columns": columns,
            "target": "ill",
            "classes": ["0", "1"],
            "l2": 0.05,
            "intercept": True,
            "bound": 3.5,  # public: longer rows are scaled down to it
        },
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
    ring_without_coordinator()

"""What an audit at its defaults finds: planted faults, and the epsilon of sound runs.

    python -m bench.audit_power

Writes the table of docs/explanation-audits.md to bench/results/.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.truth import RESULTS
from tacita.privacy.letters import composition
from tests.audits.faults import (
    DELTA,
    FAULTS,
    ROUNDS,
    SOUND,
    Case,
    forgetful_noise_of_a_mean,
    honest,
    rows,
)

EPSILONS = (1.0, 4.0)
HEADER = ("fault", "claimed", "refuted", "by the curve", "epsilon >=", "if Gaussian >=")


def fault_row(name: str, epsilon: float, seeds: int) -> list[str]:
    """How often a fault is refuted, and what was found on average."""
    case, kept = FAULTS[name](epsilon), composition.noise_of_a_mean
    if "step sizes" in name:  # a fault of the accountant, not of the run
        composition.noise_of_a_mean = forgetful_noise_of_a_mean
    try:
        found = [case.audit(seed=seed) for seed in range(seeds)]
    finally:
        composition.noise_of_a_mean = kept
    return _row(name, found)


def _row(name: str, found: list[Any]) -> list[str]:
    refuted = sum(bool(one.refuted) for one in found)
    curve = sum(bool(one.found.refuted) for one in found)
    return [
        name,
        f"{found[0].claimed_epsilon:.2f}",
        f"{refuted}/{len(found)}",
        f"{curve}/{len(found)}",
        f"{np.mean([one.lower_bound for one in found]):.2f}",
        f"{np.mean([one.gaussian_epsilon for one in found]):.2f}",
    ]


def write(table: list[list[str]], seeds: int, folder: Path) -> None:
    """The table so far, as a page and as numbers."""
    sound = [row for row in table if row[0].startswith("none")]
    alarms = sum(int(row[2].split("/")[0]) for row in sound)
    folder.mkdir(exist_ok=True)
    with (folder / "audit_power.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *table])
    lines = [
        "# What an audit at its defaults finds",
        "",
        f"delta = {DELTA:g}, 99 % confidence, {seeds} audits each, {ROUNDS} rounds.",
        "",
        f"False alarms: {alarms} of {seeds * len(sound)} audits of {len(sound)} sound "
        "runs were refuted.",
        "",
        f"| {' | '.join(HEADER)} |",
        f"|{' --- |' * len(HEADER)}",
        *(f"| {' | '.join(row)} |" for row in table),
    ]
    (folder / "audit_power.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Audit, print, write."""
    parser = argparse.ArgumentParser(description="Audit planted faults.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    began, table = time.perf_counter(), []

    def told(row: list[str]) -> None:
        table.append(row)
        print("\t".join(row), flush=True)
        write(table, asked.seeds, asked.out)

    print("\t".join(HEADER))
    for epsilon in EPSILONS:
        sound = Case(rows(), honest(rows(), epsilon))
        each = [sound.audit(seed=seed) for seed in range(asked.seeds)]
        told(_row(f"none: ServerGD, true epsilon {epsilon:g}", each))
    for name in FAULTS:
        for epsilon in EPSILONS:
            told(fault_row(name, epsilon, asked.seeds))
    for name in [name for name in SOUND if name != "ServerGD"]:  # which is audited
        case = SOUND[name]()
        each = [case.audit(seed=seed) for seed in range(asked.seeds)]
        told(_row(f"none: {name}", each))
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

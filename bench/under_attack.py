"""FedAvg under attack: every rule against every attack, on like data and on unlike.

Ten agents, of which 8 and 9 lie in every round; softmax with a bias from 0, five full
local steps. Like: rows shuffled and dealt. Unlike: agent i holds classes i, i + 1 and
i + 2, each class dealt in turn to its three holders.

    python -m bench.under_attack            digits, 60 rounds with steps of 0.5
    python -m bench.under_attack fashion    Fashion-MNIST, 40 rounds with steps of 0.2

Writes every seed's numbers and their means, beside those of an independent program in
NumPy (under_attack_reference.csv), to bench/results.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

import tacita
from tacita import aggregation, robust
from tacita.tuning import resilience, usual_attacks, usual_rules

AGENTS, LIARS, ROOT_ROWS, SEEDS = 10, (8, 9), 100, 3
KINDS: tuple[str, ...] = ("like", "unlike")
HERE = Path(__file__).parent
#: Where rule and attack are deterministic, both programs should agree this well.
ALIKE = 0.03
#: Cells that depend on what liars draw, or on which rows they or the root have.
DRAWN = ("noise", "backdoor", "backdoor x5")


@dataclass(frozen=True)
class Setting:
    """A data set and how it is learned; rows for training are drawn by the seed."""

    x: np.ndarray
    y: np.ndarray
    test: tuple[np.ndarray, np.ndarray]
    side: int  # of a picture
    step_size: float
    rounds: int
    rows: int
    attacks: tuple[str, ...]
    rules: tuple[str, ...] | None = None


def digits() -> Setting:
    """Digits of scikit-learn; every fifth row for testing."""
    x, y = load_digits(return_X_y=True)
    x, y = np.asarray(x) / 16, np.asarray(y)
    test = np.arange(len(y)) % 5 == 0
    attacks = ("sign x1", "sign x10", "ipm 0.5", "ipm 10", "alie 1.5", "label flip")
    attacks += ("mimic", "noise", "backdoor", "backdoor x5")
    how = (8, 0.5, 60, int(np.sum(~test)), attacks)
    return Setting(x[~test], y[~test], (x[test], y[test]), *how)


def fashion() -> Setting:
    """Fashion-MNIST pooled to 14 x 14, 300 rows an agent."""
    train = tacita.data.load("fashion-mnist")
    assert train.test_x is not None and train.test_y is not None
    x, held = pooled(train.x), pooled(train.test_x[:4000])
    attacks = ("sign x10", "ipm 0.5", "alie 1.5", "label flip", "mimic", "backdoor x5")
    rules = ("TrimmedMean", "GeometricMedian", "MultiKrum", "NormBound")
    rules += ("CenteredClipping", "NNM + TrimmedMean")
    how = (14, 0.2, 40, 300 * AGENTS, attacks, rules)
    return Setting(x, train.y, (held, train.test_y[:4000]), *how)


def pooled(x: np.ndarray) -> np.ndarray:
    """Means of two by two pixels, flat."""
    return np.asarray(x).reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)


SETTINGS = {"digits": digits, "fashion": fashion}


def problem_of(
    setting: Setting, like: bool, seed: int, root: bool = False
) -> tacita.Problem:
    """The agents' rows in the order in which they were shuffled."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(setting.y))[: setting.rows]
    rows, labels = setting.x[order], setting.y[order]
    who = np.arange(len(labels)) % AGENTS
    if not like:
        for one in range(10):
            mine = np.flatnonzero(labels == one)
            holders = np.array([one - 2, one - 1, one]) % AGENTS
            who[mine] = holders[np.arange(len(mine)) % 3]
    if root:
        drawn = random.permutation(len(setting.y))[:ROOT_ROWS]
        rows = np.vstack([rows, setting.x[drawn]])
        labels = np.concatenate([labels, setting.y[drawn]])
        who = np.concatenate([who, np.full(ROOT_ROWS, AGENTS)])
    return tacita.from_arrays(
        rows,
        labels,
        who,
        model="softmax",
        intercept=True,
        test=setting.test,
        dtype="float64",
    )


def table(setting: Setting, like: bool, seed: int) -> dict[tuple[str, str], float]:
    """(rule, attack) -> accuracy on test rows; of a backdoor its success."""
    how = tacita.FedAvg(step_size=setting.step_size, local_steps=5)
    last = setting.side - 1
    corners = (0, last, last * setting.side, setting.side**2 - 1)
    trigger = {"features": corners, "target": 0.0, "agents": LIARS}
    found: dict[tuple[str, str], float] = {}
    for root in (False, True):
        problem = problem_of(setting, like, seed, root)
        attacks = usual_attacks(problem, LIARS) | {
            "backdoor": robust.Backdoor(**trigger),
            "backdoor x5": robust.Backdoor(**trigger, scale=AGENTS / len(LIARS)),
        }
        rules = usual_rules(AGENTS, len(LIARS))
        trust: dict = {"FLTrust": aggregation.FLTrust(root=AGENTS)}
        made = resilience(
            problem,
            how,
            setting.rounds,
            liars=LIARS,
            rules=trust if root else _some(rules, setting.rules),
            attacks=_some(attacks, setting.attacks),
            score=_score(problem),
        )
        for rule, values in zip(made.rules, made.values, strict=True):
            if not (root and rule == "Mean"):
                for attack, value in zip(made.attacks, values, strict=True):
                    found[rule, attack] = float(value)
        if not root:
            found["honest alone", "none"] = made.alone
    return found


def _some(known: dict, wanted: tuple[str, ...] | None) -> dict:
    return known if wanted is None else {name: known[name] for name in wanted}


def _score(problem: tacita.Problem) -> Callable[[Any, Any], float]:
    test, predict = problem.population.test, problem.model.predict
    assert test is not None
    y = np.asarray(test.y)

    def score(w: Any, attack: Any) -> float:
        if isinstance(attack, robust.Backdoor):
            marked = attack.triggered(np.asarray(test.x)[y != attack.target])
            return float(np.mean(predict(w, jnp.asarray(marked)) == attack.target))
        return float(np.mean(np.asarray(predict(w, test.x)) == y))

    return score


def tables(name: str, kind: str) -> list[dict[tuple[str, str], float]]:
    """All seeds of one kind of data."""
    setting = SETTINGS[name]()
    return [table(setting, kind == "like", seed) for seed in range(SEEDS)]


def reference(name: str) -> dict[tuple[str, str], tuple[float, float]]:
    """What the other program found."""
    with (HERE / "under_attack_reference.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["data"] == name]
    return {
        (row["rule"], row["attack"]): (float(row["like"]), float(row["unlike"]))
        for row in rows
    }


def told(name: str, found: dict[str, list[dict]]) -> list[str]:
    """The table in Markdown, and where it differs from the other program's."""
    cells = list(found["like"][0])
    mean = {
        (*cell, kind): float(np.mean([one[cell] for one in found[kind]]))
        for cell in cells
        for kind in KINDS
    }
    rules = list(dict.fromkeys(rule for rule, _ in cells))
    attacks = list(dict.fromkeys(attack for _, attack in cells))
    lines = [
        f"# FedAvg under attack: {name}",
        "",
        f"Accuracy on like, unlike data (of backdoors their success), mean of {SEEDS} "
        f"seeds; made by `python -m bench.under_attack {name}`.",
        "",
        "| rule | " + " | ".join(attacks) + " |",
        "|---" * (len(attacks) + 1) + "|",
    ]
    for rule in rules:
        shown = [
            ", ".join(f"{mean[rule, attack, kind]:.3f}" for kind in KINDS)
            if (rule, attack) in cells
            else ""
            for attack in attacks
        ]
        lines.append(f"| {rule} | " + " | ".join(shown) + " |")
    known = reference(name)
    both = [cell for cell in cells if cell in known]
    off = {
        (*cell, kind): mean[(*cell, kind)] - known[cell][k]
        for cell in both
        for k, kind in enumerate(KINDS)
    }
    far = {cell: gap for cell, gap in off.items() if abs(gap) > ALIKE}
    drawn = [c for c in far if c[1] in DRAWN or c[0] == "FLTrust"]
    lines += [
        "",
        "What is drawn: liars' noise is a standard normal number in every entry, added "
        "to the last model, and the mean follows its last draw; a backdoor marks the "
        "first half of a liar's shuffled rows; FLTrust's root are 100 rows of all. The "
        "other program does not say how large its noise is, nor which half it marks. "
        "Nor does it say how rows are dealt out and which rows are the root: of six "
        "dealings and 13 draws those were taken whose accuracies agree best.",
        "",
        f"Beside the other program: {len(off) - len(far)} of {len(off)} cells within "
        f"{ALIKE}, {len(far) - len(drawn)} further off where rule and attack are "
        f"deterministic, {len(drawn)} where rows or noise are drawn.",
        "",
    ]
    lines += [
        f"- {rule}, {attack}, {kind}: {mean[rule, attack, kind]:.3f}, there "
        f"{mean[rule, attack, kind] - gap:.3f}"
        for (rule, attack, kind), gap in far.items()
    ]
    return lines


def main() -> None:
    """Run, print, write."""
    name = sys.argv[1] if len(sys.argv) > 1 else "digits"
    began = time.perf_counter()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        made = pool.map(tables, [name] * 2, KINDS)
        found = dict(zip(KINDS, made, strict=True))
    lines = told(name, found)
    print("\n".join(lines))
    print(f"\n{time.perf_counter() - began:.0f} s")
    out = HERE / "results"
    (out / f"under_attack_{name}.md").write_text("\n".join(lines) + "\n")
    with (out / f"under_attack_{name}.csv").open("w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("kind", "seed", "rule", "attack", "value"))
        for kind, seeds in found.items():
            for seed, values in enumerate(seeds):
                for cell, value in values.items():
                    writer.writerow((kind, seed, *cell, f"{value:.6f}"))


if __name__ == "__main__":
    main()

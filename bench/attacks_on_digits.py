"""FedAvg under attack on digits: every rule against every attack, like data and unlike.

Ten agents, of which 8 and 9 lie in every round; softmax with a bias from 0, five full
local steps of 0.5, 60 rounds. Like: rows shuffled and dealt. Unlike: agent i holds
classes i, i + 1 and i + 2. Run it with `python -m bench.attacks_on_digits`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import tacita
from tacita import aggregation, robust
from tacita.tuning.resilience import Resilience, resilience, usual_attacks, usual_rules

AGENTS, LIARS, ROUNDS, ROOT_ROWS = 10, (8, 9), 60, 100
#: The corner pixels, of eight by eight.
CORNERS = (0, 7, 56, 63)
OUT = Path(__file__).parent / "results" / "attacks_on_digits.json"


def dealt(y: np.ndarray, like: bool, random: np.random.Generator) -> np.ndarray:
    """Which agent holds which row."""
    who = np.empty(len(y), int)
    if like:
        who[random.permutation(len(y))] = np.arange(len(y)) % AGENTS
        return who
    for one in range(10):
        rows = random.permutation(np.flatnonzero(y == one))
        holders = [(one - k) % AGENTS for k in range(3)]
        who[rows] = np.array(holders)[np.arange(len(rows)) % 3]
    return who


def problem_of(like: bool, seed: int, root: bool = False) -> tacita.Problem:
    """Digits of scikit-learn; every fifth row for testing, a root set if wanted."""
    digits = load_digits()
    x, y = digits.data / 16, digits.target
    test = np.arange(len(y)) % 5 == 0
    random = np.random.default_rng(seed)
    rows, labels = x[~test], y[~test]
    who = dealt(labels, like, random)
    if root:
        drawn = random.choice(len(rows), ROOT_ROWS, replace=False)
        rows = np.vstack([rows, rows[drawn]])
        labels = np.concatenate([labels, labels[drawn]])
        who = np.concatenate([who, np.full(ROOT_ROWS, AGENTS)])
    return tacita.from_arrays(
        rows,
        labels,
        who,
        model="softmax",
        intercept=True,
        test=(x[test], y[test]),
        name="digits",
    )


def table(like: bool, seed: int) -> dict[str, dict[str, float]]:
    """Rule -> attack -> accuracy, of a backdoor its success."""
    how = tacita.FedAvg(step_size=0.5, local_steps=5)
    rows: dict[str, dict[str, float]] = {}
    for root in (False, True):
        problem = problem_of(like, seed, root)
        trigger = {"features": CORNERS, "target": 0.0, "agents": LIARS}
        attacks = usual_attacks(problem, LIARS) | {
            "backdoor": robust.Backdoor(**trigger),
            "backdoor x5": robust.Backdoor(**trigger, scale=AGENTS / len(LIARS)),
        }
        test = problem.population.test
        assert test is not None
        x, y = np.asarray(test.x), np.asarray(test.y)

        def score(w, attack, problem=problem, x=x, y=y):
            if isinstance(attack, robust.Backdoor):
                others = y != attack.target
                said = problem.model.predict(w, attack.triggered(x[others]))
                return float(np.mean(said == attack.target))
            return float(np.mean(problem.model.predict(w, x) == y))

        rules = (
            {"FLTrust": aggregation.FLTrust(root=AGENTS)}
            if root
            else usual_rules(AGENTS, len(LIARS))
        )
        found: Resilience = resilience(
            problem, how, ROUNDS, liars=LIARS, rules=rules, attacks=attacks, score=score
        )
        for name, values in zip(found.rules, found.values, strict=True):
            if not (root and name == "Mean"):
                rows[name] = dict(zip(found.attacks, values.tolist(), strict=True))
        if not root:
            rows["honest alone"] = {"none": found.alone}
    return rows


def main() -> None:
    """Print the table, and write it down."""
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    began = time.perf_counter()
    found = {
        kind: [table(kind == "like", seed) for seed in seeds]
        for kind in ("like", "unlike")
    }
    mean = {
        kind: {
            rule: {a: float(np.mean([t[rule][a] for t in tables])) for a in row}
            for rule, row in tables[0].items()
        }
        for kind, tables in found.items()
    }
    seconds = time.perf_counter() - began
    attacks = list(mean["like"]["Mean"])
    print("like, unlike".ljust(24), *(a.rjust(12) for a in attacks))
    for rule in mean["like"]:
        cells = [
            f"{mean['like'][rule][a]:.3f},{mean['unlike'][rule][a]:.3f}".rjust(12)
            for a in attacks
            if a in mean["like"][rule]
        ]
        print(rule.ljust(24), *cells)
    print(f"{len(seeds)} seeds, {seconds:.0f} s")
    OUT.write_text(json.dumps({"seeds": len(seeds), **mean}, indent=1) + "\n")


if __name__ == "__main__":
    main()

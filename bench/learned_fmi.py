"""Weather stations: are learnt graphs better than the map?

Every station's linear model is trained by GTVMin on the first 70 % of all rows in time
and judged on the last 30 %, which nothing has seen: no graph, no k, no strength.
Neighbours k in 2, 4, 8 and 13 strengths are chosen by rows held out of the training
part, in the same way for every graph, the map's included.

`python -m bench.learned_fmi [TABLE ...]` writes results/learned_fmi.md and .csv.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import tacita
from tacita.problem import graph
from tacita.problem.held_out import node_losses
from tacita.trees import replace

RESULTS = Path(__file__).parent / "results"
LAST, L2, KS, REPEATS = 0.3, 0.01, (2, 4, 8), 3
#: Stations with fewer rows to train on are left out, for all graphs alike.
FEWEST = 7
TABLES = {
    "daily": {"table": "daily", "lags": 2},
    "hourly": {"table": "hourly", "lags": 3},
    "january": {"table": "january"},
    "windows": {"table": "windows"},
}
LEARNT = {
    "parameters": ("parameters", "nearest"),
    "gradient at the mean": ("gradient", "nearest"),
    "moments": ("moments", "nearest"),
    "cross loss": ("cross_loss", "nearest"),
    "Wald": ("wald", "nearest"),
    "parameters, log-degree": ("parameters", "log_degree"),
}
MAP = "distance on the map"
CAUTION = (
    "Read it with care. One split in time a table, one list of k. Compare with one "
    "model for all, too: where that beats the map as well, much of what a learnt graph "
    "gains is that it pools stations that are far apart. The rows by which k and the "
    "strength are chosen are drawn at random in time, so that stations nearby, which "
    "had the same weather on the same days, look better in the choice than they are "
    "later on; this may be why the map was given only two neighbours."
)


def stations(options: dict) -> tuple[tacita.Problem, tacita.Problem]:
    """What is trained on, and the last rows in time of the same stations."""
    loaded = tacita.data.load("fmi", scale="standard", test_share=LAST, **options)
    assert loaded.agent is not None and loaded.positions is not None
    assert loaded.test_agent is not None
    count = np.bincount(loaded.agent, minlength=loaded.n_agents)
    kept = np.flatnonzero(count >= FEWEST)
    number = np.full(loaded.n_agents + 1, -1)  # of agent -1 too: it has no rows
    number[kept] = np.arange(len(kept))
    problems = []
    for x, y, agent in (
        (loaded.x, loaded.y, loaded.agent),
        (loaded.test_x, loaded.test_y, loaded.test_agent),
    ):
        mine = number[agent] >= 0
        problems.append(
            tacita.from_arrays(
                np.asarray(x)[mine],
                np.asarray(y)[mine],
                number[agent][mine],
                model="ridge",
                l2=L2,
                intercept=True,
                unlabelled=sorted({*range(len(kept))} - {*number[agent][mine]}),
                name=loaded.name,
            )
        )
    return replace(problems[0], positions=loaded.positions[kept]), problems[1]


def by_map(problem: tacita.Problem) -> tuple[int, float, np.ndarray]:
    """The graph of the map: its k and strength chosen as for the others."""
    places = graph.kilometres(problem.positions)
    found = []
    for k in KS:
        near = replace(problem, graph=graph.nearest_neighbours(places, k))
        tuned = tacita.tune(tacita.GTVMin(near, 1.0), repeats=REPEATS)
        best = min(tuned.trials, key=lambda trial: trial.validation)
        found.append((best.validation, k, tuned))
    _, k, tuned = min(found, key=lambda one: one[0])
    return k, tuned.alpha, tuned.gtv.solve()


def baselines(problem: tacita.Problem) -> dict[str, np.ndarray]:
    """Every station alone, and one model for all."""
    own = tacita.problem.representations(problem)
    one = np.broadcast_to(problem.solve(), own.shape)
    return {"every station alone": own, "one model for all": one}


def measure(table: str) -> pd.DataFrame:
    """Test errors of every graph on a table, and differences to the map."""
    rows = []
    train, test = stations(TABLES[table])
    k, alpha, models = by_map(train)
    base = node_losses(test, models)
    results = {MAP: (k, alpha, base)}
    for name, made in baselines(train).items():
        results[name] = (None, None, node_losses(test, made))
    for name, (discrepancy, method) in LEARNT.items():
        try:
            found = tacita.tune(
                train,
                discrepancy=discrepancy,
                method=method,
                ks=KS,
                repeats=REPEATS,
            )
        except tacita.TacitaError as refusal:
            print(f"{table}, {name}: {refusal}")
            continue
        errors = node_losses(test, found.gtv.solve())
        results[name] = (found.k, found.alpha, errors)
    for name, (k, alpha, errors) in results.items():
        gap = errors - base
        rows.append(
            {
                "table": table,
                "graph": name,
                "k": k,
                "alpha": alpha,
                "test_error": np.nanmean(errors),
                "less_the_map": np.nanmean(gap),
                "se": np.nanstd(gap) / np.sqrt(np.isfinite(gap).sum() - 1),
            }
        )
        print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def page(found: pd.DataFrame) -> str:
    """The tables, and what they say."""
    lines = [
        "# Weather stations: learnt graphs against the map",
        "",
        "Mean squared error, in degrees squared, over stations, on the last 30 % of"
        " rows in time. k and the strength are chosen on the first 70 % alone, alike"
        " for every graph. Behind +-: the standard error of the difference to the map"
        " over stations, which are not independent: it flatters. Written by"
        " `python -m bench.learned_fmi`.",
    ]
    for table in found.table.unique():
        part = found[found.table == table]
        lines += [
            "",
            f"## {table}",
            "",
            "| graph | k | alpha | test error | less the map |",
        ]
        lines += ["| --- | --- | --- | --- | --- |"]
        for row in part.to_dict("records"):
            chosen = "" if np.isnan(row["k"]) else f"{row['k']:.0f}"
            alpha = "" if np.isnan(row["alpha"]) else f"{row['alpha']:.3g}"
            gap = f"{row['less_the_map']:+.4f} +- {row['se']:.4f}"
            told = "" if row["graph"] == MAP else gap
            cells = (row["graph"], chosen, alpha, f"{row['test_error']:.4f}", told)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", "## What it says", "", verdict(found)]) + "\n"


def verdict(found: pd.DataFrame) -> str:
    """In words, from the numbers."""
    said = []
    for table in found.table.unique():
        every = found[found.table == table]
        part = every[every.graph.isin(LEARNT)]
        better = part[part.less_the_map < -2 * part.se]
        worse = part[part.less_the_map > 2 * part.se]
        best = every.loc[every.test_error.idxmin(), "graph"]
        said.append(
            f"{table}: of {len(part)} learnt graphs, better than the map by more than "
            f"two standard errors: {', '.join(better.graph) or 'none'}; worse: "
            f"{', '.join(worse.graph) or 'none'}. Best of all: {best}."
        )
    return "\n".join([f"- {one}" for one in said] + ["", CAUTION])


def main() -> None:
    """Measure the tables that are named, or all; those of earlier calls stay."""
    kept = RESULTS / "learned_fmi.csv"
    for table in sys.argv[1:] or TABLES:
        found = measure(table)
        if kept.exists():
            before = pd.read_csv(kept)
            found = pd.concat([before[before.table != table], found])
        found.to_csv(kept, index=False, float_format="%.6g")
        (RESULTS / "learned_fmi.md").write_text(page(pd.read_csv(kept)))
    print((RESULTS / "learned_fmi.md").read_text())


if __name__ == "__main__":
    main()

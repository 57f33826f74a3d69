"""Weather stations: a model for each, held together along a map.

python examples/weather_stations.py [FOLDER]

Tells tomorrow's highest temperature at 193 Finnish stations from the last five days.
The text that goes with it is docs/tutorial-weather-stations.md; pictures and a report
go into FOLDER (runs/weather-stations if left out).
"""

import os
import sys
from pathlib import Path

import numpy as np

import tacita
from tacita import data
from tacita.problem import graph
from tacita.report import write_report
from tacita.theme import LIGHT, dress, new_figure, png

ALPHAS = (0.1, 1.0, 10.0, 100.0, 1000.0)
PENALTIES = (0.1, 1.0)  # of ||w||^2 / 2, chosen by validation as well


class Days:
    """Rows in three parts of time: train, validation, test; every station has all."""

    def __init__(self, changes: bool):
        fmi = data.load("fmi", table="daily", test_share=0.2)
        self.stations, self.positions = fmi.agent_names, fmi.positions
        self.last = fmi.feature_names.index("tmax -1")
        self.changes = changes
        late = self._last_quarter(fmi.agent)
        self.parts = {
            "train": (fmi.x[~late], fmi.y[~late], fmi.agent[~late]),
            "validation": (fmi.x[late], fmi.y[late], fmi.agent[late]),
            "test": (fmi.test_x, fmi.test_y, fmi.test_agent),
        }
        x = self._seen(self.parts["train"][0])
        self.middle, self.spread = x.mean(axis=0), x.std(axis=0)

    @staticmethod
    def _last_quarter(agent):
        """The last quarter of every station's rows, which are in the order of time."""
        late = np.zeros(len(agent), bool)
        for i in range(agent.max() + 1):
            rows = np.flatnonzero(agent == i)
            late[rows[int(0.75 * len(rows)) :]] = True
        return late

    def _seen(self, x):
        """Features: temperatures, or how far they are from the last maximum."""
        if not self.changes:
            return x
        return np.delete(x - x[:, [self.last]], self.last, axis=1)

    def rows(self, part):
        """What a model gets: scaled features, target, station."""
        x, y, station = self.parts[part]
        target = y - x[:, self.last] if self.changes else y
        return (self._seen(x) - self.middle) / self.spread, target, station

    def persistence(self, part):
        """Mean squared error, station by station, of "as today"."""
        x, y, station = self.parts[part]
        return by_station((y - x[:, self.last]) ** 2, station)


def by_station(values, station):
    """The mean of `values` over the rows of every station."""
    return np.bincount(station, values) / np.bincount(station)


def errors(models, rows):
    """Mean squared error of every station's model on rows of its own."""
    x, y, station = rows
    told = np.sum(np.c_[x, np.ones(len(x))] * models[station], axis=1)
    return by_station((told - y) ** 2, station)


def problem_of(days, l2, network):
    """Ridge regression at every station."""
    return tacita.from_arrays(
        *days.rows("train"),
        model="ridge",
        l2=l2,
        intercept=True,
        graph=network,
        name="weather stations",
    )


def candidates(days, network):
    """Models by method, alpha and penalty: (method, alpha, l2) -> (N, d)."""
    found = {}
    for l2 in PENALTIES:
        problem = problem_of(days, l2, network)
        shape = (problem.n_agents, problem.dim)
        found["local only", 0.0, l2] = tacita.GTVMin(problem, 0.0).solve()
        found["one model", np.inf, l2] = np.broadcast_to(problem.solve(), shape)
        for alpha in ALPHAS:
            found["GTVMin", alpha, l2] = tacita.GTVMin(problem, alpha).solve()
    return found


def choose(days, found, method):
    """The choice of that method that has the least validation error."""
    mean = {
        key: errors(models, days.rows("validation")).mean()
        for key, models in found.items()
        if key[0] == method
    }
    return min(mean, key=mean.get)


def compare(days, found):
    """Print the mean test error of every method; return the choice for GTVMin."""
    reference = days.persistence("test")
    print(f"{'persistence':12}{'':22}{reference.mean():10.2f}")
    for method in ("local only", "one model", "GTVMin"):
        key = choose(days, found, method)
        test = errors(found[key], days.rows("test"))
        told = f"alpha {key[1]:g}, l2 {key[2]:g}"
        wins = int(np.sum(test > reference))
        print(
            f"{method:12}{told:22}{test.mean():10.2f}"
            f"   persistence wins at {wins} of {len(test)} stations"
        )
    return choose(days, found, "GTVMin")


def draw(days, found, key, file):
    """Validation and test error against alpha."""
    figure = new_figure(LIGHT, 6.4, 3.8)
    axes = figure.subplots()
    dress(axes, LIGHT)
    for colour, part in zip(LIGHT.series, ("validation", "test"), strict=False):
        curve = [
            errors(found["GTVMin", alpha, key[2]], days.rows(part)).mean()
            for alpha in ALPHAS
        ]
        axes.plot(ALPHAS, curve, "o-", color=colour, label=f"{part}: GTVMin")
        level = days.persistence(part).mean()
        axes.axhline(level, color=colour, ls=":", label=f"{part}: persistence")
        single = errors(found["one model", np.inf, key[2]], days.rows(part)).mean()
        axes.axhline(single, color=colour, ls="--", lw=1, label=f"{part}: one model")
    axes.set_xscale("log")
    axes.set_xlabel("alpha")
    axes.set_ylabel("mean squared error (degrees squared)")
    axes.legend(frameon=False, fontsize=8.5, ncols=2, labelcolor=LIGHT.ink)
    file.write_bytes(png(figure))


def main(folder):
    """Compare both ways of asking, then run and report the better one."""
    for changes in (False, True):
        days = Days(changes)
        kilometres = graph.kilometres(days.positions)
        network = graph.nearest_neighbours(kilometres, k=4)
        print(f"\npredicting {'changes' if changes else 'temperatures'}: test error")
        found = candidates(days, network)
        key = compare(days, found)
    _, alpha, l2 = key
    problem = problem_of(days, l2, network)
    run = tacita.simulate(
        problem, tacita.FedRelax(alpha=alpha), 3000, record=("loss",), record_every=100
    )
    gap = np.abs(run.agents - found[key]).max()
    print(f"\nFedRelax, 3000 rounds: within {gap:.1e} of the exact solution")
    told = tacita.validate(
        problem,
        run,
        days.rows("test"),
        intercept=True,
        baseline=days.persistence("test"),
        baseline_name="persistence",
        positions=days.positions,
    )
    print(told)
    folder.mkdir(parents=True, exist_ok=True)
    draw(days, found, key, folder / "alpha.png")
    print("report:", write_report(told.attach(run), folder, title="Weather stations"))


if __name__ == "__main__":
    if not os.environ.get("TACITA_DATA"):
        print("skipped: TACITA_DATA names no folder with the data sets")
        sys.exit()
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/weather-stations"))

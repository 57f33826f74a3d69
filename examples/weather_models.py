"""Trees at half of the weather stations, ridge regressions at the others.

python examples/weather_models.py

Such models have no parameters in common; they are coupled by what they predict on
shared points without labels (model-agnostic FedRelax).
"""

import os
import sys

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor
from weather_stations import Days

import tacita
from tacita.problem import graph
from tacita.variants import estimator_network

ALPHAS = (0.3, 1.0, 3.0)
ROUNDS = 4


def models(stations):
    """A tree at every second station, a ridge regression at the others."""
    kinds = (Ridge(alpha=10.0), DecisionTreeRegressor(max_depth=3, random_state=0))
    return [kinds[i % 2] for i in range(stations)]


def network_of(days, shared_points=150):
    """Stations with their rows, models and the shared points."""
    x, y, station = days.rows("train")
    chosen = np.random.default_rng(0).choice(len(x), shared_points, replace=False)
    near = graph.nearest_neighbours(graph.kilometres(days.positions), k=4)
    fitted = models(len(days.stations))
    return estimator_network(x, y, station, fitted, near, shared=x[chosen])


def main():
    """Choose alpha by validation, then look at the test rows."""
    days = Days(changes=True)
    network = network_of(days)
    print(network)
    print(f"{'':14}{'validation':>12}{'test':>8}{'trees':>8}{'ridge':>8}")
    reference = days.persistence("test")
    best = None
    for alpha in (0.0, *ALPHAS):
        run = tacita.simulate_estimators(
            network,
            tacita.ModelAgnosticFedRelax(alpha=alpha),
            ROUNDS if alpha else 1,
            validation=days.rows("validation"),
        )
        level = run.metrics["validation_error"][-1]
        test = run.errors(*days.rows("test"))
        label = f"alpha {alpha:g}" if alpha else "local only"
        halves = f"{test[1::2].mean():8.2f}{test[::2].mean():8.2f}"
        print(f"{label:14}{level:12.2f}{test.mean():8.2f}{halves}")
        if best is None or level < best[0]:
            best = (level, alpha, test)
    level = days.persistence("validation").mean()
    halves = f"{reference[1::2].mean():8.2f}{reference[::2].mean():8.2f}"
    print(f"{'persistence':14}{level:12.2f}{reference.mean():8.2f}{halves}")
    wins = int(np.sum(best[2] > reference))
    told = f"persistence still wins at {wins} of {len(reference)} stations"
    print(f"chosen by validation: alpha {best[1]:g}; {told}")


if __name__ == "__main__":
    if not os.environ.get("TACITA_DATA"):
        print("skipped: TACITA_DATA names no folder with the data sets")
        sys.exit()
    main()

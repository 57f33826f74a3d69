"""A hyper-model: a start of its own for every weather station, also for new ones.

python examples/hyper_model.py

Tells a day's highest temperature in August from the day and its lowest temperature. How
these go together depends on where a station is: a hyper-model learns from two thirds of
the stations how parameters follow latitude and longitude. The others, who have six days
of rows each, start from what it makes of their places.
"""

import numpy as np

import tacita
from tacita import data
from tacita.problem import graph
from tacita.variants import hyper_model

ROUNDS = (0, 5, 20, 100)
fmi = data.load("fmi", table="august", scale="standard")
described = (fmi.positions - fmi.positions.mean(axis=0)) / fmi.positions.std(axis=0)
new = np.arange(fmi.n_agents) % 3 == 2
number = np.where(new, np.cumsum(new), np.cumsum(~new)) - 1  # among new, among old
turn = np.concatenate([np.arange(n) for n in np.bincount(fmi.agent)])
kept = np.zeros(len(turn), bool)  # every fifth day, of new stations' training
kept[np.argsort(fmi.agent, kind="stable")] = turn % 5 == 2


def problem_of(chosen, rows):
    """Linear models of stations, coupled with their four nearest."""
    near = graph.nearest_neighbours(graph.kilometres(fmi.positions[chosen]), k=4)
    return tacita.from_arrays(
        fmi.x[rows],
        fmi.y[rows],
        number[fmi.agent[rows]],
        model="linear",
        intercept=True,
        graph=near,
    )


old = problem_of(~new, ~new[fmi.agent])
fresh = problem_of(new, new[fmi.agent] & kept)
hyper = hyper_model(old, described[~new])
starts = {
    "zero": np.zeros((fresh.n_agents, fresh.dim)),
    "one model for all": np.tile(old.solve(), (fresh.n_agents, 1)),
    "hyper-model": hyper.start(hyper.problem.solve(), described[new]),
}
others = new[fmi.agent] & ~kept
seen = np.column_stack([fmi.x[others], np.ones(others.sum())])


def error(models):
    """Root mean squared error on the other days of the new stations, in degrees."""
    said = np.sum(seen * models[number[fmi.agent[others]]], axis=1)
    return float(np.sqrt(np.mean((said - fmi.y[others]) ** 2)))


print(f"{old.n_agents} stations train, {fresh.n_agents} with six days each begin")
print("root mean squared error on their other days, after rounds of FedGD")
print(f"{'start':20}" + "".join(f"{r:>8}" for r in ROUNDS))
algorithm = tacita.FedGD(alpha=0.1, need_connected=False)
for name, start in starts.items():
    models, done, errors = start, 0, []
    for rounds in ROUNDS:
        if rounds > done:
            run = tacita.simulate(
                fresh, algorithm, rounds - done, start=models, record=()
            )
            models, done = run.agents, rounds
        errors.append(error(models))
    print(f"{name:20}" + "".join(f"{e:8.2f}" for e in errors))

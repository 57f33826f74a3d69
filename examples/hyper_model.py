"""A hyper-model: a start of its own for every weather station, also for new ones.

python examples/hyper_model.py

Tells tomorrow's highest temperature from the last five days. Stations on a map of
Finland differ by where they are: a hyper-model learns, from two thirds of them, how
parameters depend on latitude and longitude, and starts the training of all others, who
have eight days of rows each.
"""

import numpy as np

import tacita
from tacita import data
from tacita.problem import graph
from tacita.variants import hyper_model

ROUNDS = (0, 5, 20, 100)
fmi = data.load("fmi", table="daily", test_share=0.2)
middle, spread = fmi.x.mean(axis=0), fmi.x.std(axis=0)
places = fmi.positions
described = (places - places.mean(axis=0)) / places.std(axis=0)
new = np.arange(fmi.n_agents) % 3 == 2


def rows_of(chosen, most=None):
    """Rows of some stations, numbered from 0, the first `most` of each."""
    number = np.cumsum(chosen) - 1
    kept = np.zeros(len(fmi.agent), bool)
    for i in np.flatnonzero(chosen):
        kept[np.flatnonzero(fmi.agent == i)[:most]] = True
    x = (fmi.x[kept] - middle) / spread
    return x, fmi.y[kept], number[fmi.agent[kept]]


def problem_of(chosen, most=None):
    """Linear models of stations, coupled with their four nearest."""
    near = graph.nearest_neighbours(graph.kilometres(places[chosen]), k=4)
    return tacita.from_arrays(
        *rows_of(chosen, most), model="linear", intercept=True, l2=0.1, graph=near
    )


old, fresh = problem_of(~new), problem_of(new, most=8)
hyper = hyper_model(old, described[~new], l2=0.01)
trained = hyper.problem.solve()
starts = {
    "zero": np.zeros((fresh.n_agents, fresh.dim)),
    "one model for all": np.tile(old.solve(), (fresh.n_agents, 1)),
    "hyper-model": hyper.start(trained, described[new]),
}
later = new[fmi.test_agent]
place = (np.cumsum(new) - 1)[fmi.test_agent[later]]
seen = (fmi.test_x[later] - middle) / spread
seen = np.column_stack([seen, np.ones(len(seen))])


def error(models):
    """Root mean squared error on later days of the new stations."""
    said = np.sum(seen * models[place], axis=1)
    return float(np.sqrt(np.mean((said - fmi.test_y[later]) ** 2)))


print(f"{old.n_agents} stations train, {fresh.n_agents} with 8 days each begin")
print("root mean squared error on later days, after so many rounds of FedGD")
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

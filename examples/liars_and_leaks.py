"""Exercises 10.1 to 10.3 of A. Jung, "Federated Learning: From Theory to Practice".

python examples/liars_and_leaks.py

Reads a data set back from gradients, spoils a weather station's predictions by lying
about others' labels, and hides a backdoor in one hour of the day.
"""

import numpy as np

import tacita
from tacita import data, robust
from tacita.aggregation import Median
from tacita.privacy import inversion
from tacita.problem import graph

TARGET = 60  # the station whose predictions are attacked


def read_back(features: int = 4, rows: int = 30) -> None:
    """10.1: d + 1 gradients of plain descent tell all of X'X/m and X'y/m."""
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, features))
    y = x @ random.standard_normal(features)
    print("10.1 reading X'X/m back from gradients of plain descent")
    for noise in (0.0, 1e-3, 1e-1):
        points, gradients = [np.zeros(features)], []
        for _ in range(features + 1):
            exact = 2 * x.T @ (x @ points[-1] - y) / rows
            gradients.append(exact + noise * random.standard_normal(features))
            points.append(points[-1] - 0.1 * gradients[-1])
        found = inversion.linear(points[:-1], gradients)
        wrong = np.linalg.norm(found.q - x.T @ x / rows) / np.linalg.norm(found.q)
        print(f"  noise {noise:g} in a gradient: relative error {wrong:.1e}")


def stations() -> tacita.Problem:
    """Highest temperature from the day before's lowest, a model for every station."""
    fmi = data.load("fmi", table="daily", test_share=0.2)
    lowest = fmi.feature_names.index("tmin -1")

    def seen(x: np.ndarray) -> np.ndarray:
        return np.column_stack([x[:, lowest] / 10, np.ones(len(x))])

    assert fmi.positions is not None
    near = graph.nearest_neighbours(fmi.positions, 4)
    return tacita.from_arrays(seen(fmi.x), fmi.y, fmi.agent, model="linear", graph=near)


def deny_service() -> None:
    """10.2: labels + 50 K at the nearest stations, and at many far ones."""
    problem = stations()
    assert problem.graph is not None
    slots = problem.graph.slots
    near = np.asarray(slots.neighbour)[TARGET][np.asarray(slots.mask)[TARGET]]
    far = [i for i in range(problem.n_agents) if i != TARGET and i not in near][-40:]
    x, y, counts = problem.stacked()
    rows = slice(0, counts[TARGET])

    def error(attack: robust.Attack | None, rule: Median | None = None) -> float:
        run = tacita.simulate(
            problem,
            tacita.FedRelax(alpha=1.0, need_connected=False),
            rounds=100,
            record=(),
            attack=attack,
            aggregation=rule,
        )
        return float(
            np.mean((x[TARGET, rows] @ run.agents[TARGET] - y[TARGET, rows]) ** 2)
        )

    def lie(agents) -> robust.DenialOfService:
        return robust.DenialOfService(agents=tuple(map(int, agents)), shift=50.0)

    print("10.2 squared error of one station's own rows")
    print(f"  nobody lies {error(None):.3f}")
    print(f"  3 of its {len(near)} neighbours lie {error(lie(near[:3])):.3f}")
    held = error(lie(near[:3]), Median())
    print(f"  the same, joined by a median, which bears fewer than half {held:.3f}")
    print(f"  40 stations that are no neighbours lie {error(lie(far)):.3f}")


def back_door(nodes: int = 8, hours: int = 6) -> None:
    """10.3: rows of one hour + 200 K at neighbours of a node."""
    random = np.random.default_rng(0)
    hour = np.tile(np.arange(hours), 4 * nodes)
    y = 10 + random.standard_normal(len(hour))
    problem = tacita.from_arrays(
        np.eye(hours)[hour],
        y,
        np.repeat(np.arange(nodes), 4 * hours),
        model="linear",
        graph=graph.complete(nodes),
    )
    how = tacita.FedRelax(alpha=1.0)
    plain = tacita.simulate(problem, how, rounds=200, record=())
    print("10.3 what a backdoor in hour 2 moves at a node, by hour")
    for liars, rule in (((1,), None), ((1, 2, 3), None), ((1, 2, 3), Median())):
        attack = robust.DenialOfService(agents=liars, shift=200.0, feature=2, value=1.0)
        chosen = {"attack": attack, "aggregation": rule, "record": ()}
        moved = tacita.simulate(problem, how, 200, **chosen).agents[0] - plain.agents[0]
        name = "the mean" if rule is None else "a median"
        print(f"  {len(liars)} liars, {name}: {np.round(moved, 1).tolist()}")


if __name__ == "__main__":
    read_back()
    deny_service()
    back_door()

"""Exercises 9.1 and 10.1 to 10.4 of A. Jung, "FL: From Theory to Practice".

python examples/liars_and_leaks.py

Finds a weather station by what it answers, reads a data set back from gradients, spoils
a station's predictions by lying about others' labels, hides a backdoor in one hour of
the day, and fits a line that a wild label does not move.
"""

from typing import Any

import numpy as np

import tacita
from tacita import data, robust
from tacita.aggregation import Median
from tacita.privacy import inversion
from tacita.problem import Absolute, graph

HOUR, WARMER = 3, 200.0  # the backdoor's trigger, and what it adds


def find_alice() -> None:
    """9.1: four answers of FedGD tell Alice's Q and b, and so which station she is."""
    problem = stations(data.load("fmi", table="daily"))
    x, y, counts = problem.stacked()
    q = np.einsum("nmi,nmj->nij", x, x) / counts[:, None, None]
    b = np.einsum("nmi,nm->ni", x, y) / counts[:, None]
    random = np.random.default_rng(0)
    probes = random.standard_normal((4, 2))
    print("9.1 stations that four answers give away")
    for noise in (0.0, 0.1, 1.0):
        found = 0
        for alice in range(problem.n_agents):
            gradients = 2 * (probes @ q[alice] - b[alice])
            gradients += noise * random.standard_normal(gradients.shape)
            read = inversion.linear(probes, gradients)
            apart = np.abs(q - read.q).sum(axis=(1, 2)) + np.abs(b - read.b).sum(axis=1)
            found += int(apart.argmin() == alice)
        print(f"  noise {noise:g} in an answer: {found} of {problem.n_agents}")


def read_back(features: int = 4, rows: int = 30) -> None:
    """10.1: d + 1 gradients of plain descent tell all of X'X/m and X'y/m.

    Noise spoils that soon, for the points of descent lie close together; a server that
    may choose its points is hardly held up by it.
    """
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, features))
    y = x @ random.standard_normal(features)
    q, chosen = x.T @ x / rows, np.vstack([np.zeros(features), np.eye(features)])
    print("10.1 reading X'X/m back from gradients: the relative error")
    for noise in (0.0, 1e-3, 1e-1):

        def gradient(w: np.ndarray, noise: float = noise) -> np.ndarray:
            exact = 2 * x.T @ (x @ w - y) / rows
            return exact + noise * random.standard_normal(features)

        points, told = [np.zeros(features)], []
        for _ in range(features + 1):
            told.append(gradient(points[-1]))
            points.append(points[-1] - 0.1 * told[-1])
        descent = inversion.linear(points[:-1], told)
        asked = inversion.linear(chosen, [gradient(w) for w in chosen])
        wrong = [np.linalg.norm(r.q - q) / np.linalg.norm(q) for r in (descent, asked)]
        print(
            f"  noise {noise:g} in a gradient: {wrong[0]:.1e} by plain descent, "
            f"{wrong[1]:.1e} at points of the server's choice"
        )


def stations(fmi: data.Dataset, kept: Any = slice(None)) -> tacita.Problem:
    """Highest temperature from the day before's lowest, a model for every station."""
    assert fmi.positions is not None and fmi.agent is not None
    near = graph.nearest_neighbours(fmi.positions, 4)
    return tacita.from_arrays(
        seen(fmi)[kept], fmi.y[kept], fmi.agent[kept], model="linear", graph=near
    )


def seen(fmi: data.Dataset) -> np.ndarray:
    """The day before's lowest temperature, and a one."""
    lowest = fmi.x[:, fmi.feature_names.index("tmin -1")]
    return np.column_stack([lowest / 10, np.ones(len(lowest))])


def deny_service(target: int = 60) -> None:
    """10.2: labels + 50 K at more and more stations, until one fails by 20 %."""
    fmi = data.load("fmi", table="daily")
    assert fmi.positions is not None
    held_out = np.arange(len(fmi.y)) % 3 == 0
    problem = stations(fmi, ~held_out)
    far = np.linalg.norm(fmi.positions - fmi.positions[target], axis=1)
    nearest = [int(i) for i in np.argsort(far)[1:]]
    own = held_out & (fmi.agent == target)
    rows, labels = seen(fmi)[own], fmi.y[own]
    how = tacita.FedGD(alpha=1.0, need_connected=False)

    def error(liars: list[int], rule: Median | None = None) -> float:
        """Of the target's model on its validation rows."""
        lie = robust.DenialOfService(agents=tuple(liars), shift=50.0) if liars else None
        chosen = {"attack": lie, "aggregation": rule, "record": ()}
        run = tacita.simulate(problem, how, 1000, **chosen)
        return float(np.mean((rows @ run.agents[target] - labels) ** 2))

    honest = error([])
    print(f"10.2 validation error of station {target}: {honest:.3f} while nobody lies")
    for count in range(1, 7):
        found = error(nearest[:count])
        print(f"  {count} nearest lie: {found:.3f}, {found / honest - 1:+.0%}")
        if found > 1.2 * honest:
            held = error(nearest[:count], Median())
            print(f"  the same, by a median, which bears few liars: {held:.3f}")
            break
    print(f"  the 40 farthest lie: {error(nearest[-40:]):.3f}")


def back_door(nodes: int = 20) -> None:
    """10.3: the hour as 24 features, one hour's labels + 200 K at some neighbours."""
    fmi = data.load("fmi", table="hourly", features="place")
    assert fmi.agent is not None
    some = fmi.agent < nodes
    hour = np.rint(fmi.x[some][:, -1]).astype(int) % 24
    problem = tacita.from_arrays(
        np.eye(24)[hour],
        fmi.y[some],
        fmi.agent[some],
        model="linear",
        graph=graph.complete(nodes),
    )
    how = tacita.FedRelax(alpha=0.1)
    plain = tacita.simulate(problem, how, rounds=200, record=()).agents[0]
    others = np.arange(24) != HOUR
    print(f"10.3 what a backdoor at {HOUR:02}:00 moves at another station")
    for count, rule in ((1, None), (3, None), (3, Median())):
        attack = robust.DenialOfService(
            agents=tuple(range(1, 1 + count)), shift=WARMER, feature=HOUR, value=1.0
        )
        chosen = {"attack": attack, "aggregation": rule, "record": ()}
        moved = tacita.simulate(problem, how, 200, **chosen).agents[0] - plain
        print(
            f"  {count} liars, {'the mean' if rule is None else 'a median'}: "
            f"{moved[HOUR]:.1f} K at that hour, {np.abs(moved[others]).max():.1f} K at "
            "any other"
        )


def robust_loss() -> None:
    """10.4: five points; the fifth label moves least squares, not least deviations."""
    x = np.array([[1.0], [2.0], [3.0], [1.0], [2.0]])
    y = np.array([0.987, 2.187, 2.687, 1.187, 8.987])
    print("10.4 the slope before and after the fifth label rises by 0.5")
    for name, model in (("squared", "linear"), ("absolute", Absolute(1))):
        slopes = []
        for more in (0.0, 0.5):
            labels = y + [0, 0, 0, 0, more]
            one = tacita.from_arrays(x, labels, np.zeros(5, int), model=model)
            slopes.append(one.solve()[0])
        print(f"  {name}: {slopes[0]:.4f}, {slopes[1]:.4f}")


if __name__ == "__main__":
    find_alice()
    read_back()
    deny_service()
    back_door()
    robust_loss()

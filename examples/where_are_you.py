"""Exercises 9.1, 9.3 and 9.4 of A. Jung, "Federated Learning: From Theory to Practice".

python examples/where_are_you.py

Finds the weather station behind the letters of one agent, and guesses where a friend is
from a clock and a thermometer, before and after the weather was made private.
"""

import os
import sys

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from tacita import data
from tacita.privacy import inversion
from tacita.problem import graph

STEP, PULL = 0.1, 0.5  # what Alice and Bob agreed on: eta, and alpha times the weight
#: What Bob sends: d + 1 of them are enough, one more steadies the answer.
SENT = np.array([[0.0, 0.0], [4.0, -4.0], [-4.0, -4.0], [4.0, 4.0]])


def where_is_alice() -> None:
    """9.1: Alice answers Bob by FedGD, and her letters tell her rows."""
    fmi = data.load("fmi", table="daily", lags=1)
    coldest = fmi.x[:, fmi.feature_names.index("tmin -1")] / 10
    x, y = np.column_stack([np.ones(len(fmi.y)), coldest]), fmi.y / 10
    rows = [fmi.agent == i for i in range(fmi.n_agents)]
    # All stations' rows are public: Bob knows these sums of each, not who Alice is.
    q = np.array([x[own].T @ x[own] / own.sum() for own in rows])
    b = np.array([x[own].T @ y[own] / own.sum() for own in rows])
    known = np.concatenate([q.reshape(-1, 4), b], axis=1)
    print(f"9.1 Alice at each of {fmi.n_agents} stations, {len(SENT)} letters of Bob")
    random = np.random.default_rng(0)
    for noise in (0.0, 1e-3, 1e-2, 1e-1):
        found = 0
        for alice in range(fmi.n_agents):
            w, points, gradients = np.zeros(2), [], []
            for sent in SENT:
                gradient = 2 * (q[alice] @ w - b[alice])
                # (129): w <- w - eta (gradient + 2 alpha A (w - sent))
                after = w - STEP * (gradient + 2 * PULL * (w - sent))
                after = after + noise * random.standard_normal(2)
                read = inversion.probed(w, after, sent, step_size=STEP, pull=PULL)
                points, gradients = [*points, w], [*gradients, read]
                w = after
            told = inversion.linear(points, gradients)
            away = known - np.concatenate([told.q.ravel(), told.b])
            found += int(np.argmin(np.sum(away**2, axis=1))) == alice
        print(f"  noise {noise:g} in her letters: found at {found}")


def median_distance(guess: np.ndarray, place: np.ndarray) -> float:
    """In km, between guesses and places in degrees."""
    both = graph.kilometres(np.concatenate([guess, place]))
    apart = both[: len(guess)] - both[len(guess) :]
    return float(np.median(np.linalg.norm(apart, axis=1)))


def where_are_you() -> None:
    """9.3 and 9.4: latitude and longitude from the hour and the temperature."""
    fmi = data.load("fmi", table="hourly", features="place")
    random = np.random.default_rng(0)
    place, seen = fmi.x[:, :2], np.column_stack([fmi.x[:, 2], fmi.y])
    kept = random.random(len(seen)) < 0.8

    def error(model, part: float = 1.0, noise: float = 0.0) -> float:
        """At rows that were not learnt from; noise in standard deviations."""
        learnt = np.flatnonzero(kept)
        learnt = random.choice(learnt, int(part * len(learnt)), replace=False)
        rows = [
            all_rows[learnt]
            + noise * all_rows.std(axis=0) * random.standard_normal((len(learnt), 2))
            for all_rows in (seen, place)
        ]
        return median_distance(model.fit(*rows).predict(seen[~kept]), place[~kept])

    nearest = KNeighborsRegressor(25)
    print("9.3 median distance from where the friend is")
    print(f"  the middle of all stations: {error(DummyRegressor()):.0f} km")
    print(f"  linear regression: {error(LinearRegression()):.0f} km")
    print(f"  nearest neighbours: {error(nearest):.0f} km")
    print("9.4 the same from weather that was made private")
    for part in (0.1, 0.01, 0.003):
        print(f"  {part:.1%} of the rows: {error(nearest, part=part):.0f} km")
    for noise in (0.3, 1.0, 3.0):
        print(f"  noise {noise:g} in all: {error(nearest, noise=noise):.0f} km")


if __name__ == "__main__":
    if not os.environ.get("TACITA_DATA"):
        print("skipped: TACITA_DATA names no folder with the data sets")
        sys.exit()
    where_is_alice()
    where_are_you()

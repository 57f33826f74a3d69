"""Exercises 9.2 and 9.5 of A. Jung, "Federated Learning: From Theory to Practice".

python examples/private_features.py

Features that keep the hour of the day to themselves, a direction that tells two classes
apart and little else, and the same between agents who share no rows: their sums are
noised, or nobody sees a single one of them.
"""

import os
import sys

import numpy as np

import tacita
from tacita import data
from tacita.privacy import features


def discriminant() -> None:
    """9.2: what z = a'x tells of the class and of the attribute s = F x."""
    gap, attribute = np.array([1.0, 0.5, -0.4]), np.array([[1.0, 0.2, 0.0]])
    covariance = np.array([[1.0, 0.3, 0.2], [0.3, 1.0, 0.1], [0.2, 0.1, 1.0]])
    spread = (attribute @ covariance @ attribute.T).item()
    print("9.2 strength of privacy: gap of the classes, correlation with s")
    for strength in (0.0, 0.3, 1.0, 10.0):
        a = features.private_direction(gap, covariance, attribute, strength)
        told = (attribute @ covariance @ a).item() / np.sqrt(spread)
        print(f"  {strength:4g}: {a @ gap:.2f}, {told:+.3f}")


def hide_the_hour() -> None:
    """9.5: the weather of Kustavi in April 2023 without the hour of the day."""
    weather = data.load("fmi", table="kustavi", features="hour")
    x, hour = np.column_stack([weather.y, weather.x[:, :-1]]), weather.x[:, -1]
    turn = 2 * np.pi * hour / 24
    circle = np.column_stack([np.sin(turn), np.cos(turn)])
    hidden = {
        "as it is": lambda rows: rows,
        "hour hidden (184)": features.private_projection(x, hour),
        "sine and cosine hidden": features.private_projection(x, circle),
        "the same, least change": features.private_projection(
            x, circle, least_change=True
        ),
    }
    print("9.5 R^2 of a linear reader:   hour   sine cosine temperature")
    for name, project in hidden.items():
        z = project(x)
        read = [
            features.linear_leak(z, hour),
            *features.linear_leak(z, circle),
            features.linear_leak(z, weather.y),
        ]
        print(f"  {name:26}" + "".join(f"{abs(r):7.3f}" for r in read))


def between_agents() -> None:
    """Ten regions hide their latitude in the temperatures of the last hours."""
    fmi = data.load("fmi", table="hourly", lags=3)
    latitude = fmi.positions[fmi.agent][:, 0]
    region = np.argsort(np.argsort(fmi.positions[:, 1])) * 10 // fmi.n_agents
    # Public guesses bring all numbers to about 1; clipping makes a bound of them.
    x, s = (fmi.x + 12) / 10, (latitude - 64) / 3
    problem = tacita.from_arrays(x, s, region[fmi.agent], model="moments")
    sums = tacita.FedAvg(step_size=1.0, weights="samples")
    budget = {"epsilon": 1.0, "delta": 1e-6, "observer": "coordinator", "rounds": 1}
    norm = problem.model.longest(3.0)
    print("between ten regions: R^2 of the latitude, and of the next temperature")
    told = features.linear_leak(x, s), features.linear_leak(x, fmi.y)
    print(f"  as it is             {told[0]:.3f} {told[1]:.3f}")
    for name, rule in (("noise of each", None), ("secure sum", "secure")):
        safe = tacita.private(problem, sums, norm=norm, aggregation=rule, **budget)
        run = tacita.simulate(problem, safe, rounds=1, record=())
        moments = problem.model.read(run.params)
        z = features.projection_of_moments(*moments)(x)
        told = features.linear_leak(z, s), features.linear_leak(z, fmi.y)
        row = run.privacy.row("coordinator")
        print(
            f"  {name:20} {told[0]:.3f} {told[1]:.3f}, epsilon {row.epsilon:.2f} for "
            f"one {row.unit} against the {row.observer}"
        )


if __name__ == "__main__":
    discriminant()
    if not os.environ.get("TACITA_DATA"):
        print("skipped: TACITA_DATA names no folder with the data sets")
        sys.exit()
    hide_the_hour()
    between_agents()

"""A federation from Python: a hub, a coordinator and three clinics in one program.

Each clinic is a thread with a connection of its own to the broker; on machines of their
own the calls are the same. Rows are pandas tables, the algorithm is an object.

    python examples/federation_in_python.py
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

import tacita
from tacita.federation import Hub, Policy, coordinate, join

CLINICS = ("oslo", "tampere", "turku")
RUN = {
    "name": "first",
    "problem": {
        "model": "logistic",
        "columns": ["age", "pressure"],
        "target": "ill",
        "classes": ["0", "1"],
        "l2": 0.05,
    },
    "algorithm": tacita.FedAvg(step_size=0.5, local_steps=3),
    "run": {"rounds": 20},
    "privacy": {"epsilon": 2.0, "delta": 1e-5, "norm": 1.0},
}


def rows(seed: int) -> pd.DataFrame:
    """A clinic's own rows."""
    dice = np.random.default_rng(seed)
    age, pressure = dice.normal(size=(2, 200))
    ill = (age + 0.5 * pressure + dice.normal(size=200) > 0).astype(int)
    return pd.DataFrame({"age": age, "pressure": pressure, "ill": ill})


def main() -> None:
    """Make the federation, let the clinics join, propose the run."""
    allowed = Policy(max_epsilon=4.0, max_delta=1e-5, algorithms=["FedAvg"])
    with (
        tempfile.TemporaryDirectory() as name,
        Hub.create(Path(name) / "hub", "clinics", CLINICS, port=0) as hub,
        ThreadPoolExecutor() as pool,
    ):
        folder = Path(name)
        clinics = {
            who: pool.submit(
                join,
                hub.invitations[who],
                rows(seed),
                policy=allowed,
                folder=folder / who,
                wait=60,
            )
            for seed, who in enumerate(CLINICS)
        }
        shared = coordinate(
            RUN, hub.invitations["coordinator"], folder=folder / "centre"
        )
        assert shared is not None
        print(f"shared model {shared.models['shared'].round(3).tolist()}")
        for who, clinic in clinics.items():
            told = clinic.result().numbers
            print(
                f"{who:8} accuracy {told['accuracy_shared']:.3f}, epsilon "
                f"{told['epsilon_spent']:.2f} of {told['epsilon_allowed']:.2f} spent "
                f"against the {told['observer']} at delta {told['delta']:g}"
            )


if __name__ == "__main__":
    main()

"""Runs made by hand, so that every number of a report is known beforehand."""

import numpy as np
import pytest

from tacita.trace import Run


def make_run(
    name="plain", seeds=1, rounds=40, agents=3, decay=0.8, classes=("no", "yes"), **info
):
    """A run whose loss falls by `decay` a round and whose accuracy climbs to 0.9."""
    at = np.arange(2, rounds + 1, 2)
    tilt = np.linspace(1.0, 1.2, seeds)[:, None]
    loss = tilt * 10.0 * decay**at
    right = np.minimum(0.9, 0.3 + 0.02 * at) / tilt
    if seeds == 1:
        loss, right = loss[0], right[0]
    held = {"agent": [f"site {i}" for i in range(agents)], "rows": [7] * agents}
    held |= {label: [3 + k] * agents for k, label in enumerate(classes)}
    return Run(
        params=np.zeros(4) if seeds == 1 else np.zeros((seeds, 4)),
        kept=np.zeros((agents, 4) if seeds == 1 else (seeds, agents, 4)),
        metrics={"loss": loss, "test_accuracy": right, "round": at},
        config={
            "name": name,
            "problem": {"name": "toy", "model": "softmax", "rows": 7 * agents},
            "algorithm": {"name": "FedAvg", "step_size": decay},
            "run": {"rounds": rounds, "participation": 0.5},
        },
        info={
            "rounds": rounds,
            "diverged": False,
            "seed": 5,
            "versions": {"python": "3.99.1", "tacita": "0.0.7"},
            "seconds": {"total": 12.0},
            "communication": {
                "letters": 1234,
                "bytes_up": 40_000,
                "bytes_down": 50_000,
                "bytes": 90_000,
            },
            "holdings": held,
            "turns": [[rounds // 2] * agents] * seeds,
            **info,
        },
    )


@pytest.fixture(name="make_run", scope="session")
def make_run_fixture():
    return make_run

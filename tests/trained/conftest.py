"""A small table with words and gaps, a run on it, and its model."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacita


def patients(rows=60, seed=0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    age, dose = random.normal(50, 9, rows).round(2), random.random(rows).round(3)
    pet = random.choice(["cat", "cow", "dog"], rows)
    ill = np.where(age + 9 * dose + 5 * (pet == "dog") > 56, "yes", "no")
    table = {"age": age, "pet": pet, "dose": dose, "ward": 1.0, "ill": ill}
    frame = pd.DataFrame({**table, "site": [f"s{i % 3}" for i in range(rows)]})
    frame.loc[[3, 10], "age"] = np.nan
    frame.loc[5, "pet"] = np.nan
    return frame


TABLE = {
    "problem": {
        "data": "patients.csv",
        "target": "ill",
        "agent": "site",
        "scale": "standard",
        "missing": "impute",
        "intercept": True,
        "test_share": 0.2,
        "l2": 0.1,
    },
    "algorithm": {"name": "FedAvg", "step_size": 0.5},
    "run": {"rounds": 5, "record": []},
}


@pytest.fixture(scope="session")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("patients")
    patients().to_csv(folder / "patients.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def job(place):
    return tacita.job.job_from(TABLE, place)


@pytest.fixture(scope="session")
def run(job):
    return job.simulate()


@pytest.fixture(scope="session")
def saved(run, place):
    return run.save(place / "run")

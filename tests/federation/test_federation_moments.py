"""Sums for private features as a run of a federation, charged to every ledger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tacita.federation.thread_post import PostRoom
from tacita.privacy import Ledger, features
from tacita.problem import Moments
from tests.federation.towns import NAMES, Town, rows, run_of


@pytest.mark.long
@pytest.mark.parametrize("secure", [False, True])
def test_moments_are_a_run_that_is_charged(tmp_path: Path, secure: bool):
    """With a large epsilon, so that few rows show what was hidden."""
    model = Moments(3)
    run = run_of(
        rounds=1,
        problem={"model": "moments", "columns": ["x0", "x1", "x2"], "target": "y"},
        algorithm={"name": "FedAvg", "step_size": 1.0},
        run={"rounds": 1},
        privacy={"epsilon": 300.0, "delta": 1e-5, "norm": model.longest(4.0)},
    )
    if secure:
        run["secure"] = {"least": 3, "rows": 30}
    with Town(tmp_path, PostRoom(), max_epsilon=300.0) as town:
        found = town.run(run)
    x, s = (np.concatenate(part) for part in zip(*map(rows, NAMES), strict=True))
    moments = model.read(found["coordinator"].models["shared"])
    exact = np.cov(np.column_stack([x, s]).T, bias=True)
    assert 1e-6 < np.abs(moments.covariance - exact).max() < 0.5
    hidden = features.projection_of_moments(*moments)(x)
    assert features.linear_leak(hidden, s) < 0.2 * features.linear_leak(x, s)
    for name in NAMES:
        assert 1 < found[name].numbers["epsilon_spent"] <= 300
        path = tmp_path / f"{name}-home" / "ledger.db"
        with Ledger(path, read_only=True) as ledger:
            assert any(row.kind == "release" for row in ledger.rows())

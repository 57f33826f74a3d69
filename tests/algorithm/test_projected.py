"""Projected and proximal steps of the coordinator: (91) of the book."""

import numpy as np
import pytest

import tacita
from tacita.problem.prox import L1, L2Ball


@pytest.mark.parametrize(
    "algorithm, h",
    [(tacita.ServerGD(), L1(0.8)), (tacita.FedAvg(local_steps=1), L2Ball(0.5))],
    ids=["ServerGD", "FedAvg"],
)
def test_one_step_a_round_reaches_the_constrained_optimum(algorithm, h):
    size = {"agents": 3, "features": 3, "samples": 12, "dtype": np.float64}
    problem = tacita.problem.synthetic.linear(**size, h=h)
    best = problem.solve()
    run = tacita.simulate(problem, algorithm, 300, record=("error",), reference=best)
    free = tacita.problem.synthetic.linear(**size)
    assert not np.allclose(best, free.solve(), atol=1e-3)
    assert run.metrics["error"][-1] < 1e-8

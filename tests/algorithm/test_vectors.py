"""Fed-PLT and its comparators against states computed independently in NumPy.

`fedplt_vectors.json` holds, for a small logistic problem with two regularisers, the
mean model after some rounds of every method; nothing in it needs random numbers.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tacita
from tacita.algorithm.solvers import Accelerated, GradientDescent

VECTORS = json.loads(Path(__file__).with_name("fedplt_vectors.json").read_text())
AGENTS, ROWS, DIM = 4, 6, 3
START = 0.1 * np.arange(1, AGENTS + 1)[:, None] - 0.2 * np.arange(DIM)
MU = {"l2": 0.5, "ncvx": 0.0}


def problem(kind: str, h=None) -> tacita.Problem:
    i, k, j = np.ogrid[:AGENTS, :ROWS, :DIM]
    features = np.sin(1 + (i * ROWS + k) * DIM + j)
    labels = np.where((i + k)[..., 0] % 2 == 0, 1.0, -1.0)
    penalty = {
        "l2": tacita.problem.SquaredL2(weight=0.5),
        "ncvx": tacita.problem.NonConvex(weight=0.5),
    }
    return tacita.from_arrays(
        features.reshape(-1, DIM),
        labels.ravel(),
        np.repeat(np.arange(AGENTS), ROWS),
        regulariser=penalty[kind],
        h=h,
    )


def methods(kind: str) -> dict:
    """By name in the file: the algorithm, which model it reports, and how late.

    What is reported as a broadcast belongs to the round that it opens.
    """
    smooth = VECTORS[kind]["L"]
    descent = GradientDescent(step_size=0.5, local_steps=5)
    fast = Accelerated(local_steps=5, strong_convexity=MU[kind], smoothness=smooth)
    five = tacita.FiveGCS(
        gamma=2,
        tau=1 / (2 * AGENTS),
        strong_convexity={"l2": 0.5, "ncvx": 0.1}[kind],
        solver=GradientDescent(step_size=0.3, local_steps=5),
    )
    return {
        "fedplt_gd rho=1 gamma=.5 Ne=5 z0=x0": (
            tacita.FedPLT(rho=1, solver=descent),
            "agents",
            0,
        ),
        "fedplt_acc rho=1 lam=(eps or 0,L) Ne=5": (
            tacita.FedPLT(rho=1, solver=fast),
            "agents",
            0,
        ),
        "fedplt_gd l1 w=.2 (y)": (tacita.FedPLT(rho=1, solver=descent), "shared", 1),
        "fedpd eta=1 gamma=.4 Ne=5": (
            tacita.FedPD(eta=1, step_size=0.4, local_steps=5),
            "agents",
            0,
        ),
        "fedlin gamma=.4 Ne=5": (
            tacita.FedLin(step_size=0.4, local_steps=5),
            "shared",
            0,
        ),
        "led alpha=.4 beta=.2 Ne=5": (
            tacita.LED(step_size=0.4, beta=0.2, local_steps=5),
            "shared",
            0,
        ),
        "tamuna fixed 5 steps gamma=.4 eta=.2": (
            tacita.TAMUNA(step_size=0.4, eta=0.2, local_steps=5, fixed=True),
            "shared",
            0,
        ),
        "5gcs gamma=2 tau=1/(2N) step=.3N mu=.5(l2)/.1(ncvx) Ne=5 (xhat)": (
            five,
            "shared",
            1,
        ),
        "fedsplit rho=1 gamma=.5 Ne=5 (inexact)": (
            tacita.FedSplit(rho=1, solver=descent),
            "agents",
            0,
        ),
        "fedavg gamma=.4 Ne=5 (inexact)": (
            tacita.FedAvg(step_size=0.4, local_steps=5),
            "shared",
            0,
        ),
    }


def test_every_method_of_the_file_is_tried():
    for kind, table in VECTORS.items():
        stored = {name for name, entry in table.items() if isinstance(entry, dict)}
        assert stored <= set(methods(kind))


@pytest.mark.parametrize("kind", VECTORS)
def test_problem_is_the_one_of_the_file(kind):
    table, made = VECTORS[kind], problem(kind)
    np.testing.assert_allclose(made.moduli.largest, table["L"], rtol=1e-14)
    np.testing.assert_allclose(made.solve(), table["x_star"], atol=1e-14)
    at_start = made.grad(START)
    np.testing.assert_allclose(at_start[0], table["grad_f0_at_x0"], atol=1e-15)


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind, table in VECTORS.items()
        for name, entry in table.items()
        if isinstance(entry, dict)
    ],
)
def test_states_match_and_the_end_is_where_it_should_be(kind, name):
    algorithm, reported, late = methods(kind)[name]
    sparse = " l1 " in name
    made = problem(kind, tacita.problem.prox.L1(0.2) if sparse else None)
    end = VECTORS[kind]["x_star_l1_w.2" if sparse else "x_star"]

    def after(rounds):
        run = tacita.simulate(made, algorithm, rounds, start=START, record=())
        return run.params if reported == "shared" else run.agents.mean(axis=0)

    for number, *expected in VECTORS[kind][name]["rounds"]:
        if number > late:
            got = after(int(number) - late)
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
    distance = np.linalg.norm(after(200 - late) - end)
    bias = VECTORS[kind][name]["err_200"]
    np.testing.assert_allclose(distance, bias, rtol=1e-6, atol=1e-14)

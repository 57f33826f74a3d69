"""Tuning: the same for every algorithm, and what it chooses is good."""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from tacita.problem import graph, synthetic
from tacita.tuning.grids import GRIDS


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    return synthetic.logistic(agents=8, features=3, samples=30, seed=2)


@pytest.mark.long
def test_the_choice_reaches_the_accuracy_when_run(problem):
    tuning = tacita.tune(problem, "fed-plt", t_grad=1, t_comm=10, probe_rounds=60)
    assert tuning.rounds is not None
    run = tacita.simulate(
        problem, tuning.algorithm, tuning.rounds, record=("mean_grad_norm_sq",)
    )
    values = run.metrics["mean_grad_norm_sq"]
    assert values[-1] <= tuning.accuracy < values[-2]
    # Nothing that was tried is cheaper, and the cost is the model's.
    assert tuning.cost == min(t.cost for t in tuning.trials)
    steps = tuning.algorithm.solver.local_steps
    assert tuning.cost == tuning.rounds * (steps + 10) * problem.n_agents
    assert 0 < tuning.predicted.rate < 1
    assert "candidates" in str(tuning) and "theory predicts" in str(tuning)


@pytest.mark.long
def test_dear_exchanges_ask_for_more_local_steps(problem):
    chosen = [
        tacita.tune(
            problem, "fed-plt", t_grad=1, t_comm=t_comm, probe_rounds=60
        ).algorithm.solver.local_steps
        for t_comm in (0.1, 1000.0)
    ]
    assert chosen[0] < chosen[1]


def test_every_grid_has_the_same_size(problem):
    sizes = {kind.__name__: len(grid(problem, 5)) for kind, grid in GRIDS.items()}
    assert set(sizes.values()) == {48}, sizes


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["FedLin", "led", "5GCS"])
def test_comparators_are_tuned_too(problem, name):
    tuning = tacita.tune(problem, name, local_steps=5, probe_rounds=80)
    assert tuning.rounds is not None and tuning.rounds < 40
    assert len(tuning.trials) == 48


def test_fed_lin_pays_for_two_exchanges(problem):
    tuning = tacita.tune(problem, "FedLin", local_steps=5, probe_rounds=40)
    assert tuning.rounds is not None
    assert tuning.cost == tuning.rounds * (6 + 20) * problem.n_agents


def test_an_unreachable_accuracy_is_said(problem):
    tuning = tacita.tune(
        problem, "FedAvg", local_steps=5, accuracy=1e-25, probe_rounds=5
    )
    assert tuning.rounds is None and np.isinf(tuning.cost)
    assert "was not reached" in str(tuning)
    best = min(t.last for t in tuning.trials if np.isfinite(t.last))
    assert any(
        t.algorithm is tuning.algorithm and t.last == best for t in tuning.trials
    )


def test_unknown_names_are_refused(problem):
    with pytest.raises(tacita.TacitaError, match="did you mean 'FedPLT'"):
        tacita.tune(problem, "FedPTL")
    ring = synthetic.linear(agents=5, features=2, samples=6, graph=graph.ring(5))
    with pytest.raises(tacita.TacitaError, match="tune by one that falls"):
        tacita.tune(problem, "FedPLT", t_grad=1.0, t_comm=1.0, metric="accuracy")
    with pytest.raises(tacita.TacitaError, match="FedGD has no grid"):
        tacita.tune(ring, "FedGD")
    with pytest.raises(tacita.TacitaError, match=r"got FedAvg\(.*; take 'FedAvg'"):
        tacita.tune(problem, tacita.FedAvg(step_size=0.1))
    with pytest.raises(tacita.TacitaError, match="'rounds'; .*probe_rounds"):
        tacita.tune(problem, "FedAvg", rounds=9)
    with pytest.raises(tacita.TacitaError, match="'alpha'; did you mean 'alphas'"):
        tacita.tune(tacita.problem.GTVMin(ring, 1.0), alpha=[0.1])


def test_the_grid_of_alphas_follows_nodes_with_rows():
    """Unlabelled nodes, however many, have no curvature to measure alpha by."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2))
    nodes = tacita.from_arrays(
        x,
        x @ [1.0, 2.0],
        np.repeat([0, 1], 10),
        "linear",
        graph=graph.ring(9),
        unlabelled=range(2, 9),
    )
    usual = tacita.tune(tacita.GTVMin(nodes, 1.0), repeats=1).trials
    curvature = np.median(nodes.moduli.smoothness[:2])
    assert usual[6].alpha == pytest.approx(curvature / 2)


def test_alpha_is_chosen_by_held_out_rows():
    """One true model calls for strong coupling, unrelated ones for weak coupling."""
    ring = tacita.problem.graph.ring(8)
    choices = dict(agents=8, features=3, samples=12, noise=1.0, graph=ring)
    alike = tacita.problem.synthetic.linear(**choices)
    apart = tacita.problem.synthetic.linear(**choices, spread=5.0)
    found = [tacita.tune(tacita.GTVMin(p, alpha=1.0)) for p in (alike, apart)]
    assert found[0].alpha > 10 * found[1].alpha
    for tuning in found:
        alphas = [t.alpha for t in tuning.trials]
        assert alphas == sorted(alphas) and len(alphas) == 13
        best = min(tuning.trials, key=lambda t: t.validation)
        assert tuning.alpha == tuning.gtv.alpha == best.alpha
        # More coupling never helps on the rows that were trained on.
        train = [t.train for t in tuning.trials]
        assert np.all(np.diff(train) > -1e-9)
        assert "validation loss" in str(tuning)
    again = tacita.tune(tacita.GTVMin(alike, alpha=1.0))
    assert again.trials == found[0].trials
    alone = tacita.tune(tacita.GTVMin(apart, 1.0), alphas=[0.1, 0.0], repeats=1)
    assert [t.alpha for t in alone.trials] == [0.0, 0.1]
    single = tacita.problem.synthetic.linear(3, samples=1, graph=graph.ring(3))
    for nodes, wrong, match in [
        (alike, dict(alphas=[]), "to try or more"),
        (alike, dict(alphas=0.5), "shape"),
        (alike, dict(alphas=[-1.0]), "alphas >= 0"),
        (single, {}, "two rows"),
    ]:
        with pytest.raises(tacita.TacitaError, match=match):
            tacita.tune(tacita.GTVMin(nodes, 1.0), **wrong)
    with pytest.raises(tacita.TacitaError, match="takes no algorithm"):
        tacita.tune(tacita.GTVMin(alike, 1.0), "FedGD")  # pyright: ignore
    with pytest.raises(tacita.TacitaError, match="name the algorithm"):
        tacita.tune(alike)  # pyright: ignore


def test_the_same_numbers_are_chosen_in_any_unit():
    """An accuracy in the unit of gradients would be reached in the first round."""
    x, y = np.random.default_rng(0).normal(size=(2, 24, 2))
    found = []
    for unit in (1.0, 2.0**-12):
        one = tacita.from_arrays(
            unit * x, y[:, 0], np.arange(24) % 4, model="linear", l2=0.3 * unit**2
        )
        choices = dict(local_steps=3, probe_rounds=40)
        found.append(tacita.tune(one, "FedLin", **choices))
    here, there = found
    assert here.rounds == there.rounds and here.rounds > 1
    assert there.algorithm.step_size * unit**2 == pytest.approx(
        here.algorithm.step_size
    )

"""What is kept of agents: all their models, or nothing where nobody needs them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.algorithm.base import ServerAlgorithm
from tacita.runtime import memory
from tacita.runtime.ready import make_world, prepare
from tests.cases import CASES

FORGETFUL = {
    *("ServerGD", "FedAvg", "FedAvgM", "FedAdagrad", "FedYogi", "FedAdam", "FedProx"),
    *("DPSGD", "DPFedAvg", "ClientDPFedAvg", "QFedAvg", "FedAsync", "FedBuff"),
}
FED_AVG = tacita.FedAvg(step_size=0.5, local_steps=2)


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    return tacita.problem.synthetic.logistic(agents=6, features=3, samples=12, seed=1)


@pytest.fixture
def large(monkeypatch):
    """Whatever the models' size, it is too large to be kept for no reason."""
    monkeypatch.setattr(memory, "KEPT_BYTES", 0)


@tacita.trees.in_double_precision
def kept(problem, algorithm, record=(), start=None, asked=None) -> bool:
    ready = prepare(problem, algorithm)
    world = make_world(problem, ready, 1.0)
    return memory.keeps(problem, ready, world, record, start, None, asked)


@pytest.mark.long
def test_algorithms_whose_letters_need_no_memory_are_known():
    found = set()
    with jax.enable_x64(True):
        for case in CASES:
            if isinstance(case.algorithm, ServerAlgorithm):
                ready = prepare(case.problem(), case.algorithm)
                world = make_world(case.problem(), ready, 1.0)
                if not memory._remembers(ready, world, case.problem()):
                    found.add(type(ready).__name__)
    assert found == FORGETFUL


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "options",
    [
        {"participation": 2, "mapping": "one_by_one"},
        {"participation": 0.3, "seeds": 2},
        {"aggregation": tacita.aggregation.Median(), "participation": 4},
    ],
)
def test_a_run_that_keeps_no_agents_is_the_same_run(problem, options):
    told = {"rounds": 5, "record": ("loss",), "seed": 3, **options}
    whole = tacita.simulate(problem, FED_AVG, **told)
    bare = tacita.simulate(problem, FED_AVG, keep_agents=False, **told)
    np.testing.assert_allclose(bare.params, whole.params, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(bare.info["turns"], whole.info["turns"])
    with pytest.raises(tacita.TacitaError, match="keep_agents=True"):
        _ = bare.agents


def test_a_folder_without_agents_models_is_read_back(problem, tmp_path):
    run = tacita.simulate(problem, FED_AVG, 2, record=("loss",), keep_agents=False)
    back = tacita.load_run(run.save(tmp_path))
    np.testing.assert_array_equal(back.params, run.params)
    assert back.predict(np.zeros((1, 3))).shape == (1,)
    with pytest.raises(tacita.TacitaError, match="holds no agents' models"):
        _ = back.agents


def test_large_models_are_kept_where_something_needs_them(problem, large):
    bare = tacita.simulate(problem, FED_AVG, 1)
    assert bare.kept.shape == (0, 3)
    assert set(bare.metrics) == {"loss", "grad_norm_sq", "round"}

    def length(shared, agents):
        return jnp.sum(shared**2)

    def spread(shared, agents):
        return jnp.sum(agents**2)

    assert not kept(problem, FED_AVG, record=(length,))
    for record in ((spread,), ("disagreement",), ("mean_grad_norm_sq",)):
        assert kept(problem, FED_AVG, record=record)
    assert kept(problem, FED_AVG, start=np.zeros((6, 3)))
    assert kept(problem, FED_AVG, asked=True)
    assert kept(problem, tacita.SCAFFOLD(step_size=0.1))
    assert kept(problem, tacita.FedPLT())  # of which letters are kept too


def test_memory_that_letters_need_is_not_given_up(problem):
    for algorithm in (tacita.SCAFFOLD(step_size=0.1), tacita.FedPLT()):
        with pytest.raises(tacita.TacitaError, match="keep_agents=False, but"):
            tacita.simulate(problem, algorithm, 1, record=(), keep_agents=False)

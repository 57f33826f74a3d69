"""Averaged outputs of DP-Norm and FedSPD: means over the rounds, nothing else moves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.algorithm.base import Round
from tacita.problem import graph, synthetic
from tacita.trees import replace

SIZE = {"agents": 4, "features": 2, "samples": 6, "dtype": np.float64}


def test_the_coordinator_of_fed_spd_keeps_the_mean_of_its_rounds():
    averaged = tacita.FedSPD(average=True)
    start = jnp.array([9.0, 9.0])
    kept, told = averaged.init_coordinator(start), None
    for number, mean in enumerate(([9.0, 9.0], [1.0, 0.0], [3.0, 4.0])):
        now = Round(n_agents=2, h=None, number=number, active=2)
        key = jax.random.key(0)
        kept, told = averaged.combine(key, kept, jnp.array(mean), now)
    assert told is not None
    # The start is no round.
    assert averaged.shared(told).tolist() == [2.0, 2.0]
    assert told.x0.tolist() == [3.0, 4.0]


@pytest.mark.long
@pytest.mark.parametrize(
    "last, averaged",
    [
        (tacita.FedSPD(local_steps=2, noise_std=0.1), {"average": True}),
        (tacita.DPNorm(local_steps=2, noise_std=0.1), {"publish": "average"}),
    ],
    ids=["FedSPD", "DPNorm"],
)
def test_the_average_is_that_of_what_was_published(last, averaged):
    ring = graph.ring(4) if isinstance(last, tacita.DPNorm) else None
    problem = synthetic.linear(**SIZE, graph=ring)

    def models(algorithm, rounds):
        run = tacita.simulate(problem, algorithm, rounds, seed=3, record=("loss",))
        return run.agents if ring is not None else run.params

    every = [models(last, k) for k in (1, 2, 3)]
    found = models(replace(last, **averaged), 3)
    np.testing.assert_allclose(found, np.mean(every, axis=0), rtol=1e-12)

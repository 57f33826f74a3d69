"""A federation gives the numbers of a simulation, whatever the post does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.runtime.federation.post import Faults
from tests.cases import CASES, Case
from tests.federation.build import Federation
from tests.test_contract import participations

ROUNDS = 4
BAD_POST = Faults(loss=0.2, repeat=0.2, most_delay=3.0)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


@each_case
def test_the_same_iterates_as_a_simulation(case: Case, tmp_path: Path):
    problem = case.problem()
    for k, participation in enumerate(participations(case)):
        run = tacit.simulate(
            problem, case.algorithm, ROUNDS, seed=3, participation=participation
        )
        made = Federation(
            tmp_path / str(k), problem, case.algorithm, ROUNDS, 3, participation
        )
        shared, agents = made.run()
        np.testing.assert_allclose(shared, run.params, rtol=0, atol=1e-12)
        np.testing.assert_allclose(agents, run.agents, rtol=0, atol=1e-12)

"""What a deployed run is made of: public numbers, and secrets of their owners."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import tacita
from tacita import keys
from tacita.federation import setting as party
from tacita.federation.budget import privacy_of, with_budget
from tacita.federation.description import Description
from tacita.federation.draws import OwnDraws, SharedDraws
from tacita.federation.in_process import InProcess, InProcessPost, run_in_process
from tacita.federation.own_rows import blank_problem, own_problem
from tacita.federation.thread_post import PostRoom
from tacita.federation.wire import LetterRefused, require_bounded
from tacita.federation.work import largest_entry
from tacita.privacy import Ledger, letters_of
from tacita.schedule import Geometric
from tests.cases import case_of
from tests.federation.test_federation_crash import Mortal
from tests.federation.towns import NAMES, Town, run_of, simulated

BUDGET = {"epsilon": 1.0, "delta": 1e-5}
EDGES = {"edges": [["ada", "bob"], ["bob", "cyd"]]}
#: Algorithms whose account depends on how long rows are.
ALGORITHMS: dict[str, dict[str, Any]] = {
    "FedSPD": {"rho": 1.0, "gamma": 5.0, "local_steps": 3},
    "DPFedAvg": {"step_size": 0.2, "local_steps": 3},
    "FedPLT": {
        "rho": 1.0,
        "solver": {"name": "GradientDescent", "step_size": 0.15, "local_steps": 3},
    },
    "DPNorm": {"step_size": 0.2, "local_steps": 3},
}
each = pytest.mark.parametrize("name", ALGORITHMS)


def describe(name: str, bound: float | None = None, **tables: Any) -> Description:
    # Fed-PLT's own theorem is about real numbers; integers are composed.
    budget = BUDGET | ({"noise_kind": "float"} if name == "FedPLT" else {})
    made = run_of(rounds=4, privacy=budget, run={"rounds": 4}, **tables)
    made["algorithm"] = {"name": name, **ALGORITHMS.get(name, {})} | tables.get(
        "algorithm", {}
    )
    if bound is not None:
        made["problem"]["bound"] = bound
    if name == "DPNorm":
        made["graph"] = EDGES
    return Description("town", "try", "coordinator", ("ada", "bob", "cyd"), made)


def rows(first: float = 1.0) -> dict[str, Any]:
    x = np.random.default_rng(0).normal(size=(10, 3))
    x[0] *= first
    return {**{f"x{k}": x[:, k] for k in range(3)}, "y": np.arange(10) % 2}


def noise(
    run: Description, folder: Path, first: float = 1.0, name: str = "ada"
) -> float:
    made = party.setting_of(run, own_problem(run, rows(first)))
    with Ledger(folder / f"{run.digest}-{first}-{name}.db") as ledger:
        ready, _ = with_budget(made, name, ledger, None)
    return float(np.max(letters_of(ready.roles.algorithm).noise_std))


@each
def test_no_row_moves_an_agents_noise(name: str, tmp_path: Path):
    run = describe(name, bound=6.0)
    told = {noise(run, tmp_path, first) for first in (1.0, 30.0, 1e300)}
    assert len(told) == 1


@each
def test_without_a_public_bound_the_run_is_refused(name: str, tmp_path: Path):
    """In the same words whatever the rows are."""
    words = set()
    for first in (1.0, 30.0):
        with pytest.raises(tacita.TacitaError, match=r"problem\.bound") as refusal:
            noise(describe(name), tmp_path, first)
        words.add(str(refusal.value))
    assert len(words) == 1 and "\n" not in words.pop()


@pytest.mark.parametrize(
    "name, field, values",
    [("FedSPD", "gamma", (50.0, 0.5)), ("DPFedAvg", "step_size", (0.1, 3.0))],
)
def test_noise_is_set_for_the_agents_own_numbers(name, field, values, tmp_path: Path):
    """Everybody once had the noise of the first agent's numbers."""
    usual, steep = values

    def told(one: Any, who: str) -> float:
        run = describe(name, bound=6.0, algorithm={**ALGORITHMS[name], field: one})
        return noise(run, tmp_path, name=who)

    own = [told([usual, usual, steep], who) for who in NAMES]
    assert own == [told(usual, "ada"), told(usual, "bob"), told(steep, "cyd")]
    assert own[2] > 3 * own[0]


def test_with_a_public_bound_theory_may_choose(tmp_path: Path):
    free = describe("FedAvg", bound=6.0, algorithm={"name": "FedAvg"})
    made = party.setting_of(free, blank_problem(free))
    assert made.roles.algorithm.step_size == pytest.approx(1 / (0.25 * 36 + 0.1))
    blind = describe("FedAvg", algorithm={"name": "FedAvg"})
    with pytest.raises(tacita.TacitaError, match="theory cannot choose numbers"):
        party.setting_of(blind, blank_problem(blind))


def test_a_row_that_is_too_long_is_not_refused():
    run = describe("FedAvg", bound=6.0, algorithm={"step_size": 0.1})
    run.tables["problem"]["dtype"] = "float32"  # pyright: ignore
    own = own_problem(run, rows(first=1e300))
    assert np.linalg.norm(own.stacked()[0], axis=-1).max() <= 6.0


CLIENT = case_of("ClientDPFedAvg")


def clients(folder: Path, secret: bytes) -> InProcess:
    problem, draws = CLIENT.problem(), OwnDraws(secret)
    return InProcess(folder, problem, CLIENT.algorithm, 6, seed=3, draws=draws)


def test_the_coordinators_noise_is_its_own(tmp_path: Path):
    """It came from the run's digest, which everybody has."""
    models = {
        clients(tmp_path / str(k), bytes([s]) * 32).run()[0].tobytes()
        for k, s in enumerate([1, 2, 1])
    }
    assert len(models) == 2
    run = describe("FedAvg", algorithm={"step_size": 0.1})
    made = party.setting_of(run, blank_problem(run))
    public = keys.from_seed(int(run.digest[:15], 16))
    letter = [np.ones(3)]
    drawn = {
        data_of(party.coordinator_draws(made, secret).noise(1, 0, letter))
        for secret in (b"a" * 32, b"b" * 32)
    }
    assert len(drawn | {data_of(keys.coordinator_key(public, 1, 0))}) == 3


def data_of(key: Any) -> bytes:
    return np.asarray(jax.random.key_data(key)).tobytes()


def test_with_a_shared_seed_it_is_that_of_a_simulation(tmp_path: Path):
    run = run_of(rounds=3)
    told = Description("town", "try", "coordinator", ("ada", "bob", "cyd"), run)
    made = party.setting_of(told, blank_problem(told))
    draws = party.coordinator_draws(made, b"a" * 32)
    assert isinstance(draws, SharedDraws)
    wanted = keys.coordinator_key(keys.from_seed(5), 2, 0)
    assert data_of(draws.noise(2, 0, [np.ones(3)])) == data_of(wanted)
    problem = CLIENT.problem()
    shared, _ = InProcess(tmp_path, problem, CLIENT.algorithm, 3, seed=5).run()
    simulated = tacita.simulate(problem, CLIENT.algorithm, 3, seed=5)
    np.testing.assert_allclose(shared, simulated.params, rtol=0, atol=1e-12)


def test_noise_covers_one_sum_only():
    """The same noise under two sums of one round would cancel."""
    draws, sums = OwnDraws(b"a" * 32), ([np.zeros(3)], [np.ones(3)])
    one, other = (data_of(draws.noise(4, 0, letter)) for letter in sums)
    assert one != other and one == data_of(draws.noise(4, 0, [np.zeros(3)]))
    assert data_of(draws.noise(5, 0, sums[0])) != one


def test_a_coordinator_that_dies_draws_the_same_again(tmp_path: Path):
    calm, _ = clients(tmp_path / "calm", b"c" * 32).run()
    made, dice = clients(tmp_path / "dying", b"c" * 32), random.Random(2)
    people: Any = {name: made.make(name) for name in made.names}
    people["coordinator"] = Mortal(made, "coordinator", dice, 0.06)
    run_in_process(people, InProcessPost())
    assert people["coordinator"].deaths > 0
    np.testing.assert_array_equal(people["coordinator"].model(), calm)


def test_a_report_says_that_everybody_knows_shared_noise(tmp_path: Path):
    alike = {"step_size": 0.1}
    for more, known in (({}, 0), ({"shared_seed": 1}, 1)):
        run = describe("FedAvg", algorithm=alike, bound=6.0)
        run.tables["run"].update(more)  # pyright: ignore
        made = party.setting_of(run, own_problem(run, rows()))
        with Ledger(tmp_path / f"{known}.db") as ledger:
            ready, _ = with_budget(made, "ada", ledger, None)
        assert len(privacy_of(ready, 4).violated()) == known


NOISES = {
    "usual": ({}, {}, {}, "exact integers on a grid of step 9.4.*; from ChaCha20 with"),
    "asked": ({"noise_kind": "float"}, {}, {}, "floating-point Gaussians, whose last"),
    "single": ({}, {"dtype": "float32"}, {}, "floating-point Gaussians, whose last"),
    "shared": (
        {},
        {},
        {"shared_seed": 1},
        "exact integers on .*; from a seed that everyb",
    ),
}


@pytest.mark.parametrize("case", NOISES)
def test_a_report_names_the_noise(case: str, tmp_path: Path):
    budget, problem, told, words = NOISES[case]
    run = describe("FedAvg", algorithm={"step_size": 0.1}, bound=6.0)
    tables: Any = run.tables
    tables["privacy"] = tables["privacy"] | budget
    tables["problem"].update(problem)
    tables["run"].update(told)
    made = party.setting_of(run, own_problem(run, rows()))
    with Ledger(tmp_path / "ledger.db") as ledger:
        ready, _ = with_budget(made, "ada", ledger, None)
    report = privacy_of(ready, 4)
    assert re.match(words, report.noise or "")
    assert ("noise", report.noise) in report.notes()


@pytest.mark.parametrize("kind", ["integers", "float"])
def test_steps_before_noise_take_no_huge_model(kind: str):
    """At 2^46 a model has no digits left for what a record changes, or for noise."""
    noisy = tacita.DPFedAvg(step_size=0.1, noise_std=1.0, noise_kind=kind)
    with pytest.raises(LetterRefused, match=r"entries beyond 2\^20"):
        require_bounded([np.full(3, 2.0**21)], largest=largest_entry(noisy))
    for other in (tacita.DPFedAvg(step_size=0.1), tacita.FedAvg()):
        require_bounded([np.full(3, 2.0**46)], largest=largest_entry(other))


def test_the_shorter_the_steps_before_noise_the_smaller_the_model():
    """A coordinator could choose steps of 1e-10, and a model that swallowed noise."""
    told: dict[str, Any] = {"noise_std": 1.0, "oracle": tacita.Clipped(norm=2.0)}
    usual = tacita.DPFedAvg(step_size=0.1, **told)
    assert largest_entry(usual) == 2.0**20
    for short in (
        tacita.DPFedAvg(step_size=1e-10, **told),
        tacita.FedSPD(rho=1e10 - 1.0, gamma=1.0, **told),
        tacita.DPNorm(step_size=1e-10, **told),
    ):
        assert largest_entry(short) == pytest.approx(2.0**27 * 1e-10)
    shrinks = tacita.DPFedAvg(step_size=Geometric(start=0.1, factor=0.01), **told)
    assert largest_entry(shrinks, 3) == pytest.approx(2.0**27 * 1e-5)
    with pytest.raises(LetterRefused, match="too short for their noise"):
        largest_entry(shrinks, 9)


@pytest.mark.parametrize("name", ["FedSPD", "DPFedAvg", "DPNorm"])
def test_noise_after_steps_needs_double_precision(name: str, tmp_path: Path):
    """From a model of 2^19 single precision made the same letter of 200 keys.

    With 549 of 1,000 records on one side it was another one than with 550, always.
    """
    run = describe(name, bound=6.0)
    run.tables["problem"]["dtype"] = "float32"  # pyright: ignore
    with pytest.raises(tacita.TacitaError, match=r"set problem\.dtype = 'float64'"):
        noise(run, tmp_path)


def test_floating_point_noise_is_in_a_gradient_before_the_regulariser(tmp_path: Path):
    """Else a huge l2 w, which a coordinator chooses, rounds rows and noise away."""
    run = describe("FedAvg", bound=6.0, algorithm={"step_size": 0.1})
    run.tables["privacy"]["noise_kind"] = "float"  # pyright: ignore
    made = party.setting_of(run, own_problem(run, rows()))
    with Ledger(tmp_path / "ledger.db") as ledger:
        ready, _ = with_budget(made, "ada", ledger, None)
    oracle = ready.roles.algorithm.oracle
    assert oracle.noise_kind == "float" and oracle.regulariser_last


def test_a_budget_of_an_algorithm_that_needs_two_agents(tmp_path: Path):
    """Each sets its noise by itself, and was told that one agent is too few."""
    table = {"step_size": 0.1, "eta": 0.5, "local_steps": 2.0, "fixed": True}
    same = describe("FedAvg", algorithm={"step_size": 0.1, "local_steps": 2})
    run = describe("TAMUNA", algorithm={"name": "TAMUNA", **table})
    assert noise(run, tmp_path) == pytest.approx(noise(same, tmp_path))


def test_a_report_says_whose_noise_it_is():
    told = tacita.privacy.forecast(CLIENT.problem(), CLIENT.algorithm, rounds=3)
    assert told.row("final_model", "client").epsilon is not None
    assert "the noise is the coordinator's own" in str(told)
    assert told.row("coordinator", "client").epsilon is None
    assert "it trusts the coordinator" in told.row("coordinator", "client").theorem


#: Two exchanges a round, and noise that differs between rounds.
PRICED = {
    "FedLin": ({"name": "FedLin", "step_size": 0.2, "local_steps": 2}, {}),
    "schedule": (
        {"name": "DPSGD", "step_size": 0.3, "momentum": 0.5},
        {"schedule": "momentum"},
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", PRICED)
def test_a_run_spends_what_it_promised_and_no_more(name: str, tmp_path: Path):
    """Each of two letters of a round was once charged for the whole round."""
    algorithm, more = PRICED[name]
    budget = {"epsilon": 1.0, "delta": 1e-5, **more}
    run = run_of(5, algorithm=algorithm, privacy=budget)
    with Town(tmp_path, post=PostRoom(), max_epsilon=1.0) as town:
        found = town.run(run)
    expected = simulated(run).params
    np.testing.assert_allclose(
        found["coordinator"].models["shared"], expected, rtol=1e-12
    )
    for agent in NAMES:
        spent = found[agent].numbers["epsilon_spent"]
        assert 0.9999 < spent <= 1.0
    with Ledger(tmp_path / "ada-home" / "ledger.db", read_only=True) as ledger:
        paid = [row.mu_squared for row in ledger.rows() if row.kind == "release"]
    # Reading the rows has paid for the first letter.
    assert paid.pop(1) == 0.0
    if name == "FedLin":
        assert len(paid) == 10 and paid.count(0.0) == 5
    else:
        assert paid == sorted(paid, reverse=True) and paid[0] > paid[-1]

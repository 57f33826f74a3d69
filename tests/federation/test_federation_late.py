"""A coordinator that waits for nobody, and what it leaves to be played again."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.federation.description import Description
from tacita.federation.diary import NAME, Diary
from tacita.federation.in_process import (
    COORDINATOR,
    Faults,
    InProcess,
    InProcessPost,
    run_in_process,
)
from tacita.federation.setting import blank_setting
from tacita.federation.state_file import StateFile
from tacita.federation.thread_post import PostRoom
from tacita.federation.wire import Identity
from tacita.problem import synthetic
from tests.federation.mortals import Mortal
from tests.federation.test_federation_parties import _Gone
from tests.federation.towns import Town, rows, run_of

AGENTS = 5
NEAR = {f"agent-{i}": 1.0 + 0.01 * i for i in range(4)}
ONE_IS_SLOW = Faults(far={**NEAR, "agent-4": 10.0})
FED_BUFF = tacita.FedBuff(step_size=0.3, local_steps=2, oracle=tacita.Minibatch(size=8))


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    return synthetic.logistic(agents=AGENTS, features=3, samples=20, seed=2)


class Watched:
    """A federation whose coordinator's rounds are written down.

    Attributes:
        heard: Whose letters every round took.
        ended: When it ended, and with which model.
    """

    def __init__(self, folder: Path, *about: Any, **terms: Any) -> None:
        self.made = InProcess(folder, *about, **terms)
        self.heard: dict[int, list[int]] = {}
        self.ended: list[tuple[float, np.ndarray]] = []
        make, number = self.made.make, self.made.names.index

        def watched(name: str) -> Any:
            party = make(name)

            def ended(round_number: int, who: Any) -> None:
                self.heard[round_number] = [number(agent) for agent in who]
                self.ended.append((self.post.now, party.model()))

            if name == COORDINATOR:
                party.desk = replace(party.desk, ended=ended)
            return party

        self.made.make = watched

    def run(self, faults: Faults, parties: Any = None) -> Any:
        self.post = InProcessPost(faults)
        parties = parties or self.made.parties()
        run_in_process(parties, self.post)
        return parties

    def arrivals(self, most_staleness: int | None = None) -> tacita.Arrivals:
        told = [self.heard[number] for number in sorted(self.heard)]
        return tacita.Arrivals(agents=told, most_staleness=most_staleness)


def played(problem, algorithm, arrivals: tacita.Arrivals) -> np.ndarray:
    rounds = len(arrivals.agents)
    told = {"seed": 3, "asynchronous": arrivals, "record": ()}
    return tacita.simulate(problem, algorithm, rounds, **told).params


@pytest.mark.parametrize(
    ("algorithm", "letters"),
    [
        (FED_BUFF, 4),
        (tacita.FedAsync(step_size=0.3, staleness="hinge", grace=1.0), 1),
    ],
    ids=["FedBuff", "FedAsync"],
)
def test_a_simulation_plays_it_again(problem, algorithm, letters, tmp_path):
    terms = {"participation": letters, "asynchronous": True}
    town = Watched(tmp_path, problem, algorithm, 14, 3, **terms)
    shared = town.run(ONE_IS_SLOW)[COORDINATOR].model()
    expected = played(problem, algorithm, town.arrivals())
    np.testing.assert_allclose(shared, expected, rtol=0, atol=1e-12)


def test_who_would_be_too_stale_is_asked_anew(problem, tmp_path):
    terms = {"participation": 2, "asynchronous": True, "most_staleness": 2}
    town = Watched(tmp_path, problem, FED_BUFF, 14, 3, **terms)
    shared = town.run(Faults(most_delay=4.0))[COORDINATOR].model()
    expected = played(problem, FED_BUFF, town.arrivals(2))
    np.testing.assert_allclose(shared, expected, rtol=0, atol=1e-12)
    # Some were given up and heard later: with other bounds it is another run.
    for bound in (3, None):
        other = played(problem, FED_BUFF, town.arrivals(bound))
        assert np.max(np.abs(shared - other)) > 1e-6


def test_large_letters_are_fetched_in_the_order_in_which_they_came(
    problem, tmp_path, monkeypatch
):
    """One at a time; who waits to be fetched as a round ends keeps its place."""
    for room in ("server_agent", "server_coordinator"):
        monkeypatch.setattr(f"tacita.federation.{room}.WINDOW", 1)
    terms = {"participation": 1, "asynchronous": True}
    town = Watched(tmp_path, problem, FED_BUFF, 15, 3, **terms)
    shared = town.run(Faults(far=dict.fromkeys(town.made.names, 0.1)))[COORDINATOR]
    arrivals = town.arrivals()
    expected = played(problem, FED_BUFF, arrivals)
    np.testing.assert_allclose(shared.model(), expected, rtol=0, atol=1e-12)
    assert np.bincount(arrivals.agents.ravel()).tolist() == [3] * AGENTS


def test_old_broadcasts_lie_on_the_disk_as_long_as_somebody_answers_them(
    problem, tmp_path
):
    """Memory and checkpoints once held one for every agent that was away."""
    terms = {"participation": 1, "asynchronous": True}
    town = Watched(tmp_path, problem, FED_BUFF, 12, 3, **terms)
    home = tmp_path / COORDINATOR
    sizes, aside = set(), []
    parties = town.made.parties()
    save = parties[COORDINATOR].desk.state_file.save

    def saved(words: Any, **groups: Any) -> None:
        save(words, **groups)
        sizes.add(sum(len(g) for name, g in groups.items() if name != "receipts"))
        aside.append(len([*home.glob("told-*.state")]))

    parties[COORDINATOR].desk.state_file.save = saved
    far = {name: 1.0 + 2.0 * i for i, name in enumerate(town.made.names)}
    shared = town.run(Faults(far=far), parties)[COORDINATOR].model()
    expected = played(problem, FED_BUFF, town.arrivals())
    np.testing.assert_allclose(shared, expected, rtol=0, atol=1e-12)
    assert len(sizes) == 1 and 2 < max(aside) <= AGENTS  # one for each who is away
    assert not [*home.glob("told-*.state")]


def test_an_old_broadcast_that_was_changed_is_refused(tmp_path):
    who = Identity("town", "run", "state", 0, 0, "hub", "hub")
    shelf = StateFile(tmp_path, bytes(32), who)
    for number in (3, 4):
        shelf.put_aside(number, [np.full(5, float(number))])
    assert shelf.all_aside() == {3, 4} and shelf.aside(4)[0][0] == 4.0
    first, second = (tmp_path / f"told-{number}.state" for number in (3, 4))
    second.write_bytes(first.read_bytes())
    with pytest.raises(tacita.TacitaError, match="in place of another"):
        shelf.aside(4)
    content = bytearray(first.read_bytes())
    content[-1] ^= 1
    first.write_bytes(content)
    with pytest.raises(tacita.TacitaError, match="damaged or was changed"):
        shelf.aside(3)
    shelf.drop_aside(3)
    with pytest.raises(tacita.TacitaError, match="is missing"):
        shelf.aside(3)


@pytest.mark.long
def test_deaths_and_a_bad_post_leave_a_run_that_can_be_played_again(problem, tmp_path):
    for seed in range(4):
        terms = {"participation": 3, "asynchronous": True}
        town = Watched(tmp_path / str(seed), problem, FED_BUFF, 12, 3, **terms)
        dice, names = random.Random(seed), [COORDINATOR, *town.made.names]
        parties: Any = {n: Mortal(town.made, n, dice, 0.03) for n in names}
        bad = Faults(loss=0.1, repeat=0.1, most_delay=3.0)
        town.run(bad, parties)
        assert sum(party.deaths for party in parties.values()) > 0
        shared, again = parties[COORDINATOR].model(), town.arrivals()
        expected = played(problem, FED_BUFF, again)
        np.testing.assert_allclose(shared, expected, rtol=0, atol=1e-12)


def test_an_agent_that_is_switched_off_stops_nothing(problem, tmp_path):
    terms = {"participation": 3, "asynchronous": True}
    town = Watched(tmp_path, problem, FED_BUFF, 6, 3, **terms)
    parties: Any = town.made.parties() | {"agent-2": _Gone()}
    town.run(Faults(), parties)
    assert parties[COORDINATOR].over
    assert not np.isin(2, town.arrivals().agents)


@pytest.mark.long
def test_one_slow_agent_of_five_costs_no_time(problem, tmp_path):
    """The same loss in at most 0.4 of the time in step, on the post's own clock."""
    in_step = Watched(tmp_path / "in-step", problem, FED_BUFF, 8, 3)
    in_step.run(ONE_IS_SLOW)
    terms = {"participation": 4, "asynchronous": True}
    late = Watched(tmp_path / "late", problem, FED_BUFF, 24, 3, **terms)
    late.run(ONE_IS_SLOW)

    def loss(model: np.ndarray) -> float:
        return float(problem.loss(model))

    whole, goal = in_step.ended[-1][0], loss(in_step.ended[-1][1])
    times = [now for now, model in late.ended if loss(model) <= goal]
    assert times, "the same loss was never reached"
    assert min(times) <= 0.4 * whole


def test_programs_leave_their_arrivals(tmp_path):
    run = run_of()
    run["algorithm"] = {"name": "FedBuff", "step_size": 0.3, "local_steps": 2}
    run["run"] |= {"participation": 2, "asynchronous": True, "most_staleness": 5}
    with Town(tmp_path, PostRoom()) as town:
        found = town.run(run)["coordinator"]
    kept = tacita.load_run(found.folder)
    arrivals = tacita.Arrivals(agents=kept.info["arrivals"], most_staleness=5)
    assert arrivals.agents.shape == (6, 2)
    parts = {name: rows(name) for name in ("ada", "bob", "cyd")}
    x, y = (np.concatenate([part[k] for part in parts.values()]) for k in (0, 1))
    made = tacita.from_arrays(x, y, np.repeat([*parts], 30), "logistic", l2=0.1)
    algorithm = tacita.FedBuff(step_size=0.3, local_steps=2)
    told = {"seed": 5, "asynchronous": arrivals}
    again = tacita.simulate(made, algorithm, 6, **told)
    np.testing.assert_allclose(found.models["shared"], again.params, atol=1e-12)


def test_arrivals_with_a_gap_are_none(tmp_path):
    """Without a round that a power cut took, another run would be played again."""
    diary = Diary(tmp_path, ["ada", "bob"], rounds=3)
    for number, who in enumerate((["ada"], ["bob"], ["bob"]), start=1):
        assert diary.arrivals() is None
        diary.ended(number, who)
    assert diary.arrivals() == [[0], [1], [1]]
    path = tmp_path / NAME
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[: len(second) // 2] + b"\n" + third)
    assert Diary(tmp_path, ["ada", "bob"], rounds=3).arrivals() is None


@pytest.mark.parametrize(
    ("algorithm", "told", "words"),
    [
        (
            "FedBuff",
            {"most_staleness": 3, "asynchronous": False},
            "asynchronous = true",
        ),
        ("FedBuff", {"participation": 0.5}, "participation = K"),
        ("FedBuff", {"deadline": 3.0}, "leave deadline out"),
        ("FedBuff", {"own_draws": True, "participation": 1.0}, "leave own_draws out"),
        ("FedBuff", {"late": "keep"}, "leave late out"),
        ("FedBuff", {"least_letters": 3}, "leave least_letters out"),
        ("FedBuff", {"participation": 1, "most_staleness": 1}, "most_staleness >= 2"),
        (
            "FedBuff",
            {"participation": 3, "aggregation": {"name": "Median"}},
            "joined by their mean",
        ),
        ("FedAvg", {}, "use FedBuff or FedAsync"),
    ],
)
def test_what_has_no_meaning_is_refused(algorithm, told, words):
    run = run_of()
    run["algorithm"] = {"name": algorithm, "step_size": 0.3}
    run["run"] = {"rounds": 4, "participation": 2, "asynchronous": True, **told}
    described = Description("town", "x", "coordinator", ("ada", "bob", "cyd"), run)
    with pytest.raises(tacita.TacitaError, match=words) as error:
        blank_setting(described)
    assert "\n" not in str(error.value)


def test_a_policy_knows_with_how_few_a_round_ends():
    run = run_of()
    run["run"] = {"rounds": 4, "participation": 2, "asynchronous": True}
    described = Description("town", "x", "coordinator", ("ada", "bob", "cyd"), run)
    assert described.fewest == 2

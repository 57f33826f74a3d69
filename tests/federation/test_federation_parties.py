"""One party at a time: what it refuses, whom it waits for, and for how long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import tacita
from tacita import keys
from tacita.federation.in_process import (
    COORDINATOR,
    Faults,
    InProcess,
    InProcessPost,
    Stuck,
    run_in_process,
)
from tacita.federation.receipts import BLANK
from tacita.federation.wire import Identity, Letter
from tacita.trees import double_precision
from tests.cases import case_of

FED_AVG, FED_PLT, FED_GD = map(case_of, ("FedAvg", "FedPLT", "FedGD"))


def letter(kind: str, sender: str, to: str, when=(1, 0), arrays=(), run="run") -> Any:
    name = Identity("test", run, kind, *when, sender, to)
    return Letter(name, (*(np.asarray(a) for a in arrays), BLANK, BLANK))


@pytest.fixture
def asked(tmp_path: Path):
    """A coordinator that has just asked everybody, and one agent."""
    made = InProcess(
        tmp_path, FED_PLT.problem(), FED_PLT.algorithm, 4, sealed=True, most_norm=10.0
    )
    parties = {name: made.make(name) for name in (COORDINATOR, "agent-0")}
    for party in parties.values():
        party.start(0.0)
    return made, parties


def send(made: InProcess, sender: str, to: Any, *words: Any, **more: Any) -> None:
    one = letter(words[0], sender, to.name, *words[1:], **more)
    to.receive(made.desk(sender).envelope.close(one), 0.0)


@pytest.mark.parametrize(
    "arrays, reason",
    [
        ([np.zeros(4)], "expected an array"),
        ([np.zeros(3, np.float32)], "expected an array"),
        ([np.zeros(3), np.zeros(3)], "expected 1 arrays"),
        ([], "expected 1 arrays"),
        ([np.array([0, np.nan, 0])], "NaN or entries beyond"),
        ([np.array([0, 1.7e308, 0])], "NaN or entries beyond"),
        ([np.array([0, 0, 11.0])], "norm beyond 10"),
    ],
)
def test_the_coordinator_refuses_bad_answers(asked, arrays, reason):
    made, parties = asked
    centre = parties[COORDINATOR]
    send(made, "agent-0", centre, "answer", (1, 0), arrays)
    (told,) = centre.counts.refused
    assert reason in told
    send(made, "agent-0", centre, "answer", (1, 0), [np.ones(3)])  # a good one counts
    assert centre._counted == {0}


def test_nan_is_refused_without_a_norm_too(tmp_path: Path):
    made = InProcess(tmp_path, FED_PLT.problem(), FED_PLT.algorithm, 4)
    centre: Any = made.make(COORDINATOR)
    centre.start(0.0)
    send(made, "agent-0", centre, "answer", (1, 0), [np.array([0, np.nan, 0])])
    assert "NaN" in next(iter(centre.counts.refused))


def test_who_is_asked_nothing_cannot_fetch_it(asked):
    """There is no broadcast of a round 0, and looking for it ended the coordinator."""
    made, parties = asked
    centre = parties[COORDINATOR]
    send(made, "agent-0", centre, "answer", (1, 0), [np.ones(3)])
    centre.outbox.clear()
    for kind in ("fetch", "ask", "ready"):
        send(made, "agent-0", centre, kind, (0, 0))
    assert not centre.outbox


def test_replays_and_strays_are_refused(asked):
    made, parties = asked
    centre = parties[COORDINATOR]
    answer = letter("answer", "agent-0", COORDINATOR, (1, 0), [np.ones(3)])
    content = made.desk("agent-0").envelope.close(answer)
    centre.receive(content, 0.0)
    total = centre._tally._total.values()[0].copy()
    centre.receive(content, 0.0)  # the very same bytes
    send(made, "agent-0", centre, "answer", (1, 0), [np.full(3, 2.0)])  # another one
    assert centre.counts.repeated == 2
    np.testing.assert_array_equal(centre._tally._total.values()[0], total)
    for when in ((2, 0), (0, 0), (1, 1)):
        send(made, "agent-1", centre, "answer", when, [np.ones(3)])
    send(made, "agent-1", centre, "pass", (1, 0))
    send(made, "agent-1", centre, "question", (1, 0))
    send(made, "agent-1", centre, "answer", (1, 0), [np.ones(3)], run="old")
    assert sum(centre.counts.refused.values()) == 5
    assert centre.counts.repeated == 3
    assert centre._counted == {0}


def test_an_agent_refuses_bad_questions(asked):
    made, parties = asked
    agent = parties["agent-0"]
    last = np.asarray(0)
    for bad in (
        ("question", (1, 0), [np.zeros(4), last]),
        ("question", (1, 0), [np.zeros(3)]),
        ("question", (1, 0), [np.zeros(3), np.asarray(7)]),
        ("question", (1, 0), [np.array([0, np.inf, 0]), last]),
        ("question", (1, 5), [np.zeros(3), last]),
        ("question", (5, 0), [np.zeros(3), last]),  # four rounds were agreed on
        ("answer", (1, 0), [np.zeros(3)]),
    ):
        send(made, COORDINATOR, agent, *bad)
    send(made, "agent-1", agent, "question", (1, 0), [np.zeros(3), last])
    assert sum(agent.counts.refused.values()) == 8
    assert agent.counts.refused["4 rounds were agreed on, not 5"] == 1
    assert agent.round == 0
    agent.take_out()
    send(made, COORDINATOR, agent, "question", (1, 0), [np.zeros(3), last])
    assert agent.round == 1
    ((to, first),) = agent.take_out()
    send(made, COORDINATOR, agent, "fetch", (1, 0))
    ((_, second),) = agent.take_out()
    opened = [made.desk(to).envelope.open(c, 1 << 20) for c in (first, second)]
    assert opened[0].arrays[0].tobytes() == opened[1].arrays[0].tobytes()


def test_a_coordinator_cannot_ask_for_more_steps_than_were_agreed_on(tmp_path: Path):
    """TAMUNA's broadcast names the steps; fixed ones are what an account is of."""
    fixed = tacita.TAMUNA(step_size=0.3, eta=0.3, local_steps=2, fixed=True)
    last, answers = np.asarray(0), []
    for steps in (2, 50):
        folder, problem = tmp_path / str(steps), case_of("TAMUNA").problem()
        made = InProcess(folder, problem, fixed, 4)
        agent = made.make("agent-0")
        agent.start(0.0)
        list(agent.take_out())
        told = [np.zeros(3), np.asarray(steps), last]
        send(made, COORDINATOR, agent, "question", (1, 0), told)
        ((_, content),) = agent.take_out()
        answers.append(made.desk(COORDINATOR).envelope.open(content, 1 << 20).arrays[0])
    np.testing.assert_array_equal(*answers)


def test_a_neighbour_refuses_strangers_and_silent_rounds(tmp_path: Path):
    made = InProcess(tmp_path, FED_GD.problem(), FED_GD.algorithm, 4, 3, 2)
    agent: Any = made.make("agent-0")
    agent.start(0.0)
    good = [np.zeros(3)]
    silent = next(r for r in range(1, 5) if made.roles.calendar.last(1, r) != r)
    send(made, "agent-3", agent, "answer", (0, 0), good)
    send(made, "agent-1", agent, "answer", (silent, 0), good)
    send(made, "agent-1", agent, "answer", (0, 0), [np.zeros(2)])
    send(made, "agent-1", agent, "question", (0, 0), good)
    assert sum(agent.counts.refused.values()) == 4
    assert not agent._inbox


def test_a_missing_agent_stalls_only_where_there_is_no_deadline(tmp_path: Path):
    problem, algorithm = FED_AVG.problem(), FED_AVG.algorithm
    for k, terms in enumerate(({}, {"deadline": 5.0, "least_letters": 5})):
        made = InProcess(tmp_path / str(k), problem, algorithm, 3, **terms, linger=9.0)
        parties = made.parties()
        post = InProcessPost()
        others = {n: p for n, p in parties.items() if n != "agent-2"}
        others["agent-2"] = _Gone()
        if terms:
            run_in_process(others, post)
            assert others[COORDINATOR].over  # pyright: ignore
            assert post.now >= 15.0
        else:
            with pytest.raises(Stuck, match="coordinator in round 1"):
                run_in_process(others, post, most_steps=300)


class _Gone:
    """A party that is switched off."""

    finished, round, name = True, 0, "agent-2"

    def start(self, now: float) -> None:
        pass

    tick = start

    def receive(self, content: bytes, now: float) -> None:
        pass

    def take_out(self) -> list:
        return []


class _Slow:
    """Delays everything that one party receives."""

    def __init__(self, party: Any, seconds: float) -> None:
        self._party, self._seconds, self._held = party, seconds, []

    def receive(self, content: bytes, now: float) -> None:
        self._held.append((now + self._seconds, content))

    def tick(self, now: float) -> None:
        while self._held and self._held[0][0] <= now:
            self._party.receive(self._held.pop(0)[1], now)
        self._party.tick(now)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._party, name)


@pytest.mark.parametrize("late", ["keep", "drop"])
def test_late_letters_are_kept_or_dropped_and_the_mean_stays_right(tmp_path, late):
    terms = {"deadline": 2.0, "least_letters": 4, "late": late}
    made = InProcess(tmp_path, FED_PLT.problem(), FED_PLT.algorithm, 12, **terms)
    parties: Any = made.parties()
    centre, slow = parties[COORDINATOR], parties["agent-4"]
    parties["agent-4"] = _Slow(slow, 4.5)
    run_in_process(parties, InProcessPost(Faults(most_delay=0.3), 1))
    counted = int(centre._credited[4])
    assert (1 <= counted < 12) if late == "keep" else counted == 0
    # Whatever was counted, the running mean is the mean of the counted letters.
    total = 0.0
    for i, name in enumerate(made.names):
        agent = slow if name == "agent-4" else parties[name]
        total = total + agent._letters[int(centre._credited[i])][0]
    np.testing.assert_allclose(centre._tally.kept[0], total / 6, rtol=0, atol=1e-13)


def test_agents_draw_their_own_rounds(tmp_path: Path):
    made = InProcess(
        tmp_path, FED_AVG.problem(), FED_AVG.algorithm, 6, 3, 0.5, own_draws=True
    )
    parties: Any = made.parties()
    run_in_process(parties, InProcessPost(Faults(0.2, 0.2, 2.0), 3))
    problem, algorithm = made.problem, made.algorithm
    with double_precision():
        w, states = problem.start, [None] * 6
        for number in range(1, 7):
            letters = []
            for i, secret in enumerate(made.secrets):
                draw = jax.random.fold_in(keys.agent_key(secret, 0, 0), number)
                if not jax.random.uniform(draw) < 0.5:
                    continue
                oracle = tacita.problem.oracles.AgentOracle(
                    algorithm.oracle, made.locals[i]
                )
                key = keys.agent_key(secret, number, 0)
                now = algorithm.in_round(number)
                states[i], sent = now.local(key, oracle, states[i], w)
                letters.append(np.asarray(sent))
            w = np.mean(letters, axis=0) if letters else w
    np.testing.assert_allclose(parties[COORDINATOR].model(), w, rtol=0, atol=1e-12)


def test_agents_draw_with_chances_of_their_own(tmp_path: Path):
    chances = [1e-9, 1.0, 1e-9, 1.0, 1e-9, 1.0]
    made = InProcess(
        tmp_path, FED_AVG.problem(), FED_AVG.algorithm, 3, 3, chances, own_draws=True
    )
    parties: Any = made.parties()
    run_in_process(parties, InProcessPost())
    alone = [i for i, chance in enumerate(chances) if chance == 1.0]
    silent = [i for i in range(6) if i not in alone]
    for i in range(6):
        assert parties[f"agent-{i}"]._passed == (i in silent)


def test_own_draws_are_refused_where_they_would_be_left_out(tmp_path: Path):
    told = (FED_AVG.problem(), FED_AVG.algorithm, 3, 3)
    with pytest.raises(tacita.TacitaError, match="not participation = 2 agents"):
        InProcess(tmp_path, *told, 2, own_draws=True)
    graph = case_of("FedGD")
    told = (graph.problem(), graph.algorithm, 3, 3)
    with pytest.raises(tacita.TacitaError, match="on a graph everybody has to know"):
        InProcess(tmp_path, *told, 0.5, own_draws=True)


def test_the_coordinator_keeps_one_vector_not_one_per_agent(tmp_path: Path):
    sizes = {}
    for n in (4, 40):
        problem = tacita.problem.synthetic.logistic(agents=n, features=500, samples=4)
        made = InProcess(tmp_path / str(n), problem, tacita.FedPLT(rho=1.0), 2)
        made.run()
        centre: Any = made.make(COORDINATOR)
        centre.start(0.0)
        sizes[n] = (tmp_path / str(n) / COORDINATOR / "party.state").stat().st_size
        vectors = [v for v in vars(centre).values() if isinstance(v, np.ndarray)]
        assert sum(v.size for v in vectors) <= 5 * n
    assert sizes[40] - sizes[4] < 36 * 100  # a few numbers per agent, no vector


class Deaf:
    """A node that sends its first letters, and is never heard of again."""

    finished = True

    def __init__(self, party: Any) -> None:
        self._party = party

    def receive(self, content: bytes, now: float) -> None:
        pass

    def tick(self, now: float) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._party, name)


def test_on_a_graph_a_deadline_lets_the_others_go_on(tmp_path: Path):
    """Its neighbours use the letter of the silent one again, in every round."""
    terms = {"deadline": 3.0, "linger": 9.0}
    made = InProcess(tmp_path, FED_GD.problem(), FED_GD.algorithm, 4, **terms)
    parties: Any = made.parties()
    gone = Deaf(parties["agent-0"])
    post = InProcessPost()
    run_in_process({**parties, "agent-0": gone}, post)
    rounds = {name: party.round for name, party in parties.items()}
    assert rounds.pop("agent-0") == 0 and set(rounds.values()) == {4}
    assert post.now >= 3 * 3.0  # every round but the first waits for it
    calm = InProcess(tmp_path / "calm", FED_GD.problem(), FED_GD.algorithm, 4)
    _, agents = calm.run()
    assert not np.array_equal(parties["agent-1"].model(), agents[1])

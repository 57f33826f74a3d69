"""Federations with secure sums: the bits of `debug`, whatever happens to parties."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.aggregation.secure.letters import KINDS
from tacita.aggregation.secure.secure_agent import Wanted
from tacita.aggregation.secure.steps import Step
from tacita.federation import Invitation, PostRoom
from tacita.federation.agent_keys import OwnKeys
from tacita.federation.in_process import (
    COORDINATOR,
    Faults,
    InProcess,
    InProcessPost,
    run_in_process,
)
from tacita.federation.seal import Sealed
from tacita.federation.sum_parts import SigningKeys
from tacita.federation.wire import Identity
from tacita.privacy import Ledger
from tacita.trees import double_precision
from tests.federation.mortals import (
    EVENTS,
    SOME_LOSS,
    Ledgers,
    Mortal,
    chaos,
    summed,
)
from tests.federation.test_federation_taint import Recorder, leaks, markers
from tests.federation.towns import (
    COLUMNS,
    LENIENT,
    NAMES,
    Town,
    run_of,
    table_of_rows,
)
from tests.patience import HANG

ROUNDS = 6
BAD_POST = Faults(loss=0.2, repeat=0.2, most_delay=1.0)


@pytest.mark.long
@pytest.mark.parametrize(
    "agents, rule",
    [
        (5, {"least": 4, "colluding": 1, "window": 2}),
        pytest.param(8, {"least": 6}, marks=pytest.mark.long),
        pytest.param(20, {"least": 13, "colluding": 2}, marks=pytest.mark.long),
    ],
)
def test_the_bits_of_one_agent_at_a_time(agents, rule, tmp_path: Path):
    problem, made = summed(agents, **rule)
    run = tacita.debug(problem, made, ROUNDS, seed=3)
    for faults in (None, BAD_POST):
        folder = tmp_path / str(faults is None)
        federation = InProcess(folder, problem, made, ROUNDS, 3, sealed=True)
        shared, _ = federation.run(faults, seed=1)
        assert shared.tobytes() == run.params.tobytes()


def test_masks_alone_have_the_bits_of_a_simulation(tmp_path: Path):
    """Without noise: nobody reads a letter, and no epsilon is claimed.

    Everybody is in every sum, so openings come with the answers.
    """
    problem, _ = summed(4, least=3)
    rule = tacita.SecureSum(largest=8.0)
    run = tacita.debug(problem, tacita.ServerGD(step_size=0.5), 4, aggregation=rule)
    made = tacita.aggregation.Summed(
        algorithm=tacita.ServerGD(step_size=0.5), aggregation=rule
    )
    for faults in (None, BAD_POST):
        folder = tmp_path / str(faults is None)
        shared, _ = InProcess(folder, problem, made, 4).run(faults, seed=1)
        assert shared.tobytes() == run.params.tobytes()


class Silent(InProcessPost):
    """Some agents say nothing more, from a moment on."""

    def __init__(self, names: set[str], kind: str, after: int) -> None:
        super().__init__()
        self._names, self._kind, self._left = names, kind, after
        self.seen: list[Identity] = []

    def deliver(self, to: str, content: bytes) -> None:
        one = tacita.federation.wire.decode(content).identity
        self.seen.append(one)
        if one.sender in self._names and one.kind == self._kind:
            self._left -= 1
            if self._left < 0:
                return
        super().deliver(to, content)


@pytest.mark.parametrize("kind", ["answer", "secure"])
def test_dropouts_leave_the_sum_of_the_others(kind: str, tmp_path: Path):
    """Their masks are taken out with what the others hold of their secrets."""
    problem, made = summed(6, least=4)
    gone = {"agent-1", "agent-4"}
    federation = InProcess(tmp_path, problem, made, ROUNDS, 3, deadline=3.0, linger=1.0)
    parties = federation.parties()
    # Set-up takes a few letters of the protocol; then two agents fall silent.
    post = Silent(gone, kind, after=3 if kind == "answer" else 40)
    for party in parties.values():
        party.start(0.0)
    centre: Any = parties[COORDINATOR]
    _drive(parties, post, lambda: centre.finished)
    shared = centre.model()
    assert centre.round == ROUNDS + 1 and np.isfinite(shared).all()
    assert centre.void == {}
    # Noise is that of the sum: with four letters more than with six, and no mask is
    # left in it, which would be of the order of 2^31 steps.
    assert np.abs(shared).max() < 100.0


def _drive(
    parties: Any, post: InProcessPost, over: Any, seconds: float = 200.0
) -> None:
    while not over() and post.now < seconds:
        for party in parties.values():
            for to, content in party.take_out():
                post.deliver(to, content)
        item = post.next()
        if item is not None:
            parties[item[0]].receive(item[1], post.now)
            continue
        post.now += 0.25
        for party in parties.values():
            party.tick(post.now)


def test_a_sum_of_everybody_needs_no_second_exchange(tmp_path: Path):
    """And whose next question is lost is asked again, whoever answered last."""
    problem, _ = summed(4, least=3)
    rule = tacita.SecureSum(largest=8.0)
    algorithm = tacita.ServerGD(step_size=0.5)
    made = tacita.aggregation.Summed(algorithm=algorithm, aggregation=rule)
    federation = InProcess(tmp_path, problem, made, 4)
    parties, post = federation.parties(), Silent({COORDINATOR}, "question", after=8)
    for party in parties.values():
        party.start(0.0)
    _drive(parties, post, lambda: post.now >= 3.0)
    kinds = [one.kind for one in post.seen]
    assert kinds.count("answer") == 8  # two rounds; questions of the third are lost
    steps = {one.phase for one in post.seen if one.kind == "secure"}
    assert {list(KINDS)[step] for step in steps} == {
        "call", "keys", "roster", "shares", "ready"
    }  # fmt: skip
    asks = [one for one in post.seen if (one.kind, one.sender) == ("ask", COORDINATOR)]
    assert {one.receiver for one in asks} == set(federation.names)


def test_a_coordinator_that_fixed_a_set_remembers_whom_it_heard(tmp_path: Path):
    """Or an agent whose folder and ledger are old would not be told that they are."""
    problem, made = summed(4, least=3)
    federation = InProcess(tmp_path, problem, made, ROUNDS, 3)
    parties = federation.parties()
    post = Silent(set(federation.names), "answer", after=7)
    for party in parties.values():
        party.start(0.0)
    centre: Any = parties[COORDINATOR]
    _drive(parties, post, lambda: post.now > 0.0)
    assert len(centre._machine.awaited) == 1 and centre.round == 2
    post._left = 1
    _drive(parties, post, lambda: centre._machine.stage == "opening")
    again = federation.make(COORDINATOR)
    again.start(post.now)
    for name in federation.names:
        assert again.receipts.of(name).tolist() == centre.receipts.of(name).tolist()
        assert again.receipts.of(name)[0] == 2


def test_too_few_answers_make_no_sum(tmp_path: Path):
    problem, made = summed(5, least=4)
    federation = InProcess(tmp_path, problem, made, ROUNDS, 3, deadline=2.0, linger=1.0)
    parties = federation.parties()
    post = Silent({"agent-0", "agent-1"}, "answer", after=4)  # two rounds of both
    for party in parties.values():
        party.start(0.0)
    centre: Any = parties[COORDINATOR]
    _drive(parties, post, lambda: centre.finished, seconds=60.0)
    assert centre.round == 3 and not centre.finished


@pytest.mark.parametrize("runs", [2, pytest.param(40, marks=pytest.mark.long)])
def test_deaths_at_any_step_change_no_bit(runs: int, tmp_path: Path):
    calm, deaths = {}, 0
    for seed in range(runs):
        least, folder = 3 + seed % 2, tmp_path / str(seed)
        problem, made = summed(4, least=least)
        if least not in calm:
            quiet = InProcess(tmp_path / f"calm {least}", problem, made, ROUNDS, 3)
            calm[least], _ = quiet.run()
        federation = InProcess(folder, problem, made, ROUNDS, 3)
        released: dict[tuple, bytes] = {}

        def charge(identity: Identity, content: bytes | None) -> None:
            name = identity.sender, identity.round, identity.phase
            assert released.setdefault(name, content) == content  # noqa: B023

        federation.charge = dict.fromkeys(federation.names, charge)
        dice = random.Random(seed)
        parties: Any = {
            name: Mortal(federation, name, dice, 0.04) for name in federation.parties()
        }
        run_in_process(parties, InProcessPost(SOME_LOSS, seed))
        shared, _ = federation.models(parties)
        assert shared.tobytes() == calm[least].tobytes()
        assert len(released) == 4 * ROUNDS
        deaths += sum(party.deaths for party in parties.values())
    assert deaths >= 5 * runs


@pytest.mark.few(1)
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("seeds", [1, pytest.param(10, marks=pytest.mark.long)])
def test_whatever_happens_nothing_is_lost_or_counted_too_little(
    event: str, seeds: int, tmp_path: Path
):
    for seed in range(seeds):
        assert chaos(tmp_path / str(seed), "SecureSum", seed, event)


class Lost(InProcessPost):
    """Some agents' openings of one exchange do not come."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names

    def deliver(self, to: str, content: bytes) -> None:
        one = tacita.federation.wire.decode(content).identity
        opening = (one.kind, one.phase) == ("secure", list(KINDS).index("opening"))
        if not (opening and one.round == 1 and one.sender in self._names):
            super().deliver(to, content)


def test_a_round_that_nobody_can_open_is_void_and_paid_for(tmp_path: Path):
    problem, made = summed(4, least=3)
    federation = InProcess(tmp_path, problem, made, ROUNDS, 3, deadline=2.0)
    charged: set[tuple[str, int]] = set()

    def charge(identity: Identity, content: bytes | None) -> None:
        charged.add((identity.sender, identity.round))

    federation.charge = dict.fromkeys(federation.names, charge)
    parties = federation.parties()
    run_in_process(parties, Lost("agent-1", "agent-2", "agent-3"))
    centre: Any = parties[COORDINATOR]
    assert list(centre.void) == [2] and "opening" in centre.void[2]
    assert {number for _, number in charged} == set(range(1, ROUNDS + 1))
    assert np.isfinite(centre.model()).all()


@pytest.mark.parametrize("deadline, seconds", [(None, 1.5), (0.5, 0.75)])
def test_others_open_a_sum_where_somebody_does_not(deadline, seconds, tmp_path: Path):
    """All at once, when the first is late, or at the deadline; no round is void."""
    problem, made = summed(4, least=3)
    federation = InProcess(tmp_path, problem, made, ROUNDS, 3, deadline=deadline)
    parties, post = federation.parties(), Lost("agent-0")
    run_in_process(parties, post)
    centre: Any = parties[COORDINATOR]
    assert centre.void == {} and 0.0 < post.now <= seconds


@pytest.mark.parametrize("sealed", [False, True])
def test_a_site_changes_its_keys_in_the_middle_of_a_run(sealed, tmp_path: Path):
    """Shares and rosters were looked at with the keys that it had at the beginning."""
    problem, made = summed(4, least=3, window=2)
    calm, _ = InProcess(tmp_path / "calm", problem, made, ROUNDS, 3).run()
    federation = InProcess(tmp_path / "a", problem, made, ROUNDS, 3, sealed=sealed)
    parties, post = federation.parties(), InProcessPost()
    for party in parties.values():
        party.start(0.0)
    centre: Any = parties[COORDINATOR]
    _drive(parties, post, lambda: centre.round == 4)
    federation.change_keys("agent-1", parties)
    parties["agent-1"].start(post.now)
    _drive(parties, post, lambda: centre.finished)
    assert centre.finished and centre.void == {}
    assert centre.model().tobytes() == calm.tobytes()


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize(
    "places", [range(9, 15), pytest.param(range(5, 105), marks=pytest.mark.long)]
)
def test_keys_may_change_after_any_letter(gone, places, tmp_path: Path):
    """The coordinator held on to keys that were signed with a key that was no more."""
    problem, made = summed(4, least=3, window=2)

    def finished_in(letters: int, after: int) -> bool:
        terms = {"deadline": 2.0} if gone else {}
        folder = tmp_path / str(after)
        federation = InProcess(folder, problem, made, 4, 3, **terms)
        parties, post = federation.parties(), Counted(after)
        for party in parties.values():
            party.start(0.0)
        centre: Any = parties[COORDINATOR]
        _drive(parties, post, lambda: centre.finished or post.left == 0)
        if gone:
            federation.remove("agent-1", parties)
            post.gone = "agent-1"
        else:
            federation.change_keys("agent-1", parties)
            parties["agent-1"].start(post.now)
        post.left = letters
        _drive(parties, post, lambda: centre.finished)
        return centre.finished

    assert all(finished_in(10_000, after) for after in places)


class Counted(InProcessPost):
    """Counts down the letters that it delivers; none to somebody who is gone."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left, self.gone = left, ""

    def next(self) -> tuple[str, bytes] | None:
        while (item := super().next()) is not None and item[0] == self.gone:
            pass
        self.left -= item is not None
        return item


def test_who_was_removed_signs_nothing_any_more():
    keys = {"a": b"1" * 32, "b": b"2" * 32}
    known = SigningKeys(("a", "b", "c"), keys.get)
    assert known["a"] == keys["a"] and dict(known).keys() == {"a", "b", "c"}
    gone = known["c"]
    assert len(gone) == 32 and gone not in keys.values()
    del keys["a"]
    assert known["a"] not in (b"1" * 32, gone) and len(set(known.values())) == 3
    with pytest.raises(KeyError):
        known["d"]


def secure_run(**more: Any) -> dict[str, Any]:
    run = run_of(
        rounds=4,
        privacy={"epsilon": 4.0, "delta": 1e-5, "norm": 1.0},
        secure={"least": 3, "rows": 30},
    )
    run["algorithm"] = {"name": "DPSGD", "step_size": 0.5}
    run["run"] = {"rounds": 4}
    return {**run, **more}


@pytest.mark.parametrize("least", [2, 3])
def test_programs_agree_on_noise_and_charge_what_they_promised(
    least: int, tmp_path: Path
):
    room = Recorder()
    with Town(tmp_path, room, aggregation="secure", max_epsilon=4.0) as town:
        for name, path in town.hub.invitations.items():
            me = Invitation.load(path)
            room.readers[name] = Sealed(name, me.keys, me.others)
        agents = [town.join(name) for name in NAMES]
        shared = town.coordinate(secure_run(secure={"least": least, "rows": 30}))
        told = [agent.result(HANG) for agent in agents]
    sent = [x for x in room.letters if x.identity.sender != "coordinator"]
    answers = [x for x in sent if x.identity.kind == "answer"]
    assert len(answers) >= 12
    assert {x.arrays[1].dtype.name for x in answers} == {"uint32"}
    values = [v for n in NAMES for v in table_of_rows(n)[COLUMNS].to_numpy().ravel()]
    assert leaks(sent, markers(values)) == []
    # What is left of a budget may depend on rows: no other agent is told.
    among = [x for x in sent if x.identity.receiver in NAMES]
    assert among and not any(x.text for x in among)
    assert shared is not None
    for one in told:
        assert one.models["shared"].tobytes() == shared.models["shared"].tobytes()
        assert 3.9 < one.numbers["epsilon_spent"] <= 4.0
    sets = 0
    for name in NAMES:
        with Ledger(tmp_path / f"{name}-home" / "ledger.db", read_only=True) as ledger:
            kinds = [(row.kind, row.phase) for row in ledger.rows()]
        assert kinds.count(("release", "phase-0")) == 4 and ("note", "roster") in kinds
        sets += kinds.count(("note", "set"))
    # Two of three open a sum; where all have to be in it, there is no set to agree on.
    assert 8 <= sets <= 12 if least < len(NAMES) else sets == 0
    # The secret of the run is deleted with its end.
    (state,) = (tmp_path / "ada-home").glob("*/party.state")
    assert b'"sum"' not in state.read_bytes()


@pytest.mark.parametrize(
    "more, reason",
    [
        ({"secure": {"least": 3}}, "give secure.rows"),
        ({"secure": {"least": 4, "rows": 30}}, "least"),
        ({"secure": {"least": 2, "rows": 30, "colluding": 1}}, "least"),
        ({"run": {"rounds": 4, "participation": 2}}, "run.participation does not go"),
        ({"run": {"rounds": 4, "own_draws": True}}, "run.own_draws does not go"),
        ({"run": {"rounds": 4, "late": "keep"}}, "run.late does not go"),
        ({"run": {"rounds": 4, "most_norm": 1.0}}, "run.most_norm does not go"),
        ({"run": {"rounds": 4, "aggregation": {"name": "Median"}}},
         "run.aggregation does not go"),
        ({"privacy": {"epsilon": 4.0, "delta": 1e-5, "noise_kind": "float"}},
         "privacy.noise_kind does not go"),
        ({"algorithm": {"name": "FedPLT", "rho": 1.0}}, "FedPLT has no secure sum"),
        ({"algorithm": {"name": "FedAvg", "step_size": 0.1, "weights": "samples"}},
         'weights = "samples" does not go'),
    ],
)  # fmt: skip
def test_what_a_secure_sum_cannot_do_is_refused(more, reason, tmp_path: Path):
    with Town(tmp_path, PostRoom()) as town:
        with pytest.raises(tacita.TacitaError, match=reason) as refusal:
            town.coordinate(secure_run(**more))
    assert "\n" not in str(refusal.value)


def test_a_policy_may_ask_for_secure_sums_and_partners(tmp_path: Path):
    from tacita.federation.description import Description

    policy = tacita.federation.Policy.of_words(
        {**LENIENT, "aggregation": "secure", "max_colluding": 1, "partners": ["bob"]}
    )

    def objection(agents: tuple[str, ...], **tables: Any) -> str:
        run = Description("town", "try", "coordinator", agents, run_of(**tables))
        return policy.objection(run) or ""

    assert "only secure sums" in objection(("ada", "bob", "cyd"))
    secure = {"least": 3, "rows": 30}
    assert "bears 0 colluding" in objection(("ada", "bob", "cyd"), secure=secure)
    nothing = {**secure, "colluding": None}
    assert "bears None colluding" in objection(("ada", "bob", "cyd"), secure=nothing)
    secure = {**secure, "colluding": 1}
    assert "bob does not take part" in objection(("ada", "cyd", "dan"), secure=secure)
    assert objection(("ada", "bob", "cyd", "dan"), secure=secure) == ""


class Asked:
    """A machine to which a question belongs to a context, and which keeps letters."""

    def __init__(self, context: bytes) -> None:
        self.context, self.letters = context, []

    def asked(self, exchange: int, question: bytes) -> Wanted:
        return Wanted(exchange, self.context, b"")

    def answer(self, wanted: Wanted, letter: np.ndarray) -> Step:
        self.letters.append(letter)
        return Step()

    def release(self, step: Step) -> tuple:
        return ()


def test_a_letter_under_the_same_masks_is_the_same_letter(tmp_path: Path):
    """Batches once followed from earlier questions, masks and noise did not."""
    problem, _ = summed(4, least=3)
    batches = tacita.Minibatch(size=5)
    made = tacita.private(
        problem,
        tacita.ServerGD(step_size=1.0, oracle=batches),
        epsilon=2.0,
        delta=1e-5,
        observer="coordinator",
        rounds=6,
        aggregation=tacita.SecureSum(least=3),
    )
    federation = InProcess(tmp_path, problem, made, ROUNDS)
    federation.own_keys = [OwnKeys(b"s" * 32)] * problem.n_agents
    agent: Any = federation.make("agent-0")
    agent.start(0.0)
    told = np.zeros(problem.dim)
    found = {}
    for context in (b"a" * 32, b"b" * 32):
        agent._machine = machine = Asked(context)
        for before in ("one history", "another"):
            key = agent._keys.noise(3, 0, before)
            with double_precision():
                agent._compute((3, 0), key, told, 0)
        first, again = machine.letters
        np.testing.assert_array_equal(first, again)
        found[context] = first
    assert np.any(found[b"a" * 32] != found[b"b" * 32])


class Recorded(InProcessPost):
    """Keeps everything that was sent to or by somebody."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.sent: list[tuple[Identity, bytes]] = []

    def deliver(self, to: str, content: bytes) -> None:
        one = tacita.federation.wire.decode(content).identity
        if self._name in (to, one.sender):
            self.sent.append((one, content))
        super().deliver(to, content)

    def of(self, kind: str, number: int) -> bytes:
        """The first letter of a kind in a round."""
        found = (c for one, c in self.sent if (one.kind, one.round) == (kind, number))
        return next(found)


@pytest.mark.parametrize("changed", (False, True))
def test_other_rows_get_no_letter_under_masks_that_were_used(changed, tmp_path: Path):
    """A folder that was put back knows nothing of its last letter, the ledger does."""
    problem, made = summed(4, least=4)
    town = Ledgers(tmp_path, problem, made, ROUNDS, 3)
    parties, post = town.parties(), Recorded("agent-0")
    for party in parties.values():
        party.start(0.0)
    _drive(parties, post, lambda: parties["agent-0"].round == 2)
    shutil.copytree(tmp_path / "agent-0", tmp_path / "backup")
    _drive(parties, post, lambda: parties["agent-0"].round == 3)
    for party in parties.values():
        for to, content in party.take_out():
            post.deliver(to, content)
    shutil.rmtree(tmp_path / "agent-0")
    (tmp_path / "backup").rename(tmp_path / "agent-0")
    if changed:
        own = town.locals[0]
        town.locals[0] = replace(own, rows=own.rows._replace(y=-own.rows.y))
    again = town.make("agent-0")
    again.start(post.now)
    if changed:
        with pytest.raises(tacita.TacitaError, match="already charges another letter"):
            again.receive(post.of("question", 3), post.now)
    else:
        again.receive(post.of("question", 3), post.now)
    told = [tacita.federation.wire.decode(content) for _, content in again.take_out()]
    first = tacita.federation.wire.decode(post.of("answer", 3)).arrays[1]
    answers = [one.arrays[1] for one in told if one.identity.kind == "answer"]
    assert len(answers) == (not changed)
    assert all(np.array_equal(first, answer) for answer in answers)


def test_rows_stay_the_same_as_long_as_masks_do(tmp_path: Path):
    """A ledger that was put back with its folder knows nothing of a letter either."""
    problem, made = summed(4, least=4)
    town = InProcess(tmp_path, problem, made, ROUNDS)
    town.own_keys = [OwnKeys(bytes([i]) * 32) for i in range(problem.n_agents)]
    parties, post = town.parties(), InProcessPost()
    for party in parties.values():
        party.start(0.0)
    _drive(parties, post, lambda: parties["agent-0"].round == 2)
    town.make("agent-0").start(post.now)
    town.own_keys[0] = OwnKeys(b"r" * 32)  # those of other rows
    with pytest.raises(tacita.TacitaError, match="rows of agent-0 were changed"):
        town.make("agent-0").start(post.now)

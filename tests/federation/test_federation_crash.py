"""Parties that die at any moment: the same bits, and a ledger that holds it all."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacita
from tacita.federation.in_process import (
    InProcess,
    InProcessPost,
    run_in_process,
)
from tacita.federation.state_file import NAME, StateFile
from tacita.federation.wire import Identity
from tacita.privacy.accounting.mechanisms import gaussian_guarantee
from tacita.privacy.ledger.charges import Ledger
from tests.cases import case_of
from tests.federation.mortals import EVENTS, SOME_LOSS, Mortal, chaos


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "case", [*map(case_of, ("FedPLT", "FedLin", "FedGD"))], ids=lambda c: c.name
)
@pytest.mark.parametrize("runs", [2, pytest.param(6, marks=pytest.mark.long)])
def test_deaths_at_any_step_change_no_bit(case, runs, tmp_path_factory):
    problem = case.problem()
    participation = 4 if case.algorithm.partial else 1.0

    def made(**more: Any) -> InProcess:
        folder = tmp_path_factory.mktemp("crash")
        return InProcess(folder, problem, case.algorithm, 6, 3, participation, **more)

    calm = made().run()
    deaths = []

    @settings(max_examples=runs, deadline=None, derandomize=True)
    @given(st.integers(0, 2**32))
    def always(seed: int):
        dice = random.Random(seed)
        federation = made()
        released: dict[str, dict] = {name: {} for name in federation.names}

        def charge_of(name: str):
            def charge(identity: Identity, content: bytes) -> None:
                known = released[name].setdefault(
                    (identity.round, identity.phase), content
                )
                assert known == content, "two different letters under one identity"

            return charge

        federation.charge = {name: charge_of(name) for name in federation.names}
        parties: Any = {
            name: Mortal(federation, name, dice, 0.06) for name in federation.parties()
        }
        run_in_process(parties, InProcessPost(SOME_LOSS, seed))
        shared, agents = federation.models(parties)
        assert shared.tobytes() == calm[0].tobytes()
        assert agents.tobytes() == calm[1].tobytes()
        deaths.append(sum(p.deaths for p in parties.values()))

    always()
    assert min(deaths) >= 1 and max(deaths) >= 5


def test_the_ledger_holds_every_letter_that_left(tmp_path: Path):
    case = case_of("FedPLT")
    made = InProcess(tmp_path / "run", case.problem(), case.algorithm, 5, 3, 1.0)
    price = gaussian_guarantee(
        observer="coordinator",
        unit="record",
        relation="replace_one",
        noise_std=5.0,
        sensitivity=0.1,
    )
    ledgers = {name: Ledger(tmp_path / f"{name}.db") for name in made.names}

    def charge_of(name: str):
        ledgers[name].allow(agent=name, epsilon=1.0, delta=1e-5)

        def charge(identity: Identity, content: bytes) -> None:
            ledgers[name].charge(
                price,
                agent=name,
                run="r",
                round=identity.round,
                content=content,
                phase=str(identity.phase),
            )

        return charge

    made.charge = {name: charge_of(name) for name in made.names}
    dice = random.Random(7)
    parties: Any = {name: Mortal(made, name, dice, 0.05) for name in made.parties()}
    run_in_process(parties, InProcessPost(SOME_LOSS, 7))
    assert sum(p.deaths for p in parties.values()) >= 3
    for ledger in ledgers.values():
        rows = [row for row in ledger.rows() if row.kind == "release"]
        # Every round released one letter; repeats of it cost nothing.
        assert sorted(row.round or 0 for row in rows) == [1, 2, 3, 4, 5]
        ledger.verify()
        ledger.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("seed, event", [*enumerate(EVENTS)], ids=EVENTS)
def test_whatever_happens_nothing_is_lost_or_counted_too_little(seed, event, tmp_path):
    """A sample of `python -m bench.chaos`."""
    tally = chaos(tmp_path, ("FedPLT", "FedGD")[seed % 2], seed, event)
    assert tally["in-process runs, all bits the same"] == 1


def test_a_spent_budget_keeps_the_letter_back(tmp_path: Path):
    case = case_of("FedPLT")

    def refuse(identity: Identity, content: bytes) -> None:
        if identity.round == 2:
            raise tacita.privacy.BudgetExceeded("spent")

    made = InProcess(
        tmp_path, case.problem(), case.algorithm, 5, charge={"agent-1": refuse}
    )
    with pytest.raises(tacita.privacy.BudgetExceeded):
        made.run()
    again: Any = made.make("agent-1")
    again.start(0.0)
    assert again.round == 1  # nothing of round 2 was kept, nothing of it can leave


@pytest.fixture
def store(tmp_path: Path) -> StateFile:
    made = StateFile(tmp_path, b"k" * 32, Identity("f", "r", "state", 0, 0, "a", "a"))
    made.save({"round": 4}, a=[np.arange(3.0)], b=[np.arange(3.0), np.arange(2)], c=[])
    return made


def test_a_checkpoint_comes_back(store: StateFile):
    loaded = store.load()
    assert loaded is not None
    words, groups = loaded
    told = {name: [a.tolist() for a in arrays] for name, arrays in groups.items()}
    assert told == {"a": [[0, 1, 2]], "b": [[0, 1, 2], [0, 1]], "c": []}
    assert words == {"round": 4}
    assert store.path.stat().st_mode & 0o777 == 0o600


def test_torn_and_tampered_checkpoints_are_refused(store: StateFile, tmp_path: Path):
    whole = store.path.read_bytes()
    for cut in range(0, len(whole), 7):
        store.path.write_bytes(whole[:cut])
        with pytest.raises(tacita.TacitaError, match="damaged or was changed"):
            store.load()
    for at in range(0, len(whole), 5):
        changed = bytearray(whole)
        changed[at] ^= 1
        store.path.write_bytes(bytes(changed))
        with pytest.raises(tacita.TacitaError, match="damaged or was changed"):
            store.load()
    store.path.write_bytes(whole)
    mine = Identity("f", "r", "state", 0, 0, "a", "a")
    with pytest.raises(tacita.TacitaError, match="damaged or was changed"):
        StateFile(tmp_path, b"x" * 32, mine).load()
    other = Identity("f", "another", "state", 0, 0, "a", "a")
    with pytest.raises(tacita.TacitaError, match="another run"):
        StateFile(tmp_path, b"k" * 32, other).load()
    assert NAME == store.path.name

"""All who see what becomes of letters are one person, whatever ledgers once said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tacita
from tacita.federation import setting
from tacita.federation.budget import plan_of, privacy_of, with_budget
from tacita.federation.description import Description
from tacita.federation.own_rows import blank_problem
from tacita.federation.sum_setting import with_sum
from tacita.federation.wire import Identity
from tacita.privacy import Ledger, Scope
from tests.federation.towns import NAMES, run_of

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "norm": 1.0}
APART = [["coordinator"], ["neighbour"]]
GOSSIP = {
    "algorithm": {"name": "GossipSGD", "step_size": 0.3},
    "graph": {"edges": [["ada", "bob"], ["bob", "cyd"]]},
}


def described(name: str, **tables: Any) -> Description:
    made = run_of(2, privacy=BUDGET, run={"rounds": 2}, **tables)
    return Description("town", name, "coordinator", tuple(NAMES), made)


def spend(ledger: Ledger, run: Description, rows: int = 30, limit: float = 1.0) -> None:
    """Charge all letters of a run."""
    ready = setting.setting_of(run, blank_problem(run), rows)
    _, charge = with_budget(ready, "ada", ledger, limit)
    for number in (1, 2):
        name = Identity("town", run.digest, "answer", number, 0, "ada", "coordinator")
        charge(name, b"letter %d" % number)


def test_whoever_sees_anything_counts_as_one_person(tmp_path: Path):
    """Another agent once learnt 1 in a server run and 1 on a graph, of 1 allowed."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        spend(ledger, described("server"))
        for who in ("coordinator", "neighbour", "final_model"):
            assert ledger.learnt("ada", who, 1e-5) == pytest.approx(1.0, rel=1e-4)
        with pytest.raises(tacita.TacitaError, match="1.46.*and 1 is allowed"):
            spend(ledger, described("graph", **GOSSIP))


def test_a_ledger_in_which_observers_were_apart_is_read_as_of_one(tmp_path: Path):
    """Policies once parted them, and letters were charged to each group."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        about = {"agent": "ada", "epsilon": 1.0, "delta": 1e-5, "separate": APART}
        ledger.allow(**about)
        run = described("earlier")
        ready = setting.setting_of(run, blank_problem(run), 30)
        price = plan_of(ready, "ada", ledger, 1.0).price
        groups = ("coordinator", "neighbour", "final_model")
        each = [replace(price, scope=Scope(who)) for who in groups]
        for number in (1, 2):
            letter = {"round": number, "content": b"letter %d" % number}
            ledger.charge(each, agent="ada", run="earlier", **letter)
        # One letter that three saw is one release; on a graph it went to others.
        graph = described("graph", **GOSSIP)
        with pytest.raises(tacita.TacitaError, match="1.46.*and 1 is allowed"):
            spend(ledger, graph)
        spend(ledger, graph, limit=1.5)
        assert ledger.spent(1e-5) == {
            ("ada", "everybody"): pytest.approx(1.465, abs=2e-3)
        }


@pytest.mark.parametrize("colluding", [0, 1])
def test_a_sum_keeps_its_budget_against_other_agents_too(colluding, tmp_path: Path):
    """They take their own noise out of a broadcast: 1.0 promised was once 1.24."""
    secure = {"least": 3, "rows": 30, "colluding": colluding}
    table = {"algorithm": {"name": "DPSGD", "step_size": 0.5}, "secure": secure}
    run = with_sum(described("sum", **table))
    with Ledger(tmp_path / "ledger.db") as ledger:
        spend(ledger, run)
        spent = ledger.learnt("ada", "neighbour", 1e-5)
        assert 0.99 < spent <= 1.0
        ready = setting.setting_of(run, blank_problem(run), 30)
        plan = plan_of(ready, "ada", ledger, 1.0)
    told = privacy_of(plan.setting, run.rounds)
    mine = [row.epsilon for row in told.rows if row.unit == "record"]
    assert max(mine) <= spent * (1 + 1e-9)

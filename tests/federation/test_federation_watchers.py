"""Who sees what becomes of letters is charged with them, whatever groups there are."""

from __future__ import annotations

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
from tacita.privacy import Ledger
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


def spend(ledger: Ledger, run: Description, separate: Any, rows: int = 30) -> None:
    """Charge all letters of a run."""
    ready = setting.setting_of(run, blank_problem(run), rows)
    _, charge = with_budget(ready, "ada", ledger, 1.0, separate)
    for number in (1, 2):
        name = Identity("town", run.digest, "answer", number, 0, "ada", "coordinator")
        charge(name, b"letter %d" % number)


def test_who_sees_broadcasts_is_charged_with_the_letters_in_them(tmp_path: Path):
    """Another agent once learnt 1 in a server run and 1 on a graph, of 1 allowed."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        spend(ledger, described("server"), APART)
        for who in ("coordinator", "neighbour", "final_model"):
            assert ledger.learnt("ada", who, 1e-5) == pytest.approx(1.0, rel=1e-4)
        graph = described("graph", **GOSSIP)
        with pytest.raises(tacita.TacitaError, match="1.46.*and 1 is allowed"):
            spend(ledger, graph, APART)


def test_letters_on_a_graph_are_not_for_the_coordinator(tmp_path: Path):
    with Ledger(tmp_path / "ledger.db") as ledger:
        spend(ledger, described("graph", **GOSSIP), APART)
        assert ledger.learnt("ada", "neighbour", 1e-5) == pytest.approx(1.0, rel=1e-4)
        assert ledger.learnt("ada", "coordinator", 1e-5) == 0.0


def test_groups_that_come_late_do_not_forget_what_was_told(tmp_path: Path):
    with Ledger(tmp_path / "ledger.db") as ledger:
        spend(ledger, described("server"), None)
        assert {row.observer for row in ledger.rows() if row.kind == "release"} == {
            "coordinator"
        }
        graph = described("graph", **GOSSIP)
        with pytest.raises(tacita.TacitaError, match="leave separate out"):
            spend(ledger, graph, APART)
        # Groups in which nobody is apart from the coordinator are no news.
        with pytest.raises(tacita.TacitaError, match="and 1 is allowed"):
            spend(ledger, graph, [["coordinator", "neighbour", "final_model"]])


@pytest.mark.parametrize("colluding", [0, 1])
def test_a_sum_keeps_its_budget_against_other_agents_too(colluding, tmp_path: Path):
    """They take their own noise out of a broadcast: 1.0 promised was once 1.24."""
    secure = {"least": 3, "rows": 30, "colluding": colluding}
    table = {"algorithm": {"name": "DPSGD", "step_size": 0.5}, "secure": secure}
    run = with_sum(described("sum", **table))
    with Ledger(tmp_path / "ledger.db") as ledger:
        spend(ledger, run, None)
        spent = ledger.learnt("ada", "neighbour", 1e-5)
        assert 0.99 < spent <= 1.0
        ready = setting.setting_of(run, blank_problem(run), 30)
        plan = plan_of(ready, "ada", ledger, 1.0)
    told = privacy_of(plan.setting, run.rounds)
    mine = [row.epsilon for row in told.rows if row.unit == "record"]
    assert max(mine) <= spent * (1 + 1e-9)

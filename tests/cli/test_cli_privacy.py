"""Privacy on the command line: plans, accounts, audits, ledgers."""

import json
import re
import tomllib

import pytest

import tacita
from tacita.privacy import Ledger, gaussian_guarantee

BUDGET = ("--epsilon", 2, "--delta", 1e-5, "--observer", "coordinator")
CLIPPED = 'algorithm.oracle={ name = "Clipped", norm = 1.0 }'


def test_a_plan_writes_a_run_file_that_keeps_the_budget(tacita_, small, place):
    said = tacita_.ok("privacy", "plan", small, *BUDGET, "--out", "safe.toml")
    assert "planned for 6 rounds" in said and "T1: " in said
    assert re.search(r"coordinator +record +2 ", said)
    assert 'name = "Clipped"' in said and 'name = "Noisy"' in said and "std = " in said
    assert "promise" not in said
    tacita_.ok("run", "safe.toml", "--out", "made")
    run = tacita.load_run(place / "made")
    assert run.privacy is not None
    row = run.privacy.row("coordinator")
    assert row.epsilon is not None and row.theorem and row.assumptions
    # The same numbers as the library's.
    again = tacita_.ok("privacy", "account", "made", "--delta", 1e-5)
    assert f"{row.epsilon:.4g}" in again and "after 6 rounds" in again
    assert tacita_.refused("privacy", "plan", small, *BUDGET, "--out", "safe.toml") == [
        "--out safe.toml exists already; choose another name or remove it"
    ]
    (refusal,) = tacita_.refused("privacy", "account", "made", "--set", "run.rounds=9")
    assert "as it is" in refusal


def test_a_plan_of_which_only_the_first_lines_are_read_is_written(
    tacita_, small, place, monkeypatch
):
    def gone(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr("tacita.cli.privacy.typer.echo", gone)
    tacita_("privacy", "plan", small, *BUDGET, "--out", "safe.toml")
    assert (place / "safe.toml").exists()


def test_a_run_is_held_to_the_budget_in_its_file(tacita_, small, place):
    whole = ("--set", "run.participation=1.0")
    plan = ("privacy", "plan", small, *whole, *BUDGET, "--write", "safe.toml")
    said = tacita_.ok(*plan)
    assert said.splitlines()[1] == (
        "planned: epsilon 2 at delta 1e-5 for one record against the coordinator: "
        "within the budget of 2"
    )
    table = tomllib.loads((place / "safe.toml").read_text())["privacy"]
    wanted = {"epsilon": 2.0, "delta": 1e-5, "observer": "coordinator"}
    assert table == wanted | {"unit": "record"}
    *_, why, last = tacita_.ok("run", "safe.toml", "--out", "kept").splitlines()
    assert why.startswith("privacy by: ") and "(enforced)" in why
    assert last.startswith("privacy: epsilon 2 at") and last.endswith("budget of 2")
    run = tacita.load_run(place / "kept")
    assert run.privacy.promise == wanted | {"unit": "record", "relation": "replace_one"}
    # More rounds cost more: refused before a folder is made.
    for change in ("run.rounds=7", "privacy.epsilon=1.9", "privacy.delta=1e-6"):
        (line,) = tacita_.refused("run", "safe.toml", "--set", change, "--out", "no")
        assert "is beyond the budget of epsilon=" in line
    assert not (place / "no").exists()
    (line,) = tacita_.refused("run", "safe.toml", "--set", "privacy.observer=server")
    assert line.startswith("privacy.observer = 'server': expected who looks")
    (line,) = tacita_.refused("run", small, "--set", "privacy={epsilon=1.0, delta=0.1}")
    assert line == (
        'missing key privacy.observer; add who looks, such as "coordinator" or '
        '"final_model"'
    )
    # A budget without noise is refused too, and may be planned for.
    budget = "privacy={epsilon=1.0, delta=1e-5, observer='coordinator'}"
    (line,) = tacita_.refused("run", small, "--set", budget)
    assert "nothing bounds it" in line


def test_a_run_that_spent_more_than_was_planned_says_so(tacita_, small):
    """Noise is set over the draw of who takes part; somebody may be drawn often."""
    tacita_.ok("privacy", "plan", small, *BUDGET, "--out", "safe.toml")
    said = tacita_.ok("run", "safe.toml", "--set", "run.seed=1", "--out", "made")
    assert tacita.load_run("made").privacy.row("coordinator").epsilon > 2
    assert said.splitlines()[-1].endswith("beyond the budget of 2")


def test_a_budget_that_protects_nobody_is_noted(tacita_, small):
    plan = ("privacy", "plan", small, "--delta", 1e-5, "--observer", "coordinator")
    result = tacita_(*plan, "--epsilon", 1e9)
    assert result.stderr.startswith("note: epsilon 1e+09 is no useful bound")
    assert "planned: no useful bound at delta 1e-5" in result.stdout
    assert tacita_(*plan, "--epsilon", 19).stderr == ""


def test_a_report_is_signed_verified_and_shown(tacita_, small, place, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "settings"))
    tacita_.ok("run", small, "--out", "open")
    (line,) = tacita_.refused("privacy", "sign", "open")
    assert "the run had no noise" in line
    noisy = ("--set", CLIPPED, "--set", "algorithm.noise_std=0.5")
    tacita_.ok("run", small, *noisy, "--out", "made")
    with Ledger(place / "ledger.db") as ledger:
        head = ledger.head()
    book = ("--ledger", "ledger.db")
    said = tacita_.ok("privacy", "sign", "made", "--name", "Ann", *book)
    key = re.search(r"signed by Ann, key ([0-9a-f-]{39})", said)[1]
    assert "by: " in said and "it holds if: " in said
    said = tacita_.ok("privacy", "verify", "made/privacy.json")
    assert "by: " in said and "it holds if: " in said
    assert "no budget was set" in said and f"key {key}" in said
    assert f"head {head} was signed; not compared" in said
    with Ledger(place / "ledger.db") as ledger:
        ledger.allow(agent="clinic", epsilon=1.0, delta=1e-5)
    said = tacita_.ok("privacy", "verify", "made", *book, "--signer", key)
    assert f"head {head} is in ledger.db, 1 rows were written since" in said
    other = ("1" if key[0] == "0" else "0") + key[1:]
    (line,) = tacita_.refused("privacy", "verify", "made", "--signer", other)
    assert f"signed with the key {key}" in line
    with Ledger(place / "other.db"):
        pass
    (line,) = tacita_.refused("privacy", "verify", "made", "--ledger", "other.db")
    assert head in line
    publish = ("report", "made", "--publishable")
    tacita_.ok(*publish)
    page = place / "made" / "publishable.html"
    assert key in page.read_text() and head in page.read_text()
    # A changed report loses its signature on the page, which is told.
    with open(place / "made" / "privacy.json", "ab") as file:
        file.write(b" ")
    (line,) = tacita_.refused("privacy", "verify", "made")
    assert "it was changed" in line
    assert "no signature is shown" in tacita_(*publish).stderr
    assert key not in page.read_text()
    (line,) = tacita_.refused(*publish, "--trust")
    assert "leave it out" in line


def test_an_account_of_a_run_file(tacita_, small):
    without = tacita_.ok("privacy", "account", small)
    assert "no bound" in without and "no noise" in without
    noisy = ("--set", CLIPPED, "--set", "algorithm.noise_std=0.5")
    said = tacita_.ok("privacy", "account", small, *noisy, "--delta", 1e-4)
    assert "planned for 6 rounds, delta = 0.0001" in said
    assert "no bound" not in said
    # The same in short, and written out.
    short = ("--set", "algorithm.norm=1.0", "--set", "algorithm.noise_std=0.5")
    assert said == tacita_.ok("privacy", "account", small, *short, "--delta", 1e-4)
    whole = 'algorithm.oracle={name="Noisy", std=0.5, oracle={name="Clipped", norm=1}}'
    said_so = tacita_.ok("privacy", "account", small, "--set", whole, "--delta", 1e-4)
    assert said == said_so


def test_an_account_counts_on_letters_in_time_only_where_none_is_late(tacita_, small):
    gossip = 'algorithm={name="GossipSGD", step_size=0.5, norm=1.0, noise_std=0.5}'
    graph, whole = 'problem.graph={kind="ring"}', "run.participation=1.0"
    lines = (gossip, graph, whole, "problem.bound=1.0")
    change = [word for line in lines for word in ("--set", line)]
    said = tacita_.ok("privacy", "account", small, *change)
    late = ("--set", "run.asynchronous={most_delay=2}")
    assert "mixing" in said
    assert "mixing" not in tacita_.ok("privacy", "account", small, *change, *late)
    # With a chance of taking part, delays force nodes to be active once in B events.
    rare = (*change, "--set", "run.participation=0.1", "--set")
    spent = [
        re.findall(
            r"neighbour +record +([\d.]+)", tacita_.ok("privacy", "account", *line)
        )
        for line in (
            (small, *rare, 'run.asynchronous={law="geometric"}'),
            (small, *rare, "run.asynchronous={most_delay=2}"),
        )
    ]
    assert 1.3 * float(spent[0][0]) < float(spent[1][0])


def test_a_plan_rests_on_the_times_of_letters_as_its_run_does(tacita_, small):
    late = ("algorithm.name=FedBuff", "run.participation=2")
    late += ("run.asynchronous={ mean = 1.0 }",)
    changes = [word for change in late for word in ("--set", change)]
    said = tacita_.ok("privacy", "plan", small, *changes, *BUDGET, "--out", "late.toml")
    drawn = "enforced: who is heard when was drawn without looking at rows"
    assert drawn in said
    assert drawn in tacita_.ok("privacy", "account", "late.toml")
    tacita_.ok("run", "late.toml", "--out", "made")
    assert drawn in tacita_.ok("privacy", "account", "made")


def test_a_plan_for_fed_plt_uses_its_theorem(tacita_, small):
    change = ("--set", 'algorithm={ name = "FedPLT", rho = 0.9 }')
    said = tacita_.ok("privacy", "plan", small, *BUDGET, *change, "--out", "plt.toml")
    assert 'name = "GradientDescent"' in said and "implied" in said
    again = tacita_.ok("privacy", "account", "plt.toml")
    assert re.search(r"coordinator +record +(2|1\.\d+) ", again)


@pytest.mark.parametrize(
    ("arguments", "message"),
    (
        ((*BUDGET, "--set", 'algorithm.name="TAMUNA"'), "TAMUNA say: its number of"),
        ((*BUDGET[:4], "--observer", "server"), "unknown observer"),
        ((*BUDGET, "--largest-noise", 0.001), "largest_noise"),
        ((*BUDGET, "--unit", "house"), "unknown unit"),
        ((*BUDGET, "--out", "no/x.toml"), "cannot write --out no/x.toml: No such file"),
    ),
)
def test_plans_that_are_refused(tacita_, small, arguments, message):
    (refusal,) = tacita_.refused("privacy", "plan", small, *arguments)
    assert message in refusal


def test_observer_has_no_default(tacita_, small):
    result = tacita_("privacy", "plan", small, *BUDGET[:4])
    assert result.exit_code == 2 and "--observer" in result.stderr
    result = tacita_("audit", small)
    assert result.exit_code == 2 and "--observer" in result.stderr


@pytest.mark.long
def test_an_audit_of_a_run_folder_is_kept_in_its_report(tacita_, small, place):
    noisy = ("--set", CLIPPED, "--set", "algorithm.noise_std=0.5")
    noisy += ("--set", "run.participation=1.0")
    tacita_.ok("run", small, *noisy, "--out", "made")
    asked = ("--observer", "coordinator", "--runs", 300, "--delta", 0.01)
    said = tacita_.ok("audit", "made", *asked)
    assert "not refuted" in said and "privacy.json" in said
    told = json.loads((place / "made" / "privacy.json").read_text())
    (row,) = [
        r
        for r in told["rows"]
        if (r["observer"], r["unit"]) == ("coordinator", "record")
    ]
    assert row["audited"]["refuted"] is False
    assert "at 99%" in str(tacita.load_run(place / "made").privacy)
    refuted = tacita_("audit", "made", *asked, "--claim", 0.0001, "--runs", 2000)
    assert refuted.exit_code == 1 and "REFUTED" in refuted.stdout


@pytest.fixture
def book(place):
    letter = gaussian_guarantee(
        observer="coordinator",
        unit="record",
        relation="replace_one",
        noise_std=5.0,
        sensitivity=1.0,
    )
    with Ledger(place / "ledger.db") as ledger:
        ledger.allow(agent="clinic", epsilon=1.0, delta=1e-5)
        ledger.charge(letter, agent="clinic", run="r", round=0, content=b"x")
        return ledger.head()


def test_a_ledger_is_shown_and_verified(tacita_, book):
    said = tacita_.ok("ledger", "show", "ledger.db")
    assert re.search(r"clinic +everybody +record, replace_one +1 +0\.7255", said)
    assert "analytic Gaussian mechanism" in said and book in said
    other = tacita_.ok("ledger", "show", "ledger.db", "--delta", 1e-3)
    assert "0.001" in other and "0.7255" not in other
    said = tacita_.ok("ledger", "verify", "ledger.db")
    assert "whole: 3 rows" in said and "elsewhere" in said
    tacita_.ok("ledger", "verify", "ledger.db", "--head", book)
    (refusal,) = tacita_.refused("ledger", "verify", "ledger.db", "--head", "0" * 63)
    assert "ledger.db" in refusal
    (refusal,) = tacita_.refused("ledger", "show", "nowhere.db")
    assert "no ledger at nowhere.db" in refusal


def test_an_exact_audit_prints_every_observer(tacita_, small):
    noisy = ("--set", CLIPPED, "--set", "algorithm.noise_std=0.5")
    said = tacita_.ok("audit", small, "--exact", *noisy)
    for observer in ("final_model", "coordinator", "neighbour", "eavesdropper"):
        assert re.search(
            rf"^{observer}, one record, .* printed .* exact .*", said, re.M
        )
    assert "no printed epsilon is below the exact one" in said
    one = tacita_.ok("audit", small, "--exact", "--observer", "neighbour", *noisy)
    assert "coordinator" not in one and "neighbour" in one


ONE_STEP = ("--set", "algorithm.local_steps=1", "--set", "run.participation=1.0")


def test_a_secure_sum_is_planned_run_and_accounted(tacita_, small, place):
    """The plan writes grid and noise into [secure], which reads back as it was."""
    sums = (*ONE_STEP, "--set", "secure={ least = 4, colluding = 1 }")
    said = tacita_.ok("privacy", "plan", small, *BUDGET, *sums, "--out", "safe.toml")
    assert "against the colluders" in said and "sizes and times only" in said
    assert "[secure]" in said and "multiples = [" in said
    job = tacita.job.read("safe.toml")
    assert job.with_algorithm(job.algorithm).config == job.config
    tacita_.ok("run", "safe.toml", "--out", "made")
    run = tacita.load_run(place / "made")
    assert run.privacy.row("colluders").epsilon <= 2
    assert run.info["communication"]["bytes_up"] == 6 * 4 * (3 * 4 + 32 * 4)
    again = tacita_.ok("privacy", "account", "made", "--delta", 1e-5)
    assert f"{run.privacy.row('colluders').epsilon:.4g}" in again
    tacita_.ok("report", "made")
    assert "exact integers on a grid" in (place / "made" / "report.html").read_text()


def test_the_word_secure_is_an_empty_table(tacita_, small):
    word = (*ONE_STEP, "--set", "run.aggregation=secure")
    table = (*ONE_STEP, "--set", "secure={}")
    said, same = (
        tacita_.ok("privacy", "plan", small, *BUDGET, *how) for how in (word, table)
    )
    assert said == same and "secure sums" in said


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["secure={}", "run.aggregation=Mean"], "both say how letters are joined"),
        (["secure={ lest = 3 }"], "did you mean 'least'"),
        (["secure={ least = 9 }"], "expected least <= 4"),
        (["secure={}", "problem.agents=2"], "3 to 128 agents, got 2"),
        (["secure={}", "problem.dtype=float32"], "double precision"),
        (["secure={}", "run.participation=0.5"], "give SecureSum"),
        (["secure=3"], "expected a table"),
    ],
)
def test_secure_sums_that_are_refused(tacita_, small, changes, message):
    given = [word for change in changes for word in ("--set", change)]
    (refusal,) = tacita_.refused("run", small, *ONE_STEP, *given)
    assert message in refusal
    (refusal,) = tacita_.refused("privacy", "plan", small, *BUDGET, *ONE_STEP, *given)
    assert message in refusal

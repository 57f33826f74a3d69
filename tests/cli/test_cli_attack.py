"""`tacita attack`, and run files that name rules and attacks."""

from __future__ import annotations

import pytest

import tacita

RUN = """
[problem]
data = "synthetic-logistic"
agents = 6
features = 3
samples = 20

[algorithm]
name = "FedAvg"
step_size = 0.5

[run]
rounds = 4
watch = true
aggregation = { name = "NearestNeighbourMixing", liars = 1, rule = "Median" }
attack = { name = "SignFlip", agents = [5], strength = 50.0 }
"""


@pytest.fixture
def run_file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(RUN)
    return path


@pytest.fixture
def honest_file(tmp_path):
    path = tmp_path / "honest.toml"
    lines = RUN.splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith("attack")))
    return path


def test_a_run_file_names_a_rule_and_an_attack(run_file):
    job = tacita.job.read(run_file)
    rule, attack = job.options["aggregation"], job.options["attack"]
    assert isinstance(rule.rule, tacita.aggregation.Median)
    assert attack.agents == (5,) and attack.strength == 50.0
    told = job.simulate()
    assert "letters" in told.info
    resolved = told.config["resolved"]["run"]
    assert resolved["aggregation"]["rule"] == {"name": "Median"}
    assert resolved["attack"]["agents"] == [5]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('run.attack={name="SignFlop", agents=[1]}', "SignFlip"),
        ('run.attack={name="SignFlip", agents=[1], strenght=2}', "strength"),
        ('run.aggregation={name="Buckets", rule="Meen"}', "run.aggregation.rule"),
        # Before there is a folder, as all that a run would refuse.
        ('run.aggregation={name="TrimmedMean", trim=3}', "joins at least 7 letters"),
        ('run.attack={name="SignFlip", agents=[6]}', "expected agents below 6"),
        ('run.attack={name="LabelFlip", agents=[5], since=3}', "replaces rows"),
    ],
)
def test_what_is_unknown_is_refused(run_file, change, words):
    with pytest.raises(tacita.TacitaError, match=words):
        tacita.job.read(run_file, [change])


def test_the_table_is_printed_and_drawn(tacita_, run_file, tmp_path):
    said = tacita_.ok(
        *("attack", str(run_file), "--attack", "sign x10"),
        *("--aggregation", "Median", "--out", str(tmp_path / "out")),
    )
    assert "sign x10" in said and "Median" in said
    assert "take Median: at worst it reaches" in said
    assert (tmp_path / "out" / "attacks.png").stat().st_size > 1000


def test_the_runs_own_rule_attack_and_participation_are_tried(
    tacita_, run_file, tmp_path, monkeypatch
):
    """Liars are those of the run file; rules beside the table go by their names."""
    asked = []

    def noted(*given, **chosen):
        asked.append((chosen["participation"], chosen["liars"]))
        return made(*given, **chosen)

    made = tacita.tuning.resilience
    monkeypatch.setattr(tacita.tuning, "resilience", noted)
    own = "NearestNeighbourMixing of the run"
    said = tacita_.ok(
        *("attack", run_file, "--attack", "SignFlip of the run", "--set"),
        *("run.participation=5", "--aggregation", own, "--aggregation", "RFA"),
        *("--out", tmp_path / "out"),
    )
    assert asked == [(5, (5,))]
    assert own in said and "RFA" in said and "SignFlip of the run" in said


def test_an_algorithm_that_no_rule_may_join_is_refused_at_once(run_file):
    job, heard = tacita.job.read(run_file), []
    with pytest.raises(tacita.TacitaError, match="SCAFFOLD needs the exact mean"):
        tacita.tuning.resilience(
            job.problem,
            tacita.SCAFFOLD(step_size=0.1),
            2,
            tell=lambda *one: heard.append(one),
        )
    assert not heard


def test_refusals_of_the_table(tacita_, run_file):
    for option, value, words in (
        ("--liars", "x", "--liars"),
        ("--liars", "0,1,2,3,4,5", "expected liars some of the 6 agents"),
        ("--liars", "1,6", "expected liars in 0..5, numbers of agents, got liars=(1,"),
        ("--liars", "-1", "expected liars in 0..5"),
        ("--attack", "nonsense", "--attack"),
        ("--out", str(run_file), "--out"),
    ):
        (line,) = tacita_.refused("attack", str(run_file), option, value)
        assert line.startswith(words)


@pytest.mark.long
def test_a_network_is_attacked_and_has_a_backdoor(tacita_, sites, tmp_path):
    said = tacita_.ok(
        *("attack", sites, "--set", 'problem.model={name="mlp", hidden=[3]}'),
        *("--set", "algorithm.step_size=0.5", "--set", "run.rounds=20"),
        *("--attack", "backdoor", "--attack", "sign x10", "--aggregation", "Median"),
        *("--liars", "3", "--out", tmp_path / "out"),
    )
    head, mean, median, *_ = said.splitlines()
    assert head.split("  ")[0] == "rule" and "backdoor" in head
    marked, flipped = mean.split()[2:4]
    assert float(marked) <= 0.5  # scaled letters replace the mean
    assert "of the backdoor: the share of marked rows" in said


def test_a_backdoor_needs_test_rows(tacita_, run_file):
    (line,) = tacita_.refused("attack", run_file, "--attack", "backdoor")
    assert "problem.test_share = 0.2" in line


def test_progress_is_told(run_file):
    job, heard = tacita.job.read(run_file), []
    tacita.tuning.resilience(
        job.problem,
        job.algorithm,
        2,
        liars=(5,),
        rules={"Median": tacita.aggregation.Median()},
        attacks={"flip": tacita.robust.SignFlip(agents=(5,))},
        tell=lambda *one: heard.append(one),
    )
    assert [done for done, _, _ in heard] == [1, 2, 3, 4]
    assert heard[-1] == (4, 4, "Median against flip")


def on_a_graph(kind: str = "complete", algorithm: str = '"FedGD", alpha=0.5') -> tuple:
    changes = (
        f'problem.graph={{kind="{kind}"}}',
        f"algorithm={{name={algorithm}}}",
        "run={rounds=30}",
    )
    return tuple(word for change in changes for word in ("--set", change))


@pytest.mark.long
def test_nodes_of_a_graph_are_lied_to(tacita_, run_file, tmp_path):
    """Each lie that breaks the mean is borne, and the words are those of a graph."""
    said = tacita_.ok(
        *("attack", run_file, *on_a_graph(), "--out", tmp_path / "out"),
        *("--attack", "sign x10", "--attack", "dissensus", "--aggregation", "Bridge"),
    )
    head, mean, bridge, *_ = said.splitlines()
    assert head.split() == ["rule", "none", "sign", "x10", "dissensus", "worst"]
    calm, flipped, torn, worst = map(float, mean.split()[1:])
    assert calm > 0.8 and flipped < 0.6 and torn < 0.8 and worst == flipped
    assert all(float(word) > 0.8 for word in bridge.split()[1:])
    assert "accuracy of the honest nodes; the honest agents alone reach" in said
    assert "If 1 of the agents may lie, take Bridge" in said
    assert (tmp_path / "out" / "attacks.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (on_a_graph(algorithm='"GossipSGD", step_size=0.1'), "no rule may join"),
        (on_a_graph("star"), "no more neighbours than 1"),
    ],
)
def test_graphs_on_which_no_rule_helps(tacita_, run_file, graph, words):
    (line,) = tacita_.refused("attack", run_file, *graph)
    assert words in line


def test_nobody_helps_a_node_among_liars(run_file):
    ring = tacita.problem.graph.ring(6)
    problem = tacita.problem.synthetic.linear(agents=6, features=2, graph=ring)
    rules = {"NearestToOwn": tacita.aggregation.NearestToOwn(liars=1)}
    with pytest.raises(tacita.TacitaError, match="node 2 has no honest neighbour"):
        tacita.tuning.resilience(
            problem, tacita.FedGD(alpha=1.0), 2, liars=(1, 3), rules=rules
        )


@pytest.mark.long
def test_letters_are_read_and_shown(tacita_, honest_file, tmp_path):
    said = tacita_.ok(
        *("read", str(honest_file), "--rows", "1", "--letters", "1", "--epsilon", "1"),
        *("--runs", "16", "--out", str(tmp_path / "out")),
    )
    assert "no noise" in said and "epsilon 1" in said and "members found" in said
    assert "no letter: a guess" in said
    assert (
        "epsilon 1 (delta 1e-05), coordinator, one record, replace_one, agent 0: G"
        in said
    )
    assert "Assumes: each release changes by at most" in said
    page = (tmp_path / "out" / "letters-read.html").read_text()
    assert "What every epsilon rests on" in page


def test_refusals_of_readers(tacita_, honest_file):
    for option, value, words in (
        ("--image", "2x2", "--image '2x2'"),
        ("--agent", "9", "expected agent in 0..5"),
        ("--rows", "21", "has 20 rows"),
        ("--epsilon", "0", "expected epsilon > 0"),
        ("--letters", "0", "expected letters"),
        ("--runs", "8", "expected runs a whole number >= 16, got runs=8"),
        ("--out", str(honest_file), "exists already"),
        ("--delta", "2", "expected delta in (0, 1)"),
        ("--smooth", "1", "--smooth 1 is for rows that are pictures"),
        ("--set", 'run.aggregation="secure"', "a secure sum shows no single letter"),
    ):
        (line,) = tacita_.refused("read", str(honest_file), option, value)
        assert words in line


@pytest.mark.parametrize("command", ["read", "audit"])
@pytest.mark.parametrize("table", ["attack", "asynchronous"])
def test_readers_and_auditors_play_honest_runs_in_step(
    tacita_, run_file, honest_file, command, table
):
    path = run_file
    if table == "asynchronous":
        path = honest_file
        late = "asynchronous = { mean = [1.0, 1.0, 1.0, 1.0, 1.0, 9.0] }\n"
        text = path.read_text().replace('"FedAvg"', '"FedBuff"')
        path.write_text(text + late)
    (line,) = tacita_.refused(command, str(path))
    assert f"this run has {table}, which audits and readers do not play" in line


def test_readers_and_auditors_join_letters_as_the_run_does(
    tacita_, honest_file, monkeypatch
):
    """Only a mean hides a letter among others: a rule left out is a false epsilon."""
    asked = {}

    def noted(name):
        def stop(*given, **chosen):
            asked[name] = chosen["aggregation"]
            tacita.check.refuse("enough")

        return stop

    for name in ("read_back", "members_by_noise", "audit_exactly"):
        monkeypatch.setattr(tacita.audits, name, noted(name))
    monkeypatch.setattr(tacita, "audit", noted("audit"))
    tacita_("read", honest_file)
    tacita_("audit", honest_file, "--exact")
    tacita_("audit", honest_file, "--observer", "final_model")
    monkeypatch.setattr(tacita.audits, "read_back", lambda *_, **__: None)
    tacita_("read", honest_file)
    assert len(asked) == 4
    rule = tacita.job.read(honest_file).options["aggregation"]
    assert {repr(one) for one in asked.values()} == {repr(rule)}


def test_a_rule_that_needs_more_letters_says_how_many(tacita_, run_file, tmp_path):
    (line,) = tacita_.refused("attack", run_file, "--aggregation", "Bulyan")
    assert line.startswith("Bulyan joins at least 7 letters, and there are 6 agents")
    job = tacita.job.read(run_file)
    about = job.problem, job.algorithm, (4, 5)
    table = tacita.tuning.rule_table(*about, participation=4)
    assert "TrimmedMean needs 5 letters" in table.left_out()
    assert "4 agents are asked in a round" in table.left_out()
    assert "MultiKrum" not in table.able() and "Median" in table.able()
    assert "Not tried" not in tacita.tuning.rule_table(*about[:2], (5,)).left_out()
    ring = tacita.problem.graph.ring(6)
    problem = tacita.problem.synthetic.linear(agents=6, features=2, graph=ring)
    table = tacita.tuning.rule_table(problem, tacita.FedGD(alpha=1.0), (5,))
    with pytest.raises(tacita.TacitaError, match="some node has 2 neighbours"):
        table.require("Bridge")


@pytest.mark.long
def test_the_table_is_of_rules_for_the_agents_of_a_round(run_file):
    """Four letters of six agents: the rules for six were refused, and all with them."""
    job = tacita.job.read(run_file)
    lies = {"flip": tacita.robust.SignFlip(agents=(4, 5))}
    given = {"liars": (4, 5), "attacks": lies, "participation": 4}
    made = tacita.tuning.resilience(job.problem, job.algorithm, 1, **given)
    assert "Median" in made.rules and "TrimmedMean" not in made.rules

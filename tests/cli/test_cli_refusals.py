"""Bad input: one clear line, exit code 2, nothing left behind."""

import pytest

CHANGES = [
    # What is changed, and what the line must say.
    ("run.roundz=5", "unknown key run.roundz = 5; did you mean 'rounds'?"),
    ("problem.agentz=5", "unknown key problem.agentz = 5; did you mean 'agents'?"),
    (
        "algorithm.step_sise=0.1",
        "unknown key algorithm.step_sise = 0.1; did you mean 'step_size'?",
    ),
    ("nmae=x", "unknown key nmae = 'x'; did you mean 'name'?"),
    ("algorithm.name=FedAvgg", "unknown algorithm.name = 'FedAvgg'; did you mean"),
    ("algorithm.name=3", "algorithm.name = 3: expected an algorithm"),
    (
        "algorithm.step_size=-0.1",
        "algorithm: expected step_size > 0, got step_size=-0.1",
    ),
    ("algorithm.step_size=nan", "expected step_size > 0, got step_size=nan"),
    ("algorithm.step_size='\"big\"'", "expected step_size > 0, got step_size='big'"),
    ("algorithm.local_steps=1.5", "local_steps a whole number >= 1"),
    ("algorithm.step_size=[0.1, 0.2]", "step_size one number, or 4, one per agent"),
    (f"algorithm.step_size={10**400}", "expected step_size > 0, got step_size=inf"),
    (f"algorithm.local_steps={10**30}", "expected local_steps <= 9223372036854775807"),
    ("algorithm={name='FedPLT', solver=3}", "algorithm.solver = 3: expected a table"),
    ("algorithm.weights=sample", "unknown weights='sample'; did you mean 'samples'?"),
    ("algorithm.sampling=poisson", "algorithm.sampling goes with a batch"),
    ("algorithm.oracle={name='Ful'}", "unknown algorithm.oracle.name = 'Ful'; did you"),
    (
        "algorithm.oracle={name='Minibatch', sise=3}",
        "unknown key algorithm.oracle.sise = 3; did you mean 'size'?",
    ),
    ("algorithm.oracle={name='Minibatch'}", "missing key algorithm.oracle.size"),
    (
        "algorithm.oracle={name='Penalty'}",
        "unknown algorithm.oracle.name = 'Penalty'; known: Full, Minibatch",
    ),
    ("algorithm.oracle=ExactProx", "unknown algorithm.oracle.name = 'ExactProx'; "),
    ("algorithm.oracle={size=3}", "missing key algorithm.oracle.name"),
    ("run.participation=0", "run: expected participation of 1 to 4 agents, got"),
    ("run.participation=5", "run: expected participation of 1 to 4 agents, got"),
    ("run.participation=0.0", "expected participation a probability in (0, 1]"),
    ("run.participation=1.5", "expected participation a probability in (0, 1]"),
    ("run.participation=[0.5, 0.5]", "run: expected participation of shape (4"),
    ("run.participation=all", "run.participation = 'all': expected a probability"),
    ("run.rounds=0", "run.rounds = 0: expected a whole number >= 1"),
    ("run.rounds=2.5", "run.rounds = 2.5: expected a whole number >= 1"),
    ("run.rounds=true", "run.rounds = True: expected a whole number >= 1"),
    ("run.seed=-1", "run.seed = -1: expected a whole number >= 0"),
    ("run.seeds=1.5", "run.seeds = 1.5: expected a whole number of seeds"),
    ("run.record=[5]", "run.record = [5]: expected a list of metrics"),
    ("run.record=['los']", "run: unknown record='los'; did you mean 'loss'?"),
    ("run.record=['test_loss']", "for example problem.test_share = 0.2"),
    ("run.record=['loss', 'loss']", "run: record has two metrics called 'loss'"),
    ("run.seeds=0", "run.seeds = 0: expected a whole number of seeds >= 1"),
    ("run.seeds=[]", "run.seeds = []: expected a whole number of seeds >= 1"),
    (f"run.seed={2**70}", "expected a whole number >= 0, below 2^63"),
    (f"problem.seed={2**40}", "problem: expected seed <= 4294967295"),
    ("run.stop={loss=1.0, accuracy=2.0}", "expected a table with one metric"),
    ("run.stop={loss='low'}", "expected a table with one metric"),
    ("run.stop={error=1.0}", "run.stop names 'error', which is not recorded"),
    ("run.mapping=fast", "run.mapping = 'fast': expected \"auto\""),
    ("problem.data=digitz", "unknown problem.data = 'digitz'; did you mean 'digits'?"),
    ("problem.l2=-1", "problem.l2 = -1: expected a number >= 0"),
    ("problem.agents=0", "problem: expected agents a whole number >= 1"),
    ("problem.heterogeneous=1", "problem.heterogeneous = 1: expected true or false"),
    ("problem.model=softmax", "problem.model does not go with"),
    (
        "problem.graph={kind='rign'}",
        "unknown problem.graph.kind = 'rign'; did you mean",
    ),
    ("problem.graph={kind='star', n=3}", "unknown key problem.graph.n = 3"),
    ("problem.graph=5", "problem.graph = 5: expected a table"),
    ("problem.h={kind='l1'}", "missing key problem.h.weight"),
    ("problem.h={kind='l1', weight=-1}", "problem.h: expected weight >= 0"),
    ("problem=5", "problem = 5: expected a table [problem]"),
    ("name='\"../up\"'", "name = '../up': expected letters, digits"),
    (f"name={'n' * 101}", '"-", at most 100, not starting with'),
]


@pytest.mark.parametrize(("change", "words"), CHANGES, ids=[c for c, _ in CHANGES])
def test_bad_keys_and_values_are_told_in_one_line(tacita_, small, place, change, words):
    key, _, value = change.partition("=")
    if value.startswith("'\""):
        value = value[1:-1]
    (line,) = tacita_.refused("run", small, "--set", f"{key}={value}")
    assert words in line
    assert [path.name for path in place.iterdir()] == [small]


def test_all_that_is_wrong_with_the_keys_is_told_at_once(tacita_, small, place):
    lines = tacita_.refused(
        "run", small, "--set", "run.rounds=0", "--set", "run.sed=1", "--set", "name=7"
    )
    assert len(lines) == 3
    assert [path.name for path in place.iterdir()] == [small]


def test_an_algorithm_for_smooth_problems_says_so(tacita_, small):
    changes = (
        "--set",
        "problem.h={kind='l1', weight=1}",
        "--set",
        "algorithm.name=LED",
    )
    (line,) = tacita_.refused("run", small, *changes)
    assert "algorithm: LED handles smooth problems only" in line


FILES = [
    ("[run\nrounds = 5", "is not valid TOML"),
    ("run = { rounds = 5", "is not valid TOML"),
    ("[run]\nrounds = 5", "missing key problem; add a table [problem]"),
    ("[problem]\ndata='iris'\n[algorithm]\nname='FedAvg'\n[run]", "key run.rounds"),
    (
        "[problem]\ndata='iris'\n[algorithm]\nname='FedAvg'\n[run]\nrounds=1",
        "missing key problem.split; nobody holds the rows of iris yet",
    ),
    (
        "[problem]\ndata='iris'\nscal='unit'\n[algorithm]\nname='FedAvg'\n"
        "[run]\nrounds=1",
        "unknown key problem.scal = 'unit'; did you mean 'scale'?",
    ),
    (
        "[problem]\ndata='iris'\nsplit={kind='dirichlet', agents=3}\n"
        "[algorithm]\nname='FedAvg'\n[run]\nrounds=1",
        "missing key problem.split.alpha",
    ),
    (
        "[problem]\ndata='iris'\nsplit={kind='iid', agents=500}\n"
        "[algorithm]\nname='FedAvg'\n[run]\nrounds=1",
        "problem.split: 500 agents with at least 1 rows each",
    ),
    (
        "[problem]\ndata='iris'\nmodel='linear'\nsplit={kind='iid', agents=3}\n"
        "[algorithm]\nname='FedAvg'\n[run]\nrounds=1",
        'the target of iris is one of 3 classes; use "softmax"',
    ),
    (
        "[problem]\ndata='iris'\nmodel='logistic'\nsplit={kind='iid', agents=3}\n"
        "[algorithm]\nname='FedAvg'\n[run]\nrounds=1",
        "label 'virginica' is outside the model's set",
    ),
    (
        "[problem]\ndata='synthetic-linear'\nagents=4\n[algorithm]\nname='FedGD'\n"
        "alpha=1.0\n[run]\nrounds=1",
        "missing key problem.graph; FedGD needs a graph",
    ),
    (
        "[problem]\ndata='synthetic-linear'\nfeatures='x'\n[algorithm]\n"
        "name='FedAvg'\n[run]\nrounds=1",
        "problem: expected features a whole number >= 1, got features='x'",
    ),
    (
        "[problem]\ndata='nofile.csv'\n[algorithm]\nname='FedAvg'\n[run]\nrounds=1",
        "problem.data: there is no file",
    ),
]


@pytest.mark.parametrize(("text", "words"), FILES)
def test_bad_files_are_told(tacita_, place, text, words):
    (place / "bad.toml").write_text(text)
    assert words in tacita_.refused("run", "bad.toml")[0]
    assert [path.name for path in place.iterdir()] == ["bad.toml"]


def test_files_that_cannot_be_read_are_told(tacita_, place):
    (place / "noise.toml").write_bytes(b"\xff\xfe\x00")
    for name, words in (
        ("nowhere.toml", "cannot read nowhere.toml: No such file or directory"),
        (".", "cannot read .: Is a directory"),
        ("noise.toml", "cannot read noise.toml: it is not text in UTF-8"),
    ):
        (line,) = tacita_.refused("run", name)
        assert words in line
    assert [path.name for path in place.iterdir()] == ["noise.toml"]


def test_a_table_with_nan_is_refused(tacita_, sites, place):
    text = (place / "sites.csv").read_text()
    (place / "sites.csv").write_text(text.replace("\n", "\n,0.5,1,s0\n", 1))
    (line,) = tacita_.refused("run", sites)
    assert "column 'age'" in line and "is empty in 1 rows" in line
    assert {path.name for path in place.iterdir()} == {"sites.csv", "sites.toml"}


TABLES = [
    ("problem.features=age", "expected features a list of columns, got features='age'"),
    ("problem.model={name='mlp', hidden=4}", "problem.model: expected hidden a list"),
    ("problem.model={name='mlp', hidden=['a']}", "expected hidden a whole number >= 1"),
    (
        "problem.model={name='mlp', hidden=[0]}",
        "hidden a whole number >= 1, got hidden=0",
    ),
    ("problem.target=il", "did you mean 'ill'?"),
    ("problem.agent=sit", "did you mean 'site'?"),
    ("problem.features=['aeg']", "did you mean 'age'?"),
    ("problem.model=linear", 'is one of 2 classes; use "logistic"'),
    ("problem.target=dose", "expected a number"),
    ("problem.data=nowhere.csv", "there is no file"),
    ("problem.seperator=;", "not a TOML value"),
    ("problem.seperator=x", "did you mean 'separator'?"),
    ("problem.test_share=1.5", "expected test_share in [0, 1]"),
]


@pytest.mark.parametrize(("change", "words"), TABLES, ids=[c for c, _ in TABLES])
def test_tables_that_do_not_fit_are_told(tacita_, sites, place, change, words):
    if change == "problem.target=dose":
        change, words = "problem.model=logistic", "they are real numbers"
        text = (place / sites).read_text().replace('"ill"', '"dose"')
        (place / sites).write_text(text)
    (line,) = tacita_.refused("run", sites, "--set", change)
    assert words in line
    assert {path.name for path in place.iterdir()} == {"sites.csv", "sites.toml"}


def test_known_keys_are_told_once(tacita_, sites):
    (line,) = tacita_.refused("run", sites, "--set", "problem.sede=1")
    known = line.partition("known: ")[2].split(", ")
    assert known.count("seed") == 1 and len(set(known)) == len(known)


def test_three_labels_are_outside_the_set_of_a_logistic_model(tacita_, sites, place):
    text = (place / "sites.csv").read_text() + "\n55.0,0.5,2,s0"
    (place / "sites.csv").write_text(text)
    (line,) = tacita_.refused("run", sites, "--set", "problem.model=logistic")
    assert "label '2' is outside the model's set" in line


def test_out_is_never_written_over(tacita_, small, place):
    (place / "full").mkdir()
    (place / "full" / "precious").write_text("mine")
    for out, words in (("full", "exists already"), (small, "exists already")):
        (line,) = tacita_.refused("run", small, "--out", out)
        assert words in line
    (line,) = tacita_.refused("run", small, "--out", f"{small}/inner")
    assert "cannot make a folder" in line
    assert (place / "full" / "precious").read_text() == "mine"
    assert sorted(path.name for path in place.iterdir()) == ["full", small]


@pytest.mark.parametrize("change", ["rounds", "=5", "run..rounds=5", "run.rounds=[1"])
def test_changes_that_are_none_are_told(tacita_, small, change):
    (line,) = tacita_.refused("run", small, "--set", change)
    assert line.startswith("--set")


def test_a_change_within_what_is_no_table_is_told(tacita_, small):
    (line,) = tacita_.refused("run", small, "--set", "run.rounds.more=1")
    assert "rounds = 6 is no table" in line


@pytest.mark.parametrize("command", ["resume", "report", "compare"])
def test_a_folder_without_a_run_is_told(tacita_, command, place):
    (line,) = tacita_.refused(command, "nowhere")
    assert "nowhere" in line and list(place.iterdir()) == []


def test_the_remedy_for_an_unfinished_run_is_one_that_works(tacita_, place):
    (place / "checkpoint.npz").write_bytes(b"")
    for command in ("resume", "report"):
        (line,) = tacita_.refused(command, ".")
        assert "tacita.simulate" in line and "resume=True" in line
    (place / "config.toml").write_bytes(b"")
    (place / "checkpoint.npz").unlink()
    (line,) = tacita_.refused("report", ".")
    assert "go on with: tacita resume" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["algorithms", "fedprx"], "did you mean 'FedProx'?"),
        (["data", "show", "iri"], "did you mean 'iris'?"),
        (["data", "fetch", "iri"], "did you mean 'iris'?"),
    ],
)
def test_unknown_names_are_told_with_the_nearest(tacita_, arguments, words):
    (line,) = tacita_.refused(*arguments)
    assert words in line

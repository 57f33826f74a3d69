"""`tacita graph`, and run files whose graph is learnt."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

import tacita
from tacita.job import graphs
from tacita.problem import graph

RUN = """
[problem]
data = "synthetic-linear"
agents = 6
features = 2
samples = 12
graph = { kind = "learned", discrepancy = "wald", method = "regular", k = 3 }

[algorithm]
name = "FedGD"
alpha = 0.1

[run]
rounds = 2
"""


@pytest.fixture
def run_file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(RUN)
    return path


def test_a_run_file_learns_its_graph(run_file):
    made = tacita.job.read(run_file).problem.graph
    assert made is not None and made.from_rows
    assert set(np.asarray(made.degrees).round(9)) == {3.0}
    problem = tacita.job.read_problem(run_file)
    assert problem.graph is None  # learnt graphs are left out
    wanted = graph.learned(problem, "wald", "regular", k=3)
    np.testing.assert_array_equal(made.senders, wanted.senders)


@pytest.mark.parametrize(
    "change, words",
    [
        ('{kind="learned", discrepancy="walt"}', "did you mean 'wald'"),
        ('{kind="learned", ks=4}', "unknown key problem.graph.ks"),
        ('{kind="learned", method="budget", mutual=true}', "mutual= is for"),
    ],
)
def test_a_bad_table_is_refused(tacita_, run_file, change, words):
    assert (
        words in tacita_.refused("run", run_file, "--set", f"problem.graph={change}")[0]
    )


def test_nobody_learns_a_graph_where_nobody_has_all_rows():
    with pytest.raises(tacita.TacitaError, match="keep_letters"):
        graphs.build({"kind": "learned"}, ["a", "b"], None, 0)


def test_the_command_writes_edges_that_run_files_and_federations_read(
    tacita_, run_file, tmp_path
):
    out = tmp_path / "out"
    said = tacita_.ok("graph", run_file, "--k", 2, "--out", out)
    assert "6 nodes" in said and "lambda_2" in said and "after 1 lost" in said
    assert (out / "graph.png").read_bytes().startswith(b"\x89PNG")
    made = graphs.from_file(str(out / "edges.csv"), range(6))
    wanted = graph.learned(tacita.job.read_problem(run_file), k=2)
    np.testing.assert_array_equal(made.senders, wanted.senders)
    np.testing.assert_array_equal(made.weights, wanted.weights)
    table = tomllib.loads((out / "graph.toml").read_text())["graph"]
    assert len(table["edges"]) == len(table["weights"]) == wanted.n_edges
    again = graph.Graph.from_edges([str(i) for i in range(6)], **table)
    np.testing.assert_array_equal(again.weights, wanted.weights)
    assert "exists already" in tacita_.refused("graph", run_file, "--out", out)[0]


@pytest.mark.long
def test_the_command_tunes_and_learns_privately(tacita_, run_file, tmp_path):
    said = tacita_.ok("graph", run_file, "--tune", "--out", tmp_path / "tuned")
    assert "validation loss" in said and "alpha" in said
    words = ["graph", run_file, "--epsilon", 2, "--k", 2, "--out", tmp_path / "noisy"]
    said = tacita_.ok(*words)
    assert "at most epsilon 2 (delta 1e-05) of one record, replace_one" in said
    assert "Gaussian" in said and "enforced" in said
    for words, why in (
        (("--epsilon", 1, "--tune"), "looks at rows without noise"),
        (("--epsilon", 1, "--discrepancy", "wald"), "compares noisy gradients"),
        (("--tune", "--k", 3), "chooses k"),
        (("--method", "test"), "needs p-values"),
        (("--epsilon", 1, "--ledger", "no.db"), "the file of a ledger"),
    ):
        assert why in tacita_.refused("graph", run_file, *words)[0]


def test_a_private_graph_is_charged(tacita_, run_file, tmp_path):
    book = tmp_path / "ledger.db"
    with tacita.privacy.Ledger(book) as ledger:
        for node in range(5):
            ledger.allow(agent=str(node), epsilon=2.5, delta=1e-5)
    words = ["graph", run_file, "--epsilon", 2, "--k", 2, "--ledger", book, "--out"]
    assert "'5'" in tacita_.refused(*words, tmp_path / "first")[0]  # all, or none
    with tacita.privacy.Ledger(book) as ledger:
        assert not any(ledger.spent(1e-5).values())
        ledger.allow(agent="5", epsilon=2.5, delta=1e-5)
    assert "charged under 'first'" in tacita_.ok(*words, tmp_path / "first")
    with tacita.privacy.Ledger(book) as ledger:
        spent = ledger.spent(1e-5)
    assert len(spent) == 6 and all(abs(e - 2) < 1e-3 for e in spent.values())
    (line,) = tacita_.refused(*words, tmp_path / "second")
    assert "would spend epsilon=2.95" in line and not (tmp_path / "second").exists()


def test_the_command_reads_letters_that_a_coordinator_kept(tacita_, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    names = ["a", "b, west", 'c "old"']
    letters = np.array([[0.0], [1.0], [9.0]])
    np.savez(folder / "models.npz", shared=letters.mean(axis=0))
    out = ["--k", 1, "--out", tmp_path / "out"]
    assert "run.keep_letters" in tacita_.refused("graph", folder, *out)[0]
    np.savez(folder / "models.npz", letters=letters)
    (folder / "result.json").write_text(json.dumps({"agents": names}))
    said = tacita_.ok("graph", folder, *out)
    assert "3 nodes, 2 edges" in said
    table = tomllib.loads((tmp_path / "out" / "graph.toml").read_text())
    assert table["graph"]["edges"] == [names[:2], names[1:]]
    # What is printed for a run file can be pasted into one that lies anywhere.
    line = next(line for line in said.splitlines() if line.startswith("run file: "))
    pasted = tomllib.loads(line.removeprefix("run file: "))["problem"]["graph"]
    assert Path(pasted["path"]).is_absolute()
    made = graphs.build(pasted, names, None, 0)
    assert made is not None and made.n_edges == 2

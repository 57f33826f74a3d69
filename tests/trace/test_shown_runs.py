"""Runs, problems, reports and graphs as people see them in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import tacita
from tacita.problem import graph, synthetic
from tacita.trace import PrivacyReport, PrivacyRow, Run

NASTY = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    return synthetic.logistic(agents=3, features=2, samples=40, seed=1)


def run_of(values: np.ndarray, name: str = "plain", **run) -> Run:
    size = values.shape[-1]
    return Run(
        params=np.zeros(2),
        kept=np.zeros((3, 2)),
        metrics={"loss": values, "round": np.arange(1, size + 1)},
        config={"name": name, "algorithm": {"name": "FedAvg"}, "run": run},
        info={"rounds": size, "diverged": False},
    )


def report_of(words: str) -> PrivacyReport:
    row = PrivacyRow(
        observer="coordinator",
        unit="record",
        relation="replace_one",
        delta=1e-5,
        epsilon=0.5,
        theorem=words,
        assumptions=({"statement": "keys are kept", "status": "believed"},),
    )
    return PrivacyReport(algorithm="FedAvg", rounds=4, rows=(row,))


class Words(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += data + " "


def test_every_word_is_escaped(problem):
    import dataclasses

    named = run_of(np.ones(3), NASTY)
    for thing in (
        dataclasses.replace(problem, name=NASTY),
        dataclasses.replace(named, privacy=report_of(NASTY)),
        graph.ring(4),
    ):
        seen = Words(thing._repr_html_())
        assert "script" not in seen.tags and "table" in seen.tags
        assert "color" not in thing._repr_html_().replace("currentColor", "")


def test_tables_say_what_is_in_them(problem):
    told = Words(problem._repr_html_()).words
    assert "agents 3" in told and "rows 120" in told and "none" not in told
    told = Words(run_of(np.array([[4.0, 2.0], [8.0, 1.0]]))._repr_html_()).words
    assert "plain, 2 rounds" in told and "loss 6 1.5" in told.replace("  ", " ")
    table = np.array([[4.0, np.nan], [8.0, 1.0], [9.0, 2.0]])
    told = Words(run_of(table)._repr_html_()).words.replace("  ", " ")
    assert "loss 8 1.5 (1 of 3 seeds diverged)" in told
    told = Words(report_of("by a theorem")._repr_html_()).words
    for words in (
        "coordinator",
        "record (replace_one)",
        "0.5",
        "1e-05",
        "by a theorem",
    ):
        assert words in told
    assert "believed: keys are kept" in told
    seen = Words(graph.star(5)._repr_html_())
    assert "nodes 5" in seen.words and "1 to 4" in seen.words
    assert seen.tags.count("line") == 4 and seen.tags.count("circle") == 5
    assert "svg" not in Words(graph.ring(100)._repr_html_()).tags
    assert "edges 0" in Words(graph.Graph.from_edges(1, [])._repr_html_()).words


def test_a_run_is_a_table_of_its_records():
    table = run_of(np.array([3.0, 2.0])).to_frame()
    assert table.to_dict("list") == {"round": [1, 2], "loss": [3.0, 2.0]}
    table = run_of(np.array([[3.0, 2.0], [5.0, 4.0]])).to_frame()
    assert table["repeat"].tolist() == [0, 0, 1, 1]
    assert table["loss"].tolist() == [3.0, 2.0, 5.0, 4.0]


def test_a_plot_shows_the_run_others_beside_it_and_what_to_compare_with(problem):
    run = run_of(np.array([90.0, 80.0, 70.0]))
    figure = run.plot(beside={"other": run_of(np.ones(3))}, problem=problem)
    names = [line.get_label() for line in figure.axes[0].lines]
    best = problem.loss(problem.solve())
    assert names == ["plain", "other", f"optimum: {best:.4g}"]
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert len(run.plot().axes[0].lines) == 1
    labels = problem.stacked()[1]
    share = max(np.mean(labels > 0), np.mean(labels <= 0))
    found = tacita.trace.references.references_of(problem, "accuracy")
    assert found == {"majority class": share}
    for arguments, words in (
        ({"metric": "los"}, "did you mean 'loss'"),
        ({"beside": {"plain": run}}, "beside has a run called 'plain' too"),
    ):
        with pytest.raises(tacita.TacitaError, match=words):
            run.plot(**arguments)
    bare = run_of(np.ones(1))
    del bare.metrics["loss"]
    with pytest.raises(tacita.TacitaError, match="has recorded no metric"):
        bare.plot()


def test_the_price_of_privacy_is_told_with_whom_it_is_paid_to(problem):
    price = tacita.tradeoff(
        problem,
        tacita.ServerGD(step_size=1.0),
        [10.0, 0.01],
        delta=1e-5,
        observer="coordinator",
        rounds=4,
        seeds=3,
    )
    assert price.values.shape == (2, 3) and price.metric == "accuracy"
    assert len(np.unique(price.values[1])) > 1  # fresh noise in every repeat
    rows = price.rows
    assert [round(row.epsilon or 0, 4) for row in rows] == [10.0, 0.01]
    table = price.to_frame()
    assert len(table) == 6 and set(table.observer) == {"coordinator"}
    assert table.theorem.all() and table.assumptions.all()
    (axes,) = price.plot().axes
    told, *grounds = axes.get_xlabel().split("\n")
    assert told == (
        "epsilon at delta 1e-5 for one record (replace one) against the coordinator"
    )
    assert " ".join(grounds) == " ".join(price.grounds)  # they are wrapped, not cut
    names = [line.get_label() for line in axes.lines]
    assert any(name.startswith("no noise") for name in names)
    assert any(name.startswith("majority class") for name in names)
    assert "against the coordinator" in repr(price)
    for page in (repr(price), Words(price._repr_html_()).words):
        assert all(words in page for words in price.grounds)
        assert "it holds if: " in page and "(enforced)" in page
    price.values[1, 0] = np.nan
    middle = np.median(price.values[1, 1:])
    drawn = price.plot().axes[0].containers[0]
    np.testing.assert_allclose(drawn.lines[0].get_ydata()[0], middle)
    assert drawn.get_label().endswith("lowest to highest; 1 of 6 runs diverged")
    assert f"{middle:.4g} " in repr(price) and "(1 of 3 seeds diverged)" in repr(price)
    with pytest.raises(tacita.TacitaError, match="expected epsilons a list"):
        tacita.tradeoff(
            problem, tacita.ServerGD(), 1.0, delta=1e-5, observer="x", rounds=1
        )  # pyright: ignore

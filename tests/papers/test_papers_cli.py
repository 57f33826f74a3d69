"""`tacita papers`: finding scripts, running them, refusing what is not there."""

import csv
import textwrap

import pytest
from typer.testing import CliRunner

from papers.fed_plt.common.tables import RESULTS
from tacita.cli import papers
from tacita.cli.app import app


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def own(place):
    """A paper of one's own in the current directory, a script and a module."""
    folder = place / "papers" / "my_paper"
    folder.mkdir(parents=True)
    (folder / "helpers.py").write_text('"""No script."""\n')
    (folder / "figure_1.py").write_text(
        textwrap.dedent('''
        """Figure 1: a line.

        More words.
        """
        from pathlib import Path

        def main(out: Path = Path("here")) -> Path:
            out.mkdir(exist_ok=True)
            (out / "figure.md").write_text("done")
            return out / "figure.md"
        ''')
    )
    return folder


def call(*arguments):
    return CliRunner().invoke(app, ["papers", *map(str, arguments)])


def refused(*arguments):
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    return result.stderr


def test_every_table_and_figure_of_both_versions_is_listed(own):
    result = call("list")
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line for line in result.stdout.splitlines()[1:]}
    revised = {f"fed-plt/table-{k}" for k in range(1, 10)}
    first = {f"fed-plt/v1-table-{k}" for k in (2, 3, 4)}
    figures = {f"fed-plt/v1-figure-{k}" for k in (2, 3)}
    assert revised | first | figures <= set(lines)
    assert "my-paper/figure-1" in lines and "a line." in lines["my-paper/figure-1"]
    assert not any("common" in name or "helpers" in name for name in lines)


def test_a_script_in_the_current_directory_runs(own, place):
    result = call("run", "my-paper/figure-1", "--out", place / "there")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip().endswith("there/figure.md")
    assert (place / "there" / "figure.md").read_text() == "done"


def test_a_figure_of_the_paper_runs(place):
    given = ("fed-plt/v1-figure-2", "--repetitions", 1, "--out", place / "out")
    result = call("run", *given)
    assert result.exit_code == 0, result.output
    assert (place / "out" / "v1_figure_2.png").read_bytes().startswith(b"\x89PNG")
    assert "1 repetitions" in (place / "out" / "v1_figure_2.md").read_text()
    with open(place / "out" / "v1_figure_2.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    rates = {float(row["rho"]): float(row["rate"]) for row in rows}
    best = min(rates, key=rates.__getitem__)
    assert 0.2 < best < 0.5 and rates[0.001] > 0.98 and rates[1000.0] > 0.98
    assert RESULTS not in (place / "out").parents


def test_what_is_not_there_is_refused(own, place):
    assert "did you mean 'fed-plt/table-2'" in refused("run", "fed-plt/tabel-2")
    assert "takes no --repetitions" in refused(
        "run", "my-paper/figure-1", "--repetitions", 3
    )
    (place / "file").write_text("")
    assert "is a file" in refused("run", "fed-plt/table-2", "--out", place / "file")


def test_without_any_papers_the_remedy_is_told(place, monkeypatch):
    monkeypatch.setattr(papers, "folders", lambda: [place / "papers"])
    told = refused("list")
    assert "no scripts of papers in" in told and "checkout" in told

"""The reference pages are complete, and their examples are valid."""

import functools
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import tacita
from tacita.job import graphs, run_file
from tacita.job.problems import NETWORKS, PENALTIES, REGULARISERS, SPLITS
from tests.cli import algorithms_page
from tests.cli.test_cli_commands import COMMANDS

ROOT = Path(__file__).parents[2]


def blocks(page):
    text = (ROOT / "docs" / page).read_text()
    return re.findall(r"```toml\n(.*?)```", text, flags=re.S)


def test_every_key_of_a_run_file_is_described():
    text = (ROOT / "docs" / "ref-run-file.md").read_text()
    for table in (
        run_file.RunFile,
        run_file.ProblemTable,
        run_file.AlgorithmTable,
        run_file.RunTable,
        run_file.PrivacyTable,
    ):
        for key in table.model_fields:
            assert f"`{key}`" in text, key
    for kind in (*SPLITS, *graphs.KINDS, *PENALTIES, *REGULARISERS, *NETWORKS):
        assert f"`{kind}`" in text, kind


def test_the_run_files_in_the_reference_are_valid():
    found = [tomllib.loads(b) for b in blocks("ref-run-file.md")]
    whole = [table for table in found if "run" in table]
    assert whole
    for table in whole:
        run_file.validate(table)


def test_the_page_of_algorithms_is_what_their_fields_say():
    assert algorithms_page.PAGE.read_text() == algorithms_page.page()


def test_the_skeleton_of_an_algorithm_runs(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "how-to-add-an-algorithm.md").read_text()
    skeleton = re.findall(r"```python\n(.*?)```", text, flags=re.S)[0]
    (tmp_path / "my_algorithm.py").write_text(skeleton)
    monkeypatch.syspath_prepend(tmp_path)
    made = importlib.import_module("my_algorithm")
    problem = tacita.problem.synthetic.logistic(agents=3, features=2, samples=6)
    ready = made.MyAlgorithm(local_steps=2).resolve(problem)
    assert ready.step_size == 1 / problem.moduli.largest
    with pytest.raises(tacita.TacitaError, match="expected step_size > 0"):
        made.MyAlgorithm(step_size=0.0)
    assert tacita.simulate(problem, ready, 2).rounds == 2


def test_the_rule_that_is_shown_runs():
    text = (ROOT / "docs" / "how-to-add-a-rule.md").read_text()
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(block, names)
    assert names["run"].config["run"]["aggregation"] == {"name": "Middle"}
    with pytest.raises(tacita.TacitaError, match="at least 2 letters"):
        names["Middle"]().check(1)


def test_the_readme_leads_to_every_page():
    text = (ROOT / "README.md").read_text()
    docs = ROOT / "docs"
    found = [*docs.glob("*.md"), *docs.glob("notebooks/*.ipynb")]
    pages = {path.relative_to(ROOT).as_posix() for path in found}
    linked = set(re.findall(r"\]\((docs/[^)#]+)", text))
    assert linked == pages


def test_the_plan_that_readme_and_help_show_can_be_made(tacita_):
    text = (ROOT / "README.md").read_text()
    (shown,) = re.findall(r"^tacita (privacy plan .*) --out", text, flags=re.M)
    assert shown in " ".join(tacita_.ok("privacy", "plan", "--help").split())
    tacita_.ok(*shown.replace("examples/", f"{ROOT}/examples/").split())


def test_names_that_the_pages_use_are_there_after_import_tacita():
    named = set()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        named |= set(re.findall(r"\btacita((?:\.[A-Za-z]\w*)+)", page.read_text()))
    invented = {".MyAlgorithm", ".algorithm.my_algorithm"}
    # Rooms, beside the public names.
    known = {*tacita.__all__, *tacita.algorithm.__all__, *tacita._ROOMS}
    for name in named - invented:
        first, *rest = name[1:].split(".")
        assert first in known, name
        functools.reduce(getattr, rest, getattr(tacita, first))


def test_no_command_is_described_twice():
    text = (ROOT / "docs" / "ref-command-line.md").read_text()
    told = re.findall(r"tacita [a-z]+(?: [a-z]+)?", "".join(headings(text)))
    assert len(told) == len(set(told)) and set(told) >= {
        f"tacita {c}" for c in COMMANDS
    }


def test_make_bench_runs_every_benchmark():
    scripts = [p for p in (ROOT / "bench").glob("*.py") if "__main__" in p.read_text()]
    run = re.findall(r"-m bench\.(\w+)", (ROOT / "Makefile").read_text())
    assert sorted(set(run)) == sorted(script.stem for script in scripts)


def headings(text):
    return re.findall(r"^## (.*\n)", text, flags=re.M)


def test_every_option_of_the_command_line_is_described(tacita_):
    text = (ROOT / "docs" / "ref-command-line.md").read_text()
    for command in COMMANDS:
        assert f"tacita {command}" in text
        for option in re.findall(
            r"(--[a-z-]+[a-z])", tacita_.ok(*command.split(), "--help")
        ):
            assert f"`{option}`" in text or option == "--help", (command, option)

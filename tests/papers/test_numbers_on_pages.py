"""Numbers on pages are those of the files that scripts wrote."""

from __future__ import annotations

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DP_NORM = ROOT / "papers" / "dp_norm" / "results"


def rows(text: str, heading: str) -> dict[tuple[str, ...], list[str]]:
    """Cells of a table below a heading, by the words before its numbers."""
    part = text.split(heading, 1)[1].split("\n#", 1)[0]
    lines = re.findall(r"^\| (.*) \|$", part, flags=re.M)[2:]
    return {tuple(c[:-2]): c[-2:] for c in (line.split(" | ") for line in lines)}


def test_what_dp_norm_is_compared_with():
    """In points below DP-Norm with alpha = 0.2, on two splits."""
    found = rows((DP_NORM / "figure_2.md").read_text(), "## At equal, sound epsilon")
    page = (ROOT / "docs" / "explanation-dp-norm.md").read_text()
    told = rows(page, "## Beside it")
    assert len(told) == 2
    for (method,), cells in told.items():
        for epsilon, cell in zip(("1", "0.5"), cells, strict=True):
            best = found["DP-Norm alpha=0.2", epsilon]
            behind = [
                f"{100 * (float(a) - float(b)):.1f}"
                for a, b in zip(best, found[method, epsilon], strict=True)
            ]
            assert ", ".join(behind) == cell, (method, epsilon)


def test_with_fixed_features_all_are_within_a_point():
    text = (DP_NORM / "equal_epsilon.md").read_text()
    table = re.findall(r"^\| (D.*?) \| (.*) \|$", text, flags=re.M)
    for k in range(3):
        values = [float(line.split(" | ")[k].split()[0]) for _, line in table]
        assert len(values) == 4 and max(values) - min(values) <= 0.0101


def test_hours_are_those_of_the_file():
    page = (DP_NORM.parent / "README.md").read_text()
    told = re.findall(r"^\| `(\w+)` .* \| ([^|]*) \|$", page, flags=re.M)
    hours = {name: cell.replace(",", "") for name, cell in told if cell != "run"}
    with open(DP_NORM / "hours.csv", newline="") as file:
        found = {line["figure"]: line for line in csv.DictReader(file)}
    assert {name: float(cell) for name, cell in hours.items()} == {
        name: float(line["left"]) for name, line in found.items()
    }
    # Whatever is short of the paper's rounds is there.
    pages = {path.stem for path in DP_NORM.glob("figure_*.csv")}
    assert pages - set(hours) == {"figure_4"}


def test_seeds_are_those_of_the_pages():
    page = (DP_NORM.parent / "README.md").read_text()
    cells = r"^\| `(figure_\w+)` .*? \| [^|]* \| [^|]* \| (\d+) \|"
    told = dict(re.findall(cells, page, flags=re.M))
    assert len(told) >= 16
    for name, seeds in told.items():
        several = re.search(r"of (\d+) seeds", (DP_NORM / f"{name}.md").read_text())
        assert seeds == (several[1] if several else "1"), name


def test_every_table_and_figure_has_a_row():
    for folder in ("dp_norm", "fed_plt", "fed_spd"):
        page = (ROOT / "papers" / folder / "README.md").read_text()
        for path in (ROOT / "papers" / folder / "results").glob("*.md"):
            if path.stem != "hours":
                assert re.search(rf"^\| .*`{path.stem}`", page, flags=re.M), path


def test_pages_name_commands_that_exist():
    for page in ROOT.glob("papers/*/README.md"):
        named = set(re.findall(r"tacita data (\w+)", page.read_text()))
        assert named <= {"list", "show", "fetch"}, page

"""docs/ref-algorithms.md, written by `python -m tests.cli.algorithms_page`."""

from pathlib import Path

from tacita.algorithm import ALGORITHMS
from tacita.cli.algorithms import fields, title

PAGE = Path(__file__).parents[2] / "docs" / "ref-algorithms.md"
LEAD = """\
# The algorithms and their keys

Every algorithm with the keys of its table in a run file, which are also its arguments in Python. This page is written from the
fields themselves, by `python -m tests.cli.algorithms_page`.
"""  # noqa: E501


def page() -> str:
    return "\n".join([LEAD, *map(section, ALGORITHMS)])


def section(algorithm) -> str:
    name, _, about = title(algorithm).partition(": ")
    told = f"{about} For: {algorithm.purpose}. {algorithm.source}."
    lines = [f"## {name}", "", told, ""]
    lines += ["| key | range | left out | meaning |", "| --- | --- | --- | --- |"]
    for key, *cells in fields(algorithm):
        told = " | ".join(cell.replace("|", r"\|") for cell in cells)
        lines.append(f"| `{key}` | {told} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page())

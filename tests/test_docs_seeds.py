"""The page on the five documents leaves no number out and names only what exists.

The numbers stand below. Where `TACITA_PAPERS` is a folder with the texts of the
documents, they are also compared with those texts.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "ref-seeds.md"
WORDS = ("prose", "definition", "missing")
ROMAN = ["", *("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")]

#: Of every document the last equation, and the last number of everything else.
PAPERS = {
    "Fed-PLT, first version": (
        *(20, {"Algorithm": 1, "Prop.": 4, "Lemma": 7, "Cor.": 1, "Def.": 5}),
        *({"Remark": 3, "Table": 4, "Fig.": 3},),
    ),
    "Fed-PLT, revised version": (
        *(24, {"Algorithm": 1, "Prop.": 4, "Lemma": 8, "Cor.": 1, "Def.": 5}),
        *({"Remark": 1, "Table": 9, "Fig.": 1},),
    ),
    "DP-Norm": (
        *(28, {"Algorithm": 1, "Lemma": 1, "Theorem": 2}),
        *({"Table": 2, "Fig.": 9},),
    ),
    "FedSPD-DP": (
        *(75, {"Algorithm": 1, "Lemma": 7, "Theorem": 2, "Def.": 1}),
        *({"Remark": 5, "Table": 1, "Fig.": 6},),
    ),
}
#: By chapter of the book: propositions, figures, exercises.
CHAPTERS = {
    1: (0, 1, 4),
    2: (1, 5, 5),
    3: (1, 9, 15),
    4: (0, 5, 7),
    5: (2, 7, 9),
    6: (1, 7, 2),
    7: (1, 2, 1),
    8: (1, 4, 2),
    9: (1, 5, 5),
    10: (0, 5, 4),
}
#: What the texts call them, and words that only one document has.
LONG = {
    "Prop.": "Proposition",
    "Cor.": "Corollary",
    "Def.": "Definition",
    "Fig.": r"Fig(?:ure|\.)",
    "Table": r"T(?:able|ABLE)",
}
TITLES = {
    "Fed-PLT, first version": ("Local Training", "0.1357"),
    "Fed-PLT, revised version": ("Local Training", "TABLE IX"),
    "DP-Norm": ("Denoising process",),
    "FedSPD-DP": ("FedSPD-DP algorithm",),
    "The book": ("Exercises", "GTVMin"),
}


def wanted(document: str) -> dict[str, list[str]]:
    if document == "The book":
        listed = {"Prop.": [], "Fig.": [], "Ex.": []}
        for chapter, counts in CHAPTERS.items():
            for kind, count in zip(listed, counts, strict=True):
                listed[kind] += [f"{chapter}.{k}" for k in range(1, count + 1)]
        numbers = {"equation": 190, "Algorithm": 12, "Def.": 2}
    else:
        equations, first, second = PAPERS[document]
        listed, numbers = {}, {"equation": equations, **first, **second}
    for kind, last in numbers.items():
        names = ROMAN if kind == "Table" else [str(k) for k in range(last + 1)]
        listed[kind] = names[1 : last + 1]
    return listed


def expanded(first: str, last: str) -> list[str]:
    """All numbers of a range such as 3-7 or 2.1-2.4; of one number itself."""
    if not last:
        return [first]
    chapter, _, low = first.rpartition(".")
    other, _, high = last.rpartition(".")
    assert chapter == other and int(low) < int(high), (first, last)
    start = f"{chapter}." if chapter else ""
    return [f"{start}{k}" for k in range(int(low), int(high) + 1)]


@cache
def rows() -> dict[str, list[tuple[str, str]]]:
    """By document, the items and the counterpart of every row."""
    found: dict[str, list[tuple[str, str]]] = {}
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:]:
        title, text = section.split("\n", 1)
        lines = re.findall(r"^\| ([^|]*) \| [^|]* \| ([^|]*) \|$", text, flags=re.M)
        head = ("item", "counterpart")
        found[title] = [r for r in lines if r != head and set(r[0]) != {"-"}]
    return found


def items(cell: str) -> list[tuple[str, str]]:
    """Kinds and numbers that a cell names; nothing else may stand there."""
    named = []
    for part in cell.split(", "):
        if found := re.fullmatch(r"\((\d+)\)(?:-\((\d+)\))?", part):
            kind, numbers = "equation", found.groups()
        else:
            pattern = r"([A-Z][a-z]+\.?) ([\d.]+|[IVX]+)(?:-([\d.]+))?"
            found = re.fullmatch(pattern, part)
            assert found, f"{cell!r}: {part!r} is no item"
            kind, *numbers = found.groups()
        named += [(kind, n) for n in expanded(numbers[0], numbers[1] or "")]
    return named


@pytest.mark.parametrize("document", [*PAPERS, "The book"])
def test_every_number_has_one_row(document: str):
    named = [item for cell, _ in rows()[document] for item in items(cell)]
    assert len(named) == len(set(named)), sorted(
        item for item in set(named) if named.count(item) > 1
    )
    expected = {(kind, n) for kind, ns in wanted(document).items() for n in ns}
    assert set(named) == expected, sorted(set(named) ^ expected)


def exists(name: str) -> bool:
    path, _, function = name.partition("::")
    if "/" in name:
        if not function:
            return (ROOT / path).exists()
        body = ast.parse((ROOT / path).read_text()).body
        return function in {n.name for n in body if isinstance(n, ast.FunctionDef)}
    parts = name.split(".")
    assert parts[0] == "tacita", name
    for k in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


def test_every_counterpart_exists():
    assert list(rows()) == [*PAPERS, "The book"]
    for document, lines in rows().items():
        for cell, counterpart in lines:
            names = re.findall(r"`([^`]+)`", counterpart)
            assert names or counterpart in WORDS, f"{document}: {cell}"
            if names:
                assert re.fullmatch(r"`[^`]+`(, `[^`]+`)*", counterpart), counterpart
            for name in names:
                assert exists(name), f"{document}: {cell}: {name}"


@pytest.mark.skipif("TACITA_PAPERS" not in os.environ, reason="needs the documents")
@pytest.mark.parametrize("document", [*PAPERS, "The book"])
def test_the_numbers_are_those_of_the_text(document: str):
    """Everything that a text numbers is wanted, and everything wanted is there."""
    texts = [p.read_text() for p in Path(os.environ["TACITA_PAPERS"]).glob("*.txt")]
    [text] = [t for t in texts if all(word in t for word in TITLES[document])]
    for kind, numbers in wanted(document).items():
        if kind == "equation":
            # In brackets at the end of a line or formula, with a letter or without.
            tags = re.findall(r"\\tag\{(\d+)[a-e]?\}|\((\d+)[a-e]?\)", text)
            found = {a or b for a, b in tags}
            assert set(numbers) <= found
            ends = re.findall(r"(?:\(|\\tag\{)(\d{1,3})[a-e]?[)}]\s*\$\$", text)
            assert max(map(int, ends), default=0) <= int(numbers[-1])
        elif kind == "Ex.":
            assert re.findall(r"^\*\*(\d+\.\d+)\. ", text, flags=re.M) == numbers
        else:
            number = r"[IVX]+" if kind == "Table" else r"\d+(?:\.\d+)?"
            # After ", " or "[" it is somebody else's.
            named = rf"(?<!, )(?<!\[)\b{LONG.get(kind, kind)}\s+({number})"
            found = set(re.findall(named, text))
            assert found == set(numbers), (kind, found ^ set(numbers))

"""The package as a whole: its name, its public names, and how fast it starts."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tacita

ROOT = Path(__file__).parents[1]
#: The name that the project had: somebody else's package on PyPI.
OLD_NAME = re.compile("(?<![a-z])" + "taci" + "t(?![a-z])", re.IGNORECASE)


def python(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def texts() -> dict[str, str]:
    """All files of the project that are text, by name."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("no checkout: the files of the project are not known")
    found = {}
    for name in listed.stdout.split("\0"):
        if (ROOT / name).is_file():
            try:
                found[name] = (ROOT / name).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # a picture, or data
    return found


def test_the_old_name_is_gone():
    assert OLD_NAME.search("import taci" + "t") and OLD_NAME.search("TACI" + "T_DATA")
    assert not OLD_NAME.search("tacita, TACITA_DATA")
    files = texts()
    assert "tacita/__init__.py" in files
    for name, text in files.items():
        assert not OLD_NAME.search(name), name
        if name != "CHANGELOG.md":  # it tells of the renaming
            found = [line for line in text.splitlines() if OLD_NAME.search(line)]
            assert not found, f"{name}: {found[0]}"


def test_nobody_is_told_to_install_from_an_index():
    """Until it is published there, somebody else could put anything under the name."""
    for name, text in texts().items():
        wrong = re.findall(r"pip install [^\n`]*['\"\s]tacita\b(?!/)", text)
        assert not wrong, f"{name}: {wrong}"


def test_every_public_name_is_what_its_room_has():
    tree = ast.parse((ROOT / "tacita" / "__init__.py").read_text())
    (types,) = (node for node in tree.body if isinstance(node, ast.If))
    named = {
        alias.name: node.module or ""
        for node in types.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert named.pop("*") == "tacita.algorithm"
    named |= dict.fromkeys(tacita.algorithm.__all__, "tacita.algorithm")
    assert sorted(named) == sorted(tacita.__all__) == dir(tacita)
    for name, home in named.items():
        expected = (
            importlib.import_module(f"tacita.{name}")
            if home == "tacita"
            else getattr(importlib.import_module(home), name)
        )
        assert getattr(tacita, name) is expected, name
    with pytest.raises(AttributeError, match="no attribute 'FedAgv'"):
        _ = tacita.FedAgv  # pyright: ignore


HEAVY = ("jax", "scipy", "pandas", "sklearn", "matplotlib", "networkx", "pydantic")


@pytest.mark.parametrize(
    "words", ["import tacita", "from tacita.cli.app import app; app(['-h'], 'tacita')"]
)
def test_help_waits_for_nothing_heavy(words):
    loaded = f"print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    said = python(
        "-c", f"import sys, atexit; atexit.register(lambda: {loaded}); {words}"
    )
    assert said.splitlines()[-1] == ""


def test_a_simulation_needs_no_slow_library_that_it_does_not_use():
    others = ("pandas", "sklearn", "matplotlib", "scipy.stats", "scipy.spatial")
    words = f"import sys, tacita; tacita.simulate, tacita.private, tacita.FedAvg; tacita.problem.synthetic.logistic(agents=2, samples=4); print(*(set({others!r}) & set(sys.modules)))"  # noqa: E501
    assert python("-c", words).strip() == ""


def test_python_m_tacita_is_tacita():
    assert python("-m", "tacita", "--version") == f"tacita {tacita.__version__}\n"
    assert "Start with:  tacita demo" in python("-m", "tacita", "--help")

"""The import rule, read off the source: rooms import only what lies below them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tacita"

#: The rooms from the lowest to the highest: each imports only what stands before it.
ORDER = (
    ("check",),
    ("trees",),
    ("schedule",),
    ("random_numbers", "keys", "theme", "disk", "gaussian_table", "host_call"),
    ("processor",),
    ("compiled",),
    ("mesh",),
    ("gaussian_pairs",),
    ("sampling", "integer_noise", "encoding", "notebook"),
    ("participation",),
    ("data",),
    ("problem",),
    ("theory",),
    ("algorithm",),
    ("aggregation",),
    ("robust",),
    ("trained",),
    ("trace",),
    ("privacy",),
    ("runtime",),
    ("audits", "tuning", "variants", "trust"),
    ("estimators",),
    ("report",),
    ("job",),
    ("federation",),
    ("watch",),
    ("cli",),
)
#: Libraries that only some rooms may touch.
RESERVED = {
    "nats": "tacita/federation",
    "starlette": "tacita/watch",
    "uvicorn": "tacita/watch",
    "dp_accounting": "tacita/privacy/accounting",
    "typer": "tacita/cli",
    "pydantic": "tacita/job",
    "torch": "nowhere",
    "pickle": "nowhere",
    "cloudpickle": "nowhere",
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    part = path.relative_to(PACKAGE).parts[0]
    return part.removesuffix(".py")


@cache
def imported(path: Path) -> set[str]:
    """Full names of everything a module imports, wherever the import stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_rooms_import_only_what_lies_below(path: Path):
    room = room_of(path)
    if room in ("__init__", "__main__"):
        return
    level = {name: k for k, names in enumerate(ORDER) for name in names}
    assert room in level, f"{path}: a new room; say in this test where it stands"
    below = {name for name, k in level.items() if k < level[room]}
    for name in imported(path):
        top, _, rest = name.partition(".")
        if top != "tacita":
            continue
        target = rest.partition(".")[0]
        allowed = below | {room}
        if room == "cli":
            allowed |= {"", "__version__"}  # the command line is a user of the package
        assert target in allowed, f"{path} imports {name}, which lies above {room}"


@pytest.mark.few(2)
@pytest.mark.parametrize("library, home", RESERVED.items())
def test_libraries_stay_in_their_room(library: str, home: str):
    for path in modules():
        tops = {name.partition(".")[0] for name in imported(path)}
        if library in tops:
            where = path.relative_to(PACKAGE.parent).as_posix()
            assert where.startswith(home), f"{where} imports {library}"


def test_nothing_is_computed_in_the_package_file():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    kinds = (
        ast.Import,
        ast.ImportFrom,
        ast.If,  # types only
        ast.Assign,
        ast.Expr,
        ast.FunctionDef,
    )
    assert all(isinstance(node, kinds) for node in tree.body)

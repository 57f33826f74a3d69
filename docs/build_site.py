"""What `make docs` adds to the pages: the front page, the API, the menu, other folders.

Pages are written to be read in the repository. On the site the README is the front
page, `papers/` and `bench/results/` are pages too, and a link to a file that is no page
becomes its words.
"""

from __future__ import annotations

import ast
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
#: Pages and pictures outside of docs/ that are on the site.
_ELSEWHERE = ("papers/**/*.md", "papers/**/*.png", "bench/results/*.md")
#: The menu: what pages of a purpose begin with.
_MENU = {
    "Tutorials": ("tutorial-", "notebooks/"),
    "How to": ("how-to-",),
    "Explanation": ("explanation-", "sharp-edges", "proof-"),
    "Reference": ("ref-", "benchmarks"),
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def rooms() -> list[str]:
    """The full names of all modules whose names are public, `tacita` first."""
    found = ["tacita"]
    for name in sorted(_literal("tacita", "_ROOMS")):
        found += [f"tacita.{name}", *_inside(f"tacita.{name}")]
    return found


def _inside(room: str) -> list[str]:
    """The packages of a room, and the modules that it lists, or all if it has none."""
    found = []
    for path in sorted(ROOT.joinpath(*room.split(".")).glob("[a-z]*")):
        inner, listed = f"{room}.{path.stem}", public(room)
        if (path / "__init__.py").exists():
            found += [inner, *_inside(inner)]
        elif path.suffix == ".py" and (
            not listed or (path.stem in listed and is_module(room, path.stem))
        ):
            found.append(inner)
    return found


@cache
def public(room: str) -> tuple[str, ...]:
    """The public names of a module: those it lists, else those it defines."""
    listed = _literal(room, "__all__")
    if listed is not None:
        return tuple(listed)
    defined = (ast.FunctionDef, ast.ClassDef)
    names = (n.name for n in _source(room).body if isinstance(n, defined))
    return tuple(name for name in names if not name.startswith("_"))


@cache
def _source(room: str) -> ast.Module:
    """The module as it is written: nothing has to be imported, which takes long."""
    path = ROOT.joinpath(*room.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text())


def _literal(room: str, name: str) -> Any:
    for node in _source(room).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return eval(ast.unparse(node.value), {"__builtins__": {}})
    return None


def is_module(room: str, name: str) -> bool:
    """Whether a public name is a module, by where it is imported from."""
    for node in ast.walk(_source(room)):
        if isinstance(node, ast.ImportFrom):
            if name in [alias.name for alias in node.names]:
                return node.module == room
    return False


def page_of(room: str) -> str:
    """The page of a module: what it is for, then every public name."""
    inner = [name for name in public(room) if is_module(room, name)]
    parts = [f"# {room}", ast.get_docstring(_source(room)) or ""]
    if inner:
        parts.append("Modules: " + ", ".join(f"[`{n}`]({room}.{n}.md)" for n in inner))
    for name in public(room):
        if name not in inner:
            parts.append(_entry(room, name))
    return "\n\n".join(parts) + "\n"


def _entry(room: str, name: str) -> str:
    """A name with what it says of itself; what `tacita` has is told in its room."""
    for other in _literal("tacita", "_ROOMS") if room == "tacita" else ():
        home = f"tacita.{other}"
        if name in public(home):
            if is_module(home, name):
                return f"`{room}.{name}`: [{home}.{name}]({home}.{name}.md)"
            return f"`{room}.{name}`: [{home}.{name}][{home}.{name}]"
    return f"::: {room}.{name}"


def on_files(files: Any, config: Any) -> Any:
    """Add pages that lie elsewhere or are written here; then the menu."""
    from mkdocs.structure.files import File

    def add(uri: str, content: str | bytes) -> None:
        files.append(File.generated(config, uri, content=content))

    add("index.md", (ROOT / "README.md").read_text())
    for pattern in _ELSEWHERE:
        for path in sorted(ROOT.glob(pattern)):
            add(path.relative_to(ROOT).as_posix(), path.read_bytes())
    for room in rooms():
        add(f"api/{room}.md", page_of(room))
    uris = sorted(f.src_uri for f in files.documentation_pages())
    uris += sorted(f.src_uri for f in files if f.src_uri.endswith(".ipynb"))
    config["nav"] = [{"Home": "index.md"}] + [
        {
            title: [
                u
                for begin in begins
                for u in dict.fromkeys(uris)
                if u.startswith(begin)
            ]
        }
        for title, begins in _MENU.items()
    ]
    config["nav"].append({"API": [f"api/{room}.md" for room in rooms()]})
    config["nav"].append({"Papers": [u for u in uris if u.startswith("papers/")]})
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links as they are on the site; those to files that are no pages as words."""
    uri = page.file.src_uri
    if uri.startswith("api/"):
        return markdown
    generated = uri == "index.md" or uri.startswith(("papers/", "bench/"))
    here = posixpath.dirname("README.md" if uri == "index.md" else uri)
    here = here if generated else posixpath.join("docs", here)

    def on_site(match: re.Match) -> str:
        picture, words, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if ":" in target or not path:
            return match.group()
        found = posixpath.normpath(posixpath.join(here, path))
        site = found.removeprefix("docs/")
        if files.get_file_from_path(site) is None and (ROOT / found).exists():
            return words
        return f"{picture}[{words}]({_relative(site, uri)}{hash_}{anchor})"

    return _LINK.sub(on_site, markdown)


def _relative(target: str, page: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(page) or ".")

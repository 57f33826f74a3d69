"""What `make docs` adds to the pages: the front page, the API, the menu, other folders.

Pages are written to be read in the repository. On the site the README is the front
page, `papers/` and `bench/results/` are pages too, and a link to a file that is no page
becomes its words.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import posixpath
import re
import types
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
    "Reference": ("ref-",),
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def rooms() -> list[str]:
    """The full names of all modules whose names are public, `tacita` first."""
    import tacita

    found = ["tacita"]
    for name in sorted(tacita._ROOMS):
        module = importlib.import_module(f"tacita.{name}")
        found.append(module.__name__)
        for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
            if inner.name in getattr(module, "__all__", ()) or inner.ispkg:
                found.append(f"{module.__name__}.{inner.name}")
    return found


def public(room: str) -> dict[str, Any]:
    """The public names of a module: those it lists, else those it defines."""
    module = importlib.import_module(room)
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, thing in vars(module).items()
            if not name.startswith("_") and getattr(thing, "__module__", "") == room
        ]
    return {name: getattr(module, name) for name in listed}


def page_of(room: str) -> str:
    """The page of a module: what it is for, then every public name."""
    module = importlib.import_module(room)
    parts = [f"# {room}", inspect.getdoc(module) or ""]
    names = public(room)
    inner = [n for n, thing in names.items() if isinstance(thing, types.ModuleType)]
    if inner:
        parts.append(
            "Modules: " + ", ".join(f"[`{n}`]({_file(names[n])})" for n in inner)
        )
    for name, thing in names.items():
        if name not in inner:
            home = _home(room, name, thing)
            parts.append(
                f"::: {home}" if home.startswith(f"{room}.") else _pointer(name, home)
            )
    return "\n\n".join(parts) + "\n"


def _home(room: str, name: str, thing: Any) -> str:
    """Where a name is described: the room that lists it first, under `tacita` none."""
    if room != "tacita":
        return f"{room}.{name}"
    for other in rooms()[1:]:
        if public(other).get(name) is thing:
            return f"{other}.{name}"
    return f"{room}.{name}"


def _pointer(name: str, home: str) -> str:
    return f"`tacita.{name}`: [{home}][{home}]"


def _file(module: types.ModuleType) -> str:
    return f"{module.__name__}.md"


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

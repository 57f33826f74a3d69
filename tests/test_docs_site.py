"""The site: every public name is described on it, and it needs nothing from outside."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location(
    "build_site", ROOT / "docs" / "build_site.py"
)
assert _spec is not None and _spec.loader is not None
build_site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build_site)


def described() -> dict[str, object]:
    """Every public name that can have a docstring."""
    found = {}
    for room in build_site.rooms():
        module = importlib.import_module(room)
        found |= {
            f"{room}.{name}": getattr(module, name) for name in build_site.public(room)
        }
    kinds = (inspect.isclass, inspect.isroutine, inspect.ismodule)
    return {k: v for k, v in found.items() if any(is_kind(v) for is_kind in kinds)}


def test_every_public_name_has_a_docstring():
    found = described()
    assert len(found) > 300 and "tacita.simulate" in found
    lacking = [name for name, thing in found.items() if not inspect.getdoc(thing)]
    assert not lacking
    # A record that says nothing has the docstring that Python makes of its fields.
    made_up = [
        name
        for name, thing in found.items()
        if inspect.isclass(thing)
        and (thing.__doc__ or "").startswith(f"{thing.__name__}(")
    ]
    assert not made_up


def test_every_public_name_is_on_a_page_of_the_reference():
    pages = {room: build_site.page_of(room) for room in build_site.rooms()}
    for room, page in pages.items():
        for name in build_site.public(room):
            assert re.search(rf"[.`]{name}\b", page), f"{room}.{name}"
    assert "tacita.SecureSum`: [tacita.aggregation.SecureSum]" in pages["tacita"]


def test_links_are_those_of_the_site_and_broken_ones_stay_broken():
    from types import SimpleNamespace as Made

    known = {"ref-data.md", "papers/README.md", "index.md", "pictures/weather-map.png"}
    files = Made(get_file_from_path=lambda path: path if path in known else None)

    def shown(uri: str, text: str) -> str:
        page = Made(file=Made(src_uri=uri))
        return build_site.on_page_markdown(text, page, None, files)

    assert shown("index.md", "[a](docs/ref-data.md#b)") == "[a](ref-data.md#b)"
    assert shown("ref-data.md", "[a](../papers/README.md)") == "[a](papers/README.md)"
    assert shown("papers/x/README.md", "[a](../../docs/ref-data.md)") == (
        "[a](../../ref-data.md)"
    )
    assert shown("ref-data.md", "[code](../tacita/check.py)") == "code"
    assert shown("ref-data.md", "[a](no-page.md)") == "[a](no-page.md)"
    assert shown("ref-data.md", "[a](https://x.org/y)") == "[a](https://x.org/y)"


@pytest.mark.long
def test_the_site_is_built_without_network_and_holds_every_name(tmp_path: Path):
    pytest.importorskip("mkdocs")
    site = tmp_path / "site"
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", site]
    done = subprocess.run(
        [str(w) for w in words], cwd=ROOT, capture_output=True, text=True, timeout=HANG
    )
    assert done.returncode == 0, done.stderr[-3000:]
    pages = {
        p.relative_to(site).as_posix(): p.read_text() for p in site.rglob("*.html")
    }
    everything = "".join(pages[f"api/{room}.html"] for room in build_site.rooms())
    anchors = set(re.findall(r'id="(tacita[\w.]*)"', everything))
    for room in build_site.rooms()[1:]:
        for name in build_site.public(room):
            known = f"{room}.{name}" in anchors or build_site.is_module(room, name)
            assert known, (room, name)
    assert all(f"notebooks/{k}" in " ".join(pages) for k in range(1, 6))
    assert (site / "search" / "search_index.json").exists()
    # Nothing is loaded from elsewhere: scripts, styles, fonts, pictures.
    outside = r'<(?:script|link|img)[^>]*(?:src|href)="https?:[^"]*"'
    found = {m for page in pages.values() for m in re.findall(outside, page)}
    assert not {m for m in found if 'rel="canonical"' not in m}

"""Pictures of every page that people look at: `make screenshots`.

A page is a name and what gives its address; whoever makes a page adds it to `PAGES`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tacita.watch import LivePage, federation_source, run_source
from tests.browser.chromium import LOOKS, chromium, missing
from tests.browser.looks import cut_or_crossed, pale_words
from tests.browser.report_pages import REPORTS
from tests.watch import folders

OUT = Path(__file__).parents[2] / "build" / "screenshots"


class Page(NamedTuple):
    """A page to be photographed.

    Attributes:
        name: Its files are NAME-LOOK.png.
        address: Given an empty folder, the page's address, for as long as it is used.
        ready: What holds in the page once it can be looked at.
    """

    name: str
    address: Callable[[Path], AbstractContextManager[str]]
    ready: str = "document.readyState === 'complete'"


def live(make: Callable[[Path], Any], source: Callable[[Path], Any]) -> Any:
    """The live page of a folder."""

    @contextmanager
    def address(place: Path) -> Iterator[str]:
        with LivePage(source(make(place / "folder"))) as page:
            yield page.address

    return address


def written(write: Callable[[Path], Path]) -> Any:
    """A page that is a file."""

    @contextmanager
    def address(place: Path) -> Iterator[str]:
        yield f"file://{write(place)}"

    return address


def _going(folder: Path) -> Path:
    return folders.going_run(folder, done=64, lanes=3)


def _agent(folder: Path) -> Path:
    return folders.agent(folder, offers=2)


def _coordinator(folder: Path) -> Path:
    return folders.coordinator(folder, parties=8)


_SHOWN = "document.querySelectorAll('section').length > 0"
PAGES = [
    Page("live-run", live(_going, run_source), _SHOWN),
    Page("live-finished", live(folders.finished_run, run_source), _SHOWN),
    Page("live-agent", live(_agent, federation_source), _SHOWN),
    Page("live-coordinator", live(_coordinator, federation_source), _SHOWN),
    *(Page(name, written(write)) for name, write in REPORTS.items()),
]


def main(names: list[str]) -> int:
    """Photograph the pages of these names, or all; how many have a fault."""
    if reason := missing():
        print(reason)
        return 1
    faults = 0
    with tempfile.TemporaryDirectory() as place:
        with chromium(Path(place) / "profile") as browser:
            for page in PAGES:
                if names and page.name not in names:
                    continue
                own = Path(place) / page.name
                own.mkdir()
                with page.address(own) as address:
                    for look, how in LOOKS.items():
                        browser.look(**how)
                        browser.open(address)
                        browser.until(page.ready)
                        path = OUT / f"{page.name}-{look}.png"
                        browser.picture(path)
                        found = cut_or_crossed(browser) + pale_words(browser)
                        faults += bool(found)
                        print(path, *found, sep="\n  ")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

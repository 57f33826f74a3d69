"""Writing a report: the page, and its pictures beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tacita import check
from tacita.report.page import Page
from tacita.report.unprotected import publishable as without_rows
from tacita.trace import Run

NAME, PUBLISHABLE = "report.html", "publishable.html"


def write_report(
    runs: Run | Mapping[str, Run],
    folder: str | os.PathLike[str],
    *,
    title: str | None = None,
    tolerance: Mapping[str, float] | None = None,
    publishable: bool = False,
) -> Path:
    """Write `report.html`, one page that works offline, and its pictures as PNG.

    Args:
        runs: One run, or several by the names they are to have on the page.
        folder: Where to; made if it is not there.
        title: Of the page; the name of the run, or of the comparison, if left out.
        tolerance: Values by metric: the page tells in which round they are reached.
        publishable: Leave out what is computed from rows and covered by no epsilon; the
            page is then `publishable.html`, without pictures beside it.

    Returns:
        The path of the page.

    >>> import tempfile, tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=3, features=2, samples=9)
    >>> run = tacita.simulate(problem, tacita.FedAvg(step_size=0.5), rounds=5)
    >>> page = write_report(run, tempfile.mkdtemp())
    >>> page.name, (page.parent / "curve-loss.png").exists()
    ('report.html', True)
    """
    named = {runs.name: runs} if isinstance(runs, Run) else dict(runs)
    if not named:
        check.refuse("a report needs at least one run")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        check.refuse(f"cannot write a report into {path}: it is a file; name a folder")
    title = title or (next(iter(named)) if len(named) == 1 else "Comparison")
    if publishable:
        named = {label: without_rows(run) for label, run in named.items()}
    page = Page(named, title, dict(tolerance or {}), publishable)
    file = PUBLISHABLE if publishable else NAME
    try:
        path.mkdir(parents=True, exist_ok=True)
        for picture, content in page.pictures.items():
            _put(path / picture, content)
        _put(path / file, page.document.encode())
    except OSError as error:
        check.refuse(
            f"cannot write the report into {path}: {error.strerror or error}; "
            "name another folder"
        )
    return path / file


def _put(path: Path, content: bytes) -> None:
    """Put a file in place whole, so that a reader never sees half of it."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)

"""Reports as a browser shows them: which pages, how wide, light, dark and in print."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tacita
from tacita.report import write_report

#: CSS pixels: a desktop, a telephone, and A4 within its margins of 14 mm.
DESKTOP, TELEPHONE, A4 = 1200, 390, 688


class Shot(NamedTuple):
    """A picture to take: of which page, under which name, shown how."""

    name: str
    page: Path
    width: int = DESKTOP
    dark: bool = False
    printed: bool = False


def private_run(rounds: int = 6) -> tacita.Run:
    """A small private run, as if its report had been signed at a site."""
    problem = tacita.problem.synthetic.logistic(agents=4, features=2, samples=50)
    budget = {"epsilon": 2.0, "delta": 1e-5, "observer": "coordinator"}
    algorithm = tacita.ServerGD(step_size=1.0)
    safe = tacita.private(problem, algorithm, rounds=rounds, **budget)
    run = tacita.simulate(problem, safe, rounds)
    signed = {"signer": "Oslo clinic", "time": "2026-01-31T12:00:00+00:00"}
    signed["fingerprint"] = "0123-4567-89ab-cdef-0123-4567-89ab-cdef"
    info = run.info | {"ledger_head": "0123456789abcdef" * 4, "signed": signed}
    return dataclasses.replace(run, info=info)


def beyond(run: tacita.Run) -> tacita.Run:
    """The same run, held to a budget that it does not keep."""
    assert run.privacy is not None and run.privacy.promise is not None
    promise = run.privacy.promise | {"unit": "client"}
    privacy = dataclasses.replace(run.privacy, promise=promise)
    return dataclasses.replace(run, privacy=privacy)


def shots(folder: Path) -> Iterator[Shot]:
    """Write reports into a folder, and say how to look at each."""
    run = private_run()
    page = write_report(run, folder / "report", title="A private run")
    yield Shot("report-desktop", page)
    yield Shot("report-dark", page, dark=True)
    yield Shot("report-telephone", page, TELEPHONE)
    yield Shot("report-telephone-dark", page, TELEPHONE, dark=True)
    yield Shot("report-print", page, A4, printed=True)
    others = write_report(run, folder / "report", publishable=True)
    yield Shot("report-publishable", others)
    over = write_report(beyond(run), folder / "beyond", title="Beyond its budget")
    yield Shot("report-beyond", over, TELEPHONE)

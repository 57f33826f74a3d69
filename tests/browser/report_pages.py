"""Reports to look at: of a private run, for others, and beyond its budget."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import tacita
from tacita.report import write_report


@cache
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


def report(folder: Path) -> Path:
    """The page of a private run."""
    return write_report(private_run(), folder, title="A private run")


def publishable(folder: Path) -> Path:
    """The same page for others."""
    return write_report(private_run(), folder, publishable=True)


def beyond(folder: Path) -> Path:
    """The page of a run that is held to a budget which it does not keep."""
    run = private_run()
    assert run.privacy is not None and run.privacy.promise is not None
    promise = run.privacy.promise | {"unit": "client"}
    privacy = dataclasses.replace(run.privacy, promise=promise)
    kept = dataclasses.replace(run, privacy=privacy)
    return write_report(kept, folder, title="Beyond its budget")


#: By the name of the pictures that are taken of them.
REPORTS = {
    "report": report,
    "report-publishable": publishable,
    "report-beyond": beyond,
}

"""Folders as programs leave them, made without running any."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from tacita.federation.audit_log import AuditLog
from tacita.federation.description import Description
from tacita.federation.offers import OfferBook
from tacita.federation.seal import PrivateKeys
from tacita.privacy import Ledger
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.accounting.mechanisms import gaussian_guarantee
from tacita.runtime import checkpoint
from tacita.runtime.checkpoint import Aim, Saved
from tacita.trace import PrivacyReport, PrivacyRow, Run

#: Seconds by which files are newer than they are: to be fresh on a slow machine too.
AHEAD = 600.0
CONFIG = """
name = "{name}"
[problem]
data = "digits"
[algorithm]
name = "FedAvg"
[run]
rounds = {rounds}
"""
RUN = {
    "problem": {"model": "logistic", "columns": ["age", "dose"], "target": "ill"},
    "algorithm": {"name": "FedAvg", "step_size": 0.3, "local_steps": 3},
    "run": {"rounds": 20},
    "privacy": {"epsilon": 1.0, "delta": 1e-5, "norm": 1.0, "observer": "coordinator"},
}
#: What an epsilon is about and rests on, as a status tells.
PROMISE = {
    "delta": 1e-5,
    "observer": "coordinator",
    "unit": "record",
    "relation": "replace_one",
    "theorem": "composition of Gaussian mechanisms (Dong, Roth, Su 2022)",
    "assumptions": [
        {"statement": "gradients are clipped to 1", "status": "enforced"},
        {"statement": "the noise is unknown to the observer", "status": "believed"},
    ],
}


def curve(records: int, lanes: int = 1) -> np.ndarray:
    """Accuracy and loss, (lanes, 2, records); of one lane (2, records)."""
    rounds, offsets = np.arange(1, records + 1), 0.1 * np.arange(lanes)[:, None]
    loss = 3.0 * np.exp(-rounds / 20.0) + 0.1 + offsets
    both = np.stack([1.0 - 0.3 * loss, loss], axis=1)
    return both[0] if lanes == 1 else both


def going_run(
    folder: Path,
    done: int = 30,
    rounds: int = 100,
    lanes: int = 1,
    name: str = "digits",
    private: bool = False,
) -> Path:
    """A run in progress."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(CONFIG.format(name=name, rounds=rounds))
    recorded = np.arange(1, done + 1)
    saved = Saved(done, [np.zeros(5)], curve(done, lanes), recorded, 0.2 * done)
    if private:
        spent = {"rounds": recorded.tolist(), "epsilon": (recorded / 10).tolist()}
        saved = saved._replace(spent={**PROMISE, **spent})
    aim = Aim(rounds, ("test_accuracy", "loss"), private)
    checkpoint.save(folder, saved, "any", aim)
    fresh = time.time() + AHEAD
    os.utime(folder / checkpoint.NAME, (fresh, fresh))
    return folder


def privacy_report(rounds: int) -> PrivacyReport:
    """Of a run that told its coordinator something."""
    believed = {
        "statement": "the coordinator keeps to the protocol",
        "status": "believed",
    }
    enforced = {"statement": "gradients are clipped to 1", "status": "enforced"}
    about = {"unit": "record", "relation": "replace_one", "delta": 1e-5}
    spent = [
        [0.1 * k**0.5 for k in range(rounds)],
        [0.08 * k**0.5 for k in range(rounds)],
    ]
    return PrivacyReport(
        algorithm="FedAvg",
        rounds=rounds,
        rows=(
            PrivacyRow(
                observer="coordinator",
                epsilon=0.9,
                theorem="composition of Gaussian mechanisms (Dong, Roth, Su 2022)",
                assumptions=(enforced, believed),
                agent="3",
                **about,
            ),
            PrivacyRow(
                observer="eavesdropper", epsilon=None, theorem="sees no letter", **about
            ),
        ),
        promise={"epsilon": 1.0, "observer": "coordinator", **about},
        curves={
            "observer": "coordinator",
            "theorem": "composition of Gaussian mechanisms",
            "budget": 1.0,
            "rounds": list(range(rounds)),
            "agents": ["3", "7"],
            "epsilon": spent,
            **about,
        },
    )


def finished_run(folder: Path, rounds: int = 100, private: bool = True) -> Path:
    """A run that is over."""
    values = dict(zip(("test_accuracy", "loss"), curve(rounds), strict=True))
    return Run(
        np.zeros(3),
        np.zeros((4, 3)),
        {"round": np.arange(1, rounds + 1), **values},
        {
            "name": "digits",
            "algorithm": {"name": "FedAvg"},
            "problem": {"data": "digits"},
        },
        {"rounds": rounds, "diverged": False, "seconds": {"total": 12.0}},
        privacy_report(rounds) if private else None,
    ).save(folder)


def status(party: str, round: int, rounds: int = 100, **more: Any) -> dict[str, Any]:
    """What every party's status tells."""
    return {
        "party": party,
        "run": "5f" * 8,
        "round": round,
        "rounds": rounds,
        "finished": False,
        "written": time.time() + AHEAD,
        "sent": 3 * round,
        "sent_bytes": 40_000 * round,
        "received": 3 * round,
        "received_bytes": 41_000 * round,
        "repeated": 2,
        "resent": 0,
        "refused": {"the signature does not fit": 3},
        "connected": True,
        "seconds_since": {"coordinator": 0.4},
        "under_way": {},
        "dropped": 0,
        **more,
    }


def write_status(home: Path, told: dict[str, Any]) -> None:
    """As `Program.write_status` does: whole or not at all."""
    home.mkdir(parents=True, exist_ok=True)
    partial = home / ".status.json.partial"
    partial.write_text(json.dumps(told, indent=1))
    partial.replace(home / "status.json")


def coordinator(home: Path, round: int = 12, parties: int = 50) -> Path:
    """A coordinator in the middle of a run."""
    names = [f"hospital-{k:02d}" for k in range(parties)]
    dice = np.random.default_rng(round)
    told = {
        name: {"round": round, "spent": 0.3 + 0.01 * round, "allowed": 4.0}
        for name in names
    }
    signs = ("distance", "cosine", "length", "rank", "used")
    letters = {
        name: {
            **dict.fromkeys(signs, float(dice.random())),
            "letters": 9,
            "times_used": 8.0,
        }
        for name in names
    }
    since = {name: float(dice.exponential(2.0)) for name in names[1:]}
    more = {"agents": names, "told": told, "letters": letters, "promise": PROMISE}
    write_status(home, status("coordinator", round, seconds_since=since, **more))
    return home


def describe(name: str = "heart study", **tables: Any) -> Description:
    """A run that is offered."""
    return Description(
        "clinics", name, "coordinator", ("bergen", "oslo", "turku"), {**RUN, **tables}
    )


def letter(noise: float = 12.0) -> Guarantee:
    """What one letter costs."""
    return gaussian_guarantee(
        observer="coordinator",
        unit="record",
        relation="replace_one",
        noise_std=noise,
        sensitivity=1.0,
    )


def agent_status(round: int = 12, **more: Any) -> dict[str, Any]:
    """An agent's, with its budget."""
    budget = {"epsilon_spent": 0.8, "epsilon_allowed": 4.0}
    return status("oslo", round, **{**budget, **PROMISE, **more})


def agent(home: Path, offers: int = 1, releases: int = 4, noise: float = 12.0) -> Path:
    """An agent in the middle of a run, with a ledger, a log and offers that wait."""
    log, keys = AuditLog(home), PrivateKeys.fresh()
    book = OfferBook(home, log)
    for k in range(offers):
        run = describe(f"heart study {k + 1}")
        log.note("offer", run=run.digest, name=run.name)
        book.keep(run, run.signed(keys))
        log.note("waiting", run=run.digest)
    one = letter(noise)
    with Ledger(home / "ledger.db") as ledger, ledger.together():
        ledger.allow(agent="oslo", epsilon=4.0, delta=1e-5)
        for k in range(releases):
            ledger.charge(one, agent="oslo", run="r", round=k, content=b"%d" % k)
    for k in range(releases):
        log.note("release", durable=False, run="5f" * 8, round=k, to="coordinator")
    write_status(home, agent_status())
    return home

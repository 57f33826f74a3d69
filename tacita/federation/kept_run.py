"""What a federation leaves at one party: a run folder like that of a simulation.

It holds what this party knows and no more: an agent its own model, what it measured on
its own rows and what its ledger says; the coordinator who took part, and no number that
was computed from rows. Nothing in it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacita.federation.description import Description
from tacita.federation.diary import Diary
from tacita.problem import Problem
from tacita.runtime.finish import versions
from tacita.trace import SEED_SECRET, PrivacyReport, Run
from tacita.trained import card_of


@dataclass(frozen=True)
class KeptRun:
    """A run as one party knows it.

    Attributes:
        run: What was agreed.
        party: Who keeps it.
        diary: What it noted.
        problem: Its own rows, of which only their number is told; at a coordinator, who
            has none, rows of zeros.
        shared: The model that the run has brought.
        own: The party's own model; None at a coordinator.
        seconds: How long the program worked on it.
        privacy: What its ledger says.
        evaluation: What its test rows say.
    """

    run: Description
    party: str
    diary: Diary
    problem: Problem
    shared: np.ndarray
    own: np.ndarray | None = None
    seconds: float = 0.0
    privacy: PrivacyReport | None = None
    evaluation: dict[str, Any] | None = None

    def save(self, folder: Path) -> None:
        """Write the run folder, for the party's own people."""
        self.as_run().save(folder)
        for path in folder.iterdir():
            if path.is_file():
                path.chmod(0o600)

    def as_run(self) -> Run:
        """The run as reports and comparisons read it."""
        leads = self.own is None
        none = np.zeros((0, *self.shared.shape))
        metrics = self.diary.attendance() if leads else self.diary.metrics()
        return Run(
            params=self.shared,
            kept=none if self.own is None else self.own[None],
            metrics=metrics,
            config=self._config(),
            info=self._info(),
            privacy=self.privacy,
            card=card_of(self.problem, algorithm=self.run.tables["algorithm"]["name"]),
        )

    def _config(self) -> dict[str, Any]:
        run = self.run
        about: dict[str, Any] = {"name": run.name, "agents": len(run.agents)}
        about["model"] = "logistic"
        about |= run.problem
        if self.own is not None:
            about["rows"] = int(self.problem.counts[0])
        federation = {
            "name": run.federation,
            "party": self.party,
            "agents": list(run.agents),
            "run": run.digest,
        }
        tables = {**run.tables, "problem": about}
        return {"name": run.name, **tables, "federation": federation}

    def _info(self) -> dict[str, Any]:
        run, turns = self.run, self.diary.turns()
        open_seed = run.run.get("shared_seed")
        info: dict[str, Any] = {
            "rounds": run.rounds,
            "stopped_early": False,
            "diverged": not bool(np.all(np.isfinite(self.shared))),
            "seed": SEED_SECRET if open_seed is None else open_seed,
            "versions": versions(),
            "seconds": {"total": self.seconds},
            "communication": self._communication(),
        }
        if self.own is not None:
            count = int(self.problem.counts[0])
            info["holdings"] = {"agent": [self.party], "rows": [count]}
            turns = turns and [turns[run.agents.index(self.party)]]
        elif run.run.get("asynchronous"):
            info["arrivals"] = self.diary.arrivals()
        if turns is not None:
            info["turns"] = turns
        if self.evaluation is not None:
            info["evaluation"] = self.evaluation
        return info

    def _communication(self) -> dict[str, int]:
        told = self.diary.traffic()
        sent, received = told["sent_bytes"], told["received_bytes"]
        found = {"letters": told["sent"] + told["received"], "bytes": sent + received}
        if "graph" in self.run.tables:
            return found
        up, down = (received, sent) if self.own is None else (sent, received)
        return found | {"bytes_up": up, "bytes_down": down}

"""A simulation, in progress or finished, as its run folder tells of it."""

from __future__ import annotations

import os
import shlex
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from tacita.check import refuse
from tacita.report import numbers
from tacita.runtime import checkpoint
from tacita.runtime.checkpoint import Glance
from tacita.trace import Run, load_run
from tacita.trace.privacy_report import in_words
from tacita.watch import recorded
from tacita.watch.kept import Kept
from tacita.watch.view import Cards, Head, Part, View

#: Seconds after which a run that writes no checkpoint is called quiet: one is written
#: after a few recorded rounds, but a round may take long.
_QUIET = 30.0
_UNSAID = (
    "Metrics are computed from rows without noise: they are for whoever runs the "
    "simulation, not for an observer of it."
)
_LATER = (
    "This run is private. What every other observer may have learnt is computed when "
    "it ends, and stands here then."
)


class RunFolder:
    """The source for one run folder.

    Args:
        folder: What `tacita run` has made, or `tacita.simulate(checkpoint=...)`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._config = Kept([folder / "config.toml"], self._read_config)
        self._going = Kept([folder / checkpoint.NAME], self._glance)
        self._whole = Kept([folder / "run.json"], self._load)

    def look(self) -> View:
        """How far it is."""
        if (self._folder / "run.json").exists():
            return self._told(self._whole, self._finished)
        if (self._folder / checkpoint.NAME).exists():
            return self._told(self._going, self._running)
        words = "no round is over yet"
        return {"head": Head(**self._named(), state=words, tone="wait")}

    def _told(self, kept: Kept[Any], show: Any) -> View:
        found = kept()
        if found is None:
            refuse(kept.fault or f"{self._folder} is being written to; wait a little")
        return show(*found)

    def _read_config(self) -> dict[str, Any]:
        return tomllib.loads((self._folder / "config.toml").read_text())

    def _glance(self) -> tuple[Glance, dict[str, Part]] | None:
        going = checkpoint.glance(self._folder)
        if going is None:
            return None
        names = going.aim.metrics
        # Whoever watches letters records more lines behind the metrics.
        values = np.moveaxis(going.metrics, -2, 0)[: len(names)]
        metrics = dict(zip(names, values, strict=True))
        metrics["round"] = going.record_rounds
        told = recorded.parts(metrics, _UNSAID if going.aim.private else "")
        if going.spent is not None:
            told["epsilon"] = recorded.spent_so_far(going.spent)
        return going, told

    def _load(self) -> tuple[Run, dict[str, Part]]:
        run = load_run(self._folder)
        return run, recorded.parts_of(run, _UNSAID)

    def _named(self) -> dict[str, Any]:
        """What is run, as far as the run file says."""
        told = self._config() or {}
        algorithm = str(told.get("algorithm", {}).get("name", ""))
        data = str(told.get("problem", {}).get("data", ""))
        lede = f"{algorithm} on {Path(data).name}" if algorithm and data else algorithm
        title = str(told.get("name") or self._folder.resolve().name)
        return {"title": title, "role": "simulation", "lede": lede}

    def _running(self, going: Glance, body: dict[str, Part]) -> View:
        age, aim = self._age(), going.aim
        quiet = age > _QUIET
        warnings = [_LATER] if aim.private else []
        if quiet:
            again = f"tacita resume {shlex.quote(str(self._folder))}"
            warnings.append(
                "Nothing was written for a while. The run may be in a long round; if "
                f"it was interrupted, it goes on with: {again}"
            )
        left = going.seconds * (aim.rounds - going.rounds) / max(going.rounds, 1)
        figures = [
            ("rounds", f"{numbers.whole(going.rounds)} of {numbers.whole(aim.rounds)}"),
            ("time so far", numbers.seconds(going.seconds)),
            ("time left, about", "-" if quiet else numbers.seconds(left)),
        ]
        if going.spent is not None:
            figures.append(("epsilon so far", in_words(going.spent["epsilon"][-1])))
        head = Head(
            **self._named(),
            state=f"no sign of life for {age:.0f} s" if quiet else "running",
            tone="bad" if quiet else "good",
            done=going.rounds,
            of=aim.rounds,
            warnings=warnings,
        )
        return {"head": head, "figures": Cards(figures), **body}

    def _finished(self, run: Run, body: dict[str, Part]) -> View:
        diverged = bool(run.info.get("diverged"))
        asked = (self._config() or {}).get("run", {}).get("rounds", run.rounds)
        took = run.info.get("seconds", {}).get("total")
        figures = [("rounds", numbers.whole(run.rounds))]
        if took is not None:
            figures.append(("time", numbers.seconds(took)))
        head = Head(
            **self._named(),
            state="diverged" if diverged else "finished",
            tone="bad" if diverged else "done",
            done=run.rounds,
            of=max(run.rounds, int(asked)),
            warnings=["The run diverged: lower its step size."] if diverged else [],
        )
        return {"head": head, "figures": Cards(figures), **body}

    def _age(self) -> float:
        try:
            written = os.stat(self._folder / checkpoint.NAME).st_mtime
        except OSError:
            return 0.0  # it was just finished
        return time.time() - written

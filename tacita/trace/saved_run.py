"""A run: its models, its metrics, and the folder it is kept in.

The folder holds `config.toml` (what was run), `trace.npz` (arrays), `privacy.json` if
the run was private, `model.json` and `model.safetensors` (the model, as it leaves), and
`run.json` (seed, versions, timings, communication), written last: a folder with a
`run.json` is a whole run.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import tomli_w

from tacita import check, notebook
from tacita.trace import over_seeds
from tacita.trace.privacy_report import PrivacyReport
from tacita.trained import ModelCard, TrainedModel, files

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from tacita.problem.problem import Problem

#: What a private run tells of its seed: never the number, with which noise is undone.
SEED_SECRET = "secret, drawn for this run"
SEED_ASKED_FOR = "asked for, not shown"


@dataclass(frozen=True, eq=False)
class Run:
    """What `tacita.simulate` returns.

    With several seeds (or a sweep), arrays have a first axis over them.

    Attributes:
        params: The shared model, shape (d,).
        kept: What was kept of the agents' models: all, (N, d), or none, (0, d). Read
            them as `agents`.
        metrics: Recorded metrics by name; "round" names the rounds they belong to.
        config: What was run: problem, algorithm, run; the content of `config.toml`.
        info: Seed (of a private run only whether it was asked for), versions, timings,
            communication, who holds what: `run.json`.
        privacy: What each observer may have learnt, where gradients were clipped.
        card: How its model reads rows and what it answers; None where it holds none.
    """

    params: np.ndarray
    kept: np.ndarray
    metrics: dict[str, np.ndarray]
    config: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    privacy: PrivacyReport | None = None
    card: ModelCard | None = None

    @property
    def agents(self) -> np.ndarray:
        """Every agent's model, shape (N, d); refused where they were not kept."""
        if self.kept.shape[-2] == 0:
            check.refuse(
                "this run holds no agents' models: a coordinator has none, and a "
                "simulation keeps large ones only with keep_agents=True"
            )
        return self.kept

    @property
    def rounds(self) -> int:
        """Number of rounds done."""
        return int(self.info.get("rounds", 0))

    @property
    def name(self) -> str:
        """How the run is called in tables and legends."""
        return str(self.config.get("name") or self.config["algorithm"]["name"])

    @property
    def model(self) -> TrainedModel:
        """The model that leaves the run; on a graph every node's own."""
        if self.params.ndim != 1:
            check.refuse(
                "this run has several seeds or configurations, each with a model of "
                "its own; simulate the one you want"
            )
        if self.card is None:
            check.refuse(
                "this run holds no model: it diverged, or its loss makes no predictions"
            )
        personal = self.card.nodes is not None and not self.card.shared
        found = self.agents if personal else self.params
        told = None if self.privacy is None else self.privacy.as_dict()
        return TrainedModel(card=self.card, params=found, privacy=told)

    def predict(self, rows: Any, node: Any = None) -> np.ndarray:
        """Labels, or numbers, for new rows; see `TrainedModel.predict`."""
        return self.model.predict(rows, node)

    def predict_proba(self, rows: Any, node: Any = None) -> np.ndarray:
        """Probabilities of classes for new rows; see `TrainedModel.predict`."""
        return self.model.predict_proba(rows, node)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the run into a folder, which is made if it is not there."""
        path = check.folder(folder=Path(folder))
        # Without run.json a folder holds no run: parts of two runs never pass for one.
        (path / "run.json").unlink(missing_ok=True)
        arrays = {"params": self.params, "agents": self.kept}
        arrays |= {f"metric_{k}": v for k, v in self.metrics.items()}
        with _whole(path / "trace.npz") as file:
            np.savez_compressed(file, **arrays)  # pyright: ignore
        (path / "privacy.json").unlink(missing_ok=True)
        if self.privacy is not None:
            with _whole(path / "privacy.json") as file:
                file.write(self.privacy.content())
        files.remove(path)
        if self._has_model:
            self.model.save(path)
        _write(path / "config.toml", tomli_w.dumps(plain_values(self.config)))
        _write(path / "run.json", json.dumps(plain_values(self.info), indent=1))
        return path

    @property
    def _has_model(self) -> bool:
        """Whether there is one model, and one that did not diverge."""
        known = self.card is not None and self.params.ndim == 1
        return known and bool(np.all(np.isfinite(self.params)))

    def to_frame(self) -> pd.DataFrame:
        """The recorded metrics as a pandas table, one line per record.

        Of several seeds the column "repeat" counts them; of a sweep "configuration"
        names the numbers that differ.
        """
        from tacita.trace.frames import frame_of  # pandas is slow to import

        return frame_of(self)

    def plot(
        self,
        metric: str | None = None,
        *,
        beside: Mapping[str, Run] | None = None,
        problem: Problem | None = None,
        references: Mapping[str, float] | None = None,
        dark: bool = False,
    ) -> Figure:
        """Draw a metric over rounds; a notebook shows it, `savefig(path)` keeps it.

        Args:
            metric: Which; the one most looked for if left out.
            beside: Other runs to draw with it, by name.
            problem: What was solved: the optimum of its loss, or the share of its
                majority class, is drawn as a line to compare with.
            references: Other values to compare with, by name.
            dark: On dark paper.
        """
        from tacita.trace.curves import plot  # so is Matplotlib

        return plot(self, metric, beside, problem, references, dark)

    def _repr_html_(self) -> str:
        rows = [
            (name, *(_in_the_middle(v[..., k]) for k in (0, -1)))
            for name, v in self.metrics.items()
            if name != "round" and v.size
        ]
        first = self.metrics["round"][0] if rows else ""
        heads = ("metric", f"round {first}", f"round {self.rounds}") if rows else ()
        told = notebook.table(f"{self.name}, {self.rounds} rounds", rows, heads)
        if self.info.get("diverged"):
            told += notebook.notes([("diverged", "lower the step size")])
        return told + (self.privacy._repr_html_() if self.privacy else "")

    def __repr__(self) -> str:
        last = {
            k: float(np.mean(v[..., -1]))
            for k, v in self.metrics.items()
            if k != "round" and v.size
        }
        told = ", ".join(f"{k}={v:.4g}" for k, v in last.items())
        return f"Run({self.name}: {self.rounds} rounds, {told})"


def _in_the_middle(values: np.ndarray) -> str:
    """The median over seeds, and how many of them diverged."""
    table = np.reshape(np.asarray(values, float), (-1, 1))
    lost = over_seeds.told(over_seeds.astray(table))
    return f"{over_seeds.of_seeds(table)[0]:.4g}" + (f" ({lost})" if lost else "")


def load_run(folder: str | os.PathLike[str]) -> Run:
    """Read a run back from its folder."""
    path = Path(folder)
    if not (path / "run.json").exists():
        check.refuse(f"no finished run in {path}: {_remedy(path)}")
    try:
        config = tomllib.loads((path / "config.toml").read_text())
        info = json.loads((path / "run.json").read_text())
        # Read whole first: NumPy leaves a torn file open.
        content = io.BytesIO((path / "trace.npz").read_bytes())
        with np.load(content, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        privacy = None
        if (path / "privacy.json").exists():
            told = json.loads((path / "privacy.json").read_text())
            privacy = PrivacyReport.from_dict(told)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        check.refuse(f"cannot read the run in {path}: {error}; run it again")
    _refuse_gaps(path, config, info, arrays)
    card = files.card_in(path)
    metrics = {
        k.removeprefix("metric_"): v
        for k, v in arrays.items()
        if k.startswith("metric_")
    }
    return Run(arrays["params"], arrays["agents"], metrics, config, info, privacy, card)


def _remedy(path: Path) -> str:
    """What to do about a folder without a finished run."""
    if (path / "config.toml").exists():
        return f"it is unfinished, go on with: tacita resume {shlex.quote(str(path))}"
    if (path / "checkpoint.npz").exists():
        return (
            "it is the checkpoint of a simulation, go on with: tacita.simulate(..., "
            f"checkpoint={str(path)!r}, resume=True), and save what it returns"
        )
    if (path / "trace.npz").exists():
        return "it was not saved whole, save it again"
    return "name a folder that holds run.json"


def _refuse_gaps(path: Path, config: Any, info: Any, arrays: dict[str, Any]) -> None:
    """Refuse files that can be read but are not those of a run."""
    lacks = [
        f"{name} in trace.npz" for name in ("params", "agents") if name not in arrays
    ]
    named = config.get("name") or config.get("algorithm", {}).get("name")
    lacks += [] if named else ["the algorithm's name in config.toml"]
    lacks += [] if isinstance(info, dict) else ["a table in run.json"]
    if lacks:
        check.refuse(
            f"cannot read the run in {path}: it lacks {lacks[0]}; run it again"
        )


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name once all of it is on disk."""
    partial = path.with_name(f".{path.name}.partial")
    with open(partial, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def _write(path: Path, content: str) -> None:
    with _whole(path) as file:
        file.write(content.encode())


def plain_values(value: Any) -> Any:
    """Numbers, words, lists and tables only, for TOML and JSON; no None in TOML."""
    if isinstance(value, dict):
        return {str(k): plain_values(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [plain_values(v) for v in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str | int | float | bool):
        return value
    return str(value)

"""The recorded metrics of a run as a table of pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tacita.trace.measures import lanes, names, rounds_of
from tacita.trace.saved_run import Run
from tacita.trace.sweeps import apart


def frame_of(run: Run) -> pd.DataFrame:
    """What `Run.to_frame` returns."""
    parts = apart({"": run})
    tables = []
    for label, part in parts.items():
        table = _lines(part)
        if len(parts) > 1:
            table.insert(0, "configuration", label.strip())
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _lines(run: Run) -> pd.DataFrame:
    """The records of one configuration, those of a seed together."""
    rounds, metrics = rounds_of(run), names({"": run})
    values = {metric: lanes(run, metric) for metric in metrics}
    repeats = max((len(table) for table in values.values()), default=1)
    columns = {metric: table.ravel() for metric, table in values.items()}
    made = pd.DataFrame({"round": np.tile(rounds, repeats), **columns})
    if repeats > 1:
        made.insert(0, "repeat", np.repeat(np.arange(repeats), len(rounds)))
    return made

"""The small data sets that scikit-learn brings along: no download, no folder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tacita.data.catalog import ENTRIES
from tacita.data.dataset import Dataset
from tacita.data.tabular import assemble
from tacita.data.test_rows import hold_out_rows
from tacita.encoding import kind_of


def load_bundled(
    name: str,
    *,
    scale: str | None = None,
    test_share: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """One of scikit-learn's sets.

    Args:
        name: "iris", "wine", "breast-cancer", "digits" or "diabetes".
        scale: None, "standard", "minmax" or "unit".
        test_share: Share kept for testing (of each class).
        seed: Of that draw.
    """
    from sklearn import datasets  # loads slowly, and is needed here only

    bunch: Any = getattr(datasets, f"load_{name.replace('-', '_')}")()
    classes = ENTRIES[name].task == "classification"
    groups = bunch.target if classes else np.zeros(len(bunch.target))
    return assemble(
        name=name,
        features=pd.DataFrame(bunch.data, columns=list(bunch.feature_names)),
        y=bunch.target,
        task=ENTRIES[name].task,
        test=hold_out_rows(groups, test_share, seed),
        scale=scale,
        target_name="class" if classes else "progress",
        classes=[str(c) for c in bunch.target_names] if classes else (),
        label_kind=kind_of(bunch.target_names) if classes else "words",
    )

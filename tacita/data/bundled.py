"""The small data sets that scikit-learn brings along: no download, no folder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tacita.data.catalog import Entry, Task
from tacita.data.dataset import Dataset
from tacita.data.tabular import assemble
from tacita.data.test_rows import hold_out_rows

_HOME = "https://scikit-learn.org/stable/datasets/toy_dataset.html"


def _entry(name: str, summary: str, task: Any, licence: str, citation: str) -> Entry:
    return Entry(
        name=name,
        summary=summary,
        task=task,
        agents="none natural; any split",
        licence=licence,
        citation=citation,
        home=_HOME,
    )


ENTRIES = (
    _entry(
        "iris",
        "150 flowers, 4 measures; predict one of 3 species",
        "classification",
        "CC BY 4.0",
        'R. A. Fisher, "Iris", UCI Machine Learning Repository, doi 10.24432/C56C76',
    ),
    _entry(
        "wine",
        "178 wines, 13 measures; predict one of 3 growers",
        "classification",
        "CC BY 4.0",
        'S. Aeberhard, M. Forina, "Wine", UCI Machine Learning Repository, '
        "doi 10.24432/C5PC7J",
    ),
    _entry(
        "breast-cancer",
        "569 biopsies, 30 measures; predict malignant or benign",
        "classification",
        "CC BY 4.0",
        'W. Wolberg, O. Mangasarian, N. Street, W. Street, "Breast Cancer Wisconsin '
        '(Diagnostic)", UCI Machine Learning Repository, doi 10.24432/C5DW2B',
    ),
    _entry(
        "digits",
        "1 797 handwritten digits, 8 x 8; predict the digit",
        "classification",
        "CC BY 4.0",
        'E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI '
        "Machine Learning Repository, doi 10.24432/C50P49",
    ),
    _entry(
        "diabetes",
        "442 patients, 10 measures; predict the progress of the disease in a year",
        "regression",
        "not stated; distributed with scikit-learn",
        'B. Efron, T. Hastie, I. Johnstone, R. Tibshirani, "Least angle regression", '
        "Annals of Statistics 32(2), 2004",
    ),
)


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
    task: Task = next(entry.task for entry in ENTRIES if entry.name == name)
    classes = task == "classification"
    groups = bunch.target if classes else np.zeros(len(bunch.target))
    return assemble(
        name=name,
        features=pd.DataFrame(bunch.data, columns=list(bunch.feature_names)),
        y=bunch.target,
        task=task,
        test=hold_out_rows(groups, test_share, seed),
        scale=scale,
        target_name="class" if classes else "progress",
        classes=[str(c) for c in bunch.target_names] if classes else (),
    )

"""Adult: does a person of the 1994 US census earn more than 50 000 dollars?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tacita.check import one_of
from tacita.data.catalog import ENTRIES, DataFile
from tacita.data.dataset import Dataset
from tacita.data.tabular import Frame, assemble, read_csv, text_levels

_ADULT = ENTRIES["adult"]
_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)
AGENT_COLUMNS = ("native-country", "occupation", "education")


def load_adult(
    *,
    encoding: str = "reduced",
    scale: str | None = "unit",
    agent: str | None = None,
) -> Dataset:
    """Adult: 32 561 training and 16 281 test records, class 1 for more than 50 000.

    A missing value becomes the most frequent training value of its column, and the
    levels of a category are those of the training records, so that training and test
    columns agree: a level that occurs among others only becomes zeros
    (`Encoding.unseen`), in the test set as in `tacita predict`.

    Args:
        encoding: "reduced" (81 columns: without `fnlwgt` and `education`, which
            `education-num` repeats, and without the first level of each category; 81 x
            2 outputs are the 162 parameters of the FedSPD-DP benchmark) or "full" (105
            columns: one per level).
        scale: "unit", "minmax", "standard" or None.
        agent: The column that tells the agents apart, or None for no agents yet.
    """
    one_of(("reduced", "full"), encoding=encoding)
    if agent is not None:
        one_of(AGENT_COLUMNS, agent=agent)
    train, test = (
        _table(file, skip) for file, skip in zip(_ADULT.files, (0, 1), strict=True)
    )
    usual = {c: train[c].mode().iloc[0] for c in _COLUMNS}
    train, test = train.fillna(usual), test.fillna(usual)
    held = pd.concat([train, test], ignore_index=True)
    dropped = ["income"] + (["fnlwgt", "education"] if encoding == "reduced" else [])
    features = held.drop(columns=dropped)
    return assemble(
        name="adult",
        features=features,
        levels={c: v for c, v in text_levels(train).items() if c in features},
        drop_first=encoding == "reduced",
        filled={c: v for c, v in usual.items() if c in features},
        empty_words=("?",),
        unseen="zeros",
        y=(held["income"] == ">50K").to_numpy(),
        task="classification",
        test=np.arange(len(held)) >= len(train),
        scale=scale,
        target_name="income",
        classes=_ADULT.classes,
        agent=None if agent is None else held[agent].to_numpy(),
        notes=("missing values replaced by the most frequent training value",),
    )


def _table(file: DataFile, skip: int) -> Frame:
    """One of the two files; the test file has a comment on top and dotted labels."""
    table = read_csv(
        file,
        header=None,
        names=[*_COLUMNS, "income"],
        skiprows=skip,
        skipinitialspace=True,
        keep_default_na=False,
        na_values=["?"],
    )
    return table.assign(income=table["income"].str.rstrip("."))

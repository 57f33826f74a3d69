"""Patients: four hospitals of heart-disease, forty-two people of parkinsons."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tacita.check import one_of
from tacita.data.catalog import ENTRIES
from tacita.data.dataset import Dataset
from tacita.data.tabular import Frame, assemble, read_csv
from tacita.data.test_rows import hold_out_groups, hold_out_last, hold_out_rows

_NUMERIC = ("age", "trestbps", "chol", "thalach", "oldpeak", "ca")
# Categories without an order; the rest (sex, fbs, exang) is 0 or 1 already.
_NOMINAL = {
    "cp": (1, 2, 3, 4),
    "restecg": (0, 1, 2),
    "slope": (1, 2, 3),
    "thal": (3, 6, 7),
}
_HEART = ("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach")
_HEART += ("exang", "oldpeak", "slope", "ca", "thal")
_LOCAL_ONLY = ("slope", "ca", "thal")


def load_heart_disease(
    *,
    features: str = "shared",
    encoding: str = "one-hot",
    missing: str = "impute",
    scale: str | None = "standard",
    test_share: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Heart disease: 920 patients, one agent per hospital, class 1 for disease.

    A missing number becomes the median of its column over the training rows of all
    hospitals, a missing category the most frequent one: Switzerland measured no
    cholesterol at all (0 stands for missing), so no hospital could fill its own gaps.

    Args:
        features: "shared" leaves out `slope`, `ca` and `thal`, mostly absent outside
            Cleveland; "all" keeps them.
        encoding: "one-hot" for the unordered categories, or "codes" as in the files.
        missing: "impute", or "indicate" to add a 0/1 column "... missing" for every
            column with gaps in the training rows.
        scale: "standard", "minmax", "unit" or None.
        test_share: Share of each hospital's patients kept for testing.
        seed: Of that draw.
    """
    one_of(("shared", "all"), features=features)
    one_of(("one-hot", "codes"), encoding=encoding)
    one_of(("impute", "indicate"), missing=missing)
    table, hospital = _patients()
    disease = table.pop("num").to_numpy() > 0
    if features == "shared":
        table = table.drop(columns=list(_LOCAL_ONLY))
    test = hold_out_rows(hospital, test_share, seed)
    gaps = table.isna()
    usual = {}
    for column in table.columns:
        seen = table.loc[~test, column]
        number = column in _NUMERIC
        usual[column] = seen.median() if number else seen.mode().iloc[0]
    table = table.fillna(usual)
    nominal = _NOMINAL if encoding == "one-hot" else {}
    if missing == "indicate":
        touched = gaps.columns[gaps[~test].any()]
        table = table.join(gaps[touched].add_suffix(" missing"))
    return assemble(
        name="heart-disease",
        features=table,
        levels={c: v for c, v in nominal.items() if c in table},
        filled=usual,
        empty_words=("?",),
        y=disease,
        task="classification",
        test=test,
        scale=scale,
        target_name="disease",
        classes=ENTRIES["heart-disease"].classes,
        agent=hospital,
        notes=(
            "missing values, a cholesterol of 0 among them, replaced by the median "
            "(categories: the most frequent value) of all training rows",
        ),
    )


def _patients() -> tuple[Frame, np.ndarray]:
    tables = {
        file.path.split(".")[-2]: read_csv(
            file, header=None, names=[*_HEART, "num"], na_values=["?"]
        )
        for file in ENTRIES["heart-disease"].files
    }
    table = pd.concat(tables.values(), ignore_index=True).astype(float)
    table["chol"] = table["chol"].replace(0.0, np.nan)
    return table, np.repeat(list(tables), [len(t) for t in tables.values()])


def load_parkinsons(
    *,
    target: str = "total_UPDRS",
    features: str = "all",
    scale: str | None = "standard",
    test_by: str = "time",
    test_share: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Parkinson's telemonitoring: 5 875 recordings, one agent per patient.

    The scores are interpolated between visits and drift slowly, so a test row drawn at
    random has near twins in training: test by time or by patient.

    Args:
        target: "total_UPDRS" or "motor_UPDRS"; the other one is left out.
        features: "all" (age, sex, day and 16 voice measures) or "voice".
        scale: "standard", "minmax", "unit" or None.
        test_by: "time" (the last days of each patient) or "patient".
        test_share: Share kept for testing.
        seed: Of the draw of test patients.
    """
    one_of(("total_UPDRS", "motor_UPDRS"), target=target)
    one_of(("all", "voice"), features=features)
    one_of(("time", "patient"), test_by=test_by)
    table = read_csv(ENTRIES["parkinsons"].files[0])
    patient = table["subject#"].to_numpy()
    if test_by == "patient":
        test = hold_out_groups(patient, test_share, seed)
    else:
        test = np.zeros(len(table), bool)
        for rows in table.groupby("subject#").indices.values():
            test[rows] = hold_out_last(table["test_time"].to_numpy()[rows], test_share)
    dropped = ["subject#", "motor_UPDRS", "total_UPDRS"]
    if features == "voice":
        dropped += ["age", "sex", "test_time"]
    return assemble(
        name="parkinsons",
        features=table.drop(columns=dropped),
        y=table[target],
        task="regression",
        test=test,
        scale=scale,
        target_name=target,
        agent=patient,
    )

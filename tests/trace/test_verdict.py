"""The sentence that a privacy report comes to: never kinder than its rows."""

import dataclasses

import pytest

from tacita.trace import Keeping, PrivacyReport, PrivacyRow, verdict

ROW = PrivacyRow(
    observer="coordinator",
    unit="record",
    relation="replace_one",
    delta=1e-5,
    epsilon=1.0,
    theorem="a theorem",
    assumptions=({"statement": "clipped", "status": "enforced"},),
)
OTHER = dataclasses.replace(ROW, observer="final_model", epsilon=0.2)
BUDGET = {"epsilon": 2.0, "delta": 1e-5, "observer": "coordinator", "unit": "record"}
BUDGET |= {"relation": "replace_one"}
ABOUT = "at delta 1e-5 for one record against the coordinator"


def told(promise=BUDGET, **changes):
    rows = (OTHER, dataclasses.replace(ROW, **changes))
    return PrivacyReport(algorithm="a", rounds=3, rows=rows, promise=promise)


@pytest.mark.parametrize(
    ("changes", "keeping", "sentence"),
    [
        ({}, Keeping.WITHIN, f"epsilon 1 {ABOUT}: within the budget of 2"),
        (
            {"epsilon": 2.0},
            Keeping.WITHIN,
            f"epsilon 2 {ABOUT}: within the budget of 2",
        ),
        ({"epsilon": 2.01}, Keeping.BEYOND, f"epsilon 2.01 {ABOUT}: beyond the budget"),
        (
            {"epsilon": None},
            Keeping.BEYOND,
            f"no bound {ABOUT}: beyond the budget of 2",
        ),
        ({"epsilon": 20.1}, Keeping.BEYOND, f"no useful bound {ABOUT}: beyond"),
        (
            {"epsilon": 20.0, "promise": None},
            Keeping.UNSET,
            f"epsilon 20 {ABOUT}: no b",
        ),
        ({"promise": None}, Keeping.UNSET, f"epsilon 1 {ABOUT}: no budget was set"),
        (
            {"promise": BUDGET | {"delta": 1e-6}},
            Keeping.APART,
            f"epsilon 1 {ABOUT}: the budget of 2 is for delta 1e-6",
        ),
        (
            {"assumptions": ({"statement": "it looked", "status": "violated"},)},
            Keeping.UNPROVED,
            f"epsilon 1 {ABOUT}: not proved, for this is violated: it looked",
        ),
        (
            {"audited": {"lower_bound": 3, "confidence": 0.99, "refuted": True}},
            Keeping.REFUTED,
            f"epsilon 1 {ABOUT}: refuted by an audit",
        ),
    ],
)
def test_the_sentence(changes, keeping, sentence):
    found = verdict(told(**changes))
    assert found.keeping == keeping and found.sentence.startswith(sentence)
    assert str(told(**changes)).splitlines()[1] == found.sentence


def test_without_a_budget_the_row_counts_that_tells_most():
    rows = told(None).rows
    assert verdict(told(None)).row is not rows[0]
    assert verdict(told(None)).row.observer == "coordinator"
    blind = dataclasses.replace(OTHER, epsilon=None)
    report = PrivacyReport(algorithm="a", rounds=3, rows=(blind, ROW))
    assert verdict(report).row.observer == "final_model"

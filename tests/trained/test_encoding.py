"""From columns to features: what was done in training is done to new rows."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import tacita
from tacita import data
from tacita.check import TacitaError
from tacita.encoding import SEEN_LABELS, Column, Encoding
from tacita.report.unprotected import unprotected
from tests.trained.conftest import patients

MADE = Encoding(
    columns=(
        Column(name="age", filled=40.0),
        Column(name="pet", levels=("cat", "dog")),
        Column(name="grade", levels=(1, 2)),
    ),
    centre=(40.0, 0.0, 0.0, 0.0, 0.0),
    spread=(10.0, 1.0, 1.0, 1.0, 1.0),
)
ROWS = pd.DataFrame({"pet": ["dog", "cat"], "age": [60.0, np.nan], "grade": [2, 1]})
EXPECTED = [[2.0, 0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0, 0.0]]


@pytest.mark.parametrize("scale", [None, "standard", "minmax", "unit"])
@pytest.mark.parametrize("missing", ["impute", "drop"])
def test_training_rows_become_the_same_features_again(place, scale, missing):
    path = place / "patients.csv"
    read = data.read_table(
        path, target="ill", agent="site", scale=scale, missing=missing
    )
    frame = pd.read_csv(path)
    frame = frame.dropna() if missing == "drop" else frame
    shuffled = frame[["site", "ward", "pet", "ill", "dose", "age"]]
    np.testing.assert_array_equal(read.encoding.encode(shuffled), read.x)
    back = Encoding.from_dict(json.loads(json.dumps(read.encoding.as_dict())))
    assert back == read.encoding
    np.testing.assert_array_equal(back.encode(shuffled), read.x)


def test_what_was_learnt_from_rows_is_told(place):
    told = {"target": "ill", "agent": "site", "missing": "impute"}
    read = data.read_table(place / "patients.csv", scale="standard", **told)
    assert len(read.encoding.learnt) == 3
    plain = data.read_table(place / "patients.csv", features=["dose"], **told)
    assert plain.encoding.learnt == ()


@pytest.mark.parametrize(
    ("scale", "missing", "status"),
    [
        ("unit", "drop", "violated"),
        (None, "impute", "violated"),
        (None, "drop", "believed"),
    ],
)
def test_a_private_run_says_that_rows_were_looked_at_before(
    place, scale, missing, status
):
    """With a range by rows one record moves all others, which no clipping bounds."""
    path = place / "patients.csv"
    read = data.read_table(
        path, target="ill", agent="site", scale=scale, missing=missing
    )
    names = np.asarray(read.agent_names)[read.agent]
    made = tacita.from_arrays(read.x, read.y, names, bound=1.0)
    made = dataclasses.replace(made, encoding=read.encoding)
    noise = tacita.Noisy(std=1.0, oracle=tacita.Clipped(norm=1.0))
    run = tacita.simulate(made, tacita.FedAvg(oracle=noise), 1, record=())
    assert run.privacy is not None
    told = run.privacy.row("coordinator").assumptions
    about = [one for one in told if "row but its own" in one["statement"]]
    about += [one for one in told if "a category" in one["statement"]][:1]
    assert about[0]["status"] == status
    assert bool(run.privacy.violated()) == (status == "violated")
    words = " ".join(unprotected(run))
    assert ("scaling" in words) == (scale is not None)
    assert ("empty cells" in words) == (missing == "impute")


CLIPPED = {"name": "Clipped", "norm": 1.0}
NOISY = {
    "name": "FedAvg",
    "step_size": 0.5,
    "oracle": {"name": "Noisy", "std": 1.0, "oracle": CLIPPED},
}


@pytest.mark.parametrize("named", [False, True])
def test_labels_that_only_the_rows_named_are_told_of(place, named, tmp_path):
    """A label that one record alone has says that the record is there."""
    classes = {"classes": ["no", "yes"]} if named else {}
    asked = {"data": "patients.csv", "target": "ill", "agent": "site", **classes}
    asked |= {"missing": "drop", "features": ["age", "dose"], "bound": 1.0}
    table = {"problem": asked, "algorithm": NOISY, "run": {"rounds": 1, "record": []}}
    run = tacita.job.job_from(table, place).simulate()
    assert run.privacy is not None
    told = [one["statement"] for one in run.privacy.row("coordinator").assumptions]
    assert ("which labels there are is public" in told) != named
    back = tacita.load_model(run.save(tmp_path))
    assert (SEEN_LABELS in back.not_covered) != named


def test_labels_of_arrays_too_and_with_whatever_is_made_of_them():
    random = np.random.default_rng(0)
    x, y, agent = random.normal(size=(30, 2)), np.arange(30) % 3, np.arange(30) % 2
    seen = tacita.from_arrays(x, y, agent, model="softmax")
    named = tacita.from_arrays(x, y, agent, model="softmax", classes=range(3))
    assert seen.origin.learnt == (SEEN_LABELS,) and named.origin.learnt == ()
    of_both = tacita.from_arrays(x, y, agent, model={0: "softmax", 1: "softmax"})
    assert of_both.origin.learnt == (SEEN_LABELS,)
    numbers = tacita.from_arrays(x, x[:, 0], agent, model="linear")
    assert numbers.origin.learnt == ()
    hyper = tacita.variants.hyper_model(seen, np.eye(2))
    assert SEEN_LABELS in hyper.problem.origin.learnt


@pytest.mark.parametrize("name, options", [("iris", {}), ("digits", {"scale": "unit"})])
def test_a_bundled_set_is_encoded_again(name, options):
    from sklearn import datasets

    read = data.load(name, **options)
    raw = getattr(datasets, f"load_{name}")().data
    np.testing.assert_array_equal(read.encoding.encode(raw), read.x)


def test_columns_come_in_any_order_and_gaps_are_filled():
    np.testing.assert_array_equal(MADE.encode(ROWS), EXPECTED)
    wider = ROWS.assign(name="x")[["name", "grade", "age", "pet"]]
    np.testing.assert_array_equal(MADE.encode(wider), EXPECTED)
    assert MADE.surplus(wider) == ["name"]
    raw = ROWS[["age", "pet", "grade"]].to_numpy(object)
    np.testing.assert_array_equal(MADE.encode(raw), EXPECTED)
    text = ROWS.assign(grade=["2", "1"], age=["60", ""]).replace("", np.nan)
    np.testing.assert_array_equal(MADE.encode(text), EXPECTED)


def test_zeros_stand_for_a_first_level_that_was_dropped():
    made = Encoding(columns=(Column(name="a", levels=("x", "y")),), drop_first=True)
    assert made.feature_names == ("a=y",)
    frame = pd.DataFrame({"a": ["x", "y"]})
    assert made.encode(frame).tolist() == [[0.0], [1.0]]


def test_words_that_mean_an_empty_cell_are_gaps():
    made = Encoding(columns=(Column(name="a", filled=2.0),), empty_words=("?",))
    assert made.encode(pd.DataFrame({"a": ["1", "?"]})).tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("cells", [[-99, 1], [-99.0, 1.0], ["-99", "1"], ["?", 1]])
def test_a_number_that_means_an_empty_cell_is_a_gap_however_it_came(cells):
    """-99 in a column of numbers was a number to predict from."""
    columns = (Column(name="a", filled=2.0), Column(name="b", levels=("1", "4")))
    made = Encoding(columns=columns, empty_words=("?", "-99"))
    rows = pd.DataFrame({"a": cells, "b": [1, 4]})
    assert made.encode(rows).tolist() == [[2.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    with pytest.raises(TacitaError, match="'b' of the table is empty in 1 rows"):
        made.encode(rows.assign(b=cells))
    alone = Encoding(columns=columns[:1], empty_words=("?", "-99"))
    assert alone.encode(np.array([[-99], [1]])).tolist() == [[2.0], [1.0]]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_with_marks_of_gaps_become_the_same_features_again(tmp_path, ending):
    frame = pd.DataFrame({"age": [-99, 40, 50], "pet": ["?", "cat", "dog"]})
    frame["ill"] = ["no", "yes", "no"]
    path = tmp_path / f"mine.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    marks = {"missing": "impute", "missing_values": ["?", "-99"]}
    read = data.read_table(path, target="ill", **marks)
    assert read.x[0].tolist() == [45.0, 1.0, 0.0]
    np.testing.assert_array_equal(read.encoding.encode(frame), read.x)


MESSY = {
    "age": [
        (["60,5", "3"], "holds the number '60,5' with a comma in data row 1"),
        (["60", "old"], "holds the text 'old' in data row 2"),
        ([1.0, np.inf], "is infinite in data row 2"),
        (pd.to_datetime(["2026-01-01"] * 2), "is a date"),
        ([1j, 2.0], "holds complex numbers"),
    ],
    "pet": [
        (["dog", "doge"], "holds 'doge' in data row 2.*did you mean 'dog'"),
        ([None, "dog"], "is empty in 1 rows, the first is data row 1"),
        ([3, 4], "holds '3' in data row 1"),
    ],
    "grade": [
        ([1, 5], "holds 5.0 in data row 2.*known: 1, 2"),
        (["x", "1"], "holds the text 'x' in data row 1"),
    ],
}


@pytest.mark.parametrize(
    "name, values, words",
    [(name, *case) for name, cases in MESSY.items() for case in cases],
)
def test_messy_cells_are_refused_in_one_line(name, values, words):
    with pytest.raises(
        TacitaError, match=f"column '{name}' of new.csv {words}"
    ) as told:
        MADE.encode(ROWS.assign(**{name: values}), "new.csv")
    assert "\n" not in str(told.value)


def test_missing_and_doubled_columns_are_refused():
    with pytest.raises(TacitaError, match="no column 'pet', which the model needs"):
        MADE.encode(ROWS.drop(columns="pet"))
    twice = pd.concat([ROWS, ROWS[["age"]]], axis=1)
    with pytest.raises(TacitaError, match="has two columns 'age'"):
        MADE.encode(twice)
    with pytest.raises(TacitaError, match=r"the 3 columns age, pet, grade, got .*2, 4"):
        MADE.encode(np.zeros((2, 4)))
    with pytest.raises(TacitaError, match="two columns are called 'a'"):
        Encoding.of_numbers(["a", "a"])
    with pytest.raises(TacitaError, match="expected spread one number per feature"):
        Encoding.of_numbers(["a"], spread=(1.0, 2.0))


def test_gaps_in_arrays_are_filled_or_refused():
    made = Encoding(columns=(Column(name="a", filled=7.0), Column(name="b")))
    assert made.encode([[np.nan, 1.0]]).tolist() == [[7.0, 1.0]]
    with pytest.raises(TacitaError, match="column 'b' of the table is empty in 1 rows"):
        made.encode([[1.0, np.nan]])


def test_the_fixture_has_gaps():
    assert patients().isna().any(axis=None)


def test_levels_that_were_never_seen_are_refused_or_zeros_as_the_encoding_says():
    pet = Column(name="pet", levels=("cat", "dog"))
    cow = pd.DataFrame({"pet": ["cow", "dog"]})
    with pytest.raises(TacitaError, match="holds 'cow' in data row 1"):
        Encoding(columns=(pet,)).encode(cow)
    lenient = Encoding(columns=(pet,), unseen="zeros")
    assert lenient.encode(cow).tolist() == [[0, 0], [0, 1]]
    assert Encoding.from_dict(lenient.as_dict()) == lenient
    with pytest.raises(TacitaError, match="unseen"):
        Encoding(columns=(pet,), unseen="guess")

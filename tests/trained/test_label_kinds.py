"""Predictions are called as the labels were: of the same type, of the same value."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacita
from tacita.data import read_table
from tacita.encoding import labels_of
from tacita.federation.description import Description
from tacita.federation.own_rows import own_problem
from tacita.problem import from_arrays
from tacita.trained import from_problem

X = np.array([[1.0, 2.0], [3.0, -1.0], [-2.0, 0.5], [0.0, 1.0]])
CODES, AGENT = np.array([0, 1, 1, 0]), ["a", "b", "a", "b"]
KINDS = {
    "whole": (1, 2),
    "real": (1.0, 2.0),
    "truth": (False, True),
    "words": ("no", "yes"),
    "numbers as words": ("1", "2"),
    "truth as words": ("False", "True"),
    "leading zeros": ("007", "010"),
    "beyond floats": (2**60, 2**60 + 1),
}
#: How labels may be held besides in a NumPy array.
HELD = {
    "Int64": pd.array([1, 2, 2, 1], dtype="Int64"),
    "boolean": pd.array([False, True, True, False], dtype="boolean"),
    "string": pd.array(["1", "2", "2", "1"], dtype="string"),
    "arrow": pd.array(["False", "True", "True", "False"], dtype="string[pyarrow]"),
    "category of numbers": pd.Categorical([1, 2, 2, 1]),
    "category of words": pd.Categorical(["1", "2", "2", "1"]),
}


def same(found, expected):
    """Equal, and of the same Python type: True == 1 == 1.0."""
    pair = sorted({*np.asarray(found).tolist()}), sorted({*expected})
    return pair[0] == pair[1] and [*map(type, pair[0])] == [*map(type, pair[1])]


def both_classes(problem, folder):
    """Predictions of a model that gives every class, and of it reloaded."""
    w = np.arange(1.0, 1 + problem.dim)[:: -1 if problem.dim > 2 else 1]
    model = from_problem(problem, w)
    rows = np.array([[50.0, 50.0], [-50.0, -50.0]])
    back = tacita.load_model(model.save(folder))
    assert back.classes == model.classes and same(back.classes, model.classes)
    return [*model.predict(rows), *back.predict(rows)]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_arrays(kind, tmp_path):
    labels = KINDS[kind]
    y = np.array(labels)[CODES]
    seen = from_arrays(X, y, AGENT, model="softmax")
    assert same(both_classes(seen, tmp_path), labels)
    named = from_arrays(X, y, AGENT, classes=labels)
    assert same(both_classes(named, tmp_path), labels)


@pytest.mark.parametrize("kind", HELD)
def test_labels_of_pandas(kind, tmp_path):
    y = pd.Series(HELD[kind])
    problem = from_arrays(X, y, AGENT, model="softmax")
    assert same(both_classes(problem, tmp_path), y.tolist())


@pytest.mark.parametrize("kind", ["Int64", "boolean", "category of words"])
def test_labels_of_estimators(kind, tmp_path):
    y = pd.Series(HELD[kind])
    fitted = tacita.FederatedClassifier(rounds=1, tol=9).fit(X, y, AGENT)
    assert same(fitted.classes_, y.tolist())
    assert same(tacita.load_model(fitted.save(tmp_path)).classes, y.tolist())


def test_dates_are_kept_as_text(tmp_path):
    y = np.array(["2026-01-01", "2026-01-02"], "M8[D]")[CODES]
    fitted = tacita.FederatedClassifier(rounds=1, tol=9).fit(X, y, AGENT)
    assert fitted.predict(X).dtype == y.dtype
    back = tacita.load_model(fitted.save(tmp_path))
    assert back.classes == ("2026-01-01", "2026-01-02")


def test_bytes_are_refused():
    with pytest.raises(tacita.TacitaError, match=r"y holds bytes; .* y.astype\(str\)"):
        from_arrays(X, np.array([b"a", b"b"])[CODES], AGENT, model="softmax")


def table(folder, labels, ending="csv"):
    frame = pd.DataFrame({"age": [3.5, 4, 5, 6], "ill": labels})
    path = folder / f"mine.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    return path


@pytest.mark.parametrize(
    "cells, labels",
    [
        (["1", "2", "2", "1"], (1, 2)),
        (["1.0", "2.0", "2.0", "1.0"], (1.0, 2.0)),
        (["1", "2", "", "1"], (1, 2)),
        (["True", "False", "", "True"], (False, True)),
        (["007", "010", "", "007"], ("007", "010")),
        (["1", "2+", "1", "1"], ("1", "2+")),
    ],
)
def test_labels_of_a_text_file(cells, labels, tmp_path):
    data = read_table(table(tmp_path, cells), target="ill", missing="drop")
    assert same(labels_of(data.classes, data.label_kind), labels)


@pytest.mark.parametrize("kind", ["string", "category of numbers", "boolean"])
def test_labels_of_parquet(kind, tmp_path):
    data = read_table(table(tmp_path, HELD[kind], "parquet"), target="ill")
    labels = labels_of(data.classes, data.label_kind)
    assert same(labels, pd.Series(HELD[kind]).tolist())


def test_zeros_in_front_are_codes_where_labels_are_few(tmp_path):
    many = [f"{i:03}" for i in range(30)]
    path = tmp_path / "mine.csv"
    pd.DataFrame({"age": 0.5, "dose": many}).to_csv(path, index=False)
    assert read_table(path, target="dose").y.tolist() == [*map(float, range(30))]
    told = read_table(path, target="dose", task="classification").classes
    assert told == tuple(many)
    few = table(tmp_path, ["01", "02", "02", "01"])
    assert read_table(few, target="ill", task="regression").y.tolist() == [1, 2, 2, 1]
    assert read_table(few, target="ill", classes=[1, 2]).classes == ("1", "2")
    assert read_table(few, target="ill", classes=["01", "02"]).classes == ("01", "02")


@pytest.mark.parametrize(
    "classes, labels",
    [
        (["1", "2"], (1, 2)),
        ([1, 2], (1, 2)),
        ([1.0, 2.0], (1.0, 2.0)),
        (["True", "False"], (True, False)),
        (["01", "02"], ("01", "02")),
    ],
)
def test_a_federation_calls_classes_as_files_of_rows_do(classes, labels):
    """Its coordinator has no rows that would tell words from numbers."""
    problem = {"model": "logistic", "columns": ["age"], "target": "ill"}
    tables = {"problem": problem | {"classes": classes}, "run": {"rounds": 1}}
    tables["algorithm"] = {"name": "FedAvg"}
    about = Description("clinics", "first", "c", ("a",), tables)
    made = own_problem(about, {"age": np.arange(4.0), "ill": np.array(classes)[CODES]})
    assert same(from_problem(made, [1.0]).classes, labels)


def test_predictions_in_a_file_are_written_as_labels_were(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path, ["007", "010", "010", "007"])
    split = {"kind": "iid", "agents": 2}
    told = {"problem": {"data": "mine.csv", "target": "ill", "split": split}}
    told |= {"algorithm": {"name": "FedAvg"}, "run": {"rounds": 2}}
    run = tacita.job.job_from(told, Path(".")).simulate()
    frame = run.model.predict_frame(pd.DataFrame({"age": [3.0, 9.0]}))
    assert {*frame["prediction"]} <= {"007", "010"}
    assert frame.columns.tolist()[1:] == ["probability of 007", "probability of 010"]


def test_a_model_of_an_older_version_keeps_what_its_file_says(tmp_path):
    """Its classes were guessed from their text, and stand in the file as they are."""
    problem = from_arrays(X, CODES, AGENT, classes=(0, 1))
    from_problem(problem, [1.0, 2.0]).save(tmp_path)
    told = json.loads((tmp_path / "model.json").read_text())
    assert told["format"] == "tacita-model-2" and told["classes"] == [0, 1]
    assert same(tacita.load_model(tmp_path).predict(X), (0, 1))

"""`tacita predict`: new rows in, predictions out, messy tables refused."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacita
from tacita.encoding import Column, Encoding
from tacita.problem import from_arrays
from tacita.trained import from_problem
from tacita.trees import replace

ENCODING = Encoding(
    columns=(Column(name="age"), Column(name="pet", levels=("cat", "dog"))),
    centre=(50.0, 0.0, 0.0),
    spread=(10.0, 1.0, 1.0),
)
NEW = "id,pet,age\n1,dog,70\n2,cat,40\n"


def model(agents=None):
    x = np.arange(12.0).reshape(4, 3)
    problem = from_arrays(
        x, ["no", "yes"] * 2, ["s", "s", "t", "t"], classes=("no", "yes")
    )
    problem = replace(problem, encoding=ENCODING, target="ill")
    return from_problem(problem, [1.0, 0.5, -0.5] if agents is None else agents)


@pytest.fixture
def folder(place):
    Path("new.csv").write_text(NEW)
    return model().save("model")


def test_predictions_are_written_in_the_order_of_the_rows(tacita_, folder):
    done = tacita_("predict", folder, "new.csv", "--out", "out.csv")
    assert done.exit_code == 0, done.output
    assert done.stdout == "2 predictions: out.csv\n"
    assert done.stderr == "note: the model does not use the columns id\n"
    said = pd.read_csv("out.csv")
    assert said["prediction"].tolist() == ["yes", "no"]
    likely = said[["probability of no", "probability of yes"]].to_numpy()
    expected = model().predict_proba(pd.read_csv("new.csv"))
    np.testing.assert_array_equal(likely, expected)
    (line,) = tacita_.refused("predict", folder, "new.csv", "--out", "out.csv")
    assert line == "--out out.csv exists already; name another file"


def test_predictions_go_to_stdout(tacita_, folder):
    Path("new.tsv").write_text(NEW.replace(",", "\t"))
    Path("semi.csv").write_text(NEW.replace(",", ";"))
    said = tacita_.ok("predict", folder, "new.csv")
    assert said.startswith("prediction,probability of no,probability of yes\nyes,")
    assert tacita_.ok("predict", folder, "new.tsv") == said
    assert tacita_.ok("predict", folder, "semi.csv", "--separator", ";") == said


@pytest.mark.parametrize(
    "table, words",
    [
        ("pet\ndog\n", "new.csv has no column 'age', which the model needs"),
        (
            "pet,AGE\ndog,3\n",
            "no column 'age', which the model needs; did you mean 'AGE'",
        ),
        ("pet,age\ncow,3\n", "holds 'cow' in data row 1, which the model never saw"),
        ("pet,age\ndog,old\n", "holds the text 'old' in data row 1"),
        ('pet,age\ndog,"3,5"\n', "holds the number '3,5' with a comma in data row 1"),
        ("pet;age\ndog;3\n", "has no column 'age'"),
        ("pet,age\ndog,\n", "'age' of new.csv is empty in 1 rows"),
        ("pet,age\n,3\n", "'pet' of new.csv is empty in 1 rows"),
        ("pet,age\n", "new.csv has no rows"),
        ("", "cannot read new.csv"),
    ],
)
def test_messy_tables_are_refused_in_one_line(tacita_, folder, table, words):
    Path("new.csv").write_text(table)
    (line,) = tacita_.refused("predict", folder, "new.csv", "--out", "out.csv")
    assert words in line and not Path("out.csv").exists()


def test_codes_stay_as_they_are_written(tacita_, place):
    """A column of 007 and a1 is text; new rows with 007 alone are no numbers."""
    code = Column(name="code", levels=("007", "7", "a1"))
    x = np.eye(4, 3)
    problem = from_arrays(x, ["no", "yes"] * 2, list("sstt"), classes=("no", "yes"))
    problem = replace(problem, encoding=Encoding(columns=(code,)), target="ill")
    from_problem(problem, [2.0, -2.0, 0.5]).save("model")
    Path("new.csv").write_text("code\n007\n7\n007\n7.0\n")
    lines = tacita_("predict", "model", "new.csv").output.splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == ["yes", "no", "yes", "no"]


def test_a_personal_model_is_chosen_by_its_agent(tacita_, place):
    Path("new.csv").write_text(NEW)
    folder = model(np.array([[1.0, 0.5, -0.5], [-1.0, 0.5, -0.5]])).save("model")
    (line,) = tacita_.refused("predict", folder, "new.csv")
    assert line.endswith("say whose with --agent, one of s, t")
    (line,) = tacita_.refused("predict", folder, "new.csv", "--agent", "u")
    assert "there is no node 'u'" in line
    said = tacita_.ok("predict", folder, "new.csv", "--agent", "t")
    answers = [line.split(",")[0] for line in said.splitlines()]
    assert answers == ["prediction", "no", "yes"]


def test_what_is_no_model_is_refused(tacita_, folder):
    (line,) = tacita_.refused("predict", "nowhere", "new.csv")
    assert "there is no model.json" in line
    (line,) = tacita_.refused("predict", folder, "nowhere.csv")
    assert line == "there is no file nowhere.csv; check the path"


def test_a_run_is_predicted_with_without_its_data(tacita_, sites):
    tacita_.ok("run", sites, "--out", "run")
    frame = pd.read_csv("sites.csv")
    expected = tacita.load_run("run").predict(frame)
    shutil.move("sites.csv", "new.csv")
    Path("sites.toml").unlink()
    tacita_.ok("predict", "run", "new.csv", "--out", "out.csv")
    np.testing.assert_array_equal(pd.read_csv("out.csv")["prediction"], expected)

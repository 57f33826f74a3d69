"""A user's own table: what is read, and every way in which it is refused."""

import gzip

import numpy as np
import pandas as pd
import pytest

from tacita.check import TacitaError
from tacita.data import read_table

FRAME = pd.DataFrame(
    {
        "age": [30, 40, 50, 60, 35, 45],
        "pet": ["cat", "dog", "cat", "cow", "dog", "cat"],
        "smoker": [True, False, True, False, False, True],
        "weight": [60.5, 70.0, 80.25, 90.0, 65.0, 75.5],
        "site": ["north", "south", "north", "south", "south", "north"],
        "ill": ["no", "yes", "yes", "no", "yes", "no"],
    }
)


@pytest.fixture(params=["csv", "csv.gz", "tsv", "parquet"])
def path(request, tmp_path):
    path = tmp_path / f"mine.{request.param}"
    if request.param == "parquet":
        FRAME.to_parquet(path)
    elif request.param == "tsv":
        FRAME.to_csv(path, index=False, sep="\t")
    else:
        FRAME.to_csv(path, index=False)
    return path


def written(tmp_path, frame, name="mine.csv", **options):
    frame.to_csv(tmp_path / name, index=False, **options)
    return tmp_path / name


def test_all_formats_give_the_same_numbers(path):
    data = read_table(path, target="ill", agent="site")
    assert data.feature_names == (
        "age",
        "pet=cat",
        "pet=cow",
        "pet=dog",
        "smoker",
        "weight",
    )
    assert data.x[1].tolist() == [40.0, 0.0, 0.0, 1.0, 0.0, 70.0]
    assert data.classes == ("no", "yes") and data.y.tolist() == [0, 1, 1, 0, 1, 0]
    assert data.agent_names == ("north", "south")
    assert data.agent.tolist() == [0, 1, 0, 1, 1, 0]
    assert data.task == "classification" and data.test_x is None


def test_options(tmp_path):
    path = written(tmp_path, FRAME, sep=";")
    data = read_table(
        path, target="weight", features=["age"], separator=";", test_share=0.34
    )
    assert data.task == "regression" and data.agent is None
    assert data.x.shape == (4, 1) and data.test_x.shape == (2, 1)
    both = np.concatenate([data.y, data.test_y])
    assert sorted(both) == sorted(FRAME["weight"])
    data = read_table(path, target="age", features=["weight"], separator=";")
    assert data.task == "classification" and data.classes[0] == "30"
    data = read_table(
        path, target="age", features=["weight"], separator=";", task="regression"
    )
    assert data.y.tolist() == FRAME["age"].tolist()
    data = read_table(path, target="smoker", features=["age"], separator=";")
    assert data.classes == ("False", "True")
    scaled = read_table(
        path, target="ill", features=["age"], separator=";", scale="minmax"
    )
    assert scaled.x.min() == 0 and scaled.x.max() == 1


def test_missing_cells_are_refused_dropped_or_imputed(tmp_path):
    frame = FRAME.astype({"age": object, "pet": object})
    frame.loc[2, "age"] = None
    frame.loc[4, "pet"] = None
    path = written(tmp_path, frame)
    with pytest.raises(TacitaError, match="'age' .* empty in 1 rows, .* data row 3;"):
        read_table(path, target="ill")
    assert len(read_table(path, target="ill", missing="drop")) == 4
    data = read_table(path, target="ill", agent="site", missing="impute")
    assert data.x[2, 0] == np.median([30, 40, 60, 35, 45])
    assert data.x[4, data.feature_names.index("pet=cat")] == 1  # the most frequent
    assert data.notes
    frame.loc[0, "ill"] = None
    with pytest.raises(TacitaError, match="'ill' .* fill the cells, or take missing"):
        read_table(written(tmp_path, frame), target="ill", missing="impute")
    words = FRAME.astype({"age": object})
    words.loc[3, "age"] = "?"
    path = written(tmp_path, words)
    with pytest.raises(
        TacitaError, match=r"numbers and the text '\?'; .*missing_values"
    ):
        read_table(path, target="ill")
    data = read_table(path, target="ill", missing="impute", missing_values=["?"])
    assert data.x[3, 0] == np.median([30, 40, 50, 35, 45])


def test_imputed_values_come_from_the_training_rows(tmp_path):
    frame = pd.DataFrame({"a": np.arange(40.0) ** 2 + 0.5, "row": np.arange(40.0)})
    frame.loc[7, "a"] = np.nan
    path = written(tmp_path, frame)
    for seed in range(4):
        data = read_table(
            path, target="row", missing="impute", test_share=0.5, seed=seed
        )
        rows = np.concatenate([data.y, data.test_y])
        filled = np.concatenate([data.x, data.test_x])[rows == 7]
        assert filled == np.median([row**2 + 0.5 for row in data.y if row != 7])


def bad_bytes(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", "cannot read"),
        ("a.csv", b"age,ill\n", "has no rows"),
        ("a.csv", b"age,ill\n1,0\n2,1,5,6\n", "cannot read"),
        ("a.csv", b"\xff\xfe\x00age\n1\n", "cannot read"),
        ("a.csv", b"age;ill\n1;0\n", "is the separator right?"),
        ("a.csv", b"age;ill\n1,5;0\n2,5;1\n", "parted by ';', not by ','; say so"),
        ("a.csv.gz", b"age,ill\n1,0\n", "cannot read"),
        (
            "a.csv.gz",
            gzip.compress(b"age,ill\n1,0\n" * 99, mtime=0)[:-12],
            "cannot read",
        ),
        ("a.parquet", b"PAR1 no", "cannot read"),
        ("a.xlsx", b"PK", "cannot tell the format"),
        ("a.csv", b"age,ill\n1,0\n\xe5,1\n", "not text in UTF-8; save it in"),
        ("a.csv", b"age,ill\ninf,0\n1,1\n", "infinite in data row 1"),
        ("a.txt", b'age,ill\n"1,5",0\n"2,5",1\n', "with commas, '1,5'"),
        ("a.txt", b'age,ill\n"1,5",0\n2,1\n3,1\n', "with commas, '1,5' for one"),
        ("a.csv", b"on,ill\n2026-01-31,0\n2026-02-01 10:30,1\n", "is a date"),
        ("a.csv", b"on,ill\n31.1.2026,0\n1.2.2026,1\n", "is a date; leave it out"),
        ("a.csv", b"age,ill\n1,0\n2,0\n", "one value only"),
        ("a.csv", b"age, age ,ill\n1,2,0\n2,3,1\n", "two columns 'age'"),
        ("a.csv", b"ill\n1\n0\n", "at least one feature"),
        ("a.csv", b"a,b,a,ill\n1,2,3,0\n2,3,1,1\n", "two columns 'a'; give each"),
        ("a.csv", b",age,ill\n0,5,0\n1,5,1\n", "'Unnamed: 0' of .* features=[...]"),
        (
            "a.csv",
            b"age,ill,,\n5,0,,\n5,1,,\n",
            "'Unnamed: 2' of .* ends of lines; take",
        ),
        ("a.csv", b"patientId,ill\n9,0\n3,1\n", "whole number in every row"),
        ("a.csv", b"patient_id,ill\n9,0\n3,1\n,1\n", "whole number in every row"),
        ("a.csv", b"age,ill\n7,5,0\n8,5,1\n", "Expected 2 fields in line 2"),
        ("a.csv", b"age,ill\n1e200,0\n1,1\n", "is 1e+200 in size in data row 1"),
        ("a.csv", b"age,ill\n1,1e200\n1,2.5\n", "is 1e+200 in size in data row 1"),
        ("a.csv", b"pet,ill\ncat,0\ncat ,1\n", "holds 'cat' and 'cat ', which"),
        ("a.csv", b"age,ill\n1,no\n2,no \n3,yes\n", "spaces only; write them alike"),
        ("a.csv", b"age,ill\n1 234,0\n2 345,1\n", "written as '1 234'; write them"),
        ("a.csv", b"age,ill\n$5,0\n7,1\n", "numbers written as '$5'"),
        ("a.csv", "age,ill\n\u22125,0\n7,1\n".encode(), "a plain minus"),
        ("a.csv", "at,ill\n\u00e9,0\ne\u0301,1\n".encode(), "letters are coded only"),
        ("a.csv", b"pet,ill\na  b,0\na b,1\n", "'a  b' and 'a b', which differ in"),
        ("a.csv", b"nr,ill\n%d,0\n3,1\n" % 10**20, "up to 21 digits"),
        ("a.csv", b"pet,pet=cat,ill\ncat,1,0\ndog,2,1\n", "be called 'pet=cat'"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path, name, content, words):
    path = bad_bytes(tmp_path, name, content)
    with pytest.raises(TacitaError) as caught:
        read_table(path, target="ill")
    said = str(caught.value)
    assert all(part in said for part in words.split(" .* ")) and "\n" not in said


def test_a_refusal_of_the_columns_is_not_taken_for_a_broken_file(tmp_path):
    path = bad_bytes(tmp_path, "a.csv", b"age,age,ill\n1,2,0\n2,3,1\n")
    with pytest.raises(TacitaError) as caught:
        read_table(path, target="ill")
    assert str(caught.value) == f"{path} has two columns 'age'; give each its own name"


def test_none_is_a_word_like_any_other_among_words(tmp_path):
    text = b"pet,age,ill\nNone,None,None\ncat,7,mild\nNone,8,None\n,9,mild\n"
    path = bad_bytes(tmp_path, "a.csv", text)
    data = read_table(path, target="ill", missing="impute")
    assert data.feature_names == ("pet=None", "pet=cat", "age")
    assert data.x.tolist() == [[1, 0, 8], [0, 1, 7], [1, 0, 8], [1, 0, 9]]
    assert data.classes == ("None", "mild")
    with pytest.raises(TacitaError, match="'ill' .* is empty in 2 rows"):
        read_table(path, target="ill", missing="impute", missing_values=["None"])


def test_what_was_left_out_and_what_is_nearly_alike_is_noted(tmp_path):
    text = b"age,site,ill\n1,a,no\n,b,yes\n2,a,No\n3,c,yes\n"
    path = bad_bytes(tmp_path, "a.csv", text)
    data = read_table(path, target="ill", agent="site", missing="drop")
    assert data.notes == (
        "1 of 4 rows left out for an empty cell, all of agent 'b'",
        "column 'ill' holds 'no' and 'No', taken for two values: is one misspelt?",
    )


def test_classes_that_are_known_need_not_all_be_there(tmp_path):
    path = bad_bytes(tmp_path, "a.csv", b"age,ill\n1,1.0\n2,1.0\n")
    data = read_table(path, target="ill", classes=[0, 1])
    assert data.y.tolist() == [1, 1] and data.classes == ("0", "1")
    for classes, words in (
        (["0", "2"], r"is '1' in data row 1, which is none of classes=\['0', '2'\]"),
        ("01", "expected classes a list"),
        ([1, 1.0], "each once, got"),
    ):
        with pytest.raises(TacitaError, match=words):
            read_table(path, target="ill", classes=classes)
    with pytest.raises(TacitaError, match="goes with task='classification' only"):
        read_table(path, target="ill", classes=[0, 1], task="regression")


def test_infinite_numbers_are_named_where_gaps_are_imputed(tmp_path):
    path = bad_bytes(tmp_path, "a.csv", b"age,ill\n1,0\ninf,1\n,1\n")
    with pytest.raises(TacitaError, match="'age' .* is infinite in data row 2"):
        read_table(path, target="ill", missing="impute")


def test_agents_are_called_as_in_the_file(tmp_path):
    """Numbers are in their order, 007 is not 7, and a gap makes no 7.0 of a 7."""
    rows = [(site, i % 2) for i, site in enumerate(["10", "9", "10", "9"])]

    def names(*sites, **options):
        lines = [f"{i},{y},{site}" for i, (site, y) in enumerate([*rows, *sites])]
        path = tmp_path / "a.csv"
        path.write_text("\n".join(["age,ill, site ", *lines]))
        made = read_table(path, target="ill", agent="site", **options)
        return made.agent_names, made.classes

    assert names() == (("9", "10"), ("0", "1"))
    assert names(("007", 1), ("7", 0))[0] == ("007", "10", "7", "9")
    assert names(("", 1), ("11", ""), missing="drop") == (("9", "10"), ("0", "1"))


def test_a_text_that_differs_in_every_row_is_taken_only_where_it_is_named(tmp_path):
    names = {"name": [f"P{i}" for i in range(20)], "ill": [0, 1] * 10}
    path = written(tmp_path, pd.DataFrame(names))
    with pytest.raises(TacitaError, match="'name' .* another text in every row"):
        read_table(path, target="ill")
    assert read_table(path, target="ill", features=["name"]).x.shape == (20, 20)


def test_that_no_row_was_held_out_is_noted(tmp_path):
    path = written(tmp_path, FRAME.assign(site=range(6)))
    options = {"target": "ill", "agent": "site", "features": ["age"]}
    (note,) = read_table(path, **options, test_share=0.2).notes
    assert note.startswith("no test rows: test_share=0.2 of the rows of an agent")
    assert read_table(path, **options).notes == ()


def test_separators(tmp_path):
    for separator, words in (("\t", r"\t"), ("|", "|"), ("  ", r"\s+")):
        lines = ["age,ill", "1,0", "2,1"]
        text = "\n".join(lines).replace(",", separator)
        path = bad_bytes(tmp_path, "a.csv", text.encode())
        assert read_table(path, target="ill", separator=words).x.tolist() == [[1], [2]]
    for strange in ("", ",,", 5):
        with pytest.raises(TacitaError, match="expected separator one character"):
            read_table(path, target="ill", separator=strange)


def test_keys_are_taken_where_they_are_named(tmp_path):
    ordered = {"visit": range(5, 25), "ill": [0, 1] * 10}
    path = written(tmp_path, pd.DataFrame(ordered))
    with pytest.raises(TacitaError, match="'visit' .* features=.*, with it"):
        read_table(path, target="ill")
    assert read_table(path, target="ill", features=["visit"]).x[0] == [5.0]
    # As many numbers in order may be chance where they are few, or not whole.
    for fine in ([1, 2, 3, 4], [0.5 * i for i in range(20)], [5] * 20):
        few = {"visit": fine, "ill": ([0, 1] * 10)[: len(fine)]}
        read_table(written(tmp_path, pd.DataFrame(few)), target="ill")


def test_a_stray_label_is_noted(tmp_path):
    table = {"age": [i % 7 for i in range(101)], "ill": ["no", "yes"] * 50 + ["yse"]}
    made = read_table(written(tmp_path, pd.DataFrame(table)), target="ill")
    assert made.notes == ("label 'yse' occurs once among 101 rows: is it misspelt?",)
    few = pd.DataFrame(table)[2:]
    assert read_table(written(tmp_path, few), target="ill").notes == ()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "il"}, "no column 'il'; did you mean 'ill'?"),
        ({"target": "ill", "agent": "sites"}, "did you mean 'site'?"),
        ({"target": "ill", "features": ["agee"]}, "did you mean 'age'?"),
        ({"target": "ill", "features": ["ill"]}, "each column once"),
        ({"target": "ill", "features": []}, "at least one feature"),
        ({"target": "ill", "task": "regression"}, "is not a number"),
        ({"target": "ill", "task": "guess"}, "unknown task='guess'"),
        ({"target": "ill", "missing": "ignore"}, "unknown missing='ignore'"),
        ({"target": "ill", "max_levels": 2}, "3 different values"),
        ({"target": "ill", "max_levels": 0}, "got max_levels=0"),
        ({"target": "ill", "missing_values": "-99"}, "write missing_values=['-99']"),
        ({"target": "ill", "scale": "max"}, "unknown scale='max'"),
    ],
)
def test_bad_options_are_refused_in_one_line(tmp_path, options, words):
    with pytest.raises(TacitaError) as caught:
        read_table(written(tmp_path, FRAME), **options)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_target_of_numbers_is_not_taken_for_classes(tmp_path):
    """Numbers that were read as text would become one class each."""
    frame = pd.DataFrame(
        {"age": [i % 7 for i in range(30)], "dose": [f"{i},5" for i in range(30)]}
    )
    path = written(tmp_path, frame)
    with pytest.raises(TacitaError, match="'dose' .* numbers with commas, '0,5'"):
        read_table(path, target="dose")
    assert len(read_table(path, target="dose", task="classification").classes) == 30
    few = frame.assign(dose=["0,5", "1,5", "2"] * 10)
    path = written(tmp_path, few, sep=";")
    told = r"commas, '0,5' for one; .* or take task='classification'"
    with pytest.raises(TacitaError, match=told):
        read_table(path, target="dose", separator=";")
    options = {"target": "dose", "separator": ";"}
    classes = read_table(path, task="classification", **options).classes
    assert classes == ("0,5", "1,5", "2")
    path = written(tmp_path, few.assign(dose=["0", "1", "2+"] * 10), sep=";")
    assert read_table(path, **options).classes == ("0", "1", "2+")


CODES = pd.DataFrame(
    {
        "icd": ["007", "010", "007", "V27"],
        "ward": [1, 2, 2, 1],
        "hour": ["07", "12", "08", "09"],
        "ill": ["no", "yes", "no", "yes"],
    }
)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_numbers_that_are_names_become_categories(tmp_path, ending):
    path = tmp_path / f"mine.{ending}"
    if ending == "parquet":
        CODES.assign(hour=CODES["hour"].astype(int)).to_parquet(path)
    else:
        CODES.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    data = read_table(path, target="ill", categories=["icd", "ward"])
    names = ("icd=007", "icd=010", "icd=V27", "ward=1", "ward=2", "hour")
    assert data.feature_names == names
    assert data.x.tolist()[1] == [0.0, 1.0, 0.0, 0.0, 1.0, 12.0]
    new = CODES.assign(hour=CODES["hour"].astype(int))
    np.testing.assert_array_equal(data.encoding.encode(new), data.x)
    note = "column 'hour' holds '07', taken for 7: name codes in categories=[...]"
    assert data.notes == (() if ending == "parquet" else (note,))


def test_categories_are_features_and_have_few_levels(tmp_path):
    path = written(tmp_path, CODES)
    for options, words in (
        ({}, "or categories=['icd'] if all of them are names"),
        ({"categories": "icd"}, "expected categories a list of columns"),
        ({"categories": ["icb"]}, "names 'icb', no feature; did you mean 'icd'?"),
        ({"categories": ["ill"]}, "names 'ill', no feature"),
        ({"categories": ["icd"], "max_levels": 2}, "3 different values"),
    ):
        with pytest.raises(TacitaError) as caught:
            read_table(path, target="ill", **options)
        assert words in str(caught.value) and "\n" not in str(caught.value)
    CODES.assign(icd=["007", None, "010", "007"]).to_csv(path, index=False)
    data = read_table(path, target="ill", categories=["icd"], missing="impute")
    assert data.x[:, 0].tolist() == [1.0, 1.0, 0.0, 1.0]


def test_the_types_of_parquet(tmp_path):
    frame = pd.DataFrame(
        {
            "size": pd.Categorical(["big", "small", "big", None]),
            "count": pd.array([1, None, 3, 5], dtype="Int64"),
            "flag": pd.array([True, False, None, True], dtype="boolean"),
            "parts": [["a"], ["b"], ["a"], ["a"]],
            "kind": pd.Categorical(["x", "y", "x", "y"]),
            "who": pd.array([7, 7, 8, 8], dtype="Int64"),
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    options = {"target": "kind", "agent": "who"}
    with pytest.raises(TacitaError, match="'size' .* empty in 1 rows"):
        read_table(tmp_path / "t.parquet", **options)
    data = read_table(tmp_path / "t.parquet", **options, missing="impute")
    assert data.feature_names[:2] == ("size=big", "size=small")
    assert data.x[:, 0].tolist() == [1, 0, 1, 1]
    assert data.x[:, 2].tolist() == [1, 3, 3, 5]  # the median of 1, 3, 5
    assert data.x[:, 3].tolist() == [1, 0, 1, 1]
    assert data.x[:, 4].tolist() == [1, 0, 1, 1]
    assert data.classes == ("x", "y") and data.agent_names == ("7", "8")


def test_a_text_column_without_a_word_is_refused(tmp_path):
    frame = FRAME.assign(pet=pd.Series([None] * len(FRAME), dtype="str"))
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(TacitaError, match="'pet' of .* is empty; leave it out"):
        read_table(tmp_path / "a.parquet", target="ill", missing="impute")


def test_dates_missing_files_and_folders_are_refused(tmp_path):
    frame = FRAME.assign(day=pd.date_range("2026-01-01", periods=6))
    frame.to_parquet(tmp_path / "d.parquet")
    with pytest.raises(TacitaError, match="'day' .* is a date"):
        read_table(tmp_path / "d.parquet", target="ill")
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(TacitaError, match="there is no file"):
            read_table(path, target="ill")

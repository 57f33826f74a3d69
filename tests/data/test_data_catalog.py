"""The catalogue, and what needs no data folder."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

from tacita.check import TacitaError
from tacita.data import describe, fetch, load, names, options

FROM_FILES = (
    "fashion-mnist",
    "mnist",
    "adult",
    "fmi",
    "heart-disease",
    "parkinsons",
    "bank-marketing",
    "credit-default",
    "shakespeare",
)
BUNDLED = ("iris", "wine", "breast-cancer", "digits", "diabetes")


def test_names_are_those_promised():
    assert names() == FROM_FILES + BUNDLED


def test_every_pin_is_a_checksum_and_belongs_to_a_data_set():
    files = [file for name in names() for file in describe(name).files]
    assert len({file.path for file in files}) == len(files) == 26
    for file in files:
        assert file.size > 0 and re.fullmatch("[0-9a-f]{64}", file.sha256)


@pytest.mark.parametrize("name", FROM_FILES)
def test_every_file_has_a_source_and_every_set_its_terms(name):
    entry = describe(name)
    assert entry.licence and entry.citation and entry.home.startswith("http")
    for file in entry.files:
        assert file.path.startswith(f"{name}/")
        assert file.sources
        assert all(source.url.startswith("https://") for source in file.sources)
    assert f"{len(entry.files)} files" in str(entry) and entry.licence in str(entry)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_are_those_of_scikit_learn(name):
    bunch = getattr(datasets, f"load_{name.replace('-', '_')}")()
    data = load(name)
    np.testing.assert_array_equal(data.x, bunch.data)
    np.testing.assert_array_equal(data.y, bunch.target)
    assert data.task == ("regression" if name == "diabetes" else "classification")
    assert fetch(name) == []
    split = load(name, test_share=0.25, seed=4, scale="standard")
    assert len(split) + len(split.test_y) == len(data)
    assert len(split.test_y) == pytest.approx(0.25 * len(data), abs=3)
    np.testing.assert_allclose(split.x.mean(axis=0), 0, atol=1e-9)
    if data.task == "classification":
        share = np.bincount(split.test_y) / np.bincount(data.y)
        np.testing.assert_allclose(share, 0.25, atol=0.03)


def test_options_name_their_defaults():
    assert options("adult") == {"encoding": "reduced", "scale": "unit", "agent": None}
    assert set(options("fmi")) >= {"table", "target", "lags", "test_share"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: load("fashion_mnist"), "did you mean 'fashion-mnist'?"),
        (lambda: load(3), "unknown data_set=3"),
        (lambda: describe("adults"), "did you mean 'adult'?"),
        (lambda: fetch("cifar"), "known: fashion-mnist, mnist"),
        (lambda: load("iris", sclae="unit"), "did you mean 'scale'?"),
        (lambda: load("iris", scale="big"), "unknown scale='big'"),
        (lambda: load("iris", test_share=2), "test_share in [0, 1]"),
        (lambda: load("iris", seed=None), "seed=None"),
        (lambda: load("adult", encoding="fully"), "did you mean 'full'?"),
        (lambda: load("adult", agent="age"), "unknown agent='age'"),
        (lambda: load("mnist", scale="minmax"), "unknown scale='minmax'"),
        (lambda: load("fmi", table="dayly"), "did you mean 'daily'?"),
        (lambda: load("fmi", target="temp"), "unknown target='temp'"),
        (lambda: load("fmi", features="place"), "is for table='hourly'"),
        (lambda: load("fmi", features="hour"), "is for table='kustavi'"),
        (lambda: load("fmi", lags=3), "lags is for the tables daily, hourly"),
        (lambda: load("fmi", table="daily", lags=0), "lags a whole number >= 1"),
        (lambda: load("heart-disease", features="some"), "unknown features='some'"),
        (lambda: load("heart-disease", missing="drop"), "unknown missing='drop'"),
        (lambda: load("parkinsons", target="age"), "unknown target='age'"),
        (lambda: load("parkinsons", test_by="row"), "unknown test_by='row'"),
        (lambda: load("bank-marketing", test_by="row"), "did you mean 'rows'?"),
        (lambda: load("credit-default", parties=4), "parties 2 or 3"),
        (lambda: load("shakespeare", window=0), "window a whole number >= 1"),
        (lambda: load("shakespeare", min_characters=70), "raise min_characters"),
        (lambda: load("shakespeare", test_share=1.0), "test_share in [0, 1)"),
    ],
)
def test_bad_input_is_refused_in_one_line_before_any_file_is_read(cache, call, words):
    with pytest.raises(TacitaError) as caught:
        call()
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not cache.exists()


def test_the_reference_page_lists_every_set_option_and_citation():
    page = (Path(__file__).parents[2] / "docs" / "ref-data.md").read_text("utf-8")
    flat = " ".join(page.split())
    for name in names():
        entry = describe(name)
        assert f"`{name}`" in page
        assert entry.licence in flat and entry.citation in flat
        section = page.split(f"### {name}\n")[1] if f"### {name}\n" in page else page
        for option in options(name):
            assert f"`{option}`" in section.split("\n### ")[0]

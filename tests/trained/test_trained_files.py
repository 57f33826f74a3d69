"""A model on disk is whole, or refused in one line."""

import json
import os

import numpy as np
import pytest

import tacita
from tacita.problem import from_arrays
from tacita.trained import TrainedModel, from_problem
from tacita.trained.files import CARD, TENSORS, _checksum


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    x = np.arange(12.0).reshape(6, 2)
    problem = from_arrays(x, x[:, 0], np.arange(6) % 2, model="linear")
    return from_problem(problem, [1.5, -2.5])


@pytest.fixture
def folder(model, tmp_path):
    return model.save(tmp_path)


def refused(folder, words):
    with pytest.raises(tacita.TacitaError, match=words) as told:
        tacita.load_model(folder)
    assert "\n" not in str(told.value) and str(folder) in str(told.value)


def changed(folder, **changes):
    """A card with other content and a right checksum, as another program writes it."""
    told = json.loads((folder / CARD).read_text())
    told = {k: v for k, v in {**told, **changes}.items() if v != "left out"}
    (folder / CARD).write_text(json.dumps({**told, "sha256": _checksum(told)}))


def test_every_flipped_byte_is_noticed(folder, model):
    for name in (CARD, TENSORS):
        whole = (folder / name).read_bytes()
        for place in range(0, len(whole), 7):
            harmed = bytearray(whole)
            harmed[place] ^= 1
            (folder / name).write_bytes(harmed)
            refused(folder, "cannot read the model")
        (folder / name).write_bytes(whole)
    np.testing.assert_array_equal(tacita.load_model(folder).params, model.params)


def test_torn_and_missing_files_are_refused(folder):
    tensors = (folder / TENSORS).read_bytes()
    (folder / TENSORS).write_bytes(tensors[:-3])
    refused(folder, "damaged, or of another model")
    (folder / TENSORS).write_bytes(tensors + bytes(1 << 13))
    refused(folder, r"has \d+ bytes, expected <=")
    (folder / TENSORS).unlink()
    refused(folder, "No such file")
    (folder / CARD).write_text("{")
    refused(folder, "model.json is damaged")
    (folder / CARD).write_text("[]")
    refused(folder, "is not of the format tacita-model-2")
    (folder / CARD).unlink()
    refused(folder, "there is no model.json; name the folder of a model")


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"classes": "left out"}, "lacks 'classes'"),
        ({"model": {"kind": "linear", "features": 3}}, "expected rows of 3 features"),
        ({"model": {"kind": "linear", "width": 3}}, "no linear is made from"),
        ({"model": {"kind": "forest"}}, "unknown kind of model 'forest'"),
        ({"row": [3]}, "expected rows of 2 features, got 3"),
        ({"row": 2}, "is damaged"),
        ({"dtype": "int8"}, "unknown dtype='int8'"),
        ({"classes": ["a", "b"]}, "expected None classes"),
        ({"nodes": ["a", "b", "c"]}, "expected params of shape"),
        ({"encoding": {"columns": []}}, "lacks 'spread'"),
        ({"privacy": {"epsilon": 1.0}}, "statement of privacy"),
        ({"privacy": "left out"}, "lacks 'privacy'"),
        ({"tensors_sha256": "left out"}, "lacks 'tensors_sha256'"),
        ({"format": "tacita-model-9"}, "is not of the format"),
    ],
)
def test_a_card_that_says_something_else_is_refused(folder, changes, words):
    changed(folder, **changes)
    refused(folder, words)


def test_a_model_saved_over_another_is_whole(folder, model, monkeypatch):
    other = TrainedModel(card=model.card, params=model.params + 1)
    other.save(folder)
    np.testing.assert_array_equal(tacita.load_model(folder).params, other.params)
    # Killed after the tensors: the card of the one before is gone already.
    replace, done = os.replace, []

    def killed(source, target):
        if done:
            raise KeyboardInterrupt
        done.append(replace(source, target))

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        model.save(folder)
    refused(folder, "there is no model.json")


def test_a_damaged_card_is_refused_with_the_run(tmp_path):
    problem = tacita.problem.synthetic.linear(2, 2, 4)
    run = tacita.Run(
        np.zeros(2),
        np.zeros((2, 2)),
        {},
        {"algorithm": {"name": "none"}},
        card=from_problem(problem, np.zeros(2)).card,
    )
    run.save(tmp_path)
    assert tacita.load_run(tmp_path).card == run.card
    (tmp_path / CARD).write_text("{}")
    with pytest.raises(tacita.TacitaError, match="cannot read the model in"):
        tacita.load_run(tmp_path)

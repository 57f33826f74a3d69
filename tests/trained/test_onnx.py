"""Models as ONNX say what ours say, in a runtime that knows nothing of us."""

import json

import numpy as np
import pytest

import tacita
from tacita.encoding import Column, Encoding
from tacita.problem import cnn, from_arrays, mlp
from tacita.trained import TrainedModel, from_problem
from tacita.trees import replace

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

RANDOM = np.random.default_rng(1)
X = RANDOM.normal(3, 2, size=(20, 3))
AGENT = np.arange(20) % 2
WORDS = np.array(["a", "b", "c"])[np.arange(20) % 3]
SCALED = Encoding.of_numbers(
    ["u", "v", "w"], centre=(1.0, 2.0, 3.0), spread=(2.0, np.inf, 0.5)
)
FILLED = Encoding(
    columns=(Column(name="u", filled=1.5), Column(name="v"), Column(name="w")),
    unit_rows=True,
    empty_words=("?", "-99"),
)
CASES = {
    "linear": (dict(y=X[:, 0], model="linear", intercept=True), SCALED),
    "cut": (dict(y=X[:, 0], model="linear", intercept=True, bound=1.5), SCALED),
    "cut network": (
        dict(y=AGENT, model=mlp(4, (5,), 2), intercept=True, bound=2.0),
        SCALED,
    ),
    "huber": (dict(y=X[:, 0], model="huber"), None),
    "logistic": (dict(y=X[:, 0] > 3, model="logistic", intercept=True), SCALED),
    "softmax": (dict(y=WORDS, model="softmax", intercept=True), FILLED),
    "truth values": (dict(y=X[:, 0] > 3, model="softmax"), None),
    "classes": (dict(y=AGENT, model=mlp(3, (5, 4), 2)), SCALED),
    "values": (dict(y=X[:, 0], model=mlp(3, (4,), None)), FILLED),
}


def trained(y, encoding=None, **options) -> TrainedModel:
    problem = replace(from_arrays(X, y, AGENT, **options), encoding=encoding)
    w = RANDOM.normal(size=problem.dim).astype(problem.dtype)
    return from_problem(problem, w)


def ran(path, rows):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"rows": rows}), strict=True)), session


@pytest.mark.parametrize("case", CASES)
def test_onnx_says_the_same(case, tmp_path):
    options, encoding = CASES[case]
    model = trained(**options, encoding=encoding)
    rows = np.concatenate([X, np.zeros((1, 3))])
    if encoding is FILLED:
        rows[2:4, 0] = np.nan, -99
    said, session = ran(model.to_onnx(tmp_path / "model.onnx"), rows)
    expected = model.predict(rows)
    if model.classes is None:
        np.testing.assert_allclose(said["prediction"], expected, rtol=1e-6, atol=1e-6)
        assert list(said) == ["prediction"]
    else:
        np.testing.assert_array_equal(said["prediction"], expected)
        likely = model.predict_proba(rows)
        np.testing.assert_allclose(said["probabilities"], likely, rtol=0, atol=1e-6)
    told = session.get_modelmeta().custom_metadata_map
    assert json.loads(told["columns"]) == (encoding and list(encoding.names))
    assert json.loads(told["privacy"]) is None


def test_what_onnx_is_not_written_of_is_refused(tmp_path):
    words = Column(name="u", levels=("x", "y"))
    spoken = Encoding(columns=(words, Column(name="v")))
    pictures = from_arrays(
        RANDOM.normal(size=(20, 2, 2, 1)), AGENT, AGENT, model=cnn((2, 2, 1), 2, (2,))
    )
    for model, told in (
        (trained(X[:, 0], model="linear", encoding=spoken), "'u' is of words"),
        (trained(X[:, 0], model="moments"), "not of Moments"),
        (from_problem(pictures, pictures.start), r"not of cnn\[2\]"),
    ):
        with pytest.raises(tacita.TacitaError, match=told):
            model.to_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_personal_model_is_written_for_one_node(tmp_path):
    problem = from_arrays(X, X[:, 0], np.array(["s", "t"])[AGENT], model="linear")
    model = from_problem(problem, RANDOM.normal(size=(2, 3)))
    with pytest.raises(tacita.TacitaError, match="say whose with node="):
        model.to_onnx(tmp_path / "model.onnx")
    said, _ = ran(model.to_onnx(tmp_path / "model.onnx", node="t"), X)
    np.testing.assert_allclose(said["prediction"], model.predict(X, "t"), rtol=1e-12)

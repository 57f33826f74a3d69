"""A model as ONNX: one input, the columns of numbers as they come; needs `onnx`.

The file scales, fills gaps and predicts. Input `rows` is a table of float64, its
columns in the order of the model's. Output `prediction` is a label or a number for
every row; a classification has `probabilities` too, (rows, classes).
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tacita.check import refuse
from tacita.disk import write_whole
from tacita.encoding import marked_numbers
from tacita.problem.model.layers import Layers, Perceptron
from tacita.problem.model.linear import Absolute, Huber, Linear, Logistic, Softmax
from tacita.trained.card import ModelCard
from tacita.trained.model import TrainedModel, labels

#: Of the operators that are used; old enough for any runtime of the last years.
_OPERATORS = 17


class _Graph:
    """A chain of operators under way: every one has a name and is added once."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, kind: Any = None) -> str:
        """A constant; its name."""
        array = np.asarray(value, kind)
        name = f"c{len(self.constants)}"
        words = array.dtype.kind in "UO"
        array = array.astype(object) if words else np.ascontiguousarray(array)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(
        self, operator: str, *inputs: str, called: str | None = None, **told: Any
    ) -> str:
        """An operator; the name of its output."""
        name = called or f"v{len(self.nodes)}"
        node = self.onnx.helper.make_node(operator, [*inputs], [name], **told)
        self.nodes.append(node)
        return name


def to_onnx(model: TrainedModel, path: Path) -> Path:
    """Write one model, of all or of one node, as ONNX."""
    try:
        import onnx
        from onnx import numpy_helper  # noqa: F401 - loads what `onnx` leaves out
    except ImportError:
        refuse("writing ONNX needs the package onnx; install the extra tacita[onnx]")
    _refuse_others(model)
    graph = _Graph(onnx)
    scores = _scores(graph, model, _features(graph, model))
    outputs = _answers(graph, model, scores)
    kinds = onnx.TensorProto
    columns = len(model.columns) if model.columns else model.card.row[0]
    rows = onnx.helper.make_tensor_value_info("rows", kinds.DOUBLE, [None, columns])
    made = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "tacita", [rows], outputs, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", _OPERATORS)],
        producer_name="tacita",
        producer_version=version("tacita"),
        ir_version=8,
    )
    onnx.helper.set_model_props(made, _properties(model))
    onnx.checker.check_model(made, full_check=True)
    write_whole(path, lambda file: file.write_bytes(made.SerializeToString()))
    return path


def _refuse_others(model: TrainedModel) -> None:
    known = Linear | Huber | Absolute | Logistic | Softmax | Perceptron
    if not isinstance(model.card.model, known):
        name = getattr(model.card.model, "name", type(model.card.model).__name__)
        refuse(
            f"ONNX is written of linear models and perceptrons, not of {name}; use "
            "save(folder) and tacita.load_model"
        )
    if len(model.card.row) != 1:
        refuse(f"ONNX is written of flat rows, got rows of shape {model.card.row}")
    encoding = model.card.encoding
    for column in encoding.columns if encoding is not None else ():
        if column.levels is not None:
            refuse(
                f"ONNX is written of columns of numbers, {column.name!r} is of words; "
                "use save(folder) and tacita.load_model"
            )


def _features(graph: _Graph, model: TrainedModel) -> str:
    """Gaps filled, scaled, cut to the bound, in the type of the parameters."""
    x, encoding = "rows", model.card.encoding
    if encoding is not None:
        for mark in marked_numbers(encoding.empty_words):
            marked = graph.add("Equal", x, graph.constant([[mark]]))
            x = graph.add("Where", marked, graph.constant([[np.nan]]), x)
        filled = [column.filled for column in encoding.columns]
        if any(value is not None for value in filled):
            # What may not be empty stays NaN, and so does its prediction.
            values = [np.nan if value is None else float(value) for value in filled]
            x = graph.add("Where", graph.add("IsNaN", x), graph.constant([values]), x)
        if encoding.centre is not None:
            x = graph.add("Sub", x, graph.constant([encoding.centre], float))
        if encoding.spread is not None:
            x = graph.add("Div", x, graph.constant([encoding.spread], float))
        x = _unit_rows(graph, x) if encoding.unit_rows else x
    if model.card.intercept:
        ends, one = graph.constant([0, 0, 0, 1], np.int64), graph.constant(1.0)
        x = graph.add("Pad", x, ends, one)
    if model.card.bound is not None:
        x = _clipped(graph, x, model.card)
    if model.card.dtype == "float32":
        x = graph.add("Cast", x, to=graph.onnx.TensorProto.FLOAT)
    return x


def _unit_rows(graph: _Graph, x: str) -> str:
    square = graph.add("Mul", x, x)
    total = graph.add("ReduceSum", square, graph.constant([1], np.int64), keepdims=1)
    return graph.add("Div", x, _or_one(graph, graph.add("Sqrt", total)))


def _clipped(graph: _Graph, x: str, card: ModelCard) -> str:
    """As `problem.features.clipped`: in units of the largest entry of every row."""
    assert card.bound is not None
    largest = graph.add("ReduceMax", graph.add("Abs", x), axes=[1], keepdims=1)
    units = graph.add("Div", x, _or_one(graph, largest))
    square = graph.add("Mul", units, units)
    total = graph.add("ReduceSum", square, graph.constant([1], np.int64), keepdims=1)
    length = graph.add("Sqrt", total)
    most = card.bound * (1 - 8 * float(np.finfo(card.dtype).eps))
    bound = graph.constant([[most]])
    long = graph.add("Greater", graph.add("Mul", length, largest), bound)
    whole = graph.add("Div", units, _or_one(graph, length))
    return graph.add("Where", long, graph.add("Mul", whole, bound), x)


def _or_one(graph: _Graph, values: str) -> str:
    """What to divide by: 1 in place of 0."""
    some = graph.add("Greater", values, graph.constant([[0.0]]))
    return graph.add("Where", some, values, graph.constant([[1.0]]))


def _scores(graph: _Graph, model: TrainedModel, x: str) -> str:
    for k, (matrix, bias) in enumerate(_layers(model)):
        x = graph.add("Relu", x) if k else x
        product = graph.add("MatMul", x, graph.constant(matrix))
        x = graph.add("Add", product, graph.constant(bias[None]))
    return x


def _layers(model: TrainedModel) -> list[tuple[np.ndarray, np.ndarray]]:
    """Matrix and bias of every layer."""
    what, w = model.card.model, model.params
    if isinstance(what, Perceptron):
        parts: Any = Layers(what.shapes).unpack(w)  # pyright: ignore
        return list(zip(parts[::2], parts[1::2], strict=True))
    rows = what.n_classes if isinstance(what, Softmax) else 1
    return [(w.reshape(rows, -1).T, np.zeros(rows, w.dtype))]


def _answers(graph: _Graph, model: TrainedModel, scores: str) -> list[Any]:
    """The outputs: values, or labels and probabilities."""
    kinds, helper = graph.onnx.TensorProto, graph.onnx.helper
    kind = kinds.FLOAT if model.card.dtype == "float32" else kinds.DOUBLE
    if model.classes is None:
        graph.add("Squeeze", scores, graph.constant([1], np.int64), called="prediction")
        return [helper.make_tensor_value_info("prediction", kind, [None])]
    if isinstance(model.card.model, Logistic):
        # The second class has the score, the first none: softmax is then the sigmoid.
        width = graph.constant([[0.0, 1.0]], model.card.dtype)
        scores = graph.add("Mul", scores, width)
    graph.add("Softmax", scores, axis=1, called="probabilities")
    best = graph.add("ArgMax", scores, axis=1, keepdims=0)
    known = labels(model.classes)
    graph.add("Gather", graph.constant(known), best, called="prediction")
    words = known.dtype.kind in "UO"
    label = kinds.STRING if words else helper.np_dtype_to_tensor_dtype(known.dtype)
    tell = helper.make_tensor_value_info
    return [
        tell("prediction", label, [None]),
        tell("probabilities", kind, [None, len(known)]),
    ]


def _properties(model: TrainedModel) -> dict[str, str]:
    """What travels in the file beside the numbers: columns, target, privacy."""
    told = {
        "columns": model.columns,
        "target": model.card.target,
        "privacy": model.privacy,
        "not_covered": model.not_covered,
    }
    return {name: json.dumps(value, allow_nan=False) for name, value in told.items()}

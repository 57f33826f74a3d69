"""Labels: the names of the classes, and the codes that a model is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacita import check
from tacita.problem.model.differentiable import Custom
from tacita.problem.model.linear import Model, Signed

#: How labels of a logistic model are called if nobody names them: whole numbers.
SIGNS = ("-1", "+1")


def read(model: Any, y: Any, argument: str) -> np.ndarray:
    """The labels as they were given, one per row, none missing."""
    if isinstance(model, Custom):
        return np.asarray(y)  # what a bare loss makes of its labels is its own affair
    labels = check.column(**{argument: y})
    if labels.dtype.kind == "S":
        check.refuse(f"{argument} holds bytes; make words of them: y.astype(str)")
    if labels.dtype.kind == "c":
        check.refuse(f"expected {argument} real, got dtype {labels.dtype}")
    return labels


def named(classes: Sequence[Any], expected: int | None = None) -> tuple[str, ...]:
    """The names of given classes, each once; refused if there are not as many.

    >>> named([1, 2.0, "three"])
    ('1', '2', 'three')
    """
    if isinstance(classes, str) or not np.iterable(classes):
        check.refuse(f"expected classes a list of labels, got classes={classes!r}")
    given = np.asarray(classes, dtype=object).tolist()
    names = tuple(_text(c) for c in given)
    for i, name in enumerate(names):
        if isinstance(given[i], float | np.floating) and not np.isfinite(given[i]):
            check.refuse(f"classes has {name}, which is no label; leave it out")
        if name in names[:i]:
            check.refuse(f"classes has {name!r} twice; name every class once")
    if expected is not None and len(names) != expected:
        remedy = "; use model='softmax' for more" if expected == 2 else ""
        check.refuse(
            f"the model has {expected} classes, got classes={list(names)[:10]}{remedy}"
        )
    return names


def encode(
    model: Model,
    y: np.ndarray,
    names: tuple[str, ...] | None,
    argument: str,
    coded: bool = False,
) -> np.ndarray:
    """Class codes, signs for a logistic model, or the numbers of a regression.

    Labels that are codes already are only checked.
    """
    if coded and names is not None:
        y = np.asarray(y, np.int32)
        _refuse_outside((y >= 0) & (y < len(names)), y, names, argument)
        return 2.0 * y - 1 if isinstance(model, Signed) else y
    if isinstance(model, Custom):
        return y
    if model.classes is None:
        return np.asarray(check.finite(**{argument: y}))
    if isinstance(model, Signed) and names in (None, SIGNS):
        return _signs(y, argument)
    assert names is not None
    if isinstance(model, Signed):
        return 2.0 * _codes(y, names, argument) - 1
    if names == tuple(str(c) for c in range(model.classes)) and y.dtype.kind in "biuf":
        inside = (y >= 0) & (y < model.classes) & (y == np.floor(y.astype(float)))
        _refuse_outside(inside, y, names, argument)
        return y.astype(np.int32)
    return _codes(y, names, argument)


def _text(label: Any) -> str:
    """A label as text; 1 and 1.0 are the same label."""
    number = isinstance(label, float | np.floating) and np.isfinite(label)
    return str(int(label)) if number and label == int(label) else str(label)


def _codes(y: np.ndarray, names: tuple[str, ...], argument: str) -> np.ndarray:
    code = {name: i for i, name in enumerate(names)}
    found = [code.get(str(v), code.get(_text(v), -1)) for v in y.tolist()]
    codes = np.array(found, dtype=np.int32)
    _refuse_outside(codes >= 0, y, names, argument)
    return codes


def _refuse_outside(
    inside: np.ndarray, y: np.ndarray, names: tuple[str, ...], argument: str
) -> None:
    if not np.all(inside):
        row = int(np.argmin(inside))
        check.refuse(
            f"label {argument}[{row}]={y[row : row + 1].tolist()[0]!r} is outside the "
            f"model's classes {list(names)[:10]}; fix the label or pass classes="
        )


def _signs(y: np.ndarray, argument: str) -> np.ndarray:
    """Labels -1/+1 from -1/+1, 0/1 or booleans."""
    try:
        numbers = y.astype(float)
    except (TypeError, ValueError):
        check.refuse(
            f"logistic takes labels -1/+1 or 0/1, got {argument} of dtype {y.dtype}; "
            "pass classes=(negative, positive)"
        )
    seen = set(np.unique(numbers).tolist())
    if seen <= {-1.0, 1.0}:
        return numbers
    if seen <= {0.0, 1.0}:
        return 2 * numbers - 1
    odd = sorted(seen - {-1.0, 0.0, 1.0}) or [-1.0, 0.0]
    refuse_real(numbers, argument)
    check.refuse(
        f"label {odd[0]:g} in {argument} is outside the model's set; logistic takes "
        "labels -1/+1 or 0/1, softmax takes any"
    )


def refuse_real(y: np.ndarray, argument: str) -> None:
    """Refuse labels that no class is called by: infinite, or with a fraction."""
    if y.dtype.kind != "f":
        return
    fraction = ~np.isfinite(y) | (y != np.floor(y))
    if fraction.any():
        check.refuse(
            f"{argument} has {y[fraction][0]:g}, a number and no class; predict it "
            "with model='linear', or name all labels in classes="
        )

"""From a table of columns to a `Dataset`: one-hot columns, scales, test rows, agents.

Scales and imputed values come from the pooled training rows. In a deployment those
few numbers (a range, a mean) have to be public, or be released with privacy of their
own: the notes of a data set say when they were used.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tacita.check import one_of, refuse
from tacita.data.catalog import DataFile, Task
from tacita.data.dataset import Dataset
from tacita.data.sources import read
from tacita.encoding import Column, Encoding, LabelKind, level_names, word

# pandas ships no types of its own, and what is inferred from its code (a column may
# be a number, an array, another table) helps nobody.
Frame = Any

#: How features can be scaled by rows, and what is then said of it.
SCALES = {
    "minmax": "features scaled to [0, 1] by the range of the training rows",
    "standard": "features scaled to mean 0 and deviation 1 over the training rows",
    "unit": (
        "features scaled to [0, 1] by the range of the training rows, then every row "
        "to Euclidean norm 1"
    ),
}
#: What else of an encoding is computed from rows.
_LEVELS = "the values that a category may have are those of the rows"
_FILLED = "empty cells are filled with numbers, or values, of the training rows"


def read_csv(file: DataFile, **options: Any) -> Frame:
    """The table in a file of the catalogue; options as pandas takes them."""
    return pd.read_csv(io.BytesIO(read(file)), **options)


def text_levels(frame: Frame) -> dict[str, list[Any]]:
    """The levels of every column that is not of numbers, in their order."""
    return {
        name: sorted(column.unique())
        for name, column in frame.items()
        if not pd.api.types.is_numeric_dtype(column)
    }


def one_hot(
    frame: Frame,
    levels: Mapping[str, Sequence[Any]],
    *,
    drop_first: bool = False,
    unseen: str = "refused",
) -> Frame:
    """Replace categorical columns by one 0/1 column per level, in place.

    Args:
        frame: Any columns.
        levels: The levels of each categorical column.
        drop_first: Leave out the first level, which the zeros then stand for.
        unseen: What becomes of a value that is none of them, as in `Encoding`.

    Returns:
        All columns as float64, called "column=level" where they were categorical.

    >>> frame = pd.DataFrame({"age": [3, 4], "pet": ["cat", "dog"]})
    >>> one_hot(frame, {"pet": ["cat", "dog"]}).columns.tolist()
    ['age', 'pet=cat', 'pet=dog']
    """
    columns = {}
    for name in frame.columns:
        values = frame[name].to_numpy()
        made = [name]
        if name in levels:
            made = level_names(name, levels[name], drop_first)
        for feature in made:
            if feature in columns:
                refuse(
                    f"two features would be called {feature!r}; rename the column "
                    f"{name!r} or a value"
                )
        if name not in levels:
            columns[name] = values.astype(float)
            continue
        if unseen == "refused" and not frame[name].isin(levels[name]).all():
            strange = frame[name][~frame[name].isin(levels[name])].iloc[0]
            refuse(f"column {name!r} holds {strange!r}, which is none of its levels")
        kept = list(levels[name])[1 if drop_first else 0 :]
        for feature, level in zip(made, kept, strict=True):
            columns[feature] = (values == level).astype(float)
    return pd.DataFrame(columns, index=frame.index)


def scale_of(train: np.ndarray, scale: str | None) -> dict[str, Any]:
    """The scales of features, as fields of an `Encoding`; a constant one becomes 0.

    Args:
        train: The rows that set the scale.
        scale: "minmax", "standard", "unit" (min-max, then every row to norm 1: the
            gradient of a logistic loss is then at most 1), or None.
    """
    if scale is None:
        return {}
    one_of(SCALES, scale=scale)
    width = np.ptp(train, axis=0)
    if scale == "standard":
        # Rounding leaves a constant column a deviation of about 1e-17, not 0.
        centre, spread = train.mean(axis=0), train.std(axis=0)
    else:
        centre, spread = train.min(axis=0), width
    return {
        "centre": tuple(centre.tolist()),
        "spread": tuple(np.where(width > 0, spread, np.inf).tolist()),
        "unit_rows": scale == "unit",
    }


def assemble(
    *,
    name: str,
    features: Frame,
    y: Any,
    task: Task,
    test: np.ndarray,
    scale: str | None,
    target_name: str,
    levels: Mapping[str, Sequence[Any]] | None = None,
    drop_first: bool = False,
    filled: Mapping[str, Any] | None = None,
    empty_words: Sequence[str] = (),
    unseen: str = "refused",
    classes: Sequence[str] = (),
    label_kind: LabelKind = "words",
    classes_seen: bool = False,
    agent: Any = None,
    positions: Mapping[str, tuple[float, float]] | None = None,
    parties: Mapping[str, Sequence[str]] | None = None,
    notes: Sequence[str] = (),
) -> Dataset:
    """A `Dataset` from columns without gaps and a mask of test rows.

    Args:
        name: Of the data set.
        features: Columns of numbers, and categories.
        y: Target of each row; class numbers for a classification.
        task: The kind of target.
        test: True for test rows; none at all means there is no test set.
        scale: See `scale_of`.
        target_name: What `y` is.
        levels: Of every category, see `one_hot`.
        drop_first: See `one_hot`.
        filled: What gaps in a column were filled with.
        empty_words: What meant a gap.
        unseen: What becomes of levels that are not named, as in `Encoding`.
        classes: Names of the classes.
        label_kind: What the target's values are that these names stand for.
        classes_seen: Whether they are those of the rows.
        agent: Label of the agent of each row, or None.
        positions: Latitude and longitude by the agent's name.
        parties: The original columns of each party, by name ("job" covers "job=...").
        notes: What was done so far.
    """
    levels, filled = levels or {}, filled or {}
    how = {"drop_first": drop_first, "unseen": unseen}
    values = one_hot(features, levels, **how).to_numpy(float)
    scaled = [SCALES[scale]] if scale in SCALES else []
    encoding = Encoding(
        columns=tuple(
            Column(
                name=str(column),
                levels=tuple(map(_plain, levels[column])) if column in levels else None,
                filled=_plain(filled.get(column)),
            )
            for column in features.columns
        ),
        **how,
        empty_words=tuple(empty_words),
        learnt=(
            *([_LEVELS] if levels else []),
            *([_FILLED] if filled else []),
            *scaled,
        ),
        **scale_of(values[~test], scale),
    )
    target = np.asarray(y, dtype=np.int32 if task == "classification" else float)
    fields: dict[str, Any] = {}
    if agent is not None:
        fields = _agent_fields(np.asarray(agent), test, positions)
    if test.any():
        fields |= {"test_x": encoding.scaled(values[test]), "test_y": target[test]}
    else:
        fields["test_agent"] = None
    names = encoding.feature_names
    if parties:
        fields["parties"] = {
            party: tuple(
                i for i, n in enumerate(names) if n.split("=")[0] in set(columns)
            )
            for party, columns in parties.items()
        }
    return Dataset(
        name=name,
        x=encoding.scaled(values[~test]),
        y=target[~test],
        task=task,
        feature_names=names,
        target_name=target_name,
        classes=tuple(classes),
        label_kind=label_kind,
        classes_seen=classes_seen,
        notes=(*notes, *scaled),
        encoding=encoding,
        **fields,
    )


def _plain(value: Any) -> Any:
    """A level as JSON has it."""
    return value.item() if isinstance(value, np.generic) else value


def _agent_fields(
    agent: np.ndarray,
    test: np.ndarray,
    positions: Mapping[str, tuple[float, float]] | None,
) -> dict[str, Any]:
    """Agents are those of the training rows; others become -1 among the test rows."""
    labels, codes = np.unique(agent[~test], return_inverse=True)
    number = {label: i for i, label in enumerate(labels.tolist())}
    names = tuple(word(label) for label in labels)
    fields = {
        "agent": codes,
        "agent_names": names,
        "test_agent": np.array(
            [number.get(label, -1) for label in agent[test].tolist()], int
        ),
    }
    if positions is not None:
        fields["positions"] = np.array([positions[name] for name in names])
    return fields

"""A model on disk: `model.json` and `model.safetensors`, whole or refused.

The JSON is written last and has the checksum of the tensors and of itself: bytes that
were changed, and files that do not belong together, are noticed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as tensors

from tacita import check
from tacita.disk import write_whole
from tacita.problem.model.linear import Model
from tacita.trained.card import ModelCard
from tacita.trained.model import TrainedModel

CARD, TENSORS = "model.json", "model.safetensors"
_FORMAT = "tacita-model-2"
_PARAMS = "params"
#: Sizes are bounded before anything is read: of the card, of a header.
_MOST_CARD, _MOST_HEADER = 1 << 28, 1 << 12


def save(model: TrainedModel, folder: str | os.PathLike[str]) -> Path:
    """Write a model into a folder, which is made if it is not there."""
    path = check.folder(folder=Path(folder))
    remove(path)
    blob = tensors.save({_PARAMS: np.ascontiguousarray(model.params)})
    write_whole(path / TENSORS, lambda file: file.write_bytes(blob))
    told = {
        "format": _FORMAT,
        "made_with": {"tacita": version("tacita")},
        **model.card.as_dict(),
        "privacy": model.privacy,
        "not_covered": list(model.not_covered),
        "tensors_sha256": hashlib.sha256(blob).hexdigest(),
    }
    told["sha256"] = _checksum(told)
    words = json.dumps(told, indent=1, allow_nan=False).encode()
    write_whole(path / CARD, lambda file: file.write_bytes(words))
    return path


def remove(folder: Path) -> None:
    """Take a model away: parts of two models never pass for one."""
    (folder / CARD).unlink(missing_ok=True)
    (folder / TENSORS).unlink(missing_ok=True)


def load_model(
    folder: str | os.PathLike[str], model: Model | None = None
) -> TrainedModel:
    """Read a model from its folder, or from the folder of the run that left it.

    Args:
        folder: It holds `model.json` and `model.safetensors`.
        model: The model itself, where the run was given one as an object; Tacita's own
            are told by their file.
    """
    path = Path(folder)
    told = _told_in(path)
    card = _card_from(path, told, model)
    size = math.prod(card.shape) * np.dtype(card.dtype).itemsize
    blob = _read(path / TENSORS, size + _MOST_HEADER)
    if hashlib.sha256(blob).hexdigest() != told["tensors_sha256"]:
        _refuse(path, f"{TENSORS} is damaged, or of another model")
    try:
        params = tensors.load(blob)[_PARAMS]
        return TrainedModel(card=card, params=params, privacy=told["privacy"])
    except (SafetensorError, KeyError, check.TacitaError) as error:
        _refuse(path, str(error))


def card_in(path: Path) -> ModelCard | None:
    """The card in a folder; None if no model is there."""
    there = (path / CARD).exists()
    return _card_from(path, _told_in(path), None) if there else None


def _told_in(path: Path) -> dict[str, Any]:
    """What `model.json` says, unchanged since it was written."""
    if not (path / CARD).is_file():
        check.refuse(
            f"no model in {path}: there is no {CARD}; name the folder of a model, or "
            "of a finished run, of one seed, that did not diverge"
        )
    try:
        told = json.loads(_read(path / CARD, _MOST_CARD))
    except (ValueError, RecursionError) as error:
        _refuse(path, f"{CARD} is damaged ({error})")
    if not isinstance(told, dict) or told.get("format") != _FORMAT:
        _refuse(path, f"{CARD} is not of the format {_FORMAT}")
    if told.get("sha256") != _checksum(told):
        _refuse(path, f"{CARD} is damaged: it was changed after it was written")
    for name in ("privacy", "tensors_sha256"):
        if name not in told:
            _refuse(path, f"{CARD} lacks {name!r}")
    return told


def _card_from(path: Path, told: dict[str, Any], model: Model | None) -> ModelCard:
    """The card that `model.json` holds."""
    try:
        return ModelCard.from_dict(told, model)
    except KeyError as error:
        _refuse(path, f"{CARD} lacks {error}")
    except check.TacitaError as error:
        check.refuse(f"cannot read the model in {path}: {error}")
    except (TypeError, ValueError, AttributeError) as error:
        _refuse(path, f"{CARD} is damaged ({error})")


def _read(file: Path, most: int) -> bytes:
    try:
        size = file.stat().st_size
        if size > most:
            _refuse(file.parent, f"{file.name} has {size} bytes, expected <= {most}")
        return file.read_bytes()
    except OSError as error:
        _refuse(file.parent, f"{file.name}: {error.strerror or error}")


def _checksum(told: dict[str, Any]) -> str:
    """Of all that stands beside it."""
    rest = {name: value for name, value in told.items() if name != "sha256"}
    words = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(words.encode()).hexdigest()


def _refuse(path: Path, why: str) -> NoReturn:
    check.refuse(f"cannot read the model in {path}: {why}; save it again")

"""Pictures in the idx format: fashion-mnist and mnist."""

from __future__ import annotations

import struct

import numpy as np

from tacita.check import one_of, refuse
from tacita.data.catalog import ENTRIES
from tacita.data.dataset import Dataset
from tacita.data.sources import read
from tacita.encoding import Encoding, unit_rows


def load_fashion_mnist(*, scale: str | None = None) -> Dataset:
    """Fashion-MNIST: 60 000 training and 10 000 test pictures of 784 pixels.

    Args:
        scale: None for pixels from 0 to 1; "unit" for every picture at Euclidean norm
            1, as in the benchmark of DP-Norm.
    """
    return _pictures("fashion-mnist", "article", scale)


def load_mnist(*, scale: str | None = None) -> Dataset:
    """MNIST: 60 000 training and 10 000 test pictures of 784 pixels.

    Args:
        scale: None for pixels from 0 to 1; "unit" for every picture at norm 1.
    """
    return _pictures("mnist", "digit", scale)


def parse_idx(content: bytes) -> np.ndarray:
    r"""An array of unsigned bytes from the idx format.

    Two zero bytes, the type (8: unsigned byte), the number of dimensions, then each
    dimension as a big-endian 32-bit integer, then the values in C order.

    >>> parse_idx(b"\x00\x00\x08\x01\x00\x00\x00\x03\x05\x06\x07").tolist()
    [5, 6, 7]
    """
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        refuse("expected an idx file of unsigned bytes; its first bytes are different")
    start = 4 + 4 * content[3]
    if len(content) < start:
        refuse("the idx file ends in its header; get it again")
    size = struct.unpack(f">{content[3]}I", content[4:start])
    if len(content) - start != int(np.prod(size)):
        refuse(f"the idx file states {size} values, but its length differs")
    return np.frombuffer(content, np.uint8, offset=start).reshape(size)


def _pictures(name: str, target: str, scale: str | None) -> Dataset:
    if scale is not None:
        one_of(("unit",), scale=scale)
    x, y, test_x, test_y = (parse_idx(read(file)) for file in ENTRIES[name].files)
    rows, columns = x.shape[1:]
    notes = ["pixels divided by 255"]
    if scale == "unit":
        notes.append("every picture scaled to Euclidean norm 1")
    names = tuple(f"pixel {i},{j}" for i in range(rows) for j in range(columns))
    divided = {"spread": (255.0,) * len(names), "unit_rows": scale == "unit"}
    return Dataset(
        name=name,
        x=_pixels(x, scale),
        y=y.astype(np.int32),
        test_x=_pixels(test_x, scale),
        test_y=test_y.astype(np.int32),
        task="classification",
        feature_names=names,
        target_name=target,
        classes=ENTRIES[name].classes,
        label_kind="whole" if name == "mnist" else "words",
        notes=tuple(notes),
        encoding=Encoding.of_numbers(names, **divided),
    )


def _pixels(pictures: np.ndarray, scale: str | None) -> np.ndarray:
    flat = pictures.reshape(len(pictures), -1).astype(np.float32)
    flat /= np.float32(255)
    return unit_rows(flat).astype(np.float32, copy=False) if scale == "unit" else flat

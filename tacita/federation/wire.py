"""The bytes of a letter: a head that names it, then raw little-endian arrays.

    magic, format version, kind, phase, round, federation, run, sender, receiver,
    number of arrays, (dtype, shape) of each, length of the text, the text, the arrays

Only float32, float64 and int64 travel. Every length is checked against what the head
declares before anything is read, and nothing may follow the last byte; there is no
pickle, and no byte of a letter is ever executed or named as a type.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita.check import TacitaError

MAGIC = b"TACITLTR"
VERSION = 1
#: What a letter may be. Numbers on the wire are places in this list: only append.
KINDS = (
    "offer",  # the signed run description
    "accept",
    "refuse",
    "question",  # what the coordinator tells an agent
    "answer",  # what an agent answers, or tells its neighbour
    "pass",  # the agent drew that it stays silent in this round
    "ask",  # I wait for that letter: is it written?
    "end",  # the run is over; carries the last broadcast
    "done",  # the end was received
    "state",  # never sent: a party's checkpoint
    "withdraw",  # the run that was offered does not take place
    "consents",  # everybody's signatures under the run
    "ready",  # that letter is written, and may be on its way
    "fetch",  # that letter is not here: send it whole
    "roster",  # who belongs to the federation, as its owner signed it
    "secure",  # of the protocol of secure sums; its phase says which
)
DTYPES = tuple(np.dtype(k) for k in ("<f4", "<f8", "<i8", "<u1", "<u4", "<u8"))
MOST_DIMENSIONS = 8
MOST_ARRAYS = 4096
#: Bytes of a letter's text: a run may have 100,000 columns, a remark is a line.
MOST_TEXT = {
    "offer": 16 << 20,
    "consents": 16 << 20,
    "state": 16 << 20,
    "roster": 4 << 20,
}
_MOST_WORDS = 1 << 12
#: Bytes of a whole letter, at most: what one envelope can hold.
MOST_BYTES = (1 << 31) - (1 << 16)
#: Entries beyond this are refused: a run with such letters has diverged.
LARGEST = 2.0**50

_HEAD = struct.Struct("<8sBBHQ")
_COUNTS = struct.Struct("<HI")


class LetterRefused(TacitaError):
    """Bytes that are no letter, or a letter that this party does not accept."""


class Repeated(LetterRefused):
    """A letter that comes twice, or too late: no harm, and no news."""


@dataclass(frozen=True)
class Identity:
    """Which letter it is. Two letters of the same identity are the same letter."""

    federation: str
    run: str
    kind: str
    round: int
    phase: int
    sender: str
    receiver: str


@dataclass(frozen=True, eq=False)
class Letter:
    """An identity, arrays, and a short text for what is not a number."""

    identity: Identity
    arrays: tuple[np.ndarray, ...] = ()
    text: str = ""


def note(kind: str, federation: str, sender: str, to: str, text: str = "") -> Letter:
    """A letter outside of any run."""
    return Letter(Identity(federation, "", kind, 0, 0, sender, to), (), text)


def encode(letter: Letter) -> bytes:
    """The bytes of a letter.

    >>> name = Identity("clinics", "r1", "answer", 3, 0, "oslo", "hub")
    >>> content = encode(Letter(name, (np.arange(3.0),)))
    >>> decode(content).identity == name, decode(content).arrays[0].tolist()
    (True, [0.0, 1.0, 2.0])
    """
    one = letter.identity
    if one.kind not in KINDS:
        raise LetterRefused(f"unknown kind of letter {one.kind!r}")
    parts = [
        _HEAD.pack(MAGIC, VERSION, KINDS.index(one.kind), one.phase, one.round),
        *(word_bytes(w) for w in (one.federation, one.run, one.sender, one.receiver)),
    ]
    text = letter.text.encode()
    if len(text) > most_text(one.kind) or len(letter.arrays) > MOST_ARRAYS:
        raise LetterRefused(f"too much for one letter: {len(text)} bytes of text")
    parts.append(_COUNTS.pack(len(letter.arrays), len(text)))
    raw = []
    for array in letter.arrays:
        head, body = _array(array)
        parts.append(head)
        raw.append(body)
    return b"".join([*parts, text, *raw])


def most_text(kind: str) -> int:
    """How many bytes of text a letter of this kind may have."""
    return MOST_TEXT.get(kind, _MOST_WORDS)


def word_bytes(word: str) -> bytes:
    """A short word, its length in front."""
    content = word.encode()
    if len(content) > 255:
        raise LetterRefused(f"names have at most 255 bytes, got {len(content)}")
    return bytes([len(content)]) + content


def _array(array: Any) -> tuple[bytes, Any]:
    value = np.asarray(array)
    kind = value.dtype.newbyteorder("<")
    if kind not in DTYPES:
        raise LetterRefused(f"letters carry float32, float64 or int64, got {kind}")
    if value.ndim > MOST_DIMENSIONS:
        raise LetterRefused(f"arrays have at most {MOST_DIMENSIONS} dimensions")
    flat = np.ascontiguousarray(value, kind)
    head = struct.pack(
        f"<BB{value.ndim}Q", DTYPES.index(kind), value.ndim, *value.shape
    )
    return head, flat.reshape(-1).view(np.uint8).data


class Reader:
    """Reads forward, and never past the end."""

    def __init__(self, content: bytes | memoryview, what: str = "letter") -> None:
        self.content, self.at, self._what = memoryview(content), 0, what

    def take(self, count: int) -> memoryview:
        """The next so many bytes."""
        if count > len(self.content) - self.at:
            raise LetterRefused(f"the {self._what} is truncated")
        self.at += count
        return self.content[self.at - count : self.at]

    def unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        """Numbers of this form."""
        return form.unpack(self.take(form.size))

    def word(self) -> str:
        """A short word, its length in front."""
        return _text(self.take(self.take(1)[0]))


def _text(content: memoryview) -> str:
    try:
        return bytes(content).decode()
    except UnicodeDecodeError:
        raise LetterRefused("the letter holds text that is not UTF-8") from None


def decode(content: bytes | memoryview, most_bytes: int = MOST_BYTES) -> Letter:
    """Read a letter; whatever is not exactly one is refused with `LetterRefused`."""
    if len(content) > most_bytes:
        raise LetterRefused(f"{len(content)} bytes, at most {most_bytes} are accepted")
    reader = Reader(content)
    magic, version, kind, phase, round_number = reader.unpack(_HEAD)
    if magic != MAGIC:
        raise LetterRefused("not a letter: it begins with other bytes")
    if version != VERSION:
        raise LetterRefused(
            f"format {version} of letters, this program reads {VERSION}"
        )
    if kind >= len(KINDS):
        raise LetterRefused(f"unknown kind of letter {kind}")
    federation, run, sender, receiver = (reader.word() for _ in range(4))
    count, text_length = reader.unpack(_COUNTS)
    if count > MOST_ARRAYS or text_length > most_text(KINDS[kind]):
        raise LetterRefused("the letter declares more than a letter may hold")
    forms = [_form(reader, len(content)) for _ in range(count)]
    text = _text(reader.take(text_length))
    arrays = tuple(
        np.frombuffer(reader.take(math.prod(shape) * kind.itemsize), kind).reshape(
            shape
        )
        for kind, shape in forms
    )
    if reader.at != len(reader.content):
        raise LetterRefused("bytes follow the end of the letter")
    identity = Identity(
        federation, run, KINDS[kind], round_number, phase, sender, receiver
    )
    return Letter(identity, arrays, text)


def _form(reader: Reader, whole: int) -> tuple[np.dtype, tuple[int, ...]]:
    code, dimensions = reader.take(2)
    if code >= len(DTYPES) or dimensions > MOST_DIMENSIONS:
        raise LetterRefused("the letter declares an array of an unknown type")
    shape = struct.unpack(f"<{dimensions}Q", reader.take(8 * dimensions))
    # A dimension of 0 must not hide a huge one.
    if max((math.prod(shape) * DTYPES[code].itemsize, *shape)) > whole:
        raise LetterRefused("the letter declares larger arrays than it holds")
    return DTYPES[code], shape


def require_bounded(
    arrays: Sequence[np.ndarray],
    most_norm: float | None = None,
    largest: float | None = None,
) -> None:
    """Refuse NaN, entries beyond `largest`, and a norm beyond the one agreed on.

    Entries are bounded by `LARGEST` in any case.
    """
    largest = LARGEST if largest is None else largest
    for array in arrays:
        # Written so that NaN is refused; numbers up to this do not overflow below.
        if array.dtype.kind == "f" and array.size:
            if not (array.max() < largest and array.min() > -largest):
                beyond = f"2^{math.log2(largest):.3g}"
                raise LetterRefused(f"the letter holds NaN or entries beyond {beyond}")
    if most_norm is not None and not norm_of(arrays) <= most_norm:
        raise LetterRefused(f"a letter with a norm beyond {most_norm:g}")


def norm_of(arrays: Sequence[np.ndarray]) -> float:
    """The Euclidean norm over all entries."""
    return math.sqrt(sum(float(np.vdot(a, a)) for a in arrays))

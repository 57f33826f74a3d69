"""From what a web site publishes to the bytes of the file itself.

Every step is a function `(payload, limit) -> bytes` that refuses to produce more than
`limit` bytes: a published file is read before it is known to be the right one, so a
small download must not be able to fill the memory.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from functools import partial

Step = Callable[[bytes, int], bytes]


class UnpackError(ValueError):
    """The payload is not what the step expects; the message says what is wrong."""


def gunzip(payload: bytes, limit: int) -> bytes:
    """Decompress a gzip file of at most `limit` bytes.

    >>> import gzip
    >>> gunzip(gzip.compress(b"tacita"), 6)
    b'tacita'
    """
    # 16 + MAX_WBITS tells zlib to expect a gzip header.
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        content = stream.decompress(payload, limit + 1)
    except zlib.error as error:
        raise UnpackError(f"not a gzip file ({error})") from error
    if len(content) > limit:
        raise UnpackError(f"it unpacks to more than the expected {limit} bytes")
    if not stream.eof:
        raise UnpackError("the gzip file ends too early")
    return content


def _zip_member(payload: bytes, limit: int, name: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            if name not in archive.namelist():
                raise UnpackError(f"the zip archive has no member {name!r}")
            with archive.open(name) as member:
                content = member.read(limit + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise UnpackError(f"not a readable zip archive ({error})") from error
    if len(content) > limit:
        raise UnpackError(f"its member {name!r} has more than {limit} bytes")
    return content


def zip_member(name: str) -> Step:
    """A step that takes one member out of a zip archive.

    >>> memory = io.BytesIO()
    >>> with zipfile.ZipFile(memory, "w") as archive:
    ...     archive.writestr("a.txt", "tacita")
    >>> zip_member("a.txt")(memory.getvalue(), 6)
    b'tacita'
    """
    return partial(_zip_member, name=name)


def line_feeds(payload: bytes, limit: int) -> bytes:
    r"""Turn every line end into one line feed, the last line's included.

    >>> line_feeds(b"a,b\r1,2", 8)
    b'a,b\n1,2\n'
    """
    content = payload.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not content.endswith(b"\n"):
        content += b"\n"
    if len(content) > limit:
        raise UnpackError(f"it has more than the expected {limit} bytes")
    return content


def step_of(words: str) -> Step:
    """The step that the catalogue names: "gunzip", "zip_member a.txt"."""
    name, _, argument = words.partition(" ")
    if name == "zip_member":
        return zip_member(argument)
    return {"gunzip": gunzip, "line_feeds": line_feeds}[name]

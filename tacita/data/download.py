"""Getting one file from where it is published, whole and checked, or not at all.

A payload is held in memory until its content has the pinned checksum; only then is it
written, under a temporary name in the same folder, flushed to the disk and renamed.
Whatever goes wrong, the name of a data file never stands for half of one.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tacita.check import refuse
from tacita.data.catalog import DataFile, Source
from tacita.data.unpack import UnpackError, gunzip

MIRROR_VARIABLE = "TACITA_MIRROR"
_CHUNK = 1 << 16
# No published file is larger; what sends more is not what was asked for.
_LARGEST_PAYLOAD = 64 << 20
_WORTH_A_BAR = 1 << 20


class DownloadError(Exception):
    """Why one source did not deliver; the message goes into the final refusal."""


def download(
    file: DataFile,
    folder: Path,
    *,
    timeout: float = 30.0,
    deadline: float = 900.0,
) -> Path:
    """Download `file` to `folder / file.path` and return that path.

    Args:
        file: What to get, with its sources and its pinned checksum.
        folder: The data folder; it is made if it is not there.
        timeout: Seconds a connection may stay silent.
        deadline: Seconds the whole transfer from one source may take.

    Returns:
        The path of the complete, verified file.
    """
    target = folder / file.path
    failures = []
    for source in sources_of(file):
        try:
            payload = _get(source.url, timeout, deadline)
            content = _unpacked(payload, source, file)
        except (DownloadError, UnpackError) as error:
            failures.append(f"{source.url}: {error}")
            continue
        _write(target, _kept_form(payload, content, source, file))
        return target
    refuse(
        f"could not download {file.path} ({'; '.join(failures)}); put the file into a "
        f"folder and name that folder in TACITA_DATA, or name a mirror in "
        f"{MIRROR_VARIABLE}"
    )


def sources_of(file: DataFile) -> tuple[Source, ...]:
    """The sources to try: the mirror of `TACITA_MIRROR` alone if that is set.

    A mirror serves a data folder as it is, so that a site without access to the
    outside can keep one copy for everybody.
    """
    mirror = os.environ.get(MIRROR_VARIABLE, "").strip().rstrip("/")
    if not mirror:
        return file.sources
    unpack = (gunzip,) if file.compressed else ()
    return (Source(url=f"{mirror}/{file.path}", unpack=unpack),)


def _get(url: str, timeout: float, deadline: float) -> bytes:
    """The whole body at `url`, or DownloadError."""
    if not url.startswith(("http://", "https://")):
        raise DownloadError("expected an address that starts with http:// or https://")
    end = time.monotonic() + deadline
    request = urllib.request.Request(url, headers={"User-Agent": "tacita"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return _body(response, url, end)
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(f"HTTP {error.code} {error.reason}") from error
    except TimeoutError as error:
        raise DownloadError(f"no answer within {timeout:g} s") from error
    except urllib.error.URLError as error:
        reason = error.reason
        if isinstance(reason, TimeoutError):
            reason = f"no answer within {timeout:g} s"
        raise DownloadError(str(reason)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DownloadError(f"{type(error).__name__} {error}".strip()) from error


def _body(response: Any, url: str, end: float) -> bytes:
    stated = response.headers.get("Content-Length", "")
    expected = int(stated) if stated.isdecimal() else None
    parts, got = [], 0
    with _progress(url, expected) as advance:
        while chunk := response.read1(_CHUNK):
            parts.append(chunk)
            got += len(chunk)
            advance(len(chunk))
            if got > _LARGEST_PAYLOAD:
                raise DownloadError(f"it sends more than {_LARGEST_PAYLOAD} bytes")
            if time.monotonic() > end:
                raise DownloadError(f"too slow: {got} bytes when the time was up")
    if expected is not None and got < expected:
        raise DownloadError(f"cut off after {got} of {expected} bytes")
    return b"".join(parts)


@contextmanager
def _progress(url: str, size: int | None):
    """A bar on a terminal for what takes a while; nothing anywhere else."""
    if not sys.stderr.isatty() or (size is not None and size < _WORTH_A_BAR):
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(url.rsplit("/", 1)[-1], total=size)
        step: Callable[[int], None] = lambda n: bar.advance(task, n)  # noqa: E731
        yield step


def _unpacked(payload: bytes, source: Source, file: DataFile) -> bytes:
    content = payload
    for left, step in enumerate(source.unpack, start=1 - len(source.unpack)):
        content = step(content, _LARGEST_PAYLOAD if left else file.size)
    wrong = mismatch(content, file)
    if wrong:
        raise DownloadError(wrong)
    return content


def mismatch(content: bytes, file: DataFile) -> str | None:
    """What is wrong with `content` if it is not that of `file`, else None."""
    found = hashlib.sha256(content).hexdigest()
    if found == file.sha256:
        return None
    return (
        f"wrong checksum: {len(content)} bytes with sha256 {found[:12]}..., expected "
        f"{file.size} bytes with {file.sha256[:12]}..."
    )


def _kept_form(payload: bytes, content: bytes, source: Source, file: DataFile) -> bytes:
    if not file.compressed:
        return content
    if source.unpack == (gunzip,):
        return payload
    return gzip.compress(content, mtime=0)  # mtime=0: the same bytes every time


def _write(target: Path, payload: bytes) -> None:
    """Write all of `payload` to `target` or leave no trace of having tried."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".part"
        )
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(payload)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)
    except OSError as error:
        refuse(
            f"cannot write {target}: {error.strerror or error}; make room or name a "
            f"writable cache folder in XDG_CACHE_HOME"
        )


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; some systems cannot open a folder, so be it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

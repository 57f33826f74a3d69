"""Where a data file comes from: the folder in TACITA_DATA, the cache, the web.

Files are read whole and checked on every read (the largest takes less than a second),
so what a loader parses is exactly what was checked.
"""

from __future__ import annotations

import os
from pathlib import Path

from tacita.check import refuse
from tacita.data.catalog import DataFile
from tacita.data.download import download, mismatch
from tacita.data.unpack import UnpackError, gunzip

FOLDER_VARIABLE = "TACITA_DATA"


def data_folder() -> Path | None:
    """The folder named by `TACITA_DATA`, or None if the variable is not set."""
    named = os.environ.get(FOLDER_VARIABLE, "").strip()
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        refuse(
            f"{FOLDER_VARIABLE}={named!r} is not a folder; name an existing one, or "
            f"unset it to use the cache"
        )
    return folder


def cache_folder() -> Path:
    """The per-user cache: `$XDG_CACHE_HOME/tacita`, else `~/.cache/tacita`."""
    named = os.environ.get("XDG_CACHE_HOME", "").strip()
    # The XDG base directory specification: a relative path is invalid, ignore it.
    if named and Path(named).is_absolute():
        return Path(named) / "tacita"
    try:
        return Path.home() / ".cache" / "tacita"
    except RuntimeError:
        refuse(
            f"no home folder for the cache; name a data folder in {FOLDER_VARIABLE} "
            f"or a cache folder in XDG_CACHE_HOME"
        )


def locate(file: DataFile) -> Path | None:
    """The first of data folder and cache that holds `file`, or None."""
    folders = [folder for folder in (data_folder(), cache_folder()) if folder]
    for folder in folders:
        if (folder / file.path).exists():
            return folder / file.path
    return None


def path_of(file: DataFile) -> Path:
    """The path of `file`, downloaded into the cache if it is nowhere else."""
    return locate(file) or download(file, cache_folder())


def read(file: DataFile) -> bytes:
    """The verified content of `file` (decompressed if it is kept compressed)."""
    path = path_of(file)
    remedy = "delete it to download it again, or put the right file in its place"
    try:
        content = path.read_bytes()
        if file.compressed:
            content = gunzip(content, file.size)
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror or error}; {remedy}")
    except UnpackError as error:
        refuse(f"cannot read {path}: {error}; {remedy}")
    wrong = mismatch(content, file)
    if wrong:
        refuse(f"{path} has the {wrong}; {remedy}")
    return content

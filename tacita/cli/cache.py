"""Keep compiled programs between runs: a second run of the same shapes starts faster.

This is for the command line only, whose process is ours: a library must leave such
settings of JAX to its user.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: JAX's own names, as environment variables; what the user has set stays.
_SETTINGS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": 0.1,
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": -1,
}
_FOLDER = "JAX_COMPILATION_CACHE_DIR"
#: Files kept; the ones used longest ago are removed.
_MOST_FILES = 400


def switch_on() -> None:
    """Tell JAX where to keep compiled programs, unless the user has told it."""
    if os.environ.get(_FOLDER) is not None:
        return
    folder = _folder()
    if folder is None or not _is_ours(folder):
        return
    _prune(folder)
    settings = {_FOLDER: str(folder), **_SETTINGS}
    for name, value in settings.items():
        os.environ.setdefault(name, str(value))
    if "jax" in sys.modules:  # it has read its variables already
        config = sys.modules["jax"].config
        for name, value in settings.items():
            config.update(name.lower(), value)


def _folder() -> Path | None:
    named = os.environ.get("XDG_CACHE_HOME", "")
    if named and Path(named).is_absolute():
        return Path(named) / "tacita" / "compiled"
    try:
        return Path.home() / ".cache" / "tacita" / "compiled"
    except RuntimeError:
        return None


def _is_ours(folder: Path) -> bool:
    """Make the folder; compiled programs of others must not be run as ours."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        told = folder.stat()
    except OSError:
        return False
    mine = not hasattr(os, "getuid") or told.st_uid == os.getuid()
    return mine and not told.st_mode & 0o022 and os.access(folder, os.W_OK)


def _prune(folder: Path) -> None:
    try:
        files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
        for file in files[:-_MOST_FILES]:
            file.unlink()
    except OSError:
        return  # another process prunes too, or the disk is odd: it is only a cache

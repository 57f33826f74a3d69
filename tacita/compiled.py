"""Compiled programs, kept for the next process: what was compiled once starts quickly.

JAX keeps them, in a folder per user, below $XDG_CACHE_HOME or ~/.cache; `TACITA_CACHE`
names another one, or is "off". They are machine code that is run, so the folder must be
nobody else's (mode 0700). Whoever has told JAX where to keep programs is left alone,
and programs that are not the package's own are never kept: what a user's function
closes over, such as rows, is part of its program. Of the package's own programs rows
are arguments (tests/test_compiled.py).

JAX writes a program in place, where another process may read half of it. So every
process has a folder of its own, filled with links, and hands on whole files only.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import hashlib
import os
import platform
import shutil
import threading
import time
import types
from collections.abc import Iterator
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.experimental.compilation_cache import compilation_cache

from tacita.processor import abilities, threads_here

VARIABLE = "TACITA_CACHE"
#: Programs kept; the oldest are removed.
MOST_FILES = 400
#: Seconds after which a folder that nobody used is removed: of a process that was
#: killed, or of another version.
_DAY, _MONTH = 86400.0, 30 * 86400.0
#: JAX's own names. Programs that are quickly made are not worth a file.
_SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.05,
    "jax_persistent_cache_min_entry_size_bytes": -1,
    "jax_persistent_cache_enable_xla_caches": "none",
}
_FOLDER = "jax_compilation_cache_dir"
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, Enum)


class _Before(NamedTuple):
    """What is put back, and handed on, when the last one leaves."""

    settings: dict[str, Any]  # JAX's
    folder: Path  # of this process
    shared: Path
    changed: int  # when the folder was, before


_lock = threading.Lock()
_inside: list[_Before] = []  # what was before, once for everybody inside
_own_folders: dict[tuple[int, Path], Path] = {}  # by process, which may be forked


@contextlib.contextmanager
def kept(static: Any = None, *trees: Any) -> Iterator[None]:
    """Keep the programs that are compiled inside, if they are the package's own.

    Args:
        static: What the program is specialised for.
        trees: Its arguments: only their leaves are no part of it.
    """
    shared = _shared_folder() if is_own(static, *trees) else None
    if shared is None or not _enter(shared):
        yield
        return
    try:
        yield
    finally:
        _leave()


def is_own(static: Any, *trees: Any) -> bool:
    """Whether nothing but the package's own code makes a program; see `kept`."""
    return _is_own(static) and all(_is_own_tree(jax.tree.structure(t)) for t in trees)


def _is_own_tree(structure: Any) -> bool:
    node = structure.node_data()
    if node is None:
        return True
    return all(map(_is_own, node)) and all(map(_is_own_tree, structure.children()))


def _is_own(value: Any) -> bool:
    if isinstance(value, _PLAIN):
        return True
    if isinstance(value, tuple | list | set | frozenset):
        return all(map(_is_own, value))
    if isinstance(value, dict):
        return all(map(_is_own, (*value, *value.values())))
    if isinstance(value, type):
        return (value.__module__ or "").partition(".")[0] in ("tacita", "builtins")
    if isinstance(value, types.FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        ours = (value.__module__ or "").startswith("tacita.")  # code that was typed in
        return ours and all(map(_is_own, held))
    if isinstance(value, functools.partial):
        return all(map(_is_own, (value.func, value.args, value.keywords)))
    if dataclasses.is_dataclass(value):
        fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
        return _is_own(type(value)) and all(map(_is_own, fields))
    return False


def _enter(shared: Path) -> bool:
    """Turn the cache on; False where the user has one, or there cannot be one."""
    with _lock:
        if not _inside:
            if getattr(jax.config, _FOLDER) is not None:
                return False
            try:
                folder = _folder_of_process(shared)
            except OSError:
                return False
            settings = {_FOLDER: str(folder), **_SETTINGS}
            old = {name: getattr(jax.config, name) for name in settings}
            before = _Before(old, folder, shared, folder.stat().st_mtime_ns)
            _set(settings)
            compilation_cache.reset_cache()
        else:
            before = _inside[0]
        _inside.append(before)
        return True


def _leave() -> None:
    with _lock:
        before = _inside.pop()
        if _inside:
            return
        _set(before.settings)
        # Else JAX would go on with this folder whatever its user says later.
        compilation_cache.reset_cache()
        with contextlib.suppress(OSError):
            if before.folder.stat().st_mtime_ns != before.changed:
                _hand_on(before.folder, before.shared)


def _set(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)


@functools.cache
def _versions() -> str:
    """What decides whether machine code fits: versions, and what the processor can.

    How many threads there are is part of it: XLA cuts large operations for them when
    it compiles, and a program that was made for one would leave the others idle.
    """
    told = f"{platform.machine()} {abilities()} {threads_here()}"
    processor = hashlib.sha256(told.encode()).hexdigest()[:12]
    return "-".join((*map(version, ("tacita", "jax", "jaxlib")), processor))


def _shared_folder() -> Path | None:
    """Where programs of these versions are kept; None where there is no place."""
    named = os.environ.get(VARIABLE, "").strip()
    if named.lower() == "off":
        return None
    if named:
        return Path(named).expanduser() / _versions()
    home = os.environ.get("XDG_CACHE_HOME", "").strip()
    try:
        # The XDG specification: a relative path is invalid, ignore it.
        absolute = home and Path(home).is_absolute()
        base = Path(home) if absolute else Path.home() / ".cache"
    except RuntimeError:
        return None
    return base / "tacita" / "compiled" / _versions()


def _folder_of_process(shared: Path) -> Path:
    """This process's own folder, with links to all programs there are."""
    place = os.getpid(), shared
    found = _own_folders.get(place)
    if found is not None and found.is_dir():
        os.utime(found)  # somebody is here
        return found
    shared.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _require_ours(shared.parent, 0o022)
    shared.mkdir(exist_ok=True, mode=0o700)
    _require_ours(shared, 0o077)
    _tidy(shared)
    own = shared / f"process-{platform.node()}-{os.getpid()}"
    shutil.rmtree(own, ignore_errors=True)  # of an earlier process of that number
    own.mkdir(mode=0o700)
    _hand_on(shared, own)
    _own_folders[place] = own
    atexit.register(_remove, os.getpid(), own)
    return own


def _require_ours(folder: Path, others: int) -> None:
    """Programs of others must not be run as ours; `others` must not be allowed."""
    told = folder.stat()
    mine = not hasattr(os, "getuid") or told.st_uid == os.getuid()
    if not mine or told.st_mode & others:
        raise PermissionError(f"{folder} is open to others")


def _hand_on(source: Path, target: Path) -> None:
    """Give another folder the programs that it lacks: whole files, by their links."""
    there = {entry.name for entry in os.scandir(target)}
    for entry in os.scandir(source):
        if entry.is_file() and entry.name not in there:
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                os.link(entry.path, target / entry.name)


def _tidy(shared: Path) -> None:
    """Remove the oldest programs, what killed processes left, and other versions."""
    now = time.time()
    with contextlib.suppress(OSError):  # another process tidies up too
        entries = sorted(os.scandir(shared), key=lambda e: e.stat().st_mtime)
        files = [entry for entry in entries if entry.is_file()]
        for entry in files[:-MOST_FILES]:
            os.unlink(entry.path)
        left = [e for e in entries if e.is_dir() and now - e.stat().st_mtime > _DAY]
        others = [e for e in os.scandir(shared.parent) if _is_stale(e, now)]
        for entry in (*left, *others):
            shutil.rmtree(entry.path, ignore_errors=True)


def _is_stale(entry: os.DirEntry[str], now: float) -> bool:
    same = entry.name == _versions() or not entry.is_dir()
    return not same and now - entry.stat().st_mtime > _MONTH


def remove_own_folders() -> None:
    """What happens at the end of a process, for one that leaves by `os._exit`."""
    for (process, _), folder in _own_folders.items():
        _remove(process, folder)


def _remove(process: int, folder: Path) -> None:
    if process == os.getpid():  # and not a fork of it
        shutil.rmtree(folder, ignore_errors=True)

"""A digest of all that decides a run's numbers, the same in every process.

Arrays are told by their bytes. Functions are told by their name, their code and what
they hold of the place they were made in, never by their address: the same model built
again, in another process, is the same model.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import types
from typing import Any

import jax
import numpy as np

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def fingerprint(*parts: Any) -> str:
    """The digest of pytrees: their arrays, their structure, their static fields."""
    digest = hashlib.sha256()
    for part in parts:
        leaves, treedef = jax.tree.flatten(part)
        digest.update(_structure(treedef).encode())
        for leaf in leaves:
            digest.update(_array(np.asarray(leaf)).encode())
    return digest.hexdigest()


def _structure(treedef: Any) -> str:
    node = treedef.node_data()
    if node is None:
        return "*"
    inner = ",".join(_structure(child) for child in treedef.children())
    return f"{words_of(node[0])}[{words_of(node[1])}]({inner})"


def words_of(value: Any, above: tuple[int, ...] = ()) -> str:
    """A static value in words that are the same in every process.

    >>> words_of((3, "full", Exception))
    "tuple(3,'full',builtins.Exception)"
    """
    if id(value) in above:  # a function that calls itself
        return "above"
    above = (*above, id(value))
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, np.ndarray | jax.Array):
        return _array(np.asarray(value))
    if isinstance(value, dict):
        return _listed("dict", sorted(value.items(), key=repr), above)
    if isinstance(value, set | frozenset):
        return _listed("set", sorted(value, key=repr), above)
    if isinstance(value, tuple | list):
        return _listed(type(value).__name__, value, above)
    if isinstance(value, types.CodeType):
        code = hashlib.sha256(value.co_code).hexdigest()
        return _listed("code", (code, value.co_names, value.co_consts), above)
    if callable(value) or dataclasses.is_dataclass(value):
        return _listed(type(value).__qualname__, _contents(value), above)
    return _ADDRESS.sub("", repr(value))


def _contents(value: Any) -> list[Any]:
    """What makes a function, or an object of a user's class, do what it does."""
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        name = f"{value.__module__}.{value.__qualname__}"
        return [name, value.__code__, value.__defaults__, value.__kwdefaults__, cells]
    if hasattr(value, "__wrapped__"):  # compiled, cached or decorated
        return [value.__wrapped__]
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return [name, getattr(value, "__dict__", {})]


def _listed(kind: str, items: Any, above: tuple[int, ...]) -> str:
    return f"{kind}({','.join(words_of(item, above) for item in items)})"


def _array(array: np.ndarray) -> str:
    content = np.ascontiguousarray(array).tobytes()
    return f"{array.dtype}{array.shape}{hashlib.sha256(content).hexdigest()}"

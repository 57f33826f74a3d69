"""Data sets by name: what there is, where it comes from, how to load it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tacita.check import nearest, one_of, refuse
from tacita.data import sources
from tacita.data.adult import load_adult
from tacita.data.bundled import load_bundled
from tacita.data.catalog import ENTRIES, Entry
from tacita.data.dataset import Dataset
from tacita.data.finance import load_bank_marketing, load_credit_default
from tacita.data.fmi import load_fmi
from tacita.data.health import load_heart_disease, load_parkinsons
from tacita.data.images import load_fashion_mnist, load_mnist
from tacita.data.text import load_shakespeare

_LOADERS: dict[str, Callable[..., Dataset]] = {
    "fashion-mnist": load_fashion_mnist,
    "mnist": load_mnist,
    "adult": load_adult,
    "fmi": load_fmi,
    "heart-disease": load_heart_disease,
    "parkinsons": load_parkinsons,
    "bank-marketing": load_bank_marketing,
    "credit-default": load_credit_default,
    "shakespeare": load_shakespeare,
}


def names() -> tuple[str, ...]:
    """The data sets that `load` knows.

    >>> "iris" in names()
    True
    """
    return tuple(ENTRIES)


def describe(name: str) -> Entry:
    """What is known about a data set without reading it; print it.

    >>> print(describe("iris").summary)
    150 flowers, 4 measures; predict one of 3 species
    """
    return ENTRIES[one_of(ENTRIES, data_set=name)]


def options(name: str) -> dict[str, Any]:
    """The options of `load` for a data set, with their defaults.

    >>> options("iris")
    {'scale': None, 'test_share': 0.0, 'seed': 0}
    """
    parameters = inspect.signature(_loader(name)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def load(name: str, **chosen: Any) -> Dataset:
    """Load a data set by name.

    Args:
        name: One of `names()`.
        **chosen: The options of that data set, see `options(name)` and the reference.

    Returns:
        The data set; its files come from the folder in `TACITA_DATA`, else from the
        per-user cache, else from where they are published.

    >>> load("iris", test_share=0.2)
    Dataset iris: 120 rows x 4 features, classification (3 classes), 30 test rows
    """
    loader = _loader(name)
    for option in chosen:
        if option not in options(name):
            refuse(
                f"unknown option {option!r} of {name}; {nearest(option, options(name))}"
            )
    return loader(**chosen)


def fetch(name: str) -> list[Path]:
    """Make sure that the files of a data set are at hand and intact.

    Returns:
        Their paths; none for the sets that scikit-learn brings.
    """
    files = describe(name).files
    for file in files:
        sources.read(file)
    return [sources.path_of(file) for file in files]


def _loader(name: str) -> Callable[..., Dataset]:
    bundled = partial(load_bundled, name)
    return _LOADERS.get(describe(name).name, bundled)

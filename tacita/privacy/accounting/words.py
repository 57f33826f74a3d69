"""Curves in words: plain data that a ledger keeps, and the same curve again.

What is kept are the numbers that describe each release (`releases`), not what was
computed from them: a later accountant may do the sums better.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from tacita import check
from tacita.privacy.accounting.curve import Curve, LossCurve, TookPart
from tacita.privacy.accounting.pure_releases import Laplace, RandomisedResponse
from tacita.privacy.accounting.releases import SampledGaussian
from tacita.privacy.accounting.renyi import RenyiCurve
from tacita.privacy.accounting.subsampling import (
    Poisson,
    PoissonReplaced,
    WithoutReplacement,
    WithReplacement,
)

_KINDS = {
    kind.__name__: kind
    for kind in (
        *(LossCurve, RenyiCurve),
        *(SampledGaussian, Laplace, RandomisedResponse, TookPart),
        *(Poisson, PoissonReplaced, WithoutReplacement, WithReplacement),
    )
}


def words_of(curve: LossCurve | RenyiCurve) -> str:
    """A curve as JSON; of equal curves the same text.

    >>> words_of(LossCurve(((Laplace(0.5), 3),)))[:64]
    '{"kind": "LossCurve", "mu": 0.0, "releases": [[{"epsilon": 0.5, '
    """
    return json.dumps(_plain(curve), sort_keys=True)


@lru_cache(maxsize=256)
def curve_of(words: str) -> Curve:
    """The curve that these words describe."""
    return _built(json.loads(words))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        told = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"kind": type(value).__name__} | {k: _plain(v) for k, v in told.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _built(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_built(one) for one in value)
    if not isinstance(value, dict):
        return value
    told = {name: _built(one) for name, one in value.items()}
    kind = told.pop("kind", None)
    if kind not in _KINDS:
        check.refuse(f"no release of kind {kind!r} is known to this version of Tacita")
    return _KINDS[kind](**told)

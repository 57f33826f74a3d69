"""Algorithms as tables of a run file, and back: a class by its name, its fields."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Mapping
from typing import Any

from tacita import problem
from tacita.aggregation import RULES, Aggregation, SecureSum
from tacita.algorithm import ALGORITHMS, solvers
from tacita.algorithm.base import Algorithm
from tacita.check import refuse
from tacita.job.calls import call, check_keys, look_up, plain_name, take_kind
from tacita.job.run_file import AlgorithmTable
from tacita.robust import ATTACKS, Attack
from tacita.runtime.finish import describe
from tacita.schedule import SCHEDULES
from tacita.trace import plain_values
from tacita.trees import rules

#: Short for oracles: batch and sampling for a `Minibatch`, norm for `Clipped` around
#: it, noise_std for `Noisy` around all.
_SHORT = ("batch", "sampling", "norm", "noise_std")


def known() -> dict[str, type[Algorithm]]:
    """All algorithms by name."""
    return {algorithm.__name__: algorithm for algorithm in ALGORITHMS}


def table_of(algorithm: Algorithm) -> dict[str, Any]:
    """The table [algorithm] from which a run file makes an equal algorithm.

    What `tacita.private` promised has a table of its own, see `table_of_budget`.

    >>> from tacita.algorithm import FedAvg
    >>> table_of(FedAvg(step_size=0.5, local_steps=2))["local_steps"]
    2
    """
    if type(algorithm) not in ALGORITHMS:
        refuse(
            f"a run file cannot carry {type(algorithm).__name__}, which holds code or "
            f"another algorithm; use one of {', '.join(known())}"
        )
    table = _plain(algorithm)
    if _plain(build(table)) != table:
        refuse(f"a run file cannot hold {algorithm!r}; it has numbers and names only")
    return table


def _plain(algorithm: Algorithm) -> dict[str, Any]:
    return _without_promise(plain_values(describe(algorithm)))


def _without_promise(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_promise(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {k: _without_promise(v) for k, v in value.items() if k != "promise"}


def table_of_budget(algorithm: Algorithm) -> dict[str, Any] | None:
    """The table [privacy] of an algorithm whose noise was set for a budget."""
    told = _promise_in(plain_values(describe(algorithm)))
    if told is None:
        return None
    who = {key: str(told["scope"][key]) for key in ("observer", "unit")}
    return {key: float(told[key]) for key in ("epsilon", "delta")} | who


def _promise_in(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    inner = (_promise_in(entry) for entry in value.values())
    return value.get("promise") or next(filter(None, inner), None)


def build(given: AlgorithmTable | Mapping[str, Any]) -> Algorithm:
    """Make the algorithm that a run file describes."""
    table = AlgorithmTable.model_validate(given)
    chosen: Any = look_up("algorithm.name", table.name, known())
    fields = {field.name for field in dataclasses.fields(chosen)}
    given = dict(table.options)
    short = [key for key in _SHORT if key not in fields and "oracle" in fields]
    check_keys("algorithm", chosen, given, also=short)
    given = _with_oracle(given, short)
    return _make("algorithm", chosen, given, chosen)


def table_of_sum(rule: SecureSum) -> dict[str, Any]:
    """The table [secure] from which a run file makes an equal secure sum."""
    table = plain_values(describe(rule)) | {"multiples": list(rule.each)}
    del table["name"]
    return table


def build_rule(table: Any) -> Aggregation:
    """Make the rule that joins letters, as a run file or a description names it."""
    return _rule("run.aggregation", table)


def _rule(where: str, table: Any) -> Aggregation:
    """A rule; one that asks another rule has a table of that in its own."""
    by_name = {rule.__name__: rule for rule in RULES}
    cls, rest = take_kind(where, table, by_name, "name")
    if "rule" in rest:
        rest = {**rest, "rule": _rule(f"{where}.rule", rest["rule"])}
    return call(where, cls, rest)


def build_attack(table: Any) -> Attack:
    """Make the attack that a run file names."""
    by_name = {attack.__name__: attack for attack in ATTACKS}
    cls, rest = take_kind("run.attack", table, by_name, "name")
    return call("run.attack", cls, rest)


def _make(where: str, cls: Any, given: dict[str, Any], algorithm: type) -> Any:
    """Make a record from a table; its fields refuse what is against their rules."""
    made = {}
    for field in dataclasses.fields(cls):
        if field.name in given:
            inside, value = f"{where}.{field.name}", given[field.name]
            rule = rules(cls).get(field.name)
            if rule is not None and rule.scheduled and isinstance(value, dict):
                made[field.name] = _schedule(inside, value)
                continue
            ruled = rule is not None
            made[field.name] = _value(inside, field, value, ruled, algorithm)
    return call(where, cls, made)


def _schedule(where: str, table: dict[str, Any]) -> Any:
    """A step size by round: `{ start = 0.1, power = 0.5 }`, or another one by name."""
    by_name = {cls.__name__: cls for cls in SCHEDULES}
    first = {"name": SCHEDULES[0].__name__}
    cls, rest = take_kind(where, first | table, by_name, "name")
    return call(where, cls, rest)


def _with_oracle(given: dict[str, Any], short: list[str]) -> dict[str, Any]:
    """The oracle that short keys stand for, from the inside out."""
    used = {key: given.pop(key) for key in short if key in given}
    if not used:
        return given
    oracle = given.get("oracle")
    if oracle is not None and not {"batch", "sampling"}.isdisjoint(used):
        refuse(
            f"algorithm.{next(iter(used))} and algorithm.oracle say the same thing; "
            "keep one of them"
        )
    if "sampling" in used and "batch" not in used:
        refuse("algorithm.sampling goes with a batch; add for example batch = 16")
    if "batch" in used:
        oracle = {"name": "Minibatch", "size": used["batch"]}
        oracle |= {key: used[key] for key in ("sampling",) if key in used}
    for key, name, field in (
        ("norm", "Clipped", "norm"),
        ("noise_std", "Noisy", "std"),
    ):
        if key in used:
            inner = {} if oracle is None else {"oracle": oracle}
            oracle = {"name": name, field: used[key], **inner}
    return {**given, "oracle": oracle}


def _value(where: str, field: Any, value: Any, ruled: bool, algorithm: type) -> Any:
    """Turn tables into records, and lists into what the field's kind asks for."""
    # A word where neither a rule nor a plain type asks for one names a record.
    plain = ruled or str(field.type) in ("str", "int", "float")
    if isinstance(value, dict) or (isinstance(value, str) and not plain):
        return _record(where, field.name, value, algorithm)
    if field.name in _DOES and not plain and not isinstance(value, list):
        return _record(where, field.name, value, algorithm)  # refused, as no table
    if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        return tuple(
            _record(f"{where}[{i}]", field.name, entry, algorithm)
            for i, entry in enumerate(value)
        )
    if isinstance(value, list) and field.metadata.get("static"):
        return tuple(value)  # part of a compiled program, so it must be hashable
    return value


def _record(where: str, field: str, table: Any, algorithm: type) -> Any:
    word = table.get("name") if isinstance(table, dict) else table
    cls, rest = take_kind(where, table, _records(algorithm, field, word), "name")
    check_keys(where, cls, rest)
    return _make(where, cls, rest, algorithm)


def _records(algorithm: type, field: str, word: Any = None) -> dict[str, type]:
    """Records that a field may hold: public ones, and those its own file knows.

    The privacy room loads slowly, so it is asked only for a word nobody else knows.
    """
    own = vars(sys.modules[algorithm.__module__])
    found: dict[str, type] = {}
    for names in (vars(problem), vars(problem.prox), vars(solvers), own):
        found |= _usable(names, field)
    if isinstance(word, str) and plain_name(word) not in map(plain_name, found):
        found |= _usable(vars(importlib.import_module("tacita.privacy")), field)
    return found


#: What a record in a field of that name must be able to do.
_DOES = {
    "oracle": "draws",
    "solver": "solve",
    "solvers": "solve",
    "penalty": "mask",
    "h": "prox",
    "parts": "prox",
    "schedule": "multiples",
}


def _usable(names: Mapping[str, Any], field: str) -> dict[str, type]:
    """Oracles, solvers, penalties: what answers for gradients, trains, or couples."""
    wanted = [_DOES[field]] if field in _DOES else [*_DOES.values()]
    return {
        name: value
        for name, value in names.items()
        if isinstance(value, type)
        and dataclasses.is_dataclass(value)
        and any(hasattr(value, name) for name in wanted)
    }

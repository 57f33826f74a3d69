"""What an epsilon is about: who looks, what is protected, how neighbours differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from tacita import check


class Observer(StrEnum):
    """Who looks."""

    FINAL_MODEL = "final_model"
    COORDINATOR = "coordinator"
    NEIGHBOUR = "neighbour"
    EAVESDROPPER = "eavesdropper"


class Unit(StrEnum):
    """What is protected: one row, or all rows of an agent at once."""

    RECORD = "record"
    CLIENT = "client"


class Relation(StrEnum):
    """How neighbouring data differ: a unit becomes another one, or an empty one."""

    REPLACE_ONE = "replace_one"
    ADD_REMOVE = "add_remove"


E = TypeVar("E", bound=StrEnum)


def word(kind: type[E], value: Any) -> E:
    """The member of this name; an unknown one is refused, naming the nearest."""
    known = [member.value for member in kind]
    return kind(check.one_of(known, **{kind.__name__.lower(): value}))


@dataclass(frozen=True, init=False)
class Scope:
    """The three words without which an epsilon says nothing.

    Words are checked, and may be given as strings:

    >>> Scope("coordinator").words
    {'observer': 'coordinator', 'unit': 'record', 'relation': 'replace_one'}
    """

    observer: Observer
    unit: Unit
    relation: Relation

    def __init__(
        self,
        observer: str,
        unit: str = Unit.RECORD,
        relation: str = Relation.REPLACE_ONE,
    ) -> None:
        object.__setattr__(self, "observer", word(Observer, observer))
        object.__setattr__(self, "unit", word(Unit, unit))
        object.__setattr__(self, "relation", word(Relation, relation))

    @property
    def words(self) -> dict[str, Any]:
        """Plain data, and the arguments of those who ask for each word."""
        return {name: word.value for name, word in vars(self).items()}

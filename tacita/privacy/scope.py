"""What an epsilon is about: who looks, what is protected, how neighbours differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from tacita import check


class Observer(StrEnum):
    """Who looks; `colluders` are the coordinator and agents of a secure sum."""

    FINAL_MODEL = "final_model"
    COORDINATOR = "coordinator"
    COLLUDERS = "colluders"
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


@dataclass(frozen=True)
class Person:
    """Observers who may be one and the same, or compare notes.

    What they learn adds up, over all runs of an agent.
    """

    observers: frozenset[Observer]

    def __str__(self) -> str:
        everybody = len(self.observers) == len(Observer)
        # Where the coordinator is, those who collude with it go without saying.
        shown = self.observers
        if Observer.COORDINATOR in shown:
            shown = shown - {Observer.COLLUDERS}
        mine = (who.value for who in Observer if who in shown)
        return "everybody" if everybody else " and ".join(mine)


def people(separate: Sequence[Sequence[str]] | None = None) -> tuple[Person, ...]:
    """Who counts as one person: everybody, unless groups are known to be separate.

    Args:
        separate: Groups of observers who never compare notes with those of another
            group. Who is in none of them may be in league with any.

    >>> [str(person) for person in people()]
    ['everybody']
    >>> apart = people([["coordinator", "eavesdropper"], ["neighbour"]])
    >>> [str(person) for person in apart]
    ['final_model and coordinator and eavesdropper', 'final_model and neighbour']
    """
    if separate is None:
        return (Person(frozenset(Observer)),)
    lists = isinstance(separate, list | tuple) and all(
        isinstance(group, list | tuple) and group for group in separate
    )
    if not lists or not separate:
        check.refuse(
            "expected separate a list of groups of observers, such as "
            f"[['coordinator'], ['neighbour']], got separate={separate!r}"
        )
    groups = [[word(Observer, name) for name in group] for group in separate]
    for group in groups:
        if Observer.COORDINATOR in group and Observer.COLLUDERS not in group:
            group.append(Observer.COLLUDERS)
    named = [observer for group in groups for observer in group]
    for observer in named:
        if named.count(observer) > 1:
            check.refuse(
                f"{observer.value!r} stands twice in separate; whoever is with several "
                "groups is in none of them"
            )
    others = frozenset(Observer) - frozenset(named)
    return tuple(Person(others.union(group)) for group in groups)

"""What the owner of an agent allows: a run beyond it is refused, in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from tacita import check
from tacita.check import refuse
from tacita.federation.description import Description
from tacita.job.run_file import read_toml
from tacita.privacy.scope import people
from tacita.trees import checked, count, flag, number, ruled, rules


def _words(**named: Any) -> Sequence[str] | None:
    """Refuse what is not a list of words; a single string would match its parts."""
    ((name, value),) = named.items()
    words = isinstance(value, list | tuple) and all(isinstance(w, str) for w in value)
    if value is not None and not words:
        refuse(f"expected {name} a list of words, got {name}={value!r}")
    return value


def _groups(**named: Any) -> Sequence[Sequence[str]] | None:
    """Refuse what is not a list of groups of observers."""
    ((_, value),) = named.items()
    people(value)
    return value


def _list() -> Any:
    return ruled(None, _words, words="a list of words")


@checked
class Policy:
    """What the owner of an agent allows. None allows anything.

    Attributes:
        max_epsilon: Largest epsilon that a run may promise, and that all runs together
            may spend; a run without a budget is refused too, for its letters would not
            be protected at all.
        max_delta: Largest delta.
        separate: Groups of observers who never compare notes, such as
            `[["coordinator"], ["neighbour"]]`: `max_epsilon` holds against each group
            on its own. Who is in no group counts with each; by default all observers
            of all runs may be one person.
        observers: Against whom a run's budget may be stated.
        algorithms: Names that are allowed.
        models: Names that are allowed.
        min_participants: Fewest agents of a run: those it may begin with, and those
            whose letters may end a round at its deadline.
        columns: Columns that may be used, the target included.
        max_rounds: Most rounds of a run.
        allow_shared_seed: Accept a run whose randomness everybody can compute: only
            for tests, it makes all noise worthless.
    """

    max_epsilon: float | None = number(check.positive)
    max_delta: float | None = number(check.inside_unit)
    separate: Sequence[Sequence[str]] | None = ruled(
        None, _groups, words="groups of observers"
    )
    observers: Sequence[str] | None = _list()
    algorithms: Sequence[str] | None = _list()
    models: Sequence[str] | None = _list()
    min_participants: int = count(1)
    columns: Sequence[str] | None = _list()
    max_rounds: int | None = count(None)
    allow_shared_seed: bool = flag(False)

    @classmethod
    def read(cls, policy: Policy | Mapping[str, Any] | str | Path | None) -> Policy:
        """From a policy file, from its table, or None for one that allows anything."""
        if isinstance(policy, Policy):
            return policy
        if policy is None or isinstance(policy, Mapping):
            return cls.of_words(policy or {})
        return cls.of_words(read_toml(Path(policy)))

    @classmethod
    def of_words(cls, words: Mapping[str, Any]) -> Policy:
        """From the table of a policy file."""
        for key in words:
            if key not in rules(cls):
                hint = check.nearest(key, rules(cls))
                refuse(f"unknown key {key} in the policy; {hint}")
        return cls(**words)

    def objection(self, run: Description) -> str | None:
        """Why this run is refused, in one line; None if it is not."""
        return next(chain(self._budget(run), self._names(run), self._limits(run)), None)

    def _budget(self, run: Description) -> Iterator[str]:
        told = run.privacy or {}
        for limit_of, key in (("max_epsilon", "epsilon"), ("max_delta", "delta")):
            limit = getattr(self, limit_of)
            if limit is None:
                continue
            if run.privacy is None:
                yield f"the run states no {key}, this agent allows {key} <= {limit:g}"
            # Written so that what is no number, or missing, is refused.
            if not float(told.get(key, float("nan"))) <= limit:
                yield f"{key}={told.get(key)} is above the {limit:g} allowed here"
        observer = told.get("observer")
        if self.observers is not None and observer not in self.observers:
            allowed = ", ".join(self.observers)
            yield f"the budget is against {observer}, this agent asks for {allowed}"

    def _names(self, run: Description) -> Iterator[str]:
        for kind, value in (
            ("algorithms", run.tables["algorithm"].get("name")),
            ("models", run.problem.get("model")),
        ):
            allowed = getattr(self, kind)
            if allowed is not None and value not in allowed:
                yield f"{value} is not one of the {kind} allowed here"
        for column in (*run.problem.get("columns", ()), run.problem.get("target")):
            if self.columns is not None and column not in self.columns:
                yield f"column {column!r} may not be used here"

    def _limits(self, run: Description) -> Iterator[str]:
        if run.fewest < self.min_participants:
            yield (
                f"the run may go on with {run.fewest} of its {len(run.agents)} agents, "
                f"this one asks for {self.min_participants} at least"
            )
        if self.max_rounds is not None and run.rounds > self.max_rounds:
            yield f"{run.rounds} rounds are more than the {self.max_rounds} allowed"
        if "shared_seed" in run.run and not self.allow_shared_seed:
            yield "the run's randomness is known to everybody, which spoils all noise"

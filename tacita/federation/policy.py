"""What the owner of an agent allows: a run beyond it is refused, in one line.

A policy looks at the description of a run, never at rows: whether a run is refused
tells nothing about them. It is closed: what it does not allow is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from tacita import check
from tacita.check import refuse
from tacita.federation.description import Description
from tacita.federation.own_rows import numbers_of
from tacita.job.run_file import read_toml
from tacita.trees import checked, count, flag, number, one_of, ruled, rules


def _words(**named: Any) -> Sequence[str] | None:
    """Refuse what is not a list of words; a single string would match its parts."""
    ((name, value),) = named.items()
    words = isinstance(value, list | tuple) and all(isinstance(w, str) for w in value)
    if value is not None and not words:
        refuse(f"expected {name} a list of words, got {name}={value!r}")
    return value


def _word(**named: Any) -> str | None:
    ((name, value),) = named.items()
    if value is not None and not (isinstance(value, str) and value.strip()):
        refuse(f"expected {name} a word, got {name}={value!r}")
    return value


def _list() -> Any:
    return ruled(None, _words, words="a list of words")


@checked
class Policy:
    """What the owner of an agent allows.

    It needs `max_epsilon`, or the word that letters may leave unprotected. A list that
    is None allows every name, a limit that is None any number; `Policy.anything` has
    no limits.

    Attributes:
        max_epsilon: Largest epsilon that a run may promise, and that all runs together
            may spend: whoever sees anything of any run counts as one person with all
            others. A run without a budget is refused too, for its letters would not be
            protected at all.
        allow_unprotected: Accept runs that promise no privacy.
        max_delta: Largest delta: the chance, roughly, that the promise fails.
        observers: Against whom a run's budget may be stated.
        units: What a budget may protect: "record", or "client" for all rows at once.
        relations: How neighbouring data may differ: "replace_one", "add_remove".
        max_norm: Largest norm that gradients may be clipped to.
        algorithms: Names that are allowed.
        models: Names that are allowed; of networks too, such as "mlp".
        columns: Columns that may be used, the target included.
        aggregation: How letters must be joined: "secure" asks for secure sums, in
            which nobody reads a single letter.
        max_colluding: Agents that may be in league with the coordinator, which the
            secure sums of a run have to bear (`secure.colluding` at least so many).
        partners: Agents without whom no run is accepted.
        min_participants: Fewest agents of a run, all of them invited by the hub: those
            it may begin with, and those whose letters may end a round at its deadline
            or make a secure sum.
        max_agents: Most agents of a run.
        max_rounds: Most rounds of a run.
        max_local_steps: Most local steps in a round; of a number that is drawn, its
            mean. On a graph, most steps of the rule that joins letters too.
        max_columns: Most columns of a run.
        max_classes: Most classes of a run.
        max_numbers: Most numbers in one letter; memory and time grow with it.
        allow_row_counts: Tell the number of rows where a mean is weighted by it, and
            what is left of the budget, which may depend on it.
        allow_shared_seed: Accept a run whose randomness everybody can compute: only
            for tests, it makes all noise worthless.
        exact_noise: Whether noise must be exact integers, or a run is refused:
            floating-point noise can be told by its last digits.
        test_share: Share of the rows that never trains and tests what comes out, at
            this agent only; drawn once by their places in the table.
        approval: Whether a person here has to agree to every run, with `tacita accept`.
        max_offers: Most different runs that are looked at in an hour.
        data_name: What the rows are called in the ledger. Agents of several
            federations who hold the same rows share one ledger and this name, and so
            one budget; default the agent's name.
    """

    max_epsilon: float | None = number(check.positive)
    allow_unprotected: bool = flag(False)
    max_delta: float | None = number(check.inside_unit, 1e-5)
    observers: Sequence[str] | None = _list()
    units: Sequence[str] | None = _list()
    relations: Sequence[str] | None = _list()
    max_norm: float | None = number(check.positive)
    algorithms: Sequence[str] | None = _list()
    models: Sequence[str] | None = _list()
    columns: Sequence[str] | None = _list()
    aggregation: str = one_of("any", "secure")
    max_colluding: int = count(0, 0)
    partners: Sequence[str] | None = _list()
    min_participants: int = count(1)
    max_agents: int | None = count(1_000)
    max_rounds: int | None = count(10_000)
    max_local_steps: int | None = count(1_000)
    max_columns: int | None = count(2_000)
    max_classes: int | None = count(1_000)
    max_numbers: int | None = count(10_000_000)
    allow_row_counts: bool = flag(True)
    allow_shared_seed: bool = flag(False)
    exact_noise: bool = flag(False)
    test_share: float | None = number(check.inside_unit)
    approval: bool = flag(False)
    max_offers: int | None = count(20)
    data_name: str | None = ruled(None, _word, words="a word")

    def __post_init__(self) -> None:
        if self.max_epsilon is None and not self.allow_unprotected:
            refuse(
                "the policy allows nothing: set max_epsilon, or "
                "allow_unprotected = true for runs that promise no privacy"
            )

    @classmethod
    def anything(cls, **more: Any) -> Policy:
        """One that trusts whoever proposes a run, but for the keys that are given."""
        limits = {name: None for name in rules(cls) if name.startswith("max_")}
        return cls(**{**limits, "allow_unprotected": True, **more})

    @classmethod
    def read(cls, policy: Policy | Mapping[str, Any] | str | Path | None) -> Policy:
        """From a policy file, or from its table; None is refused."""
        if policy is None:
            refuse(
                "no policy, so no run is accepted; say with --policy what you agree "
                "to, or --trust-everything (in Python: policy=Policy.anything())"
            )
        if isinstance(policy, Policy):
            return policy
        if isinstance(policy, Mapping):
            return cls.of_words(policy)
        return cls.of_words(read_toml(Path(policy)))

    @classmethod
    def of_words(cls, words: Mapping[str, Any]) -> Policy:
        """From the table of a policy file."""
        if "separate" in words:
            refuse(
                "separate is no key of a policy any more: what a coordinator reads is "
                "told on in broadcasts, so all observers count as one person; leave it "
                "out"
            )
        for key in words:
            if key not in rules(cls):
                hint = check.nearest(key, rules(cls))
                refuse(f"unknown key {key} in the policy; {hint}")
        return cls(**words)

    def objection(self, run: Description) -> str | None:
        """Why this run is refused, in one line; None if it is not."""
        objections = (self._budget, self._sums, self._names, self._limits)
        return next(chain.from_iterable(one(run) for one in objections), None)

    def _budget(self, run: Description) -> Iterator[str]:
        if run.privacy is None:
            if not self.allow_unprotected:
                yield "the run states no epsilon, and letters leave protected here"
            return
        told = run.privacy
        for limit_of in ("max_epsilon", "max_delta", "max_norm"):
            limit, key = getattr(self, limit_of), limit_of.removeprefix("max_")
            value = told.get(key)
            # Written so that what is no number, or missing, is refused.
            within = isinstance(value, int | float) and value <= (limit or 0.0)
            if limit is not None and not within:
                yield f"{key}={value} is above the {limit:g} allowed here"
        observer, unit = told.get("observer"), told.get("unit", "record")
        if self.observers is not None and observer not in self.observers:
            allowed = ", ".join(self.observers)
            yield f"the budget is against {observer}, this agent asks for {allowed}"
        if self.units is not None and unit not in self.units:
            yield f"the budget protects one {unit}, which is not one of the units here"

    def _sums(self, run: Description) -> Iterator[str]:
        told = run.tables.get("secure")
        if self.aggregation == "secure" and told is None:
            yield "single letters would be read, and only secure sums are allowed here"
        if told is None:
            return
        colluding = told.get("colluding", 0)
        # Written so that what is no number is refused.
        if not (isinstance(colluding, int) and colluding >= (self.max_colluding or 0)):
            yield (
                f"the secure sum bears {colluding} colluding agents, this agent asks "
                f"for {self.max_colluding}"
            )

    def _names(self, run: Description) -> Iterator[str]:
        model = run.problem.get("model", "logistic")
        for kind, value in (
            ("algorithms", run.tables["algorithm"].get("name")),
            ("models", model.get("name") if isinstance(model, Mapping) else model),
        ):
            allowed = getattr(self, kind)
            if allowed is not None and value not in allowed:
                yield f"{value} is not one of the {kind} allowed here"
        for column in (*run.problem.get("columns", ()), run.problem.get("target")):
            if self.columns is not None and column not in self.columns:
                yield f"column {column!r} may not be used here"
        for partner in self.partners or ():
            if partner not in run.agents:
                yield f"{partner} does not take part, without whom nothing is sent here"

    def _limits(self, run: Description) -> Iterator[str]:
        if run.fewest < self.min_participants:
            yield (
                f"the run may go on with {run.fewest} of its {len(run.agents)} agents, "
                f"this one asks for {self.min_participants} at least"
            )
        for what, found in (
            ("agents", len(run.agents)),
            ("rounds", run.rounds),
            ("columns", len(run.problem.get("columns", ()))),
            ("classes", len(run.problem.get("classes") or ())),
        ):
            yield from self._too_many(what, found)
        if self.max_numbers is not None:
            # Before the model is built, which takes memory and seconds.
            yield from self._too_many("numbers", numbers_of(run))
        if "shared_seed" in run.run and not self.allow_shared_seed:
            yield "the run's randomness is known to everybody, which spoils all noise"

    def objection_to_parts(
        self,
        *,
        local_steps: float,
        numbers: int,
        weighted: bool,
        relation: str | None,
        exact: bool,
    ) -> str | None:
        """Why the run's algorithm is refused, once it was built for rows of zeros.

        Args:
            local_steps: Most local steps in a round.
            numbers: Of the largest letter that it sends.
            weighted: Whether agents tell their numbers of rows.
            relation: Of its budget; None for a run without one.
            exact: Whether the noise of its budget is exact integers.
        """
        for what, found in (("local_steps", local_steps), ("numbers", numbers)):
            for objection in self._too_many(what, found):
                return objection
        if weighted and not self.allow_row_counts:
            return "the run weighs agents by their rows, which are not counted out here"
        if None not in (relation, self.relations) and relation not in self.relations:  # pyright: ignore
            return f"the budget's relation is {relation}, which is not allowed here"
        if self.exact_noise and relation is not None and not exact:
            return "its noise is in floating point, and exact integers are asked for"
        return None

    def _too_many(self, what: str, found: float) -> Iterator[str]:
        limit = getattr(self, f"max_{what}")
        if limit is not None and not found <= limit:
            words = what.replace("_", " ")
            yield f"{found:g} {words} are more than the {limit} allowed here"


class PolicyInForce:
    """The policy as it stands now: a file that is changed binds from then on.

    Args:
        source: A file, a table, or a policy.
    """

    def __init__(self, source: Policy | Mapping[str, Any] | str | Path | None) -> None:
        self._source, self._stamp = source, self._look(source)
        self.policy = Policy.read(source)

    def changed(self) -> bool:
        """Read the file again if it was written since; whether it was.

        Rows keep their name in the ledger as long as a program runs: under another one
        what they have spent would begin at zero.
        """
        stamp = self._look(self._source)
        if stamp == self._stamp:
            return False
        policy, name = Policy.read(self._source), self.policy.data_name
        if policy.data_name != name:
            refuse(
                f"data_name of the policy was changed from {name!r} to "
                f"{policy.data_name!r}, and what the rows have spent stands under the "
                "first; put it back, or end this program and give the new name to "
                "other rows"
            )
        self._stamp, self.policy = stamp, policy
        return True

    @staticmethod
    def _look(source: Any) -> tuple[int, ...] | None:
        if not isinstance(source, str | Path):
            return None
        try:
            told = Path(source).stat()
        except OSError as error:
            refuse(f"cannot read the policy {source}: {error.strerror}; check the path")
        return told.st_mtime_ns, told.st_size, told.st_ino

"""What a run description means for one party: its problem, algorithm, keys, ledger."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np

from tacita import keys
from tacita.aggregation import Summed
from tacita.algorithm.base import GraphAlgorithm
from tacita.check import refuse
from tacita.disk import write_private
from tacita.federation import sum_setting
from tacita.federation.account import Account
from tacita.federation.agent_keys import AgentKeys, OwnKeys, SharedKeys
from tacita.federation.description import Description
from tacita.federation.desk import ChargeLetter, no_charge
from tacita.federation.draws import Draws, OwnDraws, SharedDraws, derive
from tacita.federation.own_rows import blank_problem
from tacita.federation.roles import Roles
from tacita.federation.seal import PrivateKeys, read_private
from tacita.federation.sum_setting import algorithm_of
from tacita.federation.terms import Terms
from tacita.federation.work import Outline, refuse_theory
from tacita.job import records
from tacita.job.graphs import build as build_graph
from tacita.privacy import (
    Guarantee,
    Ledger,
    Observer,
    Question,
    Scope,
    forecast,
    guarantee,
    letters_of,
    private,
)
from tacita.privacy.accounting.guarantee import violated
from tacita.privacy.blind import looks_at_rows
from tacita.privacy.clipped import schedule_of
from tacita.problem import Problem
from tacita.problem.graph import Graph
from tacita.runtime import choices
from tacita.runtime.simulate import prepare
from tacita.trace import PrivacyReport
from tacita.trees import in_double_precision, rules

#: Rounding that a sum of many releases may differ by from their product.
_ROUNDING = 1 + 1e-9
_SECRET = "secret.locked"
#: Seconds that an agent on a graph stays for neighbours that are behind.
_LINGER = 60.0


def secret_of(folder: Path, own: PrivateKeys) -> bytes:
    """The party's own secret, from the operating system; made at the first call.

    It lies in the folder locked with the party's keys, which lie elsewhere: who takes
    the folder alone cannot undo the noise.
    """
    path = folder / _SECRET
    if not path.exists():
        write_private(path, own.lock(_SECRET, os.urandom(32)))
    return own.unlock(_SECRET, read_private(path))


def graph_of(run: Description) -> Graph | None:
    """Who is joined with whom, nodes named by the agents in their order."""
    told = run.tables.get("graph")
    if told is not None and "edges" in told:
        return Graph.from_edges(run.agents, [tuple(e) for e in told["edges"]])
    return build_graph(told, run.agents, None, 0)


@dataclass(frozen=True)
class Setting:
    """A description made ready to compute with.

    Attributes:
        run: The description.
        own: The party's own rows.
        known: What its noise depends on: on a graph its place there, in a secure sum
            the other agents too.
        roles: What makes its parties.
    """

    run: Description
    own: Problem
    known: Problem
    roles: Roles

    @property
    def promise(self) -> dict[str, Any]:
        """What a budget of this run is about: delta, observer and unit."""
        told = self.run.privacy
        assert told is not None
        return {
            "delta": float(told["delta"]),
            "observer": observer_of(self.roles.algorithm),
            "unit": str(told.get("unit", "record")),
        }

    @property
    def weighted(self) -> bool:
        """Whether numbers of rows matter to the coordinator's mean."""
        return self.roles.algorithm.weights == "samples"


def blank_setting(run: Description) -> Setting:
    """A description made ready for rows of zeros: what it says by itself."""
    rows = run.tables.get("secure", {}).get("rows")
    return setting_of(run, blank_problem(run), rows)


@in_double_precision
def setting_of(run: Description, own: Problem, rows: int | None = None) -> Setting:
    """Build and check everything that the description asks for.

    Args:
        run: The description.
        own: The party's own rows, or rows of zeros.
        rows: How many to count them as; default as many as there are.
    """
    if list(run.agents) != sorted(run.agents):
        refuse("the agents of a run are named in alphabetical order")
    outline = Outline(own, len(run.agents), graph_of(run), rows)
    told = run.run
    known = cast(Problem, outline)  # no more is asked of a problem here
    asked = algorithm_of(run)
    if looks_at_rows(asked, known):
        refuse_theory()
    ready = prepare(known, asked)
    _require_observer(run, ready)
    who = choices.schedule_of(known, ready, told.get("participation", 1.0))
    terms = {key: value for key, value in told.items() if key in rules(Terms)}
    on_graph = isinstance(ready, GraphAlgorithm)
    if on_graph:
        terms.setdefault("linger", _LINGER)
    rule = records.build_rule(told["aggregation"]) if "aggregation" in told else None
    # Who is active on a graph is for everybody to know.
    seed = int(told.get("shared_seed", int(run.digest[:15], 16)))
    roles = Roles(
        algorithm=ready,
        agents=run.agents,
        coordinator=run.starter,
        start=own.start,
        base=keys.from_seed(seed),
        terms=Terms(schedule=who, **terms),
        like=outline.local(),
        graph=outline.graph,
        aggregation=choices.aggregation_of(known, ready, rule),
    )
    joint = on_graph or isinstance(ready, Summed)
    return Setting(run, own, known if joint else own, roles)


def with_observer(run: Description) -> Description:
    """The same description, which names the observer of its budget."""
    if run.privacy is None or "observer" in run.privacy:
        return run
    budget = {**run.privacy, "observer": observer_of(algorithm_of(run))}
    return replace(run, tables={**run.tables, "privacy": budget})


def observer_of(algorithm: Any) -> Observer:
    """Against whom a budget holds: whoever reads the letters."""
    if isinstance(algorithm, Summed):
        return sum_setting.observer_of(algorithm)
    alone = isinstance(algorithm, GraphAlgorithm)
    return Observer.NEIGHBOUR if alone else Observer.COORDINATOR


def _require_observer(run: Description, algorithm: Any) -> None:
    told = (run.privacy or {}).get("observer")
    reader = observer_of(algorithm)
    if told not in (None, reader):
        name = type(algorithm).__name__
        refuse(
            f"letters of {name} are read by a {reader}, and a budget against a {told} "
            f'would not cover them; set privacy.observer = "{reader}"'
        )


@in_double_precision
def keys_of(setting: Setting, name: str, secret: bytes) -> AgentKeys:
    """What an agent draws with: out of its own secret, this run, these very rows."""
    if "shared_seed" in setting.run.run:
        number = setting.run.agents.index(name)
        return SharedKeys(keys.agent_secret(setting.roles.base, number))
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(setting.own.population.rows):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return OwnKeys(derive(secret, f"noise {setting.run.digest} {digest.hexdigest()}"))


def coordinator_draws(setting: Setting, secret: bytes) -> Draws:
    """The coordinator's randomness: its own secret, and this run."""
    if "shared_seed" in setting.run.run:
        return SharedDraws(setting.roles.base)
    return OwnDraws(derive(secret, f"coordinator {setting.run.digest}"))


@dataclass(frozen=True)
class Plan:
    """What a run's budget means for one agent.

    Attributes:
        setting: The run, with the noise that the budget asks for.
        prices: What the letters of every round cost; the first round is 1.
        after: The epsilon of all runs of these rows together once this one is over.
        allowed: The epsilon that the ledger is to allow them.
    """

    setting: Setting
    prices: Mapping[int, Guarantee]
    after: float
    allowed: float

    @property
    def price(self) -> Guarantee:
        """What the first round costs."""
        return self.prices[1]


@in_double_precision
def plan_of(
    setting: Setting,
    name: str,
    ledger: Ledger,
    limit: float | None,
    separate: Sequence[Sequence[str]] | None = None,
    account: str | None = None,
) -> Plan:
    """Set the agent's noise for the run's budget; nothing is written.

    Refused where the ledger has no room for the whole run.

    Args:
        setting: A run with a budget.
        name: The agent.
        ledger: Where its letters are charged.
        limit: The epsilon that all its runs together may spend, against any person;
            None for whatever this run adds.
        separate: Observers who never compare notes, as in `Ledger.allow`.
        account: What its rows are called in the ledger; default its own name.
    """
    run, roles, told = setting.run, setting.roles, setting.run.privacy
    assert told is not None
    epsilon, promise = float(told["epsilon"]), setting.promise
    delta = promise["delta"]
    ready = private(
        setting.known,
        roles.algorithm,
        epsilon=epsilon,
        rounds=run.rounds,
        norm=told.get("norm"),
        schedule=told.get("schedule"),
        **promise,
    )
    relation = letters_of(ready).relation
    scope = Scope(promise["observer"], promise["unit"], relation)
    number = run.agents.index(name) if roles.on_graph else 0
    asked = Question(scope=scope, agent=number, rounds=1)
    prices = _prices(ready, setting.known, asked, run.rounds)
    price = prices[1]
    _refuse_violated(price)
    whole = {"agent": account or name, "run": run.digest, "delta": delta}
    after = max(
        ledger.after(seen, separate=separate, **whole)
        for seen in _seen(setting, prices)
    )
    if limit is not None and not after <= limit * _ROUNDING:
        refuse(
            f"with this run epsilon would come to {after:.4g} against the "
            f"{scope.observer} and whoever may be in league with it, for one "
            f"{scope.unit} (delta={delta:g}; {price.theorem}), and {limit:g} is "
            "allowed here for all runs together; ask for a smaller epsilon"
        )
    allowed = max(epsilon, after * _ROUNDING) if limit is None else limit
    changed = replace(setting, roles=replace(roles, algorithm=ready))
    return Plan(changed, prices, after, allowed)


def with_budget(
    setting: Setting,
    name: str,
    ledger: Ledger,
    limit: float | None,
    separate: Sequence[Sequence[str]] | None = None,
    account: str | None = None,
) -> tuple[Setting, ChargeLetter]:
    """Set the agent's noise for the run's budget, and how its letters are charged.

    As `plan_of`, whose arguments it takes; the ledger is then told what it allows.
    """
    if setting.run.privacy is None:
        return setting, no_charge
    account = account or name
    plan = plan_of(setting, name, ledger, limit, separate, account)
    scope = plan.price.scope
    budget = {
        "agent": account,
        "epsilon": plan.allowed,
        "delta": setting.promise["delta"],
        "unit": scope.unit,
        "relation": scope.relation,
        "separate": separate,
    }
    ledger.allow(**budget)
    binding = None if limit is None else budget
    seen = _seen(setting, plan.prices)
    prices = {number: [one[number] for one in seen] for number in plan.prices}
    charge = Account(ledger, account, setting.run.digest, prices, binding)
    return plan.setting, charge


def _seen(
    setting: Setting, prices: Mapping[int, Guarantee]
) -> list[Mapping[int, Guarantee]]:
    """What every round costs, against each observer who is told of its letters.

    A graph that is learnt from kept letters stands in the next run's description, and
    so in all that follows from it: nobody is apart from who read them.
    """
    if not setting.roles.terms.keep_letters:
        return [prices]
    told = {number: price.against_everybody() for number, price in prices.items()}
    return [
        {number: several[k] for number, several in told.items()}
        for k in range(len(Observer))
    ]


def _prices(
    algorithm: Any, problem: Problem, asked: Question, rounds: int
) -> dict[int, Guarantee]:
    """What the letters of every round cost together; the first round is 1."""
    numbers = range(1, rounds + 1)
    if schedule_of(algorithm.oracle) is None:
        return dict.fromkeys(numbers, guarantee(algorithm, problem, asked))
    return {
        number: guarantee(algorithm, problem, replace(asked, number=number))
        for number in numbers
    }


def _refuse_violated(price: Guarantee) -> None:
    """Refuse a price that is known not to hold.

    Whether it does depends on the description only, so that the refusal tells nothing.
    """
    for one in price.assumptions:
        if one.status == "violated":
            refuse(
                "the run's epsilon would not hold, for numbers would come from private "
                "rows; add a public bound on rows to the description, problem.bound"
            )


@in_double_precision
def privacy_of(setting: Setting, rounds: int) -> PrivacyReport:
    """What each observer may have learnt of this agent's rows in so many rounds.

    The agent knows of no noise but its own, so nobody else's is counted on.
    """
    algorithm, rounds = setting.roles.algorithm, max(rounds, 1)
    told = replace(forecast(setting.known, algorithm, rounds=rounds), planned=False)
    if "shared_seed" not in setting.run.run:
        return told
    known = violated("no observer knows the noise: everybody has run.shared_seed")
    rows = [replace(r, assumptions=(*r.assumptions, vars(known))) for r in told.rows]
    return replace(told, rows=tuple(rows))

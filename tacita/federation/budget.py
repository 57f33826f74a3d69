"""What the budget of a run means for one agent: its noise, its prices, its report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacita.aggregation import Summed
from tacita.check import refuse
from tacita.federation.account import Account
from tacita.federation.description import Description
from tacita.federation.desk import ChargeLetter, no_charge
from tacita.federation.prices import Prices
from tacita.federation.setting import Setting, blank_setting
from tacita.integer_noise import SPREAD
from tacita.privacy import (
    Guarantee,
    Ledger,
    Question,
    Scope,
    forecast,
    letters_of,
    private,
)
from tacita.privacy.accounting.guarantee import Assumption, enforced, violated
from tacita.privacy.clipped import (
    schedule_of,
    with_regulariser_last,
    with_std,
)
from tacita.privacy.letters.on_grid import has_integers
from tacita.privacy.letters.question import ARRIVALS_SEEN
from tacita.privacy.letters.secure_sum import most_curious
from tacita.problem.quantised import inside
from tacita.problem.stream import stream_of
from tacita.runtime.seat import split_numbers
from tacita.trace import PrivacyReport
from tacita.trees import in_double_precision

#: Rounding that a sum of many releases may differ by from their product.
_ROUNDING = 1 + 1e-9
#: Where noise comes from: the numbers, and the generator.
_INTEGERS = "exact integers on a grid of step {step:.4g}"
_FLOATS = (
    "floating-point Gaussians, whose last digits are not covered by any theorem above"
)
_SECRET = "from ChaCha20 with secret keys"
_SHARED = "from a seed that everybody has"
#: Whom metrics are for.
_METRICS = (
    "losses and other metrics are measured here on this agent's own rows, without "
    "noise: they were sent to nobody, and are not for the observers above"
)


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
    prices: Prices
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
    account: str | None = None,
) -> Plan:
    """Set the agent's noise for the run's budget; nothing is written.

    Refused where the ledger has no room for the whole run, or counts other things.

    Args:
        setting: A run with a budget.
        name: The agent.
        ledger: Where its letters are charged.
        limit: The epsilon that all its runs together may spend, against everybody who
            sees anything of them; None for whatever this run adds.
        account: What its rows are called in the ledger; default its own name.
    """
    run, roles, told = setting.run, setting.roles, setting.run.privacy
    assert told is not None
    epsilon, delta = float(told["epsilon"]), setting.promise["delta"]
    setting, number = _of_one(setting, run.agents.index(name))
    ready = _noised(setting)
    prices = _prices(ready, setting, number)
    price = prices[1]
    scope = price.scope
    _refuse_violated(price)
    whole = {"agent": account or name, "run": run.digest, "delta": delta}
    ledger.require_addable(whole["agent"], scope.unit, scope.relation)
    after = ledger.after(prices.left, observer=scope.observer, **whole)
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


@in_double_precision
def promised(run: Description) -> dict[str, Any]:
    """What a run promises every agent, and what that rests on; for one row.

    Nobody's rows are looked at: it is what the description says by itself.
    """
    told, setting = run.privacy, _of_one(blank_setting(run), 0)[0]
    assert told is not None
    price = _prices(_noised(setting), setting, 0)[1]
    found = price.as_dict(setting.promise["delta"])
    kept = ("observer", "unit", "relation", "delta", "theorem", "assumptions")
    return {"epsilon": float(told["epsilon"]), **{key: found[key] for key in kept}}


def _of_one(setting: Setting, number: int) -> tuple[Setting, int]:
    """The run as one agent knows it, and which agent of the problem it is there.

    Of numbers that differ between agents it has its own: noise and prices that are set
    for another's would not cover its letters.
    """
    roles = setting.roles
    if setting.known is not setting.own:
        return setting, number  # everybody is in it, with numbers of their own
    numbers, for_agent = split_numbers(roles.algorithm, len(roles.agents))
    own = for_agent([each[number] for each in numbers])
    return replace(setting, roles=replace(roles, algorithm=own)), 0


def _noised(setting: Setting) -> Any:
    """The run's algorithm with the noise that its budget asks for."""
    told = setting.run.privacy
    assert told is not None
    if stream_of(setting.roles.algorithm.oracle) is not None:
        # Rounds are charged one by one, in whichever of them an agent answers.
        refuse(
            "a ledger charges every round in full, and records of a stream are in one "
            "round each; use sampling='permutation' in a federation with a budget"
        )
    made: Any = private(
        setting.known,
        setting.roles.algorithm,
        epsilon=float(told["epsilon"]),
        rounds=setting.run.rounds,
        norm=told.get("norm"),
        schedule=told.get("schedule"),
        noise_kind=_noise_kind(setting),
        **setting.promise,
    )
    if isinstance(made, Summed):
        return made
    if made.step_before_noise() is not None and setting.own.dtype != np.float64:
        # Steps are taken from a model that the coordinator chooses: at 2^19 single
        # precision rounds what records change, and all of the noise, to its digits.
        refuse(
            f"letters of {type(made).__name__} get their noise after local steps, for "
            "which single precision has too few digits; set problem.dtype = 'float64'"
        )
    return replace(made, oracle=with_regulariser_last(made.oracle))


def _noise_kind(setting: Setting) -> str | None:
    """Exact integers, unless the run wants or needs floats.

    A secure sum has its own; sums of many rows in single precision have no bound.
    """
    assert setting.run.privacy is not None
    if isinstance(setting.roles.algorithm, Summed):
        return None
    usual = "integers" if setting.own.dtype == np.float64 else "float"
    return str(setting.run.privacy.get("noise_kind", usual))


def with_budget(
    setting: Setting,
    name: str,
    ledger: Ledger,
    limit: float | None,
    account: str | None = None,
) -> tuple[Setting, ChargeLetter]:
    """Set the agent's noise for the run's budget, and how its letters are charged.

    As `plan_of`, whose arguments it takes; the ledger is then told what it allows.

    Letters are charged to whoever reads them. Others see what was made of them, and no
    more: as all count as one person, the reader's row stands for all.
    """
    if setting.run.privacy is None:
        return setting, no_charge
    account = account or name
    plan = plan_of(setting, name, ledger, limit, account)
    scope = plan.price.scope
    budget = {
        "agent": account,
        "epsilon": plan.allowed,
        "delta": setting.promise["delta"],
        "unit": scope.unit,
        "relation": scope.relation,
    }
    ledger.allow(**budget)
    binding = None if limit is None else budget
    charge = Account(ledger, account, setting.run.digest, plan.prices, binding)
    return plan.setting, charge


def _prices(algorithm: Any, setting: Setting, agent: int) -> Prices:
    """What the letters of every round cost together; the first round is 1."""
    problem, promise = setting.known, setting.promise
    relation = letters_of(algorithm).relation
    scope = Scope(promise["observer"], promise["unit"], relation)
    asked = Question(scope=scope, agent=agent, rounds=1, assumed=_assumed(setting))
    if isinstance(algorithm, Summed):
        dearest = most_curious(algorithm.aggregation)
        asked = replace(asked, scope=Scope(dearest, promise["unit"], relation))
    return Prices(algorithm, problem, asked, setting.run.rounds, scope)


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
def privacy_of(setting: Setting, rounds: int, besides: int = 0) -> PrivacyReport:
    """What each observer may have learnt of this agent's rows in so many rounds.

    The agent knows of no noise but its own, so nobody else's is counted on.

    Args:
        setting: The run, with its noise.
        rounds: Those that are charged.
        besides: How many are charged once more: another folder may have spoken too.
    """
    algorithm, rounds = setting.roles.algorithm, max(rounds, 1)
    assumed = _assumed(setting)
    if besides:
        algorithm = _least_noise(algorithm)
        twice = f"{besides} rounds count twice: another folder may have spoken in them"
        assumed = (*assumed, enforced(twice))
    known = {"rounds": rounds + besides, "assumed": assumed}
    told = forecast(setting.known, algorithm, **known)
    told = replace(told, planned=False, noise=noise_of(setting), metrics=_METRICS)
    told = replace(told, rounds=rounds)
    if "shared_seed" not in setting.run.run:
        return told
    known = violated("no observer knows the noise: everybody has run.shared_seed")
    rows = [replace(r, assumptions=(*r.assumptions, vars(known))) for r in told.rows]
    return replace(told, rows=tuple(rows))


def _least_noise(algorithm: Any) -> Any:
    """With the least noise of a schedule in all rounds: any may be one of them."""
    schedule = None if isinstance(algorithm, Summed) else schedule_of(algorithm.oracle)
    if schedule is None:
        return algorithm
    least = float(schedule.multiples().min())
    bare = inside(algorithm.oracle, lambda noisy: replace(noisy, schedule=None))
    std = letters_of(algorithm).noise_std
    return replace(algorithm, oracle=with_std(bare, np.asarray(std) * least))


def _assumed(setting: Setting) -> tuple[Assumption, ...]:
    """What a budget rests on besides: of an asynchronous run, the times of letters."""
    return (ARRIVALS_SEEN,) if setting.roles.terms.asynchronous else ()


def noise_of(setting: Setting) -> str:
    """Which noise the agent's letters have, in words."""
    algorithm = setting.roles.algorithm
    numbers = _FLOATS
    if isinstance(algorithm, Summed):
        numbers = _INTEGERS.format(step=float(algorithm.aggregation.step or 0))
    elif has_integers(algorithm):
        std = letters_of(algorithm).noise_std
        step = float(np.max(np.asarray(std))) / SPREAD
        numbers = _INTEGERS.format(step=step)
    return f"{numbers}; {_SHARED if 'shared_seed' in setting.run.run else _SECRET}"

"""What would leave the house if a run were accepted; nothing is sent or charged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacita.federation.budget import noise_of, plan_of, promised
from tacita.federation.description import Description
from tacita.federation.invitation import Invitation
from tacita.federation.own_rows import OwnRows
from tacita.federation.own_test import OwnTest
from tacita.federation.policy import Policy
from tacita.federation.rehearsal import outgoing, require_allowed, require_parts_allowed
from tacita.federation.setting import Setting, own_setting
from tacita.privacy import Ledger, letters_of
from tacita.trace.epsilon_words import about, assumed

#: What the lines begin with that say why a run is refused.
REFUSED = "would not take part: "


class Preview(NamedTuple):
    """What a run would mean here.

    Attributes:
        lines: A line for each thing.
        refused: Whether this agent would not take part.
    """

    lines: list[str]
    refused: bool


def releases_of(run: Description) -> list[tuple[str, str]]:
    """What a run would release, and what that rests on: names and words."""
    first = "would release"
    if run.privacy is None:
        return [(first, "NO PRIVACY: letters leave as they are")]
    try:
        told = promised(run)
    except Exception as error:  # whatever the description is like
        why = (str(error) or type(error).__name__).split("\n")[0]
        return [(first, f"nothing, for it cannot be run: {why}")]
    return [
        (first, f"epsilon {told['epsilon']:g} {about(told, relation=True)}"),
        ("by", str(told["theorem"])),
        ("it holds if", f"{assumed(told['assumptions'])}; numbers are for one row"),
    ]


def in_one_line(releases: Sequence[tuple[str, str]]) -> str:
    """The same as a sentence, without the first name."""
    (_, first), *rest = releases
    return "; ".join([first, *(f"{name}: {words}" for name, words in rest)])


def preview_of(run: Description, *about: Any, **allowance: Any) -> Preview:
    """The preview of a run; the arguments are those of `_lines`."""
    lines = list(_lines(run, *about, **allowance))
    return Preview(lines, any(line.startswith(REFUSED) for line in lines))


def _lines(
    run: Description,
    rows: OwnRows,
    test: OwnTest,
    me: Invitation,
    policy: Policy,
    ledger: Path,
    **allowance: Any,
) -> Iterator[str]:
    """The preview, a line for each thing.

    Args:
        run: What is offered.
        rows: The agent's own.
        test: Which of them do not train.
        me: Its invitation.
        policy: What it agrees to.
        ledger: The file of its ledger; it need not be there yet.
        **allowance: What that allows, as in `plan_of`.
    """
    yield f"{run.name} ({run.digest}), proposed by {run.starter}"
    columns = ", ".join(map(str, run.problem["columns"]))
    yield f"reads: columns {columns}; target {run.problem['target']}"
    yield f"promises: {in_one_line(releases_of(run))}"
    try:
        require_allowed(run, me, policy)
        own, held = test.split(run, rows)
        made = own_setting(run, own)
        if run.privacy is None:
            require_parts_allowed(made, me.name, policy)
    except Exception as error:  # whatever the rows are like
        first = (str(error) or type(error).__name__).split("\n")[0]
        yield f"{REFUSED}{first}"
        return
    tested = 0 if held is None else int(held.counts[0])
    yield f"rows: {int(own.counts[0])} train, {tested} test and never train"
    yield from _sent(made, me.name)
    if run.privacy is None:
        yield "costs: nothing is accounted, for nothing is protected"
        return
    with tempfile.TemporaryDirectory() as folder:
        known = ledger.exists()
        path = ledger if known else Path(folder) / "ledger.db"
        with Ledger(path, read_only=known) as opened:
            yield from _cost(made, me.name, policy, opened, **allowance)


def _sent(made: Setting, name: str) -> Iterator[str]:
    rounds = made.run.rounds
    letters = outgoing(made, name)
    for letter in letters:
        arrays = ", ".join(letter.arrays)
        yield (
            f"sends: {rounds} letters to {letter.to}, one a round: {arrays} "
            f"({8 * letter.numbers} bytes at most)"
        )
    whole = 8 * rounds * sum(letter.numbers for letter in letters)
    yield f"sends: {whole} bytes of numbers in all, each letter signed and sealed"
    if made.weighted:
        yield f"tells: its number of rows, {int(made.own.counts[0])}"
    yield (
        "tells: that it accepts, with its signature; its round; what is left of its "
        "budget, unless that is kept back"
    )


def _cost(
    made: Setting, name: str, policy: Policy, ledger: Ledger, **allowance: Any
) -> Iterator[str]:
    try:
        plan = plan_of(made, name, ledger, **allowance)
        require_parts_allowed(plan.setting, name, policy)
    except ValueError as error:
        yield f"{REFUSED}{error}"
        return
    std = float(np.max(np.asarray(letters_of(plan.setting.roles.algorithm).noise_std)))
    yield f"noise: standard deviation {std:.4g}, {noise_of(plan.setting)}"
    scope, delta = plan.price.scope, made.promise["delta"]
    account = allowance["account"]
    before = ledger.learnt(account, scope.observer, delta)
    yield (
        f"costs: epsilon {before:.4g} now, {plan.after:.4g} after this run "
        f"(delta {delta:g}, against the {scope.observer}, for one {scope.unit}, "
        f"{scope.relation}), all runs of {account!r} together; "
        f"allowed {plan.allowed:.4g}"
    )
    yield f"theorem: {plan.price.theorem}"
    for one in plan.price.assumptions:
        yield f"assumes ({one.status}): {one.statement}"

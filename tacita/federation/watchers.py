"""Who sees what becomes of an agent's letters, and is charged with them.

Letters of a server run are read by the coordinator, who makes broadcasts of them: the
other agents see those, and whoever is given the model sees the last. None of them sees
more than the letters say, and an agent counts on nobody else's noise: they are charged
what the coordinator is. Where all observers count as one person that changes nothing,
and the coordinator's row stands for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tacita.check import refuse
from tacita.federation.setting import Setting
from tacita.privacy import Guarantee, Ledger, Observer, Scope
from tacita.privacy.letters.question import BROADCAST_ONLY
from tacita.privacy.scope import people

Groups = Sequence[Sequence[str]] | None

#: Who reads letters of which broadcasts are made.
_READERS = (Observer.COORDINATOR, Observer.COLLUDERS)


def told_of(
    setting: Setting, prices: Mapping[int, Guarantee], separate: Groups
) -> list[Mapping[int, Guarantee]]:
    """What every round costs, against each observer who is charged with its letters.

    Args:
        setting: The run.
        prices: By round, against who reads the letters.
        separate: Observers who never compare notes, as in `Ledger.allow`.
    """
    reader = prices[1].scope.observer
    watching = [reader, *_apart(reader, separate)]
    if setting.roles.terms.keep_letters:
        # A graph that is learnt from kept letters stands in the next run's description,
        # and so in all that follows from it: nobody is apart from who read them.
        watching = list(Observer)
    return [
        {number: _against(who, price) for number, price in prices.items()}
        for who in watching
    ]


def refuse_late_groups(ledger: Ledger, account: str, separate: Groups) -> None:
    """Refuse groups that came after releases which were charged to one of them alone.

    What the coordinator read was told on in broadcasts; as long as all were one person
    nobody else had to be charged with it.
    """
    mine = [r for r in ledger.rows() if (r.kind, r.agent) == ("release", account)]
    charged = {(r.observer, r.run, r.round, r.phase) for r in mine}
    for reader in _READERS:
        for who in _apart(reader, separate):
            read = (r for r in mine if r.observer == reader)
            if any((who, r.run, r.round, r.phase) not in charged for r in read):
                refuse(
                    "separate cannot be set now: earlier runs were charged to the "
                    f"{reader} alone, and what they told the {who} would not count; "
                    "leave separate out of the policy"
                )


def _apart(reader: Observer, separate: Groups) -> list[Observer]:
    """Who sees broadcasts, and may be a person that the reader is not."""
    if reader not in _READERS:
        return []
    others = [one.observers for one in people(separate) if reader not in one.observers]
    return [who for who in BROADCAST_ONLY if any(who in one for one in others)]


def _against(who: Observer, price: Guarantee) -> Guarantee:
    scope = price.scope
    return replace(price, scope=Scope(who, scope.unit, scope.relation))

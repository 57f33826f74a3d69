"""All rosters and sets that a lying coordinator can try, for up to seven agents.

The coordinator owns the network and c agents. It may send two rosters under one
attempt, have sets signed and opened as far as honest agents let it, and then computes
whatever the shares it holds allow. It must never learn a sum over fewer honest agents
than `least` - c. The rules are those of `secure_agent`, in sets instead of letters:

- an honest agent accepts one roster that it is in, of `least` entries at least;
- it answers and opens only if all entries dealt it shares under its own roster;
- it opens one set of its roster, of `least` entries at least, oneself among them only
  if it answered; the set is the whole roster, or has t signatures; it signs one set.

An honest agent that lets out more shares of a kind never tells less, so it is enough to
let every honest agent answer, and open either the signed set or the whole roster.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

import pytest

from tacita.aggregation.secure.plan import threshold

Agents = frozenset[int]


class Game(NamedTuple):
    """Numbers of a run; the last `colluding` agents collude."""

    agents: int
    colluding: int
    least: int
    #: Rules that are left out, to see that the search would notice.
    without_ready: bool = False
    needed_less: int = 0

    @property
    def honest(self) -> Agents:
        return frozenset(range(self.agents - self.colluding))

    def needed(self, roster: Agents) -> int:
        return threshold(len(roster), self.colluding) - self.needed_less


class View(NamedTuple):
    """Honest agents under one roster, and the set that each of them opened."""

    roster: Agents
    believers: Agents
    opened: dict[int, Agents]


def subsets(of: Agents, at_least: int = 0) -> Iterator[Agents]:
    for size in range(at_least, len(of) + 1):
        yield from map(frozenset, combinations(sorted(of), size))


def pairs_of_rosters(game: Game) -> Iterator[list[tuple[Agents, Agents]]]:
    """One roster that all its honest agents believe, or two, and who believes which."""
    rosters = list(subsets(frozenset(range(game.agents)), game.least))
    # Agents are alike: of the first roster only how many are in it matters.
    distinct = {(len(r & game.honest), len(r)): r for r in reversed(rosters)}.values()
    for one in distinct:
        yield [(one, one & game.honest)]
    for one, other in product(distinct, rosters):
        both = one & other & game.honest
        for first in subsets(both):
            seen = (one & game.honest) - both | first, (other & game.honest) - first
            if all(seen) and one != other:
                yield [(one, seen[0]), (other, seen[1])]


def views(game: Game, roster: Agents, believers: Agents) -> Iterator[View]:
    """All that believers of one roster can be made to open, as far as it matters."""
    if not game.without_ready and believers != roster & game.honest:
        # Somebody honest never deals under this roster, so nobody is ready.
        return
    for opened in openings(game, roster, sorted(believers)):
        yield View(roster, believers, opened)


def openings(
    game: Game, roster: Agents, believers: list[int]
) -> Iterator[dict[int, Agents]]:
    """Who opens which set: the whole roster, or the one that is signed."""
    yield dict.fromkeys(believers, roster)
    signatures = game.needed(roster) - len(roster - game.honest)
    for chosen in subsets(roster, game.least):
        # Who signed the set opens it; the others open the set or the roster.
        for opens in subsets(frozenset(believers), max(signatures, 1)):
            if chosen != roster:
                yield {a: chosen if a in opens else roster for a in believers}


def learnt(game: Game, found: list[View]) -> Iterator[Agents]:
    """Sets of honest agents the sum of whose letters can be read: the smallest ones."""
    keys: set[int] = set()
    masks: set[int] = set()
    for view in found:
        needed = game.needed(view.roster)
        liars = len(view.roster - game.honest)
        for dealer in view.believers:
            # Everybody in the dealer's roster holds shares, whatever roster it has.
            opened = [
                (dealer in chosen)
                for other in found
                for holder, chosen in other.opened.items()
                if holder in view.roster and dealer in other.roster
            ]
            if liars + sum(opened) >= needed:
                masks.add(dealer)
            if liars + len(opened) - sum(opened) >= needed:
                keys.add(dealer)
    for view in found:
        yield from readable(view.believers, view.roster & game.honest, keys, masks)


def readable(
    answered: Agents, honest: Agents, keys: set[int], masks: set[int]
) -> Iterator[Agents]:
    """Sets of answers under one roster whose sum can be read; the smallest ones.

    A mask between two agents is known if the key of one of them is. Answers whose masks
    between them are not known can only be read together, and not at all if one of them
    was never given, or if a self mask among them is not known.

    Args:
        answered: The honest agents that have answered.
        honest: All honest agents of the roster.
        keys: Agents whose keys are known.
        masks: Agents whose self masks are known.
    """
    together = honest - keys
    for group in [frozenset({a}) for a in answered & keys] + [together]:
        if group and group <= answered and group <= masks:
            yield group


def holes(agents: int, colluding: int, **left_out) -> tuple[int, int]:
    """Cases, and those in which too small a sum is read."""
    cases = bad = 0
    fewest = max(threshold(agents, colluding), colluding + 2)
    for least in range(fewest, agents + 1):
        game = Game(agents, colluding, least, **left_out)
        for rosters in pairs_of_rosters(game):
            first, *others = [list(views(game, *pair)) for pair in rosters]
            second = others[0] if others else []
            together = [[one, other] for one in first for other in second]
            for found in [[view] for view in (*first, *second)] + together:
                cases += 1
                few = least - colluding
                bad += any(len(group) < few for group in learnt(game, found))
    return cases, bad


def runs(*agents: int) -> list[tuple[int, int]]:
    return [(n, colluding) for n in agents for colluding in range(n - 1)]


@pytest.mark.parametrize("run", runs(3, 4, 5), ids=str)
def test_no_hole_in_any_rosters_and_sets(run):
    cases, bad = holes(*run)
    assert cases and not bad


@pytest.mark.long
@pytest.mark.parametrize("run", runs(6, 7), ids=str)
def test_no_hole_in_any_rosters_and_sets_of_more_agents(run):
    cases, bad = holes(*run)
    assert cases and not bad


@pytest.mark.parametrize("rule", [{"without_ready": True}, {"needed_less": 1}])
def test_without_a_rule_there_are_holes(rule):
    assert any(holes(*run, **rule)[1] for run in runs(3))
    assert any(holes(*run, **rule)[1] for run in runs(4))


def test_without_signatures_everybody_could_be_shown_another_set():
    """Five agents, t = least = 3: three of them are left out by three holders each."""
    game, everybody = Game(5, 0, 3), frozenset(range(5))
    left_out = [{0, 1}, {1, 2}, {0, 2}, {0, 1}, {2}]
    opened = {a: everybody - out for a, out in enumerate(left_out)}
    view = View(everybody, everybody, opened)
    assert frozenset({3, 4}) in learnt(game, [view])
    assert view not in list(views(game, everybody, everybody))

"""The rules and attacks that are tried where a user names none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tacita import aggregation as rules_of
from tacita import check, robust
from tacita.aggregation import Aggregation, Mean
from tacita.algorithm.base import Algorithm, Averages, GraphAlgorithm
from tacita.problem.problem import Problem
from tacita.robust import Attack
from tacita.runtime import choices


class RuleTable(NamedTuple):
    """Rules by name, and how many letters there are for them."""

    usual: dict[str, Aggregation]
    others: dict[str, Aggregation]  # tried if somebody asks for them
    letters: int
    words: str  # the same in words

    def able(self) -> dict[str, Aggregation]:
        """The usual rules that so many letters allow."""
        return {name: r for name, r in self.usual.items() if r.least <= self.letters}

    def left_out(self) -> str:
        """The usual rules that need more letters, in one line; empty without any."""
        able = self.able()
        needs = [
            f"{name} needs {rule.least} letters"
            for name, rule in self.usual.items()
            if name not in able
        ]
        return f"Not tried, since {self.words}: {', '.join(needs)}." if needs else ""

    def require(self, name: str) -> None:
        """Refuse a rule that needs more letters."""
        rule = (self.usual | self.others).get(name)
        if rule is not None and rule.least > self.letters:
            check.refuse(
                f"{name} joins at least {rule.least} letters, and {self.words}; have "
                "more of them, or fewer liars"
            )


def rule_table(
    problem: Problem,
    algorithm: Algorithm,
    liars: Sequence[int],
    participation: Any = 1.0,
) -> RuleTable:
    """The rules that the letters of a round, or of a node's neighbours, allow."""
    if isinstance(algorithm, GraphAlgorithm):
        return _graph_rules(problem, liars)
    letters, words = problem.n_agents, f"there are {problem.n_agents} agents"
    chosen = choices.schedule_of(problem, algorithm, participation)
    active = getattr(algorithm, "averages", None) == Averages.ACTIVE
    if chosen.kind == "cohort" and active:
        letters, words = chosen.size, f"{chosen.size} agents are asked in a round"
    usual, others = _rules(letters, len(some_liars(problem, liars)))
    return RuleTable(usual, others, letters, words)


def usual_rules(letters: int, liars: int) -> dict[str, Aggregation]:
    """The mean, and the rules that so many letters allow."""
    return RuleTable(*_rules(letters, liars), letters, "").able()


def _rules(
    letters: int, liars: int
) -> tuple[dict[str, Aggregation], dict[str, Aggregation]]:
    """What is tried, and what only if somebody asks for it."""
    trimmed = rules_of.TrimmedMean(trim=liars)
    middle = rules_of.GeometricMedian()
    mixing = rules_of.NearestNeighbourMixing
    usual: dict[str, Aggregation] = {
        "Mean": Mean(),
        "ClippedMean": rules_of.ClippedMean(trim=liars),
        "TrimmedMean": trimmed,
        "Median": rules_of.Median(),
        "GeometricMedian": middle,
        "Krum": rules_of.Krum(liars=liars),
        "MultiKrum": rules_of.MultiKrum(liars=liars, keep=max(letters - liars, 1)),
        "NormBound": rules_of.NormBound(),
        "CenteredClipping": rules_of.CenteredClipping(start="median"),
        "NNM + TrimmedMean": mixing(liars=liars, rule=trimmed),
        "NNM + GeometricMedian": mixing(liars=liars, rule=middle),
    }
    others: dict[str, Aggregation] = {
        "RFA": rules_of.RFA(),
        "Bulyan": rules_of.Bulyan(liars=liars),
        "Buckets": rules_of.Buckets(size=2, rule=rules_of.Median()),
        "AdaptivelyClipped": rules_of.AdaptivelyClipped(liars=liars, rule=trimmed),
    }
    return usual, others


def _graph_rules(problem: Problem, liars: Sequence[int]) -> RuleTable:
    """The mean, and the rules that every node's number of neighbours allows.

    They count on as many liars as any honest node has beside it.
    """
    assert problem.graph is not None
    lies = np.isin(np.arange(problem.n_agents), some_liars(problem, liars))
    near = problem.graph.adjacency() != 0
    beside = max(int(np.max((near @ lies.astype(int))[~lies])), 1)
    fewest = int(np.min(problem.graph.neighbour_counts))
    known: dict[str, Aggregation] = {
        "ClippedGossip": rules_of.ClippedGossip(drop=beside),
        "Bridge": rules_of.Bridge(trim=beside),
        "NearestToOwn": rules_of.NearestToOwn(liars=beside),
        "TrimmedMean": rules_of.TrimmedMean(trim=beside),
        "Median": rules_of.Median(),
        "GeometricMedian": rules_of.GeometricMedian(),
    }
    if all(rule.least > fewest for rule in known.values()):
        check.refuse(
            f"some node has no more neighbours than {fewest}, and an honest one has "
            f"liars={beside} beside it; rules need more edges or fewer liars"
        )
    words = f"some node has {fewest} neighbours"
    return RuleTable({"Mean": Mean(), **known}, {}, fewest, words)


def usual_attacks(
    problem: Problem, liars: Sequence[int], on_graph: bool = False
) -> dict[str, Attack]:
    """One of every kind that needs to know nothing of the problem.

    Args:
        problem: The problem; liars on a graph may tell each neighbour something else.
        liars: Numbers of the agents that lie.
        on_graph: Whether letters go from node to node.
    """
    who = some_liars(problem, liars)
    target = next(i for i in range(problem.n_agents) if i not in who)
    known: dict[str, Attack] = {
        "sign x1": robust.SignFlip(agents=who, strength=1.0),
        "sign x10": robust.SignFlip(agents=who, strength=10.0),
        "ipm 0.5": robust.InnerProduct(agents=who, strength=0.5),
        "ipm 10": robust.InnerProduct(agents=who, strength=10.0),
        "alie 1.5": robust.ALIE(agents=who, deviations=1.5),
        "mimic": robust.Mimic(agents=who, target=target),
        "free rider": robust.FreeRider(agents=who),
        "noise": robust.Noise(agents=who, std=1.0),
        "not finite": robust.NotFinite(agents=who),
        "clean label": robust.CleanLabel(agents=who, shift=1.0),
    }
    if on_graph:
        known["dissensus"] = robust.Dissensus(agents=who, strength=1.5)
    if problem.model.classes is not None:
        return known | {"label flip": robust.LabelFlip(agents=who)}
    _, y, counts = problem.stacked()
    spread = float(y[np.arange(y.shape[1]) < counts[:, None]].std())
    far = robust.DenialOfService(agents=who, shift=10 * max(spread, 1e-9))
    return known | {"labels shifted": far}


def usual_backdoor(problem: Problem, liars: Sequence[int]) -> robust.Backdoor:
    """A trigger on the first feature, beyond all values that it has.

    Accuracy does not show it, so that it is no part of `usual_attacks`.
    """
    who, test = some_liars(problem, liars), problem.population.test
    if problem.model.classes is None or test is None:
        check.refuse(
            "a backdoor is measured on test rows with classes; have some held out by "
            "problem.test_share = 0.2, which synthetic data do not know"
        )
    x, y, _ = problem.stacked()
    first = x.reshape(*x.shape[:2], -1)[..., 0]
    return robust.Backdoor(
        agents=who,
        features=(0,),
        value=float(first.max() + np.ptp(first)),
        target=float(y.min()),
        scale=problem.n_agents / len(who),
    )


def some_liars(problem: Problem, liars: Sequence[int]) -> tuple[int, ...]:
    """The liars, of whom there must be some, and somebody honest beside them."""
    who, n = tuple(map(int, liars)), problem.n_agents
    if not 0 < len(set(who)) < n:
        check.refuse(f"expected liars some of the {n} agents, got liars={who}")
    if not {*who} <= {*range(n)}:
        check.refuse(
            f"expected liars in 0..{n - 1}, numbers of agents, got liars={who}"
        )
    return who

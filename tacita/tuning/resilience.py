"""Which rule would hold on this problem: every attack against every rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from tacita import aggregation as rules_of
from tacita import check, robust
from tacita.aggregation import Aggregation, Mean
from tacita.algorithm.base import Algorithm, GraphAlgorithm
from tacita.problem.population import Population
from tacita.problem.problem import Problem
from tacita.robust import Attack
from tacita.runtime.simulate import simulate
from tacita.trees import in_double_precision, tree_rows
from tacita.trees import replace as with_fields

#: A rule is told to cost something where it loses as much: of an accuracy, or of what
#: the honest agents alone reach where a loss is measured.
_NOTABLE = 0.03
#: What is measured where there are no classes.
LOSS = "minus the loss"


@dataclass(frozen=True, eq=False)
class Resilience:
    """What every rule reaches under every attack.

    Attributes:
        rules: Their names, the mean among them.
        attacks: Their names; the first is nobody's.
        values: (rules, attacks), of the metric.
        metric: What was measured; larger is better.
        alone: What the mean of the honest agents alone reaches: no rule can be asked
            for more, since the liars' rows are lost.
        liars: The numbers of the agents that lie.
    """

    rules: tuple[str, ...]
    attacks: tuple[str, ...]
    values: np.ndarray
    metric: str
    alone: float
    liars: tuple[int, ...]

    @property
    def worst(self) -> np.ndarray:
        """Every rule's worst value over the attacks."""
        return self.values.min(axis=1)

    def recommendation(self) -> str:
        """In words: which rule to take, what it costs, and whether it is enough."""
        mean = self.rules.index("Mean")
        best = int(self.worst.argmax())
        fatal = self.attacks[int(self.values[best].argmin())]
        if best == mean:
            return (
                f"Stay with the mean: no rule does better in its worst case "
                f"({in_words(self.worst[mean])}, against {fatal})."
            )
        calm = self.values[mean, 0] - self.values[best, 0]
        notable = _NOTABLE * (abs(self.alone) if self.metric == LOSS else 1)
        told = [
            f"If {len(self.liars)} of the agents may lie, take {self.rules[best]}: at "
            f"worst it reaches {in_words(self.worst[best])} ({fatal}), the mean "
            f"{in_words(self.worst[mean])}; the honest agents alone reach "
            f"{in_words(self.alone)}."
        ]
        if calm > notable:
            told.append(f"While nobody lies it costs {in_words(calm)}.")
        if self.alone - self.worst[best] > 2 * notable:
            told.append(
                "No rule here holds against every attack: where honest letters differ, "
                "as with unlike data, a liar can hide among them. Trust few agents, or "
                "give the coordinator rows of its own (FLTrust)."
            )
        return " ".join(told)


def in_words(value: float) -> str:
    """A value; a run that ended in numbers that are none has diverged.

    >>> in_words(0.94321), in_words(-81234567.0), in_words(float("-inf"))
    ('0.943', '-8.12e+07', 'diverged')
    """
    if not np.isfinite(value):
        return "diverged"
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.2e}"


def usual_rules(agents: int, liars: int) -> dict[str, Aggregation]:
    """The mean, and the rules that so many agents allow."""
    trimmed = rules_of.TrimmedMean(trim=liars)
    middle = rules_of.GeometricMedian()
    mixing = rules_of.NearestNeighbourMixing
    known: dict[str, Aggregation] = {
        "Mean": Mean(),
        "ClippedMean": rules_of.ClippedMean(trim=liars),
        "TrimmedMean": trimmed,
        "Median": rules_of.Median(),
        "GeometricMedian": middle,
        "Krum": rules_of.Krum(liars=liars),
        "MultiKrum": rules_of.MultiKrum(liars=liars, keep=max(agents - liars, 1)),
        "NormBound": rules_of.NormBound(),
        "CenteredClipping": rules_of.CenteredClipping(start="median"),
        "NNM + TrimmedMean": mixing(liars=liars, rule=trimmed),
        "NNM + GeometricMedian": mixing(liars=liars, rule=middle),
    }
    return {name: rule for name, rule in known.items() if rule.least <= agents}


def usual_attacks(problem: Problem, liars: Sequence[int]) -> dict[str, Attack]:
    """One of every kind that needs to know nothing of the problem."""
    who = _some(problem, liars)
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
    who, test = _some(problem, liars), problem.population.test
    if problem.model.classes is None or test is None:
        check.refuse(
            "a backdoor is measured on test rows with classes; have some held out, for "
            "example problem.test_share = 0.2"
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


def _some(problem: Problem, liars: Sequence[int]) -> tuple[int, ...]:
    """The liars, of whom there must be some, and somebody honest beside them."""
    who, n = tuple(map(int, liars)), problem.n_agents
    if not 0 < len(set(who)) < n:
        check.refuse(f"expected liars some of the {n} agents, got liars={who}")
    return who


@in_double_precision
def resilience(
    problem: Problem,
    algorithm: Algorithm,
    rounds: int,
    *,
    liars: Sequence[int] | None = None,
    rules: Mapping[str, Aggregation] | None = None,
    attacks: Mapping[str, Attack] | None = None,
    seed: int | None = None,
    score: Callable[[np.ndarray, Attack | None], float] | None = None,
    tell: Callable[[int, int, str], None] | None = None,
) -> Resilience:
    """Run every attack against every rule, and measure what is left.

    Args:
        problem: The problem, honest.
        algorithm: Of a coordinator.
        rounds: Of every run.
        liars: Numbers of the agents that lie; default the last fifth of them.
        rules: By name; default those that so many agents allow. The mean is added.
        attacks: By name; default one of every kind.
        seed: Of all runs.
        score: Of a model and an attack, larger is better; default the accuracy on
            test rows, else on all rows, else minus the loss; of a `Backdoor` the share
            of marked test rows that are not taken for its target.
        tell: Called after every run with how many are done, of how many, and which.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=5, features=3, samples=20)
    >>> table = resilience(problem, tacita.FedAvg(), 3, liars=(4,),
    ...     rules={"Median": tacita.aggregation.Median()},
    ...     attacks={"flip": tacita.robust.SignFlip(agents=(4,), strength=9.0)})
    >>> table.rules, table.attacks, table.values.shape
    (('Mean', 'Median'), ('none', 'flip'), (2, 2))
    """
    if isinstance(algorithm, GraphAlgorithm):
        check.refuse(
            f"{type(algorithm).__name__} has no coordinator that could have a rule; "
            "simulate it with attack= and a rule of graphs such as Bridge(trim=1)"
        )
    n = problem.n_agents
    who = _some(problem, range(n - max(1, n // 5), n) if liars is None else liars)
    tried = {"Mean": Mean(), **(usual_rules(n, len(who)) if rules is None else rules)}
    lied = usual_attacks(problem, who) if attacks is None else attacks
    metric, measured = ("score", score) if score else _usual_score(problem)

    # One program for every rule: which attack is made is a number in it.
    cast = (Attack(agents=who), *lied.values())
    each = robust.OneOf(agents=who, attacks=cast)
    done: list[Aggregation] = []

    def reached(rule: Aggregation, k: int) -> float:
        chosen = {"aggregation": rule, "attack": with_fields(each, which=k)}
        run = simulate(
            problem, algorithm, rounds, seed, record=(), progress=False, **chosen
        )
        found = measured(np.asarray(run.params), None if k == 0 else cast[k])
        if tell is not None:
            done.append(rule)
            about = f"{type(rule).__name__} against {('nobody', *lied)[k]}"
            tell(len(done), len(tried) * len(cast), about)
        return found if np.isfinite(found) else -np.inf

    values = [[reached(rule, k) for k in range(len(cast))] for rule in tried.values()]
    alone = without(problem, who)
    run = simulate(alone, algorithm, rounds, seed, record=(), progress=False)
    return Resilience(
        rules=tuple(tried),
        attacks=("none", *lied),
        values=np.array(values),
        metric=metric,
        alone=measured(np.asarray(run.params), None),
        liars=who,
    )


def without(problem: Problem, liars: Sequence[int]) -> Problem:
    """The problem of the honest agents alone."""
    left = [i for i in range(problem.n_agents) if i not in set(liars)]
    population: Population = problem.population
    made = with_fields(population, rows=tree_rows(population.rows, np.array(left)))
    ids = [problem.ids[i] for i in left]
    return dataclasses.replace(problem, population=made, ids=ids, graph=None)


def _usual_score(problem: Problem) -> tuple[str, Callable[..., float]]:
    test, model = problem.population.test, problem.model
    if model.classes is None:
        return LOSS, lambda w, _: -problem.loss(w)
    if test is None:
        return "accuracy", lambda w, _: problem.accuracy(w)
    x, y = test.x, np.asarray(test.y)

    def measured(w: np.ndarray, attack: Attack | None) -> float:
        if isinstance(attack, robust.Backdoor):
            return 1 - float(attack.success(problem)(jnp.asarray(w), jnp.asarray(w)))
        return float(np.mean(model.predict(jnp.asarray(w), x) == y))

    return "test accuracy", measured

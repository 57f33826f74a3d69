"""One look at a finished run: robustness, fairness, explainability and energy.

All but energy is computed from rows without noise: it is for whoever holds the rows.
What others may be told of a private run is its `privacy` alone.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.aggregation import Mean, SecureSum
from tacita.algorithm.base import Algorithm, GraphAlgorithm
from tacita.algorithm.coupled import Coupled
from tacita.problem.gtv.penalty import Penalty
from tacita.problem.held_out import node_losses
from tacita.problem.model import ridge
from tacita.problem.problem import Problem
from tacita.theory import gtv
from tacita.theory.sensitivity import Sensitivity
from tacita.trace import Run
from tacita.trees import in_double_precision
from tacita.trust import explain, fairness
from tacita.trust.footprint import Energy, energy, gradients_of
from tacita.trust.own_models import classes_in_common, said

#: How far features are moved to see whether predictions hold: a share of their spread.
_MOVED = 0.05
#: Rows that are looked at, at most: fits to more take long and tell no more.
_MOST_ROWS = 20_000
#: Up to this many unknowns exact gains and influences are computed.
_MOST_UNKNOWNS = 2000
#: A feature with more values than this is parted at its median.
_MOST_GROUPS = 10


@dataclasses.dataclass(frozen=True, eq=False)
class Trust:
    """What a run is worth trusting for, as tables of plain values.

    Attributes:
        robustness: `bears` liars among `letters` that are joined; `turned`, what moving
            all features by `moved` of their spread does to predictions: the share that
            changes, or for numbers the change in their standard deviations. For linear
            models on a graph `label_gain` beside Prop. 8.1, and which node and edge
            matter most.
        fairness: `spread` of the agents' losses, `losses` of all; `gaps` between the
            groups of a feature, where one was named.
        explanation: `tree`, and for numbers `sparse`: how much of the model a reader
            can be told by a tree of depth 3, or by 3 features.
        energy: `operations`, `bytes`, and where they are known `joules`, `kilograms`.
        private: Whether the run was private: then all but `energy` is its owner's.
    """

    robustness: dict[str, Any]
    fairness: dict[str, Any]
    explanation: dict[str, Any]
    energy: dict[str, Any]
    private: bool

    def attach(self, run: Run) -> Run:
        """The run with these tables, for its report; saved, they are in its folder."""
        return dataclasses.replace(
            run, info={**run.info, "trust": dataclasses.asdict(self)}
        )


def examine(
    problem: Problem,
    algorithm: Algorithm,
    run: Run,
    *,
    aggregation: Any = None,
    group: int | str | None = None,
    gradients: int | None = None,
    joules_per_operation: float | None = None,
    joules_per_byte: float | None = None,
    kilograms_per_kwh: float | None = None,
) -> Trust:
    """Measure what a run is worth trusting for; of several seeds, the first.

    Args:
        problem: What was solved.
        algorithm: How.
        run: The run.
        aggregation: The rule that joined letters, where it was not the mean.
        group: The number or the name of a feature that tells groups apart, for yes/no
            models.
        gradients: As in `trust.energy`, as are the others.
        joules_per_operation: Of the agents' machines.
        joules_per_byte: Of the network.
        kilograms_per_kwh: CO2e of the electricity.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=4, features=3, samples=20)
    >>> algorithm = tacita.FedAvg(step_size=0.5)
    >>> told = examine(problem, algorithm, tacita.simulate(problem, algorithm, 5))
    >>> told.robustness["bears"], round(told.explanation["tree"], 2) > 0.5
    (0, True)
    """
    if "configs" in run.config.get("run", {}):
        check.refuse("a sweep is many runs; simulate the one to be examined")
    ready = algorithm.resolve(problem)
    n, d = problem.n_agents, problem.dim
    classes_in_common(problem)
    if isinstance(ready, GraphAlgorithm):
        models = run.agents.reshape(-1, n, d)[0]
    else:
        models = np.broadcast_to(run.params.reshape(-1, d)[0], (n, d))
    if not np.all(np.isfinite(models)):
        check.refuse("the run diverged; there is nothing to trust in its model")
    rows = _Seen.of(problem, models)
    numbers = (joules_per_operation, joules_per_byte, kilograms_per_kwh)
    if (gradients, *numbers) == (None,) * 4 and gradients_of(ready) is None:
        costs = Energy(None, int(run.info["communication"]["bytes"]))
    else:
        costs = energy(
            problem,
            ready,
            run,
            gradients=gradients,
            joules_per_operation=joules_per_operation,
            joules_per_byte=joules_per_byte,
            kilograms_per_kwh=kilograms_per_kwh,
        )
    return Trust(
        robustness=_robustness(problem, ready, rows, aggregation),
        fairness=_fairness(problem, models, rows, group),
        explanation=_explanation(problem, rows),
        energy=dataclasses.asdict(costs),
        private=run.privacy is not None,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Seen:
    """Rows that are looked at, flat, and what their nodes' models say of them."""

    x: np.ndarray
    y: np.ndarray
    said: np.ndarray
    moved: np.ndarray  # what is said when features are a little off

    @classmethod
    @in_double_precision
    def of(cls, problem: Problem, models: np.ndarray) -> _Seen:
        x, y, counts = problem.stacked()
        real = np.arange(y.shape[1]) < counts[:, None]
        draw, most = np.random.default_rng(0), max(1, _MOST_ROWS // len(y))
        if y.shape[1] > most:  # of every node, the same places
            place = np.sort(draw.permutation(y.shape[1])[:most])
            x, y, real = x[:, place], y[:, place], real[:, place]
        spread = np.std(x[real], axis=0)
        off = (x + _MOVED * spread * draw.normal(size=x.shape)).astype(x.dtype)
        now, moved = (
            np.asarray(_predict(problem.population, jnp.asarray(models), one))
            for one in (x, off)
        )
        flat = x.reshape(y.size, -1)[real.ravel()]
        return cls(flat, y[real], now[real], moved[real])


_predict = jax.jit(said)


def _robustness(
    problem: Problem, algorithm: Any, rows: _Seen, aggregation: Any
) -> dict[str, Any]:
    rule = algorithm.aggregation or aggregation or Mean()
    letters = problem.n_agents
    if isinstance(algorithm, GraphAlgorithm):
        # Of the node that hears fewest; a rule has its own letter beside theirs.
        letters = int(np.min(gtv.network_of(problem).neighbour_counts))
    if classes_in_common(problem) is not None:
        turned = float(np.mean(rows.said != rows.moved))
    else:
        spread = float(np.std(rows.said))
        change = float(np.sqrt(np.mean((rows.said - rows.moved) ** 2)))
        turned = change / spread if spread > 0 else 0.0
    told = {
        "rule": type(rule).__name__,
        # A secure sum is a sum: it hears any liar.
        "bears": 0 if isinstance(rule, SecureSum) else int(rule.bears(letters)),
        "letters": letters,
        "classes": classes_in_common(problem) is not None,
        "moved": _MOVED,
        "turned": turned,
    }
    small = problem.n_agents * problem.dim <= _MOST_UNKNOWNS
    linear = ridge.has_closed_form(problem.population)
    alpha = _plain_coupling(algorithm)
    if small and linear and alpha > 0:
        told |= _coupled(problem, alpha)
    return told


def _plain_coupling(algorithm: Any) -> float:
    """Alpha of GTVMin with the squared length of all coordinates; 0 for all else."""
    if not isinstance(algorithm, Coupled) or algorithm.h is not None:
        return 0.0
    phi = algorithm.penalty
    squared = isinstance(phi, Penalty) and phi.kind == "squared"
    plain = squared and phi.coordinates is None and phi.strength == 1
    return float(algorithm.alpha) if plain else 0.0


def _coupled(problem: Problem, alpha: float) -> dict[str, Any]:
    """Exact gains beside the book's bound; both notions of robustness."""
    exact, network = Sensitivity(problem, alpha), gtv.network_of(problem)
    sigma = np.maximum(problem.moduli.strong_convexity, 0.0)
    listens = gtv.relax_robustness(sigma, alpha, np.asarray(network.degrees, float))
    reach = exact.label_influences().sum(axis=0)
    lost = exact.edge_influences()
    worst = int(np.argmax(lost))
    first, second, _ = network.pairs()
    told = {
        "label_gain": exact.label_gain,
        "feature_gain": exact.feature_gain,
        "neighbour_gain": float(np.max(listens)),
        "listens_most": str(problem.ids[int(np.argmax(listens))]),
        "reaches_most": str(problem.ids[int(np.argmax(reach))]),
        "edge_most": f"{problem.ids[first[worst]]} - {problem.ids[second[worst]]}",
        "edge_moves": float(lost[worst]),
    }
    if network.spectrum().lambda_2 > 0:  # Prop. 8.1 is about connected graphs
        told["label_bound"] = exact.mended_bound
        told["label_bound_printed"] = exact.printed_bound
    return told


def _fairness(
    problem: Problem, models: np.ndarray, rows: _Seen, group: int | str | None
) -> dict[str, Any]:
    losses = node_losses(problem, models)
    known = np.isfinite(losses)
    told: dict[str, Any] = {
        "spread": fairness.spread(losses[known]),
        "worst": str(problem.ids[int(np.nanargmax(losses))]),
        "agents": [str(one) for one in np.asarray(problem.ids, object)[known]],
        "losses": losses[known].tolist(),
    }
    if group is not None:
        number = _number_of(problem, group)
        told["gaps"] = _gaps(problem, rows, number)
        names = problem.feature_names or ()
        told["group"] = names[number] if number < len(names) else number
    return told


def _number_of(problem: Problem, group: int | str) -> int:
    """The number of a feature that may be called by its name."""
    if not isinstance(group, str):
        return group
    names = problem.feature_names or ()
    if group in names:
        return names.index(group)
    if group.isdecimal():
        return int(group)
    if not names:
        check.refuse(f"features have no names here; give a number, not {group!r}")
    check.refuse(f"unknown group={group!r}; {check.nearest(group, names)}")


def _gaps(problem: Problem, rows: _Seen, group: int) -> dict[str, float]:
    if classes_in_common(problem) != 2:
        check.refuse("groups are compared for yes/no models; leave group out")
    if not 0 <= group < rows.x.shape[1]:
        check.refuse(f"expected group in 0..{rows.x.shape[1] - 1}, got group={group}")
    column = rows.x[:, group]
    if len(np.unique(column)) > _MOST_GROUPS:
        column = column > np.median(column)
    return fairness.group_gaps(rows.said, rows.y, column)


def _explanation(problem: Problem, rows: _Seen) -> dict[str, Any]:
    classes = classes_in_common(problem) is not None
    told = {"tree": explain.fidelity(rows.x, rows.said, "tree", classes=classes)}
    if not classes:
        told["sparse"] = explain.fidelity(rows.x, rows.said, "sparse")
    return {**told, "classes": classes, "rows": len(rows.said)}

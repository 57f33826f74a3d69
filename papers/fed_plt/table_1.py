"""Table I (both versions): what each method stores, sends and allows, off the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import tacita
from papers.fed_plt.common.tables import RESULTS, Page
from tacita.algorithm import solvers
from tacita.algorithm.base import Averages
from tacita.runtime import ready, traffic
from tacita.trees import in_double_precision

#: Small, and no two of these numbers alike: a vector is told from anything else.
AGENTS, FEATURES = 5, 7


class Printed(NamedTuple):
    """A row of the paper."""

    stored: str
    solvers: str
    silent: bool
    privacy: bool
    composite: bool


PAPER = {
    "FedPLT": Printed("2N + 1", "(S)GD, accelerated, noisy", True, True, True),
    "FedPD": Printed("2N + 1", "(S)GD", False, False, False),
    "FedLin": Printed("2N + 1", "(S)GD", False, False, False),
    "TAMUNA": Printed("2N + 1", "(S)GD", True, False, False),
    "LED": Printed("2N + 1", "(S)GD", False, False, False),
    "FiveGCS": Printed("N + 3", "any", True, False, False),
}


class Found(NamedTuple):
    """A row off the code; vectors are as long as the model."""

    at_agent: int
    at_coordinator: int
    up: float
    down: float
    any_solver: bool
    silent: bool
    private: bool
    composite: bool

    @property
    def stored(self) -> str:
        """As the paper counts it."""
        agents = "N" if self.at_agent == 1 else f"{self.at_agent}N"
        return f"{agents} + {self.at_coordinator}"


def vectors(tree: Any) -> int:
    """How many leaves are as long as the model."""
    return sum(leaf.shape == (FEATURES,) for leaf in jax.tree.leaves(tree))


@in_double_precision
def found(name: str) -> Found:
    """What the algorithm of that name keeps, sends in a round, and takes."""
    problem = tacita.problem.synthetic.logistic(
        agents=AGENTS, features=FEATURES, samples=10, l2=0.1
    )
    algorithm = ready.prepare(problem, getattr(tacita, name)())
    w = jnp.zeros(FEATURES, problem.dtype)
    state, _ = jax.eval_shape(algorithm.init, w)
    kept = jax.eval_shape(algorithm.init_coordinator, w)
    world = ready.make_world(problem, algorithm, 1.0)
    sent = traffic.per_turn(world, algorithm, 1, FEATURES, problem.dtype)
    one = FEATURES * problem.dtype.itemsize
    return Found(
        vectors(state),
        # The sum of all agents' last letters is kept where silent ones count in it;
        # and whatever is kept, there is the mean that is about to be told.
        max(1, vectors(kept) + (algorithm.averages is Averages.ALL)),
        sent["up"] / one,
        sent["down"] / one,
        algorithm.solver is not None,
        algorithm.partial,
        # A word instead of numbers says why no account counts its gradients.
        not isinstance(algorithm.gradients(), str),
        algorithm.composite,
    )


def main(out: Path = RESULTS) -> Path:
    """Table I."""
    yes = {True: "yes", False: "no"}
    rows = []
    for name, printed in PAPER.items():
        row = found(name)
        rows.append(
            [
                name,
                printed.stored,
                row.stored,
                f"{row.up:.3g}",
                f"{row.down:.3g}",
                "any" if row.any_solver else "gradient steps",
                yes[row.silent],
                yes[row.private],
                yes[row.composite],
            ]
        )
    kinds = [name for name in solvers.__all__ if name[0].isupper() and name != "Solver"]
    page = Page(
        "Table I: what each method stores, sends and allows",
        [
            "Read off the code by `papers/fed_plt/table_1.py`, not off the paper. "
            "Stored and sent is counted in vectors as long as the model: stored at N "
            "agents and the coordinator between rounds, sent by and to one agent in a "
            f"round. Any solver is one of {', '.join(kinds)}, exact or with batches.",
        ],
        (
            "method",
            "paper: stored",
            "stored",
            "sent up",
            "sent down",
            "local solvers",
            "silent agents",
            "privacy account",
            "h",
        ),
        rows,
        [
            "**Difference.** FedLin keeps one vector more at agents and coordinator: "
            "the errors of its sparse gradients, zero without sparsity. 5GCS keeps "
            "its last local answer, so two vectors an agent and not one. Every "
            "method whose number of gradients is bounded has an account by "
            "composition with noisy gradients, not Fed-PLT alone; TAMUNA has one with "
            "`fixed=True`. Which problems a theorem covers is in the papers, not in "
            "code: those of Fed-PLT, TAMUNA and 5GCS need strong convexity.",
        ],
    )
    return page.write(out, "table_1")


if __name__ == "__main__":
    print(main().read_text(encoding="utf-8"))

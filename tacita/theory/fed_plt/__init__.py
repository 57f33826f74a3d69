"""The theorems of Fed-PLT as functions of numbers, with their misprints mended.

N. Bastianello, C. Liu, K. H. Johansson, "Enhancing Privacy in Federated Learning
through Local Training" (numbering of the revised version). One round of Fed-PLT with
every agent active maps the distances to the fixed point as

    [ |x+ - x*| ]        [ |x - x*| ]
    [ |z+ - z*| ]  <=  S [ |z - z*| ]        (Prop. 1, entry by entry),

so everything here is a statement about S, two by two whatever the problem's size.
`strong_convexity` and `smoothness` bound the curvature of every agent's cost. All
functions work entry by entry on arrays, in float64.
"""

from __future__ import annotations

from tacita.theory.fed_plt.mean_square import (
    Accuracy,
    accuracy_bound,
    mean_bound,
    mean_square_rate,
)
from tacita.theory.fed_plt.one_round import (
    best_rho,
    best_step_size,
    fewest_local_steps,
    is_stable,
    norm_weight,
    prs_contraction,
    rate,
    solver_contraction,
    transition_matrix,
)
from tacita.theory.fed_plt.planning import (
    THEOREMS,
    Plan,
    expected_rounds,
    plan,
    round_cost,
)
from tacita.theory.fed_plt.quadratics import quadratic_rate
from tacita.theory.fed_plt.settings import SOLVERS

__all__ = [
    "SOLVERS",
    "THEOREMS",
    "Accuracy",
    "Plan",
    "accuracy_bound",
    "best_rho",
    "best_step_size",
    "expected_rounds",
    "fewest_local_steps",
    "is_stable",
    "mean_bound",
    "mean_square_rate",
    "norm_weight",
    "plan",
    "prs_contraction",
    "quadratic_rate",
    "rate",
    "round_cost",
    "solver_contraction",
    "transition_matrix",
]

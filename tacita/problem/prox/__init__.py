"""Proximable functions: the non-smooth term `h` of `sum_i f_i(w) + h(w)`.

Each function knows its value and its proximal operator

    prox_{t h}(v) = argmin_x  h(x) + ||x - v||^2 / (2 t),        t > 0.

N. Parikh and S. Boyd, "Proximal Algorithms", Foundations and Trends in Optimization,
2014: chapter 6 has the formulas used here.

All are written for ONE flat vector; batch them with `jax.vmap`. Weights, bounds and
radii are pytree leaves, so a new weight does not recompile. Values and proximal points
keep the dtype of their argument. The value of a constraint is 0 inside its set and
infinite outside, where points within rounding of the set count as inside.
"""

from tacita.problem.prox.constraints import Box, L2Ball, Simplex
from tacita.problem.prox.function import Proximable
from tacita.problem.prox.penalties import L1, ElasticNet, GroupLasso
from tacita.problem.prox.sums import Sum, proximable

__all__ = [
    "L1",
    "Box",
    "ElasticNet",
    "GroupLasso",
    "L2Ball",
    "Proximable",
    "Simplex",
    "Sum",
    "proximable",
]

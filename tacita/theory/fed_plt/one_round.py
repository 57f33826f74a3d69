"""One round with everybody active: Lemmas 2, 3 and 7, Props. 1 and 3."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacita.check import one_of, refuse
from tacita.theory.fed_plt.settings import (
    SOLVERS,
    Reals,
    gradient_step,
    moduli_of,
    whole_steps,
)


def prs_contraction(strong_convexity: Reals, smoothness: Reals, rho: Reals) -> Reals:
    """zeta, the rate of Peaceman-Rachford splitting: exact local solutions (Lemma 3).

    >>> round(float(prs_contraction(0.5, 2.0, 1.0)), 6)
    0.333333
    """
    low, high, rho = moduli_of(strong_convexity, smoothness, rho)
    # zeta = max over l in {strong convexity, smoothness} of |1 - rho l| / (1 + rho l)
    return np.maximum(
        np.abs(1 - rho * low) / (1 + rho * low),
        np.abs(1 - rho * high) / (1 + rho * high),
    )


def best_rho(strong_convexity: Reals, smoothness: Reals) -> Reals:
    """The rho that minimises zeta, 1/sqrt(strong convexity * smoothness).

    There |1 - rho l|/(1 + rho l) is equal at both ends. It is the best rho for exact
    local solutions; `plan` finds the best one for finitely many local steps.
    """
    low, high, _ = moduli_of(strong_convexity, smoothness, 1.0)
    return 1 / np.sqrt(low * high)


def best_step_size(strong_convexity: Reals, smoothness: Reals, rho: Reals) -> Reals:
    """The step 2/(L + mu + 2/rho), which minimises chi (section IV-B).

    S grows with chi entry by entry, so this step minimises every bound made from S.

    >>> float(best_step_size(0.5, 1.5, 1.0))
    0.5
    """
    low, high, rho = moduli_of(strong_convexity, smoothness, rho)
    return gradient_step(low, high, rho, None)


def solver_contraction(
    strong_convexity: Reals,
    smoothness: Reals,
    rho: Reals,
    local_steps: Reals,
    *,
    step_size: Reals | None = None,
    solver: str = "gradient",
) -> Reals:
    """How much one round of local training shrinks the distance to the exact answer.

    Gradient descent (Lemma 2): chi**Ne, chi = max |1 - gamma (l + 1/rho)|. Corrected:
    (11) prints gamma < 2/(mu + 1/rho); contraction needs 2/(L + 1/rho).

    Accelerated (Prop. 3): sqrt((1 + kappa) (1 - 1/sqrt(kappa))**Ne), with kappa =
    (L + 1/rho)/(mu + 1/rho). Corrected: Lemma 8's potential bounds SQUARED distances
    and the square root was left out; the printed factor is too small (for kappa = 2
    and 10 steps 1.39e-5, where a quadratic reaches 2.39e-5). The root also holds for
    the extrapolated point that (12) returns, a mean of two points the potential bounds.
    """
    one_of(SOLVERS, solver=solver)
    low, high, rho = moduli_of(strong_convexity, smoothness, rho)
    steps = whole_steps(local_steps)
    if solver == "accelerated":
        if step_size is not None:
            refuse("the accelerated solver sets its own step; leave step_size out")
        kappa = (high + 1 / rho) / (low + 1 / rho)
        return np.sqrt((1 + kappa) * (1 - 1 / np.sqrt(kappa)) ** steps)
    gamma = gradient_step(low, high, rho, step_size)
    # chi = max over l of |1 - gamma (l + 1/rho)|
    ends = np.abs(1 - gamma * (low + 1 / rho)), np.abs(1 - gamma * (high + 1 / rho))
    return np.maximum(*ends) ** steps


def transition_matrix(
    strong_convexity: Reals,
    smoothness: Reals,
    rho: Reals,
    local_steps: Reals,
    *,
    step_size: Reals | None = None,
    solver: str = "gradient",
) -> NDArray[np.float64]:
    """S of Prop. 1 (and S' of Prop. 3), shape (..., 2, 2), with the right constant.

    Corrected: the map from z to the exact local answer is a proximal operator, whose
    Lipschitz constant is 1/(1 + rho mu). Print has 1/(mu + 1/rho), rho times as much,
    so |T| <= |S| fails for rho < 1 and S is needlessly large for rho > 1. The printed
    constant carries a unit: scaling every cost by c and rho by 1/c leaves the iterates
    as they are but changes the printed S.

    Corrected too: a stable S need not have |S| < 1, so print's "contractive with
    constant |S|" does not follow. T contracts by `rate(S)` in the norm
    sqrt(|x|^2 + w^2 |z|^2), w = `norm_weight(S)`.

    Agents with solvers of their own (Remark 1): pass arrays, one entry per agent, and
    take the entrywise maximum, `transition_matrix(...).max(0)`; it holds by Minkowski.
    """
    moduli = low, _, rho = moduli_of(strong_convexity, smoothness, rho)
    options = {"step_size": step_size, "solver": solver}
    local = solver_contraction(*moduli, local_steps, **options)
    prox = 1 / (1 + rho * low)
    local, prox, zeta = np.broadcast_arrays(local, prox, prs_contraction(*moduli))
    # S = [[c, (1 + c) q], [2 c, zeta + 2 c q]]
    rows = [local, (1 + local) * prox], [2 * local, zeta + 2 * local * prox]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def is_stable(matrix: Reals) -> Any:
    """Lemma 7: whether S has spectral radius below one, so that Fed-PLT converges.

    Corrected: stable iff (1 - zeta)(1 - c) > 4 c/(1 + rho mu), c the contraction of
    the local training, for this is det(I - S) > 0. Print has "<" and concludes that
    large chi stabilises; in truth ENOUGH LOCAL STEPS do. Sufficient, not necessary:
    Fed-PLT with one local step often converges where S is unstable.

    >>> bool(is_stable(transition_matrix(0.5, 2.0, 1.0, 5)))
    True
    >>> bool(is_stable(transition_matrix(0.5, 2.0, 1.0, 1)))
    False
    """
    (xx, xz), (zx, zz) = _entries(matrix)
    return (xx < 1) & ((1 - xx) * (1 - zz) > xz * zx)


def fewest_local_steps(
    strong_convexity: float, smoothness: float, rho: float, *, solver: str = "gradient"
) -> int:
    """The fewest local steps that make S stable: what Lemma 7 should have promised.

    >>> fewest_local_steps(0.5, 2.0, 1.0)
    2
    """
    moduli = moduli_of(strong_convexity, smoothness, rho)
    # c(n) = c(1) (c(2)/c(1))**(n - 1) for both solvers, and from Lemma 7, mended,
    # c(n) < (1 - zeta)/(1 - zeta + 4/(1 + rho mu)).
    one, two = (float(solver_contraction(*moduli, n, solver=solver)) for n in (1, 2))
    room = 1 - prs_contraction(*moduli)
    largest = room / (room + 4 / (1 + moduli[2] * moduli[0]))
    steps = 1
    if one >= largest:
        steps += int(np.log(largest / one) / np.log(two / one))
    while not is_stable(transition_matrix(*moduli, steps, solver=solver)):
        steps += 1
    return steps


def rate(matrix: Reals) -> Reals:
    """The spectral radius of S: distances shrink by this factor a round (Prop. 1).

    S is nonnegative, so its larger eigenvalue is real. Corrected: Appendix B prints the
    eigenvalues as t/2 +- sqrt(v); the root needs the 1/2 too.

    >>> round(float(rate(transition_matrix(0.5, 2.0, 1.0, 5))), 9)
    0.354542668
    """
    (xx, xz), (zx, zz) = _entries(matrix)
    return (xx + zz) / 2 + np.sqrt(((xx - zz) / 2) ** 2 + xz * zx)


def norm_weight(matrix: Reals) -> Reals:
    """The w for which T contracts by `rate(S)` in sqrt(|x|^2 + w^2 |z|^2).

    diag(1, w) S diag(1, 1/w) is then symmetric: its 2-norm is its spectral radius. The
    norm is a sum over agents, which is what partial participation needs (Prop. 2).
    """
    (_, xz), (zx, _) = _entries(matrix)
    if np.any(zx == 0):
        refuse("norm_weight needs a local solver that leaves an error; here it is 0")
    return np.sqrt(xz / zx)


def _entries(matrix: Reals) -> NDArray[np.float64]:
    return np.moveaxis(np.asarray(matrix, np.float64), (-2, -1), (0, 1))

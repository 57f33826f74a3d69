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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacita.check import between, count, not_negative, one_of, positive, refuse

SOLVERS = ("gradient", "accelerated")
THEOREMS = ("quadratic", "contraction")

# A number or an array of numbers: the functions broadcast like NumPy's own.
Reals = Any


def _reals(check: Any = positive, **named: Reals) -> NDArray[np.float64]:
    ((name, value),) = named.items()
    # An unknown modulus arrives as None, which the checks let pass.
    if value is None:
        refuse(f"expected {name} a number, got {name}=None; the theory needs it")
    return np.asarray(check(**named), np.float64)


def _moduli(strong_convexity: Reals, smoothness: Reals, rho: Reals):
    low, high = _reals(strong_convexity=strong_convexity), _reals(smoothness=smoothness)
    if np.any(high < low):
        refuse(
            f"expected smoothness >= strong_convexity, got smoothness={smoothness} "
            f"and strong_convexity={strong_convexity}"
        )
    return low, high, _reals(rho=rho)


def _steps(local_steps: Reals) -> NDArray[np.int64]:
    if np.ndim(local_steps) == 0:
        return np.asarray(count(local_steps=local_steps))
    whole = np.asarray(positive(local_steps=local_steps))
    if np.any(whole != np.rint(whole)):
        refuse(f"expected local_steps whole numbers, got local_steps={local_steps}")
    return whole.astype(np.int64)


def _gradient_step(low: Reals, high: Reals, rho: Reals, step_size: Reals | None):
    if step_size is None:
        return 2 / (low + high + 2 / rho)
    step = _reals(step_size=step_size)
    limit = 2 / (high + 1 / rho)
    if np.any(step >= limit):
        refuse(
            f"expected step_size < 2/(smoothness + 1/rho) = {np.min(limit):g}, "
            f"got step_size={step_size}"
        )
    return step


def prs_contraction(strong_convexity: Reals, smoothness: Reals, rho: Reals) -> Reals:
    """zeta, the rate of Peaceman-Rachford splitting: exact local solutions (Lemma 3).

    >>> round(float(prs_contraction(0.5, 2.0, 1.0)), 6)
    0.333333
    """
    low, high, rho = _moduli(strong_convexity, smoothness, rho)
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
    low, high, _ = _moduli(strong_convexity, smoothness, 1.0)
    return 1 / np.sqrt(low * high)


def best_step_size(strong_convexity: Reals, smoothness: Reals, rho: Reals) -> Reals:
    """The step 2/(L + mu + 2/rho), which minimises chi (section IV-B).

    S grows with chi entry by entry, so this step minimises every bound made from S.

    >>> float(best_step_size(0.5, 1.5, 1.0))
    0.5
    """
    low, high, rho = _moduli(strong_convexity, smoothness, rho)
    return _gradient_step(low, high, rho, None)


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
    low, high, rho = _moduli(strong_convexity, smoothness, rho)
    steps = _steps(local_steps)
    if solver == "accelerated":
        if step_size is not None:
            refuse("the accelerated solver sets its own step; leave step_size out")
        kappa = (high + 1 / rho) / (low + 1 / rho)
        return np.sqrt((1 + kappa) * (1 - 1 / np.sqrt(kappa)) ** steps)
    gamma = _gradient_step(low, high, rho, step_size)
    # chi = max over l of |1 - gamma (l + 1/rho)|
    ends = np.abs(1 - gamma * (low + 1 / rho)), np.abs(1 - gamma * (high + 1 / rho))
    return np.maximum(*ends) ** steps


def _entries(matrix: Reals) -> NDArray[np.float64]:
    return np.moveaxis(np.asarray(matrix, np.float64), (-2, -1), (0, 1))


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
    moduli = low, _, rho = _moduli(strong_convexity, smoothness, rho)
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
    moduli = _moduli(strong_convexity, smoothness, rho)
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


def mean_square_rate(full_rate: Reals, participation: Reals = 1.0) -> Reals:
    """Prop. 2: sigma = sqrt(1 - p + p r^2), p the least active agent's probability.

    E|s_k - s*| <= sqrt(p_max/p_min) sigma^k |s_0 - s*|, s = (x, z), in the norm of
    `norm_weight`; the same holds for the root mean square. Corrected: print puts |S|
    for r, with the wrong constant in S (unsound for rho < 1) and often with |S| >= 1
    where S is stable (void). Pass `rate(S)` or `quadratic_rate(...)` for r. Only the
    probabilities count, not independence: K of N at random has p = K/N.

    Args:
        full_rate: Contraction r of a round in which everyone is active.
        participation: Probability of being active, one number or one per agent.
    """
    least = np.min(between(0.0, 1.0)(participation=participation))
    positive(participation=float(least))
    full_rate = _reals(not_negative, full_rate=full_rate)
    return np.sqrt(1 - least + least * full_rate**2)


def mean_bound(
    rounds: Reals, full_rate: Reals, start: float, error: float, participation: Reals
) -> Reals:
    """Prop. 2 with errors: how far (x, z) is from its fixed point after k rounds.

    E|s_k - s*| <= sqrt(p_max) ( sigma^k |s_0 - s*| / sqrt(p_min) + (1 - sigma^k) nu /
    (1 - sigma) ), with sigma of `mean_square_rate`. Errors are whatever keeps a round
    from its exact answer: stochastic gradients, noise, a prox of h that is computed
    roughly. Print has sqrt(p_max/p_min) before both terms; errors of silent agents do
    not enter, which saves the second root. The same holds for root mean squares.

    Args:
        rounds: k.
        full_rate: Contraction r of a round in which everyone is active.
        start: |s_0 - s*|, in the norm of `norm_weight`.
        error: nu, the mean length of a round's error in s, were all active. One of e in
            every x_i is one of 2 e in z_i.
        participation: Probability of being active, one number or one per agent.

    >>> float(mean_bound(1, 0.5, start=2.0, error=0.25, participation=1.0))
    1.25
    """
    rate = mean_square_rate(full_rate, participation)
    chances = np.asarray(participation, float)
    not_negative(start=start)
    not_negative(error=error)
    left = rate ** np.asarray(rounds)
    # 1 + sigma + ... + sigma^(k-1), also where sigma is 1
    slow = np.asarray(rate) >= 1
    times = np.where(slow, rounds, (1 - left) / np.where(slow, 1.0, 1 - rate))
    begun = left * start / np.sqrt(chances.min())
    return np.sqrt(chances.max()) * (begun + times * error)


def _residual(eigenvalue, low, high, rho, steps, step_size, solver):
    """What is left of a local error along a curvature after all the local steps."""
    if solver == "gradient":
        gamma = _gradient_step(low, high, rho, step_size)
        return (1 - gamma * (eigenvalue + 1 / rho)) ** steps
    # (12) on the quadratic of this curvature, from u = w = 1
    root_high, root_low = np.sqrt(high + 1 / rho), np.sqrt(low + 1 / rho)
    momentum = (root_high - root_low) / (root_high + root_low)
    shrink = 1 - (eigenvalue + 1 / rho) / (high + 1 / rho)
    before, point = np.ones_like(shrink), np.ones_like(shrink)
    left = np.ones(np.broadcast_shapes(shrink.shape, np.shape(steps)))
    for step in range(1, int(np.max(steps)) + 1):
        after = shrink * point
        point, before = after + momentum * (after - before), after
        left = np.where(steps == step, point, left)
    return left


def quadratic_rate(
    strong_convexity: Reals,
    smoothness: Reals,
    rho: Reals,
    local_steps: Reals,
    *,
    step_size: Reals | None = None,
    solver: str = "gradient",
    points: int = 129,
) -> Reals:
    """A sharper rate than S gives, for quadratic costs and near any optimum.

    Not in the paper. With v = refl(z), one agent's round along a curvature l is

        [x+]   [  g      (1 - g) q     ] [x]     g = what local training leaves,
        [z+] = [ 2 g   2 (1 - g) q - 1 ] [v]     q = 1/(1 + rho l),

    and the reflection never lengthens z. So T contracts, for any mix of agents with
    curvature in [mu, L] and any convex h, by the largest 2-norm of these matrices over
    l, in the norm that weighs z by w; this returns the least over w. It holds from any
    start for quadratics and, by linearisation, at the end of a run for twice
    differentiable costs. Unlike S it covers one local step, and it is nearly
    attained. The maximum over l is taken on `points` Chebyshev points; with the best
    step size it was at an end of [mu, L] in every setting tried.

    >>> round(float(quadratic_rate(0.5, 2.0, 1.0, 1)), 3)
    0.699
    """
    one_of(SOLVERS, solver=solver)
    low, high, rho = (v[..., None] for v in _moduli(strong_convexity, smoothness, rho))
    steps = _steps(local_steps)[..., None]
    angle = np.linspace(0, np.pi, count(points=points, at_least=2))
    eigenvalue = low + (high - low) * (1 - np.cos(angle)) / 2
    if step_size is not None:
        step_size = np.asarray(step_size)[..., None]
    left = _residual(eigenvalue, low, high, rho, steps, step_size, solver)
    answer = (1 - left) / (1 + rho * eigenvalue)
    left, answer = np.broadcast_arrays(left, answer)
    fixed, det2 = left**2 + (2 * answer - 1) ** 2, left**2

    def worst(log_weight: NDArray[np.float64]) -> NDArray[np.float64]:
        # Largest singular value from the squared Frobenius norm and det = -g.
        square = np.exp(log_weight)[..., None]
        frobenius = fixed + answer**2 / square + 4 * det2 * square
        gap = np.sqrt(np.maximum(frobenius**2 - 4 * det2, 0))
        return np.max((frobenius + gap) / 2, axis=-1)

    return np.sqrt(_least(worst, left.shape[:-1]))


def _least(function: Any, shape: tuple[int, ...]) -> Any:
    """Golden section for many functions at once; each is quasi-convex in log w^2."""
    golden = (np.sqrt(5) - 1) / 2
    start, end = np.full(shape, -20.0), np.full(shape, 40.0)
    inner, outer = end - golden * (end - start), start + golden * (end - start)
    at_inner, at_outer = function(inner), function(outer)
    for _ in range(48):
        left = at_inner < at_outer
        start, end = np.where(left, start, inner), np.where(left, outer, end)
        probe = np.where(
            left, end - golden * (end - start), start + golden * (end - start)
        )
        at_probe = function(probe)
        inner, outer = np.where(left, probe, outer), np.where(left, inner, probe)
        at_inner, at_outer = (
            np.where(left, at_probe, at_outer),
            np.where(left, at_inner, at_probe),
        )
    return np.minimum(at_inner, at_outer)


class Accuracy(NamedTuple):
    """Bounds on the root mean square distance from the fixed point, all agents' sum."""

    x: float
    z: float


def accuracy_bound(
    strong_convexity: float,
    smoothness: float,
    rho: float,
    local_steps: int,
    *,
    tau: float,
    dimension: int,
    agents: int,
    step_size: float | None = None,
) -> Accuracy:
    """Corollary 1: where noisy gradient descent (13) stops, sqrt(E|x - x*|^2) and z's.

    Every local step adds sqrt(2 gamma) tau N(0, I). Corrected: print bounds E|(x, z)|
    by tau sqrt(10 n N gamma) (1 - chi^Ne)/(1 - chi) / (1 - |S|), void when |S| >= 1
    and unsound for rho < 1 (see `transition_matrix`). Here S acts on the two root mean
    squares, which gives (I - S)^-1 (1, 2) nu for every stable S; and independent noise
    adds in squares, nu^2 = 2 gamma tau^2 n N (1 - chi^(2 Ne))/(1 - chi^2).

    Print asks for Assumption 2 (partial participation) but names no probability; this
    bound does hold for any probability common to all agents, since r^2 <= (1 - p) r^2
    + p (S r + nu)^2 in the limit, whatever p.
    """
    setting = strong_convexity, smoothness, rho
    matrix = transition_matrix(*setting, local_steps, step_size=step_size)
    if not is_stable(matrix):
        refuse(f"local_steps={local_steps} do not make S stable; raise local_steps")
    gamma = _gradient_step(*_moduli(*setting), step_size)
    chi2 = solver_contraction(*setting, 1, step_size=step_size) ** 2
    size = count(dimension=dimension) * count(agents=agents)
    growth = np.sum(chi2 ** np.arange(local_steps))
    noise = not_negative(tau=tau) * np.sqrt(2 * gamma * size * growth)
    x, z = np.linalg.solve(np.eye(2) - matrix, noise * np.array([1.0, 2.0]))
    return Accuracy(float(x), float(z))


def round_cost(
    local_steps: Reals,
    t_grad: Reals,
    t_comm: Reals,
    agents: Reals = 1,
    *,
    exchanges: int = 1,
) -> Reals:
    """The time of one round, (Ne t_G + t_C) N (Table II).

    Args:
        local_steps: Ne, gradients per agent and round.
        t_grad: Time of one local gradient.
        t_comm: Time of one exchange with the coordinator.
        agents: Agents active in a round, or their mean number.
        exchanges: 2 for FedLin, which also takes a gradient before the second
            exchange: ((Ne + 1) t_G + 2 t_C) N.

    >>> float(round_cost(5, 1, 10, 100)), float(round_cost(5, 1, 10, 100, exchanges=2))
    (1500.0, 2600.0)
    """
    gradients = _steps(local_steps) + count(exchanges=exchanges) - 1
    t_grad = _reals(not_negative, t_grad=t_grad)
    t_comm = _reals(not_negative, t_comm=t_comm)
    return (gradients * t_grad + exchanges * t_comm) * _reals(agents=agents)


def expected_rounds(contraction: Reals, accuracy: Reals) -> Reals:
    """Rounds until the distance is `accuracy` times the first: log(acc)/log(rate).

    A real number, to be rounded up to run; infinite where `contraction` is >= 1.

    >>> float(expected_rounds(0.1, 1e-6))
    6.0
    """
    accuracy = between(0.0, 1.0)(accuracy=_reals(accuracy=accuracy))
    contraction = _reals(not_negative, contraction=contraction)
    # A rate of 0 counts as the smallest number above it: less than one round.
    shrink = -np.log(np.clip(contraction, np.finfo(float).tiny, 1))
    with np.errstate(divide="ignore"):
        return np.where(shrink > 0, -np.log(accuracy) / shrink, np.inf)[()]


class Plan(NamedTuple):
    """Settings for Fed-PLT and what the theory predicts of them.

    Attributes:
        rho: Penalty of the proximal term.
        step_size: Step of the local solver.
        local_steps: Local steps a round.
        rate: Predicted contraction a round, mean-square if participation < 1.
        rounds: Predicted rounds to the accuracy asked for.
        cost: Predicted time, rounds times `round_cost`.
        guaranteed: Whether S is stable: convergence from any start is proven, not
            for quadratics only.
    """

    rho: float
    step_size: float
    local_steps: int
    rate: float
    rounds: int
    cost: float
    guaranteed: bool


def plan(
    strong_convexity: Reals,
    smoothness: Reals,
    t_grad: float,
    t_comm: float,
    *,
    agents: int = 1,
    accuracy: float = 1e-6,
    participation: float = 1.0,
    solver: str = "gradient",
    theorem: str = "quadratic",
) -> Plan:
    """The rho, step size and local steps that reach `accuracy` at the least cost.

    Minimises log(accuracy)/log(rate) * round_cost on a grid around `best_rho`, then
    on finer ones. The step size is `best_step_size`, the best for every bound on S.

    Args:
        strong_convexity: Smallest curvature, one number or one per agent.
        smoothness: Largest curvature, one number or one per agent.
        t_grad: Time of one local gradient.
        t_comm: Time of one exchange with the coordinator.
        agents: How many agents there are; scales the cost only.
        accuracy: Distance at the end over that at the start, in the weighted norm.
        participation: Probability that an agent is active in a round.
        solver: "gradient" or "accelerated".
        theorem: "quadratic" predicts with `quadratic_rate`, which is close to what
            is seen; "contraction" with S, which holds for every cost of the class
            but asks for more local steps.

    >>> plan(0.5, 2.0, t_grad=1, t_comm=10).local_steps
    4
    """
    one_of(THEOREMS, theorem=theorem)
    low, high, _ = _moduli(strong_convexity, smoothness, 1.0)
    low, high = low.min(), high.max()
    if t_grad == 0 and t_comm == 0:
        refuse("expected t_grad > 0 or t_comm > 0, got both 0; there is no cost to cut")
    active = agents * participation

    def predict(rho: Reals, steps: Reals, points: int = 9) -> tuple[Reals, Reals]:
        if theorem == "contraction":
            full = rate(transition_matrix(low, high, rho, steps, solver=solver))
        else:
            setting = low, high, rho, steps
            full = quadratic_rate(*setting, solver=solver, points=points)
        sigma = mean_square_rate(full, participation)
        rounds = expected_rounds(sigma, accuracy)
        return sigma, rounds * round_cost(steps, t_grad, t_comm, active)

    rho, steps = _cheapest(lambda *at: predict(*at)[1], low, high, solver)
    sigma, _ = predict(rho, steps, points=129)
    rounds = int(np.ceil(expected_rounds(sigma, accuracy)))
    own_step = 1 / (high + 1 / rho)
    step = own_step if solver == "accelerated" else best_step_size(low, high, rho)
    cost = rounds * round_cost(steps, t_grad, t_comm, active)
    stable = is_stable(transition_matrix(low, high, rho, steps, solver=solver))
    return Plan(
        rho, float(step), steps, float(sigma), rounds, float(cost), bool(stable)
    )


def _cheapest(cost: Any, low: Reals, high: Reals, solver: str) -> tuple[float, int]:
    """Minimise cost(rho, local_steps): a coarse grid, then finer ones around the best.

    Past a few times the steps that make S stable more of them gain nothing.
    """
    centre = float(best_rho(low, high))
    most = 4 * fewest_local_steps(low, high, centre, solver=solver) + 8
    best = centre, most
    rhos = centre * np.geomspace(0.01, 100, 33)
    steps = np.unique(np.geomspace(1, most, 24).astype(int))
    for _ in range(5):
        costs = cost(rhos[:, None], steps)
        row, column = np.unravel_index(np.argmin(costs), costs.shape)
        best = float(rhos[row]), int(steps[column])
        near = rhos[max(row - 1, 0) : row + 2]
        around = steps[max(column - 1, 0) : column + 2]
        rhos = np.unique(np.append(np.geomspace(near[0], near[-1], 9), near))
        between = np.linspace(around[0], around[-1], 9).astype(int)
        steps = np.unique(np.append(between, around))
    return best

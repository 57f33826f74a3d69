"""DP-Norm: how far one record moves a node's model, and the noise that hides it.

T. Fukami, T. Murata, K. Niwa, I. Tyou, *DP-Norm*: Lemma 1, Theorem 1, eq. (8). Letters
are functions of w + n with n ~ N(0, sigma^2 I) and of what was received, so given the
transcript one round is one Gaussian release of w, and R rounds compose as mu^2 =
R (Delta / sigma)^2.

    eta = 1/(mu E K)    gamma = 1 + alpha eta    c = 1 + 2 (gamma + 1)
    Lemma 1:  Delta_2 = 2 c mu G (K/d + 1/B),   needs mu <= 1/(c K L)

For convex losses every step is non-expansive (mu <= 2/L) and the same trajectories
obey D <- r (D + 2 mu G n_k / B) with r = gamma/(gamma + 1/K), which is 5 to 7 times
smaller: `trajectory_sensitivity`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.curve import GaussianCurve
from tacita.privacy.accounting.gaussian import gaussian_sigma
from tacita.privacy.accounting.guarantee import Guarantee, believed, enforced


def gamma_of(*, step_size: float, local_steps: int, degree: int, alpha: float) -> float:
    """The damping gamma = 1 + alpha eta with eta = 1/(mu E K)."""
    step_size = inputs.positive(step_size=step_size)
    local_steps = inputs.whole(local_steps=local_steps)
    degree = inputs.whole(degree=degree)
    alpha = inputs.not_negative(alpha=alpha)
    return 1 + alpha / (step_size * degree * local_steps)


def lemma_1_sensitivity(
    *,
    step_size: float,
    local_steps: int,
    batch: int,
    samples: int,
    gradient_bound: float,
    smoothness: float,
    degree: int,
    alpha: float,
) -> float:
    """Lemma 1: Delta_2 = 2 c mu G (K/d + 1/B); refused where its step is too long.

    >>> lemma_1_sensitivity(step_size=0.03, local_steps=10, batch=2000, samples=4000,
    ...     gradient_bound=1.0, smoothness=0.5, degree=2, alpha=0.2)
    0.00102
    """
    gamma = gamma_of(
        step_size=step_size, local_steps=local_steps, degree=degree, alpha=alpha
    )
    batch, samples = inputs.whole(batch=batch), inputs.whole(samples=samples)
    bound = inputs.positive(gradient_bound=gradient_bound)
    c = 1 + 2 * (gamma + 1)
    longest = 1 / (c * local_steps * inputs.positive(smoothness=smoothness))
    if step_size > longest:
        check.refuse(
            f"Lemma 1 of DP-Norm needs step_size <= 1/(c K L) = {longest:g}, got "
            f"step_size={step_size}"
        )
    return 2 * c * step_size * bound * (local_steps / samples + 1 / batch)


def step_shrinkage(
    *,
    step_size: float,
    local_steps: int,
    degree: int,
    alpha: float,
    neighbour_degrees: Sequence[int] | None = None,
) -> float:
    """How much of a difference one step keeps: r = 1/(1 + mu sum_j eta_ij/gamma_ij).

    Equal to gamma/(gamma + 1/K) where all degrees are equal.

    With `neighbour_degrees` each edge has eta_ij = 1/(mu K max(E_i, E_j)), the choice
    that keeps the optimum of irregular graphs.
    """
    degrees = [degree] * degree if neighbour_degrees is None else neighbour_degrees
    check.shape((degree,), neighbour_degrees=degrees)
    pull = 0.0
    for other in degrees:
        larger = max(degree, inputs.whole(neighbour_degrees=other))
        gamma = gamma_of(
            step_size=step_size, local_steps=local_steps, degree=larger, alpha=alpha
        )
        pull += 1 / (local_steps * larger * gamma)
    return 1 / (1 + pull)


def trajectory_sensitivity(
    *,
    shrinkage: float,
    step_size: float,
    local_steps: int,
    batch: int,
    samples: int,
    gradient_bound: float,
    any_step: bool = False,
) -> float:
    """The tight bound for convex losses and one fresh permutation a round.

    A record is used once in every m = d/B steps, at worst in the last one. Where m
    divides K this is (2 mu G/B) r/(1 - r^m), the same for every round.

    Args:
        shrinkage: r, from `step_shrinkage`.
        step_size: mu.
        local_steps: K inner steps a round.
        batch: B; must divide `samples`.
        samples: d, records of the node.
        gradient_bound: G, the largest norm of one record's gradient.
        any_step: Letters may leave after any inner step, not only after the last.

    >>> round(trajectory_sensitivity(shrinkage=40/43, step_size=0.03, local_steps=10,
    ...     batch=2000, samples=4000, gradient_bound=1.0), 8)
    0.00020723
    """
    shrinkage = inputs.inside_unit(shrinkage=shrinkage)
    kick = 2 * inputs.positive(step_size=step_size)
    kick *= inputs.positive(gradient_bound=gradient_bound) / inputs.whole(batch=batch)
    local_steps = inputs.whole(local_steps=local_steps)
    period, rest = divmod(inputs.whole(samples=samples), batch)
    if rest:
        check.refuse(
            "the tight bound needs batch to divide samples, got "
            f"batch={batch}, samples={samples}; use bound='lemma_1'"
        )

    def within_the_round(steps: int) -> float:
        # Worst ages of the hits after `steps` steps: the running epoch's hit is the
        # last step, each complete epoch's hit its own last step.
        start = steps % period
        ages = [] if start == 0 else [0]
        ages += range(start, steps, period)
        return kick * sum(shrinkage ** (age + 1) for age in ages)

    carried = within_the_round(local_steps) / (1 - shrinkage**local_steps)
    if not any_step:
        return carried
    return max(
        within_the_round(steps) + shrinkage**steps * carried
        for steps in range(1, local_steps + 1)
    )


def theorem_1_factor(epsilon: float, delta: float, rounds: int) -> float:
    """J of Theorem 1 in the form of (8): sound, 1.2 to 1.5 times more than needed.

    The printed theorem has epsilon inside the root; (8) is the one that holds.

    >>> round(theorem_1_factor(1.0, 1e-3, 2000), 9)
    167.69700165
    """
    epsilon = inputs.positive(epsilon=epsilon)
    delta = inputs.inside_unit(delta=delta)
    rounds = inputs.whole(rounds=rounds)
    h = theorem_1_h(epsilon, delta)
    spread = math.log(math.e + epsilon / (math.sqrt(2 * h) * delta))
    first = math.sqrt(2 * h * rounds * spread) / epsilon
    return max(first, math.sqrt(rounds / (2 * epsilon)))


def theorem_1_h(epsilon: float, delta: float) -> float:
    """The h of Theorem 1: (1 + sqrt(1 + eps/l))^2 / 4."""
    root = (1 + math.sqrt(1 + epsilon)) * delta
    spread = math.log(math.e + math.sqrt(2) * epsilon / root)
    return (1 + math.sqrt(1 + epsilon / spread)) ** 2 / 4


def tight_factor(epsilon: float, delta: float, rounds: int) -> float:
    """The smallest sigma / Delta for R rounds: sqrt(R) times the analytic Gaussian."""
    return math.sqrt(inputs.whole(rounds=rounds)) * gaussian_sigma(epsilon, delta)


def dp_norm_sigma(
    epsilon: float,
    delta: float,
    rounds: int,
    sensitivity: float,
    method: Literal["analytic", "paper"] = "analytic",
) -> float:
    """The noise of DP-Norm for a budget; both methods are private, `paper` noisier."""
    check.one_of(("analytic", "paper"), method=method)
    factor = tight_factor if method == "analytic" else theorem_1_factor
    return factor(epsilon, delta, rounds) * inputs.positive(sensitivity=sensitivity)


def dp_norm(
    *,
    observer: str,
    noise_std: float,
    rounds: int,
    step_size: float,
    local_steps: int,
    batch: int,
    samples: int,
    gradient_bound: float,
    smoothness: float,
    degree: int,
    alpha: float,
    neighbour_degrees: Sequence[int] | None = None,
    bound: Literal["tight", "lemma_1"] = "tight",
    exchange: Literal["synchronous", "asynchronous"] = "synchronous",
    fresh_noise_per_letter: bool = False,
    clipped: bool = False,
) -> Guarantee:
    """The guarantee of DP-Norm for one record of one node (replace-one).

    `tight` needs convex losses and mu <= 2/L, `lemma_1` any smooth losses and
    mu <= 1/(c K L). An asynchronous exchange needs fresh noise for every letter: with
    one draw a round, two neighbours who compare letters learn w^{k2} - w^{k1} exactly.
    """
    _refuse_observer(observer)
    check.one_of(("synchronous", "asynchronous"), exchange=exchange)
    if exchange == "asynchronous" and not fresh_noise_per_letter:
        check.refuse(
            "asynchronous DP-Norm with one noise draw a round leaks: the noise cancels "
            "between letters; set fresh_noise_per_letter=True or exchange synchronously"
        )
    change = _sensitivity(
        bound,
        exchange == "asynchronous",
        neighbour_degrees,
        inputs.positive(smoothness=smoothness),
        graph={
            "step_size": step_size,
            "local_steps": local_steps,
            "degree": degree,
            "alpha": alpha,
        },
        data={"batch": batch, "samples": samples, "gradient_bound": gradient_bound},
    )
    letters = degree if fresh_noise_per_letter else 1
    mu = change / inputs.positive(noise_std=noise_std)
    norm = f"every record's gradient has norm at most {gradient_bound:g}"
    return Guarantee(
        curve=GaussianCurve(mu).repeat(letters * inputs.whole(rounds=rounds)),
        observer=observer,
        unit="record",
        relation="replace_one",
        theorem=_theorem(bound),
        assumptions=(
            enforced(norm) if clipped else believed(norm),
            believed(
                f"losses are {smoothness:g}-smooth"
                + (" and convex" if bound == "tight" else "")
            ),
            believed("batches come from a fresh permutation in every round"),
            believed("w itself is not published: only letters are protected"),
        ),
    )


def _sensitivity(
    bound: str,
    any_step: bool,
    neighbour_degrees: Sequence[int] | None,
    smoothness: float,
    graph: dict,
    data: dict,
) -> float:
    """The sensitivity of one letter by the bound asked for, if its conditions hold."""
    check.one_of(("tight", "lemma_1"), bound=bound)
    degree, step_size = graph["degree"], graph["step_size"]
    if bound == "lemma_1":
        irregular = any(other != degree for other in neighbour_degrees or ())
        if any_step or irregular:
            check.refuse(
                "Lemma 1 of DP-Norm covers synchronous rounds on regular graphs; use "
                "bound='tight'"
            )
        return lemma_1_sensitivity(**graph, **data, smoothness=smoothness)
    if inputs.positive(step_size=step_size) > 2 / smoothness:
        check.refuse(
            f"the tight bound needs step_size <= 2/L = {2 / smoothness:g}, got "
            f"step_size={step_size}"
        )
    return trajectory_sensitivity(
        shrinkage=step_shrinkage(**graph, neighbour_degrees=neighbour_degrees),
        step_size=step_size,
        local_steps=graph["local_steps"],
        any_step=any_step,
        **data,
    )


def _refuse_observer(observer: str) -> None:
    if inputs.observer(observer) == "final_model":
        check.refuse(
            "DP-Norm protects letters; its final w carries no noise. Publish w + n (one"
            " more release) or a function of letters, and ask for observer='neighbour'"
        )


def _theorem(bound: str) -> str:
    if bound == "tight":
        return (
            "trajectory sensitivity of convex DP-Norm, composed as Gaussian releases "
            "given the received letters"
        )
    return "DP-Norm Lemma 1, composed as Gaussian releases given the received letters"

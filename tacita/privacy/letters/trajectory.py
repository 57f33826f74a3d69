"""DP-Norm: how far one record moves a node's model.

T. Fukami, T. Murata, K. Niwa, I. Tyou, *DP-Norm*. Letters are functions of w + n with
n ~ N(0, sigma^2 I) and of what was received, so given the transcript one round is one
Gaussian release of w, and R rounds compose as mu^2 = R (Delta / sigma)^2.

For convex losses every step is non-expansive (mu <= 2/L) and trajectories obey
D <- r (D + 2 mu G n_k / B), with r what a step keeps of a difference. That is 5 to 7
times smaller than the paper's Lemma 1.
"""

from __future__ import annotations

from tacita import check
from tacita.privacy import inputs


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
        shrinkage: r, what a step keeps of a difference, in (0, 1).
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
            f"the tight bound needs batch to divide samples, got batch={batch}, "
            f"samples={samples}; take a batch that does"
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

"""The paper's benchmark: Fashion-MNIST on a ring, and the noise of every method."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tacita
from papers.dp_norm.common.as_printed import (
    dp_norm_sigma,
    lemma_1_sensitivity,
    step_shrinkage,
)
from tacita.privacy import Clipped, gaussian_sigma
from tacita.privacy.letters.trajectory import trajectory_sensitivity
from tacita.problem import graph
from tacita.schedule import Polynomial

#: Settings of the convex model: mu, K, B, R, alpha, (G, L), delta.
STEP, STEPS, BATCH, ROUNDS, ALPHA = 0.03, 10, 2000, 2000, 0.2
GRADIENT_BOUND, SMOOTHNESS, DELTA = 1.0, 0.5, 1e-3
PER_NODE, CLASSES_PER_NODE = 4000, 6
#: The l2 weight that goes with each split.
L2 = {0: 1e-3, 1: 1e-4}
#: No softmax gradient of a record of length 1 is longer.
SAFE_BOUND = math.sqrt(2)
PENALTY = 1e-4  # rho of DP-ADMM

permuted = tacita.Minibatch(size=BATCH, sampling="permutation")


@functools.cache
def images() -> Any:
    """Fashion-MNIST, every image scaled to l2 norm 1."""
    return tacita.data.load("fashion-mnist", scale="unit")


def deal(nodes: int, split: int, iid: bool = False) -> np.ndarray:
    """The node of every training image, -1 for those that nobody holds."""
    labels = images().y
    if iid:
        order = tacita.data.split_by_classes(
            labels, nodes, 10, seed=split, per_agent=PER_NODE, balanced=True
        )
        return order
    return tacita.data.split_by_classes(
        labels, nodes, CLASSES_PER_NODE, seed=split, per_agent=PER_NODE, balanced=True
    )


def problem(
    nodes: int = 6,
    split: int = 0,
    l2: float | None = None,
    iid: bool = False,
    features: Callable[[np.ndarray], np.ndarray] | None = None,
    validate: bool = False,
) -> tacita.Problem:
    """Softmax regression without bias on a ring.

    Args:
        nodes: On the ring; 1 pools the data of a ring of six on a single node.
        split: Seed of the classes and images of every node.
        l2: Weight of the regulariser; None takes that of the split.
        iid: Give every node all classes.
        features: A map of images that does not depend on the data, or None.
        validate: Measure on training images that no node holds, not on the test set.
    """
    data, pooled = images(), nodes == 1
    node = deal(6 if pooled else nodes, split, iid)
    held = node >= 0
    free = np.flatnonzero(~held)[:10_000]
    tested = (data.x[free], data.y[free]) if validate else (data.test_x, data.test_y)
    change = features or (lambda x: x)
    return tacita.from_arrays(
        change(data.x[held]),
        data.y[held],
        np.zeros(held.sum(), int) if pooled else node[held],
        model="softmax",
        l2=L2[split] if l2 is None else l2,
        classes=range(10),
        graph=None if pooled else graph.ring(nodes),
        test=(change(tested[0]), tested[1]),
        dtype=np.float32,
        bound=1.0,  # images have norm 1, and features of them too
        name="fashion-mnist",
    )


def paper_noise(
    epsilon: float | None, alpha: float, rounds: int = ROUNDS, batch: int = BATCH
) -> float:
    """DP-Norm's noise by Lemma 1 and Theorem 1, form (8)."""
    if epsilon is None:
        return 0.0
    change = lemma_1_sensitivity(
        step_size=STEP,
        local_steps=STEPS,
        batch=batch,
        samples=PER_NODE,
        gradient_bound=GRADIENT_BOUND,
        smoothness=SMOOTHNESS,
        degree=2,
        alpha=alpha,
    )
    return dp_norm_sigma(epsilon, DELTA, rounds, change, "paper")


def tight_noise(
    epsilon: float, alpha: float, rounds: int = ROUNDS, batch: int = BATCH
) -> float:
    """DP-Norm's noise by the tight trajectory bound and the analytic Gaussian."""
    shrinkage = step_shrinkage(step_size=STEP, local_steps=STEPS, degree=2, alpha=alpha)
    change = trajectory_sensitivity(
        shrinkage=shrinkage,
        step_size=STEP,
        local_steps=STEPS,
        batch=batch,
        samples=PER_NODE,
        gradient_bound=SAFE_BOUND,
    )
    return dp_norm_sigma(epsilon, DELTA, rounds, change)


def gossip_paper_noise(
    epsilon: float | None,
    rounds: int = ROUNDS,
    steps: int = STEPS,
    samples: int = PER_NODE,
) -> float:
    """Table II for DP-SGD, in w: sqrt(K R log(1/delta)) mu / (eps d); here in g."""
    if epsilon is None:
        return 0.0
    return math.sqrt(steps * rounds * math.log(1 / DELTA)) / (epsilon * samples)


def admm_paper_noise(
    epsilon: float | None,
    rounds: int = ROUNDS,
    steps: int = STEPS,
    samples: int = PER_NODE,
) -> float:
    """Table II for DP-ADMM, in w, times 2 rho E + 1/mu: here in g."""
    if epsilon is None:
        return 0.0
    spread = math.sqrt(2 * steps * rounds * math.log(1.25 / DELTA))
    return 2 * GRADIENT_BOUND * spread / (epsilon * samples)


def admm_paper_step(
    epsilon: float,
    radius: float = 1.0,
    rounds: int = ROUNDS,
    steps: int = STEPS,
    samples: int = PER_NODE,
    nodes: int = 6,
    dim: int = 7840,
) -> Polynomial:
    """Table II's step of DP-ADMM by round; in local step k it is this over sqrt(k).

    1/mu_kr = (sqrt(2 k r)/D) sqrt(G^2/N^2 + p G^2 K R log(1.25/delta)/(d^2 eps^2)),
    with D = `radius`, the largest norm of a model. Its noise in w is the one of
    `admm_paper_noise` at that step.

    >>> admm_paper_step(1.0).over(2000)[[0, 1999]].round(4).tolist()
    [0.0846, 0.0019]
    """
    noise = dim * steps * rounds * math.log(1.25 / DELTA) / (samples * epsilon) ** 2
    spread = GRADIENT_BOUND * math.sqrt(1 / nodes**2 + noise)
    return Polynomial(start=radius / (math.sqrt(2) * spread), power=0.5)


def sound_gradient_noise(epsilon: float, rounds: int = ROUNDS) -> float:
    """The noise in every gradient of gossip and ADMM for a sound budget.

    Batches of an epoch are disjoint, so that a record is in K/(d/B) of a round's K
    gradients, each of which it moves by 2 G/B.
    """
    uses = math.ceil(STEPS / (PER_NODE // BATCH)) * rounds
    change = 2 * SAFE_BOUND / BATCH
    return gaussian_sigma(epsilon, DELTA) * math.sqrt(uses) * change


def safely_clipped() -> Clipped:
    """Batches as in the paper, every record's gradient clipped to sqrt(2)."""
    return Clipped(norm=SAFE_BOUND, oracle=permuted)

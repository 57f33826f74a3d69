"""Figure 2, non-convex: ResNet-10 with group normalisation, at a small scale.

Pictures of 14 x 14, a narrow network, few images and rounds: what two cores can do in
minutes. It shows that everything runs, per-example clipping included, and what a sound
epsilon costs a non-convex model, not the paper's accuracies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tacit
from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common.pages import RESULTS, grid, script, write_page
from tacit.privacy import Clipped
from tacit.problem import graph, resnet10

NODES, PER_NODE, BATCH, STEPS, ROUNDS = 6, 120, 40, 3, 10
STEP, ALPHA, WIDTH, SIDE = 0.05, 0.001, 4, 14
TESTED = 500


def problem() -> tacit.Problem:
    """Non-iid pictures of half the resolution on a ring."""
    data = b.images()
    node = tacit.data.split_by_classes(
        data.y, NODES, b.CLASSES_PER_NODE, seed=0, per_agent=PER_NODE, balanced=True
    )

    def small(x: np.ndarray) -> np.ndarray:
        pooled = x.reshape(-1, SIDE, 2, SIDE, 2).mean(axis=(2, 4)).reshape(len(x), -1)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True) * SIDE

    held = node >= 0
    return tacit.from_arrays(
        small(data.x[held]),
        data.y[held],
        node[held],
        model=resnet10((SIDE, SIDE, 1), 10, width=WIDTH, groups=2),
        classes=range(10),
        graph=graph.ring(NODES),
        test=(small(data.test_x[:TESTED]), data.test_y[:TESTED]),
        name="fashion-mnist 14x14",
    )


def methods() -> dict[str, Any]:
    """Without noise; then clipped, with a little noise."""
    batches = tacit.Minibatch(size=BATCH, sampling="permutation")
    given: dict[str, Any] = {"step_size": STEP, "local_steps": STEPS}
    clipped = Clipped(norm=1.0, oracle=batches, microbatch=20)
    return {
        "DP-Norm, no noise": tacit.DPNorm(alpha=ALPHA, oracle=batches, **given),
        "gossip SGD, no noise": tacit.GossipSGD(oracle=batches, **given),
        "DP-Norm, clipped to 1, noise 0.003": tacit.DPNorm(
            alpha=ALPHA, oracle=clipped, noise_std=0.003, **given
        ),
    }


def main(out: Path = RESULTS) -> Path:
    """Accuracies, and what the noise is worth."""
    made, rows = problem(), []
    for name, algorithm in methods().items():
        run = tacit.simulate(
            made,
            algorithm,
            ROUNDS,
            record=("loss", "test_accuracy"),
            record_every=ROUNDS,
            progress=False,
        )
        worth: Any = "–"
        if run.privacy is not None:
            row = run.privacy.row("neighbour")
            # A bound beyond all use is told as none.
            worth = "none" if row.epsilon is None else f"{row.epsilon:.3g}"
        metrics = run.metrics
        rows.append(
            [
                name,
                float(metrics["loss"][-1] / NODES),
                float(metrics["test_accuracy"][-1]),
                worth,
            ]
        )
    heads = ["method", "training loss, mean over nodes"]
    heads += [f"test accuracy of the mean model ({TESTED} images)"]
    heads += ["epsilon against a neighbour, record, delta = 1e-5"]
    return write_page(
        out,
        "figure_2_resnet",
        [
            "# Figure 2, non-convex: ResNet-10 with group normalisation, small",
            f"Ring of {NODES}, {PER_NODE} images of {SIDE} x {SIDE} and 6 of 10 "
            f"classes a node, width {WIDTH} ({made.dim} parameters), K = {STEPS}, B = "
            f"{BATCH}, mu = {STEP:g}, alpha = {ALPHA:g}, {ROUNDS} rounds. The paper: "
            "4,000 images of 28 x 28, width 64, K = 10, B = 500, mu = 0.001, 1,000 "
            "rounds.",
            grid(heads, rows),
            "**Difference.** At this scale no accuracy of the paper can be compared. "
            "For a network no smoothness is known, and the paper assumes G = 1 and L = "
            "1/2 without enforcing either. With clipping, the only bound that holds is "
            "that two clipped gradients differ by at most 2C in every step, which is "
            "the epsilon above: no useful privacy. (Clipped steps are also shorter, so "
            "that ten rounds of them hardly train.) Lemma 1 with a *believed* L is "
            "`tacit.privacy.dp_norm(..., "
            "bound='lemma_1')`.",
        ],
    )


if __name__ == "__main__":
    script(main)

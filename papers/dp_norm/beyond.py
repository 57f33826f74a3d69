"""Beyond the paper: its benchmark at a sound epsilon of 1 and 0.5.

DP-Norm itself, with three changes: features of images that are fixed before any data is
seen, full batches with one long step a round, and the tight sensitivity. What is
measured is what may be published: the models that letters show, noise included.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

import tacita
from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex, runs
from papers.dp_norm.common.features import oriented_gradients
from papers.dp_norm.common.pages import RESULTS, grid, script, write_page
from tacita.privacy import Clipped, Question, Scope, guarantee

#: Chosen on training images that no node holds, see the page.
ROUNDS, STEP, ALPHA = 200, 3.99, 0.2
EPSILONS = (None, 1.0, 0.5)
#: What was tried; every entry was run once, on split 0 and seed 0.
TRIED_ROUNDS, TRIED_ALPHAS = (50, 100, 200, 400), (0.0, 0.2, 1.0)
MEASURES: dict[str, runs.Measure] = {
    "released": runs.released_accuracy,
    "own": runs.own_accuracy,
}


def configuration(
    problem: tacita.Problem, epsilon: float | None, rounds: int, alpha: float = ALPHA
) -> tacita.DPNorm:
    """DP-Norm with its noise set for a budget against a neighbour, or without noise."""
    plain = tacita.DPNorm(
        step_size=STEP,
        local_steps=1,
        alpha=alpha,
        noise_std=0.0,
        oracle=Clipped(norm=b.SAFE_BOUND),
    )
    if epsilon is None:
        return plain
    return tacita.private(
        problem,
        plain,
        epsilon=epsilon,
        delta=b.DELTA,
        observer="neighbour",
        rounds=rounds,
        norm=b.SAFE_BOUND,
    )


def bare(algorithm: tacita.DPNorm) -> tacita.DPNorm:
    """The same without the promise, which has numbers that differ between lanes."""
    return tacita.DPNorm(
        step_size=STEP,
        local_steps=1,
        alpha=algorithm.alpha,
        noise_std=algorithm.noise_std,
        oracle=Clipped(norm=b.SAFE_BOUND),
    )


def made(split: int, validate: bool) -> tacita.Problem:
    """The benchmark on oriented gradients, without a regulariser."""
    return b.problem(
        split=split, l2=0.0, features=oriented_gradients, validate=validate
    )


def tune(problem: tacita.Problem, rounds: int) -> list[dict[str, Any]]:
    """Validation accuracies for a number of rounds, every alpha and epsilon."""
    pairs = [(a, e) for a in TRIED_ALPHAS for e in EPSILONS if e is not None]
    lanes = [bare(configuration(problem, e, rounds, a)) for a, e in pairs]
    found = runs.curves(problem, lanes, rounds, rounds, MEASURES)
    return [
        {
            "rounds": rounds,
            "alpha": a,
            "epsilon": e,
            "accuracy": found["released"][k, -1],
        }
        for k, (a, e) in enumerate(pairs)
    ]


def stated(problem: tacita.Problem, algorithm: tacita.DPNorm) -> Any:
    """The guarantee of one record of node 0 against a neighbour."""
    question = Question(scope=Scope("neighbour"), agent=0, rounds=ROUNDS)
    return guarantee(algorithm, problem, question)


def main(repetitions: int = 3, out: Path = RESULTS) -> Path:
    """Tune on images that no node holds, then test with as many splits as seeds."""
    held_out = made(0, validate=True)
    tried = [line for rounds in TRIED_ROUNDS for line in tune(held_out, rounds)]
    del held_out
    accuracy = np.zeros((len(MEASURES), len(EPSILONS), repetitions))
    said: list[Any] = []
    for seed in range(repetitions):
        problem = made(seed, validate=False)
        chosen = [configuration(problem, e, ROUNDS) for e in EPSILONS]
        lanes = [bare(one) for one in chosen]
        found = runs.curves(problem, lanes, ROUNDS, ROUNDS, MEASURES, seed)
        for m, name in enumerate(MEASURES):
            accuracy[m, :, seed] = found[name][:, -1]
        if not said:
            said = [stated(problem, one) for one in chosen[1:]]
    lines = [
        {
            "method": "DP-Norm, oriented gradients",
            "noise": "sound",
            "epsilon": "inf" if e is None else f"{e:g}",
            "round": ROUNDS,
            "accuracy": f"{accuracy[1, k, seed]:.6g}",
            "released accuracy": f"{accuracy[0, k, seed]:.6g}",
        }
        for k, e in enumerate(EPSILONS)
        for seed in range(repetitions)
    ]
    convex.write(out / "beyond.csv", lines)
    return page(out, accuracy, tried, said)


def page(out: Path, accuracy: np.ndarray, tried: list, said: list) -> Path:
    """Accuracies, the tuning, and what is guaranteed."""
    repetitions = accuracy.shape[-1]
    rows = [
        [
            "infinite" if e is None else f"{e:g}",
            *(float(v) for v in accuracy[0, k]),
            float(accuracy[0, k].mean()),
            float(accuracy[1, k].mean()),
        ]
        for k, e in enumerate(EPSILONS)
    ]
    seeds = [f"seed {k}" for k in range(repetitions)]
    heads = ["epsilon", *seeds, "mean, released models", "mean, nodes' own models"]
    one, who = said[0], said[0].scope
    tuned = [
        [t["rounds"], t["alpha"], t["epsilon"], float(t["accuracy"])] for t in tried
    ]
    limit = 2 / 0.5
    return write_page(
        out,
        "beyond",
        [
            "# Beyond the paper: DP-Norm with sound accounting and fixed features",
            "Fashion-MNIST, ring of 6, 6 of 10 classes and 4,000 images a node, "
            "softmax regression without bias on 392 oriented gradients "
            "(`common/features.py`: fixed before any data is seen; 7 x 7 cells, 8 "
            "directions, length 1). DP-Norm, corrected form, synchronous: full "
            f"batches, K = 1, step {STEP:g} (at most 2/L = {limit:g}, L = 1/2 for "
            f"rows of length 1), alpha = {ALPHA:g}, {ROUNDS} rounds, no regulariser. "
            "Split, batches and noise are drawn anew for every seed. Accuracy is that "
            "on the 10,000 test images, averaged over the six nodes' models; "
            "*released* models are w + n, what the last letters show.",
            grid(heads, rows),
            f"**Guarantee.** Against the {who.observer}, who sees every letter of the "
            f"node and may compare notes with its other neighbours; one {who.unit}, "
            f"{who.relation}; delta = {b.DELTA:g}; epsilon = "
            + " and ".join(f"{g.epsilon(b.DELTA):.4f}" for g in said)
            + f". Theorem: {one.theorem}. Assumptions: "
            + "; ".join(f"{a.statement} ({a.status})" for a in one.assumptions)
            + ". The released model is a function of letters and costs nothing more.",
            "**Tuning.** On 10,000 training images that no node of split 0 holds, seed "
            "0, rounds and alpha as below; the step is the longest that the bound "
            "allows. That tuning is not itself private; it looked at images that are "
            "in nobody's data set. On other splits some of these images are held by "
            "nodes. Validation accuracy of released models:",
            grid(["rounds", "alpha", "epsilon", "accuracy"], tuned),
            "**Why it is better.** On 784 pixels the paper's numbers take 20,000 short "
            "steps with noise for Lemma 1. One full-batch step a round moves w by at "
            f"most {2 * STEP * b.SAFE_BOUND / b.PER_NODE:.2e} for one record, and few "
            "rounds compose to little: the noise in a letter is then "
            f"{math.sqrt(ROUNDS):.1f} times the analytic Gaussian's, on half as many "
            "dimensions, in a problem that gradient descent solves in hundreds of "
            "steps because its features have no common mean.",
        ],
    )


if __name__ == "__main__":
    script(main)

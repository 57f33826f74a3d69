"""Table IV (first version): asymptotic error of Fed-PLT with noisy local steps."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import numpy as np

import tacita
from papers.common.kept import Kept
from papers.fed_plt.common.problems import ROWS, TUNING_SEEDS, Instance, first
from papers.fed_plt.common.progress import watched
from papers.fed_plt.common.tables import REPETITIONS, RESULTS, Page, script
from papers.fed_plt.common.tuning import choose, penalties, rate_score
from tacita.algorithm.solvers import GradientDescent
from tacita.privacy import gradient_noise

LOCAL_STEPS = 10
#: Printed errors by variance.
PAPER = {
    1e-6: 0.1357,
    1e-5: 0.1359,
    1e-4: 0.1380,
    1e-3: 0.1569,
    1e-2: 0.2957,
    1e-1: 0.8478,
    1.0: 2.7529,
    10.0: 9.8387,
}
#: Long enough to forget the start.
ROUNDS = 100
MEASURED = (
    "norm of sum_i grad f_i(mean x_i)",
    "norm of X - x*",
    "norm of mean x_i - x*",
    "norm of y - x*",
)


def noisy(algorithm: tacita.FedPLT, variance: float) -> tacita.FedPLT:
    """Noise of std sqrt(2 gamma) sqrt(variance), gamma the step for the sum loss."""
    step = algorithm.solver.step_size
    solver = GradientDescent(step_size=step, local_steps=LOCAL_STEPS)
    noise = tacita.Noisy(std=gradient_noise(math.sqrt(variance / ROWS), step))
    return tacita.FedPLT(rho=algorithm.rho, solver=solver, oracle=noise)


def errors(instance: Instance, base: tacita.FedPLT, seed: int) -> np.ndarray:
    """What was measured after the last round (rows), by variance."""
    problem = instance.problem
    run = tacita.sweep(
        problem,
        [noisy(base, variance) for variance in PAPER],
        ROUNDS,
        seed=seed,
        start=instance.start,
        record=(),
        progress=False,
    )
    optimum, mean = problem.solve(), run.agents.mean(axis=1)
    gradients = ROWS * np.array([problem.grad(point) for point in mean])
    return np.array(
        [
            np.linalg.norm(gradients, axis=1),
            np.linalg.norm(run.agents - optimum, axis=(1, 2)),
            np.linalg.norm(mean - optimum, axis=1),
            np.linalg.norm(run.params - optimum, axis=1),
        ]
    )


def main(
    repetitions: int = REPETITIONS, out: Path = RESULTS, resume: bool = False
) -> Path:
    """Table IV of the first version."""
    kept = Kept(out, "v1_table_4", resume)
    choice = choose(penalties, LOCAL_STEPS, first, "rho", rate_score(), kept=kept)

    def one(repetition: int) -> np.ndarray:
        instance = first(repetition)
        return errors(instance, choice.on(instance.problem), repetition)

    numbers = watched(range(1, repetitions + 1), "Table IV")
    found = [kept(f"repetition {k}", partial(one, k)) for k in numbers]
    means = np.mean(found, axis=0)
    rows = [
        [f"{variance:g}", printed, *map(float, means[:, k])]
        for k, (variance, printed) in enumerate(PAPER.items())
    ]
    at_one = list(PAPER).index(1.0)
    told = ", ".join(f"{m:.3g}" for m in means[:, at_one])
    page = Page(
        "Table IV (first version): asymptotic error with noisy local steps",
        [
            "The problem of `v1_table_2.md`, Ne = 10, step of theory, rho the best of "
            f"48 on {len(TUNING_SEEDS)} tuning instances; the column read as a "
            f"variance; after {ROUNDS} rounds, mean over {repetitions} repetitions of "
            "data, x0 and noise. The paper does not say what its error is a norm of, "
            "so four readings are shown.",
        ],
        ("variance", "paper", *MEASURED),
        rows,
        [
            "**Difference.** Not reproduced. Ours fall to zero as the root of the "
            "variance, whichever norm is taken; print levels off at 0.1357, which "
            "neither the algorithm nor its theory explains (without noise it is "
            f"exact). At variance 1 ours are {told}, print has 2.753. Other readings, "
            "one of which comes near, are in `v1_table_4_readings.md`."
        ],
        {"Fed-PLT": choice},
    )
    return page.write(out, "v1_table_4")


if __name__ == "__main__":
    script(main)

"""Table II (revised), convex: ordinary settings that give the printed counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tacita
from papers.common.kept import Kept
from papers.fed_plt.common.comparison import LOCAL_STEPS, paper_rounds
from papers.fed_plt.common.measures import Case, repeat
from papers.fed_plt.common.problems import revised
from papers.fed_plt.common.tables import REPETITIONS, RESULTS, Page, Spread, script
from papers.fed_plt.common.tuning import METHODS, fed_plt
from papers.fed_plt.table_2 import PAPER, T_COMM, T_GRAD
from tacita.algorithm.solvers import GradientDescent


def fed_plt_case(problem: tacita.Problem) -> tacita.FedPLT:
    """Fed-PLT with rho = 1.2."""
    return fed_plt(problem, 1.2, LOCAL_STEPS)


def fed_pd(problem: tacita.Problem) -> tacita.FedPD:
    """FedPD with the step of theory for eta = 0.5."""
    step = fed_plt(problem, 0.5, LOCAL_STEPS).solver.step_size
    return tacita.FedPD(eta=0.5, step_size=step, local_steps=LOCAL_STEPS)


def five_gcs(problem: tacita.Problem) -> tacita.FiveGCS:
    """5GCS with gamma = 0.65 and tau = 2/(gamma N)."""
    return tacita.FiveGCS(
        gamma=0.65,
        tau=2 / (0.65 * problem.n_agents),
        solver=GradientDescent(local_steps=LOCAL_STEPS),
    )


def led(problem: tacita.Problem) -> tacita.LED:
    """LED with alpha = 0.12 and beta = 1/Ne."""
    return tacita.LED(step_size=0.12, beta=1 / LOCAL_STEPS, local_steps=LOCAL_STEPS)


def tamuna(problem: tacita.Problem) -> tacita.TAMUNA:
    """TAMUNA with gamma = 0.25 and eta = 1/Ne."""
    return tacita.TAMUNA(step_size=0.25, eta=1 / LOCAL_STEPS, local_steps=LOCAL_STEPS)


def fed_lin(problem: tacita.Problem) -> tacita.FedLin:
    """FedLin with gamma = 0.62."""
    return tacita.FedLin(step_size=0.62, local_steps=LOCAL_STEPS)


SETTINGS = {
    "FedPD": ("eta 0.5, step of theory", fed_pd),
    "FedLin": ("gamma 0.62", fed_lin),
    "TAMUNA": ("gamma 0.25, eta 1/Ne", tamuna),
    "LED": ("alpha 0.12, beta 1/Ne", led),
    "5GCS": ("gamma 0.65, tau 2/(gamma N)", five_gcs),
    "Fed-PLT": ("rho 1.2, step of theory", fed_plt_case),
}


def main(
    repetitions: int = REPETITIONS, out: Path = RESULTS, resume: bool = False
) -> Path:
    """The convex column of Table II, revised version, at fixed settings."""
    kept = Kept(out, "table_2_untuned", resume)
    cases = {
        name: Case(build, METHODS[name].measured)
        for name, (_, build) in SETTINGS.items()
    }
    rounds = repeat(revised, cases, repetitions, "Table II, untuned", kept=kept)
    rows, gaps = [], []
    for name, (words, _) in SETTINGS.items():
        printed = paper_rounds(name, PAPER[name][0], T_GRAD, T_COMM)
        ours = float(np.nanmean(rounds[name]))
        gaps.append(abs(ours / printed - 1))
        rows.append(
            [
                name,
                words,
                f"{printed:.0f}",
                Spread(rounds[name]),
                f"{ours / printed:.2f}",
            ]
        )
    page = Page(
        "Table II (revised version), convex: settings that give the printed counts",
        [
            "The problem of `table_2.md`; every method at one ordinary setting, found "
            "by looking for the printed count and not tuned for speed; "
            f"{repetitions} repetitions.",
        ],
        (
            "method",
            "setting",
            "paper's rounds",
            "our rounds (mean ± sd)",
            "ours / paper",
        ),
        rows,
        [
            "**Difference.** At these settings every mean is within "
            f"{100 * max(gaps):.0f} % of print. So the printed counts are ones that "
            "these methods can have on such data; `table_2.md` shows what tuning "
            "makes of them. That the paper used these very settings is not known."
        ],
    )
    return page.write(out, "table_2_untuned")


if __name__ == "__main__":
    script(main)

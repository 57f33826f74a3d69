"""Table III (first version): rate of Fed-PLT with one to ten active agents."""

from __future__ import annotations

from pathlib import Path

from papers.common.kept import Kept
from papers.fed_plt.common.measures import Case, measure_rate, repeat
from papers.fed_plt.common.problems import ROWS, TUNING_SEEDS, first
from papers.fed_plt.common.tables import REPETITIONS, RESULTS, Page, Spread, script
from papers.fed_plt.common.tuning import choose, penalties, rate_score

LOCAL_STEPS = 10
#: Rounds with all agents; with fewer, as many as give each agent the same turns.
ROUNDS = 100
#: Printed rates by number of active agents.
PAPER = {
    1: 0.955,
    2: 0.907,
    3: 0.862,
    4: 0.815,
    5: 0.764,
    6: 0.719,
    7: 0.666,
    8: 0.617,
    9: 0.569,
    10: 0.531,
}


def cases_for(choice) -> dict[int, Case]:
    """Fed-PLT with the chosen rho, by number of active agents."""
    return {
        active: Case(
            choice.on, participation=active, rounds=round(ROUNDS * len(PAPER) / active)
        )
        for active in PAPER
    }


def main(
    repetitions: int = REPETITIONS, out: Path = RESULTS, resume: bool = False
) -> Path:
    """Table III of the first version."""
    kept = Kept(out, "v1_table_3", resume)
    choice = choose(penalties, LOCAL_STEPS, first, "rho", rate_score(), kept=kept)
    rates = repeat(
        first, cases_for(choice), repetitions, "Table III", measure_rate, kept=kept
    )
    rows, gaps = [], []
    full = rates[10].mean()
    for active, printed in PAPER.items():
        ours = rates[active].mean()
        gaps.append(abs(ours - printed))
        rule = 1 - active / 10 * (1 - full)
        rows.append(
            [
                str(active),
                f"{printed:.3f}",
                Spread(rates[active], 3),
                f"{ours - printed:+.3f}",
                f"{rule:.3f}",
            ]
        )
    instance = first(TUNING_SEEDS[0])
    rho = choice.on(instance.problem).rho / ROWS
    page = Page(
        "Table III (first version): Fed-PLT with partial participation",
        [
            "The problem of `v1_table_2.md`, Ne = 10, step of theory; rho the best of "
            f"48 on {len(TUNING_SEEDS)} tuning instances ({rho:.2f} for the sum of "
            f"losses, print says about 0.3); {repetitions} repetitions. Exactly that "
            "many agents, drawn anew in each round.",
        ],
        (
            "active",
            "paper",
            "ours (mean ± sd)",
            "ours - paper",
            "1 - p (1 - r), r with all",
        ),
        rows,
        [
            f"**Difference.** Reproduced: at most {max(gaps):.3f} from print. Both "
            "follow 1 - p (1 - r), p the share of active agents and r the rate with "
            "all of them: a silent agent simply does not contract."
        ],
        {"Fed-PLT": choice},
    )
    return page.write(out, "v1_table_3")


if __name__ == "__main__":
    script(main)

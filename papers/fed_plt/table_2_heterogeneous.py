"""Table II (revised) on agents whose data differ: not in the paper."""

from __future__ import annotations

from pathlib import Path

from papers.common.kept import Kept
from papers.fed_plt.common.problems import TUNING_SEEDS
from papers.fed_plt.common.tables import (
    REPETITIONS,
    RESULTS,
    Page,
    script,
    tuning_words,
)
from papers.fed_plt.table_2 import COLUMNS, both, remark, rows_of


def main(
    repetitions: int = REPETITIONS, out: Path = RESULTS, resume: bool = False
) -> Path:
    """Table II of the revised version, every agent with clusters of its own."""
    kept = Kept(out, "table_2_heterogeneous", resume)
    found = both(repetitions, kept, heterogeneous=True)
    page = Page(
        "Table II (revised version) with heterogeneous agents, t_G = 1, t_C = 10",
        [
            "As `table_2.md`, except that every agent's rows are a draw of "
            "`make_classification` of its own, with other clusters and another "
            f"separating plane; {repetitions} repetitions. The paper's columns are "
            "those of its Table II, whose data it does not describe.",
            tuning_words(len(TUNING_SEEDS)),
        ],
        COLUMNS,
        rows_of(found),
        [
            "**Difference.** "
            + remark(found)
            + " With agents that differ, the methods that lean on likeness (LED, "
            "TAMUNA) lose most against the nearly homogeneous data of `table_2.md`."
        ],
        {
            f"{name}, {kind}": choice
            for kind, compared in zip(("convex", "non-convex"), found, strict=True)
            for name, choice in compared.choices.items()
        },
    )
    return page.write(out, "table_2_heterogeneous")


if __name__ == "__main__":
    script(main)

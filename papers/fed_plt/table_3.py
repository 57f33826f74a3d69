"""Table III (revised): six methods, convex, for dear and cheap communication."""

from __future__ import annotations

from pathlib import Path

from papers.common.kept import Kept
from papers.fed_plt.common.comparison import compare, fastest
from papers.fed_plt.common.problems import TUNING_SEEDS, revised
from papers.fed_plt.common.tables import (
    REPETITIONS,
    RESULTS,
    Page,
    Spread,
    Time,
    script,
    tuning_words,
)

T_GRAD = 1.0
T_COMM = (0.1, 1.0, 10.0, 100.0)

#: Printed times for every t_C.
PAPER = {
    "FedPD": (23.97e3, 28.2e3, 70.5e3, 493.5e3),
    "FedLin": (3.72e3, 4.8e3, 15.6e3, 123.6e3),
    "TAMUNA": (8.67e3, 10.2e3, 25.5e3, 178.5e3),
    "LED": (17.34e3, 20.4e3, 51e3, 357e3),
    "5GCS": (19.38e3, 22.8e3, 57e3, 399e3),
    "Fed-PLT": (4.59e3, 5.4e3, 13.5e3, 94.5e3),
}


def main(
    repetitions: int = REPETITIONS, out: Path = RESULTS, resume: bool = False
) -> Path:
    """Table III of the revised version."""
    kept = Kept(out, "table_3", resume)
    found = compare(revised, repetitions, "convex", kept=kept)
    rows = []
    for name, printed in PAPER.items():
        row = [name, Spread(found.rounds[name])]
        for t_comm, time in zip(T_COMM, printed, strict=True):
            row += [Time(time), Time(found.time(name, T_GRAD, t_comm))]
        rows.append(row)
    orders = []
    for k, t_comm in enumerate(T_COMM):
        printed = fastest({name: times[k] for name, times in PAPER.items()})
        order = found.ranking(T_GRAD, t_comm)
        orders.append(f"t_C = {t_comm:g}: {printed} in print, {order[0]} here")
    heads = [f"t_C = {c:g}: {who}" for c in T_COMM for who in ("paper", "ours")]
    page = Page(
        "Table III (revised version): time for four costs of communication, t_G = 1",
        [
            "The convex problem and the runs of `table_2.md`, converted with other "
            f"costs; {repetitions} repetitions. With Ne fixed, the cost of a round "
            "is the same for all candidates of a method, so tuning does not depend "
            "on t_C.",
            tuning_words(len(TUNING_SEEDS)),
        ],
        ["method", "our rounds (mean ± sd)", *heads],
        rows,
        [
            f"**Difference.** Fastest method by cost: {'; '.join(orders)}. In print "
            "Fed-PLT overtakes FedLin once letters are dear. Here FedLin pays two "
            "exchanges for so few rounds that the gap closes much later, if at all; "
            "what overtakes it is LED and TAMUNA, with one exchange and, tuned, few "
            "rounds on such homogeneous data."
        ],
        found.choices,
    )
    return page.write(out, "table_3")


if __name__ == "__main__":
    script(main)

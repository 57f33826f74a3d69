"""An audit of the printed claim: what one record reveals, at least, at 95 %."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import tacita
from papers.common.kept import Kept
from papers.fed_spd.common import one_record
from papers.fed_spd.common.as_printed import fed_spd_as_printed
from papers.fed_spd.common.pages import RESULTS, write
from tacita.privacy import WithoutReplacement, account
from tacita.schedule import Polynomial

DELTA, ROUNDS, SAMPLES = 1e-4, 100, 325
#: K, claimed total, and how many times the usual number of runs it takes.
CASES = (
    (100, 0.1, 1),
    (100, 0.5, 1),
    (100, 1.0, 1),
    (100, 3.0, 3),
    (50, 1.0, 1),
    (20, 0.5, 3),
)
#: The public state, for comparison: noise over sensitivity, all clients.
PUBLIC = (2.0,)


def main(repetitions: int = 150_000, out: Path = RESULTS, resume: bool = False) -> Path:
    """The table; `repetitions` are runs on either side."""
    kept = Kept(out, "audit", resume)
    setting = {"rounds": ROUNDS, "samples": SAMPLES, "delta": DELTA}

    def bound(words: str, algorithm: Any, runs: int, chance: float) -> float:
        given = setting | {"runs": runs, "chance": chance}
        make = partial(one_record.audit, algorithm, **given)
        return kept(f"{words}, {runs} runs", lambda: make().lower_bound)

    rows = []
    for active, claimed, more in CASES:
        algorithm = fed_spd_as_printed(
            epsilon=claimed,
            delta=DELTA,
            rounds=ROUNDS,
            participation=active / 100,
            samples=SAMPLES,
            dim=162,
        )
        words = f"as printed, K {active}, claimed {claimed:g}"
        found = bound(words, algorithm, more * repetitions, active / 100)
        verdict = "refuted" if found > claimed else "not refuted"
        rows.append(
            [
                "as printed",
                f"{active}",
                f"{claimed:g}",
                f"{found:.2f}",
                verdict,
                f"{more * repetitions}",
            ]
        )
    for multiplier in PUBLIC:
        algorithm = tacita.FedSPD(
            rho=20.0,
            gamma=Polynomial(start=795.0, power=-0.5),
            noise_std=multiplier * 0.2,
            oracle=tacita.privacy.Clipped(
                norm=1.0, oracle=tacita.Minibatch(size=10, sampling="permutation")
            ),
        )
        sound = account(
            observer="coordinator",
            unit="record",
            relation="replace_one",
            noise_std=multiplier,
            sensitivity=1.0,
            rounds=ROUNDS,
            sampling=WithoutReplacement(50, SAMPLES),
        ).epsilon(DELTA)
        name = f"public state, z = {multiplier:g}"
        found = bound(name, algorithm, repetitions, 1.0)
        verdict = "refuted" if found > sound else "not refuted"
        proved = f"{sound:.3g} (proved)"
        rows.append([name, "100", proved, f"{found:.2f}", verdict, f"{repetitions}"])
    return write(
        out,
        "audit",
        "Audit of FedSPD-DP: a lower bound on epsilon, against the coordinator",
        [
            "The real `FedSPD.local` in one dimension, T = 100, Q = 5, b = 10, "
            "m = 325, delta = 1e-4; the record's gradient is +1 or -1, all others "
            "are 0; `runs` on either side, half of them to choose a threshold and "
            "half to count, exact (Clopper-Pearson) intervals, 95 % "
            "confidence each. K below 100: the client takes part with probability "
            "K/100 in every round.",
        ],
        ("algorithm", "K", "claimed epsilon", "epsilon at least", "verdict", "runs"),
        rows,
        [
            "A claim below the bound is false. A bound below a claim proves nothing: "
            "other attacks may find more."
        ],
    )


if __name__ == "__main__":
    print(main())

"""An audit of the printed claim: what one record reveals, at least, at 95 %."""

from __future__ import annotations

from pathlib import Path

import tacit
from papers.fed_spd.common import one_record
from papers.fed_spd.common.pages import RESULTS, write
from tacit.privacy import WithoutReplacement, account, fed_spd_as_printed

DELTA, ROUNDS, SAMPLES = 1e-4, 100, 325
#: K, claimed total.
CASES = ((100, 0.1), (100, 0.5), (100, 1.0), (100, 3.0), (50, 1.0), (20, 0.5))
#: The public state, for comparison: noise over sensitivity, all clients.
PUBLIC = (2.0, 10.0)


def main(repetitions: int = 200_000, out: Path = RESULTS) -> Path:
    """The table; `repetitions` are runs on either side."""
    setting = {"runs": repetitions, "rounds": ROUNDS, "samples": SAMPLES}
    rows = []
    for active, claimed in CASES:
        algorithm = fed_spd_as_printed(
            epsilon=claimed,
            delta=DELTA,
            rounds=ROUNDS,
            participation=active / 100,
            samples=SAMPLES,
            dim=162,
        )
        found = one_record.audit(
            algorithm, **setting, chance=active / 100, delta=DELTA
        ).lower_bound
        verdict = "refuted" if found > claimed else "not refuted"
        rows.append(
            ["as printed", f"{active}", f"{claimed:g}", f"{found:.2f}", verdict]
        )
    for multiplier in PUBLIC:
        algorithm = tacit.FedSPD(
            rho=20.0,
            gamma=795.0,
            gamma_growth=0.5,
            noise_std=multiplier * 0.2,
            oracle=tacit.privacy.Clipped(
                norm=1.0, oracle=tacit.Minibatch(size=10, sampling="permutation")
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
        found = one_record.audit(
            algorithm, **setting, chance=1.0, delta=DELTA
        ).lower_bound
        verdict = "refuted" if found > sound else "not refuted"
        name = f"public state, z = {multiplier:g}"
        rows.append([name, "100", f"{sound:.3g} (proved)", f"{found:.2f}", verdict])
    return write(
        out,
        "audit",
        "Audit of FedSPD-DP: a lower bound on epsilon, against the coordinator",
        [
            "The real `FedSPD.local` in one dimension, T = 100, Q = 5, b = 10, "
            "m = 325, delta = 1e-4; the record's gradient is +1 or -1, all others "
            f"are 0; {repetitions} runs on either side, half of them to choose a "
            "threshold and half to count, exact (Clopper-Pearson) intervals, 95 % "
            "confidence each. K below 100: the client takes part with probability "
            "K/100 in every round.",
        ],
        ("algorithm", "K", "claimed epsilon", "epsilon at least", "verdict"),
        rows,
        [
            "A claim below the bound is false. A bound below a claim proves nothing: "
            "other attacks may find more."
        ],
    )


if __name__ == "__main__":
    print(main())

"""Remark 4: what each client spends, and needs, where their rows are unequal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tacita
from papers.common.kept import Kept
from papers.fed_spd.common.adult import CLIENTS, tables
from papers.fed_spd.common.as_printed import printed_rate, round_epsilon
from papers.fed_spd.common.deals import DEALS, problem, sizes_in_words
from papers.fed_spd.common.pages import REPETITIONS, RESULTS, script, told, write
from tacita.privacy import Clipped, forecast, letters_of

EPSILON, DELTA, OBSERVER = 1.0, 1e-4, "coordinator"
ROUNDS, STEPS, BATCH = 40, 3, 10
#: As in `accuracy_and_epsilon`: the public state, gamma just above Q L/2.
GIVEN: dict[str, Any] = {"rho": 0.05, "gamma": 0.4, "local_steps": STEPS}
#: By class or not makes no difference to the account, which looks at sizes.
SHOWN = DEALS[:2]
ORACLES = {
    "all rows": Clipped(norm=1.0),
    "batches of 10": Clipped(
        norm=1.0, oracle=tacita.Minibatch(size=BATCH, sampling="permutation")
    ),
}


def measure(deal: str, oracle: str, repetitions: int) -> dict[str, Any]:
    """Noise and epsilon of the smallest, middle and largest client; accuracies."""
    made = problem(deal)
    order = np.argsort(made.counts, kind="stable")
    shown = [int(order[k]) for k in (0, CLIENTS // 2, CLIENTS - 1)]
    algorithm = tacita.private(
        made,
        tacita.FedSPD(oracle=ORACLES[oracle], **GIVEN),
        epsilon=EPSILON,
        delta=DELTA,
        observer=OBSERVER,
        rounds=ROUNDS,
    )
    run = tacita.simulate(
        made,
        algorithm,
        ROUNDS,
        seed=0,
        seeds=repetitions,
        record=(),
        progress=False,
    )
    noise = np.broadcast_to(letters_of(algorithm).noise_std, CLIENTS)
    spent = [
        forecast(made, algorithm, rounds=ROUNDS, delta=DELTA, agent=agent)
        .row(OBSERVER)
        .epsilon
        for agent in shown
    ]
    return {
        "rows": [int(made.counts[agent]) for agent in shown],
        "noise": [float(noise[agent]) for agent in shown],
        "epsilon": spent,
        "accuracy": tables()[1].accuracy(run.params),
    }


def printed(rows: int) -> float:
    """(36): the epsilon of a round that the paper gives to a client of so many rows."""
    rate = printed_rate(local_steps=STEPS, batch=BATCH, samples=rows)
    return round_epsilon(epsilon=EPSILON, rate=rate, participation=1.0, rounds=ROUNDS)


def main(
    repetitions: int = REPETITIONS, out: Path = RESULTS, resume: bool = False
) -> Path:
    """Noise, epsilon and accuracy by deal and oracle."""
    kept, rows = Kept(out, "unbalanced_private", resume), []
    for deal in SHOWN:
        for oracle in ORACLES:
            found = kept(
                f"{oracle}, {deal}, {repetitions} repetitions",
                lambda deal=deal, oracle=oracle: measure(deal, oracle, repetitions),
            )
            rows.append(
                [
                    *(deal, oracle, _three(found["rows"], "d")),
                    *(_three(found["noise"], ".3g"), _three(found["epsilon"], ".3g")),
                    _three([printed(m) for m in found["rows"]], ".3g"),
                    told(found["accuracy"], 3),
                ]
            )
    return write(
        out,
        "unbalanced_private",
        "Remark 4: noise and epsilon where clients hold unequal data",
        [
            f"The deals of `unbalanced`: uneven clients have {sizes_in_words()}. "
            f"FedSPD with public state, {ROUNDS} rounds, Q = {STEPS}, everybody "
            f"active, noise by `tacita.private` for a total epsilon of {EPSILON:g}, "
            f"delta = {DELTA:g} against the coordinator, one record, replace-one; "
            f"{repetitions} repetitions. Three numbers are those of the smallest, the "
            "middle and the largest client. Noise is in a gradient. *As printed*: the "
            "epsilon of a round by (36), which has q_i in it and so asks for noise of "
            "its own at every client.",
        ],
        (
            *("data", "gradients of", "rows", "noise", "epsilon spent"),
            *("epsilon of a round as printed", "test accuracy"),
        ),
        rows,
        [f"**The paper** {SAYS}", f"**Here** {FINDS}"],
    )


def _three(values: list[Any], form: str) -> str:
    return ", ".join(format(value, form) for value in values)


SAYS = "has one m for all clients and says nothing of accounts of unequal ones."
FINDS = (
    "with gradients of all rows a record of client i moves its gradient by 2/m_i: "
    "noise goes with 1/m_i, one number per client, and everybody spends the budget. "
    "With batches it moves it by 2/b whatever m_i is: all have the noise of the "
    "smallest client, whose records are in a batch most often, and larger clients "
    "spend less than they may. Reports count the client that spends most."
)


if __name__ == "__main__":
    script(main)

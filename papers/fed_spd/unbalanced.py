"""Remark 4: local steps of FedSPD and FedAvg where clients hold unequal data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tacita
from papers.common.kept import Kept
from papers.fed_spd.common.adult import CLIENTS, tables
from papers.fed_spd.common.deals import DEALS, problem, sizes_in_words
from papers.fed_spd.common.pages import REPETITIONS, RESULTS, draw, script, told, write
from papers.fed_spd.common.printed import EVERY, ROUNDS

ACTIVE, BATCH, LOCAL_STEPS = 20, 10, (1, 5, 10)
#: FedSPD's local steps are 1/(rho + gamma) long, and so are FedAvg's.
RHO, GAMMA = 0.05, 0.95


def methods(steps: int) -> dict[str, Any]:
    """The same batches and steps of the same length, without noise."""
    batches = tacita.Minibatch(size=BATCH, sampling="permutation")
    given: dict[str, Any] = {"local_steps": steps, "oracle": batches}
    return {
        "FedSPD": tacita.FedSPD(rho=RHO, gamma=GAMMA, state="hidden", **given),
        "FedAvg": tacita.FedAvg(step_size=1 / (RHO + GAMMA), **given),
    }


def measure(deal: str, algorithm: Any, repetitions: int) -> dict[str, Any]:
    """Objective over N by seed and record; accuracy on the test rows by seed."""
    run = tacita.simulate(
        problem(deal),
        algorithm,
        ROUNDS,
        participation=ACTIVE,
        seed=0,
        seeds=repetitions,
        record=("loss",),
        record_every=EVERY,
        progress=False,
    )
    return {
        "rounds": run.metrics["round"],
        "objective": np.asarray(run.metrics["loss"]) / CLIENTS,
        "accuracy": tables()[1].accuracy(run.params),
    }


def main(
    repetitions: int = REPETITIONS, out: Path = RESULTS, resume: bool = False
) -> Path:
    """Objective and accuracy by deal, number of local steps and method."""
    kept = Kept(out, "unbalanced", resume)
    found = {
        (deal, steps, name): kept(
            f"{name}, Q {steps}, {deal}, {repetitions} repetitions",
            lambda deal=deal, one=one: measure(deal, one, repetitions),
        )
        for deal in DEALS
        for steps in LOCAL_STEPS
        for name, one in methods(steps).items()
    }
    panels = []
    for deal in DEALS:
        lines = {}
        for name in ("FedSPD", "FedAvg"):
            for steps in (LOCAL_STEPS[0], LOCAL_STEPS[-1]):
                one = found[deal, steps, name]
                curve = np.asarray(one["objective"])
                x = np.asarray(one["rounds"])
                lines[f"{name}, Q = {steps}"] = (x, curve.mean(0), curve.std(0))
        panels.append(("round", f"objective / N, {deal}", lines))
    draw(out / "unbalanced.png", panels)
    rows, ends = [], {}
    for (deal, steps, name), one in found.items():
        end = np.asarray(one["objective"])[:, -1]
        ends[deal, steps, name] = end.mean()
        cells = [told(end), told(one["accuracy"], 3)]
        if name == "FedSPD":
            rows.append([deal, str(steps), *cells])
        else:
            rows[-1] += cells
    return write(
        out,
        "unbalanced",
        "Remark 4: local steps where clients hold unequal data",
        [
            "The paper deals Adult out evenly and leaves unbalanced data to others, "
            "with the remark that more local steps may slow FedAvg down on them. Here "
            f"uneven clients have {sizes_in_words()}; *by class*: the same sizes, and "
            "nearly every client has rows of one class only. Logistic model on public "
            "columns, every client's mean loss with the same weight as in (34), "
            f"{ACTIVE} of {CLIENTS} clients a round, b = {BATCH}, {ROUNDS} rounds, "
            f"rho = {RHO:g}, gamma = {GAMMA:g}, FedAvg with steps of the same length, "
            f"no noise, {repetitions} repetitions. What noise does is in "
            "`unbalanced_private`.",
            "![objective by round](unbalanced.png)",
        ],
        (
            *("data", "Q", "FedSPD: objective/N", "FedSPD: accuracy"),
            *("FedAvg: objective/N", "FedAvg: accuracy"),
        ),
        rows,
        [f"**The paper** {SAYS}", f"**Here** {finds(ends)}"],
    )


SAYS = (
    "expects fewer rounds for larger Q (Remark 4), has no experiment on unbalanced "
    "data, and expects FedAvg to suffer there."
)


def finds(ends: dict[tuple[str, int, str], float]) -> str:
    """What more local steps bring, by deal and method, in words."""
    told_of = []
    for deal in DEALS:
        best = {
            name: min(LOCAL_STEPS, key=lambda q: ends[deal, q, name])
            for name in ("FedSPD", "FedAvg")
        }
        told_of.append(
            f"*{deal}*: the lowest objective is at Q = {best['FedSPD']} for FedSPD "
            f"({ends[deal, best['FedSPD'], 'FedSPD']:.3f}) and at Q = "
            f"{best['FedAvg']} for FedAvg ({ends[deal, best['FedAvg'], 'FedAvg']:.3f})"
        )
    return "; ".join(told_of) + "."


if __name__ == "__main__":
    script(main)

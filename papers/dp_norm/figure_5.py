"""Figure 5: step size of gossip DP-SGD, convex, epsilon = 1 and 0.5."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from papers.dp_norm.common import convex
from papers.dp_norm.common.figures import chosen, played, sweep_page
from papers.dp_norm.common.pages import RESULTS, script
from papers.dp_norm.common.parts import Part

STEPS = (0.01, 0.03, 0.1, 0.3)


def steps(rounds: int) -> Part:
    """Noise in gradients does not depend on the step; noise in w grows with it."""
    told, entries = [], []
    for step in STEPS:
        for entry in convex.gossip_entries(rounds, (1.0, 0.5)):
            changed = replace(entry.algorithm, step_size=step)
            entries.append(replace(entry, algorithm=changed))
            told.append({"step size": step})
    return Part("figure_5", tuple(entries), rounds, told=tuple(told))


def parts(rounds: int) -> dict[str, list[Part]]:
    """What the page is drawn from."""
    return {"figure_5": [steps(rounds)]}


def main(
    out: Path = RESULTS,
    rounds: int = 100,
    splits: int = 1,
    seeds: int = 1,
    resume: bool = False,
) -> Path:
    """Every step size."""
    scale = chosen(rounds, splits, seeds)
    return sweep_page(
        out,
        "figure_5",
        "Figure 5: step size of decentralised DP-SGD",
        "step size",
        played(parts(rounds)["figure_5"], scale, out, resume),
        scale,
        [
            "**The paper's reading.** 0.1 is best at both epsilons, below DP-Norm's "
            "72 % everywhere. **Ours.** With the paper's rounds and noise 0.1 is best, "
            "as printed, but above 72 %, not below; with the smaller l2 of the second "
            "split, at epsilon 1, 0.3 is. With sound noise 0.03 is best at 0.5, and at "
            "1 level with 0.1, within what a seed makes (half a point): longer steps "
            "pay for it, the more the smaller epsilon is. With few rounds the longest "
            "steps learn most."
        ],
        ("accuracy", "norm of w"),
    )


if __name__ == "__main__":
    script(main)

"""Figure 2, non-convex: ResNet-10 with group normalisation, all methods.

With the noise that the paper gives them, as in its figure; then clipped runs, the only
ones of a network whose noise is worth a provable epsilon.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import resnet
from papers.dp_norm.common.figures import curve_page
from papers.dp_norm.common.pages import RESULTS, grid, script


def main(
    out: Path = RESULTS,
    rounds: int | None = None,
    size: str = "small",
    resume: bool = False,
) -> Path:
    """Learning curves, final accuracies, what each noise is worth."""
    chosen = resnet.size_of(size, rounds)
    curves = [one for e in resnet.EPSILONS for one in resnet.methods(e)]
    noisy = [curves[-4], curves[-2]]  # DP-Norm with alpha, gossip; at the last epsilon
    curves += [replace(one, clipped=True) for one in noisy]
    lines = resnet.lines_of(curves, chosen, out, resume)
    single = resnet.single_node(chosen, out, resume)
    panels = resnet.by_epsilon(lines, single)
    heads = ["method", "nominal epsilon", "noise_std"]
    heads += [f"proved epsilon (neighbour, record, replace-one, delta = {b.DELTA:g})"]
    rows = [
        [one.label, each[-1]["epsilon"], each[-1]["noise_std"], one.proved(chosen)]
        for one, each in zip(curves, lines, strict=True)
        if one.epsilon is not None
    ]
    return curve_page(
        out,
        chosen.page("figure_2_resnet"),
        "Figure 2, non-convex: ResNet-10 with group normalisation",
        panels,
        resnet.scale_of(chosen),
        [resnet.readings(chosen, PAPERS, OURS), grid(heads, rows), PROVED],
        resnet.about(chosen),
    )


PAPERS = "DP-Norm is nearest to a single node at every epsilon."
OURS = {
    "small": "Without noise the primal-dual methods are level and gossip is ahead of "
    "them. With the paper's noise DP-Norm is furthest from the single node, at both "
    "epsilons, while gossip and DP-ADMM hardly lose anything: as in the convex case "
    "that noise is worth less, which clipping shows. The single node learns fastest "
    "and swings in the end: its steps are long for such a network.",
}
PROVED = (
    "For a network no smoothness is known: the paper assumes G = 1 and L = 1/2 without "
    "enforcing either, so its epsilons are names of noise levels, not guarantees. "
    "Clipped, gossip's noise composes to the epsilon in the last column; for DP-Norm "
    "the only bound that holds is that two clipped gradients differ by at most 2C in "
    "every step. With a *believed* L there is Lemma 1, in `common/as_printed.py`."
)


if __name__ == "__main__":
    script(main)

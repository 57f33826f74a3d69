"""ResNet-10 on the paper's rings, at its size or at one that two cores bear.

The small size keeps what decides how much noise stands against how much progress: the
images of a node, K, and sqrt(R) times the noise over the way mu K R. Steps are longer
and fewer, pictures and layers smaller. The narrow size has the paper's pictures,
batches and steps, a quarter of its channels, and fewer rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tacita
from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex
from papers.dp_norm.common.as_printed import dp_norm_sigma, lemma_1_sensitivity
from papers.dp_norm.common.convex import Entry
from papers.dp_norm.common.figures import played
from papers.dp_norm.common.parts import Part, Scale, kept
from tacita import check
from tacita.privacy import Clipped, Noisy, letters_of
from tacita.problem import graph, resnet10

ALPHA, RHO, CLIP = 0.001, 1.0, 1.0
EPSILONS = (None, 1.0, 0.5)
RECORDS = 10


class Size(NamedTuple):
    """How large pictures and network are, and how far a run goes."""

    side: int  # of the pictures
    width: int  # channels of the first stage
    groups: int  # of channels that are normalised together
    batch: int
    step: float
    rounds: int
    tested: int  # images

    def __str__(self) -> str:
        return (
            f"{b.PER_NODE:,} images of {self.side} x {self.side} a node, width "
            f"{self.width}, K = {b.STEPS}, B = {self.batch}, mu = {self.step:g}, "
            f"{self.rounds:,} rounds"
        )

    @property
    def name(self) -> str:
        """What it is called, whatever its rounds."""
        same = (name for name, size in SIZES.items() if size[:-2] == self[:-2])
        return next(same)

    def page(self, figure: str) -> str:
        """What a figure's page is called that was run at this size."""
        return figure if self.name == "small" else f"{figure}_{self.name}"


SIZES = {
    "small": Size(14, 4, 2, 250, 0.03, 20, 1000),
    "narrow": Size(28, 16, 8, 500, 0.001, 10, 2000),
    "paper": Size(28, 64, 32, 500, 0.001, 1000, 10_000),
}


def size_of(name: str, rounds: int | None) -> Size:
    """One of the sizes, with other rounds where they are told."""
    if name not in SIZES:
        check.refuse(f"unknown size {name!r}; {check.nearest(name, SIZES)}")
    size = SIZES[name]
    return size if rounds is None else size._replace(rounds=rounds)


def problem(
    size: Size, nodes: int = 6, split: int = 0, iid: bool = False
) -> tacita.Problem:
    """Pictures on a ring, or those of a ring of six on a single node."""
    data, pooled = b.images(), nodes == 1
    node = b.deal(6 if pooled else nodes, split, iid)
    held, side = node >= 0, size.side

    def shrunk(x: np.ndarray) -> np.ndarray:
        """Means of squares of pixels; pixels of size one, on average."""
        each = 28 // side
        means = x.reshape(-1, side, each, side, each).mean(axis=(2, 4))
        flat = means.reshape(len(x), -1)
        return flat / np.linalg.norm(flat, axis=1, keepdims=True) * side

    return tacita.from_arrays(
        shrunk(data.x[held]),
        data.y[held],
        np.zeros(held.sum(), int) if pooled else node[held],
        model=resnet10((side, side, 1), 10, width=size.width, groups=size.groups),
        classes=range(10),
        graph=None if pooled else graph.ring(nodes),
        test=(shrunk(data.test_x[: size.tested]), data.test_y[: size.tested]),
        name=f"fashion-mnist {side}x{side}",
    )


@dataclass(frozen=True)
class Curve:
    """A method on a ring, with the noise that the paper gives it.

    Attributes:
        method: "DP-Norm", "DP-SGD gossip" or "DP-ADMM".
        epsilon: What its noise is named after; None is without.
        alpha: Of DP-Norm.
        nodes: On the ring.
        iid: Every node has all classes.
        batch: Another one than the size's.
        clipped: Every record's gradient, without which no epsilon is proved.
    """

    method: str
    epsilon: float | None
    alpha: float = ALPHA
    nodes: int = 6
    iid: bool = False
    batch: int | None = None
    clipped: bool = False

    @property
    def label(self) -> str:
        """How it is called in a picture."""
        of = f" alpha={self.alpha:g}" if self.method == "DP-Norm" else ""
        return f"{self.method}{of}{', clipped' if self.clipped else ''}"

    def algorithm(self, size: Size) -> Any:
        """What is run, noise set for the rounds of the size."""
        batch = self.batch or size.batch
        batches = tacita.Minibatch(size=batch, sampling="permutation")
        given: dict[str, Any] = {"step_size": size.step, "local_steps": b.STEPS}
        if self.method == "DP-Norm":
            noise = self._dp_norm_noise(size, batch)
            made = tacita.DPNorm(
                alpha=self.alpha, noise_std=noise, oracle=batches, **given
            )
        elif self.method == "DP-SGD gossip":
            noise = b.gossip_paper_noise(self.epsilon, size.rounds)
            made = tacita.GossipSGD(oracle=Noisy(std=noise, oracle=batches), **given)
        else:
            noise = b.admm_paper_noise(self.epsilon, size.rounds)
            oracle = Noisy(std=noise, oracle=batches)
            made = tacita.GraphADMM(rho=RHO, oracle=oracle, **given)
        if not self.clipped:
            return made
        short = Clipped(norm=CLIP, oracle=batches, microbatch=25)
        return letters_of(replace(made, oracle=short)).with_noise(noise)

    def _dp_norm_noise(self, size: Size, batch: int) -> float:
        """Of Lemma 1 and Theorem 1, G = 1 and L = 1/2 believed."""
        if self.epsilon is None:
            return 0.0
        change = lemma_1_sensitivity(
            step_size=size.step,
            local_steps=b.STEPS,
            batch=batch,
            samples=b.PER_NODE,
            gradient_bound=b.GRADIENT_BOUND,
            smoothness=b.SMOOTHNESS,
            degree=2,
            alpha=self.alpha,
        )
        return dp_norm_sigma(self.epsilon, b.DELTA, size.rounds, change, "paper")

    def part(self, size: Size) -> Part:
        """What one process runs: a network has no use for several lanes at once."""
        one = Entry(self.label, "paper", self.epsilon, self.algorithm(size))
        words = [self.label, f"epsilon {self.epsilon or 'inf'}", f"{self.nodes} nodes"]
        words += ["iid"] * self.iid + [f"batch {self.batch or size.batch}"]
        name = "_".join(["resnet", str(size.width), *words]).lower()
        for sign in (" ", ",", "=", "-"):
            name = name.replace(sign, "_")
        ring = {"size": size, "nodes": self.nodes, "iid": self.iid}
        every = max(1, size.rounds // RECORDS)
        return Part(name, (one,), size.rounds, ring, make=problem, every=every)

    def proved(self, size: Size) -> str:
        """What its noise is worth against a neighbour, if anything is proved."""
        if self.epsilon is None:
            return "–"
        if not self.clipped:
            return "not bounded: gradients are not clipped"
        on = problem(size, self.nodes, iid=self.iid)
        told = tacita.privacy.forecast(
            on, self.algorithm(size), rounds=size.rounds, delta=b.DELTA
        )
        epsilon = told.row("neighbour").epsilon
        return "none" if epsilon is None else f"{epsilon:.3g}"


def methods(epsilon: float | None, **where: Any) -> list[Curve]:
    """All methods of the paper with noise, at one of its epsilons."""
    given = [("DP-Norm", ALPHA), ("DP-Norm", 0.0), ("DP-SGD gossip", 0), ("DP-ADMM", 0)]
    return [Curve(method, epsilon, alpha, **where) for method, alpha in given]


def lines_of(
    curves: Sequence[Curve], size: Size, out: Path, resume: bool
) -> list[list[dict[str, Any]]]:
    """The lines of every curve; curves that several figures show are run once."""
    lines = played([c.part(size) for c in curves], scale_of(size), out, resume)
    each = len(lines) // len(curves)
    return [lines[k * each : (k + 1) * each] for k in range(len(curves))]


def single_node(
    size: Size, out: Path, resume: bool, iid: bool = False
) -> list[dict[str, Any]]:
    """SGD on the pooled images, without noise; as many steps."""
    name = f"resnet_{size.width}_single{'_iid' * iid}-{size.rounds}-split-0-seed-0"
    return kept(name, out / "raw", resume, lambda: _single_node(size, iid))


def _single_node(size: Size, iid: bool) -> list[dict[str, Any]]:
    batches = tacita.Minibatch(size=size.batch, sampling="permutation")
    sgd = tacita.FedAvg(step_size=size.step, local_steps=b.STEPS, oracle=batches)
    every = max(1, size.rounds // RECORDS)
    pooled = problem(size, nodes=1, iid=iid)
    lines = convex.alone(pooled, sgd, size.rounds, every)
    return [{"split": 0, "seed": 0, **line} for line in lines]


def by_epsilon(
    lines: Sequence[list[dict[str, Any]]], single: list[dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Panels of curves with the same noise, a single node in each of them."""
    panels: dict[str, list[dict[str, Any]]] = {}
    for each in lines:
        panels.setdefault(f"epsilon {each[0]['epsilon']}", []).extend(each)
    return {title: [*curves, *single] for title, curves in panels.items()}


def scale_of(size: Size) -> Scale:
    """One split, one seed."""
    return Scale(size.rounds)


def readings(size: Size, papers: str, ours: Mapping[str, str]) -> str:
    """What the paper says of a figure, and what is seen at a size that was run."""
    told = f"**The paper's reading.** {papers}"
    return f"{told} **Ours.** {ours[size.name]}" if size.name in ours else told


def about(size: Size) -> str:
    """The scale of a page, the paper's beside it, and what its noise is."""
    told = "" if size == SIZES["paper"] else f" The paper: {SIZES['paper']}."
    return (
        f"{size}; ring, 6 of 10 classes a node where nothing else is said, one split, "
        f"one seed, {size.tested:,} test images.{told} Noise is what the paper gives "
        "every method, set for the rounds: in w for DP-Norm, in each gradient for the "
        "others. A node's own model is measured, as in the paper; for gossip after "
        "mixing."
    )

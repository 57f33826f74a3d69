"""ResNet-10 of DP-Norm's figures: sizes, noise, and which curves figures share."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import tacita
from papers.dp_norm.common import benchmark, resnet
from papers.dp_norm.common.resnet import SIZES, Curve
from tacita.privacy import letters_of

SMALL, PAPER = SIZES["small"], SIZES["paper"]


def noise_over_way(size: resnet.Size) -> float:
    """Noise of all rounds, which add up as squares, over mu K R."""
    std = letters_of(Curve("DP-Norm", 1.0).algorithm(size)).noise_std
    return std * math.sqrt(size.rounds) / (size.step * benchmark.STEPS * size.rounds)


def test_the_small_size_has_about_the_papers_noise_for_its_progress():
    assert 1 < noise_over_way(SMALL) / noise_over_way(PAPER) < 1.5


def test_every_curve_has_a_name_and_figures_share_what_is_the_same():
    one = Curve("DP-Norm", 1.0)
    others = [
        replace(one, epsilon=0.5),
        replace(one, epsilon=None),
        replace(one, alpha=0.0),
        replace(one, alpha=1e-4),
        replace(one, nodes=4),
        replace(one, iid=True),
        replace(one, batch=100),
        replace(one, clipped=True),
        Curve("DP-SGD gossip", 1.0),
        Curve("DP-ADMM", 1.0),
    ]
    names = [curve.part(SMALL).name for curve in [one, *others]]
    assert len(set(names)) == len(names)
    assert one.part(PAPER).name not in names
    assert one.part(SMALL).name == replace(one, batch=SMALL.batch).part(SMALL).name
    assert all(name.replace("_", "").replace(".", "").isalnum() for name in names)


def test_noise_is_set_for_the_rounds():
    for one in resnet.methods(1.0):
        shorter = letters_of(one.algorithm(SMALL._replace(rounds=5))).noise_std
        longer = letters_of(one.algorithm(SMALL._replace(rounds=20))).noise_std
        assert longer == pytest.approx(2 * shorter, rel=0.05)
    for one in resnet.methods(None):
        assert letters_of(one.algorithm(SMALL)).noise_std == 0


def test_panels_by_epsilon_each_with_the_single_node():
    lines = [[{"epsilon": "inf", "k": k}] for k in (1, 2)] + [[{"epsilon": "1"}]]
    panels = resnet.by_epsilon(lines, [{"epsilon": "inf", "k": 3}])
    assert {title: len(each) for title, each in panels.items()} == {
        "epsilon inf": 3,
        "epsilon 1": 2,
    }


def test_pages_of_other_sizes_have_names_and_readings_of_their_own():
    names = [resnet.size_of(s, 3).page("figure_2_resnet") for s in SIZES]
    assert names[0] == "figure_2_resnet" and len(set(names)) == len(SIZES)
    told = {"small": "it is not."}
    assert resnet.readings(SMALL, "It is.", told).endswith("**Ours.** it is not.")
    assert "Ours" not in resnet.readings(PAPER, "It is.", told)


def test_the_narrow_size_has_the_papers_pictures_batches_and_steps():
    narrow = SIZES["narrow"]
    for field in ("side", "batch", "step"):
        assert getattr(narrow, field) == getattr(PAPER, field)
    assert narrow.rounds < PAPER.rounds and narrow.width < PAPER.width


def test_other_sizes_are_refused():
    with pytest.raises(tacita.TacitaError, match="unknown size 'large'"):
        resnet.size_of("large", None)
    assert resnet.size_of("paper", 3) == PAPER._replace(rounds=3)

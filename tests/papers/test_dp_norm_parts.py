"""Long reproductions: in parts, stopped and resumed, their raw lines kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tacita
from papers.dp_norm import hours
from papers.dp_norm.common import convex, figures, parts, runs


class StoppedError(Exception):
    """The power went."""


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(48, 3)) / 3
    return tacita.from_arrays(
        rows,
        np.arange(48) % 3,
        np.arange(48) % 4,
        model="softmax",
        graph=tacita.problem.graph.ring(4),
        test=(rows, np.arange(48) % 3),
        dtype=np.float32,
    )


def entry(noise: float) -> convex.Entry:
    oracle = tacita.Minibatch(size=4, sampling="permutation")
    method = tacita.DPNorm(step_size=0.1, local_steps=2, noise_std=noise, oracle=oracle)
    return convex.Entry("DP-Norm", "paper", 1.0, method)


def part(make: Callable[..., tacita.Problem]) -> parts.Part:
    told = ({"alpha": 0.1}, {"alpha": 0.2})
    return parts.Part("one", (entry(0.1), entry(0.2)), 4, told=told, make=make)


def stopped_after(done: int):
    def tell(now: int) -> None:
        if now == done:
            raise StoppedError

    return tell


def test_a_stopped_run_goes_on_to_the_same_numbers(problem, tmp_path):
    made = [entry(0.1).algorithm]
    measures = {"norm": runs.model_norm}
    whole = runs.curves(problem, made, 6, 2, measures, seed=3)
    kept = tmp_path / "kept.npz"
    with pytest.raises(StoppedError):
        runs.curves(problem, made, 6, 2, measures, 3, stopped_after(4), kept)
    told: list[int] = []
    resumed = runs.curves(problem, made, 6, 2, measures, 3, told.append, kept)
    assert told == [6]
    np.testing.assert_array_equal(resumed["norm"], whole["norm"])
    # A file of another run is not gone on from.
    other = runs.curves(problem, made, 6, 2, measures, 4, told.append, kept)
    assert told == [6, 2, 4, 6] and not np.array_equal(other["norm"], whole["norm"])


def test_raw_lines_are_kept_and_pages_drawn_from_them(problem, tmp_path):
    scale = parts.Scale(rounds=4, splits=(0, 1), seeds=2)
    copies = part(lambda **ring: problem).copies(scale)
    assert len({copy.name for copy in copies}) == 4
    first = parts.lines_of(copies, tmp_path, resume=False, processes=1)
    assert not list(tmp_path.glob("*.npz")) and len(list(tmp_path.glob("*.csv"))) == 4

    def fail(**ring):
        raise StoppedError

    copies = part(fail).copies(scale)
    assert parts.lines_of(copies, tmp_path, resume=True) == first
    page = figures.sweep_page(
        tmp_path, "figure", "A figure", "alpha", first, scale, ["Words."]
    )
    text = page.read_text()
    assert "mean +- standard deviation of 2 seeds" in text
    assert "| 0.2 | 1 |" in text and re.search(r"\| 0\.\d+ \+- 0\.\d+ \|", text)
    with pytest.raises(StoppedError):
        parts.lines_of(copies, tmp_path, resume=False, processes=1)


def test_a_curve_of_two_figures_is_run_once(problem, tmp_path, monkeypatch):
    played: list[int] = []
    play = convex.play

    def counted(on, entries, *rest):
        played.append(len(entries))
        return play(on, entries, *rest)

    monkeypatch.setattr(convex, "play", counted)

    def make(nodes: int = 4, split: int = 0) -> tacita.Problem:
        return problem

    scale = parts.Scale(rounds=4)
    (first,) = part(make).copies(scale)
    lines = parts.lines_of([first], tmp_path, resume=False)
    # The same curve under other words, with fewer records and defaults spelled out,
    # beside a new one; then all of them known.
    same = replace(entry(0.2), method="another name")
    (both,) = parts.Part(
        "two", (entry(0.3), same), 4, ring={"nodes": 4}, make=make, every=2
    ).copies(scale)
    found = parts.lines_of([both], tmp_path, resume=True)
    assert played == [2, 1]
    old = [line for line in lines if line["alpha"] == "0.2" and line["round"] in "24"]
    assert [line["method"] for line in found] == ["DP-Norm"] * 2 + ["another name"] * 2
    for name in (*convex.MEASURES, "round", "noise_std"):
        assert [line[name] for line in found[2:]] == [line[name] for line in old]
    assert found[1]["noise_std"] == "0.3" and "curve" not in found[0]
    (third,) = replace(both, name="three", entries=(same,)).copies(scale)
    parts.lines_of([third], tmp_path, resume=True)
    assert played == [2, 1]
    # Not of another seed, ring, or number of rounds, nor with more records than kept.
    others = [
        replace(third, name="seed", seed=1),
        replace(third, name="ring", ring={"nodes": 3}),
        replace(third, name="rounds", rounds=2),
        replace(both, name="records", entries=(entry(0.3),), every=1),
    ]
    parts.lines_of(others, tmp_path, resume=True, processes=1)
    assert played == [2, 1, 1, 1, 1, 1]
    parts.lines_of([third], tmp_path, resume=False)  # run again where that is asked for
    assert played == [2, 1, 1, 1, 1, 1, 1]


def test_records_end_with_the_run():
    for rounds in (1, 7, 30, 100, 2000):
        assert rounds % parts.record_every(rounds) == 0


def test_more_splits_than_there_are_is_refused():
    assert figures.chosen(100, 2, 3) == parts.Scale(100, (0, 1), 3)
    with pytest.raises(tacita.check.TacitaError, match="at most 2 splits, got"):
        figures.chosen(100, 3, 1)


def test_hours_count_a_curve_once():
    once, each = parts.Scale(2000), {1: 3.6}
    hours_by_page = hours.by_page(once, (), each)
    # Figure 9 has four curves, on rings of 3, 4, 6 and 8; Figures 3 and 8 have all but
    # that on three nodes.
    assert hours_by_page["figure_9"] == pytest.approx(2000 * 3.6 / 3600 * 3 / 6)
    assert hours_by_page["figure_3"] == pytest.approx(12 * 2000 * 3.6 / 3600)
    every = {
        copy.curve(entry)
        for made in hours.pages().values()
        for part in made
        for copy in part.copies(once)
        for entry in copy.entries
    }
    assert set(hours.by_page(once, every, each).values()) == {0.0}
    assert hours.of_figure_2() & every  # which is why these are not run again


def test_curves_that_were_kept_are_still_known():
    """A field that an algorithm gets later must not give its curves other names."""
    kept = parts.curves_in(hours.RESULTS / "raw")
    first = hours.by_page(parts.Scale(2000), kept, {1: 3.6})
    assert set(first.values()) == {0.0}

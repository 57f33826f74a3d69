"""The table and the picture of who holds what."""

import matplotlib
import numpy as np
import pytest

from tacita.check import TacitaError
from tacita.data import (
    Dataset,
    load,
    plot_who_holds_what,
    split_dirichlet,
    split_iid,
    who_holds_what,
)
from tacita.data.holdings_picture import held_picture
from tacita.theme import LIGHT


def test_class_counts_equal_a_count_by_hand():
    digits = load("digits")
    data = digits.with_agents(split_dirichlet(digits.y, 5, alpha=0.5, seed=0))
    table = data.summary()
    assert table["rows"].sum() == len(data)
    assert table["share"].sum() == pytest.approx(1)
    for i, (_, y) in enumerate(data.by_agent()):
        line = table.iloc[i]
        assert line["agent"] == f"agent {i}" and line["rows"] == len(y)
        assert [line[c] for c in data.classes] == [(y == c).sum() for c in range(10)]


def test_a_real_target_is_summed_up_by_its_moments():
    diabetes = load("diabetes")
    data = diabetes.with_agents(split_iid(len(diabetes), 3, seed=0))
    table = who_holds_what(data)
    for i, (_, y) in enumerate(data.by_agent()):
        got = table.loc[i, ["mean", "std", "min", "max"]].to_numpy(float)
        np.testing.assert_allclose(got, [y.mean(), y.std(), y.min(), y.max()])


def test_rows_of_nobody_are_one_line_and_class_names_never_collide():
    assert who_holds_what(load("iris"))["agent"].tolist() == ["nobody yet"]
    data = Dataset(
        name="toy",
        x=np.eye(2),
        y=np.array([0, 1]),
        task="classification",
        feature_names=("a", "b"),
        classes=("rows", "other"),
    )
    table = who_holds_what(data)
    assert table.columns.tolist() == ["agent", "rows", "share", "class rows", "other"]
    assert table["rows"].tolist() == [2]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["digits", "diabetes"])
@pytest.mark.parametrize("agents", [1, 7, 100])
def test_pictures_show_every_agent(name, agents, tmp_path):
    data = load(name)
    data = data.with_agents(split_iid(len(data), agents, seed=0))
    figure = plot_who_holds_what(data, tmp_path / "who.png")
    assert (tmp_path / "who.png").stat().st_size > 5000
    main, side = figure.axes[:2]
    widths = [bar.get_width() for bar in side.patches]
    assert sorted(widths) == sorted(np.bincount(data.agent))
    named = [label.get_text() for label in main.get_yticklabels()]
    assert sorted(named) == (sorted(data.agent_names) if agents <= 60 else [])
    assert f"held by {agents} agent" in figure.get_suptitle()


def test_bubbles_have_the_area_of_their_counts():
    iris = load("iris")
    data = iris.with_agents(np.where(np.arange(150) < 75, 0, 1))
    (bubbles,) = plot_who_holds_what(data).axes[0].collections
    found = {
        (int(y), int(x)): s
        for (x, y), s in zip(bubbles.get_offsets(), bubbles.get_sizes(), strict=True)
    }
    assert set(found) == {(0, 0), (0, 1), (1, 1), (1, 2)}
    assert found[0, 0] == pytest.approx(2 * found[0, 1])


def test_many_agents_are_shaded_by_share_with_the_largest_on_top():
    digits = load("digits")
    data = digits.with_agents(split_dirichlet(digits.y, 80, alpha=1.0, seed=0))
    figure = plot_who_holds_what(data)
    shown = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(shown.sum(axis=1), 1)
    widths = [bar.get_width() for bar in figure.axes[1].patches]
    assert widths == sorted(widths, reverse=True)


def test_no_window_is_opened_and_no_state_is_touched():
    before = matplotlib.get_backend(auto_select=False)
    plot_who_holds_what(load("iris"))
    assert matplotlib.get_backend(auto_select=False) == before


def test_a_bad_path_is_refused(tmp_path):
    for path, words in (("who.txt", "end it in .png"), ("no/who.png", "cannot write")):
        with pytest.raises(TacitaError, match=words):
            plot_who_holds_what(load("iris"), tmp_path / path)


def test_long_names_that_begin_alike_are_told_apart():
    """All lines of a picture of a country's hospitals had the same name."""
    names = [f"University hospital of the city number {i} of $x$" for i in range(12)]
    named = [f"{name} ({i} beds)" for i, name in enumerate(names)]
    inside = [f"{name} (north and west, both houses)" for name in names]
    alone = ["a" * 40, "b" * 40, "c"]
    for given, distinct in ((names, 12), (named, 12), (inside, 12), (alone, 3)):
        held = {"agent": given, "rows": [1] * len(given)}
        figure = held_picture(held, LIGHT)
        shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert len(set(shown)) == distinct
        assert max(len(one.replace("\\", "")) for one in shown) <= 28

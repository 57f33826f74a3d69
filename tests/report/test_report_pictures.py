"""Pictures: what is drawn is what the run holds."""

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from tacita.data.holdings_picture import held_picture
from tacita.theme import DARK, LIGHT, png, style_of
from tacita.trace.curves import curve


def test_a_curve_is_the_median_and_its_band_the_range(make_run):
    run = make_run(seeds=4)
    (axes,) = curve({"a": run}, "loss", LIGHT).axes
    (line,) = axes.lines
    np.testing.assert_allclose(line.get_xdata(), run.metrics["round"])
    np.testing.assert_allclose(line.get_ydata(), np.median(run.metrics["loss"], axis=0))
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].max() == run.metrics["loss"].max()
    assert corners[:, 1].min() == run.metrics["loss"].min()


def test_seeds_that_diverged_leave_no_gap_and_are_counted(make_run):
    """One of them turned the median, and with it the line, into a gap."""
    run = make_run(seeds=3, rounds=12)
    loss = run.metrics["loss"]
    loss[0, 2:], loss[0, 3:] = 1e70, np.nan
    figure = curve({"a": run}, "loss", LIGHT)
    (line,), (band,) = figure.axes[0].lines, figure.axes[0].collections
    np.testing.assert_allclose(line.get_ydata()[:2], loss[1, :2])
    np.testing.assert_allclose(line.get_ydata()[2:], loss[1:, 2:].mean(axis=0))
    assert band.get_paths()[0].vertices[:, 1].min() == loss[1, -1]
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["a, 1 of 3 seeds diverged"]
    loss[:, 5:] = np.nan
    (axes,) = curve({"a": run}, "loss", LIGHT).axes
    assert axes.lines[0].get_label() == "a, 3 of 3 seeds diverged"
    assert not curve({"a": make_run(seeds=3)}, "loss", LIGHT).legends


def test_a_value_between_gaps_is_a_point(make_run):
    """The first round of a run that then diverged: a line alone would show nothing."""
    run = make_run(rounds=12)
    run.metrics["loss"][[1, 2, 5]] = np.nan
    (axes,) = curve({"a": run}, "loss", LIGHT).axes
    line, points = axes.lines
    assert points.get_xdata().tolist() == [2] and points.get_marker() == "o"
    assert points.get_ydata()[0] == line.get_ydata()[0] == run.metrics["loss"][0]
    assert points.get_label().startswith("_")  # no name in the legend


def test_rounds_without_a_value_are_on_the_axis(make_run):
    run = make_run(rounds=12)
    run.metrics["loss"][2:] = np.nan
    (axes,) = curve({"a": run}, "loss", LIGHT).axes
    low, high = axes.get_xlim()
    assert low < 2 and high > 12
    run.metrics["loss"][:] = np.nan
    (axes,) = curve({"a": run}, "loss", LIGHT).axes
    (words,) = axes.texts
    assert words.get_text() == "no value that an axis can hold"
    assert axes.get_xlim() == (low, high) and not len(axes.get_yticks())


def test_one_round_has_one_tick(make_run):
    figure = curve({"a": make_run(rounds=2)}, "loss", LIGHT)
    png(figure)
    (axes,) = figure.axes
    low, high = axes.get_xlim()
    assert [tick for tick in axes.get_xticks() if low <= tick <= high] == [2]


def test_runs_are_told_apart_without_colour(make_run):
    runs = {f"run {i}": make_run(decay=0.7 + 0.02 * i) for i in range(9)}
    (axes,) = curve(runs, "loss", LIGHT).axes
    lines = axes.lines
    looks = {(str(one._unscaled_dash_pattern), one.get_marker()) for one in lines}
    assert len(axes.lines) == len(looks) == 9
    assert [line.get_label() for line in axes.lines] == list(runs)
    assert len({line.get_markevery() for line in axes.lines[:2]}) == 2


def test_a_legend_keeps_every_name_within_the_picture(make_run):
    names = ["a " * 90, "_hidden", *(f"a name of some length, {i}" for i in range(12))]
    figure = curve({name: make_run() for name in names}, "loss", LIGHT)
    png(figure)
    (legend,) = figure.legends
    shown = ["".join(words.get_text().split()) for words in legend.get_texts()]
    assert shown == ["".join(name.split()) for name in names]
    box, paper = legend.get_window_extent(), figure.bbox
    assert 0 <= box.x0 and box.x1 <= paper.x1 and 0 <= box.y0
    (axes,) = figure.axes
    assert box.y1 <= axes.get_window_extent().y0
    assert axes.get_window_extent().height > 2 * figure.dpi  # the picture grew instead


@pytest.mark.parametrize("letters", ["FedAvg step_size=0.1", "W" * 20, "i" * 60])
def test_a_legend_fits_by_the_width_of_its_letters(make_run, letters):
    figure = curve({f"{letters} {i}": make_run() for i in range(6)}, "loss", LIGHT)
    png(figure)
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert 0 <= box.x0 and box.x1 <= figure.bbox.x1


def test_references_are_lines_of_their_own(make_run):
    run = make_run()
    run.metrics["accuracy"] = run.metrics["test_accuracy"]
    (axes,) = curve({"a": run}, "accuracy", LIGHT).axes
    assert axes.lines[1].get_label() == "majority class: 57.1%"  # 4 of 7 rows
    assert axes.lines[1].get_ydata()[0] == 4 / 7
    given = {"optimum": 0.5, "never": np.nan}
    (axes,) = curve({"a": run}, "loss", LIGHT, given).axes
    assert [line.get_label() for line in axes.lines] == ["a", "optimum: 0.5"]
    private = make_run(classes=())
    private.metrics["accuracy"] = private.metrics["test_accuracy"]
    assert len(curve({"a": private}, "accuracy", LIGHT).axes[0].lines) == 1


def test_a_run_keeps_its_colour_where_others_lack_the_metric(make_run):
    runs = {"a": make_run(), "b": make_run()}
    del runs["a"].metrics["loss"]
    (axes,) = curve(runs, "loss", LIGHT).axes
    assert axes.lines[0].get_color() == style_of(LIGHT, 1)["color"]


@pytest.mark.parametrize(
    ("metric", "decay", "scale"),
    [
        ("loss", 0.8, "log"),
        ("loss", 0.99, "linear"),
        ("test_accuracy", 0.8, "linear"),
    ],
)
def test_a_wide_range_is_drawn_on_a_logarithmic_axis(make_run, metric, decay, scale):
    (axes,) = curve({"a": make_run(decay=decay)}, metric, LIGHT).axes
    assert axes.get_yscale() == scale


def test_values_that_are_not_positive_or_finite_are_drawn_all_the_same(make_run):
    run = make_run()
    run.metrics["loss"][3:] = np.nan
    run.metrics["loss"][1] = 0.0
    (axes,) = curve({"a": run}, "loss", LIGHT).axes
    assert axes.get_yscale() == "linear"
    assert np.isnan(axes.lines[0].get_ydata()[3:]).all()
    run.metrics["loss"][:] = np.inf
    assert png(curve({"a": run}, "loss", LIGHT)).startswith(b"\x89PNG")


def test_every_tick_of_a_narrow_logarithmic_axis_is_labelled(make_run):
    figure = curve({"a": make_run(decay=0.92)}, "loss", LIGHT)
    png(figure)
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    inside = [t for t in axes.get_yticks() if low <= t <= high]
    assert axes.get_yscale() == "log" and len(inside) >= 3


def test_names_with_signs_of_formulas_are_words(make_run):
    runs = {"cost $5": make_run(), "$x$ and $\\frac": make_run()}
    assert png(curve(runs, "loss", DARK)).startswith(b"\x89PNG")


def held(agents, classes):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 9, (agents, classes))
    counts[:, 0] += 1
    table = {
        "agent": [f"a$ {i}" for i in range(agents)],
        "rows": counts.sum(1).tolist(),
    }
    return table | {f"class {c}": counts[:, c].tolist() for c in range(classes)}


def test_bubbles_have_areas_in_proportion_to_rows():
    table = held(6, 4)
    main, side = held_picture(table, LIGHT).axes
    (bubbles,) = main.collections
    areas = dict(
        zip(map(tuple, bubbles.get_offsets().data), bubbles.get_sizes(), strict=True)
    )
    most = max(max(table[f"class {c}"]) for c in range(4))
    for c in range(4):
        for agent, n in enumerate(table[f"class {c}"]):
            if n == 0:
                assert (c, agent) not in areas
            else:
                assert areas[c, agent] == pytest.approx(max(220 * n / most, 4))
    assert [bar.get_width() for bar in side.patches] == table["rows"]


def test_letters_that_the_font_lacks_are_no_warning():
    figure = Figure()
    figure.suptitle("\u5317\u4eac")
    assert png(figure).startswith(b"\x89PNG")  # warnings are errors here


@pytest.mark.few(2)
@pytest.mark.parametrize(("agents", "classes"), [(1, 2), (70, 3), (5, 30), (4, 0)])
@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_any_number_of_agents_and_classes_is_drawn(agents, classes, theme):
    table = held(agents, max(classes, 1))
    if not classes:
        del table["class 0"]
    assert png(held_picture(table, theme)).startswith(b"\x89PNG")


def test_drawing_leaves_no_global_state(make_run):
    before = dict(matplotlib.rcParams)
    png(curve({"a": make_run()}, "loss", DARK))
    assert dict(matplotlib.rcParams) == before

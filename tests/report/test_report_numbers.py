"""Numbers and tables: what they say is what the run holds."""

import numpy as np
import pytest

from tacita.check import TacitaError
from tacita.report import (
    communication,
    final_metrics,
    metrics_of_one,
    numbers,
    reached,
    rounds_to_reach,
    tables,
)


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("n", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (2_500_000, "2.5 MB"),
        (7.2e15, "7.2 PB"),
        (3e19, "30000.0 PB"),
    ],
)
def test_bytes_have_decimal_units(n, shown):
    assert plain(numbers.size(n)) == shown


def test_numbers_for_people():
    assert plain(numbers.whole(12_345)) == "12 345"
    assert plain(numbers.share(0.9576)) == "95.8 %"
    assert numbers.share(float("nan")) == "nan"
    assert plain(numbers.seconds(0.123)) == "0.12 s"
    assert plain(numbers.seconds(42.4)) == "42 s"
    assert plain(numbers.seconds(600)) == "10.0 min"
    assert numbers.plain(True) == "yes"
    assert numbers.plain([1, 2.5, "a"]) == "1, 2.5, a"
    assert numbers.plain(list(range(30))).endswith("(30 in all)")


def test_a_spread_is_the_median_and_the_range_over_seeds():
    values = np.array([3.0, 1.0, 10.0])
    assert numbers.spread("loss", values) == "3 (1 to 10)"
    assert numbers.spread("loss", values[:1]) == "3"


def test_seeds_that_diverged_are_left_out_of_a_spread_and_counted():
    values = np.array([3.0, np.nan, 10.0, np.inf])
    assert numbers.spread("loss", values) == "6.5 (3 to 10; 2 of 4 seeds diverged)"
    # A metric that no seed has says nothing of them.
    assert numbers.spread("loss", values[[1, 1]]) == "nan (nan to nan)"


def test_a_seed_that_diverged_has_not_reached_a_value(make_run):
    run = make_run(seeds=3)
    loss = run.metrics["loss"]
    loss[0] = np.nan
    at = run.metrics["round"]
    # The median of three, one of them never: the later of the other two.
    assert rounds_to_reach(run, "loss", 1.0) == at[np.argmax(loss[2] <= 1.0)]
    loss[1] = np.nan
    assert rounds_to_reach(run, "loss", 1.0) is None


def test_first_round_that_reaches_a_value_by_brute_force(make_run):
    run = make_run(seeds=3)
    for value in (8.0, 1.0, 1e-3, 1e-9):
        want = None
        for i, at in enumerate(run.metrics["round"]):
            if sorted(run.metrics["loss"][:, i])[1] <= value:
                want = int(at)
                break
        assert rounds_to_reach(run, "loss", value) == want
    # An accuracy is reached from below.
    first = rounds_to_reach(run, "test_accuracy", 0.5)
    middle = np.median(run.metrics["test_accuracy"], axis=0)
    assert middle[first // 2 - 1] >= 0.5 > middle[first // 2 - 2]


def test_a_metric_that_was_not_recorded_is_refused_with_the_nearest(make_run):
    with pytest.raises(TacitaError, match="did you mean 'test_accuracy'"):
        rounds_to_reach(make_run(), "tets_accuracy", 0.5)


def test_final_metrics_has_a_line_per_run_and_marks_what_is_missing(make_run):
    one, two = make_run("one"), make_run("two", decay=0.9)
    del two.metrics["test_accuracy"]
    table = final_metrics({"one": one, "two": two})
    assert table.columns[:2] == ("run", "rounds")
    assert table.columns[2:] == ("accuracy on test rows", "loss, summed over agents")
    assert plain(table.rows[0][2]) == "90.0 %"
    assert table.rows[1][2] == tables.MISSING
    assert table.rows[1][3] == f"{10 * 0.9**40:.4g}"


def test_metrics_of_one_tells_first_best_and_last(make_run):
    run = make_run()
    run.metrics["loss"][7] = 1e-7  # lower than the last, in round 16
    line = metrics_of_one(run).rows[1]
    assert line == ("loss, summed over agents", "6.4", "1e-07", "16", "0.001329")


def test_the_line_of_a_metric_counts_the_seeds_that_diverged(make_run):
    run = make_run(seeds=3)
    run.metrics["loss"][1, 4:] = np.nan
    line = metrics_of_one(run).rows[1]
    best = run.metrics["loss"][[0, 2], -1].mean()
    assert line[2:4] == (f"{best:.4g}", "40")
    assert line[4].endswith("; 1 of 3 seeds diverged)")


def test_metrics_that_are_not_finite_make_no_best(make_run):
    run = make_run()
    run.metrics["loss"][:] = np.nan
    line = metrics_of_one(run).rows[1]
    assert line[1:] == ("nan", tables.MISSING, tables.MISSING, "nan")


def test_communication_shows_letters_and_bytes_both_ways(make_run):
    table = communication({"a": make_run()})
    shown = dict(zip(table.columns, map(plain, table.rows[0]), strict=True))
    assert shown["letters"] == "1 234"
    assert shown["to the coordinator"] == "40.0 kB"
    assert shown["from the coordinator"] == "50.0 kB"
    assert shown["bytes in all"] == "90.0 kB"
    assert shown["bytes a round"] == "2.2 kB"


def test_communication_of_a_graph_has_no_coordinator(make_run):
    run = make_run()
    run.info["communication"] = {"letters": 6, "bytes": 48}
    assert "to the coordinator" not in communication({"a": run}).columns


def test_reached_tells_rounds_and_bytes_until_then(make_run):
    table = reached({"a": make_run()}, {"loss": 1.0, "test_accuracy": 0.99})
    # 10 * 0.8^r <= 1 from r = 10.3 on, so in the record of round 12.
    assert table.rows[0][1] == "12"
    assert plain(table.rows[0][2]) == "about 27.0 kB"
    assert table.rows[0][3:] == ("not reached", tables.MISSING)


def test_settings_are_parted_into_what_differs_and_what_is_shared(make_run):
    differ, same = tables.settings({"a": make_run("a"), "b": make_run("b", decay=0.5)})
    assert ("algorithm.step_size", "0.8", "0.5") in differ.rows
    assert ("run.participation", "0.5") in same.rows
    assert not {row[0] for row in differ.rows} & {row[0] for row in same.rows}

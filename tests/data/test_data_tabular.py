"""One-hot columns, scales, test rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from tacita.check import TacitaError
from tacita.data.fmi import lagged
from tacita.data.tabular import assemble, one_hot, scale_of
from tacita.data.test_rows import hold_out_groups, hold_out_last, hold_out_rows
from tacita.encoding import Encoding


def scaled(train, scale, *tables):
    names = [str(place) for place in range(train.shape[1])]
    encoding = Encoding.of_numbers(names, **scale_of(train, scale))
    return [encoding.scaled(table) for table in tables]


def test_one_hot_equals_pandas():
    frame = pd.DataFrame({"n": [1, 2, 3], "c": ["x", "y", "x"], "m": [0.5, 1.5, 2.5]})
    ours = one_hot(frame, {"c": ["x", "y"]})
    theirs = pd.get_dummies(frame, columns=["c"], prefix_sep="=", dtype=float)
    pd.testing.assert_frame_equal(ours[theirs.columns], theirs.astype(float))
    dropped = one_hot(frame, {"c": ["x", "y"]}, drop_first=True)
    assert dropped.columns.tolist() == ["n", "c=y", "m"]
    unseen = one_hot(frame, {"c": ["x"]}, unseen="zeros")
    assert unseen["c=x"].tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(TacitaError, match="column 'c' holds 'y', which is none of"):
        one_hot(frame, {"c": ["x"]})


@pytest.mark.parametrize(
    ("scale", "scaler"), [("minmax", MinMaxScaler()), ("standard", StandardScaler())]
)
def test_scales_equal_those_of_scikit_learn(scale, scaler):
    random = np.random.default_rng(0)
    train, test = random.normal(3, 2, (20, 4)), random.normal(3, 2, (9, 4))
    ours = scaled(train, scale, train, test)
    np.testing.assert_allclose(ours[0], scaler.fit_transform(train), atol=1e-12)
    np.testing.assert_allclose(ours[1], scaler.transform(test), atol=1e-12)


@pytest.mark.parametrize("scale", ["minmax", "standard", "unit"])
def test_a_constant_column_becomes_zero(scale):
    train = np.column_stack([np.full(7, 0.1), np.arange(7.0)])
    made, test = scaled(train, scale, train, np.array([[0.3, 1.0]]))
    assert (made[:, 0] == 0).all() and test[0, 0] == 0 and np.isfinite(made).all()


def test_unit_rows_have_norm_one_and_unknown_scales_are_refused():
    x = np.random.default_rng(1).random((5, 3))
    (made,) = scaled(x, "unit", x)
    norms = np.linalg.norm(made, axis=1)
    np.testing.assert_allclose(norms[norms > 0], 1)
    with pytest.raises(TacitaError, match="did you mean 'unit'"):
        scale_of(x, "unit_norm")


def test_hold_out_rows_takes_the_share_of_every_group():
    groups = np.repeat(["a", "b", "c"], [10, 20, 1])
    test = hold_out_rows(groups, 0.3, seed=0)
    assert [int(test[groups == g].sum()) for g in "abc"] == [3, 6, 0]
    assert not hold_out_rows(groups, 0.0, seed=0).any()
    assert (hold_out_rows(groups, 0.99, seed=0) == (groups != "c")).sum() == 31 - 2
    assert (test != hold_out_rows(groups, 0.3, seed=1)).any()


def test_hold_out_groups_takes_whole_groups():
    groups = np.repeat(np.arange(10), 5)
    test = hold_out_groups(groups, 0.2, seed=0)
    assert sorted({int(test[groups == g].sum()) for g in range(10)}) == [0, 5]
    assert test.sum() == 10


def test_hold_out_last_keeps_moments_together_and_never_looks_ahead():
    time = np.array([5, 1, 1, 2, 3, 3, 3, 4])
    for share in (0.0, 0.1, 0.3, 0.5, 0.9):
        test = hold_out_last(time, share)
        assert not test.any() or time[test].min() > time[~test].max()
        assert not test[time == 1].any()
    assert hold_out_last(time, 0.25).sum() == 2
    assert not hold_out_last(time, 0.0).any()


@pytest.mark.parametrize("share", [1.0, -0.1, 1.5, float("nan"), None, "half"])
def test_a_bad_share_is_refused(share):
    with pytest.raises(TacitaError, match="test_share"):
        hold_out_rows(np.zeros(4), share, seed=0)


def test_test_rows_of_unknown_agents_are_marked():
    data = assemble(
        name="toy",
        features=pd.DataFrame({"a": np.arange(4.0)}),
        y=np.arange(4.0),
        task="regression",
        test=np.array([False, False, True, True]),
        scale=None,
        target_name="y",
        agent=["b", "a", "b", "new"],
        positions={"a": (1.0, 2.0), "b": (3.0, 4.0)},
    )
    assert data.agent_names == ("a", "b") and data.test_agent.tolist() == [1, -1]
    assert data.positions.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_moment_missing_everywhere_is_a_gap_too():
    days = pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-04", "2026-01-05"])
    long = pd.DataFrame(
        {
            "station": np.repeat(["a", "b"], 4),
            "time": np.tile(days, 2),
            "t": [1.0, 2.0, 4.0, 5.0, 10.0, 20.0, 40.0, 50.0],
        }
    )
    rows = lagged(long, ["t"], "t", 1, "D")
    assert rows[["station", "t -1", "value"]].to_numpy().tolist() == [
        ["a", 1.0, 2.0],
        ["a", 4.0, 5.0],
        ["b", 10.0, 20.0],
        ["b", 40.0, 50.0],
    ]

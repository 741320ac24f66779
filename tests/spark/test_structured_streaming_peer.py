"""The peer that our benchmarks compare with computes what it is said to compute."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest

pytestmark = pytest.mark.spark

PATH = Path(__file__).parents[2] / "benchmarks" / "structured_streaming.py"
EVENTS = 200_000


@pytest.fixture(scope="module")
def peer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("structured_streaming", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bids(peer: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bids")
    assert peer.write_bids(folder, EVENTS, files=3) == EVENTS // 50 * 46
    return folder


def test_tumbling_windows_are_those_of_another_engine(
    peer: ModuleType, bids: Path, spark: Any, tmp_path: Path
) -> None:
    session = spark.newSession()
    running = peer.start(session, "tumbling", bids, "memory", str(tmp_path), 2)
    running.awaitTermination()
    found = session.sql("SELECT CAST(window.start AS LONG), auction, bids, total, highest FROM tumbling")
    expected = duckdb.execute(
        f"""
        SELECT epoch(time_bucket(INTERVAL '10 seconds', ts))::BIGINT, auction, count(*), sum(price)::BIGINT,
               max(price)
        FROM '{bids}/*.parquet' WHERE ts < TIMESTAMPTZ '2024-01-01 00:00:10+00' GROUP BY ALL
        """
    ).fetchall()
    assert len(expected) > 1_000
    assert sorted(tuple(row) for row in found.collect()) == sorted(expected)


def test_sliding_windows_are_those_of_another_engine(peer: ModuleType, spark: Any, tmp_path: Path) -> None:
    folder, checkpoint = tmp_path / "bids", tmp_path / "checkpoint"
    folder.mkdir()
    peer.write_bids(folder, 7_000, files=2, rate=100)
    session = spark.newSession()
    peer.start(session, "sliding", folder, "memory", str(checkpoint), 1).awaitTermination()
    found = session.sql("SELECT CAST(window.end AS LONG), auction, bids, total FROM sliding")
    expected = duckdb.execute(
        f"""
        SELECT stop::BIGINT, auction, count(*), sum(price)::BIGINT
        FROM '{folder}/*.parquet', generate_series(1704067201, 1704067269) AS ends(stop)
        WHERE epoch(ts) >= stop - 60 AND epoch(ts) < stop GROUP BY ALL
        """
    ).fetchall()
    assert len(expected) > 1_000
    assert sorted(tuple(row) for row in found.collect()) == sorted(expected)


def test_a_query_is_measured(peer: ModuleType, bids: Path, spark: Any) -> None:
    result = peer.measure(spark.newSession(), "tumbling", bids, runs=1, files_per_batch=3)
    assert result.rows == EVENTS // 50 * 46
    assert result.batches >= 1
    assert len(result.seconds) == 1
    assert result.rate > 0
    assert result.state_rows > 1_000

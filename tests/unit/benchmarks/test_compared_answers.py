"""The benchmarks' comparison of answers sees what differs."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from answers import Comparison, compare
from bids import write_bids
from peer import QUERIES
from peer_duckdb import DuckDB
from spelled import Headrace
from spellings import SPELLED


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("right", "other"):
        (tmp_path / name).mkdir()
    return tmp_path / "right", tmp_path / "other"


def _save(folder: Path, rows: list[tuple[int, int, int]], name: str = "0.parquet") -> None:
    columns = zip(*rows, strict=True)
    pq.write_table(pa.table(dict(zip("abc", columns, strict=True))), folder / name)


def test_rows_are_compared_in_any_order_and_over_all_files(folders: tuple[Path, Path]) -> None:
    right, other = folders
    _save(right, [(1, 2, 3), (4, 5, 6), (1, 2, 3)])
    _save(other, [(1, 2, 3), (1, 2, 3)])
    _save(other, [(4, 5, 6)], "1.parquet")
    found = compare("join", right, other)
    assert found == Comparison(rows=3, missing=0, extra=0)
    assert found.equal


def test_a_row_too_few_and_another_one_are_differences(folders: tuple[Path, Path]) -> None:
    right, other = folders
    _save(right, [(1, 2, 3), (1, 2, 3), (4, 5, 6)])
    _save(other, [(1, 2, 3), (4, 5, 7)])
    found = compare("join", right, other)
    assert found == Comparison(rows=3, missing=2, extra=1)
    assert not found.equal


def test_nothing_is_not_an_answer(folders: tuple[Path, Path]) -> None:
    for folder in folders:
        pq.write_table(pa.table({"a": pa.array([], pa.int64()), "b": [], "c": []}), folder / "0.parquet")
    assert not compare("join", *folders).equal


def test_texts_of_another_system_are_read_as_what_they_say(folders: tuple[Path, Path]) -> None:
    right, other = folders
    instants = pa.array([1_704_067_200_000_000], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"start": instants, "end": instants, "n": [3]}), right / "0.parquet")
    (other / "part-0").write_text('"2024-01-01 00:00:00","2024-01-01 00:00:00Z",3\n')
    assert compare("1 count", right, other).equal


def test_windows_that_end_later_are_left_out(folders: tuple[Path, Path]) -> None:
    right, other = folders
    instants = pa.array([10, 20], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"start": instants, "end": instants, "n": [3, 4]}), right / "0.parquet")
    pq.write_table(pa.table({"start": instants[:1], "end": instants[:1], "n": [3]}), other / "0.parquet")
    assert compare("1 count", right, other, until=19) == Comparison(rows=1, missing=0, extra=0)
    assert compare("1 count", right, other) == Comparison(rows=2, missing=1, extra=0)


@pytest.fixture(scope="module")
def bids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three minutes of bids, so that some leave the windows of a minute."""
    folder = tmp_path_factory.mktemp("data")
    for table in ("bid", "auction"):
        (folder / table).mkdir()
        write_bids(folder / table, 2_000, files=2, rate=10, table=table, milliseconds=True)
    return folder / "bid"


@pytest.mark.parametrize("query", QUERIES)
def test_headrace_answers_as_duckdb_does(query: str, bids: Path, folders: tuple[Path, Path]) -> None:
    theirs, ours = folders
    with DuckDB() as duckdb:
        duckdb.save(query, bids.parent, theirs)
    with Headrace(inline=True) as headrace:
        headrace.save(SPELLED[query], bids, ours)
    assert compare(query, theirs, ours).equal

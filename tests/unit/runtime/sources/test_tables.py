import datetime as dt
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.errors import SourceError
from headrace.runtime.sources import open_source, to_arrow_table, write_arrow

TABLE = pa.table({"t": [1, 2], "s": ["a", None]})


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        pd.DataFrame({"t": [1, 2], "s": ["a", None]}, index=[7, 9]),
        pl.DataFrame({"t": [1, 2], "s": ["a", None]}),
    ],
    ids=lambda data: f"{type(data).__module__.partition('.')[0]} {type(data).__name__}",
)
def test_tables_of_many_makers(data: object, tmp_path: Path) -> None:
    table = to_arrow_table(data)
    assert table.schema.metadata is None
    assert table.to_pydict() == TABLE.to_pydict()
    write_arrow(table, tmp_path / "f.arrow")
    assert [entry.name for entry in tmp_path.iterdir()] == ["f.arrow"]
    source = open_source("arrow", {"path": "f.arrow"}, None, "t", "s", tmp_path)
    (read,) = source.read(0, source.size, ("t", "s"))
    assert read.rows.to_pydict() == TABLE.to_pydict()


def test_data_that_is_no_table() -> None:
    with pytest.raises(SourceError, match="a list cannot be used as a table"):
        to_arrow_table([1, 2])
    with pytest.raises(SourceError, match="the DataFrame cannot be made an Arrow table"):
        to_arrow_table(pd.DataFrame({"x": [1, "a", dt.date(2024, 1, 1)]}))


def test_nothing_half_written_stays(tmp_path: Path) -> None:
    (tmp_path / "f.arrow").mkdir()
    with pytest.raises(OSError):
        write_arrow(TABLE, tmp_path / "f.arrow")
    assert [entry.name for entry in tmp_path.iterdir()] == ["f.arrow"]


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_columns_of_types_that_streams_lack_are_left_out_with_a_warning(kind: str) -> None:
    table = pa.table({"ts": [1, 2], "tags": [["a"], []], "took": pa.array([1, 2], pa.duration("us"))})
    data = {"arrow": table, "pandas": table.to_pandas(), "polars": pl.from_arrow(table)}[kind]
    with hr.connect(runner="inline") as db:
        message = r"^s: left out, .*: took \(duration"
        with pytest.warns(hr.HeadraceWarning, match=message) as warned:
            db.stream("s", data, timestamp="ts")
        assert [warning.filename for warning in warned] == [__file__]
        query = db.query("SELECT * FROM s")
        db.run()
        assert query.history().column_names == ["ts", "tags", "valid_from", "valid_to"]
        assert query.history()["tags"].to_pylist() == [["a"], []]


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_columns_of_files_are_left_out_with_a_warning(kind: str, tmp_path: Path) -> None:
    table = pa.table({"ts": [1, 2], "spot": [{"x": b"", "X": 1}, {"x": b"", "X": 2}]})
    if kind == "arrow":
        write_arrow(table, tmp_path / "f")
    else:
        pq.write_table(table, tmp_path / "f")
    with pytest.warns(hr.HeadraceWarning, match=r"^f: left out, .*: spot \(struct<x: binary, X: int64>\);"):
        source = open_source(kind, {"path": "f"}, None, "ts", "s", tmp_path)
    assert source.schema.names == ("ts",)


def test_rows_and_what_is_read_later_are_tables_too(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": [None, "x"]})
    rows = [{"a": 1}, {"a": 2, "b": "x"}]
    assert to_arrow_table(rows).equals(table)
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    assert to_arrow_table(pyarrow.dataset.dataset(tmp_path / "t.parquet")).equals(table)
    polars = pytest.importorskip("polars")
    lazy = to_arrow_table(polars.LazyFrame(rows))
    assert lazy.column_names == ["a", "b"]
    assert lazy.num_rows == 2
    for nothing in ([], [1, 2], [{"a": 1}, 2]):
        with pytest.raises(SourceError, match="a list cannot be used as a table"):
            to_arrow_table(nothing)

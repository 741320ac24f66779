"""Parquet and Arrow: types, columns, damage."""

import datetime as dt
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import HeadraceWarning, SourceError
from headrace.runtime.sources import Rejected, SplitSource, open_source, write_arrow
from headrace.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema

ReadAll = Callable[..., tuple[pa.Table, list[Rejected]]]


def write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=3)


def write_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def write_compressed(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(
        str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table, max_chunksize=2)


WRITERS = [
    ("parquet", write_parquet),
    ("arrow", write_arrow),
    ("arrow", write_stream),
    ("arrow", write_compressed),
]
each_format = pytest.mark.parametrize(
    ("form", "write"), WRITERS, ids=[write.__name__ for _, write in WRITERS]
)


def open_path(form: str, path: Path, declared: Schema | None = None, timestamp: str = "t") -> SplitSource:
    return open_source(form, {"path": path.name}, declared, timestamp, "s", path.parent)


@each_format
def test_types_are_widened(form: str, write: Callable[..., None], tmp_path: Path, read_all: ReadAll) -> None:
    day, moment = dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5)
    columns = {
        "t": (pa.array([1, 2], pa.int32()), BIGINT, [1, 2]),
        "small": (pa.array([1, None], pa.uint8()), BIGINT, [1, None]),
        "large": (pa.array([2**64 - 1, 0], pa.uint64()), pa.decimal128(20, 0), [2**64 - 1, 0]),
        "real": (pa.array([0.5, None], pa.float32()), DOUBLE, [0.5, None]),
        "text": (pa.array(["a", "é"], pa.large_string()), STRING, ["a", "é"]),
        "coded": (pa.array(["a", "a"]).dictionary_encode(), STRING, ["a", "a"]),
        "day": (pa.array([day, None], pa.date32()), DATE, [day, None]),
        "money": (pa.array([Decimal("1.5"), None], pa.decimal128(5, 2)), pa.decimal128(5, 2), [1.5, None]),
        "flag": (pa.array([True, None]), BOOLEAN, [True, None]),
        "naive": (
            pa.array([moment, None], pa.timestamp("ms")),
            TIMESTAMP,
            [moment.replace(tzinfo=dt.UTC), None],
        ),
        "nanos": (
            pa.array([1_999, -1], pa.timestamp("ns", "Asia/Tokyo")).cast(pa.timestamp("ns", "Asia/Tokyo")),
            TIMESTAMP,
            [
                dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC),
                dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),
            ],
        ),
        "list": (pa.array([[1], []], pa.list_(pa.int8())), pa.list_(BIGINT), [[1], []]),
        "row": (
            pa.array(
                [{"a": moment, "b": [1.0]}, None],
                pa.struct([("a", pa.timestamp("ms")), ("b", pa.large_list(pa.float32()))]),
            ),
            pa.struct([("a", TIMESTAMP), ("b", pa.list_(DOUBLE))]),
            [{"a": moment.replace(tzinfo=dt.UTC), "b": [1.0]}, None],
        ),
        "map": (
            pa.array([[("b", 1), ("a", 2), ("b", 3)], []], pa.map_(pa.string(), pa.int32())),
            pa.map_(STRING, BIGINT),
            [[("a", 2), ("b", 3)], []],
        ),
        "bytes": (pa.array([b"x", None], pa.large_binary()), BINARY, [b"x", None]),
        "odd": (pa.array([{"x": 1, "X": 1}, None]), None, None),
    }
    write(pa.table({name: column for name, (column, _, _) in columns.items()}), tmp_path / "f")
    with pytest.warns(HeadraceWarning, match=r"left out, .*: odd \(struct<"):
        opened = open_path(form, tmp_path / "f")
    source = pickle.loads(pickle.dumps(opened))
    readable = {name: rest for name, (_, *rest) in columns.items() if name != "odd"}
    assert {field.name: field.type for field in source.schema} == {
        name: rest[0] for name, rest in readable.items()
    }
    rows, rejected = read_all(source)
    assert not rejected
    assert rows.to_pydict() == {name: rest[1] for name, rest in readable.items()}


@each_format
def test_declared_columns_are_found_whatever_their_case(
    form: str, write: Callable[..., None], tmp_path: Path, read_all: ReadAll
) -> None:
    table = pa.table(
        {"T": [1, 2], "money": pa.array([1, 2], pa.int16()), "a.b": ["x", "y"], "nothing": pa.nulls(2)}
    )
    write(table, tmp_path / "f")
    wide = pa.decimal128(30, 2)
    declared = Schema(
        (Field("nothing", STRING), Field("Money", wide), Field("A.B", STRING), Field("t", BIGINT))
    )
    source = open_path(form, tmp_path / "f", declared)
    assert source.schema == declared
    rows, _ = read_all(source)
    assert rows.to_pydict() == {
        "nothing": [None, None],
        "Money": [Decimal("1.00"), Decimal("2.00")],
        "A.B": ["x", "y"],
        "t": [1, 2],
    }
    assert read_all(source, columns=("t",))[0].to_pydict() == {"t": [1, 2]}
    assert read_all(source, columns=(), cuts=[1])[0]["rows"].to_pylist() == [2]


@each_format
@pytest.mark.parametrize(
    ("field", "message"),
    [
        (Field("tt", BIGINT), "no column tt.*did you mean t"),
        (Field("t", STRING), "column t is BIGINT, not STRING"),
        (Field("money", DOUBLE), r"column money is DECIMAL\(5, 2\), not DOUBLE"),
        (Field("money", pa.decimal128(5, 1)), r"column money is DECIMAL\(5, 2\), not DECIMAL\(5, 1\)"),
        (Field("t", pa.decimal128(18, 0)), "not DECIMAL"),
        (Field("list", STRING), "column list is ARRAY<BIGINT>, not STRING"),
        (Field("list", pa.list_(STRING)), "column list is ARRAY<BIGINT>, not ARRAY<STRING>"),
        (Field("took", BIGINT), "column took is of type duration.* not supported"),
    ],
)
def test_columns_that_do_not_fit(
    form: str, write: Callable[..., None], tmp_path: Path, field: Field, message: str
) -> None:
    money = pa.array([Decimal("1.25")], pa.decimal128(5, 2))
    took = pa.array([1], pa.duration("s"))
    write(pa.table({"t": [1], "money": money, "list": [[1]], "took": took}), tmp_path / "f")
    with pytest.raises(SourceError, match=message) as caught:
        open_path(form, tmp_path / "f", Schema((field,)), field.name)
    assert "f: " in str(caught.value)


@each_format
def test_another_file_of_the_folder_may_not_differ(
    form: str, write: Callable[..., None], tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    write(pa.table({"t": [1]}), folder / "a")
    write(pa.table({"t": ["x"]}), folder / "b")
    with pytest.raises(SourceError, match="folder/b: column t is STRING, not BIGINT"):
        open_path(form, folder)


@each_format
def test_a_timestamp_too_large_for_microseconds_is_rejected(
    form: str, write: Callable[..., None], tmp_path: Path, read_all: ReadAll
) -> None:
    stamps = pa.array([1, 2**50, 3, -(2**63)], pa.timestamp("ms"))
    write(pa.table({"t": stamps.view(pa.timestamp("ms")), "s": ["a", "b", "c", "d"]}), tmp_path / "f")
    rows, rejected = read_all(open_path(form, tmp_path / "f"), cuts=[2])
    assert rows["s"].to_pylist() == ["a", "b", "c"]
    assert rejected == [
        Rejected(f'{{"t": "{-(2**63)}", "s": "d"}}', "t is beyond the range of TIMESTAMP", "f:4")
    ]


@each_format
def test_damaged_files(form: str, write: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"not what it should be")
    with pytest.raises(SourceError, match=r"^f: .*hint: check that it is a complete, readable"):
        open_path(form, path)
    path.write_bytes(b"")
    with pytest.raises(SourceError, match=r"^f: "):
        open_path(form, path)
    write(pa.table({"t": range(1000), "s": ["x" * 20] * 1000}), path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(SourceError, match=r"^f: "):
        list(open_path(form, path).read(0, 10**9, ("t",)))


@each_format
def test_files_that_change_after_opening(form: str, write: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "f"
    write(pa.table({"t": range(10)}), path)
    source = open_path(form, path)
    write(pa.table({"t": range(7)}), path)
    with pytest.raises(SourceError, match="f: the file has changed"):
        list(source.read(0, 10, ("t",)))
    write(pa.table({"other": range(10)}), path)
    with pytest.raises(SourceError, match="f: there is no column t"):
        list(source.read(0, 10, ("t",)))
    path.unlink()
    with pytest.raises(SourceError, match=r"f: .*No such file"):
        list(source.read(0, 10, ("t",)))


@each_format
def test_text_that_is_not_utf8(form: str, write: Callable[..., None], tmp_path: Path) -> None:
    data = pa.py_buffer(b"ok\xff\xfe")
    offsets = pa.py_buffer(np.array([0, 2, 4], np.int32))
    broken = pa.StringArray.from_buffers(2, offsets, data)
    write(pa.table({"t": [1, 2], "s": broken}), tmp_path / "f")
    source = open_path(form, tmp_path / "f")
    assert sum(read.rows.num_rows for read in source.read(0, 2, ("t",))) == 2
    with pytest.raises(SourceError, match=r"(?i)^f: .*utf-?8"):
        list(source.read(0, 2, ("s",)))


def test_names_that_differ_by_case_alone_must_be_declared(tmp_path: Path, read_all: ReadAll) -> None:
    write_arrow(pa.table({"t": [1], "T": [2], "U": [3], "u": [4]}), tmp_path / "f")
    with pytest.raises(SourceError, match=r"f: column T is defined twice.*declare"):
        open_path("arrow", tmp_path / "f")
    declared = Schema((Field("T", BIGINT), Field("u", BIGINT)))
    source = open_path("arrow", tmp_path / "f", declared)
    assert read_all(source)[0].to_pydict() == {"T": [2], "u": [4]}


def test_a_parquet_row_group_is_decoded_once_for_consecutive_ranges(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": range(1000)}), tmp_path / "f")
    source = open_path("parquet", tmp_path / "f")
    opened: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        read = pq.ParquetFile.read_row_group

        def counted(*args: Any, **named: Any) -> Any:
            opened.append(1)
            return read(*args, **named)

        patch.setattr(pq.ParquetFile, "read_row_group", counted)
        numbers = [
            number
            for start in range(0, 1000, 100)
            for piece in source.read(start, start + 100, ("t",))
            for number in piece.rows.column(0).to_pylist()
        ]
    assert numbers == list(range(1000))
    assert len(opened) == 1


def test_arrow_rows_are_views_of_the_mapped_file(tmp_path: Path) -> None:
    write_arrow(pa.table({"t": range(100_000)}), tmp_path / "f")
    before = pa.total_allocated_bytes()
    (piece,) = open_path("arrow", tmp_path / "f").read(0, 100_000, ("t",))
    assert pa.total_allocated_bytes() - before < 100_000
    assert piece.rows.column(0)[99_999].as_py() == 99_999

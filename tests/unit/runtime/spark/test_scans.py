"""Which files of a stream our tasks read, by Spark's log of it, and which are left to Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.runtime.sources.rows.contract import SplitSource
from headrace.runtime.sources.rows.rows import gather
from headrace.runtime.spark import scans
from headrace.runtime.spark.file_log import files_of_batch
from headrace.runtime.spark.scans import FileBatches
from headrace.schema import BIGINT, STRING, TIMESTAMP, Field, Schema

SCHEMA = Schema((Field("k", STRING), Field("v", BIGINT), Field("ts", TIMESTAMP)))
TYPES = {"k": "string", "v": "bigint", "ts": "timestamp"}
COLUMNS = {
    "k": pa.array(["a", None]),
    "v": pa.array([1, 2]),
    "ts": pa.array([10, 20], pa.timestamp("us", "UTC")),
}


def log(checkpoint: Path, files: Mapping[int, Sequence[str]], offsets: Sequence[int]) -> None:
    """A log whose entries have these files; every third one is compact, as Spark makes every tenth."""
    for number, offset in enumerate(offsets):
        write(checkpoint / "offsets" / str(number), {"conf": {}}, {"logOffset": offset})
    lines = []
    for entry, names in files.items():
        fresh = [{"path": name, "timestamp": 1, "batchId": entry} for name in names]
        lines += fresh
        if entry % 3 == 2:
            write(checkpoint / f"sources/0/{entry}.compact", *lines)
        else:
            write(checkpoint / f"sources/0/{entry}", *fresh)


def write(path: Path, *lines: Mapping[str, object], version: str = "v1") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([version, *map(json.dumps, lines)]), "utf-8")


def test_a_batch_has_the_entries_after_those_of_the_batch_before(tmp_path: Path) -> None:
    files = {entry: [f"file:///f/{entry}{letter}" for letter in "ab"] for entry in range(5)}
    log(tmp_path, files, offsets=[0, 2, 3])
    assert [
        [str(path) for path in files_of_batch(tmp_path, number)] for number in range(3)
    ] == [["/f/0a", "/f/0b"], ["/f/1a", "/f/1b", "/f/2a", "/f/2b"], ["/f/3a", "/f/3b"]]  # fmt: skip


def test_a_path_is_a_url(tmp_path: Path) -> None:
    log(tmp_path, {0: ["file:/a%20b/c%25+%23\u00e9\u2028.parquet", "file:///d;e"]}, offsets=[0])
    assert files_of_batch(tmp_path, 0) == [Path("/a b/c%+#\u00e9\u2028.parquet"), Path("/d;e")]


@pytest.mark.parametrize(
    "url", ["hdfs:///f", "s3a://bucket/f", "file://host/f", "/f", "file:/f%ff", "file:/f#g"]
)
def test_a_file_that_is_elsewhere_is_not_in_the_list(tmp_path: Path, url: str) -> None:
    log(tmp_path, {0: [url]}, offsets=[0])
    with pytest.raises(ValueError):
        files_of_batch(tmp_path, 0)
    assert FileBatches(tmp_path, SCHEMA, TYPES).source(0) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("offsets/1", None),
        ("offsets/0", None),
        ("sources/0/1", None),
        ("offsets/1", 'v2\n{}\n{"logOffset":1}'),
        ("offsets/1", "v1\n{}\n1"),
        ("offsets/1", "v1\n{}\n-"),
        ("offsets/1", 'v1\n{}\n{"logOffset":1}\n{"logOffset":1}'),
        ("offsets/1", "v1"),
        ("offsets/1", ""),
        ("sources/0/1", 'v2\n{"path":"file:/f","timestamp":1,"batchId":1}'),
        ("sources/0/1", 'v1\n{"path":"file:/f","timestamp":1,"batchId":0}'),
        ("sources/0/1", 'v1\n{"path":"file:/f","timestamp":1}'),
        ("sources/0/1", 'v1\n{"file":"file:/f","batchId":1}'),
        ("sources/0/1", "v1\nfile:/f"),
        ("sources/0/1", "v1\n[]"),
    ],
)
def test_a_log_of_another_form_is_left_to_spark(tmp_path: Path, name: str, text: str | None) -> None:
    written = file_of(tmp_path, COLUMNS)
    checkpoint = tmp_path / "log"
    log(checkpoint, {entry: [written.as_uri()] for entry in range(2)}, offsets=[0, 1])
    assert FileBatches(checkpoint, SCHEMA, TYPES).source(1) is not None
    if text is None:
        (checkpoint / name).unlink()
    else:
        (checkpoint / name).write_text(text)
    assert FileBatches(checkpoint, SCHEMA, TYPES).source(1) is None


def file_of(
    folder: Path, columns: Mapping[str, pa.Array], name: str = "f.parquet", **options: object
) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns)), path, **options)
    return path


def batch_of(folder: Path, *paths: Path, types: Mapping[str, str] = TYPES) -> SplitSource | None:
    """What reads a batch of these files."""
    log(folder / "log", {0: [path.as_uri() for path in paths]}, offsets=[0])
    return FileBatches(folder / "log", SCHEMA, types).source(0)


def test_a_batch_is_the_rows_of_its_files_in_the_order_of_the_log(tmp_path: Path) -> None:
    first = file_of(tmp_path, COLUMNS | {"more": pa.array([[1], None])}, "b", row_group_size=1)
    second = noted(tmp_path, version="3.5.0")
    log(tmp_path / "log", {0: [first.as_uri(), second.as_uri()]}, offsets=[0])
    source = FileBatches(tmp_path / "log", SCHEMA, TYPES).source(0)
    assert source is not None
    assert (source.size, source.borders) == (4, (1, 2, 4))
    (read,) = gather(source.read(0, 4, ("v", "k")))
    assert read.rows.to_pydict() == {"v": [1, 2, 1, 2], "k": ["a", None, "a", None]}


def moved(folder: Path, name: str) -> Path:
    return file_of(folder, COLUMNS, name)


def beside_a_checksum(folder: Path) -> Path:
    (folder / ".f.parquet.crc").touch()
    return file_of(folder, COLUMNS)


def damaged(folder: Path) -> Path:
    path = file_of(folder, COLUMNS)
    path.write_bytes(path.read_bytes()[:-1])
    return path


def noted(folder: Path, **notes: str) -> Path:
    table = pa.table(dict(reversed(COLUMNS.items()))).replace_schema_metadata(
        {f"org.apache.spark.{k}": v for k, v in notes.items()}
    )
    pq.write_table(table, folder / "f.parquet")
    return folder / "f.parquet"


def with_column(name: str, column: pa.Array, **options: Any) -> Callable[[Path], Path]:
    return lambda folder: file_of(folder, COLUMNS | {name: column}, **options)


def without(name: str) -> Callable[[Path], Path]:
    return lambda folder: file_of(folder, {key: COLUMNS[key] for key in COLUMNS if key != name})


TWO = pa.array([1, 2])


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda folder: folder / "nowhere", id="no file"),
        pytest.param(lambda folder: folder, id="a folder"),
        pytest.param(damaged, id="damaged"),
        pytest.param(beside_a_checksum, id="a checksum to compare"),
        pytest.param(lambda folder: moved(folder, "_f"), id="hidden by _"),
        pytest.param(lambda folder: moved(folder, ".f"), id="hidden by ."),
        pytest.param(lambda folder: moved(folder, "k=1/f"), id="a column from the folder"),
        pytest.param(lambda folder: moved(folder, "x=1/y/f"), id="a column from a folder further up"),
        pytest.param(lambda folder: noted(folder, version="2.4.8"), id="the calendar of old Sparks"),
        pytest.param(lambda folder: noted(folder, version="3.5.0", legacyDateTime=""), id="or of a setting"),
        pytest.param(lambda folder: noted(folder, version="3.5.0", legacyINT96=""), id="or of another one"),
        pytest.param(without("v"), id="no such column"),
        pytest.param(with_column("V", TWO), id="two columns but for case"),
        pytest.param(with_column("v", TWO.cast(pa.int32())), id="int"),
        pytest.param(with_column("v", TWO.cast(pa.uint32())), id="uint32"),
        pytest.param(with_column("v", TWO.cast(pa.uint64())), id="uint64"),
        pytest.param(with_column("v", TWO.cast(pa.duration("us"))), id="a duration"),
        pytest.param(with_column("v", TWO.cast(pa.timestamp("us"))), id="a timestamp for a number"),
        pytest.param(with_column("v", TWO.cast(pa.decimal128(19, 0))), id="a decimal for a number"),
        pytest.param(with_column("v", pa.array([[1], [2]])), id="lists"),
        pytest.param(with_column("k", pa.array(["a", "b"]).dictionary_encode()), id="a dictionary"),
        pytest.param(with_column("k", pa.array([b"a", b"b"])), id="bytes"),
        pytest.param(with_column("k", pa.array(["1", "2"]).cast(pa.large_binary())), id="large bytes"),
        pytest.param(with_column("ts", TWO.cast(pa.timestamp("us"))), id="local times"),
        pytest.param(with_column("ts", TWO.cast(pa.timestamp("ns", "UTC")), version="2.6"), id="nanoseconds"),
        pytest.param(with_column("ts", TWO.cast(pa.timestamp("ms"))), id="local milliseconds"),
        pytest.param(with_column("ts", TWO), id="a number for a timestamp"),
    ],
)
def test_a_file_of_which_spark_may_make_something_else_is_left_to_spark(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    assert batch_of(tmp_path, file_of(tmp_path / "plain", COLUMNS)) is not None
    assert batch_of(tmp_path, file_of(tmp_path / "plain", COLUMNS), make(tmp_path)) is None


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(with_column("ts", TWO.cast(pa.timestamp("ms", "UTC"))), id="milliseconds"),
        pytest.param(
            with_column("ts", TWO.cast(pa.timestamp("us")), use_deprecated_int96_timestamps=True), id="int96"
        ),
        pytest.param(
            with_column("ts", COLUMNS["ts"], use_deprecated_int96_timestamps=True), id="int96 with a zone"
        ),
    ],
)
def test_times_of_other_kinds_are_read_as_microseconds(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    source = batch_of(tmp_path, make(tmp_path))
    assert source is not None
    (read,) = gather(source.read(0, 2, ("ts",)))
    assert read.rows.schema.field("ts").type == TIMESTAMP
    found = read.rows["ts"].cast(pa.int64()).to_pylist()
    assert found in ([1, 2], [1000, 2000], [10, 20])


@pytest.mark.parametrize(
    ("version", "int64", "int96"),
    [
        ("2.4.8", False, False),
        ("3.0.0", True, False),
        ("3.0.3", True, False),
        ("3.0.10", True, False),
        ("3.1.0", True, True),
        ("3.10.0", True, True),
        ("4.0.0", True, True),
    ],
)
def test_int96_is_of_the_old_calendar_until_spark_3_1(
    tmp_path: Path, version: str, int64: bool, int96: bool
) -> None:
    """SPARK-33160: with no note in a file of before, Spark takes its INT96 for the old calendar."""
    table = pa.table(COLUMNS | {"more": COLUMNS["ts"]})
    table = table.replace_schema_metadata({"org.apache.spark.version": version})
    path, columns = tmp_path / "f.parquet", {"k": "string", "v": "bigint"}
    for deprecated, known in ((False, int64), (True, int96)):
        pq.write_table(table, path, use_deprecated_int96_timestamps=deprecated)
        assert (batch_of(tmp_path, path) is not None) is known
    # A column that is not read is no matter.
    log(tmp_path / "log", {0: [path.as_uri()]}, offsets=[0])
    schema = Schema(tuple(field for field in SCHEMA.fields if field.name in columns))
    assert (FileBatches(tmp_path / "log", schema, columns).source(0) is not None) is int64


def test_local_times_in_int96_are_left_to_spark_too(tmp_path: Path) -> None:
    """Our reader would take them for microseconds without a zone, and Spark moves them by calendars."""
    path = file_of(
        tmp_path, COLUMNS | {"ts": TWO.cast(pa.timestamp("us"))}, use_deprecated_int96_timestamps=True
    )
    assert batch_of(tmp_path, path, types=TYPES | {"ts": "timestamp_ntz"}) is None


@pytest.mark.parametrize(
    "kind", ["string collate UTF8_LCASE", "void", "interval day", "decimal(19,0)", "float"]
)
def test_a_type_that_the_file_does_not_have_is_left_to_spark(tmp_path: Path, kind: str) -> None:
    assert batch_of(tmp_path, file_of(tmp_path, COLUMNS), types=TYPES | {"v": kind}) is None


def test_a_name_with_a_dot_may_be_a_part_of_a_column(tmp_path: Path) -> None:
    schema = Schema((Field("a.v", BIGINT),))
    plain = {"a.v": TWO}
    parts = plain | {"a": pa.array([{"v": 1}, {"v": 2}])}
    for columns, known in ((plain, True), (parts, False)):
        path = file_of(tmp_path, columns)
        log(tmp_path / "log", {0: [path.as_uri()]}, offsets=[0])
        source = FileBatches(tmp_path / "log", schema, {"a.v": "bigint"}).source(0)
        assert (source is not None) is known


def test_a_file_that_comes_twice_and_too_many_files_are_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = (file_of(tmp_path, COLUMNS, name) for name in "ab")
    assert batch_of(tmp_path, path, path) is None
    assert batch_of(tmp_path, path, other) is not None
    monkeypatch.setattr(scans, "_MOST_FILES", 1)
    assert batch_of(tmp_path, path, other) is None

"""Batches of file streams read by our own tasks, and by Spark: the same rows, or else only by Spark."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.runtime.sources.rows.rows import typed_rows
from headrace.runtime.spark import scans
from headrace.runtime.spark.scans import FileBatches, file_batches
from headrace.runtime.spark.types import schema_of
from inside import run_of
from waiting import PATIENCE, wait_for

pytestmark = pytest.mark.spark

STRUCT = (
    "ts TIMESTAMP, n TIMESTAMP_NTZ, d DATE, k STRING, v BIGINT, i INT, s SMALLINT, t TINYINT, x DOUBLE, "
    "f FLOAT, b BOOLEAN, m DECIMAL(9,2), `a.b` DECIMAL(18,4), w DECIMAL(38,10)"
)
ARROW = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("d", pa.date32()),
        ("k", pa.string()),
        ("v", pa.int64()),
        ("i", pa.int32()),
        ("s", pa.int16()),
        ("t", pa.int8()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("b", pa.bool_()),
        ("m", pa.decimal128(9, 2)),
        ("a.b", pa.decimal128(18, 4)),
        ("w", pa.decimal128(38, 10)),
    ]
)
LOW, HIGH = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
ROWS: list[dict[str, Any]] = [
    {"ts": datetime(2024, 2, 29, 1, 2, 3, 456_789, UTC), "k": "\0\U0001f600"},
    {"n": datetime(2024, 3, 31, 2, 30)},
    {"ts": LOW, "n": LOW.replace(tzinfo=None), "d": date(1, 1, 1), "k": "", "v": -(2**63), "i": -(2**31)},
    {"ts": HIGH, "n": HIGH.replace(tzinfo=None), "d": date(9999, 12, 31), "k": " NULL ", "v": 2**63 - 1},
    {"d": date(1582, 10, 10), "ts": datetime(1582, 10, 10, tzinfo=UTC), "s": -(2**15), "t": -128, "b": False},
    {"i": 2**31 - 1, "s": 2**15 - 1, "t": 127, "x": float("nan"), "f": float("-inf"), "b": True},
    {"x": -0.0, "f": -0.0, "m": Decimal("-9999999.99"), "a.b": Decimal("0.0001"), "k": "x" * 3_000},
    {"x": 5e-324, "f": 1.401298464324817e-45, "w": Decimal("-9999999999999999999999999999.9999999999")},
    {},
]  # fmt: skip
TABLE = pa.Table.from_pylist(ROWS, ARROW)


def put(folder: Path, number: int, table: pa.Table, **options: Any) -> Path:
    """Write a file that Spark lists as the n-th."""
    path = folder / f"{number:02} \u00e9%+#.parquet"
    folder.mkdir(exist_ok=True, parents=True)
    pq.write_table(table, path, **options)
    os.utime(path, (1_700_000_000 + number,) * 2)
    return path


def every_kind(folder: Path) -> int:
    """Write the rows in every way in which a file may hold them and be read alike; how many ways."""
    required = pa.schema([field.with_nullable(False) for field in ARROW])
    full = TABLE.filter(pa.array([False] * len(TABLE)))
    large = TABLE.set_column(3, "k", TABLE["k"].cast(pa.large_string()))
    zoned = TABLE.set_column(0, "ts", TABLE["ts"].cast(pa.timestamp("us", "Asia/Tokyo")))
    coarse = TABLE
    for place, name in enumerate(("ts", "n")):
        rounded = pc.floor_temporal(TABLE[name], unit="millisecond")
        coarse = coarse.set_column(place, name, rounded.cast(pa.timestamp("ms", rounded.type.tz)))
    written = [
        (TABLE, {}),
        (TABLE, {"use_dictionary": False, "compression": "none", "data_page_version": "2.0"}),
        (TABLE, {"row_group_size": 3, "compression": "zstd", "data_page_size": 1}),
        (TABLE, {"store_decimal_as_integer": True, "compression": "gzip", "version": "1.0"}),
        (TABLE, {"store_schema": False, "write_statistics": False, "compression": "lz4"}),
        (TABLE, {"column_encoding": {"k": "DELTA_BYTE_ARRAY"}, "use_dictionary": False}),
        (TABLE.select(ARROW.names[::-1]), {}),
        (TABLE.append_column("more", pa.array([[number] for number in range(len(TABLE))])), {}),
        (large, {}),
        (zoned, {}),
        (coarse, {}),
        (coarse, {"version": "1.0", "store_schema": False}),
        (full.cast(required), {}),
    ]  # fmt: skip
    for number, (table, options) in enumerate(written):
        put(folder, number, table, **options)
    return len(written)


Both = list[tuple[Counter[str], Counter[str] | None]]
"""Per batch its rows as Spark gives them and as our reader does, or None where it leaves them to Spark."""


@contextmanager
def both_ways(frame: Any, checkpoint: Path) -> Iterator[Both]:
    """Stream what there is of a frame; what has come is complete at the end."""
    schema = schema_of(frame)
    found: Both = []
    files = file_batches(frame, schema, schema.names, checkpoint)
    assert files is not None

    def compare(files: FileBatches, rows: Any, number: int) -> None:
        source = files.source(number)
        columns = rows.select(*(f"`{name}`" for name in schema.names)).toArrow().to_batches()
        by_spark = [typed_rows(part, schema, "s", 0).rows for part in columns]
        ours = None if source is None else [read.rows for read in source.read(0, source.size, schema.names)]
        found.append((counted(by_spark), None if ours is None else counted(ours)))

    writer = frame.writeStream.foreachBatch(partial(compare, files)).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        yield found
        query.awaitTermination(PATIENCE)
    finally:
        query.stop()


def counted(batches: list[pa.RecordBatch]) -> Counter[str]:
    return Counter(repr(row) for batch in batches for row in batch.to_pylist())


def test_every_value_is_the_same_in_every_kind_of_file(spark: Any, tmp_path: Path) -> None:
    """In several batches, so that every way of Spark's to log one is met, too."""
    kinds = every_kind(tmp_path / "files")
    spark.conf.set("spark.sql.streaming.fileSource.log.compactInterval", 2)
    try:
        frame = (
            spark.readStream.schema(STRUCT).option("maxFilesPerTrigger", 4).parquet(str(tmp_path / "files"))
        )
        with both_ways(frame, tmp_path / "log") as found:
            pass
    finally:
        spark.conf.unset("spark.sql.streaming.fileSource.log.compactInterval")
    assert (tmp_path / "log/sources/0/1.compact").is_file()
    assert [ours == by_spark for by_spark, ours in found] == [True] * 4
    assert sum(by_spark.total() for by_spark, _ in found) == len(TABLE) * (kinds - 1)


def test_what_spark_writes_by_itself_is_read_alike(spark: Any, tmp_path: Path) -> None:
    """Its times are INT96 unless it is told otherwise, and checksums lie beside its files."""
    table = TABLE.drop_columns(["n"])
    kinds = STRUCT.replace("n TIMESTAMP_NTZ, ", "")
    put(tmp_path / "given", 0, table)
    given = spark.read.schema(kinds).parquet(str(tmp_path / "given")).repartition(2)
    files = tmp_path / "files"
    for kind in ("INT96", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS"):
        spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
        try:
            given.write.mode("append").parquet(str(files))
        finally:
            spark.conf.unset("spark.sql.parquet.outputTimestampType")
    put(files, 9, table, use_deprecated_int96_timestamps=True)
    times = {pq.ParquetFile(path).schema.column(0).physical_type for path in files.glob("*.parquet")}
    assert times == {"INT96", "INT64"}
    assert len(list(files.glob(".*.parquet.crc"))) == 6
    with both_ways(spark.readStream.schema(kinds).parquet(str(files)), tmp_path / "log") as found:
        pass
    assert [ours == by_spark for by_spark, ours in found] == [True]
    assert sum(by_spark.total() for by_spark, _ in found) == 4 * len(table)
    damaged = next(path for path in files.glob(".*.parquet.crc"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    frame = spark.readStream.schema(kinds).parquet(str(files))
    batches = file_batches(frame, schema_of(frame), schema_of(frame).names, tmp_path / "log")
    assert batches is not None
    assert batches.source(0) is None


ALIKE: Mapping[str, object] = {
    "maxFilesPerTrigger": 1,
    "maxBytesPerTrigger": 1,
    "latestFirst": "true",
    "maxFileAge": "1s",
    "fileNameOnly": "true",
    "maxCachedFiles": 0,
    "discardCachedInputRatio": 0.9,
    "pathGlobFilter": "00*",
    "recursiveFileLookup": "true",
    "mergeSchema": "true",
}


def test_an_option_that_says_which_files_there_are_changes_no_row(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    for number in range(3):
        put(folder if number < 2 else folder / "deeper", number, TABLE)
    assert {name.lower() for name in ALIKE} | {"path"} == scans._OPTIONS
    with ExitStack() as queries:
        found = {
            name: queries.enter_context(
                both_ways(
                    spark.readStream.schema(STRUCT).option(name, value).parquet(str(folder)), tmp_path / name
                )
            )
            for name, value in ALIKE.items()
        }
    rows = {name: [by_spark.total() // len(TABLE) for by_spark, _ in both] for name, both in found.items()}
    assert {name: sum(files) for name, files in rows.items()} == {
        name: {"pathGlobFilter": 1, "recursiveFileLookup": 3}.get(name, 2) for name in ALIKE
    }
    assert len(rows["maxBytesPerTrigger"]) == 2
    assert all(ours == by_spark for both in found.values() for by_spark, ours in both)


KEYED = "k STRING, n INT, d DATE, v BIGINT"


def keyed(folder: Path, number: int, *texts: str) -> Path:
    """A file of rows in folders that name columns; one of them is also in the file, where it is not read."""
    deepest = folder.joinpath(*texts)
    return put(deepest, number, pa.table({"v": [number, -number], "d": pa.array([7, None], pa.date32())}))


def test_columns_in_the_names_of_folders_have_sparks_values(spark: Any, tmp_path: Path) -> None:
    files = tmp_path / "files"
    for number, texts in enumerate(
        [
            ("k=a", "n=1", "d=2024-02-29"),
            ("k=a", "n=1", "d=1582-10-10"),
            ("k=a%2Fb %3D\u00e9", "n=-7", "d=0001-01-01"),
            ("k=01", "n=__HIVE_DEFAULT_PARTITION__", "d=9999-12-31"),
            ("k=__HIVE_DEFAULT_PARTITION__", "n=2147483647", "d=__HIVE_DEFAULT_PARTITION__"),
        ]
    ):
        keyed(files, number, *texts)
    reader = spark.readStream.schema(KEYED)
    frames = [
        reader.parquet(str(files)),
        reader.parquet(str(files)).select("n", "v"),
        reader.parquet(f"{files}/"),
    ]
    for place, frame in enumerate(frames):
        with both_ways(frame, tmp_path / f"log{place}") as found:
            pass
        ((by_spark, ours),) = found
        assert by_spark == ours
        assert by_spark.total() == 10


@pytest.mark.parametrize(
    "folders",
    [
        [("k=a", "n=01", "d=2024-01-01")],
        [("k=a", "n=1", "d=2024-1-1")],
        [("k=a", "n=1", "d=2024-01-01"), ("k=a", "n=1", "d=2024-01-01", "more")],
        [("K=a", "n=1", "d=2024-01-01")],
    ],
)
def test_folders_of_which_spark_may_make_something_else_are_left_to_it(
    spark: Any, tmp_path: Path, folders: list[tuple[str, ...]]
) -> None:
    files = tmp_path / "files"
    for number, texts in enumerate(folders):
        keyed(files, number, *texts)
    frame = spark.readStream.schema(KEYED).parquet(str(files))
    with both_ways(frame, tmp_path / "log") as found:
        pass
    assert [ours for _, ours in found] == [None]


def test_folders_are_no_columns_below_a_pattern_or_where_all_are_looked_into(
    spark: Any, tmp_path: Path
) -> None:
    keyed(tmp_path / "files", 0, "k=a", "n=1", "d=2024-01-01")
    reader = spark.readStream.schema("v BIGINT, d DATE")
    for place, frame in enumerate(
        [
            reader.parquet(str(tmp_path / "f*" / "*" / "*" / "*")),
            reader.option("recursiveFileLookup", "true").parquet(str(tmp_path / "files")),
        ]
    ):
        with both_ways(frame, tmp_path / f"log{place}") as found:
            pass
        assert [(by_spark.total(), ours) for by_spark, ours in found] == [(2, None)]


def is_alike(frame: Any, folder: Path) -> bool:
    schema = schema_of(frame)
    return file_batches(frame, schema, schema.names, folder / "log") is not None


def test_what_is_no_bare_scan_is_left_to_spark(spark: Any, tmp_path: Path) -> None:
    """Plans, formats and options of which Spark makes more, or may."""
    path = str(tmp_path)
    reader = spark.readStream.schema("ts TIMESTAMP, v BIGINT")
    bare = reader.parquet(path)
    alike = [
        bare,
        bare.select("v", "ts").select("ts"),
        bare.drop("v"),
        bare.alias("b").select("b.ts"),
        bare.withWatermark("ts", "1 second"),
    ]
    others = [
        bare.filter("v > 1"),
        bare.limit(1),
        bare.sample(0.5),
        bare.union(bare),
        bare.withColumnRenamed("v", "w"),
        bare.select("ts", (bare.v + 1).alias("v")),
        bare.select("ts", bare.v.cast("int")),
        bare.select("ts", "_metadata.file_name"),
        bare.dropDuplicates(["v"]),
        bare.groupBy("ts").count(),
        bare.mapInArrow(lambda batches: batches, "ts BIGINT, v BIGINT"),
        spark.readStream.format("rate").load(),
        *(reader.format(name).load(path) for name in ("csv", "json", "orc")),
        reader.option("cleanSource", "delete").parquet(path),
        reader.option("ignoreCorruptFiles", "true").parquet(path),
        reader.option("ignoreMissingFiles", "true").parquet(path),
        reader.option("datetimeRebaseMode", "LEGACY").parquet(path),
        reader.option("int96RebaseMode", "LEGACY").parquet(path),
        reader.option("basePath", path).parquet(path),
        reader.option("somethingNew", "x").parquet(path),
    ]
    assert [is_alike(frame, tmp_path) for frame in alike] == [True] * len(alike)
    assert [is_alike(frame, tmp_path) for frame in others] == [False] * len(others)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.files.ignoreCorruptFiles", "true"),
        ("spark.sql.files.ignoreMissingFiles", "true"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION"),
        ("spark.sql.parquet.fieldId.read.enabled", "true"),
        ("spark.sql.parquet.int96RebaseModeInRead", "EXCEPTION"),
        ("spark.sql.parquet.int96TimestampConversion", "true"),
    ],
)
def test_a_setting_under_which_spark_reads_otherwise_counts(
    spark: Any, tmp_path: Path, name: str, value: str
) -> None:
    session = spark.newSession()
    assert is_alike(session.readStream.schema(STRUCT).parquet(str(tmp_path)), tmp_path)
    session.conf.set(name, value)
    assert not is_alike(session.readStream.schema(STRUCT).parquet(str(tmp_path)), tmp_path)


def seconds(folder: Path, number: int, times: list[int]) -> Path:
    columns = {"ts": times, "k": [f"k{at % 3}" for at in times], "v": [number * 100 + at for at in times]}
    return put(folder, number, pa.table(columns), row_group_size=2)


class Opened:
    """Which batches were opened as files, and something that happens after that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, then: Callable[[int], None] = lambda _: None) -> None:
        self.batches: list[int] = []
        source = FileBatches.source

        def opened(batches: FileBatches, number: int) -> Any:
            found = source(batches, number)
            if found is not None:
                self.batches.append(number)
                then(number)
            return found

        monkeypatch.setattr(FileBatches, "source", opened)


def wait(db: hr.Database, rows: int) -> None:
    """Let a run go on until every stream has so many rows, late ones included."""

    def is_done() -> bool:
        assert db.running
        assert not db.problems
        arrivals = run_of(db).totals.arrivals
        return bool(arrivals) and all(seen.everything >= rows for seen in arrivals.values())

    wait_for(is_done)


def test_an_answer_is_the_same_both_ways(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late rows, too: those of a batch are judged together, whatever their order and the number of tasks."""
    opened = Opened(monkeypatch)
    files = tmp_path / "files"
    for number, times in enumerate([[5, 1, 9, 3, 8], [4, 20, 2, 9, 10], [9, 11, 20, 30, 19]]):
        seconds(files, number, times)
    reader = spark.readStream.schema("ts BIGINT, k STRING, v BIGINT").option("maxFilesPerTrigger", 1)
    with hr.connect(spark=spark, storage=tmp_path / "store") as db:
        for name, frame in (
            ("ours", reader.parquet(str(files))),
            ("theirs", reader.parquet(str(files)).filter("ts > 0")),
        ):
            db.stream(name, frame, timestamp="ts", disorder=2)
            db.query(f"SELECT v FROM {name}", name=f"copy_{name}")
            db.query(f"SELECT k, SUM(v) AS s FROM {name} [RANGE 5] GROUP BY k", name=f"sums_{name}")
        db.start()
        wait(db, 15)
        summary = db.stop()
        letters = db.dead_letters()
        found = {query.name: query.history() for query in db.queries}
    assert opened.batches == [0, 1, 2]
    logged = tmp_path / "store/streams/ours/checkpoint/offsets"
    assert (logged / ".2.crc").is_file(), "Spark checks its log when it reads it"
    # The heartbeat is 7 before the second batch, and 18 before the third.
    assert [(part.rows, part.late) for part in summary.streams] == [(11, 4)] * 2
    for what in ("copy", "sums"):
        assert found[f"{what}_ours"] == found[f"{what}_theirs"]
    told = letters.sort_by("row").select(["row", "reason"])
    ours = pc.equal(letters.sort_by("row")["stream"], "ours")
    assert told.filter(ours) == told.filter(pc.invert(ours))


def test_a_file_that_goes_before_it_is_read_is_asked_of_spark_and_nothing_is_lost(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, away = tmp_path / "files", tmp_path / "away"
    paths = [seconds(files, number, [number * 10, number * 10 + 1]) for number in range(3)]

    def take_away(number: int) -> None:
        if number == 1:
            paths[1].rename(away)

    opened = Opened(monkeypatch, take_away)
    started = []

    def bring_back(*args: Any, **kwargs: Any) -> Any:
        started.append(away.exists())
        if away.exists():
            away.rename(paths[1])
        return file_batches(*args, **kwargs)

    monkeypatch.setattr("headrace.engine.inputs.inputs.file_batches", bring_back)
    reader = spark.readStream.schema("ts BIGINT, k STRING, v BIGINT").option("maxFilesPerTrigger", 1)
    with hr.connect(spark=spark, storage=tmp_path / "store") as db:
        db.stream("s", reader.parquet(str(files)), timestamp="ts")
        query = db.query("SELECT v FROM s")
        db.start()
        wait(db, 6)
        db.stop()
        assert query.changes()["v"].to_pylist() == [0, 1, 110, 111, 220]
    assert started == [False, True]
    assert opened.batches.count(1) == 1, "the second time it is Spark's"
    assert opened.batches[-1] == 2

"""Whatever Spark can stream from is a stream: Python data sources, rate, files; by name and as frames."""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.errors import UserError
from headrace.runtime.journal.inspect import contents, verify
from headrace.runtime.spark.feed import may_read_ahead
from inside import run_of
from waiting import wait_for

pytestmark = pytest.mark.spark

ROWS = 8


def numbers_source() -> type:
    """A data source written in Python: numbers `first`, `first` + 1 and so on, four to a batch.

    It is made in a function so that Spark sends its workers the class itself, not the name of this module.
    """
    datasource = importlib.import_module("pyspark.sql.datasource")

    class Range(datasource.InputPartition):  # type: ignore[misc, name-defined]
        def __init__(self, first: int, last: int) -> None:
            self.first, self.last = first, last

    class Reader(datasource.DataSourceStreamReader):  # type: ignore[misc, name-defined]
        def __init__(self, options: Any) -> None:
            self.first, self.count = int(options["first"]), int(options["count"])
            self.latest = 0

        def initialOffset(self) -> dict[str, int]:
            return {"read": 0}

        def latestOffset(self) -> dict[str, int]:
            self.latest = min(self.latest + 4, self.count)
            return {"read": self.latest}

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Any]:
            middle = (start["read"] + end["read"]) // 2
            return [Range(start["read"], middle), Range(middle, end["read"])]

        def read(self, partition: Any) -> Iterator[tuple[int, str]]:
            for number in range(partition.first, partition.last):
                yield self.first + number, f"n{number}"

    class Numbers(datasource.DataSource):  # type: ignore[misc, name-defined]
        @classmethod
        def name(cls) -> str:
            return "numbers"

        def schema(self) -> str:
            return "ts BIGINT, name STRING"

        def streamReader(self, schema: Any) -> Any:
            return Reader(self.options)

    return Numbers


@pytest.fixture
def numbers(spark: Any) -> None:
    spark.dataSource.register(numbers_source())


def test_spark_reads_ahead_only_where_batches_come_again(spark: Any, numbers: None, tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1], "v": [2]}), tmp_path / "a.parquet")
    files = spark.readStream.schema("ts BIGINT, v BIGINT")
    plain = files.parquet(str(tmp_path))
    cleaned = files.option("cleanSource", "delete").parquet(str(tmp_path))
    rate = spark.readStream.format("rate").load()
    python = spark.readStream.format("numbers").option("first", 0).option("count", ROWS).load()
    assert may_read_ahead(plain)
    assert may_read_ahead(plain.filter("v > 1").selectExpr("ts", "v + 1 AS v").union(plain))
    assert may_read_ahead(rate.withWatermark("timestamp", "1 second"))
    assert not may_read_ahead(cleaned)
    assert not may_read_ahead(plain.union(cleaned.select("ts", "v")))
    assert not may_read_ahead(plain.groupBy("v").count()), "its state has moved on"
    assert not may_read_ahead(plain.dropDuplicates(["v"]))
    assert not may_read_ahead(python), "its commit may be anything"


def wait(db: hr.Database, done: Callable[[], bool]) -> None:
    """Let a run go on until a condition holds."""

    def is_done() -> bool:
        assert db.running
        assert not db.problems
        return done()

    wait_for(is_done)


def wait_for_rows(db: hr.Database, query: hr.Query, count: int) -> None:
    wait(db, lambda: query.changes().num_rows >= count)


def test_a_python_data_source_by_name_and_as_a_frame(spark: Any, numbers: None, tmp_path: Path) -> None:
    """Both in one run with pushed rows, over a restart, with two sinks."""
    sinks = importlib.import_module("headrace.runtime.spark.sinks")
    frame = spark.readStream.format("numbers").option("first", 100).option("count", ROWS).load()
    seen: list[int] = []
    for turn in range(2):
        with hr.connect(spark=spark, storage=tmp_path / "store") as db:
            db.execute(f"""
                CREATE STREAM named FROM numbers OPTIONS (first = 0, count = {ROWS}) TIMESTAMP BY ts;
                CREATE STREAM pushed (ts BIGINT, name STRING) FROM push TIMESTAMP BY ts
            """)
            db.stream("framed", frame, timestamp="ts")
            union = db.query("SELECT ts, name FROM named UNION ALL SELECT ts, name FROM pushed", name="both")
            framed = db.query("SELECT COUNT(*) AS n FROM framed [RANGE UNBOUNDED]", name="framed_count")
            union.deliver(hr.FileSink(tmp_path / "files"))
            path = str(tmp_path / "table")
            framed.deliver(sinks.SparkTableSink(format="parquet", options={"path": path}, spark=spark))
            db.start()
            db.push("pushed", {"ts": 1000 + turn, "name": "pushed"}, "me", turn)
            if turn == 0:
                wait_for_rows(db, union, ROWS - 1)
                wait_for_rows(db, framed, ROWS - 1)
            summary = db.stop()
            assert not db.problems
            seen = [part.rows for part in sorted(summary.streams, key=lambda part: part.name)]
            changes, counts = union.changes(), framed.changes()
            found = framed.history()
    assert seen == [ROWS, ROWS, 2], "nothing is read twice after the restart"
    # The last row of each stream waits for a heartbeat that never comes.
    assert sorted(changes["ts"].to_pylist()) == list(range(ROWS - 1))
    assert found["n"].to_pylist() == list(range(1, ROWS))
    assert found["valid_from"].to_pylist() == list(range(100, 100 + ROWS - 1))
    lines = [
        line
        for file in sorted((tmp_path / "files").glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    assert [json.loads(line) for line in lines] == changes.to_pylist()
    written = [row.asDict() for row in spark.read.parquet(str(tmp_path / "table")).collect()]
    order = ("epoch", "valid_from", "valid_to", "change")
    assert sorted([str(row[name]) for name in order] for row in written) == sorted(
        [str(row[name]) for name in order] for row in counts.to_pylist()
    )


def test_a_stream_and_its_query_come_and_go_during_a_run(spark: Any, numbers: None, tmp_path: Path) -> None:
    """Added, dropped, and added again over other rows of the same name; the query that was there goes on."""
    log = tmp_path / "store/streams/extra"
    with hr.connect(spark=spark, storage=tmp_path / "store") as db:
        db.execute("CREATE STREAM pushed (ts BIGINT) FROM push TIMESTAMP BY ts")
        count = db.query("SELECT COUNT(*) AS n FROM pushed [RANGE UNBOUNDED]", name="count")
        db.start()
        db.push("pushed", {"ts": 1})
        for first in (0, 100):
            db.execute(
                f"CREATE STREAM extra FROM numbers OPTIONS (first = {first}, count = {ROWS}) TIMESTAMP BY ts"
            )
            added = db.query("SELECT ts, name FROM extra", name="added")
            wait_for_rows(db, added, ROWS - 1)
            with pytest.raises(UserError, match="it is used by the query added"):
                db.drop("extra")
            assert log.is_dir()
            db.drop("added")
            db.drop("extra")
            assert not log.exists(), "another stream of the name begins anew"
            assert added.changes()["ts"].to_pylist() == list(range(first, first + ROWS - 1))
            db.push("pushed", {"ts": first + 2})
        assert db.running
        assert not db.problems
        assert {part.name: part.rows for part in db.stop().streams} == {
            "extra": 2 * ROWS,
            "pushed": 3,
        }
        assert count.history()["n"].to_pylist() == [1, 2]
    assert contents(tmp_path / "store").description.streams.keys() == {"pushed"}
    assert verify(tmp_path / "store").problems == ()


def test_a_query_that_reads_other_columns_of_a_frame_comes_during_a_run(spark: Any, tmp_path: Path) -> None:
    """The column that nobody read is asked for from then on; no row is lost or read twice."""

    def write(number: int) -> None:
        rows = {"ts": [number * 10 + part for part in range(4)], "a.b": [number] * 4, "w": [number + 100] * 4}
        pq.write_table(pa.table(rows), tmp_path / f".{number}")
        (tmp_path / f".{number}").rename(tmp_path / f"{number}.parquet")

    reader = spark.readStream.schema("ts BIGINT, `a.b` BIGINT, w BIGINT").option("maxFilesPerTrigger", 1)
    write(0)
    with hr.connect(spark=spark, storage=tmp_path / "store") as db:
        db.stream("s", reader.parquet(str(tmp_path)), timestamp="ts")
        first = db.query("SELECT ts, `a.b` AS v FROM s", name="first")
        db.start()
        wait_for_rows(db, first, 3)
        second = db.query("SELECT ts, w FROM s", name="second")
        write(1)
        wait_for_rows(db, first, 7)
        write(2)
        wait_for_rows(db, first, 11)
        assert db.stop().rows == 12
        assert not db.problems
        assert first.changes()["v"].to_pylist() == [0] * 4 + [1] * 4 + [2] * 3
        # Rows of one instant with the heartbeat are still to come when the query is added.
        assert second.changes()["w"].to_pylist() == [101] * 4 + [102] * 3


def test_a_bounded_frame_is_the_same_however_it_is_spread(spark: Any, tmp_path: Path) -> None:
    """Rows of one instant have an order, too, or a run that goes on would take some of them twice."""
    frame = spark.createDataFrame(
        [(number // 5, f"n{number}") for number in range(40)], "`a.ts` BIGINT, k STRING"
    )
    for spread in (frame.repartition(3), frame.repartition(2, "k")):
        with hr.connect(runner="inline", storage=tmp_path / "store") as db:
            db.stream("s", spread, timestamp="a.ts")
            query = db.query("SELECT k FROM s")
            db.run()
            assert query.history().num_rows == 40


def test_rate_and_files_by_name_and_as_frames(spark: Any, tmp_path: Path) -> None:
    schema = "k STRING, ts TIMESTAMP"
    rows = [("a", 1), ("b", 2), ("a", 3), ("b", 4)]
    for number in range(3):
        table = pa.table(
            {
                "k": [k for k, _ in rows],
                "ts": pa.array([(number * 10 + at) * 1_000_000 for _, at in rows], pa.timestamp("us", "UTC")),
            }
        )
        (tmp_path / "parquet").mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / f"parquet/{number}.parquet")
    (tmp_path / "text").mkdir()
    (tmp_path / "text/0.txt").write_text("".join(f"{k}\n" for k, _ in 3 * rows))
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    with hr.connect(spark=spark) as db:
        db.execute(f"""
            CREATE STREAM tick FROM rate OPTIONS (rowsPerSecond = 100) TIMESTAMP BY timestamp;
            CREATE STREAM kept (value STRING) FROM text OPTIONS (path '{tmp_path}/text') TIMESTAMP BY ARRIVAL;
        """)
        frame = reader.parquet(str(tmp_path / "parquet"))
        db.stream("filed", frame, timestamp="ts", disorder="1 hour")
        ticks = db.query("SELECT value FROM tick", name="ticks")
        db.query("SELECT COUNT(*) AS n FROM kept [RANGE UNBOUNDED]", name="kept_count")
        db.query("SELECT a.k FROM filed [RANGE 1 MINUTE] a, kept [RANGE 1 MINUTE] b WHERE a.k = b.value")
        db.start()
        run = run_of(db)

        def read(name: str) -> int:
            return run.totals.arrivals[name].rows if name in run.totals.arrivals else 0

        wait(db, lambda: read("filed") == read("kept") == 12 and ticks.changes().num_rows > 0)
        assert not db.problems
        summary = db.stop()
        values = ticks.changes()["value"].to_pylist()
    assert values == list(range(len(values)))
    assert {part.name: part.rows for part in summary.streams if part.name != "tick"} == {
        "filed": 12,
        "kept": 12,
    }
    assert (summary.late, summary.dead_letters) == (0, 0)


def test_a_source_that_fails_is_named_and_the_others_go_on(spark: Any) -> None:
    datasource = importlib.import_module("pyspark.sql.datasource")

    class Reader(datasource.SimpleDataSourceStreamReader):  # type: ignore[misc, name-defined]
        def initialOffset(self) -> dict[str, int]:
            return {"at": 0}

        def read(self, start: dict[str, int]) -> Any:
            raise ValueError("the device is gone")

        def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Any:
            raise ValueError("the device is gone")

    class Broken(datasource.DataSource):  # type: ignore[misc, name-defined]
        @classmethod
        def name(cls) -> str:
            return "broken"

        def schema(self) -> str:
            return "ts BIGINT"

        def simpleStreamReader(self, schema: Any) -> Any:
            return Reader()

    spark.dataSource.register(Broken)
    with hr.connect(spark=spark) as db:
        db.execute("""
            CREATE STREAM bad FROM broken TIMESTAMP BY ts;
            CREATE STREAM pushed (ts BIGINT) FROM push TIMESTAMP BY ts
        """)
        db.query("SELECT ts FROM bad")
        good = db.query("SELECT ts FROM pushed")
        db.start()
        at = 0
        while "bad" not in db.problems:
            db.push("pushed", {"ts": at})
            at += 1
            assert at < 10_000
        assert "the device is gone" in db.problems["bad"]
        db.push("pushed", {"ts": at})
        assert good.changes()["ts"].to_pylist() == list(range(at))
        db.stop()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("kafka", r"cannot read the format kafka: .*[Kk]afka"),
        ("nowhere", r"cannot read the format nowhere: "),
    ],
)
def test_a_format_that_spark_does_not_have_is_named(spark: Any, form: str, message: str) -> None:
    with (
        contextlib.closing(hr.connect(spark=spark)) as db,
        pytest.raises(UserError, match=message) as caught,
    ):
        db.execute(f"CREATE STREAM s FROM {form} OPTIONS (subscribe = 'bids') TIMESTAMP BY ts")
    assert caught.value.position is not None
    assert "package" in str(caught.value.hint)


def test_columns_that_are_computed_of_those_of_a_spark_stream(spark: Any, numbers: None) -> None:
    with hr.connect(spark=spark) as db:
        db.execute(f"""
            CREATE STREAM s (at AS TIMESTAMP_SECONDS(ts), part AS 12 / (ts - 2))
            FROM numbers OPTIONS (first = 0, count = {ROWS}) TIMESTAMP BY at
        """)
        query = db.query("SELECT name, part FROM s")
        db.start()
        wait_for_rows(db, query, ROWS - 2)
        changes = query.changes().to_pylist()
        (stream,) = db.stop().streams
    assert [row["name"] for row in changes] == [f"n{number}" for number in range(ROWS - 1) if number != 2]
    assert [row["part"] for row in changes] == [
        12 / (number - 2) for number in range(ROWS - 1) if number != 2
    ]
    assert stream.rejected == 1

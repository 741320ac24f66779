"""The Spark runner: an epoch as one Spark job.

Level 0 is a `mapInArrow` over as many rows as there are tasks; every further level is a `repartitionById`
on the task number and a `mapInArrow`. Between the stages travel chunks, one row each, whose payload is an
encoded batch: the engine moves bytes, and never looks at a row of a stream.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from headrace.errors import UserError
from headrace.runtime.inline import reports_of
from headrace.runtime.spark_types import struct_of
from headrace.runtime.stages import run_level, run_rows, run_sources
from headrace.runtime.store import FolderStore, Store
from headrace.runtime.work import Chunk, EpochWork, TaskReport
from headrace.schema import Schema

_NAMES = ("task", "bucket", "channel", "sender")
_ROW = StructType(
    [
        *(StructField(name, IntegerType(), False) for name in _NAMES),
        StructField("payload", BinaryType(), False),
    ]
)
_ARROW_ROW = pa.schema([*(pa.field(name, pa.int32()) for name in _NAMES), pa.field("payload", pa.binary())])

_SETTINGS = {
    # One job per epoch: adaptive execution would cut it into several.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # Otherwise the shuffle files of every epoch stay on disk until the session ends.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
}

_FIXED_SCHEMA = ("kafka", "rate", "rate-micro-batch", "socket")
"""Formats that have columns of their own and refuse to be given any."""

Batches = Iterator[pa.RecordBatch]


class SparkRunner:
    """Runs each epoch as one job of a Spark session.

    Args:
        session: a session of the user's; its settings are kept, the epochs run under a clone of it.
        master: where to run when there is no session; a local master with all cores by default.
    """

    def __init__(self, session: SparkSession | None = None, master: str | None = None) -> None:
        self._owned = session is None
        base = _start(master) if session is None else session
        self._session = base.newSession()
        for name, value in _SETTINGS.items():
            self._session.conf.set(name, value)
        self._base = base
        self.parallelism = base.sparkContext.defaultParallelism

    def new_store(self) -> Store:
        """A store for the segments of a run; on a cluster the folder must be one that all machines share."""
        return FolderStore.temporary()

    def run_epoch(self, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
        """Run one epoch as one job; the reports of its tasks.

        A union runs under the session of its leftmost frame: ours comes first.
        """
        self._session.sparkContext.setJobDescription(f"headrace epoch {work.epoch}")
        with _our_python(self._session.sparkContext):
            frame = self._frame(work, frames)
        return reports_of(_chunks(frame.toArrow().to_batches()))

    def _frame(self, work: EpochWork, frames: Mapping[str, object]) -> DataFrame:
        """The epoch's job: level 0 over the splits and the frames, then level by level."""
        tasks = len(work.assignments)
        frame = self._session.range(0, tasks, 1, tasks).mapInArrow(_source_stage(work), _ROW)
        for name, rows in frames.items():
            assert isinstance(rows, DataFrame)
            wanted = rows.select(*work.streams[name].schema.names)
            frame = frame.union(wanted.mapInArrow(_row_stage(work, name), _ROW))
        for level in range(1, work.graph.levels + 1):
            frame = frame.repartitionById(work.tasks, frame.task).mapInArrow(_level_stage(work, level), _ROW)
        return frame

    def read_stream(self, source: str, options: Mapping[str, str], schema: Schema | None) -> DataFrame:
        """A streaming data frame of one of Spark's own formats, or of a data source registered with it.

        Raises:
            UserError: Spark does not know the format, or refuses the options.
        """
        reader = self._base.readStream.format(source).options(**options)
        if schema is not None and source not in _FIXED_SCHEMA:
            reader = reader.schema(struct_of(schema))
        try:
            return reader.load()
        except PySparkException as error:
            reason = str(error).partition("\n")[0]
            raise UserError(
                f"Spark cannot read the format {source}: {reason}",
                hint="give the session the format's package, or use parquet, csv, json, arrow or nexmark",
            ) from error

    def close(self) -> None:
        """Stop the session if it was started here."""
        if self._owned:
            self._base.stop()


@contextlib.contextmanager
def _our_python(context: SparkContext) -> Iterator[None]:
    """On a local master, let the workers run this very Python, unless the user has named another one.

    A session that was started outside of an activated environment would look for Headrace in the system's
    Python, and not find it.
    """
    named = context.pythonExec
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = named


def _start(master: str | None) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("headrace").master(master or "local[*]")
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    settings = _SETTINGS | {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise UserError(
            "Spark did not start",
            hint="it needs Java 17 or newer in PATH or JAVA_HOME, and a master that exists; the inline "
            "runner needs neither",
        ) from error


def _source_stage(work: EpochWork) -> Callable[[Batches], Batches]:
    def stage(rows: Batches) -> Batches:
        for batch in rows:
            for task in batch.column(0).to_pylist():
                yield from _encoded(run_sources(work, task, _attempt()))

    return stage


def _row_stage(work: EpochWork, stream: str) -> Callable[[Batches], Batches]:
    def stage(rows: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None
        # In the union our own tasks come first, so that the partition is a number no other task has.
        yield from _encoded(run_rows(work, stream, context.partitionId(), _attempt(), rows))

    return stage


def _level_stage(work: EpochWork, level: int) -> Callable[[Batches], Batches]:
    def stage(rows: Batches) -> Batches:
        chunks = list(_chunks(rows))
        if chunks:
            yield from _encoded(run_level(work, level, chunks[0].task, _attempt(), chunks))

    return stage


def _attempt() -> int:
    context = TaskContext.get()
    return int(context.taskAttemptId()) if context is not None else 0


def _encoded(chunks: Iterator[Chunk]) -> Batches:
    for chunk in chunks:
        numbers = [pa.array([getattr(chunk, name)], pa.int32()) for name in _NAMES]
        offsets = pa.py_buffer(np.array([0, chunk.payload.size], dtype=np.int32))
        payload = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, chunk.payload])
        yield pa.RecordBatch.from_arrays([*numbers, payload], schema=_ARROW_ROW)


def _chunks(batches: Iterator[pa.RecordBatch] | list[pa.RecordBatch]) -> Iterator[Chunk]:
    for batch in batches:
        numbers = [batch.column(name).to_pylist() for name in _NAMES]
        payloads = batch.column("payload")
        for row, (task, bucket, channel, sender) in enumerate(zip(*numbers, strict=True)):
            yield Chunk(task, bucket, channel, sender, payloads[row].as_buffer())

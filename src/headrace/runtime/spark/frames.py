"""Committed results as data frames of Spark's, read by its tasks from where they lie.

`changes` is one step: each task reads some of the results. For `history` the elements are sent on by the hash
of their payload, so that one task has all elements of a payload and can coalesce them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from headrace.elements import Batch, Int64Array, concat, decode, encode
from headrace.history import canonical, clip
from headrace.operators.state.keys import hash_rows, normalise
from headrace.operators.state.netting import without_pairs
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.spark.types import check_digits, struct_of
from headrace.runtime.store.segments import read_part
from headrace.runtime.tasks.messages import ResultRef
from headrace.schema import Field, Schema

_CHUNK: Final = StructType(
    [StructField("bucket", IntegerType(), False), StructField("payload", BinaryType(), False)]
)
_ARROW_CHUNK: Final = pa.schema([("bucket", pa.int32()), ("payload", pa.binary())])

BatchesIn = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class _Results:
    """Where the elements of a query lie, and when each is released.

    Attributes:
        reader: of the query, without its epochs.
        refs: the place in `epochs` of the epoch that yielded each part, and where it lies.
        epochs: int64[n], all epochs, in order.
        reaches: int64[n], up to where the answer was said after each, final or not (instants); a change of
            the level of consistency may have made it reach less far.
        heartbeat: up to where the answer is final (instant).
        first: the first epoch whose changes can be read in full.
        buckets: over how many tasks a history is spread.
    """

    reader: ResultReader
    refs: tuple[tuple[int, ResultRef], ...]
    epochs: Int64Array
    reaches: Int64Array
    heartbeat: int
    first: int
    buckets: int

    def changes(self, batches: BatchesIn) -> Iterator[pa.RecordBatch]:
        """The rows of `changes` of the parts whose numbers are given."""
        for place, ref, batch in self._parts(batches):
            farthest = np.maximum.accumulate(self.reaches[place:])
            later = 0 if ref.at_once else np.searchsorted(farthest, batch.ts, side="right")
            released = np.full(len(batch), place) + later
            for index in np.unique(released[released < len(self.epochs)]):
                if self.epochs[index] >= self.first:
                    rows = without_pairs(self.reader.form.schema, batch.filter(released == index))
                    yield from _plain(self.reader.change_table(int(self.epochs[index]), rows))

    def routed(self, batches: BatchesIn) -> Iterator[pa.RecordBatch]:
        """The final parts of elements, as chunks for the task that coalesces their payload."""
        for _, _, batch in self._parts(batches):
            final = clip(batch, self.heartbeat)
            columns = [normalise(column) for column in final.payload.columns]
            buckets = hash_rows(columns, len(final)) % self.buckets
            for bucket in np.unique(buckets):
                payload = encode(final.filter(buckets == bucket)).to_pybytes()
                yield pa.RecordBatch.from_arrays(
                    [pa.array([bucket], pa.int32()), pa.array([payload], pa.binary())], schema=_ARROW_CHUNK
                )

    def history(self, batches: BatchesIn) -> Iterator[pa.RecordBatch]:
        """The rows of `history` of all elements that have come."""
        chunks = [decode(chunk.as_buffer()) for batch in batches for chunk in batch.column("payload")]
        final = canonical(concat(self.reader.form.schema, chunks))
        yield from _plain(self.reader.history_table(final))

    def _parts(self, batches: BatchesIn) -> Iterator[tuple[int, ResultRef, Batch]]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                place, ref = self.refs[number]
                part = decode(read_part(self.reader.store, ref.part))
                yield place, ref, part.slice(ref.start, ref.rows)


def frame_of(session: SparkSession, reader: ResultReader, view: str, tasks: int) -> DataFrame | None:
    """The history or the changes as a data frame; None where this process has to make the rows.

    Args:
        session: the user's, or ours.
        reader: of the query.
        view: `history`, `changes`, or another one.
        tasks: how many can run at once.
    """
    if view not in ("history", "changes") or reader.first != 1 or not reader.epochs:
        return None
    empty = reader.change_table(0, concat(reader.form.schema, []))
    if view == "history":
        empty = reader.history_table(concat(reader.form.schema, []))
    check_digits(empty.schema)
    struct = struct_of(
        Schema(tuple(Field(f"c{place}", dtype) for place, dtype in enumerate(empty.schema.types)))
    )
    results = _results(reader, tasks)
    numbers = session.range(0, len(results.refs), 1, max(1, min(tasks, len(results.refs))))
    if view == "changes":
        frame = numbers.mapInArrow(results.changes, struct)
    else:
        sent = numbers.mapInArrow(results.routed, _CHUNK)
        frame = sent.repartitionById(tasks, sent.bucket).mapInArrow(results.history, struct)
    return frame.toDF(*empty.column_names)


def _results(reader: ResultReader, tasks: int) -> _Results:
    refs = tuple(
        (place, ref)
        for place, part in enumerate(reader.epochs)
        for ref in part.results.get(reader.query, ())
        if ref.rows
    )
    epochs = np.array([part.epoch for part in reader.epochs], dtype=np.int64)
    reaches = np.array([part.reach(reader.query) for part in reader.epochs], dtype=np.int64)
    return _Results(replace(reader, epochs=()), refs, epochs, reaches, reader.heartbeat, reader.first, tasks)


def _plain(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows of a table whose columns are named by their places, as Spark takes them whatever they hold."""
    yield from table.rename_columns([f"c{place}" for place in range(table.num_columns)]).to_batches()

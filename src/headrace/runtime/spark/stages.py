"""What Spark's Python workers run: the stages of an epoch, over the rows of an RDD or of a data frame.

An epoch over splits is a job on RDDs, whose rows are `(task, Chunk)`: no query has to be planned and no code
generated for it. Where rows come in frames, the job is a data frame, whose rows are chunks as Arrow columns.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from headrace.lowering.graph import Graph
from headrace.runtime.tasks.heap import keep_freed_memory
from headrace.runtime.tasks.messages import Chunk, EpochWork
from headrace.runtime.tasks.stages import run_epoch, run_level, run_rows, run_sources

_NAMES = ("task", "bucket", "channel", "sender")
CHUNK_ROW = StructType(
    [
        *(StructField(name, IntegerType(), False) for name in _NAMES),
        StructField("payload", BinaryType(), False),
    ]
)
"""A chunk as a row of a data frame."""

_ARROW_ROW = pa.schema([*(pa.field(name, pa.int32()) for name in _NAMES), pa.field("payload", pa.binary())])

Batches = Iterator[pa.RecordBatch]
Keyed = Iterator[tuple[int, Chunk]]


_NO_GRAPH = Graph((), ())


@dataclass(frozen=True)
class PackedWork:
    """An epoch's work as bytes: what is the same for many epochs, and what changes with each.

    Attributes:
        graph: the query graph, as `pack_graph` has it; a process unpacks it once.
        rest: everything else, pickled.
    """

    graph: bytes
    rest: bytes

    @classmethod
    def of(cls, work: EpochWork, graph: bytes) -> PackedWork:
        """The work of an epoch, whose graph is packed already."""
        return cls(graph, cloudpickle.dumps(replace(work, graph=_NO_GRAPH)))

    def unpacked(self) -> EpochWork:
        """The work that was packed, for a worker that is to do it."""
        keep_freed_memory()
        rest: EpochWork = pickle.loads(self.rest)
        return replace(rest, graph=_graph(self.graph))


def pack_graph(graph: Graph) -> bytes:
    """A graph, with the users' functions in it, as bytes."""
    packed: bytes = cloudpickle.dumps(graph)
    return packed


@lru_cache(maxsize=4)
def _graph(packed: bytes) -> Graph:
    graph: Graph = pickle.loads(packed)
    return graph


@dataclass(frozen=True)
class WholeStage:
    """All levels, where each of them has one task.

    Attributes:
        work: the epoch.
    """

    work: PackedWork

    def chunks(self, tasks: Iterable[int]) -> Iterator[Chunk]:
        """For an RDD of one task number: the chunks that reach the end."""
        work = self.work.unpacked()
        for _ in tasks:
            yield from run_epoch(work, attempt_of())
        keep_collections_short()


@dataclass(frozen=True)
class SourceStage:
    """Level 0 over the splits.

    Attributes:
        work: the epoch.
    """

    work: PackedWork

    def keyed(self, tasks: Iterable[int]) -> Keyed:
        """For an RDD of task numbers: the chunks, by the task of the next level."""
        work = self.work.unpacked()
        yield from _keyed(chunk for task in tasks for chunk in run_sources(work, task, attempt_of()))

    def rows(self, batches: Batches) -> Batches:
        """For a frame of task numbers: the chunks as rows."""
        work = self.work.unpacked()
        tasks = (task for batch in batches for task in batch.column(0).to_pylist())
        yield from _encoded(chunk for task in tasks for chunk in run_sources(work, task, attempt_of()))


@dataclass(frozen=True)
class RowStage:
    """Level 0 over the rows of a frame, whose columns come in the order of the stream's, with other names.

    Attributes:
        work: the epoch.
        stream: the stream whose rows they are.
    """

    work: PackedWork
    stream: str

    def rows(self, batches: Batches) -> Batches:
        """The chunks as rows."""
        context = TaskContext.get()
        assert context is not None
        # In the union our own tasks come first, so that the partition is a number no other task has.
        task = context.partitionId()
        work = self.work.unpacked()
        stream = work.streams[self.stream]
        names = list(stream.columns.needed(stream.schema.names))
        named = (batch.rename_columns(names) for batch in batches)
        yield from _encoded(run_rows(work, task, attempt_of(), self.stream, named))


@dataclass(frozen=True)
class LevelStage:
    """A further level.

    Attributes:
        work: the epoch.
        level: from 1.
    """

    work: PackedWork
    level: int

    def keyed(self, sent: Keyed) -> Keyed:
        """For an RDD: from the chunks sent to a task to those it sends."""
        yield from _keyed(self._run([chunk for _, chunk in sent]))

    def rows(self, batches: Batches) -> Batches:
        """The same for a frame."""
        yield from _encoded(self._run(list(chunks_of(batches))))

    def _run(self, chunks: list[Chunk]) -> Iterator[Chunk]:
        if chunks:
            yield from run_level(self.work.unpacked(), chunks[0].task, attempt_of(), self.level, chunks)


def chunks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
    """The chunks in the rows of a frame."""
    for batch in batches:
        numbers = [batch.column(name).to_pylist() for name in _NAMES]
        payloads = batch.column("payload")
        for row, (task, bucket, channel, sender) in enumerate(zip(*numbers, strict=True)):
            yield Chunk(task, bucket, channel, sender, payloads[row].as_buffer())


def attempt_of() -> int:
    """The number of this attempt among all that Spark makes at tasks."""
    context = TaskContext.get()
    return int(context.taskAttemptId()) if context is not None else 0


def _keyed(chunks: Iterator[Chunk]) -> Keyed:
    for chunk in chunks:
        yield chunk.task, chunk
    keep_collections_short()


def _encoded(chunks: Iterator[Chunk]) -> Batches:
    for chunk in chunks:
        numbers = [pa.array([getattr(chunk, name)], pa.int32()) for name in _NAMES]
        offsets = pa.py_buffer(np.array([0, chunk.encoded.size], dtype=np.int32))
        payload = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, chunk.encoded])
        yield pa.RecordBatch.from_arrays([*numbers, payload], schema=_ARROW_ROW)
    keep_collections_short()


@lru_cache(maxsize=1)
def keep_collections_short() -> None:
    """Once per worker, leave all that was loaded so far out of garbage collection.

    A worker collects after every task, and looks at each of the some hundred thousand objects that the
    libraries have made: a tenth of a second of processor time per task, which was more than the task itself.
    """
    gc.freeze()

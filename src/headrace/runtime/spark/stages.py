"""The stages of an epoch, as Spark's Python workers run them over the partitions of an RDD.

What goes from stage to stage is `(task, Chunk)`. Rows of frames come in as Arrow batches, which Spark makes
of them, so that no query has to be planned and no code generated for the job (decision 0132).
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, repeat

import pyarrow as pa
from pyspark import TaskContext, cloudpickle

from headrace.lowering.graph import Graph
from headrace.runtime.tasks.heap import keep_freed_memory
from headrace.runtime.tasks.messages import Chunk, EpochWork
from headrace.runtime.tasks.stages import run_epoch, run_level, run_rows, run_sources

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


@dataclass(frozen=True)
class FrameRows:
    """Where the rows of a frame are in a job.

    Attributes:
        stream: the stream whose rows they are.
        schema: their columns, as Spark makes Arrow batches of them.
        partitions: over how many partitions they are spread.
    """

    stream: str
    schema: pa.Schema
    partitions: int

    def batches(self, encoded: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
        """The rows of a partition, which come as messages without their schema."""
        for message in encoded:
            yield pa.ipc.read_record_batch(pa.py_buffer(message), self.schema)


@dataclass(frozen=True)
class FrameStage:
    """Level 0 over the rows of frames, and over splits beside them.

    Attributes:
        work: the epoch.
        splits: so many partitions, the first ones, are tasks that read splits.
        frames: what is in the partitions after them.
    """

    work: PackedWork
    splits: int
    frames: tuple[FrameRows, ...]

    def keyed(self, partition: int, encoded: Iterable[bytes]) -> Keyed:
        """For an RDD of bytes: the chunks, by the task of the next level."""
        work, attempt = self.work.unpacked(), attempt_of()
        if partition < self.splits:
            yield from _keyed(run_sources(work, partition, attempt))
            return
        spread = chain.from_iterable(repeat(frame, frame.partitions) for frame in self.frames)
        frame = next(islice(spread, partition - self.splits, None))
        yield from _keyed(run_rows(work, partition, attempt, frame.stream, frame.batches(encoded)))


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
        chunks = [chunk for _, chunk in sent]
        if chunks:
            work = self.work.unpacked()
            yield from _keyed(run_level(work, chunks[0].task, attempt_of(), self.level, chunks))


def attempt_of() -> int:
    """The number of this attempt among all that Spark makes at tasks."""
    context = TaskContext.get()
    return int(context.taskAttemptId()) if context is not None else 0


def _keyed(chunks: Iterator[Chunk]) -> Keyed:
    for chunk in chunks:
        yield chunk.task, chunk
    keep_collections_short()


@lru_cache(maxsize=1)
def keep_collections_short() -> None:
    """Once per worker, leave all that was loaded so far out of garbage collection.

    A worker collects after every task, and looks at each of the some hundred thousand objects that the
    libraries have made: a tenth of a second of processor time per task, which was more than the task itself.
    """
    gc.freeze()

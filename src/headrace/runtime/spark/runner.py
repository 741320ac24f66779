"""The Spark runner: an epoch as one Spark job, or on one machine all epochs in one job that stays.

In an epoch's own job, level 0 is one partition per task; every further level repartitions by the task number.
Between the stages travel chunks, one row each, whose payload is an encoded batch: the engine moves bytes, and
never looks at a row of a stream.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, reduce

import pyarrow as pa
from py4j.java_collections import JavaMap, MapConverter
from py4j.java_gateway import JavaGateway
from pyspark import RDD, SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from headrace.algebra.properties import parameters_of
from headrace.errors import UserError
from headrace.lowering.costs import calls_user
from headrace.lowering.graph import Graph
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.spark.faults import GATEWAY_ERRORS, faults_named, is_alive
from headrace.runtime.spark.feed import quoted
from headrace.runtime.spark.frames import frame_of
from headrace.runtime.spark.stages import (
    FrameRows,
    FrameStage,
    LevelStage,
    PackedWork,
    SourceStage,
    WholeStage,
    pack_graph,
)
from headrace.runtime.spark.startup import ahead
from headrace.runtime.spark.startup.resident import ResidentTask
from headrace.runtime.spark.types import SPARK_ERRORS, check_digits, reason_of, struct_of
from headrace.runtime.store.segments import FolderStore, Store
from headrace.runtime.tasks.inline import UNDIVIDED, reports_of
from headrace.runtime.tasks.messages import Chunk, EpochWork, TaskReport
from headrace.schema import Schema

_UNDIVIDED = 0.2
"""Seconds of work for one task of a job: a stage costs 20 to 60 ms, two thirds of them processor time."""

_ABANDONED = 1.0
"""Seconds to wait for an epoch that was cancelled."""

_AS_ARROW = (50_000, "UTC", True, False)
"""Rows of a frame as Arrow batches: so many rows in each, the zone of times, whether names in a STRUCT must
differ, and whether offsets have 64 bits."""

_FIXED_SCHEMA = ("kafka", "rate", "rate-micro-batch", "socket")
"""Formats that have columns of their own and refuse to be given any."""


class SparkRunner:
    """Runs each epoch as one Spark job; on one machine, those without frames in a job that stays.

    Args:
        session: a session of the user's; its settings are kept.
        master: where to run when there is no session; a local master with all cores by default.

    A process has one Spark, so runners without a session of their own share one. The last of them that is
    closed stops it, unless it was there before the first. Epochs over splits need no session, and a fifth of
    the time that Spark takes to start goes into one, so that it is made when a data frame is asked for.
    """

    def __init__(self, session: SparkSession | None = None, master: str | None = None) -> None:
        self._given = session
        self._context, self._shared = _share(master) if session is None else (session.sparkContext, False)
        self._tag = f"headrace-{secrets.token_hex(4)}"
        self._graph: tuple[Graph, bytes] | None = None
        self._counted: dict[int, RDD[int]] = {}
        self._resident: ResidentTask | None = None
        self._calling: tuple[Graph | None, bool] = None, False
        self._in_jobs = False
        self._running = threading.Lock()
        self.parallelism = self._context.defaultParallelism
        self.few = 0

    @cached_property
    def _base(self) -> SparkSession:
        """The session that the user's data frames are of."""
        return SparkSession.builder.getOrCreate() if self._given is None else self._given

    @property
    def undivided(self) -> float:
        """Seconds of work for a single task: fewer where several are threads of the task that stays."""
        return _UNDIVIDED if self._in_jobs else UNDIVIDED

    def buckets(self, *, bulk: bool) -> int:
        """As many as tasks can run at once: on several machines no task takes all."""
        return int(self.parallelism)

    def new_store(self) -> Store:
        """A store for the segments of a run; on a cluster the folder must be one that all machines share."""
        return FolderStore.temporary()

    def run_epoch(self, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
        """Run one epoch, as one job unless a task that stays can do it; the reports of its tasks.

        Raises:
            WorkerLostError, RunnerLostError: a worker, or all of Spark, is gone.
        """
        # An epoch beside another one, which was given up and has not ended, is a job of its own.
        alone = self._running.acquire(blocking=False)
        try:
            with faults_named(self._context, work.epoch):
                chunks = self._in_resident(work, frames) if alone else None
                return reports_of(self._in_job(work, frames) if chunks is None else chunks)
        finally:
            if alone:
                self._running.release()

    def _in_resident(self, work: EpochWork, frames: Mapping[str, object]) -> list[Chunk] | None:
        """What a task that stays makes of an epoch; None where there is no such task to be had.

        Rows of a frame come through Spark, and threads of one process run code of users one at a time: such
        an epoch is a job. The task that stays ends before it, since the job needs its slot.
        """
        calls_users = self._calls_users(work.graph)
        # What an epoch with code of users is worth does not depend on where the one before was.
        self._in_jobs = True
        if frames or (not _is_whole(work) and calls_users):
            self._end_resident()
            return None
        # One that has just ended for want of work is followed by another.
        for _ in range(2):
            resident, self._resident = self._resident, None
            if resident is None:
                with self._as_ours(f"headrace epochs from {work.epoch}"):
                    resident = ResidentTask.begun(self._context, self._numbers(1))
            if resident is None:
                return None
            chunks = resident.chunks(self._packed(work))
            if chunks is not None:
                self._resident = resident
                self._in_jobs = calls_users
                return chunks
        return None

    def _end_resident(self) -> None:
        resident, self._resident = self._resident, None
        if resident is not None:
            resident.end()

    def _in_job(self, work: EpochWork, frames: Mapping[str, object]) -> list[Chunk]:
        packed = self._packed(work)
        with self._as_ours(f"headrace epoch {work.epoch}"):
            if not frames and _is_whole(work):
                whole: RDD[Chunk] = self._numbers(1).mapPartitions(WholeStage(packed).chunks)
                return list(whole.collect())
            job = self._over_frames(work, packed, frames) if frames else self._over_splits(work, packed)
            sent: list[RDD[tuple[int, Chunk]]] = []
            for level in range(1, work.graph.levels + 1):
                sent.append(job.partitionBy(work.tasks, _itself))
                job = sent[-1].mapPartitions(LevelStage(packed, level).keyed)
            chunks = [chunk for _, chunk in job.collect()]
            self._forget(sent)
            return chunks

    def _forget(self, sent: Sequence[RDD[tuple[int, Chunk]]]) -> None:
        """Remove the files of shuffles of ours; otherwise they stay until the JVM collects.

        Those of a frame's are left: an RDD of the user's that it reads may be in use elsewhere.
        """
        assert self._context._jsc is not None
        cleaner = self._context._jsc.sc().cleaner() if sent else None
        if cleaner is not None and cleaner.isDefined():
            for keyed in sent:
                shuffled = keyed._jrdd.rdd().dependencies().head().rdd()
                cleaner.get().doCleanupShuffle(shuffled.dependencies().head().shuffleId(), False)

    @contextmanager
    def _as_ours(self, description: str) -> Iterator[None]:
        """Let the jobs that are made here be known by a description and a tag, and run our Python."""
        with _our_python(self._context), _known_in_java(self._context):
            self._context.setJobDescription(description)
            self._context.addJobTag(self._tag)
            yield

    def _over_splits(self, work: EpochWork, packed: PackedWork) -> RDD[tuple[int, Chunk]]:
        """Level 0 where all rows come from splits."""
        keyed: RDD[tuple[int, Chunk]]
        keyed = self._numbers(len(work.assignments)).mapPartitions(SourceStage(packed).keyed)
        return keyed

    def _over_frames(
        self, work: EpochWork, packed: PackedWork, frames: Mapping[str, object]
    ) -> RDD[tuple[int, Chunk]]:
        """Level 0 where rows come in frames, with the splits that are beside them.

        All of it is one RDD of bytes before Python has it. Partitions with splits come first, so that they
        have the numbers of their tasks, and those of frames numbers that no other task has.
        """
        splits = len(work.assignments) if any(work.assignments) else 0
        found = [self._numbers(splits)._jrdd] if splits else []
        given = []
        for name, rows in frames.items():
            assert isinstance(rows, DataFrame)
            names = work.streams[name].columns.needed(work.streams[name].schema.names)
            wanted = rows if rows.columns == list(names) else rows.select(*map(quoted, names))
            found.append(wanted._jdf.toArrowBatchRdd(*_AS_ARROW).toJavaRDD())
            given.append(
                FrameRows(name, to_arrow_schema(wanted.schema, timezone="UTC"), found[-1].getNumPartitions())
            )
        together = reduce(lambda first, second: first.union(second), found)
        encoded: RDD[bytes] = RDD(together, self._context, NoOpSerializer())
        keyed: RDD[tuple[int, Chunk]]
        keyed = encoded.mapPartitionsWithIndex(FrameStage(packed, splits, tuple(given)).keyed)
        return keyed

    def _numbers(self, count: int) -> RDD[int]:
        """The numbers of the tasks, one per partition; made once, since that asks the JVM several times."""
        if count not in self._counted:
            self._counted[count] = self._context.parallelize(range(count), count)
        return self._counted[count]

    def _calls_users(self, graph: Graph) -> bool:
        """Whether a graph has code of users, which one process runs in one thread at a time."""
        known, found = self._calling
        if known is not graph:
            found = any(calls_user(parameters_of(node.plan), aggregates=True) for node in graph.nodes)
            self._calling = graph, found
        return found

    def _packed(self, work: EpochWork) -> PackedWork:
        """The work for the tasks; a graph is pickled once, however many epochs it serves."""
        if self._graph is None or self._graph[0] is not work.graph:
            self._graph = work.graph, pack_graph(work.graph)
        return PackedWork.of(work, self._graph[1])

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
        except SPARK_ERRORS as error:
            raise _unreadable(source, error) from error

    def read_frame(self, source: str, options: Mapping[str, str]) -> DataFrame:
        """A bounded data frame of one of Spark's own formats, or of a data source registered with it.

        Raises:
            UserError: Spark does not know the format, or refuses the options.
        """
        try:
            return self._base.read.format(source).options(**options).load()
        except SPARK_ERRORS as error:
            raise _unreadable(source, error) from error

    def frame(self, reader: ResultReader, view: str, table: Callable[[], pa.Table]) -> DataFrame:
        """A view of what is committed for a query, as a data frame of the session.

        Args:
            reader: of the query.
            view: the view's name.
            table: its rows, for views that only this process can make.

        Raises:
            PlanError: Spark does not have the type of a column.
        """
        with _our_python(self._context):
            found = frame_of(self._base, reader, view, self.parallelism)
        if found is not None:
            return found
        rows = table()
        check_digits(rows.schema)
        return self._base.createDataFrame(rows)

    def drop(self, queries: Collection[str]) -> None:
        """Nothing, since the epoch's work is in other processes: it ends by itself, or at its timeout."""

    def want(self, queries: Collection[str]) -> None:
        """Nothing either."""

    def cancel(self) -> None:
        """Cancel the epoch's job; Spark kills the workers that do not end by themselves."""
        with suppress(*GATEWAY_ERRORS):
            self._context.cancelJobsWithTag(self._tag)

    def close(self) -> None:
        """End the task that stays; stop Spark if it was started here and nobody else uses it."""
        if self._running.acquire(timeout=_ABANDONED):
            self._end_resident()
            self._running.release()
        if self._shared:
            self._shared = False
            _release(self._context)


def _is_whole(work: EpochWork) -> bool:
    """Whether one task does all of an epoch's work."""
    return len(work.assignments) == work.tasks == 1


def _unreadable(source: str, error: Exception) -> UserError:
    return UserError(
        f"Spark cannot read the format {source}: {reason_of(error)}",
        hint="see that url, dbtable, user and password are right, and that Spark has the database's driver"
        if source == "jdbc"
        else "give the session the format's package, or use parquet, csv, json, arrow, orc, avro or nexmark",
    )


@contextmanager
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


_MEMBERS = {
    "PythonRDD": ("collectAndServe", "valueOfPair"),
    "PythonUtils": ("getBroadcastThreshold",),
    "SimplePythonFunction": (),
    "PairwiseRDD": (),
    "PythonPartitioner": (),
}
"""What PySpark uses in the JVM to make a job of RDDs, by class."""


@contextmanager
def _known_in_java(context: SparkContext) -> Iterator[None]:
    """Let PySpark ask the JVM less to make a job: 17 times for the smallest one instead of 27.

    It looks up each class and each method whenever it uses it, and copies the workers' environment for each
    function into a map of Java's, one variable at a time.
    """
    jvm = context._jvm
    named = context.environment
    if isinstance(named, JavaMap):
        # Another runner of this Spark, in another thread, has put it there and takes it back.
        yield
        return
    known = vars(jvm).get(_KNOWN)
    if known is None or known[0] != named:
        for name, members in _MEMBERS.items():
            found = getattr(jvm, name)
            setattr(jvm, name, found)
            for member in members:
                setattr(found, member, getattr(found, member))
        known = dict(named), MapConverter().convert(named, context._gateway._gateway_client)
        setattr(jvm, _KNOWN, known)
    context.environment = known[1]
    try:
        yield
    finally:
        context.environment = named


_KNOWN = "_headrace_environment"
"""The attribute of PySpark's view of the JVM with the environment that is there, and its map."""


_lock = threading.Lock()
_users: dict[SparkContext, int] = {}
"""How many runners use each Spark that was started here."""


def _share(master: str | None) -> tuple[SparkContext, bool]:
    """The Spark of this process, started if there is none; and whether it was started here."""
    with _lock:
        context = SparkContext._active_spark_context
        ours = context is None or context in _users
        if context is None:
            context = _start(master)
        if ours:
            _users[context] = _users.get(context, 0) + 1
        return context, ours


def _release(context: SparkContext) -> None:
    """Stop a Spark that was started here, if this was its last user; forget one that is dead."""
    with _lock:
        _users[context] -= 1
        if not is_alive(context):
            if SparkContext._active_spark_context is context:
                _forget_gateway(context)
        elif not _users[context]:
            _stop(context)
        if not _users[context]:
            del _users[context]


def _stop(context: SparkContext) -> None:
    # It looks once a second whether it is to end, which nothing needs to wait for.
    accumulators = context._accumulatorServer
    threading.Thread(target=accumulators.shutdown, daemon=True).start()
    accumulators.shutdown = lambda: None
    session = SparkSession._instantiatedSession
    if session is not None and session.sparkContext is context:
        session.stop()
    else:
        context.stop()


def _start(master: str | None) -> SparkContext:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    begun = ahead.taken(master)
    conf = SparkConf().setAll(list((begun.settings if begun else ahead.settings_of(master)).items()))
    try:
        context = SparkContext(conf=conf, gateway=begun and _connected(begun))
        # It would print a traceback when the JVM is killed, which is reported as what it is.
        context._accumulatorServer.handle_error = lambda *_: None
        return context
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise UserError(
            "Spark did not start",
            hint="it needs Java 17 or newer in PATH or JAVA_HOME, and a master that exists; the inline "
            "runner needs neither",
        ) from error


def _connected(begun: ahead.StartedJvm) -> JavaGateway:
    """The connection to a JVM that was started ahead, for which PySpark has a way in by the environment."""
    port, secret = begun.wait() or (0, "")
    if not port:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
    os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    try:
        gateway = launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    gateway.proc = begun.process
    return gateway


def _forget_gateway(context: SparkContext) -> None:
    """Let PySpark start a new JVM when it is asked for Spark again; the one it knows is dead."""
    accumulators = context._accumulatorServer
    with SparkContext._lock:
        SparkContext._active_spark_context = None
        SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    context._jsc = context._accumulatorServer = None
    accumulators.shutdown()


def _itself(task: int) -> int:
    """Where a chunk goes: to the partition with its task's number."""
    return task

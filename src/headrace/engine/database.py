"""A database: streams, queries, and the runner that answers them."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Literal

import pyarrow as pa

from headrace.algebra.nodes import Plan
from headrace.engine.execution import Execution, Settings
from headrace.engine.inputs import Input, TemporaryFolders, declared, in_memory
from headrace.engine.query import Query, explain_plan
from headrace.engine.summary import Summary
from headrace.errors import LanguageError, UserError
from headrace.language.binder import bind
from headrace.language.catalog import Catalog, DerivedStream, StreamInfo
from headrace.language.parser import parse
from headrace.language.statements import (
    CreateQuery,
    CreateStream,
    CreateStreamAs,
    Explain,
    Select,
    Statement,
)
from headrace.optimizer import optimize
from headrace.runtime.delivery.contract import STOP_TIMEOUT, Attachment, Retry, SinkLike
from headrace.runtime.delivery.deliveries import attachment_of
from headrace.runtime.epochs import DEFAULT_EPOCH_ROWS
from headrace.runtime.inline import InlineRunner
from headrace.runtime.progress import Progress
from headrace.runtime.runner import Runner
from headrace.runtime.views import Change, ResultReader, dead_letters
from headrace.schema import Schema

RunnerName = Literal["spark", "inline"]


class Database:
    """Streams, queries, and the runner that answers them; made by `connect`.

    Example:
        >>> import headrace, pyarrow
        >>> db = headrace.connect(runner="inline")
        >>> db.stream("reading", pyarrow.table({"ts": [1, 2], "v": [10, 20]}), timestamp="ts")
        >>> q = db.query("SELECT SUM(v) AS total FROM reading [RANGE 10]")
        >>> _ = db.run()
        >>> q.history().to_pydict()
        {'total': [10, 30, 20], 'valid_from': [1, 2, 11], 'valid_to': [2, 11, 12]}
    """

    def __init__(self, make_runner: Callable[[], Runner], settings: Settings) -> None:
        self._make_runner = make_runner
        self._settings = settings
        self._made: Runner | None = None
        self._catalog = Catalog()
        self._inputs: dict[str, Input] = {}
        self._queries: dict[str, Query] = {}
        self._attachments: list[Attachment] = []
        self._folders = TemporaryFolders()
        self._execution: Execution | None = None
        self._answered: frozenset[str] = frozenset()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything and remove all temporary files; a durable store stays."""
        self._forget()
        if self._made is not None:
            self._made.close()
            self._made = None
        self._folders.close()

    @property
    def queries(self) -> tuple[Query, ...]:
        """All queries, in the order in which they were registered."""
        return tuple(self._queries.values())

    @property
    def streams(self) -> Mapping[str, StreamInfo | DerivedStream]:
        """All streams by their names in lower case."""
        return MappingProxyType(dict(self._catalog.entries))

    @property
    def endless(self) -> tuple[str, ...]:
        """The streams that never end: for them there is `start`, for all others `run`."""
        return tuple(name for name, stream in self._inputs.items() if stream.is_live)

    @property
    def running(self) -> bool:
        """Whether an endless run is going on."""
        return self._execution is not None and self._execution.running

    @property
    def problems(self) -> Mapping[str, str]:
        """Streams that were given up and sinks that fail, with the reason; everything else goes on."""
        return self._execution.problems if self._execution is not None else {}

    def execute(self, text: str, base: Path | None = None) -> list[Query | str]:
        """Carry out statements separated by semicolons.

        Args:
            text: SQL.
            base: the folder that relative paths start from; the current one if None.

        Returns:
            A query for each CREATE QUERY or SELECT, the text for each EXPLAIN.

        Raises:
            UserError: a statement is wrong or an input cannot be read; those before it have taken effect.
        """
        results: list[Query | str] = []
        for statement in parse(text):
            result = self._execute(statement, base or Path.cwd())
            if result is not None:
                results.append(result)
        return results

    def query(self, text: str, name: str | None = None) -> Query:
        """Register one continuous query, given as SELECT or CREATE QUERY.

        Args:
            text: the query.
            name: its name; `query_1`, `query_2` ... if None.

        Raises:
            UserError: the text is not one query, or the name is taken.
        """
        match parse(text):
            case [Select(query=query)]:
                return self._register(name, bind(query, self._catalog))
            case [CreateQuery(name=own, query=query)]:
                return self._register(name or own.text, bind(query, self._catalog))
            case _:
                raise LanguageError("this is not one query", hint="use execute() for other statements")

    def stream(self, name: str, data: Any, timestamp: str, disorder: str | int | None = None) -> None:
        """Register a table as a stream, in the order of its rows, or a streaming data frame.

        Args:
            name: the stream's name.
            data: an Arrow table, a pandas or Polars data frame; a bounded Spark data frame, which is read in
                order of its timestamps since it has no order of its own; or a streaming Spark data frame.
            timestamp: the column the rows are timed by, a TIMESTAMP or an integer.
            disorder: how much older than the newest row a row may be, such as "5 seconds", or a number for
                integer timestamps; None where the rows are in order.

        Raises:
            UserError: a column has a type that streams do not have, or the timestamp is missing.
        """
        self._define(in_memory(name, data, timestamp, disorder, self._folders))

    def push(
        self,
        name: str,
        rows: Any,
        producer: str | None = None,
        sequence: int | None = None,
        wait: bool = True,
    ) -> bool | Future[bool]:
        """Add rows to a stream created FROM push, while an endless run is going on.

        Args:
            name: the stream.
            rows: a table or data frame, a list of dictionaries, or one dictionary.
            producer, sequence: who pushes, and a number that grows with each of its pushes: a push that is
                repeated because its acknowledgement was lost is then taken once.
            wait: whether to wait until the rows are committed; else a future is returned.

        Returns:
            True when the rows are committed, False if they were a repeat.

        Raises:
            UserError: the rows do not fit the stream, or the database is not started.
        """
        if self._execution is None:
            raise UserError("the database is not started", hint="call start() first")
        done = self._execution.push(name, rows, producer, sequence)
        return done.result() if wait else done

    def run(self, progress: Callable[[Progress], None] | None = None) -> Summary:
        """Read all streams that a query uses to their end, and answer all queries.

        Args:
            progress: told after every epoch.

        Returns:
            What was read, set apart and held. Results are read from the queries.

        Raises:
            UserError: there is no query, a stream never ends, or an input turns out to be damaged.
        """
        return self._new_execution().complete(progress)

    def start(self) -> None:
        """Answer all queries in the background, as input comes, until `stop`.

        Raises:
            UserError: there is no query, or an endless run is going on already.
        """
        if self.running:
            raise UserError("the database is running already", hint="call stop() first")
        self._new_execution().start()

    def stop(self, timeout: float | None = STOP_TIMEOUT) -> Summary:
        """End an endless run between two epochs; what was committed stays readable.

        Args:
            timeout: seconds to wait, after the last epoch, until all sinks have taken what was committed;
                None waits as long as it takes. A sink that takes longer is left behind: on a durable store
                it gets the rest when the database is started again.

        Raises:
            UserError: the database was not started, what ended the run before, or a sink that has not
                taken everything.
        """
        if self._execution is None:
            raise UserError("the database is not started", hint="call start() first")
        return self._execution.stop(timeout)

    def dead_letters(self) -> pa.Table:
        """The rows that no query could use.

        Returns:
            `epoch`, `stream`, `query`, `reason`, `row` and `place`.
        """
        if self._execution is None:
            raise UserError("nothing has been run yet", hint="call run() or start() first")
        return dead_letters(self._execution.store, tuple(self._execution.run.results))

    def reader(self, query: Query) -> ResultReader:
        """What has been committed for a query so far.

        Raises:
            UserError: the query has no answer: it was not run, or it failed.
        """
        if self._execution is None or query.name not in self._answered:
            raise UserError(f"{query.name} has no answer yet", hint="call run() first")
        if query.name in self._execution.run.failed:
            message, hint = self._execution.run.failed[query.name]
            raise UserError(f"{query.name} failed: {message}", hint=hint)
        return self._execution.reader(query.name, query.plan)

    def follow(self, query: Query, from_epoch: int) -> Iterator[Change]:
        """The changes of a query from an epoch on, as they are committed; see `Query.subscribe`."""
        reader = self.reader(query)
        assert self._execution is not None
        return self._execution.follow(reader, from_epoch)

    def deliver(
        self,
        query: Query,
        to: SinkLike,
        name: str | None = None,
        from_epoch: int = 1,
        retry: Retry | None = None,
    ) -> None:
        """Deliver a query's committed changes to a sink; see `Query.deliver`."""
        if not self._settings.keep_results:
            raise UserError("there is nothing to deliver", hint="connect without keep_results=False")
        attachment = attachment_of(query.name, to, name, from_epoch, retry, self._attachments)
        if self._execution is not None and self.running and query.name in self._answered:
            self._execution.attach(attachment, query.plan)
        self._attachments.append(attachment)

    def _execute(self, statement: Statement, base: Path) -> Query | str | None:
        match statement:
            case CreateStream():
                self._define(declared(statement, base, self._read_stream))
                return None
            case CreateStreamAs(name=name, query=query, position=position):
                entry = DerivedStream(name.text, bind(query, self._catalog))
                self._catalog = self._catalog.define(entry, position)
                return None
            case CreateQuery(name=name, query=query):
                return self._register(name.text, bind(query, self._catalog), statement)
            case Select(query=query):
                return self._register(None, bind(query, self._catalog))
            case Explain(query=query, stage=stage):
                return explain_plan(bind(query, self._catalog), stage)

    def _define(self, stream: Input) -> None:
        self._catalog = self._catalog.define(stream.info)
        self._inputs[stream.info.name] = stream

    def _register(self, name: str | None, plan: Plan, statement: CreateQuery | None = None) -> Query:
        taken = {known.lower() for known in self._queries}
        if name is None:
            numbered = (f"query_{number}" for number in itertools.count(len(taken) + 1))
            name = next(candidate for candidate in numbered if candidate not in taken)
        if name.lower() in taken:
            position = statement.position if statement else None
            raise LanguageError(
                f"there is a query {name} already", position=position, hint="choose another name"
            )
        query = Query(self, name, plan)
        self._queries[name] = query
        return query

    def _runner(self) -> Runner:
        if self._made is None:
            self._made = self._make_runner()
        return self._made

    def _read_stream(self, format: str, options: Mapping[str, str], schema: Schema | None) -> Any:
        """A streaming data frame of one of Spark's own formats."""
        return self._runner().read_stream(format, options, schema)

    def _new_execution(self) -> Execution:
        if not self._queries:
            raise UserError(
                "there is no query to run", hint="write a SELECT, or CREATE QUERY name AS SELECT ..."
            )
        self._forget()
        plans = {name: optimize(query.plan) for name, query in self._queries.items()}
        self._execution = Execution(self._runner(), self._settings, plans, self._inputs, adapt=False)
        self._answered = frozenset(plans) if self._settings.keep_results else frozenset()
        try:
            for attachment in self._attachments:
                self._execution.attach(attachment, self._queries[attachment.query].plan)
        except BaseException:
            self._forget()
            raise
        return self._execution

    def _forget(self) -> None:
        if self._execution is not None:
            self._execution.close()
            self._execution = None


def connect(
    runner: RunnerName = "spark",
    storage: str | Path | None = None,
    spark: Any = None,
    *,
    master: str | None = None,
    buckets: int | None = None,
    epoch_rows: int | None = None,
    keep_results: bool = True,
    retain_epochs: int | None = None,
) -> Database:
    """A new database.

    Args:
        runner: `spark`, or `inline` for this process without Spark.
        storage: a folder that makes runs durable: started again on it, a run goes on where its last commit
            was. It must be one that all machines share. None for a temporary folder.
        spark: an existing Spark session; without one, a local one is started when it is first needed.
        master: the Spark master to start, if not all cores of this machine.
        buckets: over how many buckets state is spread; as many as tasks can run at once if None. A durable
            store keeps the number it was made with.
        epoch_rows: about how many rows an epoch takes; 500,000 if None.
        keep_results: False computes everything and stores no results, for measurements.
        retain_epochs: of how many of the last epochs results are kept; of all if None.

    Raises:
        UserError: an argument makes no sense.
    """
    numbers = {"buckets": buckets, "epoch_rows": epoch_rows, "retain_epochs": retain_epochs}
    for name, value in numbers.items():
        if value is not None and value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    if runner not in ("spark", "inline"):
        raise UserError(f"there is no runner {runner}", hint="use 'spark' or 'inline'")
    make = InlineRunner if runner == "inline" else lambda: _spark_runner(spark, master)
    folder = None if storage is None else Path(storage).absolute()
    rows = epoch_rows or DEFAULT_EPOCH_ROWS
    return Database(make, Settings(folder, rows, buckets, keep_results, retain_epochs))


def _spark_runner(session: Any, master: str | None) -> Runner:
    # Imported when it is needed: explaining a query should not wait for Spark to load.
    module = importlib.import_module("headrace.runtime.spark")
    runner: Runner = module.SparkRunner(session, master)
    return runner

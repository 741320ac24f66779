"""The composition root: a database of streams and continuous queries, and what users do with them."""

from __future__ import annotations

import importlib
import itertools
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Literal

import pyarrow as pa

from headrace.algebra.explain import explain
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import domain_of, sources_of
from headrace.errors import LanguageError, UserError
from headrace.heartbeats.bounded import Arrivals
from headrace.language.binder import bind
from headrace.language.catalog import Catalog, DerivedStream, StreamInfo, check_duration, describe_stream
from headrace.language.parser import parse
from headrace.language.statements import (
    CreateQuery,
    CreateStream,
    CreateStreamAs,
    Explain,
    Select,
    Stage,
    Statement,
)
from headrace.operators.explain import explain_graph
from headrace.operators.lowering import identity, lower
from headrace.optimizer import optimize, rewrites
from headrace.runtime.commits import Description, EpochResults, Journal
from headrace.runtime.epochs import DEFAULT_EPOCH_ROWS, BoundedStream, Progress, Run, Runner
from headrace.runtime.inline import InlineRunner
from headrace.runtime.sources import open_source
from headrace.runtime.sources.tables import to_arrow_table, write_arrow
from headrace.runtime.store import FolderStore, MemoryStore, Store
from headrace.runtime.views import ResultReader, dead_letters
from headrace.schema import TIMESTAMP
from headrace.time import Duration, TimeDomain, parse_duration

RunnerName = Literal["spark", "inline"]


@dataclass(frozen=True)
class StreamSummary:
    """What a run read of a stream: rows used, rows that came late, rows that could not be read."""

    name: str
    rows: int
    late: int
    rejected: int


@dataclass(frozen=True)
class Summary:
    """What a run did.

    Attributes:
        rows: input rows of all streams, the late and the rejected ones included.
        seconds: from the first epoch's start to the last one's end.
        late, dead_letters: rows below their stream's heartbeat, and all rows that were set apart.
        state_rows_peak, state_bytes_peak: the most state held after an epoch.
        emitted: elements yielded per query, corrections included.
        failed: queries that ended early, with the reason and a hint or None.
    """

    rows: int
    seconds: float
    epochs: int
    late: int
    dead_letters: int
    streams: tuple[StreamSummary, ...]
    state_rows_peak: int
    state_bytes_peak: int
    emitted: Mapping[str, int]
    failed: tuple[tuple[str, str, str | None], ...]


class Query:
    """A continuous query and its answer.

    Attributes:
        name: unique in its database.
        plan: as it was written, bound to the streams' columns.
    """

    def __init__(self, database: Database, name: str, plan: Plan) -> None:
        self._database = database
        self.name = name
        self.plan = plan

    def __repr__(self) -> str:
        return f"<Query {self.name} {self.plan.schema}>"

    @property
    def domain(self) -> TimeDomain:
        """What the answer's instants count."""
        return domain_of(self.plan)

    def history(self) -> pa.Table:
        """The answer as coalesced intervals: the payload, `valid_from`, `valid_to` (NULL = for ever)."""
        return self._reader().history()

    def changes(self) -> pa.Table:
        """The elements as emitted: `epoch`, the payload, `valid_from`, `valid_to`, `change`."""
        return self._reader().changes()

    def stream(self) -> pa.Table:
        """What ISTREAM, DSTREAM or RSTREAM yields: the payload and `ts`.

        Raises:
            UserError: the query yields no stream of instants.
        """
        return self._reader().stream()

    def snapshot(self, at: object) -> pa.Table:
        """The content at an instant: an integer, an aware or naive (UTC) datetime, or ISO 8601 text."""
        return self._reader().snapshot(_instant(at, self.domain))

    def explain(self, stage: str = "optimized") -> str:
        """The plan as text: `logical`, `optimized` or `physical`."""
        return explain_plan(self.plan, Stage[stage.upper()])

    def _reader(self) -> ResultReader:
        return self._database.reader(self)


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

    def __init__(
        self,
        make_runner: Callable[[], Runner],
        storage: Path | None,
        epoch_rows: int,
        buckets: int | None,
        keep_results: bool,
    ) -> None:
        self._make_runner = make_runner
        self._storage = storage
        self._runner: Runner | None = None
        self._epoch_rows = epoch_rows
        self._buckets = buckets
        self._keep_results = keep_results
        self._catalog = Catalog()
        self._inputs: dict[str, BoundedStream] = {}
        self._queries: dict[str, Query] = {}
        self._folders: list[tempfile.TemporaryDirectory[str]] = []
        self._store: Store = MemoryStore()
        self._results: tuple[EpochResults, ...] = ()
        self._answered: frozenset[str] = frozenset()
        self._failed: dict[str, tuple[str, str | None]] = {}

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the runner and remove all temporary files."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None
        self._store.close()
        for folder in self._folders:
            folder.cleanup()
        self._folders.clear()

    @property
    def queries(self) -> tuple[Query, ...]:
        """All queries, in the order in which they were registered."""
        return tuple(self._queries.values())

    @property
    def streams(self) -> Mapping[str, StreamInfo | DerivedStream]:
        """All streams by their names in lower case."""
        return MappingProxyType(dict(self._catalog.entries))

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
        """
        statements = parse(text)
        match statements:
            case [Select(query=query)]:
                return self._register(name, bind(query, self._catalog))
            case [CreateQuery(name=own, query=query)]:
                return self._register(name or own.text, bind(query, self._catalog))
            case _:
                raise LanguageError("this is not one query", hint="use execute() for other statements")

    def stream(self, name: str, data: Any, timestamp: str, disorder: str | int | None = None) -> None:
        """Register a bounded table as a stream, in the order of its rows.

        Args:
            name: the stream's name.
            data: an Arrow table, a pandas or Polars data frame, or a bounded Spark data frame, which is read
                in order of its timestamps since it has no order of its own.
            timestamp: the column the rows are timed by, a TIMESTAMP or an integer.
            disorder: how much older than the newest row a row may be, such as "5 seconds", or a number for
                integer timestamps; None where the rows are in order.

        Raises:
            UserError: a column has a type that streams do not have, or the timestamp is missing.
        """
        if hasattr(data, "orderBy"):
            data = data.orderBy(timestamp)
        folder = tempfile.TemporaryDirectory(prefix="headrace-input-")
        self._folders.append(folder)
        path = Path(folder.name, "rows.arrow")
        write_arrow(to_arrow_table(data), path)
        source = open_source("arrow", {"path": str(path)}, None, timestamp, name, path.parent)
        column = next(field for field in source.schema if field.name.lower() == timestamp.lower())
        domain = TimeDomain.TIMESTAMP if column.type == TIMESTAMP else TimeDomain.INTEGER
        bound = _disorder(disorder, domain)
        self._catalog = self._catalog.define(StreamInfo(name, source.schema, column.name, domain))
        self._inputs[name] = BoundedStream(source, column.name, bound)

    def run(self, progress: Callable[[Progress], None] | None = None) -> Summary:
        """Read all streams that a query uses to their end, and answer all queries.

        Args:
            progress: told after every epoch.

        Returns:
            What was read, set apart and held. Results are read from the queries.

        Raises:
            UserError: there is no query, or an input turns out to be damaged.
        """
        if not self._queries:
            raise UserError(
                "there is no query to run", hint="write a SELECT, or CREATE QUERY name AS SELECT ..."
            )
        if self._runner is None:
            self._runner = self._make_runner()
        self._store.close()
        plans = {name: optimize(query.plan) for name, query in self._queries.items()}
        run = self._run_durably(plans, progress) if self._storage else self._run_once(plans, progress)
        self._results = tuple(run.results)
        self._answered = frozenset(plans) if self._keep_results else frozenset()
        self._failed = run.failed
        return _summary(run)

    def dead_letters(self) -> pa.Table:
        """The rows of the last run that no query could use.

        Returns:
            `epoch`, `stream`, `query`, `reason`, `row` and `place`.
        """
        return dead_letters(self._store, self._results)

    def reader(self, query: Query) -> ResultReader:
        """What the last run committed for a query.

        Raises:
            UserError: the query has no answer: it was not run, or it failed.
        """
        if query.name in self._failed:
            message, hint = self._failed[query.name]
            raise UserError(f"{query.name} failed: {message}", hint=hint)
        if query.name not in self._answered:
            raise UserError(f"{query.name} has no answer yet", hint="call run() first")
        return ResultReader(query.name, query.plan, self._store, self._results)

    def _run_once(self, plans: dict[str, Plan], progress: Callable[[Progress], None] | None) -> Run:
        """Run with a store of its own, which goes with the database."""
        assert self._runner is not None
        self._store = self._runner.new_store()
        run = self._new_run(plans, self._buckets)
        run.run(progress)
        return run

    def _run_durably(self, plans: dict[str, Plan], progress: Callable[[Progress], None] | None) -> Run:
        """Run on the store the user named, from where its last commit was."""
        assert self._runner is not None
        self._store = FolderStore(str(self._storage), durable=True)
        used = {source.name for plan in plans.values() for source in sources_of(plan)}
        description = Description(
            queries={name: identity(plan) for name, plan in plans.items()},
            streams={name: _described(self._inputs[name]) for name in sorted(used)},
            buckets=self._buckets or self._runner.parallelism,
        )
        journal = Journal(self._store, description)
        try:
            run = self._new_run(plans, journal.buckets)
            run.resume(journal)
            run.run(progress)
        finally:
            journal.close()
        return run

    def _new_run(self, plans: dict[str, Plan], buckets: int | None) -> Run:
        assert self._runner is not None
        return Run(
            self._runner, self._store, self._inputs, plans, self._epoch_rows, buckets, self._keep_results
        )

    def _execute(self, statement: Statement, base: Path) -> Query | str | None:
        match statement:
            case CreateStream():
                self._create_stream(statement, base)
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

    def _create_stream(self, statement: CreateStream, base: Path) -> None:
        try:
            source = open_source(
                statement.format,
                dict(statement.options),
                statement.columns,
                statement.timestamp,
                statement.name,
                base,
            )
        except UserError as error:
            error.position = error.position or statement.position
            raise
        info = describe_stream(statement, source.schema)
        self._catalog = self._catalog.define(info, statement.position)
        disorder = statement.disorder.length if statement.disorder is not None else 0
        self._inputs[info.name] = BoundedStream(source, info.timestamp, disorder)

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


def connect(
    runner: RunnerName = "spark",
    storage: str | Path | None = None,
    spark: Any = None,
    *,
    master: str | None = None,
    buckets: int | None = None,
    epoch_rows: int | None = None,
    keep_results: bool = True,
) -> Database:
    """A new database.

    Args:
        runner: `spark`, or `inline` for this process without Spark.
        storage: a folder that makes runs durable: started again on it, a run goes on where its last commit
            was. It must be one that all machines share. None for a temporary folder.
        spark: an existing Spark session; without one, a local one is started when it is first needed.
        master: the Spark master to start, if not all cores of this machine.
        buckets: over how many buckets state is spread; as many as tasks can run at once if None.
        epoch_rows: about how many rows an epoch takes; 500,000 if None.
        keep_results: False computes everything and stores no results, for measurements.

    Raises:
        UserError: an argument makes no sense.
    """
    for name, value in (("buckets", buckets), ("epoch_rows", epoch_rows)):
        if value is not None and value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    if runner not in ("spark", "inline"):
        raise UserError(f"there is no runner {runner}", hint="use 'spark' or 'inline'")
    make = InlineRunner if runner == "inline" else lambda: _spark_runner(spark, master)
    folder = None if storage is None else Path(storage).absolute()
    return Database(make, folder, epoch_rows or DEFAULT_EPOCH_ROWS, buckets, keep_results)


def explain_plan(plan: Plan, stage: Stage | None) -> str:
    """A plan as text: as written, optimized with the rewrites that led there, or as it runs; all for None."""
    match stage:
        case Stage.LOGICAL:
            return explain(plan)
        case Stage.OPTIMIZED:
            steps = "".join(f"-- {rule}\n" for rule, _ in rewrites(plan))
            return steps + explain(optimize(plan))
        case Stage.PHYSICAL:
            return explain_graph(lower({"result": optimize(plan)}))
        case None:
            parts = [f"== {part.value.lower()} ==\n{explain_plan(plan, part)}" for part in Stage]
            return "\n".join(parts)


def _spark_runner(session: Any, master: str | None) -> Runner:
    # Imported when it is needed: explaining a query should not wait for Spark to load.
    module = importlib.import_module("headrace.runtime.spark")
    runner: Runner = module.SparkRunner(session, master)
    return runner


def _described(stream: BoundedStream) -> str:
    """What a durable store remembers of a stream, to refuse a run over another one."""
    kind = type(stream.source).__name__
    return f"{kind} {stream.source.schema} by {stream.timestamp}, disorder {stream.disorder}"


def _disorder(value: str | int | None, domain: TimeDomain) -> int:
    if value is None:
        return 0
    duration = Duration(value) if isinstance(value, int) else parse_duration(value)
    check_duration(duration, domain, "disorder")
    return duration.length


def _instant(at: object, domain: TimeDomain) -> int:
    if isinstance(at, int):
        return at
    if domain is TimeDomain.INTEGER:
        raise UserError(f"{at!r} is no instant of an integer timeline", hint="give a number")
    try:
        moment = pa.scalar(at)
        if pa.types.is_timestamp(moment.type) and moment.type.tz is None:
            moment = moment.cast(pa.timestamp("us"))
        return int(moment.cast(TIMESTAMP).value)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UserError(f"{at!r} is no timestamp", hint="write 2024-01-01T00:00:00Z") from error


def _summary(run: Run) -> Summary:
    totals = run.totals
    streams = tuple(
        StreamSummary(name, seen.rows, seen.late, seen.rejected) for name, seen in totals.arrivals.items()
    )
    everything = sum(totals.arrivals.values(), Arrivals())
    return Summary(
        rows=everything.rows + everything.late + everything.rejected,
        seconds=totals.seconds,
        epochs=totals.epochs,
        late=everything.late,
        dead_letters=totals.dead_letters,
        streams=streams,
        state_rows_peak=totals.state_rows_peak,
        state_bytes_peak=totals.state_bytes_peak,
        emitted=MappingProxyType(dict(totals.emitted)),
        failed=tuple((name, message, hint) for name, (message, hint) in run.failed.items()),
    )

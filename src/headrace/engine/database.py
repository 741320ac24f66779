"""A database: streams, queries, and the runner that answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Literal, overload

import pyarrow as pa

from headrace.engine.access.policy import Policy
from headrace.engine.asking.question import QuestionLimits
from headrace.engine.asking.tables import ask
from headrace.engine.catalog import texts
from headrace.engine.inputs.changes import handed_over
from headrace.engine.inputs.corrections import said_of_rows
from headrace.engine.inputs.inputs import in_memory
from headrace.engine.inputs.pulled import is_pulled, pulled
from headrace.engine.inputs.times import Length
from headrace.engine.inputs.user_code import UserCode
from headrace.engine.query.query import Query
from headrace.engine.query.query_list import QueryList
from headrace.engine.run.core import Core
from headrace.engine.run.execution import Settings
from headrace.engine.served import Served
from headrace.engine.shown.display import html_of_table
from headrace.engine.shown.progress_line import Watcher, progress_line
from headrace.engine.shown.status import Status
from headrace.engine.shown.summary import Summary
from headrace.engine.statements.refresh import refresh
from headrace.engine.statements.restore import make
from headrace.engine.statements.show import listing
from headrace.engine.statements.statements import as_one, carry_out, move_of, register, register_text
from headrace.engine.why.why import Why
from headrace.errors import DeadLetterWarning, LanguageError, UserError, warn
from headrace.expressions.user import UserAggregate, UserFunction
from headrace.heartbeats.timing import Timing
from headrace.language.catalog import DerivedStream, RelationInfo, StreamInfo
from headrace.language.named_values import ParameterValue, with_values
from headrace.language.parsing.pieces import Piece
from headrace.language.statements.catalog import CatalogKind
from headrace.language.statements.statements import Conditional, CreateQuery, Select, Shown
from headrace.language.statements.streams import ByArrival
from headrace.runtime.delivery.contract import STOP_TIMEOUT
from headrace.runtime.driver.change.refresh import Refreshed
from headrace.runtime.driver.facts.progress import Progress
from headrace.runtime.journal.description import Differences
from headrace.runtime.tasks.runner import Runner


class Database(UserCode):
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

    def __init__(self, make_runner: Callable[[], Runner], settings: Settings, policy: Policy) -> None:
        self._core = Core(make_runner, settings, make)
        self._policy = policy

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything and remove all temporary files; a durable store stays."""
        self._core.close()

    def __getitem__(self, name: str) -> Query:
        """The query of a name, whatever its case.

        Raises:
            UserError: there is no such query.
        """
        return self._core.definitions.find_query(name) or self.queries[name]

    def __repr__(self) -> str:
        definitions = self._core.definitions
        streams = ", ".join(definitions.inputs) or "none"
        queries = [query.name for query in definitions.answered.values()]
        queries += [f"{query.name} (paused)" for query in definitions.paused.values()]
        state = "running" if self.running else "at rest"
        return f"<Database {state}; streams: {streams}; queries: {', '.join(queries) or 'none'}>"

    @property
    def _activity(self) -> str:
        return "running" if self.running else "at rest"

    def _repr_html_(self) -> str:
        status = self._core.known_status
        listed = (
            listing(what, self._core.definitions, {}, status) for what in (Shown.STREAMS, Shown.QUERIES)
        )
        titles = (f"streams ({self._activity})", "queries")
        return "".join(html_of_table(table, title) for table, title in zip(listed, titles, strict=True))

    @property
    def queries(self) -> QueryList[Query]:
        """All queries, in the order in which they were registered; also `queries["name"]`."""
        return QueryList(self._core.definitions.all_queries)

    @property
    def streams(self) -> Mapping[str, StreamInfo | DerivedStream]:
        """All streams by their names in lower case."""
        entries = self._core.definitions.catalog.entries.items()
        return MappingProxyType(
            {name: entry for name, entry in entries if not isinstance(entry, RelationInfo)}
        )

    @property
    def relations(self) -> Mapping[str, RelationInfo]:
        """All relations by their names in lower case."""
        entries = self._core.definitions.catalog.entries.items()
        return MappingProxyType({name: entry for name, entry in entries if isinstance(entry, RelationInfo)})

    @property
    def timings(self) -> Mapping[str, Timing]:
        """What is declared of the time of each stream that is read from outside, by name."""
        return {name: stream.stream.timing for name, stream in self._core.definitions.inputs.items()}

    @property
    def endless(self) -> tuple[str, ...]:
        """The streams that never end: for them there is `start`, for all others `run`."""
        return tuple(name for name, stream in self._core.definitions.inputs.items() if stream.is_live)

    @property
    def pushed(self) -> tuple[str, ...]:
        """The streams whose rows are pushed."""
        return tuple(name for name, stream in self._core.definitions.inputs.items() if stream.is_pushed)

    @property
    def running(self) -> bool:
        """Whether an endless run is going on."""
        return self._core.running

    @property
    def status(self) -> Status:
        """How far the streams, queries and operators are, as of the last commit; never waits for the run.

        Raises:
            UserError: nothing has been run yet.
        """
        return self._core.status

    @property
    def problems(self) -> Mapping[str, str]:
        """Inputs that cannot be read, were given up or not read again, and sinks that fail; and why."""
        return self._core.execution.problems if self._core.execution is not None else {}

    @property
    def served(self) -> Served:
        """What a server needs of it besides."""
        return Served(self._core)

    @property
    def differences(self) -> Differences:
        """The queries that `start` has added to those of a durable store, and dropped from them."""
        return self._core.execution.differences if self._core.execution is not None else Differences()

    def execute(
        self,
        text: str,
        base: Path | None = None,
        policy: Policy | None = None,
        *,
        parameters: Mapping[str, ParameterValue] | None = None,
    ) -> list[Query | Any]:
        """Carry out statements separated by semicolons.

        While an endless run goes on, queries that statements in a row create come by one change of what
        runs, and those that statements in a row drop go by one.

        Args:
            text: SQL.
            base: the folder that relative paths start from; the current one if None.
            policy: what the statements may reach; if None, what `connect` was given.
            parameters: the values of `:name` in the text, by name: None, bool, int, float, Decimal, str,
                date, datetime with a time zone, or timedelta. Each is a constant of its type.

        Returns:
            A query for each CREATE QUERY or SELECT, the text for each EXPLAIN or SHOW. The type says `Any`
            for the texts, so that type checkers let an item be used as the query that it is.

        Raises:
            PolicyError: a statement asks for more than the policy allows.
            UserError: a statement is wrong or an input cannot be read; those before it have taken effect.
        """
        results: list[Query | Any] = []
        valued = with_values(text, parameters)
        with valued.positions():
            for move, statements in groupby(self._core.statements(valued.text), move_of):
                with as_one(self._core, move):
                    for statement in statements:
                        result = carry_out(self._core, statement, base or Path.cwd(), policy or self._policy)
                        if result is not None:
                            results.append(result)
        return results

    def sync(self) -> None:
        """Drop what a durable store has that nothing given since `connect` has named: `headrace run --sync`.

        Raises:
            UserError: the change cannot be written, or a sink of a query that goes has not taken everything.
        """
        self._core.sync()

    def query(
        self,
        text: str,
        name: str | None = None,
        policy: Policy | None = None,
        *,
        parameters: Mapping[str, ParameterValue] | None = None,
    ) -> Query:
        """Register one continuous query, given as SELECT or CREATE QUERY.

        In an endless run it is answered from the next epoch on, over the rows that arrive from then on, and
        those before them that its streams keep and its windows look back to.

        Args:
            text: the query.
            name: its name; `query_1`, `query_2` ... if None.
            policy: what the query may reach; if None, what `connect` was given.
            parameters: the values of `:name` in the text, as `execute` takes them.

        Raises:
            UserError: the text is not one query, the name is taken, or a stream cannot be started.
        """
        valued = with_values(text, parameters)
        with valued.positions():
            match self._core.statements(valued.text):
                case [Select() | Piece() as query]:
                    return register_text(self._core, name, query, policy or self._policy)
                case [CreateQuery(name=own) as made]:
                    return register(self._core, name or own.text, made, policy or self._policy)
                case [Conditional(statement=CreateQuery()) as made] if name is None:
                    found = carry_out(self._core, made, Path.cwd(), policy or self._policy)
                    assert isinstance(found, Query)
                    return found
                case _:
                    raise LanguageError("this is not one query", hint="use execute() for other statements")

    def stream(
        self,
        name: str,
        data: Any,
        timestamp: str | ByArrival | None = None,
        disorder: Length | None = None,
        *,
        valid: str | tuple[str, str | None] | None = None,
        changes_by: str | None = None,
        key: str | Sequence[str] | None = None,
        version: str | None = None,
        columns: pa.Schema | str | None = None,
        every: str | timedelta = "1 second",
    ) -> None:
        """Register a table as a stream, in the order of its rows, or what brings rows again and again.

        Columns of types that streams do not have are left out with a `HeadraceWarning`.

        Args:
            name: the stream's name.
            data: an Arrow table, a pandas or Polars data frame; a bounded Spark data frame, which is read in
                order of its timestamps since it has no order of its own; a streaming Spark data frame; an
                iterator of tables, record batches, dictionaries or lists of them, such as a generator; or a
                function that returns such rows each time that it is called, None if there are none. Rows may
                be given with a number, as `(rows, number)`: a function that takes an argument gets the last
                number, also after a restart on a durable store, and None at first.
            timestamp: the column the rows are timed by, a TIMESTAMP or an integer; or `ByArrival()`, for the
                clock's reading when an epoch takes them.
            disorder: how much older than the newest row a row may be, such as "5 seconds" or a timedelta, or
                a number for integer timestamps; None where the rows are in order.
            valid: instead of a timestamp the column that begins a row's lifetime, and the one that ends it,
                where NULL means without an end.
            changes_by: the column that says whether a row adds or takes back, such as insert and delete, or 1
                and -1; with a key whether it inserts, updates or deletes.
            key: the columns that say which row is changed.
            version: the column that numbers what was written together, which is not a part of the rows; with
                a key it orders the changes of one instant.
            columns: the columns of an iterator or a function, as in CREATE STREAM or as an Arrow schema; if
                None, those of the first rows of an iterator, which are waited for.
            every: how long to wait after a call of a function that brought nothing.

        Raises:
            UserError: the data is not a table, a column is missing, or the arguments do not fit each other.
        """
        said = said_of_rows(timestamp, valid, changes_by, key, version)
        if is_pulled(data):
            stream = pulled(name, data, said, disorder, columns, every)
        elif columns is not None:
            raise UserError("a table has its columns", hint="leave out columns")
        else:
            stream = in_memory(name, data, said, disorder, self._core.folders)
        self._core.take_in(stream, texts.handed_over(CatalogKind.STREAM, name))

    def relation(
        self,
        name: str,
        data: Any,
        key: str | Sequence[str] | None = None,
        valid: tuple[str, str] | None = None,
        changes_by: str | None = None,
        timestamp: str | ByArrival | None = None,
        version: str | None = None,
        refresh: str | timedelta | None = None,
    ) -> None:
        """Register a table as a relation.

        Its rows are always valid; or in the period that they say, with `valid`; or they are changes, which
        insert, update or delete by key, with `changes_by` and `timestamp`.

        Args:
            name: the relation's name.
            data: an Arrow table, a data frame of pandas or Polars, a bounded one of Spark's, or the path of a
                file whose name ends with the name of a format; for changes also a streaming one.
            key: the columns of which no two rows that are valid together have the same values.
            valid: the columns that begin and end the period of a row, the end being exclusive; two TIMESTAMPs
                or two integers. NULL means without a bound.
            changes_by: the column that says whether a row is an insert, an update or a delete.
            timestamp: the column with the instant of a change, a TIMESTAMP or an integer.
            version: the column that orders the changes of a key at one instant.
            refresh: when its rows are read again while an endless run goes on: "on demand", so by `refresh`;
                or after a length of time such as "5 minutes" or a timedelta, too. `data` may be a function
                then, which returns a table each time. None if never.

        Raises:
            UserError: the data is not a table, a column is missing, or two rows have the same key.

        Example:
            >>> import headrace, pyarrow
            >>> db = headrace.connect(runner="inline")
            >>> db.relation("sensor", pyarrow.table({"id": [1, 2], "room": ["hall", "roof"]}), key="id")
            >>> readings = pyarrow.table({"ts": [5, 6], "id": [2, 3], "v": [10, 20]})
            >>> db.stream("reading", readings, timestamp="ts")
            >>> q = db.query("SELECT r.v, s.room FROM reading r LEFT JOIN sensor s ON s.id = r.id")
            >>> _ = db.run()
            >>> q.stream().to_pydict()
            {'v': [10, 20], 'room': ['roof', None], 'ts': [5, 6]}
        """
        changes = changes_by, timestamp, version
        table = handed_over(name, data, key, valid, changes, self._core.folders, refresh)
        self._core.take_in(table, texts.handed_over(CatalogKind.RELATION, name))

    def refresh(self, name: str, data: Any = None) -> Refreshed:
        """Read a relation again, as REFRESH RELATION does; returns when what was read counts.

        From one instant on, at which nothing had been answered yet, the relation is what was read.

        Args:
            name: the relation's, which was declared with a refresh.
            data: what to read this time, a table or the path of a file; what it was declared with if None.

        Returns:
            The instant, and how many rows came and went; no instant if the relation has not changed.

        Raises:
            UserError: there is no such relation, no query of an endless run reads it, it cannot be read, or
                two rows have the same key. What was read before holds then.
        """
        return refresh(self._core, name, None, data)

    def drop(self, name: str) -> None:
        """Drop a query, a stream or a relation, as DROP QUERY, DROP STREAM and DROP RELATION do.

        Sinks that SQL has defined are dropped by DROP SINK; a query that has some is not dropped.

        In an endless run a query that is dropped is not answered from the next epoch on, and its state goes.
        What was committed for it stays readable until the database is closed; its sinks get all of that.

        Args:
            name: the query's or the stream's, whatever its case.

        Raises:
            UserError: there is no such name, or one of both kinds; the stream is used by a query or by a
                derived stream; or a sink of the query has not taken everything.
        """
        query = self._core.definitions.find_query(name)
        stream = self._core.definitions.catalog.find(name)
        kind = "relation" if isinstance(stream, RelationInfo) else "stream"
        if query is not None and stream is not None:
            hint = f"execute DROP QUERY or DROP {kind.upper()} with the name"
            raise UserError(f"{name} is a query and a {kind}", hint=hint)
        if isinstance(stream, RelationInfo):
            self._core.drop(CatalogKind.RELATION, name, None)
        elif stream is not None:
            self._core.drop(CatalogKind.STREAM, name, None)
        else:
            self._core.drop(CatalogKind.QUERY, name, None)

    @overload
    def push(
        self, name: str, rows: Any, producer: str | None = None, sequence: int | None = None,
        wait: Literal[True] = True,
    ) -> bool: ...  # fmt: skip

    @overload
    def push(
        self, name: str, rows: Any, producer: str | None = None, sequence: int | None = None, *,
        wait: Literal[False],
    ) -> Future[bool]: ...  # fmt: skip

    @overload
    def push(
        self, name: str, rows: Any, producer: str | None = None, sequence: int | None = None,
        wait: bool = True,
    ) -> bool | Future[bool]: ...  # fmt: skip

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
            wait: whether to wait until the rows are committed; else a future is returned, and arrays that a
                table is made of may not be filled again before it is done.

        Returns:
            True when the rows are committed, False if they were a repeat.

        Raises:
            UserError: the rows do not fit the stream, or the database is not started.
        """
        done = self._core.started.push(name, rows, producer, sequence)
        return done.result() if wait else done

    def heartbeat(self, name: str, at: datetime | int) -> None:
        """Say that a live stream brings no row below an instant any more; returns when that is committed.

        Answers that waited for the stream become final up to there. A row that comes all the same is late.

        Args:
            name: the stream.
            at: the instant: a datetime with a time zone, or a number for integer timestamps.

        Raises:
            UserError: no query reads the stream, it is timed by something else, or the database is not
                started.
        """
        self._core.started.heartbeat(name, at)

    def prepare(self) -> None:
        """Start what the queries run on, such as Spark, which the first `run` or `start` does otherwise.

        Raises:
            UserError: it does not start.
        """
        with self._core.lock:
            self._core.runner()

    def run(self, progress: Watcher = None) -> Summary:
        """Read all streams that a query uses to their end, and answer all queries.

        Rows that could not take part are told by a `DeadLetterWarning`; `dead_letters` has them.

        Args:
            progress: called after every epoch. If None, a notebook shows a line when this takes more than a
                second; with False it does not.

        Returns:
            What was read, set apart and held. Results are read from the queries.

        Raises:
            UserError: there is no query, a stream never ends, an input is damaged, or a run is going on.
        """
        with progress_line(progress) as show:
            summary = self._core.new_execution(adapt=False).complete(show)
        for stream in summary.streams:
            if stream.set_apart is not None:
                warn(f"{stream.set_apart}; they are dead letters", DeadLetterWarning)
        return summary

    def start(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Answer all queries in the background, as input comes, until `stop`.

        On a durable store a query that the store does not have is added now, and one that only the store has
        is dropped; `differences` says which.

        Args:
            progress: called after every epoch, by the thread that runs them; what it raises ends the run.

        Raises:
            UserError: there is no query, or an endless run is going on already.
        """
        with self._core.lock:
            self._core.new_execution(adapt=True).start(progress)
            self._core.replace_waiting()

    def stop(self, timeout: float | None = STOP_TIMEOUT) -> Summary:
        """End an endless run between two epochs; what was committed stays readable.

        Args:
            timeout: seconds to wait for the epoch that is running, and until all sinks have taken what was
                committed; None waits as long as it takes. An epoch that takes longer is given up: nothing of
                it counts. A sink that takes longer is abandoned: on a durable store it gets the rest when
                the database is started again.

        Raises:
            UserError: the database was not started, what ended the run before, or a sink that has not
                taken everything.
        """
        return self._core.started.stop(timeout)

    def dead_letters(self, stream: str | None = None) -> pa.Table:
        """The rows that no query could use; those too of an epoch that `max_dead_letters` refused.

        Args:
            stream: if given, the rows of this stream, with all its columns, as far as they are kept by
                `DEAD LETTERS KEEP`.

        Returns:
            `epoch`, `stream`, `query`, `reason`, `row` and `place`. Of one stream: its columns, then
            `set_apart_at`, `epoch`, `reason`, `query`, `place`, `row_text`, and `replayed_in`, the epoch that
            took the row once more, or NULL.

        Raises:
            UserError: nothing has been run yet, or there is no such stream of which dead letters are kept.
        """
        if self._core.execution is None:
            raise UserError("nothing has been run yet", hint="call run() or start() first")
        if stream is None:
            return self._core.execution.dead_letters()
        known = self._core.definitions.catalog.find(stream)
        return self._core.execution.kept_letters(stream if known is None else known.name)

    def rows(self, stream: str, newest: int | None = None) -> pa.Table:
        """The rows of a stream that are kept by `RETAIN`, in the order of the epochs that took them.

        Args:
            stream: its name.
            newest: so many rows at most, those that came last; all if None.

        Raises:
            UserError: nothing has been run yet, or no rows of such a stream are kept; or the number is below
                zero.
        """
        if newest is not None and newest < 0:
            raise UserError(f"there are no {newest} rows", hint="ask for 0 rows or more")
        if self._core.execution is None:
            raise UserError("nothing has been run yet", hint="call run() or start() first")
        known = self._core.definitions.catalog.find(stream)
        return self._core.execution.rows(stream if known is None else known.name, newest)

    def ask(
        self,
        question: str,
        *,
        seconds: float = 30.0,
        memory: int = 1_000,
        threads: int = 2,
        rows: int = 10_000_000,
        parameters: Mapping[str, ParameterValue] | None = None,
    ) -> pa.Table:
        """The answer of a question that is asked once, over what has been committed; DuckDB answers it.

        Where a table can be, it may name `HISTORY OF q`, `SNAPSHOT OF q`, `CHANGES OF q`, `STREAM OF q` and
        `EPOCHS OF q`, which have the columns of the methods of a query, the first two of a span with
        `BEGIN 5 END 12` or `BEGIN NOW - 10 END NOW`; `DEAD LETTERS` or `DEAD LETTERS OF s`, which have
        those of `dead_letters`; and `ROWS OF s`, which has those of `rows`. `HISTORY OF q AS OF EPOCH 12`, or
        `AS OF` a time of the clock, is what was known then. It reads nothing else: no file, no
        address, no variable.

        Args:
            question: a SELECT in DuckDB's SQL, with its meaning.
            seconds: after so many it is ended.
            memory: megabytes that DuckDB may use, the tables that it reads not counted.
            threads: processors that it may use.
            rows: of the answer; one with more is refused.
            parameters: the values of `:name` in the question, as `execute` takes them.

        Raises:
            UserError: DuckDB is not installed, the question is wrong, it exceeds a limit, or what it names
                cannot be read.
            PolicyError: it reaches for something else than rows that Headrace keeps.
        """
        return ask(self, question, QuestionLimits(seconds, memory, threads, rows), parameters)

    def why(self, query: str) -> Why:
        """Why a query has no output, or no newer one: what its answer waits for, and where rows are lost.

        Args:
            query: its name, whatever the case.

        Raises:
            UserError: there is no such query, or it has not been run yet.
        """
        return self._core.why_of(query)

    def _define_function(self, user: UserFunction | UserAggregate) -> None:
        self._core.define_function(user)

"""Statements: what one can ask of Headrace, as the parser hands it on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from typing import Final

from headrace.algebra.arrival import Unit
from headrace.errors import Position
from headrace.language.defaults import Defaults
from headrace.language.statements.catalog import (
    Comment,
    Describe,
    PauseQuery,
    RenameQuery,
    ResumeQuery,
    SetOption,
    ShowCreate,
)
from headrace.language.statements.formats import ChangeRecords
from headrace.language.statements.overflow import Overflow
from headrace.language.statements.past import RetainClause, StartClause
from headrace.language.statements.sinks import CreateSink, DropSink
from headrace.language.syntax import Name, QuerySyntax, Scalar
from headrace.schema import Schema
from headrace.time import Duration

SECRET_OPTIONS: Final = ("access_key", "secret_key", "session_token")
"""The options of files in object stores whose values are secret."""


class Stage(Enum):
    """Which plan EXPLAIN shows."""

    LOGICAL = "LOGICAL"
    """As the query was written."""
    OPTIMIZED = "OPTIMIZED"
    """After the rewrites."""
    PHYSICAL = "PHYSICAL"
    """The operators that run."""


@dataclass(frozen=True)
class EstimationClause:
    """`(WINDOW n ROWS, ALPHA a)` or `(WINDOW duration, ALPHA a)` of ESTIMATED; None where it does not say.

    Attributes:
        rows: how many rows the window has.
        duration: how long it is, in the stream's own time.
        alpha: the weight of the former estimate when it is lowered, from 0 to 1.
        wait: between streams, after how long the last of several bounds holds (wall-clock).
    """

    rows: int | None = None
    duration: Duration | None = None
    alpha: Decimal | None = None
    wait: Duration | None = None


@dataclass(frozen=True)
class ValuesOf:
    """`relation [(column)]`: the values of a relation's column.

    Attributes:
        relation: the relation.
        column: its column; None for its key, or for the one that is called as what is compared with it.
    """

    relation: Name
    column: Name | None


@dataclass(frozen=True)
class PerClause:
    """`PER column [OF {(value, ...) | relation [(column)]}] [WAIT duration]`.

    Attributes:
        column: each of its values has a bound of its own.
        listed: the values that hold the stream back from the beginning, or where they are.
        wait: how long after its first row the stream waits for values that it does not know (wall-clock).
    """

    column: Name
    listed: tuple[str | int, ...] | ValuesOf = ()
    wait: Duration | None = None


@dataclass(frozen=True)
class TimeClauses:
    """What CREATE STREAM says about a stream's time after `TIMESTAMP BY column`; None where it does not.

    Attributes:
        disorder: by how much a timestamp may be behind the largest one before it.
        rows: after how many further rows none is behind any more (`DISORDER n ROWS`).
        percent: of how many rows in a hundred that is to hold (`DISORDER FOR p PERCENT`).
        estimation: how it is estimated from the rows (`ESTIMATED`).
        strict: whether every timestamp is larger than all before it.
        latency: how long a row is under way at most (wall-clock).
        idle_after: after how long without rows the stream no longer holds back others (wall-clock).
        timeout: after how long without rows of any stream all of them are final (wall-clock).
        ahead: by how much a timestamp may be ahead of the clock.
        heartbeats: the column with heartbeats that the source sends.
        per: of what column each value is bounded on its own.
        letters: for how long dead letters of the stream are kept (wall-clock), INFINITY for ever.
        retain: which of its rows are kept.
        overflow: what happens to rows that are pushed faster than epochs take them.
    """

    disorder: Duration | None = None
    rows: int | None = None
    percent: Decimal | None = None
    estimation: EstimationClause | None = None
    strict: bool = False
    latency: Duration | None = None
    idle_after: Duration | None = None
    timeout: Duration | None = None
    ahead: Duration | None = None
    heartbeats: Name | None = None
    per: PerClause | None = None
    letters: Duration | None = None
    retain: RetainClause | None = None
    overflow: Overflow | None = None

    @property
    def is_timeless(self) -> bool:
        """Whether they say nothing of its time, but at most what is kept, and what is dropped."""
        return replace(self, letters=None, retain=None, overflow=None) == NOTHING_SAID


NOTHING_SAID: Final = TimeClauses()
"""Of a stream that says nothing about its time after TIMESTAMP BY."""


@dataclass(frozen=True)
class ByArrival:
    """`TIMESTAMP BY ARRIVAL [AS column]`: rows are timed by the clock, when an epoch takes them.

    Attributes:
        column: the name that queries have for the instant; rows come without it.
    """

    column: str = "arrival"


@dataclass(frozen=True)
class EventsClause:
    """`[CHANGES BY change] {TIMESTAMP BY column | VALID FROM column [TO end]} [VERSION BY version]`.

    Attributes:
        lasting: whether rows are valid from the column on (`VALID FROM`), instead of for that instant.
        ends: the column that ends a row, or None.
        change: the column that says whether a row adds or takes back, or with KEY what it changes; or None.
        version: the column that numbers what was written together, or with KEY orders the changes; or None.
        shortened: the column with the new end of a row that is shortened, or None.
        counts: the column with the counts of external CTIs, or None.
    """

    lasting: bool
    ends: Name | None
    change: Name | None
    version: Name | None
    shortened: Name | None = None
    counts: Name | None = None


@dataclass(frozen=True)
class ComputedColumn:
    """`name AS expression` among the columns of CREATE STREAM.

    Attributes:
        name: the column's name.
        text: the expression as it is written.
        expression: the same, over the columns of the input.
        position: where it starts.
    """

    name: str
    text: str
    expression: Scalar = field(compare=False)
    position: Position = field(compare=False)


@dataclass(frozen=True)
class CreateStream:
    """`CREATE STREAM name [(columns)] [KEY (columns)] FROM format [OPTIONS (...)] events [clauses]`.

    Attributes:
        name: the stream's name.
        columns: the declared columns, or None where the input has them.
        format: one of `FORMATS`.
        options: pairs of an option's name in lower case and its value as text.
        timestamp: the column the stream is timed by, or that it is timed by arrival.
        time: what it says about the stream's time.
        position: where the statement starts.
        timestamp_position: where that is said, for errors that only the input shows.
        key: the columns that say which row is changed; none where rows are not changed by key.
        events: what else says when rows are valid; None where each is valid for its instant.
        records: how the change records of Debezium that rows are within are read (`FORMAT DEBEZIUM`), or
            None; the columns then are those of `headrace.algebra.debezium`.
        computed: columns that are computed of those of the input.
    """

    name: str
    columns: Schema | None
    format: str
    options: tuple[tuple[str, str], ...]
    timestamp: str | ByArrival
    time: TimeClauses
    position: Position
    timestamp_position: Position
    key: tuple[Name, ...] = ()
    events: EventsClause | None = None
    records: ChangeRecords | None = None
    computed: tuple[ComputedColumn, ...] = ()


@dataclass(frozen=True)
class ChangesClause:
    """`CHANGES BY operation TIMESTAMP BY column [VERSION BY version] [clauses]`.

    Attributes:
        operation: the column that says whether a row inserts, updates or deletes.
        version: the column that orders the changes of a key at one instant, or None.
        stream: what the relation would be if its rows were those of a stream.
    """

    operation: Name
    version: Name | None
    stream: CreateStream


@dataclass(frozen=True)
class RefreshClause:
    """`REFRESH ON DEMAND` or `REFRESH EVERY duration`.

    Attributes:
        every: after how long the rows are read again (wall-clock); None if only on demand.
    """

    every: Duration | None


@dataclass(frozen=True)
class CreateRelation:
    """`CREATE RELATION name [(columns)] [KEY (columns)] FROM format [OPTIONS (...)]`.

    Rows are always valid; in their own periods, with `VALID FROM a TO b`; until they are changed, with
    `CHANGES BY`; or until they are read again, with `REFRESH`.

    Attributes:
        name: the relation's name.
        columns: the declared columns, or None where the input has them.
        key: the columns of which no two rows that are valid together have the same values; none if not said.
        format: one of `FILE_FORMATS`, one of Spark's, or for changes whatever a stream is read from.
        options: pairs of an option's name in lower case and its value as text.
        valid: the columns that begin and end the period of a row, or None where they have none of their own.
        position: where the statement starts.
        changes: that its rows are changes, or None.
        refresh: when its rows are read again, or None where they never are.
    """

    name: str
    columns: Schema | None
    key: tuple[Name, ...]
    format: str
    options: tuple[tuple[str, str], ...]
    valid: tuple[Name, Name] | None
    position: Position
    changes: ChangesClause | None = None
    refresh: RefreshClause | None = None


@dataclass(frozen=True)
class RefreshRelation:
    """`REFRESH RELATION name`: the relation is read again now.

    Attributes:
        relation: its name.
        position: where the statement starts.
    """

    relation: Name
    position: Position


@dataclass(frozen=True)
class AlterStream:
    """`ALTER STREAM name clauses`: what CREATE STREAM said about its time is changed, also while it is read.

    Attributes:
        name: the stream.
        time: the clauses that are given.
        changed: the fields of `time` that replace what was said before.
        position: where the statement starts.
    """

    name: Name
    time: TimeClauses
    changed: frozenset[str]
    position: Position


@dataclass(frozen=True)
class Reoptimize:
    """`ALTER QUERY name REOPTIMIZE`: a running query may join in another order from now on.

    Attributes:
        query: the query's name.
        position: where the statement starts.
    """

    query: Name
    position: Position


@dataclass(frozen=True)
class SetConsistency:
    """`ALTER QUERY name SET CONSISTENCY ...`: from now on the query's answer waits for late rows so long.

    Attributes:
        query: the query's name.
        consistency: how long.
        position: where the statement starts.
    """

    query: Name
    consistency: Consistency
    position: Position


@dataclass(frozen=True)
class Replay:
    """`REPLAY DEAD LETTERS OF stream [WHERE condition]`: rows that were set apart are input once more.

    Attributes:
        stream: the stream.
        where: which of its dead letters, or None for all.
        position: where the statement starts.
    """

    stream: Name
    where: Scalar | None
    position: Position


@dataclass(frozen=True)
class SkewPair:
    """`(wait, behind)` of CREATE SKEW.

    Attributes:
        wait: how long after a row of the first stream the bound holds (wall-clock); 0 for at once.
        rows: after how many further rows of the second stream it holds, instead of a wait.
        behind: how much older than the first stream's row one of the second may be; None for STRICT: it has
            to be younger.
    """

    wait: Duration
    rows: int
    behind: Duration | None


@dataclass(frozen=True)
class CreateSkew:
    """`CREATE SKEW BETWEEN a AND b (wait, behind), ...`, `FROM a TO b` for one direction, or `AMONG a, b, c`.

    Where a stream is named there may also be several, as in `BETWEEN (a, b) AND c`. Also DROP SKEW.

    Attributes:
        firsts, seconds: the streams: when one of the first has a row, those of each of the second are soon
            not much older. There are no second ones in AMONG, where the first are meant.
        pairs: the bounds; none where they are dropped or estimated.
        both: whether they hold from the second to the first as well.
        position: where the statement starts.
        estimation: how a bound is estimated, or None.
    """

    firsts: tuple[Name, ...]
    seconds: tuple[Name, ...]
    pairs: tuple[SkewPair, ...]
    both: bool
    position: Position
    estimation: EstimationClause | None = None


def is_topic(format: str, options: Iterable[tuple[str, str]]) -> bool:
    """Whether a format, in lower case, with its options is a Kafka topic that our own source reads.

    Options as Spark's connector has them (`kafka.bootstrap.servers`, `subscribe`) ask for that connector.
    """
    theirs = ("kafka.", "subscribe", "assign")
    return format == "kafka" and not any(name.startswith(theirs) for name, _ in options)


WEB: Final = "http"
"""The format of a stream whose rows are what an address of the web answers."""


@dataclass(frozen=True)
class CreateStreamAs:
    """`CREATE STREAM name AS query`: a derived stream, which queries use like a view.

    Attributes:
        name: the stream's.
        query: the query.
        position: where the statement starts.
        text: the query as it is written.
    """

    name: Name
    query: QuerySyntax
    position: Position
    text: str = field(default="", compare=False)


class Heartbeats(Enum):
    """How far the operators of a query run ahead of those that are to use their results."""

    OPERATOR = "OPERATOR"
    """As far as their own inputs allow it."""
    MEMORY = "MEMORY"
    """One that multiplies rows no further than its results can be used."""
    COMMON = "COMMON"
    """All no further than the query's answer."""


@dataclass(frozen=True)
class Consistency:
    """`CONSISTENCY {STRONG | MIDDLE | WEAK | (BLOCK d, REMEMBER d)}`: what an answer makes of late rows.

    Attributes:
        block: so far behind the newest row it is said, and corrected where that turns out wrong; None waits
            until it is final. Microseconds of the clock where the unit is ARRIVAL, a number of rows for ROWS.
        position: of the clause, if there is one.
        remember: rows that are behind the newest one by more than that are left out; None takes all that are
            in time for their stream. It is behind by the clock or by rows that have come, too; see `memory`.
        unit: what `block` counts.
        maximal: whether all is said that follows from the rows that have come, also of instants beyond the
            newest one; `block` is 0 then.
        memory: what `remember` counts.
    """

    block: Duration | None = None
    position: Position | None = None
    remember: Duration | None = None
    unit: Unit = Unit.TIME
    maximal: bool = False
    memory: Unit = Unit.TIME

    @property
    def is_strong(self) -> bool:
        """Whether it waits until it is final, and takes all rows."""
        return self.block is None and self.remember is None


STRONG: Final = Consistency()
"""An answer is said once, when it is final."""


@dataclass(frozen=True)
class CreateQuery:
    """`CREATE [OR REPLACE] QUERY name [CONSISTENCY ...] [STARTING AT ...] [WARM] [HEARTBEATS ...] AS query`.

    Attributes:
        name: the query's.
        query: the query.
        position: where the statement starts.
        warm: whether it is to take over the state of a query that runs.
        heartbeats: how far its operators run ahead of each other.
        consistency: how long its answer waits for rows that come late.
        start: since when it answers; from now on if None.
        text: the query as it is written.
        replaces: whether it takes the place of the query of that name, if there is one.
    """

    name: Name
    query: QuerySyntax
    position: Position
    warm: bool = False
    heartbeats: Heartbeats = Heartbeats.OPERATOR
    consistency: Consistency = STRONG
    start: StartClause | None = None
    text: str = field(default="", compare=False)
    replaces: bool = False


@dataclass(frozen=True)
class Select:
    """A continuous query without a name.

    Attributes:
        query: the query.
        position: where it starts.
        text: the query as it is written.
    """

    query: QuerySyntax
    position: Position
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Explain:
    """`EXPLAIN [LOGICAL|OPTIMIZED|PHYSICAL] query`; without a word `stage` is None and all are shown."""

    query: QuerySyntax
    stage: Stage | None
    position: Position


@dataclass(frozen=True)
class ExplainAnalyze:
    """`EXPLAIN ANALYZE query`: how a query runs, with what its operators have counted.

    Attributes:
        subject: the name of a query that runs or has run; or a query, which is run for it.
        position: where the statement starts.
    """

    subject: Name | QuerySyntax
    position: Position


@dataclass(frozen=True)
class ExplainShared:
    """`EXPLAIN SHARED [query]`: which operators queries have in common.

    Attributes:
        query: one that is looked at beside those that are defined, or None.
        position: where the statement starts.
    """

    query: QuerySyntax | None
    position: Position


@dataclass(frozen=True)
class ExplainCost:
    """`EXPLAIN COST query`: what a query's operators are expected to yield, to keep and to take.

    Attributes:
        query: the query.
        position: where the statement starts.
    """

    query: QuerySyntax
    position: Position


@dataclass(frozen=True)
class ExplainReplace:
    """`EXPLAIN REPLACE name AS query`, or `EXPLAIN CREATE OR REPLACE QUERY name ... AS query`.

    It says what the replacement would do, and does nothing.

    Attributes:
        made: the CREATE OR REPLACE QUERY.
        position: where the statement starts.
    """

    made: CreateQuery
    position: Position


@dataclass(frozen=True)
class AskWhy:
    """`WHY name`: why the query has no output, or no newer one."""

    query: Name
    position: Position


@dataclass(frozen=True)
class DropStream:
    """`DROP STREAM name [CASCADE]`: the stream is no longer there.

    Attributes:
        name: the stream's.
        position: where the statement starts.
        cascade: whether what is written over it goes as well.
    """

    name: Name
    position: Position
    cascade: bool = False


@dataclass(frozen=True)
class DropRelation:
    """`DROP RELATION name [CASCADE]`: the relation is no longer there.

    Attributes:
        name: the relation's.
        position: where the statement starts.
        cascade: whether what is written over it goes as well.
    """

    name: Name
    position: Position
    cascade: bool = False


@dataclass(frozen=True)
class DropQuery:
    """`DROP QUERY name [CASCADE]`: the query is no longer answered.

    Attributes:
        name: the query's.
        position: where the statement starts.
        cascade: whether its sinks go as well.
    """

    name: Name
    position: Position
    cascade: bool = False


class Shown(Enum):
    """What SHOW lists."""

    STREAMS = "STREAMS"
    """Source streams and derived ones, with their columns."""
    RELATIONS = "RELATIONS"
    """Relations, with their keys and columns."""
    QUERIES = "QUERIES"
    """The continuous queries, with what they read and answer."""
    SINKS = "SINKS"
    """Where the changes of queries go, and how far they have come there."""
    SKEWS = "SKEWS"
    """Bounds between streams."""
    FUNCTIONS = "FUNCTIONS"
    """Functions and aggregates, built in and users' own."""
    SETTINGS = "SETTINGS"
    """How runs go on."""
    DIALECT = "DIALECT"
    """Whose defaults hold."""


@dataclass(frozen=True)
class Show:
    """`SHOW STREAMS` and its like."""

    what: Shown
    position: Position


@dataclass(frozen=True)
class SetDialect:
    """`SET dialect = 'cql'`: whose defaults hold for the statements that follow.

    Attributes:
        defaults: whose.
        position: where the statement begins.
        quotes_names: whether double quotes are around names in the statements that follow.
    """

    defaults: Defaults
    position: Position
    quotes_names: bool = False


Statement = (
    CreateStream
    | CreateRelation
    | RefreshRelation
    | AlterStream
    | Reoptimize
    | SetConsistency
    | Replay
    | CreateSkew
    | CreateStreamAs
    | CreateQuery
    | Select
    | Explain
    | ExplainAnalyze
    | ExplainCost
    | ExplainShared
    | ExplainReplace
    | AskWhy
    | DropStream
    | DropRelation
    | DropQuery
    | CreateSink
    | DropSink
    | SetDialect
    | Show
    | ShowCreate
    | Describe
    | Comment
    | PauseQuery
    | RenameQuery
    | ResumeQuery
    | SetOption
)

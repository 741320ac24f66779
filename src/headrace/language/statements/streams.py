"""Statements that define streams, relations and bounds between streams, with their clauses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from headrace.errors import Position
from headrace.language.statements.formats import FILE_FORMATS, ChangeRecords
from headrace.language.statements.overflow import Overflow
from headrace.language.statements.past import RetainClause
from headrace.language.syntax import Name, Scalar
from headrace.schema import Schema
from headrace.time import Duration

SECRET_OPTIONS: Final = {
    **dict.fromkeys(FILE_FORMATS, ("access_key", "secret_key", "session_token")),
    "push": ("secret",),
}
"""The options whose values are secret, of files in object stores and of signed rows."""


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
class DeviationClause:
    """`DEVIATION length [FROM clock]`.

    Attributes:
        length: how far the source's clock is from the other one at most.
        clock: the other one; None for true time.
        position: where the length is.
    """

    length: Duration
    clock: Name | None
    position: Position = field(compare=False)


@dataclass(frozen=True)
class RateClause:
    """`RATE gain PER time`.

    Attributes:
        gain: by how much the source's clock rises at least.
        time: in how much time (wall-clock).
        position: where the gain is.
    """

    gain: Duration
    time: Duration
    position: Position = field(compare=False)


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
        behind: by how much the timestamp of a row that comes may be behind the clock.
        heartbeats: the column with heartbeats that the source sends.
        deviation: how far the clock of its source is from another.
        rate: how fast that clock runs at least.
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
    behind: Duration | None = None
    heartbeats: Name | None = None
    deviation: DeviationClause | None = None
    rate: RateClause | None = None
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

    It may say CREATE OR REPLACE.

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
        replaces: whether it takes the place of the stream of that name, if there is one.
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
    replaces: bool = False


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
    """`CREATE [OR REPLACE] RELATION name [(columns)] [KEY (columns)] FROM format [OPTIONS (...)]`.

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
        replaces: whether it takes the place of the relation of that name, if there is one.
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
    replaces: bool = False


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
class AddColumns:
    """`ALTER STREAM name ADD COLUMN [IF NOT EXISTS] column TYPE [, ADD COLUMN ...]`: further columns.

    Attributes:
        name: the stream.
        columns: the columns in their order; rows that came before have NULL in them.
        position: where the statement starts.
        missing: the names of those that are added only if the stream has none of that name.
    """

    name: Name
    columns: Schema
    position: Position
    missing: frozenset[str] = frozenset()


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

    @property
    def is_with_itself(self) -> bool:
        """Whether the bounds are of one stream with itself: FROM a TO a."""
        names = [tuple(name.text.lower() for name in side) for side in (self.firsts, self.seconds)]
        return not self.both and len(self.firsts) == 1 and names[0] == names[1]


def is_topic(format: str, options: Iterable[tuple[str, str]]) -> bool:
    """Whether a format, in lower case, with its options is a Kafka topic that our own source reads.

    Options as Spark's connector has them (`kafka.bootstrap.servers`, `subscribe`) ask for that connector.
    """
    theirs = ("kafka.", "subscribe", "assign")
    return format == "kafka" and not any(name.startswith(theirs) for name, _ in options)


WEB: Final = "http"
"""The format of a stream whose rows are what an address of the web answers."""

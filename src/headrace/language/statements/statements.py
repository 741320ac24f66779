"""Statements: what one can ask of Headrace, as the parser hands it on."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from headrace.algebra.arrival import Unit
from headrace.algebra.tunings.loss import Loss
from headrace.errors import Position
from headrace.language.defaults import Defaults
from headrace.language.statements.catalog import (
    CatalogKind,
    Comment,
    Describe,
    PauseQuery,
    RenameQuery,
    ResumeQuery,
    SetKeep,
    SetOption,
    SetPriority,
    SetWindow,
    ShowCreate,
)
from headrace.language.statements.past import StartClause
from headrace.language.statements.sinks import CreateSink, DropSink
from headrace.language.statements.streams import (
    AddColumns,
    AlterStream,
    CreateRelation,
    CreateSkew,
    CreateStream,
)
from headrace.language.syntax import Name, QuerySyntax, Scalar
from headrace.scheduling.priority import USUAL, Priority
from headrace.time import Duration


class Stage(Enum):
    """Which plan EXPLAIN shows."""

    LOGICAL = "LOGICAL"
    """As the query was written."""
    OPTIMIZED = "OPTIMIZED"
    """After the rewrites."""
    PHYSICAL = "PHYSICAL"
    """The operators that run."""


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
class CreateStreamAs:
    """`CREATE [OR REPLACE] STREAM name AS query`: a derived stream, which queries use like a view.

    Attributes:
        name: the stream's.
        query: the query.
        position: where the statement starts.
        text: the query as it is written.
        replaces: whether it takes the place of the stream of that name, if there is one.
    """

    name: Name
    query: QuerySyntax
    position: Position
    text: str = field(default="", compare=False)
    replaces: bool = False


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

    In the place of CONSISTENCY may be LOSS TOLERANT; before it WEIGHT, LATENCY and QOS.

    Attributes:
        name: the query's.
        query: the query.
        position: where the statement starts.
        warm: whether it is to take over the state of a query that runs.
        heartbeats: how far its operators run ahead of each other.
        consistency: how long its answer waits for rows that come late.
        start: since when it answers; from now on if None.
        loss: what is borne of rows that are left out; None if none may be.
        priority: its share of the processor, and how late its answer may be.
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
    loss: Loss | None = None
    priority: Priority = USUAL
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

    Or `EXPLAIN COST CREATE QUERY name LOSS TOLERANT AS query`, with what it bears of loss.

    Attributes:
        query: the query.
        position: where the statement starts.
        made: the CREATE QUERY that it is from, or None.
    """

    query: QuerySyntax
    position: Position
    made: CreateQuery | None = None


@dataclass(frozen=True)
class ExplainReplace:
    """`EXPLAIN REPLACE name AS query`, or `EXPLAIN CREATE [OR REPLACE] QUERY name ... AS query`.

    It says what the statement would do, and does nothing.

    Attributes:
        made: the statement.
        position: where the statement starts.
    """

    made: CreateQuery
    position: Position


QueryChange = (
    PauseQuery | RenameQuery | ResumeQuery | Reoptimize | SetConsistency | SetKeep | SetPriority | SetWindow
)
"""The changes that ALTER QUERY makes."""


@dataclass(frozen=True)
class ExplainAlter:
    """`EXPLAIN ALTER QUERY name ...`, with whatever ALTER QUERY may change.

    It says what the statement would do, and does nothing.

    Attributes:
        change: the statement.
        position: where the statement starts.
    """

    change: QueryChange
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
    TUNINGS = "TUNINGS"
    """Windows whose size may change, with their bounds and what they are now."""
    MANAGER = "MANAGER"
    """The state that is kept, that may be kept, and the sizes that windows are to have for that."""
    SHEDDING = "SHEDDING"
    LANES = "LANES"
    """The time that runs need for what comes, and the shares of rows that are to be kept for that."""
    FUNCTIONS = "FUNCTIONS"
    """Functions and aggregates, built in and users' own."""
    SETTINGS = "SETTINGS"
    """How runs go on."""
    DIALECT = "DIALECT"
    """Whose defaults hold."""


@dataclass(frozen=True)
class Show:
    """`SHOW STREAMS` and its like; also `SHOW TUNINGS FOR query`.

    Attributes:
        what: what is listed.
        position: where the statement starts.
        query: the query whose windows alone are listed, with all sizes that they have had.
    """

    what: Shown
    position: Position
    query: Name | None = None


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


@dataclass(frozen=True)
class Conditional:
    """`CREATE ... IF NOT EXISTS name` and `DROP ... IF EXISTS name`: nothing is done where nothing is to do.

    Attributes:
        statement: what is carried out otherwise.
        kind: of what it creates or drops.
        name: its name.
        exists: whether it is carried out where there is something of that kind and name, or else where not.
    """

    statement: Defining
    kind: CatalogKind
    name: Name
    exists: bool

    @property
    def position(self) -> Position:
        """Where the statement starts."""
        return self.statement.position


Defining = (
    CreateStream
    | CreateRelation
    | CreateStreamAs
    | CreateQuery
    | CreateSink
    | DropStream
    | DropRelation
    | DropQuery
    | DropSink
)
"""Statements that define something under a name, or take it away."""

Statement = (
    CreateStream
    | CreateRelation
    | RefreshRelation
    | AddColumns
    | AlterStream
    | Reoptimize
    | SetConsistency
    | SetKeep
    | SetPriority
    | SetWindow
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
    | ExplainAlter
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
    | Conditional
)

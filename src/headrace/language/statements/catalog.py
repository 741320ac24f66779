"""Statements about what is defined: how it was, what is said of it, and whether it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headrace.algebra.tunings.tunings import TuningKind
from headrace.errors import Position
from headrace.language.syntax import Name
from headrace.scheduling.priority import Priority
from headrace.time import Duration


class Option(Enum):
    """What can be said of how runs go on, between two epochs; as arguments of `connect` as well."""

    EPOCH_ROWS = "epoch_rows"
    """About how many rows an epoch takes."""
    EPOCH_BYTES = "epoch_bytes"
    """About how many bytes of rows an epoch takes."""
    RETAIN_EPOCHS = "retain_epochs"
    """Of how many of the last epochs results are kept."""
    MAX_DEAD_LETTERS = "max_dead_letters"
    """How many rows may be dead letters."""
    REOPTIMIZE_EVERY = "reoptimize_every"
    """How often plans are looked at that others may be better than (seconds)."""
    EPOCH_TIMEOUT = "epoch_timeout"
    """So long an operator of a query may work in an epoch (seconds)."""
    MEMORY_LIMIT = "memory_limit"
    """The bytes of state that there may be."""
    PROCESSING_LIMIT = "processing_limit"
    """The processor time that queries may need (cores)."""
    MANAGER = "manager"
    """The deed that follows from that: `advise`, `act` or `off`."""
    LATENCY_BOUND = "latency_bound"
    """For how long rows may wait that have come (microseconds)."""
    SHEDDER = "shedder"
    """The deed that follows from that: `advise`, `act` or `off`."""
    SCHEDULING = "scheduling"
    """The policy by which queries that are behind take turns."""


class CatalogKind(Enum):
    """What a name can be that something is defined as."""

    STREAM = "STREAM"
    """Read from outside, or derived by a query."""
    RELATION = "RELATION"
    QUERY = "QUERY"
    SINK = "SINK"
    """Where the changes of a query go."""

    @property
    def word(self) -> str:
        """What messages call it."""
        return self.value.lower()


@dataclass(frozen=True)
class ShowCreate:
    """`SHOW CREATE {STREAM | RELATION | QUERY | SINK} name`: the statement that defines it again.

    Attributes:
        kind: what it is.
        name: its name.
        position: where the statement starts.
    """

    kind: CatalogKind
    name: Name
    position: Position


@dataclass(frozen=True)
class Describe:
    """`DESCRIBE [STREAM | RELATION | QUERY | SINK] name`: its columns, and what is said of it.

    Attributes:
        kind: what it is, or None where the name says it.
        name: its name.
        position: where the statement starts.
    """

    kind: CatalogKind | None
    name: Name
    position: Position


@dataclass(frozen=True)
class Comment:
    """`COMMENT ON {STREAM | RELATION | QUERY | SINK} name IS 'text'`, or of a column: `COLUMN name.column`.

    Attributes:
        kind: what it is; None with a column, which a stream, a relation or a query may have.
        name: its name.
        column: the column that is meant, or None.
        text: what is said of it; None takes back what was.
        position: where the statement starts.
    """

    kind: CatalogKind | None
    name: Name
    column: Name | None
    text: str | None
    position: Position


@dataclass(frozen=True)
class PauseQuery:
    """`ALTER QUERY name PAUSE [KEEPING INPUT]`: the query is not answered until it is resumed.

    Attributes:
        query: its name.
        position: where the statement starts.
        keeps_input: whether the rows of its streams are kept meanwhile, so that it lacks none of them then.
    """

    query: Name
    position: Position
    keeps_input: bool = False


@dataclass(frozen=True)
class RenameQuery:
    """`ALTER QUERY name RENAME TO other`: the query has another name from then on, and goes on.

    Attributes:
        query: its name.
        to: the other one.
        position: where the statement starts.
    """

    query: Name
    to: Name
    position: Position


@dataclass(frozen=True)
class ResumeQuery:
    """`ALTER QUERY name RESUME`: a query that was paused is answered again, over the rows from now on.

    Where its input was kept, it is answered over the rows of the pause first.

    Attributes:
        query: its name.
        position: where the statement starts.
    """

    query: Name
    position: Position


@dataclass(frozen=True)
class SetWindow:
    """`ALTER QUERY name SET (WINDOW [OF stream] size)`: windows within bounds get another size.

    Also `SET (WINDOW [OF stream] n ROWS)` and `SET (GRANULARITY [OF stream] granule)`.

    Attributes:
        query: the query's name.
        stream: the stream whose windows they are; None for all of the query whose size may change.
        kind: whether they are windows of time or of rows, or granules.
        size: what they are for rows from now on; of windows of rows the length is their number.
        position: where the statement starts.
        place: where the size is written.
    """

    query: Name
    stream: Name | None
    kind: TuningKind
    size: Duration
    position: Position
    place: Position


@dataclass(frozen=True)
class SetKeep:
    """`ALTER QUERY name SET (KEEP 0.3)`: of the rows from now on this share is kept.

    Or `ALTER QUERY name SET (KEEP UTILITY 0.3)`: those whose values are worth as much, or more.

    Attributes:
        query: the query's name.
        share: the share, or the least utility (millionths).
        position: where the statement starts.
        is_utility: whether it is the least utility.
    """

    query: Name
    share: int
    position: Position
    is_utility: bool = False


@dataclass(frozen=True)
class SetPriority:
    """`ALTER QUERY name SET (WEIGHT 2)`, `SET (LATENCY 1 SECOND)` or `SET (QOS (DELAY ...))`.

    With DEFAULT in the place of a value nothing is said of that any more.

    Attributes:
        query: the query's name.
        part: what of its priority: `weight`, `bound` or `delay`.
        said: a priority with that, and nothing else.
        position: where the statement starts.
    """

    query: Name
    part: str
    said: Priority
    position: Position


@dataclass(frozen=True)
class SetOption:
    """`SET epoch_rows = 1000`, or `SET epoch_rows = DEFAULT`: how runs go on from the next epoch on.

    Attributes:
        option: what is said.
        value: the number, or a word; None for what holds if nothing is said.
        position: where the statement starts.
    """

    option: Option
    value: float | str | None
    position: Position

"""The syntax tree of queries: what a text says, before any name is looked up.

Scalar expressions inside it are sqlglot's trees; everything around them is the closed union below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from sqlglot import exp

from headrace.algebra.kinds import Filling, JoinKind, SetKind
from headrace.errors import Position
from headrace.time import Duration

Scalar: TypeAlias = exp.Expression
"""A scalar expression as sqlglot parsed it; `dialect.position_of` says where it is."""


@dataclass(frozen=True)
class Name:
    """An identifier, without its quotes."""

    text: str
    position: Position


@dataclass(frozen=True)
class ColumnName:
    """`column` or `table.column` where no other expression is allowed."""

    table: Name | None
    name: Name


@dataclass(frozen=True)
class RangeWindowFrame:
    """`RANGE size [SLIDE slide]`, or `RANGE MIN smallest, MAX size [SLIDE slide]`."""

    size: Duration
    slide: Duration | None
    smallest: Duration | None = None


@dataclass(frozen=True)
class RowsWindowFrame:
    """`ROWS rows [SLIDE slide]`, or `ROWS MIN smallest, MAX rows`."""

    rows: int
    slide: int
    smallest: int | None = None


@dataclass(frozen=True)
class NowFrame:
    """`NOW`: the rows of the instant itself."""


@dataclass(frozen=True)
class SpanFrame:
    """PSoup's `BEGIN (NOW - before) END (NOW)`, both ends included."""

    before: Duration


@dataclass(frozen=True)
class LifetimeFrame:
    """`LIFETIME (start, duration)`.

    Attributes:
        column: the column whose instant the start is; the instant of the row itself if None (`VALID_FROM`).
        granule: that of `FLOOR(column TO granule)`, or None.
        shift: what is added to it, or None; `earlier` if it is taken away.
        earlier: whether the shift is taken away.
        duration: a length, or a number of units that is computed of each row.
        unit: the length of one of them.
    """

    column: ColumnName | None
    granule: Duration | None
    shift: Duration | None
    earlier: bool
    duration: Duration | Scalar
    unit: Duration


WindowFrame: TypeAlias = RangeWindowFrame | RowsWindowFrame | NowFrame | SpanFrame | LifetimeFrame
"""What a window is made of."""


@dataclass(frozen=True)
class WindowClause:
    """`WINDOW([PARTITION BY columns] frame [WHERE condition])` or its form in brackets.

    `frame` is None where no frame is written; the condition holds for the rows that the window is made of
    (CQL). `SAMPLE(percent)` and `GRANULARITY(granule)` follow it or come alone, the latter also as
    `GRANULARITY(COARSEST coarsest, FINEST granule)`.
    """

    frame: WindowFrame | None
    partition: tuple[ColumnName, ...]
    condition: Scalar | None
    position: Position
    sample: Decimal | None = None
    granule: Duration | None = None
    coarsest: Duration | None = None


@dataclass(frozen=True)
class StarItem:
    """`*`, or `table.*`, in a SELECT list.

    Attributes:
        table: the one before the dot, or None.
        position: where it starts.
        without: the columns of `* EXCEPT (a, b)`.
        replaced: those of `* REPLACE (x AS a)`, with what is in their place.
    """

    table: Name | None
    position: Position
    without: tuple[Name, ...] = ()
    replaced: tuple[tuple[Name, Scalar], ...] = ()


@dataclass(frozen=True)
class ScalarItem:
    """`expression [AS alias]` in a SELECT list."""

    expression: Scalar
    alias: Name | None
    position: Position


SelectItem = StarItem | ScalarItem


@dataclass(frozen=True)
class AsOf:
    """`FOR SYSTEM_TIME AS OF column`: the rows of a relation that hold with the row before JOIN."""

    column: ColumnName
    position: Position


@dataclass(frozen=True)
class NamedTable:
    """`name [FOR SYSTEM_TIME AS OF column] [alias [(columns)]] [window]` in FROM."""

    name: Name
    alias: Name | None
    window: WindowClause | None
    as_of: AsOf | None = None
    columns: tuple[Name, ...] = ()


@dataclass(frozen=True)
class DerivedTable:
    """`(query) [alias [(columns)]] [window]` in FROM."""

    query: QuerySyntax
    alias: Name | None
    window: WindowClause | None
    position: Position
    columns: tuple[Name, ...] = ()


@dataclass(frozen=True)
class JoinedTable:
    """`left [kind] JOIN right ON condition`, `... USING (columns)`, or `left CROSS JOIN right`.

    Attributes:
        kind: which rows of both it keeps.
        left, right: what it joins.
        condition: that of ON, or None.
        using: the columns of USING.
        position: where the join's words start.
        natural: whether it uses all columns that both have.
        as_of: whether it is an ASOF JOIN, of each row on the left with the latest one by then.
    """

    kind: JoinKind
    left: FromItem
    right: FromItem
    condition: Scalar | None
    using: tuple[Name, ...]
    position: Position
    natural: bool = False
    as_of: bool = False


@dataclass(frozen=True)
class WindowFunction:
    """`TUMBLE(TABLE data, DESCRIPTOR(time), size)` and its like.

    Attributes:
        function: its name, in upper case.
        data: the table whose rows fall into windows.
        time: the column that the descriptor names, or None where it is left out.
        keys: the columns that a SESSION or the series of GAP_FILL are partitioned by.
        durations: the other arguments by name, in upper case, with their places.
        position: where the function starts.
        grouped: whether it is written in GROUP BY, over the timestamp alone.
        filling: what GAP_FILL fills gaps with, and where that is written; None where nothing is.
    """

    function: str
    data: FromItem
    time: Name | None
    keys: tuple[Name, ...]
    durations: Mapping[str, tuple[Duration, Position]]
    position: Position
    grouped: bool = False
    filling: tuple[Filling, Position] | None = None


@dataclass(frozen=True)
class WindowedTable:
    """`TUMBLE(...) [alias [(columns)]] [window]` in FROM."""

    function: WindowFunction
    alias: Name | None
    window: WindowClause | None
    columns: tuple[Name, ...] = ()


@dataclass(frozen=True)
class UnnestedTable:
    """`left, UNNEST(values) [WITH ORDINALITY] [alias [(columns)]]`, or LATERAL VIEW EXPLODE.

    Attributes:
        left: the table of whose rows the values are computed.
        values: an ARRAY or a MAP.
        alias: what the values are called as a table.
        columns: what their columns are called; empty for names of ours.
        ordinality: whether there is a last column with the place of each value, from 1.
        outer: whether a row without values is kept (LEFT JOIN, or OUTER).
        position: where UNNEST or EXPLODE starts.
    """

    left: FromItem
    values: Scalar
    alias: Name | None
    columns: tuple[Name, ...]
    ordinality: bool
    outer: bool
    position: Position


@dataclass(frozen=True)
class PairsTable:
    """`CORRELATED PAIRS OF data OVER (RANGE size SLIDE slide ALIGN step) ABOVE above OR BELOW below` in FROM.

    Attributes:
        data: the query of the series.
        over: their window, a RANGE.
        step: the distance of the instants at which they are compared, with its place; None for the slide.
        above, below: the thresholds; one of them may be None.
        lag: the length of `LAG UP TO length` with its place, or None.
        fewest: the number of `AT LEAST number VALUES` with its place, or None.
        alias, window, columns: what follows.
        position: where it starts.
    """

    data: DerivedTable
    over: WindowClause
    step: tuple[Duration, Position] | None
    above: float | None
    below: float | None
    lag: tuple[Duration, Position] | None
    fewest: tuple[int, Position] | None
    alias: Name | None
    window: WindowClause | None
    columns: tuple[Name, ...]
    position: Position


FromItem = NamedTable | DerivedTable | JoinedTable | WindowedTable | UnnestedTable | PairsTable


@dataclass(frozen=True)
class SelectQuery:
    """One SELECT.

    Attributes:
        tables: the items of FROM that commas separate.
        emit: where EMIT EMPTY is.
        windows: those of the WINDOW clause, by name in lower case.
        distinct_on: the keys of DISTINCT ON, as long as the ORDER BY after the SELECT is not read.
    """

    items: tuple[SelectItem, ...]
    distinct: bool
    tables: tuple[FromItem, ...]
    where: Scalar | None
    group_by: tuple[Scalar, ...]
    having: Scalar | None
    emit: Position | None
    position: Position
    windows: tuple[tuple[str, Scalar], ...] = ()
    distinct_on: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class SortItem:
    """`expression [ASC | DESC] [NULLS FIRST | NULLS LAST]` in ORDER BY."""

    expression: Scalar
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class TopQuery:
    """`query [ORDER BY order] [LIMIT limit [WITH TIES]] [OFFSET offset]`, also with FETCH.

    Attributes:
        with_ties: whether rows that are equal to the last one in what they are sorted by are left as well.
        position: where these clauses start.
    """

    query: QuerySyntax
    order: tuple[SortItem, ...]
    limit: int | None
    offset: int
    position: Position
    with_ties: bool = False


@dataclass(frozen=True)
class UnionQuery:
    """`query UNION ALL query ...`."""

    queries: tuple[QuerySyntax, ...]
    position: Position


@dataclass(frozen=True)
class SetQuery:
    """`query EXCEPT query` and its like; all set operations but UNION ALL."""

    kind: SetKind
    left: QuerySyntax
    right: QuerySyntax
    position: Position


@dataclass(frozen=True)
class StreamQuery:
    """`ISTREAM(query)`, `DSTREAM(query)` or `RSTREAM(query)`; `operator` is the word in upper case."""

    operator: str
    query: QuerySyntax
    position: Position


@dataclass(frozen=True)
class TableQuery:
    """A stream's name where a query is expected, as in `ISTREAM(Person)`."""

    table: NamedTable


@dataclass(frozen=True)
class WithQuery:
    """`WITH name [(columns)] AS (query), ... query`; each name is known to the queries after it."""

    definitions: tuple[tuple[Name, QuerySyntax], ...]
    query: QuerySyntax


QuerySyntax = SelectQuery | TopQuery | UnionQuery | SetQuery | StreamQuery | TableQuery | WithQuery

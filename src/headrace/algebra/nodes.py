"""The logical plan: frozen nodes of a closed union, each of which refuses a malformed tree.

A node denotes a stream, that is, a multiset of payloads at every instant (its content). The docstrings give
each node's definition on contents: `M(t)` is the input's content at instant t.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Final, assert_never

import pyarrow as pa

from headrace.algebra.checks import require_boolean, require_columns
from headrace.algebra.failure import can_fail
from headrace.algebra.joins import AnyJoin as AnyJoin
from headrace.algebra.joins import Join as Join
from headrace.algebra.joins import OuterJoin as OuterJoin
from headrace.algebra.joins import SemiJoin as SemiJoin
from headrace.algebra.kinds import JoinKind, SetKind
from headrace.algebra.top_k import TopK as TopK
from headrace.errors import PlanError
from headrace.expressions.tree import AggregateCall, Column, Expression, expressions_of
from headrace.schema import BIGINT, TIMESTAMP, Field, Schema, unique_names
from headrace.time import INFINITY, Duration, TimeDomain

EVERY_INSTANT: Final = Duration(1)
"""The slide of a window that moves at every instant."""

NO_OFFSET: Final = Duration(0)
"""The offset of windows that start at multiples of their slide."""
MAX_ROWS: Final = 1_000_000_000
"""The most rows a window may hold, or slide by."""


@dataclass(frozen=True)
class Source:
    """A stream that comes from outside; its elements are chronons `[t, t+1)`.

    Attributes:
        name: the stream's name in the catalog.
        schema: the columns that are read (a part of the stream's columns, or all).
        timestamp: the name of the column the stream is timed by; it need not be among those read.
        domain: what the stream's instants count.
    """

    name: str
    schema: Schema
    timestamp: str
    domain: TimeDomain


@dataclass(frozen=True)
class Filter:
    """`M(t)` without the payloads for which the predicate is not true."""

    input: Plan
    predicate: Expression

    def __post_init__(self) -> None:
        require_boolean(self.predicate, "a filter's predicate")
        require_columns(self.predicate, len(self.input.schema))

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema


@dataclass(frozen=True)
class Project:
    """`M(t)` with every payload mapped; multiplicities of equal results add up (PIPES' map)."""

    input: Plan
    items: tuple[tuple[str, Expression], ...]

    def __post_init__(self) -> None:
        for _, expression in self.items:
            require_columns(expression, len(self.input.schema))
        _ = self.schema

    @cached_property
    def schema(self) -> Schema:
        """One column per item."""
        return Schema(tuple(Field(name, expression.type) for name, expression in self.items))


@dataclass(frozen=True)
class TimeWindow:
    """At t, the sum of `M(u)` for the `size` instants u up to t; with a slide, up to the last slide.

    With slide a > 1 the content at t is that of the instants `[k*a - size, k*a - 1]` for
    `k = floor((t + 1) / a)` (thesis, equation 17.1). Size INFINITY is the unbounded window.
    """

    input: Plan
    size: Duration
    slide: Duration = EVERY_INSTANT

    def __post_init__(self) -> None:
        if self.size.length < 1 or self.slide.length < 1:
            raise PlanError("a window's RANGE and SLIDE must be at least 1", hint="write NOW for one instant")
        if self.slide.length == INFINITY:
            raise PlanError("a window cannot slide by UNBOUNDED")
        _require_chronon(self.input, "a time window")

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema


@dataclass(frozen=True)
class RowWindow:
    """At t, the last `rows` rows up to t of each partition; with a slide, up to its last full one.

    The rows of a partition are numbered from 1 in the order of their instants; rows of one instant are
    ordered column by column, NULL first and NaN last, and a row of multiplicity n has n numbers. With N rows
    up to t and slide m the content is that of the numbers `[k*m - rows + 1, k*m]` for `k = floor(N / m)`
    (thesis, equation 8.18 and section 17.1.2, which leave ties out). Partitions are the groups that the keys
    make, as in `Aggregate`; without keys there is one.
    """

    input: Plan
    rows: int
    slide: int = 1
    keys: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        if not (1 <= self.rows <= MAX_ROWS and 1 <= self.slide <= MAX_ROWS):
            raise PlanError(f"a window's ROWS and SLIDE must lie between 1 and {MAX_ROWS}")
        for key in self.keys:
            require_columns(key, len(self.input.schema))
        _require_chronon(self.input, "a row window")

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema


@dataclass(frozen=True)
class HopWindow:
    """Every row once per window it falls into, with the window's start and end as two columns more.

    The windows are the intervals `[s, s + size)` for all s that are the offset plus a multiple of the slide;
    with `size = slide` they tumble. At t the content is that of the latest window whose last instant is not
    after t: a row is valid from its window's last instant on for one slide.
    """

    input: Plan
    size: Duration
    slide: Duration
    offset: Duration = NO_OFFSET

    def __post_init__(self) -> None:
        if self.size.length < 1 or self.slide.length < 1:
            raise PlanError("a window's size and slide must be at least 1", hint="write longer ones")
        if INFINITY in (self.size.length, self.slide.length, self.offset.length):
            raise PlanError("a window with a start and an end cannot be UNBOUNDED")
        _require_chronon(self.input, "a time window")

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then `window_start` and `window_end`, of the timestamp's type."""
        return _with_window(self.input)


@dataclass(frozen=True)
class SessionWindow:
    """Every row with the start and the end of its session as two columns more.

    The rows of a key are cut into sessions where `gap` or more lies between one and the next; a session is
    the interval `[start, end)` from its first row's instant to `gap` after its last row's. A row is valid
    from its session's last instant on for `gap`, that is, for as long as no two sessions of a key can meet.
    """

    input: Plan
    gap: Duration
    keys: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.gap.length < INFINITY:
            raise PlanError("a session's gap must be at least 1, and not UNBOUNDED")
        for key in self.keys:
            require_columns(key, len(self.input.schema))
        _require_chronon(self.input, "a session window")

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then `window_start` and `window_end`, of the timestamp's type."""
        return _with_window(self.input)


@dataclass(frozen=True)
class Sample:
    """The payloads of `M(t)` whose hash is among the first `percent` of a hundred (CQL's SAMPLE).

    The hash is that of `headrace.operators.sample`: of all columns, and the same for ever. So equal payloads
    are in the sample together or not at all, and so is what retracts them.
    """

    input: Plan
    percent: Decimal

    def __post_init__(self) -> None:
        if not 0 < self.percent <= 100:
            raise PlanError("SAMPLE takes a percentage above 0 and up to 100")

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema


@dataclass(frozen=True)
class Granularity:
    """At t, `M(k*g)` for the granule g and the largest such instant up to t (thesis, chapter 20)."""

    input: Plan
    granule: Duration

    def __post_init__(self) -> None:
        if not 1 <= self.granule.length < INFINITY:
            raise PlanError("GRANULARITY takes a length of at least 1")

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema


@dataclass(frozen=True)
class Split:
    """`M(t)` itself, in elements of one instant each, so that a window can stand over it (thesis, 11.5)."""

    input: Plan

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema


@dataclass(frozen=True)
class OverRows:
    """Every row with aggregates over the rows of its partition that stand `first` to `last` places before it.

    Rows of a partition stand in the order of instant and payload, as in a row window. Over no rows a count
    is 0, an ARRAY empty and any other aggregate NULL. With `first` None all rows so far are counted: only
    COUNT(*) can.
    """

    input: Plan
    keys: tuple[Column, ...]
    first: int | None
    last: int
    aggregates: tuple[tuple[str, AggregateCall], ...]

    def __post_init__(self) -> None:
        if not 0 <= self.last <= (MAX_ROWS if self.first is None else self.first) <= MAX_ROWS:
            raise PlanError("a frame of rows starts no later than it ends, and not behind the current row")
        for key in self.keys:
            require_columns(key, len(self.input.schema))
        for _, call in self.aggregates:
            for part in expressions_of(call):
                require_columns(part, len(self.input.schema))
                if can_fail(part):
                    raise PlanError("an aggregate over rows reads what may fail")
            if self.first is None and (self.last, call.function, expressions_of(call)) != (0, "COUNT", ()):
                raise PlanError("only COUNT(*) goes over all rows so far", hint="write a number of rows")
        _require_chronon(self.input, "a row window")

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then the aggregates."""
        added = (Field(name, call.type) for name, call in self.aggregates)
        return Schema((*self.input.schema, *added))


@dataclass(frozen=True)
class Union:
    """The sum of the inputs' contents (UNION ALL)."""

    inputs: tuple[Plan, ...]

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise PlanError("a union needs two inputs")
        _require_same_types("a union", self.inputs)

    @cached_property
    def schema(self) -> Schema:
        """The first input's schema."""
        return self.inputs[0].schema


@dataclass(frozen=True)
class SetOperation:
    """Every payload of `L(t)` or `R(t)` as often as the kind makes of its multiplicities in both.

    Payloads are compared by grouping equality: NULL equals NULL. UNION ALL is `Union`.
    """

    kind: SetKind
    left: Plan
    right: Plan

    def __post_init__(self) -> None:
        _require_same_types(self.kind.value, (self.left, self.right))

    @cached_property
    def schema(self) -> Schema:
        """The left input's schema."""
        return self.left.schema


@dataclass(frozen=True)
class Aggregate:
    """One row per group of `M(t)`: the keys, then the aggregates. No rows, no group, and so no result.

    Grouping takes NULL as equal to NULL, NaN to NaN and -0 to 0. Without keys this is PIPES' scalar
    aggregation: an empty content has no result row; with `emit_empty` it has SQL's row, counts of 0 and
    NULLs, from the first instant on at which there was something to aggregate.
    """

    input: Plan
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]
    emit_empty: bool = False

    def __post_init__(self) -> None:
        if self.emit_empty and self.keys:
            raise PlanError("an empty content has no groups to emit")
        width = len(self.input.schema)
        for _, key in self.keys:
            require_columns(key, width)
        for _, call in self.aggregates:
            for part in expressions_of(call):
                require_columns(part, width)
            if call.condition is not None:
                require_boolean(call.condition, "the condition of FILTER")
        _ = self.schema

    @cached_property
    def schema(self) -> Schema:
        """The keys, then the aggregates."""
        keys = [Field(name, key.type) for name, key in self.keys]
        return Schema((*keys, *(Field(name, call.type) for name, call in self.aggregates)))


@dataclass(frozen=True)
class Distinct:
    """Every payload of `M(t)` once."""

    input: Plan

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema


@dataclass(frozen=True)
class Istream:
    """At t, what `M(t)` has more than `M(t-1)`: the insertions, as chronons (CQL)."""

    input: Plan

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema


@dataclass(frozen=True)
class Dstream:
    """At t, what `M(t-1)` has more than `M(t)`: the deletions, as chronons (CQL)."""

    input: Plan

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema


@dataclass(frozen=True)
class Rstream:
    """`M(t)` itself: only the `stream` view of a result tells it from its input."""

    input: Plan

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema


Plan = (
    Source
    | Filter
    | Project
    | TimeWindow
    | HopWindow
    | RowWindow
    | SessionWindow
    | Sample
    | Granularity
    | Split
    | OverRows
    | Union
    | SetOperation
    | Join
    | OuterJoin
    | SemiJoin
    | Aggregate
    | TopK
    | Distinct
    | Istream
    | Dstream
    | Rstream
)


def inputs_of(plan: Plan) -> tuple[Plan, ...]:
    """The direct inputs, left to right."""
    match plan:
        case Source():
            return ()
        case Union(inputs=inputs):
            return inputs
        case Join() | OuterJoin() | SemiJoin() | SetOperation():
            return (plan.left, plan.right)
        case (
            Filter(input=below)
            | Project(input=below)
            | TimeWindow(input=below)
            | HopWindow(input=below)
            | RowWindow(input=below)
            | SessionWindow(input=below)
            | Sample(input=below)
            | Granularity(input=below)
            | Split(input=below)
            | OverRows(input=below)
            | Aggregate(input=below)
            | TopK(input=below)
            | Distinct(input=below)
            | Istream(input=below)
            | Dstream(input=below)
            | Rstream(input=below)
        ):
            return (below,)
        case _:
            assert_never(plan)


def with_inputs(plan: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """The same node over other inputs; the same object where nothing changed."""
    if all(new is old for new, old in zip(inputs, inputs_of(plan), strict=True)):
        return plan
    match plan:
        case Source():
            return plan
        case Union():
            return replace(plan, inputs=inputs)
        case Join() | OuterJoin() | SemiJoin() | SetOperation():
            return replace(plan, left=inputs[0], right=inputs[1])
        case _:
            return replace(plan, input=inputs[0])


def is_chronon(plan: Plan) -> bool:
    """Whether all elements of the plan's stream are valid for one instant (thesis, table 12.1)."""
    match plan:
        case Source() | Istream() | Dstream():
            return True
        case Aggregate(emit_empty=True):
            return False
        case TimeWindow(size=size, slide=slide):
            return size.length == 1 and slide.length == 1
        case HopWindow(slide=slide):
            return slide.length == 1
        case RowWindow():
            return False
        case Split():
            return True
        case Granularity(input=below, granule=granule):
            return granule.length == 1 and is_chronon(below)
        case Join() | OuterJoin() | SemiJoin() | SetOperation():
            return kind_of(plan).is_brief(is_chronon(plan.left), is_chronon(plan.right))
        case SessionWindow(gap=gap):
            return gap.length == 1
        case _:
            return all(is_chronon(below) for below in inputs_of(plan))


def kind_of(plan: AnyJoin | SetOperation) -> JoinKind | SetKind:
    """Which rows of its inputs a node of two inputs keeps."""
    match plan:
        case Join():
            return JoinKind.INNER
        case OuterJoin() | SetOperation():
            return plan.kind
        case SemiJoin(anti=anti):
            return JoinKind.ANTI if anti else JoinKind.SEMI
        case _:
            assert_never(plan)


def column(plan: Plan, index: int) -> Column:
    """A reference to a column of the plan's result."""
    return Column(index, plan.schema[index].name, plan.schema[index].type)


def instant_type(plan: Plan) -> pa.DataType:
    """The type of a column that holds instants of the plan: TIMESTAMP, or BIGINT for integer timestamps."""
    while not isinstance(plan, Source):
        plan = inputs_of(plan)[0]
    return TIMESTAMP if plan.domain is TimeDomain.TIMESTAMP else BIGINT


def _with_window(plan: Plan) -> Schema:
    names = unique_names([*plan.schema.names, "window_start", "window_end"])
    types = [*(field.type for field in plan.schema), *[instant_type(plan)] * 2]
    return Schema(tuple(map(Field, names, types)))


def _require_chronon(plan: Plan, what: str) -> None:
    if not is_chronon(plan):
        raise PlanError(
            f"{what} stands over elements that are valid for longer than one instant",
            hint="put the window on the source stream in FROM, or wrap the subquery in ISTREAM(...)",
        )


def _require_same_types(what: str, inputs: tuple[Plan, ...]) -> None:
    first = [field.type for field in inputs[0].schema]
    for other in inputs[1:]:
        if [field.type for field in other.schema] != first:
            raise PlanError(f"{what} of {inputs[0].schema} and {other.schema}")

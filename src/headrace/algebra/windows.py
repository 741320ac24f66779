"""The windows among the plan nodes; `headrace.algebra.nodes` says what a node is.

A window stands over a stream of chronons: elements that are valid for one instant each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from headrace.algebra.arity import Unary
from headrace.algebra.checks import require_columns
from headrace.algebra.failure import can_fail
from headrace.errors import PlanError
from headrace.expressions.tree import AggregateCall, Column, expressions_of
from headrace.schema import BIGINT, TIMESTAMP, Field, Schema, unique_names
from headrace.time import INFINITY, Duration, TimeDomain

if TYPE_CHECKING:
    from headrace.algebra.nodes import Plan  # The union of all nodes, these among them.

EVERY_INSTANT: Final = Duration(1)
"""The slide of a window that moves at every instant."""

NO_OFFSET: Final = Duration(0)
"""The offset of windows that start at multiples of their slide."""

MAX_ROWS: Final = 1_000_000_000
"""The most rows a window may hold, or slide by."""


@dataclass(frozen=True)
class TimeWindow(Unary):
    """At t, the sum of `M(u)` for the `size` instants u up to t; with a slide, up to the last slide.

    With slide a > 1 the content at t is that of the instants `[k*a - size, k*a - 1]` for
    `k = floor((t + 1) / a)` (thesis, equation 17.1). Size INFINITY is the unbounded window.
    """

    size: Duration
    slide: Duration = EVERY_INSTANT

    def __post_init__(self) -> None:
        if self.size.length < 1 or self.slide.length < 1:
            raise PlanError("a window's RANGE and SLIDE must be at least 1", hint="write NOW for one instant")
        if self.slide.length == INFINITY:
            raise PlanError("a window cannot slide by UNBOUNDED")
        _require_chronon(self.input, "a time window")

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: in a now-window."""
        return self.size.length == 1 and self.slide.length == 1


@dataclass(frozen=True)
class HopWindow(Unary):
    """Every row once per window it falls into, with the window's start and end as two columns more.

    The windows are the intervals `[s, s + size)` for all s that are the offset plus a multiple of the slide;
    with `size = slide` they tumble. At t the content is that of the latest window whose last instant is not
    after t: a row is valid from its window's last instant on for one slide.
    """

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
        return _with_bounds(self.input)

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: where a window ends at every instant."""
        return self.slide.length == 1


@dataclass(frozen=True)
class RowWindow(Unary):
    """At t, the last `rows` rows up to t of each partition; with a slide, up to its last full one.

    The rows of a partition are numbered from 1 in the order of their instants; rows of one instant are
    ordered column by column, NULL first and NaN last, and a row of multiplicity n has n numbers. With N rows
    up to t and slide m the content is that of the numbers `[k*m - rows + 1, k*m]` for `k = floor(N / m)`
    (thesis, equation 8.18 and section 17.1.2, which leave ties out). Partitions are the groups that the keys
    make, as in `Aggregate`; without keys there is one.
    """

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
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: a row stays until others come."""
        return False


@dataclass(frozen=True)
class SessionWindow(Unary):
    """Every row with the start and the end of its session as two columns more.

    The rows of a key are cut into sessions where `gap` or more lies between one and the next; a session is
    the interval `[start, end)` from its first row's instant to `gap` after its last row's. A row is valid
    from its session's last instant on for `gap`, that is, for as long as no two sessions of a key can meet.
    """

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
        return _with_bounds(self.input)

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: with the shortest gap."""
        return self.gap.length == 1


@dataclass(frozen=True)
class OverRows(Unary):
    """Every row with aggregates over the rows of its partition that stand `first` to `last` places before it.

    Rows of a partition stand in the order of instant and payload, as in a row window. Over no rows a count
    is 0, an ARRAY empty and any other aggregate NULL. With `first` None the frame starts with the first
    row that ever was in the partition; with `peers` it then ends with the last row of the row's instant
    (SQL's RANGE UNBOUNDED PRECEDING).
    """

    keys: tuple[Column, ...]
    first: int | None
    last: int
    aggregates: tuple[tuple[str, AggregateCall], ...]
    peers: bool = False

    def __post_init__(self) -> None:
        if self.peers and (self.first, self.last) != (None, 0):
            raise PlanError("a frame that ends with an instant starts with the first row")
        if not 0 <= self.last <= (MAX_ROWS if self.first is None else self.first) <= MAX_ROWS:
            raise PlanError("a frame of rows starts no later than it ends, and not behind the current row")
        for key in self.keys:
            require_columns(key, len(self.input.schema))
        for _, call in self.aggregates:
            for part in expressions_of(call):
                require_columns(part, len(self.input.schema))
                if can_fail(part):
                    raise PlanError("an aggregate over rows reads what may fail")
        _require_chronon(self.input, "a row window")

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then the aggregates."""
        added = (Field(name, call.type) for name, call in self.aggregates)
        return Schema((*self.input.schema, *added))


def instant_type(plan: Plan) -> pa.DataType:
    """The type of a column that holds instants of the plan: TIMESTAMP, or BIGINT for integer timestamps."""
    return TIMESTAMP if plan.domain is TimeDomain.TIMESTAMP else BIGINT


def _with_bounds(plan: Plan) -> Schema:
    names = unique_names([*plan.schema.names, "window_start", "window_end"])
    types = [*(field.type for field in plan.schema), *[instant_type(plan)] * 2]
    return Schema(tuple(map(Field, names, types)))


def _require_chronon(plan: Plan, what: str) -> None:
    if not plan.is_chronon:
        raise PlanError(
            f"{what} stands over elements that are valid for longer than one instant",
            hint="put the window on the source stream in FROM, or wrap the subquery in ISTREAM(...)",
        )

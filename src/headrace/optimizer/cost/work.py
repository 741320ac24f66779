"""What a node does in a time, in the units that seconds are counted by.

The thesis gives each operator processor costs per element (section 22.5) in units that nobody has measured.
Here an operator's work is of one or more kinds, each with constants of its own: for every row that it takes,
yields, and has kept from one epoch to the next, and for every epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never

import pyarrow as pa

from headrace.algebra.nodes import (
    Aggregate,
    ApproximateAggregate,
    BloomFilter,
    Clip,
    Coalesce,
    Distinct,
    Draw,
    Dstream,
    Early,
    Filter,
    Finalize,
    GapFill,
    Granularity,
    Istream,
    Join,
    LargestWeight,
    Lifetime,
    Match,
    NestedAggregate,
    OuterJoin,
    Over,
    Plan,
    Project,
    Relation,
    Remember,
    RowWindow,
    Rstream,
    Sample,
    SemanticDrop,
    SemiJoin,
    SessionAggregate,
    SessionWindow,
    SetOperation,
    Shed,
    Source,
    Split,
    TimeWindow,
    TopK,
    Union,
    Unnest,
    WindowBounds,
)
from headrace.algebra.properties import is_insert_only, is_stateful
from headrace.expressions.aggregates.aggregates import effective_argument, masked
from headrace.expressions.aggregates.functions import KeptValues, function_of
from headrace.expressions.aggregates.ordering import Ordering
from headrace.expressions.tree import AggregateCall, Call, Column, Expression, Literal, Literals, children
from headrace.schema import Schema

EPOCH_ROWS: Final = 500_000
"""So many rows are taken to be read in an epoch."""

_PATTERNS: Final = frozenset({"LIKE", "REGEXP_LIKE", "REGEXP_EXTRACT", "SPLIT_PART"})


class WorkKind(Enum):
    """Work that has constants of its own."""

    READ = "read a value"
    READ_TEXT = "read a text"
    PASS = "pass a row on"
    COMPUTE = "compute a value"
    COMPUTE_TEXT = "compute with texts"
    PATTERN = "look for a pattern"
    CARRY_TEXT = "carry a text"
    CUT = "cut by windows"
    EXCHANGE = "send to another task"
    REDUCE = "add up and send"
    STORE = "load and store state"
    JOIN = "join"
    SUMS = "aggregate"
    DISTINCT_VALUES = "aggregate distinct values"
    ENDS = "aggregate first and last values"
    VALUES = "aggregate all values"
    ROWS = "compare whole rows"
    TOP = "rank"
    OVER = "frames of OVER"
    LAST_ROWS = "windows over rows"
    SESSIONS = "sessions"


@dataclass(frozen=True)
class Work:
    """Some work of one kind.

    Attributes:
        kind: which.
        taken: rows that are taken.
        given: rows that are yielded.
        kept: rows that are kept from one epoch to the next, added up over epochs.
        epochs: how many epochs there are.
    """

    kind: WorkKind
    taken: float
    given: float = 0.0
    kept: float = 0.0
    epochs: float = 0.0


@dataclass(frozen=True)
class NodeCounts:
    """What a node takes, yields and keeps, as measured or expected.

    Attributes:
        taken: rows of all inputs, before any are added up on the way.
        given: rows, corrections included.
        kept: rows of state between epochs, on average.
        epochs: how many epochs there are.
    """

    taken: float
    given: float
    kept: float
    epochs: float


def epochs_of(rows: float, epoch_rows: int = EPOCH_ROWS) -> float:
    """In how many epochs so many rows are read: with parts of one, as the input may go on."""
    return rows / epoch_rows


def reading(schema: Schema, counts: NodeCounts) -> tuple[Work, ...]:
    """Reading the rows of a stream."""
    texts = _texts_in(schema)
    values = len(schema.fields) - texts
    return (
        Work(WorkKind.READ, counts.given * values, epochs=counts.epochs),
        Work(WorkKind.READ_TEXT, counts.given * texts),
    )


def sending(schema: Schema, rows: float, is_reduced: bool, epochs: float) -> tuple[Work, ...]:
    """Sending rows of a schema to other tasks, perhaps added up before."""
    sent = Work(WorkKind.REDUCE if is_reduced else WorkKind.EXCHANGE, rows, epochs=epochs)
    return sent, Work(WorkKind.CARRY_TEXT, rows * _texts_in(schema))


def storing(counts: NodeCounts) -> Work:
    """Loading and storing the state of an operator."""
    return Work(WorkKind.STORE, counts.taken, kept=counts.kept * counts.epochs, epochs=counts.epochs)


def work_of(plan: Plan, counts: NodeCounts) -> tuple[Work, ...]:
    """What an operator does with its rows.

    Args:
        plan: the node; no source or relation, whose rows are read, and no outer or semi-join, which become
            other nodes before they run.
        counts: its rows.
    """
    match plan:
        case Filter(predicate=predicate):
            return _computing([predicate], counts)
        case Match(predicates=predicates):
            # Every attribute of the rows is looked up once, whatever the number of predicates.
            return _computing([predicate for _, predicate in predicates[:1]], counts)
        case Project(items=items):
            return _computing([expression for _, expression in items], counts)
        case Lifetime(duration=duration):
            return _computing([duration], counts)
        case Aggregate():
            return tuple(_aggregating(plan, counts))
        case NestedAggregate():
            return tuple(_aggregating(plan.widest, counts))
        case ApproximateAggregate():
            return tuple(_aggregating(plan.exact, counts))
        case SessionAggregate():
            return *_aggregating(plan.written_out, counts), _every(WorkKind.SESSIONS, counts)
        case _:
            texts = _texts_in(plan.schema) if is_stateful(plan) else 0
            return _every(_kind_of(plan), counts), Work(WorkKind.CARRY_TEXT, counts.given * texts)


def _kind_of(plan: Plan) -> WorkKind:
    """What an operator does that does one thing with all of its rows."""
    match plan:
        case TimeWindow() | Union() | Clip() | Rstream() | Remember() | Shed() | Draw() | SemanticDrop():
            return WorkKind.PASS
        case Early(corrects=False):
            return WorkKind.PASS
        case WindowBounds() | Granularity() | Split() | Unnest() | LargestWeight():
            return WorkKind.CUT
        case Join():
            return WorkKind.JOIN
        case (
            Distinct()
            | BloomFilter()
            | Coalesce()
            | Finalize()
            | Sample()
            | Istream()
            | Dstream()
            | SetOperation()
            | Early()
        ):
            return WorkKind.ROWS
        case TopK():
            return WorkKind.TOP
        case Over():
            return WorkKind.OVER
        case RowWindow() | GapFill():
            return WorkKind.LAST_ROWS
        case SessionWindow():
            return WorkKind.SESSIONS
        case (
            Filter()
            | Match()
            | Project()
            | Lifetime()
            | Aggregate()
            | NestedAggregate()
            | SessionAggregate()
            | ApproximateAggregate()
        ):
            raise AssertionError("these do several things")
        case Source() | Relation() | OuterJoin() | SemiJoin():
            raise AssertionError("sources are read, and semi- and outer joins are expanded before")
        case _:
            assert_never(plan)


def _every(kind: WorkKind, counts: NodeCounts) -> Work:
    return Work(kind, counts.taken, counts.given, counts.kept * counts.epochs, counts.epochs)


def _computing(expressions: Iterable[Expression], counts: NodeCounts) -> tuple[Work, ...]:
    calls = [part for expression in expressions for part in _computed(expression)]
    patterns = sum(isinstance(part, Call) and part.function in _PATTERNS for part in calls)
    texts = sum(map(_has_text, calls)) - patterns
    return (
        Work(WorkKind.PASS, counts.taken, counts.given, epochs=counts.epochs),
        Work(WorkKind.COMPUTE, counts.taken * (len(calls) - texts - patterns)),
        Work(WorkKind.COMPUTE_TEXT, counts.taken * texts),
        Work(WorkKind.PATTERN, counts.taken * patterns),
    )


def _aggregating(plan: Aggregate, counts: NodeCounts) -> Iterator[Work]:
    """The sums, and for each kind of values that are kept besides what it takes to keep them."""
    yield _every(WorkKind.SUMS, counts)
    calls = [call for _, call in plan.aggregates]
    for kind, number in (
        (WorkKind.DISTINCT_VALUES, len(distinct_inputs(calls))),
        (WorkKind.ENDS, sum(keeps_ends(plan, calls) for calls in by_order(calls).values())),
        (WorkKind.VALUES, sum(not keeps_ends(plan, calls) for calls in by_order(calls).values())),
    ):
        if number:
            yield Work(kind, counts.taken * number, counts.given * number, epochs=counts.epochs * number)


def distinct_inputs(calls: Iterable[AggregateCall]) -> dict[tuple[Expression, ...], AggregateCall]:
    """What timelines of distinct values are of, each with one of the aggregates that use it."""
    found: dict[tuple[Expression, ...], AggregateCall] = {}
    for call in calls:
        if call.distinct and function_of(call).kept.is_sum:
            argument = effective_argument(call)
            others = (masked(part, call.condition) for part in call.others)
            found.setdefault((*(() if argument is None else (argument,)), *others), call)
    return found


def by_order(calls: Iterable[AggregateCall]) -> dict[Ordering, list[AggregateCall]]:
    """The aggregates that choose from values, by how these are sorted."""
    found: dict[Ordering, list[AggregateCall]] = {}
    for call in calls:
        if not function_of(call).kept.is_sum:
            found.setdefault(Ordering.of(call), []).append(call)
    return found


def keeps_ends(plan: Aggregate, calls: Iterable[AggregateCall]) -> bool:
    """Whether aggregates of one order keep what can become the first or the last value alone."""
    return is_insert_only(plan.input) and all(function_of(call).kept is KeptValues.ENDS for call in calls)


def _computed(expression: Expression) -> Iterator[Expression]:
    """The parts of an expression that are computed."""
    if not isinstance(expression, Column | Literal | Literals):
        yield expression
    for part in children(expression):
        yield from _computed(part)


def _has_text(expression: Expression) -> bool:
    return any(_is_text(part.type) for part in (expression, *children(expression)))


def _texts_in(schema: Schema) -> int:
    return sum(_is_text(field.type) for field in schema.fields)


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))

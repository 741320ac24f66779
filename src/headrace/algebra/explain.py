"""Plans as text: an indented tree of nodes with their parameters and properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from headrace.algebra.arrival import Unit
from headrace.algebra.bounds import bounded_by, has_unbounded_state
from headrace.algebra.frames import Frame, RangeFrame, RowsFrame
from headrace.algebra.horizon import Horizon
from headrace.algebra.kinds import BloomKind, JoinKind, Ranking, SetKind
from headrace.algebra.memory import ALL
from headrace.algebra.nodes import (
    Aggregate,
    AnyAggregate,
    AnyJoin,
    ApproximateAggregate,
    BloomFilter,
    BoundedRowWindow,
    Clip,
    Coalesce,
    Distinct,
    Draw,
    Dstream,
    Early,
    EventSource,
    Filter,
    Finalize,
    GapFill,
    Granularity,
    Istream,
    Join,
    Lifetime,
    LimitedJoin,
    LiveRow,
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
    Weighing,
    WindowBounds,
    inputs_of,
    pair_schema,
)
from headrace.algebra.properties import is_insert_only, sources_of, walk
from headrace.expressions.render import render, render_call, render_sort_key
from headrace.expressions.tree import AggregateCall, Column, Expression, columns_of, shift_columns
from headrace.schema import Schema, quote
from headrace.steps import share_text
from headrace.time import BEGINNING, INFINITY, TimeDomain, format_instant, format_length


def explain(plan: Plan) -> str:
    """The plan as an indented tree, inputs below their node.

    The properties of its stream follow each node: `chronon` if every element is valid for one instant,
    `corrected` if elements may be retracted again, and a warning at the node whose state grows for ever.

    Example:
        Project auction, price * 2 AS double  [chronon]
          Filter price > 100  [chronon]
            Source bid (auction, price) by ts  [chronon]
    """
    return "\n".join(_lines(plan, 0))


def _lines(plan: Plan, depth: int) -> Iterator[str]:
    notes = _properties(plan)
    yield "  " * depth + describe(plan) + (f"  [{', '.join(notes)}]" if notes else "")
    for below in inputs_of(plan):
        yield from _lines(below, depth + 1)


def _properties(plan: Plan) -> list[str]:
    notes = []
    if plan.is_chronon:
        notes.append("chronon")
    if not is_insert_only(plan):
        notes.append("corrected")
    if has_unbounded_state(plan) and not any(has_unbounded_state(below) for below in inputs_of(plan)):
        bounding = bounded_by(plan)
        notes.append("state grows without bound" + (f": {bounding}" if bounding else ""))
    return notes


def describe(plan: Plan) -> str:
    """One node in one line, without its inputs."""
    match plan:
        case Source() | Relation():
            return _leaf(plan)
        case Filter() | Match():
            return _filter(plan)
        case Project() | Unnest() | Weighing():
            return _mapping(plan)
        case (
            TimeWindow()
            | Lifetime()
            | WindowBounds()
            | RowWindow()
            | SessionWindow()
            | Sample()
            | Granularity()
            | Clip()
            | Early()
            | Remember()
            | BloomFilter()
        ):
            return _window(plan)
        case Over() | GapFill():
            return _of_partitions(plan)
        case Union(inputs=inputs):
            return f"Union of {len(inputs)}"
        case SetOperation(kind=kind):
            return f"SetOperation {kind.value}"
        case Join() | OuterJoin() | SemiJoin():
            return _join(plan)
        case Aggregate() | NestedAggregate() | SessionAggregate() | ApproximateAggregate():
            return _aggregate(plan)
        case TopK():
            return _top_k(plan)
        case Distinct() | Coalesce() | Finalize() | Istream() | Dstream() | Rstream() | Split():
            return type(plan).__name__
        case _:
            assert_never(plan)


def _share(plan: Weighing) -> str:
    now = ""
    for begin, share in plan.steps[-1:]:
        since = "" if begin == BEGINNING else f" since {format_instant(begin, plan.domain)}"
        now = f", now {share_text(share)}{since}"
    if isinstance(plan, Draw):
        return f"Draw of {_streams_of(plan)}"
    if isinstance(plan, SemanticDrop):
        return f"SemanticDrop of {', '.join(plan.streams)} {plan.loss}{now}"
    what = "Shed" if isinstance(plan, Shed) else "LargestWeight of"
    return f"{what} {', '.join(plan.streams)} {plan.loss}{now}"


def _filter(plan: Filter | Match) -> str:
    """What is asked; of many predicates how many they are, and the columns that they read."""
    if isinstance(plan, Filter):
        return f"Filter {_text(plan.predicate, plan.input.schema)}"
    read = set[int]().union(*(columns_of(predicate) for _, predicate in plan.predicates))
    names = [plan.input.schema.names[index] for index in sorted(read)]
    return f"Match {len(plan.predicates):,} predicates on {', '.join(names)}"


def _leaf(plan: Source | Relation) -> str:
    columns = f"{type(plan).__name__} {plan.name} ({', '.join(plan.schema.names)})"
    if isinstance(plan, EventSource) and plan.lasting:
        return f"{columns} valid from {plan.timestamp}" + ("" if plan.ends is None else f" to {plan.ends}")
    if isinstance(plan, Source):
        return f"{columns} by {plan.timestamp}"
    match plan.valid:
        case None:
            return columns
        case (at, None):
            return f"{columns} by {at}"
        case (begin, end):
            return f"{columns} valid from {begin} to {end}"


def _of_partitions(plan: Over | GapFill) -> str:
    schema = plan.input.schema
    by = f" BY {', '.join(_text(key, schema) for key in plan.keys)}" if plan.keys else ""
    if isinstance(plan, GapFill):
        return f"GapFill {plan.filling.value} STEP {plan.step} WITHIN {plan.longest}{by}"
    calls = ", ".join(
        _named(name, f"{_call(call, schema)} {_frame(frame)}") for name, call, frame in plan.aggregates
    )
    return f"Over{by}: {calls}"


def _frame(frame: Frame) -> str:
    match frame:
        case RowsFrame(first=first, last=last):
            return f"ROWS {'UNBOUNDED' if first is None else first} TO {last} PRECEDING"
        case RangeFrame(size=size):
            return f"RANGE {size}"
        case _:
            assert_never(frame)


def _mapping(plan: Project | Unnest | Weighing) -> str:
    if isinstance(plan, Weighing):
        return _share(plan)
    if isinstance(plan, Project):
        return (
            f"Project {', '.join(_item(name, part, plan.input.schema) for name, part in plan.items)}".rstrip()
        )
    added = ", ".join(map(quote, (*plan.names, *(() if plan.ordinality is None else (plan.ordinality,)))))
    return f"Unnest{' OUTER' if plan.outer else ''} {_text(plan.values, plan.input.schema)} AS {added}"


def _sizes(plan: TimeWindow) -> str:
    return f"{plan.size}" if plan.smallest is None else f"MIN {plan.smallest}, MAX {plan.size}"


def _row_sizes(plan: BoundedRowWindow) -> str:
    return f"MIN {plan.smallest}, MAX {plan.rows}{_now(plan)}"


def _granules(plan: Granularity) -> str:
    if plan.coarsest is None:
        return f"{plan.granule}"
    return f"COARSEST {plan.coarsest}, FINEST {plan.granule}{_now(plan)}"


def _now(plan: TimeWindow | BoundedRowWindow | Granularity) -> str:
    """The size that something within bounds has now, if it has had another one."""
    if not plan.steps:
        return ""
    begin, size = plan.steps[-1]
    since = "" if begin == BEGINNING else f" since {format_instant(begin, plan.domain)}"
    return f", now {size if isinstance(plan, RowWindow) else format_length(size, plan.domain)}{since}"


def _window(
    plan: TimeWindow
    | Lifetime
    | WindowBounds
    | RowWindow
    | SessionWindow
    | Sample
    | Granularity
    | Clip
    | Early
    | Remember
    | BloomFilter,
) -> str:
    match plan:
        case TimeWindow(slide=slide, offset=offset):
            every = f" SLIDE {slide}" if slide.length > 1 else ""
            moved = f" OFFSET {offset}" if offset.length else ""
            return f"TimeWindow RANGE {_sizes(plan)}{every}{moved}{_now(plan)}"
        case Lifetime():
            return _lifetime(plan)
        case WindowBounds(size=size, slide=slide, offset=offset):
            moved = f" OFFSET {offset}" if offset.length else ""
            return f"{type(plan).__name__} SIZE {size} SLIDE {slide}{moved}"
        case RowWindow(rows=rows, slide=every, keys=keys):
            partition = f"PARTITION BY {', '.join(_text(key, plan.schema) for key in keys)} " if keys else ""
            live = f" WHERE {_text(plan.live, plan.schema)}" if isinstance(plan, LiveRow) else ""
            number = _row_sizes(plan) if isinstance(plan, BoundedRowWindow) else f"{rows}"
            return f"RowWindow {partition}ROWS {number}" + (f" SLIDE {every}" if every > 1 else live)
        case SessionWindow(keys=keys):
            return f"SessionWindow {_sessions(plan, keys)}"
        case BloomFilter(kind=kind, size=size):
            # What is new was not there just before, so that the filter looks back an instant further.
            length = size.length - (kind is BloomKind.NEW)
            span = size if size.length == INFINITY else format_length(length, plan.domain)
            return f"BloomFilter {kind.value} of {span} {plan.loss}"
        case Sample(percent=percent):
            return f"Sample {percent:f} percent"
        case Granularity():
            return f"Granularity {_granules(plan)}"
        case Clip():
            return _clip(plan)
        case Early(input=below, horizon=horizon):
            what = f" of {describe(below)}" if plan.corrects else ""
            return f"Early {_horizon(horizon, plan.domain)}{what}"
        case Remember():
            return f"Remember {_memory(plan)}"
        case _:
            assert_never(plan)


def _sessions(plan: SessionWindow | SessionAggregate, keys: tuple[Column, ...]) -> str:
    by = ", ".join(_text(key, plan.input.schema) for key in keys)
    longest = "" if plan.longest is None else f" MAX {plan.longest}"
    return f"GAP {plan.gap}{longest}" + (f" BY {by}" if by else "")


def _memory(plan: Remember) -> str:
    most = "all" if plan.length == ALL else _length(plan.length, plan.unit, plan.domain)
    since = "" if plan.floor == BEGINNING else f" from {format_instant(plan.floor, plan.domain)} on"
    return f"{most}{since}"


def _horizon(horizon: Horizon, domain: TimeDomain) -> str:
    return (
        "OUTPUT MAXIMAL"
        if horizon.block == -INFINITY
        else f"BLOCK {_length(horizon.block, horizon.unit, domain)}"
    )


def _length(length: int, unit: Unit, domain: TimeDomain) -> str:
    match unit:
        case Unit.TIME:
            return format_length(length, domain)
        case Unit.ARRIVAL:
            return f"{format_length(length, TimeDomain.TIMESTAMP)} BY ARRIVAL"
        case Unit.ROWS:
            return f"{length} ROWS"
        case _:
            assert_never(unit)


def _lifetime(plan: Lifetime) -> str:
    begin = "instant" if plan.granule.length == 1 else f"FLOOR(instant TO {plan.granule})"
    shift = f" {'+' if plan.shift > 0 else '-'} {abs(plan.shift)}" if plan.shift else ""
    ever = plan.fixed == INFINITY
    return f"Lifetime FROM {begin}{shift} FOR {'ever' if ever else _text(plan.duration, plan.schema)}"


def _clip(plan: Clip) -> str:
    begin, end = (format_instant(instant, plan.domain) for instant in (plan.begin, plan.end))
    since = f" FROM {begin}" if plan.begin > BEGINNING else ""
    return f"Clip{since}" + (f" BELOW {end}" if plan.end < INFINITY else "")


def _join(join: AnyJoin) -> str:
    width, pair = len(join.left.schema), pair_schema(join)
    conditions = [
        f"{_text(one, pair)} = {_text(shift_columns(other, width), pair)}" for one, other in join.equalities
    ]
    if join.residual is not None:
        conditions.append(_text(join.residual, pair))
    remembered = _remembered(join) if isinstance(join, LimitedJoin) else ""
    on = "ON " + " AND ".join(conditions) if conditions else "of all pairs"
    return f"{_JOINS[join.kept]} {on}{remembered}"


def _remembered(join: LimitedJoin) -> str:
    """The shares of its rows that a join remembers, where that is not all."""
    drawn = {node.number: _streams_of(node) for node in walk(join) if isinstance(node, Draw)}
    shares = [
        f"{share_text(rows.steps[-1].value)} of {drawn[rows.number]}"
        for rows in join.remembered
        if rows.steps
    ]
    return f" {join.loss}" + (f", remembers {', '.join(shares)}" if shares else "")


def _streams_of(plan: Plan) -> str:
    return ", ".join(sorted({source.name for source in sources_of(plan)}))


_JOINS: Final[dict[JoinKind | SetKind, str]] = {
    JoinKind.INNER: "Join",
    JoinKind.LEFT: "LeftOuterJoin",
    JoinKind.RIGHT: "RightOuterJoin",
    JoinKind.FULL: "FullOuterJoin",
    JoinKind.SEMI: "SemiJoin",
    JoinKind.ANTI: "AntiJoin",
}


def _aggregate(plan: AnyAggregate | NestedAggregate | SessionAggregate) -> str:
    schema = plan.written_out.input.schema if isinstance(plan, SessionAggregate) else plan.input.schema
    keys = ", ".join(_item(name, key, schema) for name, key in plan.keys)
    calls = ", ".join(_named(name, _call(call, schema)) for name, call in plan.aggregates)
    if isinstance(plan, SessionAggregate):
        rows = "" if plan.condition is None else f" WHERE {_text(plan.condition, schema)}"
        how = f" OF SESSIONS {_sessions(plan, plan.by)}{rows}"
    elif isinstance(plan, ApproximateAggregate):
        how = " OF SAMPLES" if plan.is_sampled else f" IN LAPS OF {plan.size}"
    elif isinstance(plan, Aggregate):
        how = plan.settled * " WHEN SETTLED"
    else:
        how = f" ALSO OVER RANGE {', '.join(map(str, plan.shorter))}"
    name = "ApproximateAggregate" if isinstance(plan, ApproximateAggregate) else "Aggregate"
    return name + (f" BY {keys}" if keys else "") + (f": {calls}" if calls else "") + how


def _top_k(plan: TopK) -> str:
    schema = plan.input.schema
    parts = ["TopK"]
    if plan.limit is not None:
        parts.append(f"LIMIT {plan.limit}")
    if plan.offset:
        parts.append(f"OFFSET {plan.offset}")
    if plan.order:
        keys = (render_sort_key(key, lambda one: quote(schema[one.index].name)) for key in plan.order)
        parts.append("ORDER BY " + ", ".join(keys))
    if plan.keys:
        parts.append("BY " + ", ".join(_text(key, schema) for key in plan.keys))
    name = "" if plan.number is None else f" AS {quote(plan.number)}"
    shown = name or plan.ranking is not Ranking.ROW_NUMBER
    return " ".join(parts) + (f": {plan.ranking.value}(){name}" if shown else "")


def _call(call: AggregateCall, schema: Schema) -> str:
    return render_call(call, lambda column: quote(schema[column.index].name))


def _item(name: str, expression: Expression, schema: Schema) -> str:
    text = _text(expression, schema)
    return name if text == quote(name) else _named(name, text)


def _named(name: str, text: str) -> str:
    return f"{text} AS {quote(name)}"


def _text(expression: Expression, schema: Schema) -> str:
    """The expression with the names that its columns have in its input, which differ where rules moved it."""
    return render(expression, lambda column: quote(schema[column.index].name))

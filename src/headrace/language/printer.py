"""Plans back to text, such that the text means the plan by PIPES' reading, which adds nothing to it.

A bound plan comes back as itself. Columns are always listed, never `*`, so that the text of an optimized
plan, whose sources read fewer columns than the streams have, means the same as well. Samples and windows of
rows depend on whole rows, and so are put on a query that lists its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from headrace.algebra.frames import Frame, RangeFrame, RowsFrame
from headrace.algebra.kinds import Ranking
from headrace.algebra.letters import stream_of_letters
from headrace.algebra.nodes import (
    NO_OFFSET,
    Aggregate,
    AnyAggregate,
    AnyJoin,
    ApproximateAggregate,
    BloomFilter,
    BoundedRowWindow,
    Clip,
    Coalesce,
    Distinct,
    Dstream,
    Early,
    Filter,
    Finalize,
    GapFill,
    Granularity,
    Istream,
    Join,
    Lifetime,
    LiveRow,
    Match,
    NestedAggregate,
    Over,
    Plan,
    Project,
    Relation,
    Remember,
    RowWindow,
    Rstream,
    Sample,
    SemiJoin,
    SessionAggregate,
    SessionWindow,
    SetOperation,
    Source,
    Split,
    TimeWindow,
    TopK,
    Union,
    Unnest,
    Weighing,
    WindowBounds,
    WindowEvents,
    column,
    instant_type,
)
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.algebra.properties import timestamp_columns
from headrace.algebra.system_streams import system_stream
from headrace.expressions.functions.functions import literal
from headrace.expressions.render import render, render_call, render_sort_key
from headrace.expressions.tree import AggregateCall, Call, Column, Expression, SortKey, shift_columns
from headrace.language.names import quoted_name
from headrace.schema import BIGINT, BOOLEAN, unique_names
from headrace.time import INFINITY, Duration, TimeDomain

Names = tuple[str, ...]
"""The text by which each column of a row is referred to."""


@dataclass(frozen=True)
class _Table:
    """A part of FROM: its text, and the texts of its columns."""

    text: str
    columns: Names


def to_sql(plan: Plan) -> str:
    """A query from which `bind` makes the plan again."""
    return _query(plan)


def _query(plan: Plan) -> str:
    match plan:
        case Union(inputs=inputs):
            return " UNION ALL ".join(map(_operand, inputs))
        case NestedAggregate() | SessionAggregate() | Match():
            return _query(plan.written_out)
        case SetOperation(kind=kind, left=left, right=right):
            return f"{_operand(left)} {kind.value} {_operand(right)}"
        case (
            Coalesce(input=below)
            | Finalize(input=below)
            | Clip(input=below)
            | Early(input=below)
            | Remember(input=below)
            | Weighing(input=below)
            | BloomFilter(input=below)
        ):
            # They have no text: only the optimizer puts them there.
            return _query(below)
        case Istream() | Dstream() | Rstream():
            return f"{type(plan).__name__.upper()}({_query(plan.input)})"
        case Distinct(input=below):
            return _select(below, "SELECT DISTINCT")
        case TopK():
            return _top_k(plan)
        case _:
            return _select(plan, "SELECT")


def _operand(plan: Plan) -> str:
    return f"({_query(plan)})" if isinstance(plan, Union | SetOperation | TopK) else _query(plan)


def _top_k(plan: TopK) -> str:
    """LIMIT where it says it all, and else a condition on the place."""
    names = tuple(quoted_name(name) for name in plan.schema.names)
    last = None if plan.limit is None else plan.offset + plan.limit
    if not plan.keys and plan.number is None and plan.ranking is Ranking.ROW_NUMBER:
        below = _listed(plan.input)[1:-1]
        if isinstance(plan.input, TopK):
            below = f"SELECT {', '.join(names)} FROM ({below})"
        order = _order(plan.order, names)
        limit = "ALL" if plan.limit is None else plan.limit
        return f"{below} {order}LIMIT {limit}" + (f" OFFSET {plan.offset}" if plan.offset else "")
    numbered = _numbered(plan)
    if last is None and not plan.offset and plan.number is not None:
        return numbered
    number = quoted_name(_number_name(plan))
    conditions = [f"{number} > {plan.offset}"] * bool(plan.offset)
    conditions += [] if last is None else [f"{number} <= {last}"]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(names)} FROM ({numbered}){where}"


def _numbered(plan: TopK) -> str:
    names = tuple(quoted_name(name) for name in plan.input.schema.names)
    keys = ", ".join(names[key.index] for key in plan.keys)
    order, first = plan.order, SortKey(column(plan.input, 0))
    # By time alone, or by nothing, it would be a running number.
    timed = [SortKey(column(plan.input, place)) for place in timestamp_columns(plan.input)]
    while not order or (len(order) == 1 and replace(order[0], nulls_first=True) in timed):
        # Ranks are the same by a key that comes again.
        order = (*order, first if plan.ranking is Ranking.ROW_NUMBER else order[0])
    by = f"PARTITION BY {keys} " * bool(keys) + _order(order, names)
    name = quoted_name(_number_name(plan))
    over = f"{plan.ranking.value}() OVER ({by.rstrip()})"
    return f"SELECT {', '.join(names)}, {over} AS {name} FROM {_listed(plan.input)}"


def _number_name(plan: TopK) -> str:
    return plan.number or unique_names([*plan.schema.names, "row_number"])[-1]


def _order(keys: Sequence[SortKey], columns: Names) -> str:
    listed = ", ".join(render_sort_key(key, lambda one: columns[one.index]) for key in keys)
    return f"ORDER BY {listed} " if keys else ""


def _select(plan: Plan, verb: str) -> str:
    """One SELECT for as many nodes as fit into it: the list, WHERE, and the joins of FROM."""
    below = plan.input if isinstance(plan, Project | AnyAggregate | Over) else plan
    where = below.predicate if isinstance(below, Filter) else None
    if isinstance(plan, Over):
        where, tables = None, _Table(_listed(below), tuple(quoted_name(name) for name in below.schema.names))
    else:
        tables = _from(below.input if isinstance(below, Filter) else below)
    match plan:
        case Project(items=items):
            listed = [(name, _text(part, tables.columns)) for name, part in items]
        case Aggregate() | ApproximateAggregate():
            keys = [(name, _text(key, tables.columns)) for name, key in plan.keys]
            listed = keys + [(name, _call(call, tables.columns)) for name, call in plan.aggregates]
        case Over():
            listed = [
                *zip(plan.schema.names, tables.columns, strict=False),
                *_over(plan, tables.columns),
            ]
        case _:
            listed = list(zip(plan.schema.names, tables.columns, strict=True))
    text = f"{verb} {_list(listed)} FROM {tables.text}"
    if where is not None:
        text += f" WHERE {_text(where, tables.columns)}"
    if isinstance(plan, AnyAggregate) and plan.keys:
        text += f" GROUP BY {', '.join(str(place + 1) for place in range(len(plan.keys)))}"
    return text


def _over(plan: Over, columns: Names) -> list[tuple[str, str]]:
    """The columns that the node adds; the rows are ordered by time, with ORDER BY or without."""
    keys = ", ".join(columns[key.index] for key in plan.keys)
    by = f"PARTITION BY {keys} " if keys else ""
    return [
        (name, f"{_call(call, columns)} OVER ({by}{_frame(frame, plan.domain)})")
        for name, call, frame in plan.aggregates
    ]


def _frame(frame: Frame, domain: TimeDomain) -> str:
    match frame:
        case RowsFrame(first=first, last=last):
            return f"ROWS BETWEEN {'UNBOUNDED' if first is None else first} PRECEDING AND {last} PRECEDING"
        case RangeFrame(size=Duration(length=length)):
            back = str(length - 1) if domain is TimeDomain.INTEGER else f"INTERVAL '{length - 1}' MICROSECOND"
            return f"RANGE BETWEEN {'UNBOUNDED' if length == INFINITY else back} PRECEDING AND CURRENT ROW"
        case _:
            assert_never(frame)


def _list(items: Sequence[tuple[str, str]]) -> str:
    if not items:
        # A row without columns is still a row, and SQL has no empty list; nobody reads the column.
        return "NULL AS nothing"
    return ", ".join(
        text if text == quoted_name(name) else f"{text} AS {quoted_name(name)}" for name, text in items
    )


def _unnested(plan: Unnest) -> _Table:
    """`table AS t1 CROSS JOIN UNNEST(values) AS t2 (columns)`."""
    below = tuple(f"t1.{quoted_name(name)}" for name in plan.input.schema.names)
    named = [*plan.names, *([] if plan.ordinality is None else [plan.ordinality])]
    added = [quoted_name(name) for name in named]
    verb, ending = ("LEFT JOIN", " ON TRUE") if plan.outer else ("CROSS JOIN", "")
    placed = "" if plan.ordinality is None else " WITH ORDINALITY"
    function = f"UNNEST({_text(plan.values, below)}){placed} AS t2 ({', '.join(added)})"
    columns = (*(below[place] for place in plan.kept), *(f"t2.{name}" for name in added))
    return _Table(f"{_leaf(plan.input)} AS t1 {verb} {function}{ending}", columns)


def _from(plan: Plan) -> _Table:
    if isinstance(plan, Unnest):
        return _unnested(plan)
    if not isinstance(plan, AnyJoin):
        return _Table(_leaf(plan), tuple(quoted_name(name) for name in plan.schema.names))
    return _joined(plan, 1)[0]


def _joined(plan: Plan, number: int) -> tuple[_Table, int]:
    """A tree of joins whose other inputs are called t1, t2 and so on; and the next number."""
    if not isinstance(plan, AnyJoin):
        columns = tuple(f"t{number}.{quoted_name(name)}" for name in plan.schema.names)
        return _Table(f"{_leaf(plan)} AS t{number}", columns), number + 1
    left, number = _joined(plan.left, number)
    right, number = _joined(plan.right, number)
    columns = (*left.columns, *right.columns)
    right_text = f"({right.text})" if isinstance(plan.right, AnyJoin) else right.text
    condition = _condition(plan)
    if isinstance(plan, Join) and condition is None:
        return _Table(f"{left.text} CROSS JOIN {right_text}", columns), number
    verb = "JOIN" if isinstance(plan, Join) else f"{plan.kept.value} JOIN"
    matching = "TRUE" if condition is None else _text(condition, columns)
    kept = left.columns if isinstance(plan, SemiJoin) else columns
    return _Table(f"{left.text} {verb} {right_text} ON {matching}", kept), number


def _condition(join: AnyJoin) -> Expression | None:
    width = len(join.left.schema)
    equalities = [Call("=", (left, shift_columns(right, width)), BOOLEAN) for left, right in join.equalities]
    return conjunction([*equalities, *(conjuncts(join.residual) if join.residual is not None else ())])


def _stream_name(name: str) -> str:
    """A stream or a relation in FROM."""
    if system_stream(name) is not None:
        return name
    letters = stream_of_letters(name)
    return quoted_name(name) if letters is None else f"DEAD LETTERS OF {quoted_name(letters)}"


def _leaf(plan: Plan) -> str:
    match plan:
        case Source(name=name) | Relation(name=name):
            return _stream_name(name)
        case TimeWindow():
            return _range(plan)
        case RowWindow():
            return _rows(plan)
        case Lifetime():
            return _living(plan)
        case Sample(percent=percent):
            return f"{_sampled(plan)} SAMPLE({percent:f})"
        case Granularity(input=below):
            table = f"({_query(below)})" if isinstance(below, Granularity) else _leaf(below)
            return f"{table} GRANULARITY({_granules(plan)})"
        case (
            Split(input=below)
            | Coalesce(input=below)
            | Finalize(input=below)
            | Clip(input=below)
            | Early(input=below)
            | Remember(input=below)
            | Weighing(input=below)
        ):
            # The binder puts a Split there again: it is below windows only.
            return _leaf(below)
        case WindowBounds():
            return _bounded(plan)
        case SessionWindow() | GapFill():
            return _series(plan)
        case Istream() | Dstream() | Rstream():
            return _query(plan)
        case _:
            return f"({_query(plan)})"


def _range(plan: TimeWindow) -> str:
    if plan.offset != NO_OFFSET:
        # The language has offsets for windows with a start and an end only.
        listed = _list([(name, quoted_name(name)) for name in plan.schema.names])
        return f"(SELECT {listed} FROM {_hop(plan)})"
    every = f" SLIDE {_duration(plan.slide, plan.domain)}" if plan.slide.length > 1 else ""
    size = _duration(plan.size, plan.domain)
    if plan.smallest is not None:
        size = f"MIN {_duration(plan.smallest, plan.domain)}, MAX {size}"
    return f"{_unwindowed(plan.input)} WINDOW(RANGE {size}{every})"


def _granules(plan: Granularity) -> str:
    finest = _duration(plan.granule, plan.domain)
    if plan.coarsest is None:
        return finest
    return f"COARSEST {_duration(plan.coarsest, plan.domain)}, FINEST {finest}"


def _rows(plan: RowWindow) -> str:
    partition = ", ".join(quoted_name(plan.input.schema[key.index].name) for key in plan.keys)
    every = f" SLIDE {plan.slide}" if plan.slide > 1 else ""
    by = f"PARTITION BY {partition} " if plan.keys else ""
    size = f"MIN {plan.smallest}, MAX {plan.rows}" if isinstance(plan, BoundedRowWindow) else plan.rows
    window = f"{_listed(plan.input)} WINDOW({by}ROWS {size}{every})"
    if not isinstance(plan, LiveRow):
        return window
    return f"(SELECT * FROM {window} WHERE {quoted_name(plan.schema[plan.live.index].name)})"


def _living(plan: Lifetime) -> str:
    domain, shift = plan.domain, Duration(abs(plan.shift))
    start = "VALID_FROM"
    if plan.granule.length > 1:
        start = f"FLOOR({start} TO {_duration(plan.granule, domain)})"
    if plan.shift:
        start += f" {'-' if plan.shift < 0 else '+'} {_duration(shift, domain)}"
    if plan.fixed:
        duration = "UNBOUNDED" if plan.fixed == INFINITY else _duration(Duration(plan.fixed), domain)
    else:
        unit = " MICROSECONDS" if domain is TimeDomain.TIMESTAMP else ""
        names = tuple(quoted_name(name) for name in plan.input.schema.names)
        duration = f"({_text(plan.duration, names)}){unit}"
    return f"{_listed(plan.input)} WINDOW(LIFETIME ({start}, {duration}))"


def _hop(plan: TimeWindow) -> str:
    lengths = [plan.size] if plan.size == plan.slide else [plan.slide, plan.size]
    start = (plan.offset.length - plan.size.length) % plan.slide.length
    if start:
        lengths.append(Duration(start))
    function = "TUMBLE" if plan.size == plan.slide else "HOP"
    return _table_function(function, plan, lengths)


def _bounded(plan: WindowBounds) -> str:
    if isinstance(plan, WindowEvents):
        # As it is written: `events_from_windows` has made it from that.
        return _leaf(Istream(WindowBounds(plan.input, plan.size, plan.slide, plan.offset)))
    return _hop(plan.input) if isinstance(plan.input, TimeWindow) else _leaf(_above_window(plan))


def _above_window(plan: WindowBounds) -> Plan:
    """The same with the bounds where the language has them: directly above a window.

    Only the optimizer moves them from there, over aggregates, conditions and projections.
    """
    match plan.input:
        case TimeWindow():
            return plan
        case Filter() as below:
            return replace(below, input=_above_window(replace(plan, input=below.input)))
        case Project(input=below, items=items):
            return Project(_above_window(replace(plan, input=below)), (*items, *_bounds(plan, below)))
        case Aggregate(input=below, keys=keys) as groups:
            bounds = _bounds(plan, below)
            moved = replace(
                groups, input=_above_window(replace(plan, input=below)), keys=(*keys, *bounds), settled=False
            )
            width = len(keys)
            places = [*range(width), *range(width + 2, len(moved.schema)), width, width + 1]
            return Project(
                moved, tuple((plan.schema.names[at], column(moved, place)) for at, place in enumerate(places))
            )
        case below:
            # The window of one instant, which was removed.
            assert plan.size.length == plan.slide.length == 1
            return replace(plan, input=TimeWindow(below, plan.size, plan.slide))


def _bounds(plan: WindowBounds, below: Plan) -> tuple[tuple[str, Expression], ...]:
    """The bounds as columns of a plan's input: they follow its other columns."""
    width, names = len(below.schema), plan.schema.names[-2:]
    return tuple((name, Column(width + place, name, instant_type(plan))) for place, name in enumerate(names))


def _table_function(name: str, plan: TimeWindow | SessionWindow, lengths: Sequence[Duration]) -> str:
    """A window table function; its descriptor is left out where the timestamp is no longer a column."""
    below = plan.input
    known = [quoted_name(below.schema[place].name) for place in sorted(timestamp_columns(below))]
    written = [_duration(length, below.domain) for length in lengths]
    return f"{name}({', '.join([_partitioned(plan), *map(_descriptor, known[:1]), *written])})"


def _series(plan: SessionWindow | GapFill) -> str:
    if isinstance(plan, SessionWindow):
        lengths = [plan.gap] if plan.longest is None else [plan.gap, plan.longest]
        return _table_function("SESSION", plan, lengths)
    written = (_duration(length, plan.domain) for length in (plan.step, plan.longest))
    time = _descriptor(quoted_name(plan.schema[plan.time].name))
    return f"GAP_FILL({', '.join([_partitioned(plan), time, *written])}, '{plan.filling.value}')"


def _partitioned(plan: TimeWindow | SessionWindow | GapFill) -> str:
    """The table of a table function, with the columns by which that is partitioned."""
    keys = () if isinstance(plan, TimeWindow) else plan.keys
    names = ", ".join(quoted_name(plan.input.schema[key.index].name) for key in keys)
    return f"TABLE {_leaf(plan.input)}" + (f" PARTITION BY ({names})" if keys else "")


def _descriptor(name: str) -> str:
    return f"DESCRIPTOR({name})"


def _unwindowed(plan: Plan) -> str:
    """A table after which a window can be written."""
    while isinstance(plan, Split):
        plan = plan.input
    windows = TimeWindow | Lifetime | RowWindow | Sample | Granularity
    return f"({_query(plan)})" if isinstance(plan, windows) else _leaf(plan)


def _listed(plan: Plan) -> str:
    """A table with the columns of the plan alone, for what reads whole rows: their hash, or their order."""
    while isinstance(plan, Split):
        plan = plan.input
    return f"({_query(plan)})"


def _sampled(plan: Sample) -> str:
    """What is sampled: of one instant where the instant counts, and only there."""
    if plan.timed or not plan.input.is_chronon:
        return _listed(plan.input)
    # The optimizer has found rows that last to be of one instant. A computed lifetime is not known to be one.
    lasting = _living(Lifetime(plan.input, Call("+", (literal(0), literal(1)), BIGINT)))
    return f"(SELECT {_list([(name, quoted_name(name)) for name in plan.schema.names])} FROM {lasting})"


def _duration(duration: Duration, domain: TimeDomain) -> str:
    bare = duration.unit is None and duration.length != INFINITY
    return f"{duration} MICROSECONDS" if bare and domain is TimeDomain.TIMESTAMP else str(duration)


def _call(call: AggregateCall, columns: Names) -> str:
    return render_call(call, lambda column: columns[column.index])


def _text(expression: Expression, columns: Names) -> str:
    return render(expression, lambda column: columns[column.index])

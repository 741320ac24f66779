"""`OVER (...)`: aggregates over the rows before each row, as joins with a window or as windows over rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from sqlglot import exp

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Aggregate, Join, OverRows, Plan, Project, TimeWindow, TopK, column
from headrace.algebra.nulls import null_safe_key
from headrace.algebra.properties import timestamp_columns
from headrace.errors import LanguageError, Position, UserError
from headrace.expressions import functions
from headrace.expressions.aggregates import resolve_aggregate
from headrace.expressions.tree import (
    AggregateCall,
    Column,
    Expression,
    SortKey,
    expressions_of,
    transform_call,
)
from headrace.language.catalog import check_duration
from headrace.language.cursor import position_of
from headrace.language.framing import chronons
from headrace.language.scalars import Context, bind_scalar, bind_sort_key, located
from headrace.schema import unique_names
from headrace.time import INFINITY, Duration, make_duration, parse_duration

_WRITTEN: Final = (
    "write OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)"
)

_LATER: Final = "a row's answer depends on what came before it; frames end with CURRENT ROW or n PRECEDING"


@dataclass(frozen=True)
class _Frame:
    """Which rows of a partition an aggregate reads.

    Attributes:
        keys: the partition's keys.
        size: of a RANGE frame, the length of the window; None for the whole partition, or for ROWS.
        first, last: of a ROWS frame, how many rows before the current one it starts and ends; `rows` tells
            whether it is one. `first` is None for all rows so far.
        order: of ROW_NUMBER by another order than time, what a snapshot's rows are sorted by.
    """

    keys: tuple[Expression, ...]
    size: Duration | None = None
    rows: bool = False
    first: int | None = None
    last: int = 0
    order: tuple[SortKey, ...] = ()


class OverCalls:
    """The window functions of one SELECT list.

    Args:
        plan: the rows that they stand over.
        context: where they stand.
    """

    def __init__(self, plan: Plan, context: Context) -> None:
        self._plan = plan
        self._context = context
        self.calls: list[tuple[_Frame, AggregateCall]] = []

    def bind(self, node: Any) -> Expression:
        """The value of `function OVER (...)`: an expression over columns that `apply` adds behind the plan's.

        Raises:
            LanguageError: no such function, or a frame that cannot be.
        """
        position = position_of(node)
        if node.args.get("alias") is not None:
            raise LanguageError("OVER takes its window in parentheses", position=position, hint=_WRITTEN)
        name = str(node.this.name).upper() if isinstance(node.this, exp.Anonymous) else ""
        if name in ("ROW_NUMBER", "LAG"):
            if name == "LAG" or self._by_time(node):
                self._ordered(node)
            if node.args.get("spec") is not None:
                raise LanguageError(f"{name} takes no frame", position=position, hint="leave it out")
            return self._row_number(node) if name == "ROW_NUMBER" else self._lag(node)
        if name in ("LEAD", "RANK", "DENSE_RANK", "NTILE", "PERCENT_RANK", "CUME_DIST", "NTH_VALUE"):
            hint = "the functions with OVER are the aggregates, ROW_NUMBER and LAG"
            raise LanguageError(f"{name} is not supported", position=position, hint=hint)
        found: list[AggregateCall] = []
        inner = replace(self._context, width=0, aggregates=found, over=None, nesting=None)
        bind_scalar(node.this, inner)
        if len(found) != 1:
            hint = "the functions with OVER are the aggregates, ROW_NUMBER and LAG"
            raise LanguageError("OVER stands behind an aggregate", position=position, hint=hint)
        return self._column(self._frame(node), found[0])

    def apply(self, position: Position) -> Plan:
        """The plan with one column more per function; the position is for errors.

        Raises:
            LanguageError: a frame of rows stands over rows that are valid for too many instants.
        """
        plan, width = self._plan, len(self._plan.schema)
        if any(frame.rows for frame, _ in self.calls):
            plan = chronons(plan, position)
        places: dict[int, int] = {}
        for frame in dict.fromkeys(frame for frame, _ in self.calls):
            numbers = [number for number, (other, _) in enumerate(self.calls) if other == frame]
            for number in numbers:
                places[number] = len(plan.schema) + numbers.index(number)
            plan = _over(plan, frame, [self.calls[number][1] for number in numbers])
        order = [*range(width), *(places[number] for number in range(len(self.calls)))]
        if order == list(range(len(plan.schema))):
            return plan
        return Project(plan, tuple((plan.schema[place].name, column(plan, place)) for place in order))

    def _column(self, frame: _Frame, call: AggregateCall) -> Expression:
        if (frame, call) not in self.calls:
            self.calls.append((frame, call))
        place = len(self._plan.schema) + self.calls.index((frame, call))
        return Column(place, call.function.lower(), call.type)

    def _row_number(self, node: Any) -> Expression:
        if node.this.expressions:
            raise LanguageError("ROW_NUMBER takes no argument", position=position_of(node))
        keys, number = self._keys(node), resolve_aggregate("COUNT", None)
        if self._by_time(node):
            return self._column(_Frame(keys, rows=True), number)
        context = replace(self._context, clause="ORDER BY", aggregates=None, over=None, nesting=None)
        order = tuple(bind_sort_key(key, context) for key in node.args["order"].expressions)
        return self._column(_Frame(keys, order=order), number)

    def _lag(self, node: Any) -> Expression:
        """The value so many rows before, as the MAX over the one row that stands there."""
        arguments, position = node.this.expressions, position_of(node)
        if not 1 <= len(arguments) <= 3:
            hint = "write LAG(x), LAG(x, 2) or LAG(x, 2, default)"
            raise LanguageError(
                f"LAG takes 1 to 3 arguments, not {len(arguments)}", position=position, hint=hint
            )
        back = _whole(arguments[1], "LAG") if len(arguments) > 1 else 1
        frame = _Frame(self._keys(node), rows=True, first=back, last=back)
        inner = replace(self._context, clause="LAG(...)", aggregates=None, over=None, nesting=None)
        with located(position):
            value = self._column(frame, resolve_aggregate("MAX", bind_scalar(arguments[0], inner)))
            if len(arguments) < 3:
                return value
            count = self._column(frame, resolve_aggregate("COUNT", None))
            missing = functions.resolve("=", (count, functions.literal(0)))
            return functions.make_case(((missing, bind_scalar(arguments[2], inner)),), value)

    def _keys(self, node: Any) -> tuple[Expression, ...]:
        context = replace(self._context, clause="PARTITION BY", aggregates=None, over=None, nesting=None)
        parts = node.args.get("partition_by") or ()
        return tuple(dict.fromkeys(bind_scalar(part, context) for part in parts))

    def _by_time(self, node: Any) -> bool:
        """Whether rows are put in order by their time, or not at all."""
        order = node.args.get("order")
        if order is None:
            return True
        first, *others = order.expressions
        known = {self._plan.schema[place].name.lower() for place in timestamp_columns(self._plan)}
        named = isinstance(first.this, exp.Column) and str(first.this.name).lower() in known
        return named and not others and not first.args.get("desc")

    def _ordered(self, node: Any) -> bool:
        """Whether the rows are put in order; the only order is that of time."""
        order = node.args.get("order")
        if order is None:
            return False
        keys = order.expressions
        key = bind_scalar(
            keys[0].this, replace(self._context, clause="ORDER BY", aggregates=None, over=None, nesting=None)
        )
        known = timestamp_columns(self._plan)
        timed = (
            len(keys) == 1 and isinstance(key, Column) and key.index in known and not keys[0].args.get("desc")
        )
        if not timed:
            names = [self._plan.schema[place].name for place in sorted(known)]
            hint = f"write ORDER BY {names[0]}" if names else "OVER stands on a stream: leave out its window"
            raise LanguageError("OVER orders rows by their time", position=position_of(keys[0]), hint=hint)
        return True

    def _frame(self, node: Any) -> _Frame:
        keys, ordered, spec = self._keys(node), self._ordered(node), node.args.get("spec")
        if spec is None:
            return _Frame(keys, Duration(INFINITY) if ordered else None)
        start, side, end = spec.args.get("start"), spec.args.get("start_side"), spec.args.get("end")
        end_side = spec.args.get("end_side")
        position = position_of(node)
        _refuse_half(spec, position)
        if spec.args.get("exclude") or "FOLLOWING" in (side, end_side) or str(spec.args["kind"]) == "GROUPS":
            raise LanguageError("this frame is not supported", position=position, hint=_LATER)
        if str(spec.args["kind"]) == "ROWS":
            return _rows_frame(keys, start, end, position)
        if end not in (None, "CURRENT ROW") or start is None:
            raise LanguageError("a RANGE frame ends with CURRENT ROW", position=position, hint=_WRITTEN)
        return _Frame(keys, self._range(start, node))

    def _range(self, start: Any, node: Any) -> Duration:
        """The length of the window of a RANGE frame, which holds both of its ends."""
        if start == "UNBOUNDED":
            return Duration(INFINITY)
        if start == "CURRENT ROW":
            return Duration(1)
        position = position_of(start)
        try:
            duration = _duration(start)
        except UserError as error:
            raise LanguageError(error.message, position=position, hint=error.hint) from None
        check_duration(duration, self._plan.domain, "INTERVAL", position)
        return Duration(duration.length + 1, None if duration.unit is None else "MICROSECOND")


def _refuse_half(spec: Any, position: Position) -> None:
    """Refuse a frame without a start, or with lengths that are not said to be PRECEDING."""
    for part in ("start", "end"):
        bound, side = spec.args.get(part), spec.args.get(f"{part}_side")
        if (bound is None and part == "start") or (bound not in (None, "CURRENT ROW") and side is None):
            message = f"the frame's {part} is missing, or PRECEDING behind it"
            raise LanguageError(message, position=position, hint=_WRITTEN)


def _rows_frame(keys: tuple[Expression, ...], start: Any, end: Any, position: Position) -> _Frame:
    if start == "UNBOUNDED" or end == "UNBOUNDED":
        hint = "write RANGE UNBOUNDED PRECEDING, or a number of rows"
        raise LanguageError("ROWS UNBOUNDED is not supported", position=position, hint=hint)
    first = 0 if start == "CURRENT ROW" else _whole(start, "ROWS")
    last = 0 if end in (None, "CURRENT ROW") else _whole(end, "ROWS")
    if last > first:
        hint = "write the larger number first: ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING"
        raise LanguageError("the frame ends before it starts", position=position, hint=hint)
    return _Frame(keys, rows=True, first=first, last=last)


def _duration(node: Any) -> Duration:
    match node:
        case exp.Interval(this=exp.Literal() as number):
            unit = node.args.get("unit")
            text = str(number.this)
            return parse_duration(text) if unit is None else make_duration(_digits(text), str(unit))
        case exp.Literal() if not node.is_string:
            return make_duration(_digits(str(node.this)), None)
        case _:
            raise UserError("a length of time is missing", hint=_WRITTEN)


def _digits(text: str) -> int:
    if not text.strip().isdecimal() or len(text) > 19:
        raise UserError(f"'{text}' is no length of time", hint=_WRITTEN)
    return int(text)


def _whole(node: Any, what: str) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        number = int(node.this)
        if number <= 1_000_000:
            return number
    hint = "write a whole number of rows, at most a million"
    raise LanguageError(f"{what} takes a number of rows", position=position_of(node), hint=hint)


def _over(plan: Plan, frame: _Frame, calls: list[AggregateCall]) -> Plan:
    """The plan's rows, each with the aggregates over its frame behind its columns."""
    width = len(plan.schema)
    parts = [part for call in calls for part in expressions_of(call)]
    sorts = [key.expression for key in frame.order]
    places_by = (*frame.keys, *sorts)
    hidden = [part for part in dict.fromkeys((*parts, *places_by)) if can_fail(part) or part in places_by]
    hidden = [part for part in hidden if not isinstance(part, Column)]
    wide = _with_columns(plan, hidden)
    places = {part: column(wide, width + number) for number, part in enumerate(hidden)}
    calls = [transform_call(call, lambda part: places.get(part, part)) for call in calls]
    keys = [places.get(key, key) for key in frame.keys]
    names = unique_names([*wide.schema.names, *(call.function.lower() for call in calls)])
    named = tuple(zip(names[len(wide.schema) :], calls, strict=True))
    if frame.order:
        columns = tuple(key for key in keys if isinstance(key, Column))
        order = tuple(
            replace(key, expression=places.get(key.expression, key.expression)) for key in frame.order
        )
        result: Plan = TopK(wide, columns, order, number=names[-1])
    elif frame.rows:
        columns = tuple(key for key in keys if isinstance(key, Column))
        result = OverRows(wide, columns, frame.first, frame.last, named)
    else:
        wide, result = _joined(wide, frame, keys, named)
    kept = [*range(width), *range(len(result.schema) - len(calls), len(result.schema))]
    if len(kept) == len(result.schema):
        return result
    chosen = unique_names([result.schema[place].name for place in kept])
    return Project(
        result, tuple((name, column(result, place)) for name, place in zip(chosen, kept, strict=True))
    )


def _joined(
    plan: Plan, frame: _Frame, keys: list[Expression], named: tuple[tuple[str, AggregateCall], ...]
) -> tuple[Plan, Plan]:
    """Each row joined with the aggregate of its partition's window.

    A join takes NULL as equal to nothing, and a partition does not: keys are compared as a value that is not
    NULL, and whether it is.
    """
    parts = [part for key in keys for part in null_safe_key(key)]
    wide = _with_columns(plan, parts)
    matched = [column(wide, len(plan.schema) + place) for place in range(len(parts))]
    window = wide if frame.size is None else TimeWindow(wide, frame.size)
    grouped = Aggregate(window, tuple((key.name, key) for key in matched), named)
    equalities = tuple((key, column(grouped, place)) for place, key in enumerate(matched))
    names = unique_names([*wide.schema.names, *grouped.schema.names])
    return wide, Join(wide, grouped, equalities, None, tuple(names))


def _with_columns(plan: Plan, parts: list[Expression]) -> Plan:
    if not parts:
        return plan
    names = unique_names([*plan.schema.names, *("key" for _ in parts)])
    items = [(field.name, column(plan, place)) for place, field in enumerate(plan.schema)]
    return Project(plan, (*items, *zip(names[len(items) :], parts, strict=True)))

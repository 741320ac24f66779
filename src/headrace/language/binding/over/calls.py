"""`OVER (...)`: aggregates over the rows before each row, and places."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, assert_never

from sqlglot import exp

from headrace.algebra.frames import RangeFrame, RowsFrame
from headrace.algebra.kinds import Ranking
from headrace.algebra.nodes import Plan, Project, column
from headrace.algebra.properties import timestamp_columns
from headrace.errors import LanguageError, Position
from headrace.expressions.aggregates.aggregates import Modifiers, resolve_aggregate
from headrace.expressions.functions import functions
from headrace.expressions.tree import AggregateCall, Column, Expression, SortKey, transform_columns
from headrace.language.binding.ages import exact_ages, tells_instant
from headrace.language.binding.columns import is_own
from headrace.language.binding.over.frames import (
    SO_FAR,
    BoundedFrame,
    Framed,
    FrameScope,
    Ordered,
    PlaceFrame,
    Whole,
    bind_frame,
    bind_ordered,
    whole_number,
)
from headrace.language.binding.over.plans import with_bounded, with_frames, with_scope
from headrace.language.binding.scalars.aggregate_calls import aggregate_parts
from headrace.language.binding.scalars.collected import Collected
from headrace.language.binding.scalars.context import Context, located
from headrace.language.binding.scalars.scalars import bind_scalar, bind_sort_key
from headrace.language.binding.windows import chronons
from headrace.language.dialect import position_of
from headrace.time import Duration

_FUNCTIONS: Final = (
    "the functions with OVER are the aggregates, ROW_NUMBER, RANK, DENSE_RANK, LAG, FIRST_VALUE, LAST_VALUE"
)
_ENDS: Final = ("FIRST_VALUE", "LAST_VALUE")
_NOT_BUILT: Final = {
    **dict.fromkeys(("NTILE", "PERCENT_RANK", "CUME_DIST", "NTH_VALUE"), _FUNCTIONS),
}
"""Window functions that are refused, with a hint."""
_LEAD: Final = "a row's answer cannot wait for later rows; ask the later row for the earlier one with LAG"


class OverCalls:
    """The window functions of one SELECT list.

    Args:
        plan: the rows that they are computed over.
        context: where they are.
    """

    def __init__(self, plan: Plan, context: Context) -> None:
        self._plan = plan
        self._context = context
        self.calls = Collected[tuple[FrameScope, AggregateCall]]()

    def bind(self, node: Any) -> Expression:
        """The value of `function OVER (...)`: an expression over columns that `apply` adds after the plan's.

        Raises:
            LanguageError: no such function, or a frame that cannot be.
        """
        position = position_of(node)
        name = _name(node.this)
        if name in _NOT_BUILT:
            raise LanguageError(f"{name} is not supported", position=position, hint=_NOT_BUILT[name])
        match name:
            case "ROW_NUMBER" | "RANK" | "DENSE_RANK":
                return self._place(node, Ranking(name))
            case "LAG" | "LEAD":
                return self._lag(node, name)
            case "FIRST_VALUE" | "LAST_VALUE":
                return self._end(node, name)
        found = Collected[AggregateCall]()
        value = bind_scalar(
            node.this, replace(self._context, width=0, aggregates=found, groups=None, over=None, nesting=None)
        )
        if aggregate_parts(node.this, self._context.scope.functions) is None:
            raise LanguageError("OVER must follow an aggregate", position=position, hint=_FUNCTIONS)
        if any(call.within is not None for call in found):
            hint = "write COUNT(DISTINCT x) or PERCENTILE(x, 0.9), which are exact"
            message = f"{_name(node.this)} does not take OVER"
            raise LanguageError(message, position=position, hint=hint)
        frame = self._frame(node)
        columns = [self._column(frame, call) for call in found]
        return transform_columns(value, lambda one: columns[one.index])

    def reads_snapshot(self, node: Any) -> bool:
        """Whether a call reads all rows that are valid at an instant, and not those of a stream so far.

        Where a partition is of one instant, the rows of that instant are all there are.
        """
        if self._plan.is_chronon and tells_instant(self._keys(node), self._plan):
            return False
        if node.args.get("order") is not None:
            return not self._by_time(node)
        return node.args.get("spec") is None and _name(node.this) not in ("ROW_NUMBER", "LAG")

    def apply(self, position: Position) -> Plan:
        """The plan with one column more per function; the position is for errors.

        Raises:
            LanguageError: a frame of rows is put over rows that are valid for too many instants.
        """
        plan, width = self._plan, len(self._plan.schema)
        if any(isinstance(scope, Framed | BoundedFrame) for scope, _ in self.calls):
            plan = chronons(plan, position)
        rows = plan
        places: dict[int, int] = {}
        for together in self._together():
            for place, number in enumerate(together, len(plan.schema)):
                places[number] = place
            plan = _with_calls(plan, rows, list(together.values()))
        order = [*range(width), *(places[number] for number in range(len(self.calls)))]
        if order == list(range(len(plan.schema))):
            return plan
        return Project(plan, tuple((plan.schema[place].name, column(plan, place)) for place in order))

    def _together(self) -> list[dict[int, tuple[FrameScope, AggregateCall]]]:
        """The calls by number, those together that one node computes: of one partition, or of one scope."""
        groups: dict[object, dict[int, tuple[FrameScope, AggregateCall]]] = {}
        for number, (scope, call) in enumerate(self.calls):
            group = scope.keys if isinstance(scope, Framed) else scope
            groups.setdefault(group, {})[number] = scope, call
        return list(groups.values())

    def _column(self, scope: FrameScope, call: AggregateCall) -> Expression:
        place = len(self._plan.schema) + self.calls.number((scope, call))
        return Column(place, call.function.lower(), call.type)

    def _frame(self, node: Any) -> Whole | Framed | BoundedFrame | Ordered:
        if self._reads_content(node):
            return bind_ordered(node, self._keys(node), self._order(node))
        return bind_frame(node, self._plan, self._keys(node), self._ordered(node))

    def _reads_content(self, node: Any) -> bool:
        """Whether it puts rows that hold for a time in an order, which may be any."""
        return node.args.get("order") is not None and not self._plan.is_chronon

    def _place(self, node: Any, ranking: Ranking) -> Expression:
        """The place of a row: by time among the rows so far, by other orders among those of a snapshot."""
        name, position = ranking.value, position_of(node)
        if node.this.expressions:
            raise LanguageError(f"{name} takes no argument", position=position)
        _refuse_frame(node, name)
        keys, count = self._keys(node), resolve_aggregate("COUNT", None)
        if ranking is not Ranking.ROW_NUMBER:
            _require_order(node, name)
        if not self._by_time(node):
            return self._column(PlaceFrame(keys, self._order(node), ranking), count)
        self._ordered(node)
        match ranking:
            case Ranking.ROW_NUMBER:
                return self._column(Framed(keys, RowsFrame(None, 0)), count)
            case Ranking.RANK:
                frames = SO_FAR, RangeFrame(Duration(1))
                all_rows, now = (self._column(Framed(keys, frame), count) for frame in frames)
                before = functions.resolve("-", (all_rows, now))
                return functions.resolve("+", (before, functions.literal(1)))
            case Ranking.DENSE_RANK:
                (key,) = self._order(node)
                instants = resolve_aggregate("COUNT", key.expression, modifiers=Modifiers(distinct=True))
                return self._column(Framed(keys, SO_FAR), instants)
            case _:
                assert_never(ranking)

    def _end(self, node: Any, name: str) -> Expression:
        """The value in the first or the last row of the frame, as FIRST or LAST in the order of rows."""
        call, position = node.this, position_of(node)
        filtered = isinstance(call, exp.Filter)
        arguments = call.this.expressions if filtered else call.expressions
        if len(arguments) != 1:
            message = f"{name} takes 1 argument, not {len(arguments)}"
            raise LanguageError(message, position=position, hint=f"write {name}(x) OVER (ORDER BY ts)")
        _require_order(node, name)
        by_time, content = self._by_time(node), self._reads_content(node)
        plain = name == "FIRST_VALUE" and node.args.get("spec") is None
        if not by_time and not content and not plain:
            hint = "write FIRST_VALUE(x) OVER (PARTITION BY k ORDER BY y DESC), without a frame"
            raise LanguageError(f"{name} needs time order here", position=position, hint=hint)
        framed = by_time or (content and not plain)
        frame = self._frame(node) if framed else Whole(self._keys(node))
        columns = (SortKey(column(self._plan, place)) for place in range(len(self._plan.schema)))
        order: dict[Expression, SortKey] = {}
        for key in (*self._order(node), *columns):
            order.setdefault(key.expression, key)
        inner = self._inner(f"{name}(...)")
        condition = bind_scalar(call.expression, self._inner("FILTER")) if filtered else None
        with located(position):
            modifiers = Modifiers(order=tuple(order.values()), condition=condition)
            value = bind_scalar(arguments[0], inner)
            return self._column(
                frame, resolve_aggregate(name.removesuffix("_VALUE"), value, modifiers=modifiers)
            )

    def _lag(self, node: Any, name: str) -> Expression:
        """The value so many rows before or after, as the MAX over that one row."""
        arguments, position = node.this.expressions, position_of(node)
        _refuse_frame(node, name)
        content = self._reads_content(node)
        if name == "LEAD" and not content:
            raise LanguageError("LEAD is not supported", position=position, hint=_LEAD)
        if not content:
            self._ordered(node)
        if not 1 <= len(arguments) <= 3:
            hint = f"write {name}(x), {name}(x, 2) or {name}(x, 2, default)"
            raise LanguageError(
                f"{name} takes 1 to 3 arguments, not {len(arguments)}", position=position, hint=hint
            )
        back = whole_number(arguments[1], name) if len(arguments) > 1 else 1
        keys, place = self._keys(node), back if name == "LAG" else -back
        frame: FrameScope = Framed(keys, RowsFrame(back, back))
        if content:
            frame = Ordered(keys, self._order(node), Ranking.ROW_NUMBER, place, place)
        inner = self._inner(f"{name}(...)")
        with located(position):
            value = self._column(frame, resolve_aggregate("MAX", bind_scalar(arguments[0], inner)))
            if len(arguments) < 3:
                return value
            count = self._column(frame, resolve_aggregate("COUNT", None))
            missing = functions.resolve("=", (count, functions.literal(0)))
            return functions.make_case(((missing, bind_scalar(arguments[2], inner)),), value)

    def _inner(self, clause: str) -> Context:
        return replace(self._context, clause=clause, aggregates=None, over=None, nesting=None)

    def _order(self, node: Any) -> tuple[SortKey, ...]:
        context = self._inner("ORDER BY")
        return tuple(bind_sort_key(key, context) for key in node.args["order"].expressions)

    def _keys(self, node: Any) -> tuple[Expression, ...]:
        context = self._inner("PARTITION BY")
        parts = node.args.get("partition_by") or ()
        return tuple(dict.fromkeys(bind_scalar(part, context) for part in parts))

    def _by_time(self, node: Any) -> bool:
        """Whether rows are put in order by their time, or not at all."""
        order = node.args.get("order")
        if order is None:
            return True
        first, *others = order.expressions
        key = bind_scalar(first.this, self._inner("ORDER BY"))
        timed = is_own(key) and self._plan.is_chronon and key.index in exact_ages(self._plan)
        return timed and not others and not first.args.get("desc")

    def _ordered(self, node: Any) -> bool:
        """Whether the rows are put in order; the only order is that of time."""
        order = node.args.get("order")
        if order is None:
            return False
        if not self._by_time(node):
            names = [self._plan.schema[place].name for place in sorted(timestamp_columns(self._plan))]
            by_time = f"write ORDER BY {names[0]}, or" if names else "list the stream's timestamp, or"
            hint = f"{by_time} give the stream a window, whose rows have any order"
            place = position_of(order.expressions[0])
            raise LanguageError("OVER orders rows by their time", position=place, hint=hint)
        return True


def _with_calls(plan: Plan, rows: Plan, calls: list[tuple[FrameScope, AggregateCall]]) -> Plan:
    """The plan's rows, each with what some calls of one partition, or of one scope, say of it.

    Args:
        plan: the rows, with columns of other calls behind theirs.
        rows: the rows without them.
        calls: the calls.
    """
    first, _ = calls[0]
    if isinstance(first, BoundedFrame):
        return with_bounded(plan, rows, first, [call for _, call in calls])
    if not isinstance(first, Framed):
        return with_scope(plan, first, [call for _, call in calls])
    framed = [(scope.frame, call) for scope, call in calls if isinstance(scope, Framed)]
    return with_frames(plan, first.keys, framed)


def _name(call: Any) -> str:
    """The function's name; empty if it has no plain name. FILTER may follow FIRST_VALUE."""
    if isinstance(call, exp.Filter) and _name(call.this) in _ENDS:
        return _name(call.this)
    return str(call.name).upper() if isinstance(call, exp.Anonymous) else ""


def _refuse_frame(node: Any, name: str) -> None:
    if node.args.get("spec") is not None:
        raise LanguageError(f"{name} takes no frame", position=position_of(node), hint="leave it out")


def _require_order(node: Any, name: str) -> None:
    if node.args.get("order") is None:
        hint = f"write {name}({'x' if name in _ENDS else ''}) OVER (PARTITION BY k ORDER BY y)"
        raise LanguageError(f"{name} needs ORDER BY", position=position_of(node), hint=hint)

"""GROUP BY: expressions over the rows of FROM become expressions over the rows of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from headrace.algebra.nodes import AnyAggregate, Plan
from headrace.errors import LanguageError, Position
from headrace.expressions.aggregates.aggregates import OF_ARRAYS
from headrace.expressions.tree import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    Literals,
    children,
    expressions_of,
    transform_call,
    transform_columns,
    walk,
)
from headrace.language.binding.columns import (
    GroupPlace,
    InnerColumn,
    OuterColumn,
    SubqueryPlace,
    is_own,
    own_columns,
    places_in,
    reads_outer,
)
from headrace.language.binding.over.frames import Whole
from headrace.language.binding.over.plans import with_scope
from headrace.language.binding.scalars.context import located
from headrace.language.binding.selection.approximate import check_compared, groups_of
from headrace.language.binding.selection.select_list import Listed
from headrace.language.binding.subqueries.answers import extend
from headrace.language.binding.subqueries.questions import SubqueryPart, asked_of, change_part
from headrace.language.default_names import default_name
from headrace.language.dialect import position_of
from headrace.language.syntax import Scalar
from headrace.schema import Schema, check_column, unique_names


def regroup(
    expression: Expression, keys: Mapping[Expression, int], width: int, grouped: Schema
) -> Expression:
    """The expression over the row of a group: its keys, then its aggregates.

    Args:
        expression: over the rows of FROM, with aggregate k as column `width + k`.
        keys: what the query groups by, over the rows of FROM, with their places in the row of a group.
        width: the number of columns of FROM.
        grouped: the columns of a group's row.

    Raises:
        LanguageError: it reads a column that is neither grouped nor aggregated; without a position.
    """

    def over_group(part: Expression) -> Expression:
        if part in keys:
            return _column(keys[part])
        match part:
            case OuterColumn() | InnerColumn() | SubqueryPlace():
                return part
            case Column(index=index) if index >= width:
                return _column(len(keys) + index - width)
            case Column(name=name):
                raise LanguageError(
                    f"the column {name} is neither grouped nor aggregated",
                    hint=f"add {name} to GROUP BY, or aggregate it, such as MAX({name})",
                )
            case Literal() | Literals():
                return part
            case Call(arguments=arguments):
                return replace(part, arguments=tuple(over_group(below) for below in arguments))
            case Cast(argument=argument):
                return replace(part, argument=over_group(argument))
            case Case(branches=branches, otherwise=otherwise):
                changed = tuple((over_group(condition), over_group(value)) for condition, value in branches)
                return replace(part, branches=changed, otherwise=over_group(otherwise))
            case _:
                assert_never(part)

    def _column(index: int) -> Column:
        return Column(index, grouped[index].name, grouped[index].type)

    return over_group(expression)


def group(
    plan: Plan, listed: Listed, names: list[str], keys: Mapping[Expression, Scalar | None]
) -> AnyAggregate:
    """The aggregation; a key or aggregate that is in the SELECT list has its name from there."""
    aggregates, width = listed.aggregates, len(plan.schema)
    for key, node in keys.items():
        if node is not None:
            with located(position_of(node)):
                check_column(key.type)
    defaults = [key.name if isinstance(key, Column) else default_name(node) for key, node in keys.items()]
    defaults += [call.function.lower() for call in aggregates]
    places = [Column(width + index, call.function, call.type) for index, call in enumerate(aggregates)]
    first = {item.expression: name for item, name in reversed(list(zip(listed.items, names, strict=True)))}
    read = (*keys, *places)
    given = {place: first[part] for place, part in enumerate(read) if part in first}
    order = sorted(range(len(defaults)), key=lambda index: index not in given)
    unique = unique_names([given.get(index, defaults[index]) for index in order])
    chosen = [name for _, name in sorted(zip(order, unique, strict=True))]
    asked = [*keys, *(part for call in (*aggregates, *listed.groups) for part in expressions_of(call))]
    plan, computed = extend(plan, asked, listed.parts)
    over = dict(zip(asked, computed, strict=True))
    calls = [transform_call(call, over.__getitem__) for call in aggregates]
    if len(listed.groups):
        compared = [transform_call(call, over.__getitem__) for call in listed.groups]
        check_compared(aggregates, listed.groups)
        plan, calls = _beside_groups(plan, computed[: len(keys)], compared, calls)
    key_items = tuple(zip(chosen[: len(keys)], computed[: len(keys)], strict=True))
    written = _written(listed, width)
    return groups_of(plan, key_items, tuple(zip(chosen[len(keys) :], calls, strict=True)), written)


def _written(listed: Listed, width: int) -> dict[int, str]:
    """The functions that are made of another aggregate, such as of ARRAY_AGG, by its place."""
    asked = [item.expression for item in listed.items]
    asked += [] if listed.having is None else [listed.having]
    columns = [part for one in asked for part in walk(one) if isinstance(part, Column)]
    return {
        column.index - width: column.name.upper()
        for column in columns
        if column.index >= width and column.name.upper() in OF_ARRAYS
    }


def _beside_groups(
    plan: Plan, keys: Sequence[Expression], compared: Sequence[AggregateCall], calls: Sequence[AggregateCall]
) -> tuple[Plan, list[AggregateCall]]:
    """The rows, each with the aggregates of its group that it is compared with, and the calls over them."""
    width = len(plan.schema)
    plan = with_scope(plan, Whole(tuple(keys)), compared)

    def placed(part: Column) -> Expression:
        if not isinstance(part, GroupPlace):
            return part
        place = width + part.index
        return Column(place, plan.schema[place].name, part.type)

    changed = [transform_call(call, lambda part: transform_columns(part, placed)) for call in calls]
    return plan, changed


def regroup_parts(
    parts: Sequence[SubqueryPart], expressions: Iterable[Expression], over: Callable[[Expression], Expression]
) -> list[SubqueryPart]:
    """What the subqueries ask that expressions over groups read; the others are asked before grouping.

    Args:
        parts: what they ask, by place, over the rows of FROM.
        expressions: over the rows of groups.
        over: makes an expression over rows one over groups.

    Raises:
        LanguageError: one reads a column that is neither grouped nor aggregated; without a position.
    """
    changed = list(parts)
    done: set[int] = set()
    ahead = frozenset[int]().union(*map(places_in, expressions))
    while ahead:
        for place in ahead:
            changed[place] = change_part(parts[place], over)
        done |= ahead
        ahead = frozenset[int]().union(
            *(places_in(part) for place in ahead for part in asked_of(changed[place]))
        )
        ahead -= done
    return changed


def refuse_outer_aggregates(listed: Listed, position: Position, ties: int) -> None:
    """Refuse an aggregate of the row around the query alone.

    Raises:
        LanguageError: there is such an aggregate.
    """
    for call in listed.aggregates:
        parts = (part for whole in expressions_of(call) for part in walk(whole))
        columns = {part for part in parts if isinstance(part, Column)}
        around = (isinstance(part, OuterColumn) or (is_own(part) and part.index < ties) for part in columns)
        if columns and all(around):
            hint = "aggregate columns of the subquery's own FROM"
            message = "an aggregate reads columns of the outer query only"
            raise LanguageError(message, position=position, hint=hint)


def groups_read_outer(listed: Listed) -> bool:
    """Whether a key or an aggregate reads the row around the query."""
    asked = (*listed.keys, *(part for call in listed.aggregates for part in expressions_of(call)))
    return any(map(reads_outer, asked))


def keyed(
    conditions: Iterable[tuple[Expression, Expression]], keys: Mapping[Expression, Scalar | None]
) -> tuple[tuple[Expression, ...], Mapping[Expression, Scalar | None]]:
    """The conditions on the row around the query over the groups, and the keys with what it is to equal.

    Args:
        conditions: equalities, each with the side that is not of the row around the query.
        keys: what the query groups by.
    """
    extended = dict(keys)
    changed = []
    for condition, inner in conditions:
        extended.setdefault(inner, None)
        name = inner.name if isinstance(inner, Column) else "key"
        key = Column(list(extended).index(inner), name, inner.type)
        sides = [key if side == inner else side for side in children(condition)]
        changed.append(Call("=", tuple(sides), condition.type))
    return tuple(changed), extended


def inner_side(condition: Expression) -> Expression | None:
    """What the row around a query is to be equal to; None where the condition is another one."""
    match condition:
        case Call(function="=", arguments=(one, other)) if reads_outer(one) != reads_outer(other):
            inner, outer = (other, one) if reads_outer(one) else (one, other)
            if not own_columns(outer):
                return inner
    return None

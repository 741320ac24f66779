"""SELECT over the rows of FROM: WHERE, GROUP BY, HAVING, the SELECT list and DISTINCT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.algebra.nodes import Aggregate, Distinct, Filter, Plan, Project
from headrace.errors import LanguageError, Position
from headrace.expressions.tree import AggregateCall, Column, Expression, columns_of
from headrace.language.cursor import position_of
from headrace.language.grouping import regroup
from headrace.language.scalars import Context, bind_scalar, default_name, located
from headrace.language.scope import Scope
from headrace.language.syntax import Scalar, ScalarItem, SelectQuery, StarItem
from headrace.schema import unique_names


@dataclass(frozen=True)
class Item:
    """A column of the SELECT list: `named` if the text gives its name, which then no other may take."""

    name: str
    named: bool
    expression: Expression
    position: Position
    node: Scalar | None


def bind_selection(query: SelectQuery, plan: Plan, scope: Scope) -> Plan:
    """The plan of a SELECT whose FROM is bound.

    Raises:
        LanguageError: an unknown name, a wrong type, or a column that is neither grouped nor aggregated.
    """
    if query.where is not None:
        aliases = (item.alias for item in query.items if isinstance(item, ScalarItem))
        listed = frozenset(alias.text.lower() for alias in aliases if alias is not None)
        predicate = bind_scalar(query.where, Context(scope, "WHERE", listed=listed))
        plan = _filter(plan, query.where, predicate)
    width = len(plan.schema)
    aggregates: list[AggregateCall] = []
    items = _items(query, Context(scope, "SELECT", width, aggregates))
    keys = {_key(node, items, Context(scope, "GROUP BY", width)): node for node in query.group_by}
    having = None
    if query.having is not None:
        context = Context(scope, "HAVING", width, aggregates, _aliases(items), tuple(keys))
        having = bind_scalar(query.having, context)
        if not keys and not aggregates:
            hint = "write WHERE, or add GROUP BY"
            raise LanguageError("HAVING without groups", position=position_of(query.having), hint=hint)
    names = _names(items)
    expressions = [item.expression for item in items]
    if keys or aggregates:
        grouped = _group(plan, items, names, keys, aggregates)
        plan = grouped if query.emit is None else _emit_empty(grouped, query.emit)
        for index, item in enumerate(items):
            with located(item.position):
                expressions[index] = regroup(item.expression, tuple(keys), width, plan.schema)
        if query.having is not None and having is not None:
            with located(position_of(query.having)):
                condition = regroup(having, tuple(keys), width, plan.schema)
            plan = _filter(plan, query.having, condition)
    elif query.emit is not None:
        hint = "leave it out; only an aggregate has an answer about nothing"
        raise LanguageError("EMIT EMPTY without aggregates", position=query.emit, hint=hint)
    plan = project(plan, tuple(zip(names, expressions, strict=True)))
    return Distinct(plan) if query.distinct else plan


def _emit_empty(plan: Aggregate, position: Position) -> Aggregate:
    if plan.keys:
        hint = "leave one of them out; a group without rows is not known to be there"
        raise LanguageError("EMIT EMPTY cannot stand beside GROUP BY", position=position, hint=hint)
    return replace(plan, emit_empty=True)


def project(plan: Plan, items: tuple[tuple[str, Expression], ...]) -> Plan:
    """A Project, unless it would change nothing."""
    same = [isinstance(part, Column) and part.index == index for index, (_, part) in enumerate(items)]
    if all(same) and tuple(name for name, _ in items) == plan.schema.names:
        return plan
    return Project(plan, items)


def _filter(plan: Plan, node: Scalar, predicate: Expression) -> Plan:
    with located(position_of(node)):
        return Filter(plan, predicate)


def _items(query: SelectQuery, context: Context) -> list[Item]:
    items = []
    for item in query.items:
        match item:
            case StarItem(table=None, position=position):
                columns = context.scope.all_columns()
                items += [Item(name, False, column, position, None) for name, column in columns]
            case StarItem(table=table, position=position):
                assert table is not None
                columns = context.scope.table(table).columns
                items += [Item(name, False, column, position, None) for name, column in columns]
            case ScalarItem(expression=node, alias=alias, position=position):
                bound = bind_scalar(node, context)
                if alias is not None:
                    name = alias.text
                else:
                    name = bound.name if isinstance(bound, Column) else default_name(node)
                items.append(Item(name, alias is not None, bound, position, node))
    return items


def _names(items: list[Item]) -> list[str]:
    """Different names for all columns; those that the text gives are given out first."""
    order = sorted(range(len(items)), key=lambda index: not items[index].named)
    unique = unique_names([items[index].name for index in order])
    by_place = dict(zip(order, unique, strict=True))
    return [by_place[index] for index in range(len(items))]


def _aliases(items: list[Item]) -> dict[str, Expression]:
    return {item.name.lower(): item.expression for item in reversed(items) if item.named}


def _key(node: Scalar, items: list[Item], context: Context) -> Expression:
    """What one part of GROUP BY means: a column, an alias, an expression or a place in the SELECT list."""
    position = position_of(node)
    if isinstance(node, exp.Literal) and not node.is_string:
        place = int(node.this) if str(node.this).isdecimal() else 0
        if not 1 <= place <= len(items):
            hint = f"write a place from 1 to {len(items)}, or a column"
            raise LanguageError(f"there is no column {node.this} in SELECT", position=position, hint=hint)
        key = items[place - 1].expression
    else:
        aliases = _aliases(items)
        key = bind_scalar(node, Context(context.scope, "GROUP BY", context.width, aliases=aliases))
    if any(index >= context.width for index in columns_of(key)):
        hint = "group by columns, and filter groups with HAVING"
        raise LanguageError("GROUP BY cannot hold an aggregate", position=position, hint=hint)
    return key


def _group(
    plan: Plan,
    items: list[Item],
    names: list[str],
    keys: Mapping[Expression, Scalar],
    aggregates: list[AggregateCall],
) -> Aggregate:
    """The aggregation; a key or aggregate that stands in the SELECT list has its name from there."""
    width = len(plan.schema)
    defaults = [key.name if isinstance(key, Column) else default_name(node) for key, node in keys.items()]
    defaults += [call.function.lower() for call in aggregates]
    places = [Column(width + index, call.function, call.type) for index, call in enumerate(aggregates)]
    listed: dict[int, str] = {}
    for index, expression in enumerate((*keys, *places)):
        found = (name for item, name in zip(items, names, strict=True) if item.expression == expression)
        name = next(found, None)
        if name is not None:
            listed[index] = name
    order = sorted(range(len(defaults)), key=lambda index: index not in listed)
    unique = unique_names([listed.get(index, defaults[index]) for index in order])
    chosen = [name for _, name in sorted(zip(order, unique, strict=True))]
    key_items = tuple(zip(chosen[: len(keys)], keys, strict=True))
    return Aggregate(plan, key_items, tuple(zip(chosen[len(keys) :], aggregates, strict=True)))

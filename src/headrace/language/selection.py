"""SELECT over the rows of FROM: WHERE, GROUP BY, HAVING, the SELECT list and DISTINCT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from headrace.algebra.checks import require_boolean
from headrace.algebra.nodes import Aggregate, Distinct, Filter, Plan, Project, column
from headrace.algebra.predicates import conjuncts
from headrace.algebra.properties import has_one_row
from headrace.errors import LanguageError, Position
from headrace.expressions import functions
from headrace.expressions.tree import AggregateCall, Call, Column, Expression, columns_of, expressions_of
from headrace.language.cursor import position_of
from headrace.language.grouping import regroup
from headrace.language.nesting import (
    Inner,
    Nesting,
    Part,
    change_part,
    extend,
    keep,
    places_in,
    reads_outer,
)
from headrace.language.over import OverCalls
from headrace.language.scalars import Context, bind_scalar, default_name, located
from headrace.language.scope import OUTER, Scope
from headrace.language.syntax import Query, Scalar, ScalarItem, SelectQuery, StarItem
from headrace.schema import unique_names


@dataclass(frozen=True)
class Item:
    """A column of the SELECT list: `named` if the text gives its name, which then no other may take."""

    name: str
    named: bool
    expression: Expression
    position: Position
    node: Scalar | None


@dataclass(frozen=True)
class Block:
    """A SELECT, bound up to its list.

    Attributes:
        plan: the rows of FROM, or of the groups, that WHERE and HAVING leave.
        items: the names and expressions of the SELECT list.
        conditions: of a subquery, the conditions that read the row around it.
        keys: how many columns of a group's row the text groups by; None without groups.
        counts: the columns of a group's row that are counts.
        having: whether groups were left out.
    """

    plan: Plan
    items: tuple[tuple[str, Expression], ...]
    conditions: tuple[Expression, ...]
    keys: int | None
    counts: frozenset[int]
    having: bool


Nest = Callable[[Query, Plan, Scope], Inner]
"""Binds a subquery over the rows around it."""


def bind_selection(query: SelectQuery, plan: Plan, scope: Scope, nest: Nest) -> Plan:
    """The plan of a SELECT whose FROM is bound.

    Raises:
        LanguageError: an unknown name, a wrong type, or a column that is neither grouped nor aggregated.
    """
    block = bind_block(query, plan, scope, nest)
    plan = project(block.plan, block.items)
    return Distinct(plan) if query.distinct else plan


def bind_block(query: SelectQuery, plan: Plan, scope: Scope, nest: Nest) -> Block:
    """A SELECT without its projection; the conditions of a subquery on the row around it are kept apart.

    Raises:
        LanguageError: an unknown name, a wrong type, or a column that is neither grouped nor aggregated.
    """
    conditions: tuple[Expression, ...] = ()
    if query.where is not None:
        plan, conditions = _where(query, query.where, plan, scope, nest)
    nesting = Nesting(lambda inner: nest(inner, plan, scope))
    listed = _listed(query, plan, scope, nesting)
    grouped = bool(listed.keys or listed.aggregates)
    if listed.windows.calls:
        plan = _with_windows(listed.windows, query, grouped=grouped, correlated=bool(conditions))
    if grouped:
        return _grouped(query, plan, conditions, listed)
    if query.having is not None:
        hint = "write WHERE, or add GROUP BY"
        raise LanguageError("HAVING without groups", position=position_of(query.having), hint=hint)
    if query.emit is not None:
        hint = "leave it out; only an aggregate has an answer about nothing"
        raise LanguageError("EMIT EMPTY without aggregates", position=query.emit, hint=hint)
    plan, expressions = extend(plan, [item.expression for item in listed.items], nesting.parts)
    items = tuple(zip(_names(listed.items), expressions, strict=True))
    return Block(plan, items, conditions, None, frozenset(), False)


@dataclass(frozen=True)
class _Listed:
    """The SELECT list, GROUP BY and HAVING over the rows of FROM, aggregates as columns behind them."""

    items: list[Item]
    keys: Mapping[Expression, Scalar]
    having: Expression | None
    aggregates: list[AggregateCall]
    parts: list[Part]
    windows: OverCalls


def _listed(query: SelectQuery, plan: Plan, scope: Scope, nesting: Nesting) -> _Listed:
    width = len(plan.schema)
    aggregates: list[AggregateCall] = []
    context = Context(scope, "SELECT", width, aggregates, nesting=nesting)
    windows = OverCalls(plan, context)
    items = _items(query, replace(context, over=windows.bind))
    keys = {_key(node, items, Context(scope, "GROUP BY", width)): node for node in query.group_by}
    having = None
    if query.having is not None:
        context = Context(scope, "HAVING", width, aggregates, _aliases(items), tuple(keys), nesting=nesting)
        having = bind_scalar(query.having, context)
    return _Listed(items, keys, having, aggregates, nesting.parts, windows)


def _grouped(query: SelectQuery, rows: Plan, conditions: tuple[Expression, ...], listed: _Listed) -> Block:
    """The block whose rows are groups."""
    _refuse_outer(listed.aggregates, query.position)
    conditions, keys = _correlated_keys(conditions, listed.keys, query)
    names = _names(listed.items)
    groups = _group(rows, listed.items, names, keys, listed.aggregates)
    plan: Plan = groups if query.emit is None else _emit_empty(groups, query.emit)
    over = partial(regroup, keys=tuple(keys), width=len(rows.schema), grouped=plan.schema)
    expressions = []
    for item in listed.items:
        with located(item.position):
            expressions.append(over(item.expression))
    with located(query.position):
        parts = [change_part(part, over) for part in listed.parts]
    if query.having is not None and listed.having is not None:
        with located(position_of(query.having)):
            plan, more = _kept(plan, over(listed.having), parts)
        conditions = (*conditions, *more)
    plan, expressions = extend(plan, expressions, parts)
    counts = (place for place, call in enumerate(listed.aggregates, len(keys)) if call.function == "COUNT")
    items = tuple(zip(names, expressions, strict=True))
    return Block(plan, items, conditions, len(listed.keys), frozenset(counts), listed.having is not None)


def _with_windows(windows: OverCalls, query: SelectQuery, grouped: bool, correlated: bool) -> Plan:
    """The rows with the columns of the window functions of a SELECT list."""
    if grouped or correlated:
        what = "an aggregation" if grouped else "a condition on the rows around the subquery"
        hint = "compute one of them in a subquery in FROM"
        raise LanguageError(f"OVER cannot stand beside {what}", position=query.position, hint=hint)
    with located(query.position):
        return windows.apply(query.position)


def inner_of(block: Block) -> Inner:
    """A block as a subquery."""
    plan, items = block.plan, block.items
    if block.keys == 0 and not block.having:
        return Inner(plan, block.conditions, items, True, block.counts)
    if not block.conditions and has_one_row(plan):
        # A value that does not come from a column must be NULL, too, where there is no row.
        plan = project(plan, items)
        items = tuple((name, column(plan, place)) for place, (name, _) in enumerate(items))
        return Inner(plan, (), items, True)
    tied = frozenset[int]().union(*map(_tied, block.conditions))
    if block.keys is None or not tied or not set(range(block.keys)) <= tied:
        return Inner(plan, block.conditions, items, False)
    # What is tied to the row around the query by an equality is not NULL where there is a row.
    there = functions.resolve("IS NOT NULL", (column(plan, min(tied)),))
    valued = tuple((name, functions.make_case(((there, item),), None)) for name, item in items)
    return Inner(plan, block.conditions, valued, True)


def _tied(condition: Expression) -> frozenset[int]:
    """The column that a condition makes equal to something of the row around the query."""
    match condition:
        case Call(function="=", arguments=(Column(index=index), other)) if index < OUTER and reads_outer(
            other
        ):
            return frozenset([index])
        case _:
            return frozenset()


def _where(
    query: SelectQuery, where: Scalar, plan: Plan, scope: Scope, nest: Nest
) -> tuple[Plan, tuple[Expression, ...]]:
    aliases = (item.alias for item in query.items if isinstance(item, ScalarItem))
    listed = frozenset(alias.text.lower() for alias in aliases if alias is not None)
    nesting = Nesting(lambda inner: nest(inner, plan, scope))
    predicate = bind_scalar(where, Context(scope, "WHERE", listed=listed, nesting=nesting))
    with located(position_of(where)):
        return _kept(plan, predicate, nesting.parts)


def _kept(plan: Plan, predicate: Expression, parts: Sequence[Part]) -> tuple[Plan, tuple[Expression, ...]]:
    """The rows for which a condition is true, and its conjuncts on the row around the query."""
    outer = tuple(part for part in conjuncts(predicate) if reads_outer(part))
    if not outer and not parts:
        return Filter(plan, predicate), ()
    if any(places_in(part) for part in outer):
        hint = "compare with the outer query in a condition of its own, connected by AND"
        raise LanguageError("a subquery and a column of the outer query stand in one condition", hint=hint)
    require_boolean(predicate, "a condition")
    return keep(plan, [part for part in conjuncts(predicate) if part not in outer], parts), outer


def _correlated_keys(
    conditions: tuple[Expression, ...], keys: Mapping[Expression, Scalar], query: SelectQuery
) -> tuple[tuple[Expression, ...], dict[Expression, Scalar]]:
    """The keys with what the row around the query is to be equal to, and the conditions over the groups."""
    extended = dict(keys)
    changed = []
    for condition in conditions:
        match condition:
            case Call(function="=", arguments=(one, other)) if reads_outer(one) != reads_outer(other):
                inner, outer = (other, one) if reads_outer(one) else (one, other)
            case _:
                inner, outer = condition, condition
        if inner is condition or not all(index >= OUTER for index in columns_of(outer)):
            assert query.where is not None
            raise LanguageError(
                "a subquery that aggregates is tied to the outer query by equalities only",
                position=position_of(query.where),
                hint="write inner = outer, or join in FROM and group by the outer columns",
            )
        assert query.where is not None
        extended.setdefault(inner, query.where)
        place = list(extended).index(inner)
        name = inner.name if isinstance(inner, Column) else "key"
        changed.append(Call("=", (Column(place, name, inner.type), outer), condition.type))
    return tuple(changed), extended


def _refuse_outer(aggregates: Sequence[AggregateCall], position: Position) -> None:
    if any(reads_outer(part) for call in aggregates for part in expressions_of(call)):
        hint = "aggregate columns of the subquery's own FROM"
        raise LanguageError("an aggregate reads a column of the outer query", position=position, hint=hint)


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

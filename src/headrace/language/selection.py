"""SELECT over the rows of FROM: WHERE, GROUP BY, HAVING, the SELECT list and DISTINCT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from sqlglot import exp

from headrace.algebra.checks import require_boolean
from headrace.algebra.nodes import Aggregate, Distinct, Filter, Plan, Project, column
from headrace.algebra.nulls import null_safe_equalities
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.algebra.properties import has_one_row
from headrace.errors import LanguageError, Position
from headrace.expressions import functions
from headrace.expressions.tree import (
    AggregateCall,
    Call,
    Column,
    Expression,
    children,
    columns_of,
    expressions_of,
    transform_columns,
)
from headrace.language.cursor import position_of
from headrace.language.dialect import Nested
from headrace.language.grouping import regroup
from headrace.language.nesting import (
    EntangledError,
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
from headrace.language.unnesting import equal_to_ties, without_values
from headrace.schema import BOOLEAN, unique_names


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
        plan: the rows of FROM, or of the groups, that WHERE and HAVING leave; ties come first.
        items: the names and expressions of the SELECT list.
        conditions: of a subquery, the conditions that read the row around it.
        single: whether there is one row at most, for each row of ties.
        counts: the columns that are counts and 0, not NULL, where there is no row; None if there are no such,
            since a row may have been left out.
    """

    plan: Plan
    items: tuple[tuple[str, Expression], ...]
    conditions: tuple[Expression, ...] = ()
    single: bool = False
    counts: frozenset[int] | None = None


Nest = Callable[[Query, Plan, Scope], Inner]
"""Binds a subquery over the rows around it."""


def bind_selection(query: SelectQuery, plan: Plan, scope: Scope, nest: Nest, ties: int = 0) -> Plan:
    """The plan of a SELECT whose FROM is bound; ties stand before the columns of its list.

    Raises:
        LanguageError: an unknown name, a wrong type, or a column that is neither grouped nor aggregated.
    """
    block = bind_block(query, plan, scope, nest, ties)
    names = unique_names([*(name for name, _ in block.items), *block.plan.schema.names[:ties]])
    tied = [(names[place - ties], column(block.plan, place)) for place in range(ties)]
    plan = project(block.plan, (*tied, *block.items))
    return Distinct(plan) if query.distinct else plan


def bind_block(query: SelectQuery, plan: Plan, scope: Scope, nest: Nest, ties: int = 0) -> Block:
    """A SELECT without its projection; the conditions of a subquery on the row around it are kept apart.

    Args:
        query: the SELECT.
        plan: its FROM.
        scope: what its names stand for.
        nest: binds the subqueries in it.
        ties: how many columns in front hold what it reads of the rows around it. The query is answered for
            each of their values.

    Raises:
        LanguageError: an unknown name, a wrong type, or a column that is neither grouped nor aggregated.
        EntangledError: it reads the row around it elsewhere than in conditions that can be kept apart.
    """
    kept = _where(query, plan, scope, nest, ties)
    plan = kept.plan
    nesting = Nesting(lambda inner: nest(inner, kept.rows, scope))
    listed = _listed(query, plan, scope, nesting)
    grouped = bool(listed.keys or listed.aggregates)
    if listed.windows.calls:
        plan = _with_windows(listed.windows, query, grouped=grouped, correlated=bool(kept.conditions or ties))
    if grouped:
        return _grouped(query, kept, listed, ties)
    if query.having is not None:
        hint = "write WHERE, or add GROUP BY"
        raise LanguageError("HAVING without groups", position=position_of(query.having), hint=hint)
    if query.emit is not None:
        hint = "leave it out; only an aggregate has an answer about nothing"
        raise LanguageError("EMIT EMPTY without aggregates", position=query.emit, hint=hint)
    plan, expressions = extend(plan, [item.expression for item in listed.items], nesting.parts)
    items = tuple(zip(_names(listed.items), expressions, strict=True))
    return Block(plan, items, kept.conditions)


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


def _grouped(query: SelectQuery, rows: _Rows, listed: _Listed, ties: int) -> Block:
    """The block whose rows are groups."""
    _check_outer(listed, query.position, ties)
    tied = dict[Expression, Scalar | None]((column(rows.plan, place), None) for place in range(ties))
    conditions, keys = _keyed(rows.conditions, {**tied, **listed.keys})
    names = _names(listed.items)
    groups = _group(rows.plan, listed.items, names, keys, listed.aggregates)
    plan: Plan = groups if query.emit is None else _emit_empty(groups, query.emit, ties)
    over = partial(regroup, keys=tuple(keys), width=len(rows.plan.schema), grouped=plan.schema)
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
    bare = not listed.keys and query.having is None
    items = tuple(zip(names, expressions, strict=True))
    single = set(listed.keys) <= {*tied, *rows.tied, *map(_inner_side, rows.conditions)}
    return Block(plan, items, conditions, single, frozenset(counts) if bare else None)


def _with_windows(windows: OverCalls, query: SelectQuery, grouped: bool, correlated: bool) -> Plan:
    """The rows with the columns of the window functions of a SELECT list."""
    if grouped or correlated:
        what = "an aggregation" if grouped else "a condition on the rows around the subquery"
        hint = "compute one of them in a subquery in FROM"
        raise LanguageError(f"OVER cannot stand beside {what}", position=query.position, hint=hint)
    with located(query.position):
        return windows.apply(query.position)


def inner_of(block: Block, ties: Sequence[Column] = ()) -> Inner:
    """A block as a subquery.

    Args:
        block: the bound SELECT.
        ties: what the columns in front of its plan are equal to, of the row around it.

    Raises:
        EntangledError: where it has no row its value is NULL, but not what it reads of the row around it.
    """
    plan, items = block.plan, block.items
    equal = (functions.resolve("=", pair) for pair in null_safe_equalities(ties, plan))
    conditions = (*equal, *block.conditions)
    if block.counts is not None:
        # Where there is no row, what the list reads of the row around it is still known.
        valued = tuple((name, transform_columns(item, partial(_untied, ties=ties))) for name, item in items)
        return Inner(plan, conditions, valued, True, block.counts)
    if not block.single and not has_one_row(plan, frozenset(range(len(ties)))):
        return Inner(plan, conditions, items, False)
    if any(reads_outer(item) for _, item in items):
        raise EntangledError
    # A value that does not come from a column must be NULL, too, where there is no row.
    same = [(name, column(plan, place)) for place, name in enumerate(plan.schema.names) if conditions]
    every = [*same, *items]
    names = unique_names([name for name, _ in every])
    plan = project(plan, tuple((name, part) for name, (_, part) in zip(names, every, strict=True)))
    valued = tuple((name, column(plan, place)) for place, (name, _) in enumerate(items, len(same)))
    return Inner(plan, conditions, valued, True)


def _untied(part: Column, ties: Sequence[Column]) -> Column:
    return ties[part.index] if part.index < len(ties) else part


@dataclass(frozen=True)
class _Rows:
    """The rows of FROM that WHERE leaves.

    Attributes:
        plan: the rows, whatever conjuncts on the row around the query say of them.
        rows: these and those that only conditions with subqueries leave out, in a plan without their joins.
        conditions: the conjuncts on the row around the query.
        tied: expressions that are equal to ties.
    """

    plan: Plan
    rows: Plan
    conditions: tuple[Expression, ...] = ()
    tied: frozenset[Expression] = frozenset()


def _where(query: SelectQuery, plan: Plan, scope: Scope, nest: Nest, ties: int) -> _Rows:
    where = query.where
    if where is None:
        return _Rows(plan, plan)
    aliases = (item.alias for item in query.items if isinstance(item, ScalarItem))
    listed = frozenset(alias.text.lower() for alias in aliases if alias is not None)
    context = Context(scope, "WHERE", listed=listed)
    nodes = _conjunct_nodes(where)
    bound = {id(node): bind_scalar(node, context) for node in nodes if not node.find(Nested)}
    plain = [part for whole in bound.values() for part in conjuncts(whole) if part.type == BOOLEAN]
    equals = equal_to_ties(plain, ties)
    plan, change = without_values(plan, equals, ties)
    # Subqueries are asked about the rows only that the other conditions leave.
    left = conjunction(change(part) for part in plain if not reads_outer(part))
    rows = plan if left is None else Filter(plan, left)
    nesting = Nesting(lambda inner: nest(inner, rows, scope))
    nested = replace(context, nesting=nesting)
    parts = [bound.get(id(node)) or bind_scalar(node, nested) for node in nodes]
    with located(position_of(where)):
        predicate = reduce(lambda one, other: functions.resolve("AND", (one, other)), parts)
        plan, conditions = _kept(plan, change(predicate), nesting.parts)
    return _Rows(plan, rows, conditions, frozenset(other for _, other in equals.values()))


def _conjunct_nodes(node: Scalar) -> list[Scalar]:
    """The parts of a condition that AND connects."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        return [*_conjunct_nodes(node.this), *_conjunct_nodes(node.expression)]
    return [node]


def _kept(plan: Plan, predicate: Expression, parts: Sequence[Part]) -> tuple[Plan, tuple[Expression, ...]]:
    """The rows for which a condition is true, and its conjuncts on the row around the query."""
    outer = tuple(part for part in conjuncts(predicate) if reads_outer(part))
    if not outer and not parts:
        return Filter(plan, predicate), ()
    if any(places_in(part) for part in outer):
        raise EntangledError
    require_boolean(predicate, "a condition")
    return keep(plan, [part for part in conjuncts(predicate) if part not in outer], parts), outer


def _check_outer(listed: _Listed, position: Position, ties: int) -> None:
    """Refuse an aggregate of the row around the query alone; see whether groups can do without that row."""
    read = [[columns_of(part) for part in expressions_of(call)] for call in listed.aggregates]
    for columns in (frozenset[int]().union(*parts) for parts in read):
        if columns and all(index < ties or index >= OUTER for index in columns):
            hint = "aggregate columns of the subquery's own FROM"
            message = "an aggregate reads columns of the outer query only"
            raise LanguageError(message, position=position, hint=hint)
        if any(index >= OUTER for index in columns):
            raise EntangledError
    if any(map(reads_outer, listed.keys)):
        raise EntangledError


def _keyed(
    conditions: tuple[Expression, ...], keys: Mapping[Expression, Scalar | None]
) -> tuple[tuple[Expression, ...], Mapping[Expression, Scalar | None]]:
    """The keys with what the row around the query is to be equal to, and the conditions over the groups."""
    extended = dict(keys)
    changed = []
    for condition in conditions:
        inner = _inner_side(condition)
        extended.setdefault(inner, None)
        name = inner.name if isinstance(inner, Column) else "key"
        key = Column(list(extended).index(inner), name, inner.type)
        sides = [key if side == inner else side for side in children(condition)]
        changed.append(Call("=", tuple(sides), condition.type))
    return tuple(changed), extended


def _inner_side(condition: Expression) -> Expression:
    """What the row around a query is to be equal to.

    Raises:
        EntangledError: the condition is another one.
    """
    match condition:
        case Call(function="=", arguments=(one, other)) if reads_outer(one) != reads_outer(other):
            inner, outer = (other, one) if reads_outer(one) else (one, other)
            if min(columns_of(outer)) >= OUTER:
                return inner
    raise EntangledError


def _emit_empty(plan: Aggregate, position: Position, ties: int) -> Aggregate:
    if ties:
        hint = "leave it out; where there is nothing a count is 0 and other values are NULL"
        what = "a subquery that reads the rows around it"
        raise LanguageError(f"EMIT EMPTY cannot stand in {what}", position=position, hint=hint)
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
    keys: Mapping[Expression, Scalar | None],
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

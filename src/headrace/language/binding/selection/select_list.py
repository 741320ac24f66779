"""The SELECT list with GROUP BY and HAVING: what they mean over the rows of FROM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.algebra.nodes import Plan
from headrace.errors import LanguageError, Position
from headrace.expressions.tree import AggregateCall, Column, Expression
from headrace.language.binding.columns import own_columns
from headrace.language.binding.over.calls import OverCalls
from headrace.language.binding.scalars.collected import Collected
from headrace.language.binding.scalars.context import Context
from headrace.language.binding.scalars.hints import check_listed
from headrace.language.binding.scalars.scalars import bind_condition, bind_scalar
from headrace.language.binding.scope import Scope
from headrace.language.binding.subqueries.questions import Nesting, SubqueryPart
from headrace.language.default_names import default_name
from headrace.language.dialect import position_of
from headrace.language.syntax import Scalar, ScalarItem, SelectQuery, StarItem
from headrace.schema import unique_names
from headrace.suggestions import did_you_mean


@dataclass(frozen=True)
class Item:
    """A column of the SELECT list: `named` if the text gives its name, which then no other may take."""

    name: str
    named: bool
    expression: Expression
    position: Position
    node: Scalar | None


@dataclass(frozen=True)
class Listed:
    """The SELECT list, GROUP BY and HAVING over the rows of FROM, aggregates as columns after them.

    The aggregates that conditions of FILTER compare the rows of a group with are in `groups`.
    """

    items: list[Item]
    keys: Mapping[Expression, Scalar]
    having: Expression | None
    aggregates: Collected[AggregateCall]
    groups: Collected[AggregateCall]
    parts: list[SubqueryPart]
    windows: OverCalls


def bind_list(query: SelectQuery, plan: Plan, scope: Scope, nesting: Nesting) -> Listed:
    """What is in a SELECT's list, GROUP BY and HAVING.

    Args:
        query: the SELECT.
        plan: the rows of its FROM.
        scope: what its names stand for.
        nesting: collects the subqueries.

    Raises:
        LanguageError: an unknown name, a wrong type, or something that is not allowed there.
    """
    width = len(plan.schema)
    aggregates, groups = Collected[AggregateCall](), Collected[AggregateCall]()
    aliases = (item.alias for item in query.items if isinstance(item, ScalarItem))
    named = frozenset(alias.text.lower() for alias in aliases if alias is not None)
    context = Context(scope, "SELECT", width, aggregates, groups, listed=named, nesting=nesting)
    windows = OverCalls(plan, context)
    items = _items(query, replace(context, over=windows.bind))
    context = Context(scope, "GROUP BY", width, aliases=_aliases(items), nesting=nesting)
    keys = {_key(node, items, context): node for node in query.group_by}
    having = None
    if query.having is not None:
        context = Context(
            scope, "HAVING", width, aggregates, groups, _aliases(items), tuple(keys), nesting=nesting
        )
        having = bind_condition(query.having, context)
    return Listed(items, keys, having, aggregates, groups, nesting.parts, windows)


def _items(query: SelectQuery, context: Context) -> list[Item]:
    items = []
    for item in query.items:
        match item:
            case StarItem():
                items += _star(item, context)
            case ScalarItem(expression=node, alias=alias, position=position):
                bound = bind_scalar(node, context)
                check_listed(node, bound.type, position)
                if alias is not None:
                    name = alias.text
                else:
                    name = bound.name if isinstance(bound, Column) else default_name(node)
                items.append(Item(name, alias is not None, bound, position, node))
    return items


def _star(item: StarItem, context: Context) -> list[Item]:
    """The columns of `*` or `table.*`, but for those of EXCEPT, and with others in the place of some."""
    scope = context.scope
    columns = scope.all_columns() if item.table is None else scope.table(item.table).columns
    known = [name for name, _ in columns]
    changed = (*item.without, *(name for name, _ in item.replaced))
    for given in changed:
        if given.text.lower() not in map(str.lower, known):
            hint = did_you_mean(given.text, known) or f"the columns are {', '.join(dict.fromkeys(known))}"
            raise LanguageError(f"* has no column {given.text}", position=given.position, hint=hint)
    if len({name.text.lower() for name in changed}) < len(changed):
        raise LanguageError("* is without a column twice", position=item.position, hint="name each once")
    without = {name.text.lower() for name in item.without}
    nodes = {name.text.lower(): node for name, node in item.replaced}
    items = []
    for name, column in columns:
        if name.lower() in nodes:
            node = nodes[name.lower()]
            bound = bind_scalar(node, context)
            check_listed(node, bound.type, item.position)
            items.append(Item(name, False, bound, position_of(node), node))
        elif name.lower() not in without:
            items.append(Item(name, False, column, item.position, None))
    if not items:
        raise LanguageError("* EXCEPT leaves no column", position=item.position, hint="keep at least one")
    return items


def names_of(items: list[Item]) -> list[str]:
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
        key = bind_scalar(node, context)
    if any(index >= context.width for index in own_columns(key)):
        hint = "group by columns, and filter groups with HAVING"
        raise LanguageError("GROUP BY cannot hold an aggregate", position=position, hint=hint)
    return key

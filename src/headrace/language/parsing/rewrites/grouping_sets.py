"""GROUPING SETS, ROLLUP and CUBE, as the union of one SELECT for each set.

Before: `SELECT item, SUM(price), GROUPING(item) FROM bid [RANGE 1 HOUR] GROUP BY ROLLUP (item)`. After:
`SELECT item, SUM(price), 0 FROM bid [RANGE 1 HOUR] GROUP BY item UNION ALL SELECT NULL, SUM(price), 1 FROM
bid [RANGE 1 HOUR]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from typing import Any, Final

from sqlglot import exp

from headrace.errors import LanguageError
from headrace.language.dialect import position_of
from headrace.language.parsing.rewrites.rewrite import (
    aggregates_in,
    constant_node,
    is_aggregate_call,
    placed,
    rewritten,
    rewritten_items,
    same_text,
)
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import (
    DerivedTable,
    Name,
    QuerySyntax,
    Scalar,
    ScalarItem,
    SelectItem,
    SelectQuery,
    StarItem,
    UnionQuery,
)

Sets = tuple[tuple[Scalar, ...], ...]
"""The keys of each grouping."""

MAX_SETS: Final = 64
"""How many groupings a query may have."""

_KINDS: Final = ("GROUPING SETS", "ROLLUP", "CUBE")
_CALLS: Final = ("GROUPING", "GROUPING_ID")


def parse_grouping(cursor: Cursor) -> Sets:
    """Read what follows GROUP BY: one set of keys, or those that GROUPING SETS, ROLLUP and CUBE mean.

    Raises:
        LanguageError: a part is malformed, or there are too many sets.
    """
    position = cursor.position
    parts = [_part(cursor, "the expression after GROUP BY")]
    while cursor.accept(","):
        parts.append(_part(cursor, "the expression to group by"))
    for kind in ("ROLLUP", "CUBE"):
        if cursor.accept("WITH", kind):
            parts = [_sets_of(kind, [one for part in parts for one in part])]
    if all(len(part) == 1 for part in parts):
        return (tuple(key for ((*keys,),) in parts for key in keys),)
    count = 1
    for part in parts:
        count *= len(part)
    if count > MAX_SETS:
        hint = "list the ones that are needed: GROUP BY GROUPING SETS ((a, b), (a), ())"
        raise LanguageError(f"GROUP BY has {count} sets, more than {MAX_SETS}", position=position, hint=hint)
    return tuple(_joined(sets) for sets in product(*parts))


def with_grouping_sets(
    query: SelectQuery, sets: Sets, each: Callable[[SelectQuery], SelectQuery]
) -> QuerySyntax:
    """The union of a SELECT for each set.

    Args:
        query: the SELECT, without its GROUP BY.
        sets: the keys of each grouping.
        each: what else is rewritten in each of them.

    Raises:
        LanguageError: a clause cannot be in such a query, or a key is an alias.
    """
    if len(sets) == 1:
        return each(replace(query, group_by=sets[0]))
    for found in query.items:
        if isinstance(found, ScalarItem) and found.expression.find(exp.Window):
            raise LanguageError(
                "OVER cannot be used with several sets in GROUP BY",
                position=found.position,
                hint="compute the groups in a subquery in FROM",
            )
    if query.emit is not None:
        raise LanguageError("EMIT EMPTY cannot follow several sets in GROUP BY", position=query.emit)
    keys = _joined(sets)
    for key in keys:
        _refuse_alias(key, query.items)
    named = replace(query, items=tuple(map(_named, query.items)), distinct=False)
    parts = tuple(each(_grouped(named, keys, chosen)) for chosen in sets)
    union = UnionQuery(parts, query.position)
    if not query.distinct:
        return union
    table = DerivedTable(union, None, None, query.position)
    star = StarItem(None, query.position)
    return SelectQuery((star,), True, (table,), None, (), None, None, query.position)


def _part(cursor: Cursor, what: str) -> Sets:
    kind = cursor.word()
    if kind not in _KINDS or cursor.word(1) != "(":
        return ((cursor.scalar(what),),)
    cursor.index += 2
    inner = [_element(cursor, kind)]
    while cursor.accept(","):
        inner.append(_element(cursor, kind))
    cursor.expect(")", f"to close {kind}")
    return _sets_of(kind, [one for sets in inner for one in sets])


def _element(cursor: Cursor, kind: str) -> Sets:
    """`a`, `(a, b)` or `()`; within GROUPING SETS also ROLLUP and CUBE."""
    if cursor.word() in _KINDS and kind == "GROUPING SETS":
        return _part(cursor, "a set of keys")
    if cursor.accept("(", ")"):
        return ((),)
    node: Any = cursor.scalar("a key")
    if isinstance(node, exp.Tuple):
        return (tuple(node.expressions),)
    return ((node.this if isinstance(node, exp.Paren) else node,),)


def _sets_of(kind: str, parts: list[tuple[Scalar, ...]]) -> Sets:
    match kind:
        case "ROLLUP":
            return tuple(_joined(parts[:count]) for count in range(len(parts), -1, -1))
        case "CUBE":
            counts = range(len(parts), -1, -1)
            return tuple(_joined(chosen) for count in counts for chosen in combinations(parts, count))
        case _:
            return tuple(parts)


def _joined(parts: Any) -> tuple[Scalar, ...]:
    """The keys of several sets, each once."""
    keys: list[Scalar] = []
    for part in parts:
        keys += [key for key in part if not any(same_text(key, known) for known in keys)]
    return tuple(keys)


def _grouped(query: SelectQuery, keys: tuple[Scalar, ...], chosen: tuple[Scalar, ...]) -> SelectQuery:
    """The SELECT of one set, in which the other keys are NULL."""
    missing = [key for key in keys if not any(same_text(key, one) for one in chosen)]

    def change(node: Any) -> Any:
        if isinstance(node, exp.Anonymous) and str(node.name).upper() in _CALLS:
            return _mask(node, keys, missing)
        if is_aggregate_call(node):
            # A copy is not looked into: what is aggregated is there in all rows.
            return node.copy()
        absent = any(same_text(node, key) for key in missing)
        return constant_node(None, position_of(node)) if absent else node

    items = rewritten_items(query.items, change)
    having = query.having and rewritten(query.having, change)
    read = [item.expression for item in items if isinstance(item, ScalarItem)]
    counted = any(map(aggregates_in, [*read, having] if having is not None else read))
    if not (chosen or counted):
        # Without keys and aggregates there is one group all the same.
        having = _with_rows(having, query)
    return replace(query, items=items, having=having, group_by=chosen)


def _with_rows(having: Scalar | None, query: SelectQuery) -> Scalar:
    """The condition of HAVING, and that there is a row."""
    place = query.position
    count = placed(exp.Anonymous(this="COUNT", expressions=[placed(exp.Star(), place)]), place)
    rows = placed(exp.GT(this=count, expression=constant_node(0, place)), place)
    return rows if having is None else placed(exp.And(this=having, expression=rows), place)


def _mask(node: Any, keys: tuple[Scalar, ...], missing: list[Scalar]) -> Scalar:
    """The value of GROUPING: a bit for each argument, which is 1 where it is not grouped by."""
    position, mask = position_of(node), 0
    for part in node.expressions or keys:
        if not any(same_text(part, key) for key in keys):
            raise LanguageError(
                "GROUPING takes keys of GROUP BY", position=position, hint="write GROUPING(key)"
            )
        mask = 2 * mask + any(same_text(part, key) for key in missing)
    return placed(constant_node(mask, position), position)


def _named(item: SelectItem) -> SelectItem:
    """A column with its name, which the NULL in its place would not have."""
    if not isinstance(item, ScalarItem) or item.alias or not isinstance(item.expression, exp.Column):
        return item
    return replace(item, alias=Name(str(item.expression.name), item.position))


def _refuse_alias(key: Any, items: tuple[SelectItem, ...]) -> None:
    """Refuse a key of which the text alone does not say what it is."""
    position = position_of(key)
    if isinstance(key, exp.Literal):
        raise LanguageError(
            "sets of keys take columns and expressions", position=position, hint="write the column's name"
        )
    for item in items:
        if not isinstance(item, ScalarItem) or item.alias is None or not isinstance(key, exp.Column):
            continue
        alias = item.alias.text.lower() == str(key.name).lower() and not key.args.get("table")
        if alias and not (isinstance(item.expression, exp.Column) and item.expression.name == key.name):
            raise LanguageError(
                f"{key.name} is an alias; sets of keys take columns and expressions",
                position=position,
                hint="repeat the expression there, or name it in a subquery in FROM",
            )

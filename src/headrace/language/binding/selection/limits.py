"""`ORDER BY ... LIMIT k [OFFSET n]` after a query: the first rows of every snapshot."""

from __future__ import annotations

from collections.abc import Callable

from headrace.algebra.kinds import Ranking
from headrace.algebra.nodes import Filter, Plan, Project, TopK, column, project
from headrace.algebra.predicates import conjunction
from headrace.errors import LanguageError, Position
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Expression, SortKey
from headrace.language.binding.scalars.context import located
from headrace.language.binding.sort_keys import hidden_keys, is_name, is_number, with_hidden
from headrace.language.dialect import position_of
from headrace.language.syntax import QuerySyntax, Scalar, SelectQuery, TopQuery
from headrace.schema import UNKNOWN, unique_names


def bind_limits(query: TopQuery, bind: Callable[[QuerySyntax], Plan], ties: int = 0) -> Plan:
    """The plan of the first rows; what they are sorted by and the SELECT list leaves out is left out again.

    Args:
        query: the clauses and the query that they follow.
        bind: binds that query.
        ties: how many tie columns precede its own; each of their values has its own first rows.

    Raises:
        LanguageError: a sort key that is not a column of the query, or cannot be computed.
    """
    inner = query.query
    hidden: list[Scalar] = []
    if isinstance(inner, SelectQuery) and not inner.distinct:
        hidden = hidden_keys(inner, query.order)
        inner = with_hidden(inner, hidden)
    plan = bind(inner)
    width = len(plan.schema) - len(hidden)
    places = {id(node): width + number for number, node in enumerate(hidden)}
    found = [places.get(id(key.expression)) for key in query.order]
    chosen = [
        _place(key.expression, plan, range(ties, width)) if place is None else place
        for key, place in zip(query.order, found, strict=True)
    ]
    plan, chosen = _without_twins(plan, width, chosen)
    keys = tuple(
        SortKey(column(plan, place), key.descending, key.nulls_first)
        for place, key in zip(chosen, query.order, strict=True)
        if plan.schema[place].type != UNKNOWN
    )
    ranking = Ranking.RANK if query.with_ties else Ranking.ROW_NUMBER
    with located(query.position):
        top = (
            _first_of_each(plan, ties, keys, query, ranking)
            if ties
            else TopK(plan, (), keys, query.limit, query.offset, ranking=ranking)
        )
    return project(top, tuple((top.schema[place].name, column(top, place)) for place in range(width)))


def _first_of_each(
    plan: Plan, ties: int, keys: tuple[SortKey, ...], query: TopQuery, ranking: Ranking
) -> Plan:
    """The first rows for each value of the ties, as ROW_NUMBER or RANK and a condition on it say it."""
    tied = tuple(column(plan, place) for place in range(ties))
    names = unique_names([*plan.schema.names, "count"])
    numbered = TopK(plan, tied, keys or (SortKey(column(plan, ties)),), number=names[-1], ranking=ranking)
    number = column(numbered, len(names) - 1)
    last = None if query.limit is None else literal(query.offset + query.limit)
    bounds = [] if last is None else [resolve("<=", (number, last))]
    if query.offset:
        bounds.append(resolve(">", (number, literal(query.offset))))
    among = conjunction(bounds)
    return numbered if among is None else Filter(numbered, among)


def _place(node: Scalar, plan: Plan, places: range) -> int:
    """The place of a column of the result, whose columns are at these places."""
    position: Position = position_of(node)
    if is_number(node):
        place = int(node.name) if str(node.name).isdecimal() else 0
        if not 1 <= place <= len(places):
            hint = f"write a place from 1 to {len(places)}, or a column"
            raise LanguageError(f"there is no column {node.name} in SELECT", position=position, hint=hint)
        return places[place - 1]
    listed = plan.schema.select(tuple(places))
    found = listed.find(str(node.name)) if is_name(node) else None
    if found is None:
        hint = f"the columns are {', '.join(listed.names)}; sort by others in a subquery in FROM"
        raise LanguageError("ORDER BY takes columns of the result here", position=position, hint=hint)
    return places[found]


def _without_twins(plan: Plan, width: int, places: list[int]) -> tuple[Plan, list[int]]:
    """The plan without hidden columns that are the same as others before them."""
    if not isinstance(plan, Project) or len(plan.schema) == width:
        return plan, places
    first: dict[Expression, int] = {}
    items: list[tuple[str, Expression]] = []
    moved: list[int] = []
    for number, (name, expression) in enumerate(plan.items):
        if number < width or expression not in first:
            first.setdefault(expression, len(items))
            items.append((name, expression))
            moved.append(len(items) - 1)
        else:
            moved.append(first[expression])
    return project(plan.input, tuple(items)), [moved[place] for place in places]

"""SELECT over the rows of FROM: WHERE, GROUP BY, HAVING, the SELECT list and DISTINCT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Final

from headrace.algebra.checks import require_boolean
from headrace.algebra.nodes import (
    AnyAggregate,
    ApproximateAggregate,
    Distinct,
    Filter,
    Plan,
    column,
    instant_type,
    project,
)
from headrace.algebra.nulls import null_safe_equalities
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.algebra.properties import has_one_row
from headrace.algebra.streams import as_events, is_stream, reads_all_rows, so_far
from headrace.errors import LanguageError
from headrace.expressions.aggregates.functions import function_of
from headrace.expressions.functions import functions
from headrace.expressions.tree import (
    Column,
    Expression,
    transform_columns,
)
from headrace.language.binding.ages import tells_instant
from headrace.language.binding.columns import is_own, places_in, reads_outer
from headrace.language.binding.over.calls import OverCalls
from headrace.language.binding.scalars.context import Context, located
from headrace.language.binding.scalars.scalars import bind_condition, bind_scalar
from headrace.language.binding.scope import Scope
from headrace.language.binding.selection.approximate import place_of_bound
from headrace.language.binding.selection.empty_row import (
    emit_empty,
    holds_of_nothing,
    is_never_empty,
    with_empty_row,
)
from headrace.language.binding.selection.grouping import (
    group,
    groups_read_outer,
    inner_side,
    keyed,
    refuse_outer_aggregates,
    regroup,
    regroup_parts,
)
from headrace.language.binding.selection.select_list import Listed, bind_list, names_of
from headrace.language.binding.subqueries.answers import extend, keep
from headrace.language.binding.subqueries.predicates import parts_asking, parts_of
from headrace.language.binding.subqueries.questions import Inner, Nest, Nesting, SubqueryPart, are_of_outer
from headrace.language.binding.subqueries.ties import equal_to_ties, without_values
from headrace.language.dialect import Nested, position_of
from headrace.language.references import writes_window
from headrace.language.syntax import Scalar, ScalarItem, SelectQuery
from headrace.schema import BOOLEAN, unique_names


@dataclass(frozen=True)
class BoundSelect:
    """A SELECT, bound up to its list.

    Attributes:
        plan: the rows of FROM, or of the groups, that WHERE and HAVING leave; ties come first.
        items: the names and expressions of the SELECT list.
        conditions: of a subquery, the conditions that read the row around it.
        single: whether there is one row at most, for each row of ties.
        counts: the columns that are counts and 0, not NULL, where there is no row; None if there are none,
            since a row may have been left out.
    """

    plan: Plan
    items: tuple[tuple[str, Expression], ...]
    conditions: tuple[Expression, ...] = ()
    single: bool = False
    counts: frozenset[int] | None = None


_OF_TIES: Final = "what it reads of the row around it are columns of its own"


def bind_selection(
    query: SelectQuery, plan: Plan, scope: Scope, nest: Nest, ties: int = 0, *, of_nothing: bool = False
) -> Plan:
    """The plan of a SELECT whose FROM is bound; ties precede the columns of its list.

    Args:
        query: the SELECT.
        plan: its FROM.
        scope: what its names stand for.
        nest: binds the subqueries in it.
        ties: how many columns in front hold what it reads of the rows around it.
        of_nothing: whether an aggregate of all rows so far has a row even where there are none.

    Raises:
        LanguageError: an unknown name, a wrong type, or a column that is neither grouped nor aggregated.
    """
    block = _block(query, plan, scope, nest, ties, of_nothing=of_nothing)
    assert block is not None, _OF_TIES
    names = unique_names([*(name for name, _ in block.items), *block.plan.schema.names[:ties]])
    tied = [(names[place - ties], column(block.plan, place)) for place in range(ties)]
    plan = project(block.plan, (*tied, *block.items))
    if not query.distinct:
        return plan
    exact = tells_instant((column(plan, place) for place in range(len(plan.schema))), plan)
    return Distinct(plan if exact else so_far(plan))


def bind_tied(query: SelectQuery, plan: Plan, scope: Scope, nest: Nest, ties: int) -> BoundSelect:
    """A SELECT without its projection, which reads nothing of the row around it but the ties.

    Args:
        query: the SELECT.
        plan: its FROM.
        scope: what its names stand for.
        nest: binds the subqueries in it.
        ties: how many columns in front hold what it reads of the rows around it. The query is answered for
            each of their values.

    Raises:
        LanguageError: an unknown name, a wrong type, or a column that is neither grouped nor aggregated.
    """
    block = _block(query, plan, scope, nest, ties)
    assert block is not None, _OF_TIES
    return block


def bind_moved_out(query: SelectQuery, plan: Plan, scope: Scope, nest: Nest) -> Inner | None:
    """A SELECT as a subquery whose conditions on the row around it, if any, are moved out of it.

    Returns:
        None if it reads the row around it elsewhere than in conditions that can be moved out.

    Raises:
        LanguageError: an unknown name, a wrong type, or a column that is neither grouped nor aggregated.
    """
    block = _block(query, plan, scope, nest, 0)
    if block is None:
        return None
    # Where it has no row its value is NULL, but not what it reads of the row around it.
    outer = any(reads_outer(item) for _, item in block.items)
    return None if outer and block.counts is None and _is_single(block, 0) else inner_of(block)


def _block(
    query: SelectQuery, plan: Plan, scope: Scope, nest: Nest, ties: int, *, of_nothing: bool = False
) -> BoundSelect | None:
    """A SELECT whose conditions on the row around it are kept apart, or None where that cannot be."""
    if query.distinct_on:
        raise LanguageError(
            "DISTINCT ON keeps the first row of each key, and there is no ORDER BY",
            position=position_of(query.distinct_on[0]),
            hint="write SELECT DISTINCT ON (k) ... ORDER BY k, ts DESC for the latest row of each k",
        )
    kept = _where(query, plan, scope, nest, ties)
    if kept is None:
        return None
    plan = kept.plan
    nesting = Nesting(lambda inner: nest(inner, kept.rows, scope))
    listed = bind_list(query, plan, scope, nesting)
    grouped = bool(listed.keys or listed.aggregates)
    if listed.windows.calls:
        plan = _with_windows(listed.windows, query, grouped=grouped, correlated=bool(kept.conditions or ties))
    if grouped:
        return _grouped(query, kept, listed, ties, of_nothing=of_nothing and not ties)
    if query.having is not None:
        hint = "write WHERE, or add GROUP BY"
        raise LanguageError("HAVING without groups", position=position_of(query.having), hint=hint)
    if query.emit is not None:
        hint = "leave it out; only an aggregate has an answer about nothing"
        raise LanguageError("EMIT EMPTY without aggregates", position=query.emit, hint=hint)
    if are_of_outer(nesting.parts):
        return None
    plan, expressions = extend(plan, [item.expression for item in listed.items], nesting.parts)
    items = tuple(zip(names_of(listed.items), expressions, strict=True))
    return BoundSelect(plan, items, kept.conditions)


def _grouped(
    query: SelectQuery, rows: _Rows, listed: Listed, ties: int, *, of_nothing: bool
) -> BoundSelect | None:
    """The block whose rows are groups."""
    refuse_outer_aggregates(listed, query.position, ties)
    tied = dict[Expression, Scalar | None]((column(rows.plan, place), None) for place in range(ties))
    if is_stream(rows.plan) and not tells_instant((*tied, *listed.keys), rows.plan):
        rows = replace(rows, plan=so_far(rows.plan), rows=so_far(rows.rows))
    equals = [
        (condition, inner) for condition in rows.conditions if (inner := inner_side(condition)) is not None
    ]
    if len(equals) < len(rows.conditions) or groups_read_outer(listed) or are_of_outer(listed.parts):
        return None
    conditions, keys = keyed(equals, {**tied, **listed.keys})
    names = names_of(listed.items)
    with located(place_of_bound(query)):
        groups = group(rows.plan, listed, names, keys)
    places = {key: place for place, key in enumerate(keys)}
    over = partial(regroup, keys=places, width=len(rows.plan.schema), grouped=groups.schema)
    expressions = []
    for item in listed.items:
        with located(item.position):
            expressions.append(over(item.expression))
    having: Expression | None = None
    if query.having is not None and listed.having is not None:
        with located(position_of(query.having)):
            having = over(listed.having)
    plan = _answered(groups, having, query, ties, of_nothing=of_nothing)
    with located(query.position):
        read = expressions if having is None else [*expressions, having]
        parts = regroup_parts(listed.parts, read, over)
    if query.having is not None and having is not None:
        with located(position_of(query.having)):
            filtered = _kept(plan, having, parts)
        if filtered is None:
            return None
        plan, conditions = filtered[0], (*conditions, *filtered[1])
    plan, expressions = extend(plan, expressions, parts)
    calls = enumerate(listed.aggregates, len(keys))
    counts = (place for place, call in calls if function_of(call).of_nothing == 0)
    bare = not listed.keys and query.having is None
    items = tuple(zip(names, expressions, strict=True))
    single = set(listed.keys) <= {*tied, *rows.tied, *(inner for _, inner in equals)}
    return BoundSelect(plan, items, conditions, single, frozenset(counts) if bare else None)


def _answered(
    groups: AnyAggregate, having: Expression | None, query: SelectQuery, ties: int, *, of_nothing: bool
) -> Plan:
    """The groups, and their row where there is nothing to aggregate, if that is asked for.

    HAVING asks for it if it holds of that row. Else one is there only where all rows so far are looked at.
    """
    if isinstance(groups, ApproximateAggregate):
        if query.emit is not None:
            hint = "leave one of them out; where there is no row, no window has any"
            raise LanguageError(
                "EMIT EMPTY cannot be used with approximate aggregates", position=query.emit, hint=hint
            )
        return groups
    if query.emit is not None:
        return emit_empty(groups, query.emit, ties)
    if of_nothing and not groups.keys and not is_never_empty(groups.input):
        asked = having is not None and holds_of_nothing(groups, having)
        if asked or (reads_all_rows(groups.input) and not writes_window(query)):
            return with_empty_row(groups)
    return as_events(groups)


def _with_windows(windows: OverCalls, query: SelectQuery, grouped: bool, correlated: bool) -> Plan:
    """The rows with the columns of the window functions of a SELECT list."""
    if grouped or correlated:
        what = "an aggregation" if grouped else "a condition on the rows around the subquery"
        hint = "compute one of them in a subquery in FROM"
        raise LanguageError(f"OVER cannot be used with {what}", position=query.position, hint=hint)
    with located(query.position):
        return windows.apply(query.position)


def inner_of(block: BoundSelect, ties: Sequence[Column] = ()) -> Inner:
    """A block as a subquery.

    Args:
        block: the bound SELECT.
        ties: what the columns in front of its plan are equal to, of the row around it.
    """
    plan, items = block.plan, block.items
    equal = (functions.resolve("=", pair) for pair in null_safe_equalities(ties, plan))
    conditions = (*equal, *block.conditions)
    if block.counts is not None:
        # Where there is no row, what the list reads of the row around it is still known.
        valued = tuple((name, transform_columns(item, partial(_untied, ties=ties))) for name, item in items)
        return Inner(plan, conditions, valued, True, block.counts)
    if not _is_single(block, len(ties)):
        return Inner(plan, conditions, items, False)
    # A value that does not come from a column must be NULL, too, where there is no row.
    same = [(name, column(plan, place)) for place, name in enumerate(plan.schema.names) if conditions]
    every = [*same, *items]
    names = unique_names([name for name, _ in every])
    plan = project(plan, tuple((name, part) for name, (_, part) in zip(names, every, strict=True)))
    valued = tuple((name, column(plan, place)) for place, (name, _) in enumerate(items, len(same)))
    return Inner(plan, conditions, valued, True)


def _is_single(block: BoundSelect, ties: int) -> bool:
    """Whether there is one row at most for each row around."""
    return block.single or has_one_row(block.plan, frozenset(range(ties)))


def _untied(part: Column, ties: Sequence[Column]) -> Column:
    return ties[part.index] if is_own(part) and part.index < len(ties) else part


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


def _where(query: SelectQuery, plan: Plan, scope: Scope, nest: Nest, ties: int) -> _Rows | None:
    """The rows that WHERE leaves; None if its conditions on the row around the query cannot be kept apart."""
    where = query.where
    if where is None:
        return _Rows(plan, plan)
    aliases = (item.alias for item in query.items if isinstance(item, ScalarItem))
    listed = frozenset(alias.text.lower() for alias in aliases if alias is not None)
    context = Context(scope, "WHERE", listed=listed)
    met = {part for table in scope.tables for part in table.met}
    nodes = parts_asking(where)
    if met:
        present = Column(0, "now", instant_type(plan))
        for part in parts_of(where):
            # For its names: the window of the table that it is about makes it true.
            _ = id(part) in met and bind_scalar(part, replace(context, now=present))
        nodes = [part for part in parts_of(where) if id(part) not in met]
    if not nodes:
        return _Rows(plan, plan)
    bound = {id(node): bind_condition(node, context) for node in nodes if not node.find(Nested)}
    plain = [part for whole in bound.values() for part in conjuncts(whole) if part.type == BOOLEAN]
    equals = equal_to_ties(plain, ties)
    plan, change = without_values(plan, equals, ties)
    # Subqueries are asked about the rows only that the other conditions leave.
    left = conjunction(change(part) for part in plain if not reads_outer(part))
    rows = plan if left is None else Filter(plan, left)
    nesting = Nesting(lambda inner: nest(inner, rows, scope))
    nested = replace(context, nesting=nesting)
    parts = [bound.get(id(node)) or bind_condition(node, nested) for node in nodes]
    with located(position_of(where)):
        predicate = reduce(lambda one, other: functions.resolve("AND", (one, other)), parts)
        kept = _kept(plan, change(predicate), nesting.parts)
    return kept and _Rows(kept[0], rows, kept[1], frozenset(other for _, other in equals.values()))


def _kept(
    plan: Plan, predicate: Expression, parts: Sequence[SubqueryPart]
) -> tuple[Plan, tuple[Expression, ...]] | None:
    """The rows for which a condition is true, and its conjuncts on the row around the query.

    None where a subquery is in one of these, or what is asked of a subquery is of that row.
    """
    outer = tuple(part for part in conjuncts(predicate) if reads_outer(part))
    if not outer and not parts:
        return Filter(plan, predicate), ()
    if any(map(places_in, outer)) or are_of_outer(parts):
        return None
    require_boolean(predicate, "a condition")
    return keep(plan, [part for part in conjuncts(predicate) if part not in outer], parts), outer

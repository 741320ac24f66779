"""Joins in FROM: pairs of rows, what their columns are called, and what ON and USING ask of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from headrace.algebra.checks import require_boolean
from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import Join, OuterJoin, Plan, Project, SemiJoin, Union, column
from headrace.algebra.nulls import null_safe_equalities
from headrace.algebra.predicates import Equality, conjunction, conjuncts, split_equalities
from headrace.algebra.streams import as_stream, is_stream, of_instants, so_far
from headrace.errors import LanguageError, Position
from headrace.expressions.functions import functions
from headrace.expressions.tree import Call, Expression, Literal, shift_columns
from headrace.language.binding.columns import own_columns
from headrace.language.binding.related import related
from headrace.language.binding.scalars.context import Context, located
from headrace.language.binding.scalars.scalars import bind_condition
from headrace.language.binding.scope import BoundTable, Outer, Scope, ScopeTable, check_domains
from headrace.language.binding.subqueries.answers import keep
from headrace.language.binding.subqueries.predicates import parts_asking, parts_of
from headrace.language.binding.subqueries.questions import Nest, Nesting, asked_of
from headrace.language.binding.tables.interval_joins import are_close, conditions_on
from headrace.language.dialect import Nested, position_of
from headrace.language.syntax import JoinedTable, Name, NamedTable, Scalar
from headrace.schema import BOOLEAN, unique_names


def product(left: BoundTable, right: BoundTable, position: Position) -> BoundTable:
    """All pairs; the right columns follow the left ones."""
    check_domains(left.plan, right.plan, position)
    aliases = {table.alias.lower() for table in left.scope.tables if table.alias}
    for table in right.scope.tables:
        if table.alias and table.alias.lower() in aliases:
            message = f"{table.alias} is in FROM twice"
            raise LanguageError(message, position=position, hint="give one of them another alias")
    width = len(left.plan.schema)
    moved = right.scope.shifted(width)
    tables = (*left.scope.tables, *moved.tables)
    names = tuple(unique_names([name for table in tables for name, _ in table.columns]))
    merged = left.scope.merged | moved.merged
    order = tuple(column.index for scope in (left.scope, moved) for _, column in scope.all_columns())
    plan = Join(left.plan, right.plan, (), None, names)
    return BoundTable(plan, Scope(tables, merged, order, functions=left.scope.functions))


def crossed(
    left: BoundTable, right: BoundTable, position: Position, where: Sequence[Scalar], *, by_instant: bool
) -> BoundTable:
    """The pairs of two tables that a comma separates; where WHERE says that they are close in time, those.

    Args:
        left, right: the tables.
        position: where the right one is.
        where: the conditions of WHERE, which hold for all pairs in the end.
        by_instant: whether streams meet at each instant alone, unless conditions say that they are close.

    Raises:
        LanguageError: a table is in FROM twice.
    """
    pairs = product(left, right, position)
    conditions = [part for node in where for part in conditions_on(node, pairs.scope)]

    def met(kind: JoinKind, one: Plan, other: Plan, swapped: bool) -> Plan:
        return product(replace(left, plan=one), replace(right, plan=other), position).plan

    if is_stream(left.plan) or is_stream(right.plan):
        return replace(pairs, plan=related(JoinKind.INNER, left.plan, right.plan, conditions, met))
    if not by_instant or not are_close(left.plan, right.plan, pairs.scope, where):
        return pairs
    sides = as_stream(left.plan), as_stream(right.plan)
    return replace(pairs, plan=of_instants(related(JoinKind.INNER, *sides, conditions, met)))


def join(
    item: JoinedTable,
    left: BoundTable,
    right: BoundTable,
    nest: Nest,
    outer: Outer | None = None,
    where: Sequence[Scalar] = (),
    *,
    by_instant: bool,
) -> BoundTable:
    """The join that a JOIN with ON or USING asks for; without either it is CROSS JOIN.

    Args:
        item: the join.
        left, right: what it joins.
        nest: binds the subqueries in its condition.
        outer: what is around a subquery whose FROM contains the join.
        where: conditions of WHERE, which hold for all pairs in the end.
        by_instant: whether streams meet at each instant alone, unless conditions say that they are close.

    Raises:
        LanguageError: an unknown name, a wrong type, or a table that is in FROM twice.
    """
    on = [] if item.condition is None else parts_of(item.condition)
    nodes = [*on, *(where if item.kind is JoinKind.INNER else ())]
    if looks_up(item):
        return _joined(item, left, right, nest, outer)
    if is_stream(left.plan) or is_stream(right.plan):
        if item.condition is not None and item.condition.find(Nested):
            left, right = (replace(side, plan=so_far(side.plan)) for side in (left, right))
            return _joined(item, left, right, nest, outer)
        return _of_streams(item, left, right, nest, outer, nodes)
    scope = product(left, right, item.position).scope
    if not by_instant or not are_close(left.plan, right.plan, scope, nodes):
        return _joined(item, left, right, nest, outer)
    left, right = (replace(side, plan=as_stream(side.plan)) for side in (left, right))
    found = _of_streams(item, left, right, nest, outer, nodes)
    return replace(found, plan=of_instants(found.plan))


def looks_up(item: JoinedTable) -> bool:
    """Whether each row of a stream is joined with what holds at its instant."""
    return item.as_of or (isinstance(item.right, NamedTable) and item.right.as_of is not None)


def _of_streams(
    item: JoinedTable,
    left: BoundTable,
    right: BoundTable,
    nest: Nest,
    outer: Outer | None,
    nodes: Sequence[Scalar],
) -> BoundTable:
    """A join of streams with all their rows so far, as far as its conditions ask for them."""
    scope = product(left, right, item.position).scope
    conditions = [part for node in nodes for part in conditions_on(node, scope)]
    for name in _common(item, left.scope, right.scope) if item.natural else item.using:
        one, other = left.scope.column(None, name), right.scope.column(None, name)
        conditions.append(Call("=", (one, shift_columns(other, len(left.plan.schema))), BOOLEAN))

    def joined(kind: JoinKind, one: Plan, other: Plan, swapped: bool) -> Plan:
        scopes = (right.scope, left.scope) if swapped else (left.scope, right.scope)
        sides = (BoundTable(one, scopes[0]), BoundTable(other, scopes[1]))
        plan = _joined(replace(item, kind=kind), *sides, nest, outer).plan
        return plan.input if isinstance(plan, Project) and item.condition is None else plan

    meant = _joined(item, left, right, nest, outer)
    plan = related(item.kind, left.plan, right.plan, conditions, joined)
    if isinstance(meant.plan, Project) and item.condition is None:
        # FULL JOIN USING has the columns of both sides as one.
        plan = Project(plan, meant.plan.items)
    return replace(meant, plan=plan)


def _joined(
    item: JoinedTable, left: BoundTable, right: BoundTable, nest: Nest, outer: Outer | None
) -> BoundTable:
    pairs = product(left, right, item.position)
    if item.condition is not None:
        pairs = replace(pairs, scope=replace(pairs.scope, outer=outer))
        return _joined_on(item.condition, item.kind, left, right, pairs, nest)
    using = _common(item, left.scope, right.scope) if item.natural else item.using
    columns = [(left.scope.column(None, name), right.scope.column(None, name), name) for name in using]
    equalities = tuple(_equal(*column) for column in columns)
    matched = _matched(item.kind, left, right, equalities, None, pairs)
    ours = [one.index for one, _, _ in columns]
    theirs = [other.index + len(left.plan.schema) for _, other, _ in columns]
    match item.kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            return matched
        case JoinKind.INNER | JoinKind.LEFT:
            return BoundTable(matched.plan, _merged(matched.scope, ours, theirs))
        case JoinKind.RIGHT:
            return BoundTable(matched.plan, _merged(matched.scope, theirs, ours))
        case JoinKind.FULL:
            hidden = BoundTable(matched.plan, _merged(matched.scope, [], [*ours, *theirs]))
            return _coalesced(hidden, equalities, using, len(left.plan.schema))
        case _:
            assert_never(item.kind)


def _merged(scope: Scope, first: Sequence[int], hidden: Sequence[int]) -> Scope:
    """A join's scope in which some columns come first, and those that are one with them are hidden."""
    moved = (*first, *hidden)
    order = (*first, *(place for place in scope.order if place not in moved))
    return replace(scope, merged=scope.merged | frozenset(hidden), order=order)


def _common(item: JoinedTable, left: Scope, right: Scope) -> tuple[Name, ...]:
    """The columns that both sides of a NATURAL JOIN have, in the order of the left one."""
    others = {name.lower() for name, _ in right.all_columns()}
    names = dict.fromkeys(name for name, _ in left.all_columns() if name.lower() in others)
    if not names:
        hint = "write CROSS JOIN for all pairs, or JOIN ... ON condition"
        message = "the sides of NATURAL JOIN have no column in common"
        raise LanguageError(message, position=item.position, hint=hint)
    return tuple(Name(name, item.position) for name in names)


def _joined_on(
    condition: Scalar, kind: JoinKind, left: BoundTable, right: BoundTable, pairs: BoundTable, nest: Nest
) -> BoundTable:
    """The join on a condition; what asks subqueries filters a side, or the pairs that match in the rest."""
    nodes = parts_asking(condition)
    plain, asking = ([node for node in nodes if bool(node.find(Nested)) is asks] for asks in (False, True))
    parts = _conditions(plain, Context(pairs.scope, "ON"))
    equalities, rest = split_equalities(parts, len(left.plan.schema))
    rights, asking = _of_right_side(
        asking, pairs, nest, range(len(left.plan.schema), len(pairs.plan.schema)), kind
    )
    with located(position_of(condition)):
        right = _filtered(rights, right, nest)
        if not asking:
            return _matched(kind, left, right, equalities, conjunction(rest), pairs)
        matched = _matched(JoinKind.INNER, left, right, equalities, conjunction(rest), pairs)
        kept = _filtered(asking, BoundTable(matched.plan, pairs.scope), nest)
        return _beside_pairs(kind, left, right, kept)


def _of_right_side(
    nodes: list[Scalar], pairs: BoundTable, nest: Nest, places: range, kind: JoinKind
) -> tuple[list[Scalar], list[Scalar]]:
    """The conditions on the right side alone, which may leave out its rows before, and the others."""
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        return [], nodes
    alone: list[Scalar] = []
    others: list[Scalar] = []
    for node in nodes:
        nesting = Nesting(lambda query: nest(query, pairs.plan, pairs.scope))
        bound = bind_condition(node, Context(pairs.scope, "ON", nesting=nesting))
        asked = (part for asking in nesting.parts for part in asked_of(asking))
        own = frozenset[int]().union(*map(own_columns, (bound, *asked)))
        (alone if own and own <= set(places) else others).append(node)
    return alone, others


def _filtered(nodes: list[Scalar], rows: BoundTable, nest: Nest) -> BoundTable:
    """The rows for which conditions with subqueries are true."""
    if not nodes:
        return rows
    nesting = Nesting(lambda query: nest(query, rows.plan, rows.scope))
    asked = _conditions(nodes, Context(rows.scope, "ON", nesting=nesting))
    return BoundTable(keep(rows.plan, asked, nesting.parts), rows.scope)


def _conditions(nodes: list[Scalar], context: Context) -> list[Expression]:
    """The conjuncts of conditions, without those that are TRUE."""
    parts = []
    for node in nodes:
        bound = bind_condition(node, context)
        with located(position_of(node)):
            require_boolean(bound, "a join's predicate")
        parts += [part for part in conjuncts(bound) if part != Literal(True, BOOLEAN)]
    return parts


def _beside_pairs(kind: JoinKind, left: BoundTable, right: BoundTable, pairs: BoundTable) -> BoundTable:
    """The join of a kind whose pairs are known: rows match by what they hold, and so do equal ones."""
    width, names = len(left.plan.schema), pairs.plan.schema.names
    lefts, rights = range(width), range(width, len(names))

    def apart(rows: Plan, places: range, *, anti: bool = True) -> Plan:
        own = tuple((names[place], column(pairs.plan, place)) for place in places)
        partners = Project(pairs.plan, own)
        others = [column(rows, place) for place in range(len(places))]
        return SemiJoin(rows, partners, tuple(null_safe_equalities(others, partners)), None, anti)

    def padded(rows: Plan, places: range) -> Plan:
        first = places.start
        items = (
            column(rows, place - first) if place in places else Literal(None, field.type)
            for place, field in enumerate(pairs.plan.schema)
        )
        return Project(apart(rows, places), tuple(zip(names, items, strict=True)))

    match kind:
        case JoinKind.INNER:
            return pairs
        case JoinKind.SEMI | JoinKind.ANTI:
            return BoundTable(apart(left.plan, lefts, anti=kind is JoinKind.ANTI), left.scope)
        case JoinKind.LEFT:
            plans = [padded(left.plan, lefts)]
        case JoinKind.RIGHT:
            plans = [padded(right.plan, rights)]
        case JoinKind.FULL:
            plans = [padded(left.plan, lefts), padded(right.plan, rights)]
        case _:
            assert_never(kind)
    return BoundTable(Union((pairs.plan, *plans)), pairs.scope)


def _matched(
    kind: JoinKind,
    left: BoundTable,
    right: BoundTable,
    equalities: tuple[Equality, ...],
    residual: Expression | None,
    pairs: BoundTable,
) -> BoundTable:
    names = pairs.plan.schema.names
    match kind:
        case JoinKind.INNER:
            return BoundTable(Join(left.plan, right.plan, equalities, residual, names), pairs.scope)
        case JoinKind.LEFT | JoinKind.RIGHT | JoinKind.FULL:
            return BoundTable(
                OuterJoin(left.plan, right.plan, equalities, residual, names, kind), pairs.scope
            )
        case JoinKind.SEMI | JoinKind.ANTI:
            anti = kind is JoinKind.ANTI
            return BoundTable(SemiJoin(left.plan, right.plan, equalities, residual, anti), left.scope)
        case _:
            assert_never(kind)


def _coalesced(
    bound: BoundTable, equalities: tuple[Equality, ...], names: tuple[Name, ...], width: int
) -> BoundTable:
    """A full outer join with the columns of USING in front, from whichever side has them."""
    plan = bound.plan
    merged = [functions.resolve("COALESCE", (one, shift_columns(other, width))) for one, other in equalities]
    columns = [column(plan, place) for place in range(len(plan.schema))]
    labels = unique_names([*(name.text for name in names), *plan.schema.names])
    project = Project(plan, tuple(zip(labels, [*merged, *columns], strict=True)))
    front = ScopeTable(
        None, None, tuple((name.text, column(project, place)) for place, name in enumerate(names))
    )
    moved = bound.scope.shifted(len(names))
    order = (*range(len(names)), *moved.order)
    return BoundTable(project, replace(moved, tables=(front, *moved.tables), order=order))


def _equal(left: Expression, right: Expression, name: Name) -> Equality:
    """The two columns of USING in their common type."""
    with located(name.position):
        match functions.resolve("=", (left, right)):
            case Call(arguments=(one, other)):
                return one, other
    raise AssertionError("= takes two arguments")
